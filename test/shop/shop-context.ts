import { systemIds } from "../../src/app/system.js";
import type { Db } from "../../src/db/connect.js";
import { type BelowReserved, type ImportResult, importShop } from "../../src/shop/index.js";

/** Imports and collects what was found below a reservation. */
export async function load(db: Db, content: unknown, findings: BelowReserved[] = []): Promise<ImportResult> {
  const onBelowReserved = async (_tx: unknown, finding: BelowReserved): Promise<void> => {
    findings.push(finding);
  };
  return importShop({ db, ids: systemIds, onBelowReserved }, { content });
}

/** One customer with one delivered order of £100.00, and changes to that order. */
export function oneOrder(changes: Record<string, unknown> = {}): { customers: object[]; orders: object[] } {
  return {
    customers: [{ ref: "CUS-1", name: "Alice", email: "alice@shop.example" }],
    orders: [
      {
        ref: "ORD-1",
        customer: "CUS-1",
        status: "delivered",
        currency: "GBP",
        placedAt: "2026-11-02T09:00:00Z",
        deliveredAt: "2026-11-05T12:00:00Z",
        items: [{ ref: "ORD-1-1", sku: "S", name: "Thing", quantity: 2, unitAmount: 5000 }],
        payment: { paymentIntent: "pi_1", captured: 10000 },
        ...changes,
      },
    ],
  };
}

/** What the ledger does to a payment, written directly: these tests are about the import, not the ledger. */
export async function spend(db: Db, reserved: bigint, refunded: bigint): Promise<void> {
  await db.sql(undefined, "UPDATE payments SET reserved = $1, refunded = $2", [reserved, refunded]);
}
