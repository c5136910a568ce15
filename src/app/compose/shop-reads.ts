/** The shop as the agent's tools read it, from the shop room. */
import type { CustomerFacts, OrderFacts, ShopReads, SubscriptionFacts } from "../../agent/index.js";
import type { Identify } from "../../runs/index.js";
import {
  bindingFromText,
  type Customer,
  findCustomers,
  findOrder,
  findSubscription,
  getCustomer,
  type Order,
  ordersOf,
  type Subscription,
  searchHelpCentre,
  subscriptionsOf,
} from "../../shop/index.js";

export const shopReads: ShopReads = {
  order: async (db, ref) => {
    const order = await findOrder(db, ref);
    return order === null ? null : orderFacts(order);
  },
  subscription: async (db, ref) => {
    const subscription = await findSubscription(db, ref);
    return subscription === null ? null : subscriptionFacts(subscription);
  },
  customer: async (db, customerId) => {
    const customer = await getCustomer(db, customerId);
    return customer === null ? null : customerFacts(customer);
  },
  searchCustomers: async (db, query, limit) =>
    (await findCustomers(db, query)).customers.slice(0, limit).map(customerFacts),
  ordersOf: (db, customerId, limit) => ordersOf(db, customerId, limit),
  subscriptionsOf: async (db, customerId) => (await subscriptionsOf(db, customerId)).map(subscriptionFacts),
  searchHelp: async (db, question, limit) => (await searchHelpCentre(db, question)).slice(0, limit),
};

/** Whom a text is about: by references and addresses in it, never by a guess. */
export const identify: Identify = async (db, text) => {
  const binding = await bindingFromText(db, text);
  switch (binding.found) {
    case "none":
      return [];
    case "one":
      return [candidate(binding.named)];
    case "several":
      return binding.candidates.map(candidate);
  }
};

function candidate(named: {
  customer: Customer;
  by: readonly string[];
}): Awaited<ReturnType<Identify>>[number] {
  return {
    customerId: named.customer.id,
    customerRef: named.customer.ref,
    name: named.customer.name,
    via: named.by.map((text) => ({
      kind: text.includes("@") ? ("email" as const) : ("order" as const),
      text,
    })),
  };
}

const customerFacts = ({ id, ref, name, email }: Customer): CustomerFacts => ({ id, ref, name, email });

function orderFacts(order: Order): OrderFacts {
  return {
    ref: order.ref,
    customerRef: order.customer.ref,
    status: order.status,
    currency: order.currency,
    placedAt: order.placedAt,
    deliveredAt: order.deliveredAt,
    cancelledAt: order.cancelledAt,
    shippingMinor: order.shippingMinor,
    items: order.items,
    payment: order.payment,
    shipments: order.shipments,
  };
}

function subscriptionFacts(subscription: Subscription): SubscriptionFacts {
  return {
    ref: subscription.ref,
    customerRef: subscription.customer.ref,
    plan: subscription.plan,
    status: subscription.status,
    providerRef: subscription.providerRef,
    currentPeriodEnd: subscription.currentPeriodEnd,
    cancelAtPeriodEnd: subscription.cancelAtPeriodEnd,
  };
}
