import { systemIds } from "../../../src/app/system.js";
import type { Db } from "../../../src/db/connect.js";
import { importShop } from "../../../src/shop/index.js";

const DELIVERED = { placedAt: "2026-11-02T09:00:00Z", deliveredAt: "2026-11-05T12:00:00Z" };

/** A shop of three customers; two share an address but for its case. */
export async function loadShop(
  db: Db,
  extra: { customers?: object[]; orders?: object[] } = {},
): Promise<void> {
  const order = (ref: string, customer: string, amount: number, currency = "GBP") => ({
    ref,
    customer,
    status: "delivered",
    currency,
    ...DELIVERED,
    items: [{ ref: `${ref}-1`, sku: "S-1", name: "Jacket", quantity: 1, unitAmount: amount }],
    payment: { paymentIntent: `pi_${ref}`, captured: amount },
  });
  const content = {
    customers: [
      { ref: "CUS-7", name: "Tom Whitfield", email: "tom.w@shop.example" },
      { ref: "CUS-8", name: "Pat One", email: "pat@shop.example" },
      { ref: "CUS-9", name: "Pat Two", email: "Pat@Shop.example" },
      ...(extra.customers ?? []),
    ],
    orders: [
      order("ORD-10042", "CUS-7", 18000),
      order("ORD-1001", "CUS-7", 7900, "USD"),
      order("ORD-8", "CUS-8", 5000),
      ...(extra.orders ?? []),
    ],
  };
  await importShop({ db, ids: systemIds, onBelowReserved: async () => {} }, { content });
}
