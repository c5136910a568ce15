/** What every arm of the ledger's benchmark works on: a shop of orders that are refunded once each, by a few filers, in lanes. */
import type { CallId, RunId, TicketId } from "../../../domain/ids.js";
import type { Proposal } from "../../../ledger/index.js";

/** Minor units of every refund. */
export const AMOUNT_MINOR = 700_000_001;
export const CURRENCY = "GBP";
const CUSTOMERS = 500;
const FILERS = 50;
/** Orders beside the ones that arms may use up: for the recording. */
export const SPARE_ORDERS = 16;

/** Orders that were refunded before any arm begins. */
export const EARLIER_ORDERS = 1_000;

/** The totals of the default policy, with lines that no run reaches: they are counted, and nothing is held. */
const COUNTED = `
      - { per: order, windowHours: 720, count: 1000000, then: hold }
      - { per: customer, windowHours: 720, amount: { GBP: 900000000000000 }, count: 1000000, then: hold }
      - { per: filer, windowHours: 24, amount: { GBP: 900000000000000 }, then: hold }
      - { per: shop, windowHours: 24, amount: { GBP: 900000000000000 }, then: refuse }`;

/** With the default policy's totals, or without any. */
export type Totals = "totals" | "none";

export const benchPolicy = (totals: Totals): string => `
version: 1
kinds:
  refund:
    orderStatuses: [delivered]
    windowDays: 30
    auto: { GBP: 900000000000000 }
    never: { GBP: 900000000000000 }
    approval: [{ role: supervisor, approvers: 1 }]
    totals: ${totals === "none" ? "[]" : COUNTED}
    coolingOffMinutes: {}
roles:
  supervisor: { users: [U_SUP1] }
  oncall: { users: [U_ONC1] }
`;

/** A number as the names of the benchmark write it: all of one length, so that no name is part of another. */
export const padded = (n: number): string => String(n).padStart(6, "0");

export const orderRef = (n: number): string => `ORD-${padded(n)}`;
export const paymentIntent = (n: number): string => `pi_${padded(n)}`;
export const customerOf = (n: number): number => n % CUSTOMERS;
export const customerRef = (n: number): string => `CUS-${padded(customerOf(n))}`;
export const filerOf = (n: number): number => n % FILERS;
export const filer = (n: number): string => `U_FILER${padded(filerOf(n))}`;
/** The reference under which the provider knows the refund of order `n`. */
export const effectRef = (n: number): string => `re_${padded(n)}`;

/** In whose name a lane asks. */
export interface Owner {
  readonly runId: RunId;
  readonly ticketId: TicketId;
}

/** The shop's file: every order delivered and paid. */
export function benchShop(orders: number, now: Date): object {
  const at = now.toISOString();
  return {
    customers: Array.from({ length: CUSTOMERS }, (_, n) => ({
      ref: customerRef(n),
      name: `Customer ${n}`,
      email: `customer-${n}@shop.example`,
    })),
    orders: Array.from({ length: orders }, (_, n) => ({
      ref: orderRef(n),
      customer: customerRef(n),
      status: "delivered",
      currency: CURRENCY,
      placedAt: at,
      deliveredAt: at,
      items: [{ ref: `${orderRef(n)}-1`, sku: "S", name: "Thing", quantity: 1, unitAmount: AMOUNT_MINOR }],
      payment: { paymentIntent: paymentIntent(n), captured: AMOUNT_MINOR },
    })),
  };
}

export const proposalFor = (n: number, owner: Owner, callId: CallId): Proposal => ({
  callId,
  intent: {
    kind: "refund",
    customerRef: customerRef(n),
    orderRef: orderRef(n),
    subscriptionRef: null,
    amountMinor: BigInt(AMOUNT_MINOR),
    currency: CURRENCY,
    atPeriodEnd: null,
    occurrence: 1,
  },
  landing: { paymentIntent: paymentIntent(n), providerSubscription: null },
  itemRefs: [],
  refundScope: "amount",
  reason: "it arrived broken",
  ...owner,
  filers: [filer(n)],
  bindingConfirmed: true,
});
