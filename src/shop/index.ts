/**
 * The shop: customers, orders, shipments, subscriptions, help centre. Its rows are written by the import, by cancelling, and
 * (reserved and refunded amounts of payments only) by the ledger.
 */
export { cancelOrder, type LocalEffectResult, recordSubscriptionCancelled } from "./cancel-order.js";
export { demoShop } from "./demo-shop.js";
export { DEMO_TICKETS, type DemoTicket } from "./demo-tickets.js";
export {
  bindingFromText,
  type FoundCustomers,
  findCustomers,
  type NamedInText,
  type TextBinding,
} from "./find-customers.js";
export { type HelpArticle, searchHelpCentre } from "./help-centre.js";
export {
  type BelowReserved,
  type ImportContext,
  type ImportResult,
  importShop,
  ShopFileError,
} from "./import-shop.js";
export { findOrder, findSubscription, getCustomer, getOrder, ordersOf, subscriptionsOf } from "./reads.js";
export type { ShopFile, ShopFileInput, ShopProblem } from "./shop-file.js";
export type {
  Customer,
  Order,
  OrderHead,
  OrderItem,
  Payment,
  Shipment,
  Subscription,
} from "./types.js";
