/** The demo's shop with orders in number, each of a customer of its own, so that tickets do not meet in a total. */
import type { ShopFile } from "../../shop/index.js";

/** The number of the first order and customer. */
export const FIRST_OF_MANY = 7001;

/** ORD-7001 and on: delivered, £180.00 (or `capturedMinor`), customers CUS-7001 and on. */
export function withManyOrders(shop: ShopFile, count: number, capturedMinor = 18_000): ShopFile {
  const order = shop.orders.find((one) => one.ref === "ORD-10042");
  const customer = shop.customers.find((one) => one.ref === "CUS-7");
  const [item] = order?.items ?? [];
  if (order?.payment == null || customer === undefined || item === undefined) {
    throw new Error("the demo shop has lost the order that this copies");
  }
  const { payment } = order;
  const numbers = Array.from({ length: count }, (_, index) => FIRST_OF_MANY + index);
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
