/** Orders in number, each of a customer of its own, so that tickets do not meet in a total. */
import type { ShopFile } from "../../../src/shop/index.js";

/** ORD-7001 and on: delivered, £180.00 (or `capturedMinor`), customers CUS-7001 and on. */
export function withManyOrders(shop: ShopFile, count: number, capturedMinor = 18_000): ShopFile {
  const order = shop.orders.find((one) => one.ref === "ORD-10042");
  const customer = shop.customers.find((one) => one.ref === "CUS-7");
  const [item] = order?.items ?? [];
  if (order?.payment == null || customer === undefined || item === undefined) {
    throw new Error("the demo shop has lost the order that this copies");
  }
  const { payment } = order;
  const numbers = Array.from({ length: count }, (_, index) => 7001 + index);
  return {
    ...shop,
    customers: [
      ...shop.customers,
      ...numbers.map((n) => ({
        ...customer,
        ref: `CUS-${n}`,
        name: `Customer ${n}`,
        email: `c${n}@shop.example`,
      })),
    ],
    orders: [
      ...shop.orders,
      ...numbers.map((n) => ({
        ...order,
        ref: `ORD-${n}`,
        customer: `CUS-${n}`,
        items: [{ ...item, ref: `ORD-${n}-1`, unitAmount: capturedMinor }],
        payment: { ...payment, paymentIntent: `pi_many_${n}`, captured: capturedMinor },
      })),
    ],
  };
}

/** The demo's authority, with nothing counted: every refund of more than £50.00 is held for a supervisor. */
export const NOTHING_COUNTED = `version: 1
kinds:
  refund:
    orderStatuses: [delivered, cancelled]
    windowDays: 30
    auto: { GBP: 5000, USD: 5000 }
    never: { GBP: 200000, USD: 200000 }
    approval:
      - { upTo: { GBP: 50000, USD: 50000 }, role: supervisor, approvers: 1 }
      - { upTo: { GBP: 200000, USD: 200000 }, role: finance, approvers: 2 }
  cancel_order: { orderStatuses: [placed, packed], auto: false, approval: [{ role: supervisor, approvers: 1 }] }
roles:
  filer: {}
  supervisor: { usergroups: [S_SUP], limit: { GBP: 50000, USD: 50000 } }
  finance: { users: [U_FIN1, U_FIN2] }
  oncall: { usergroups: [S_ONC] }
`;
