/** Totals are kept in buckets of minutes and hours: whatever came and left, a window's sum is that of its entries. */
import { fc } from "@fast-check/vitest";
import { describe, expect, test } from "vitest";
import { scopesFor } from "../../src/domain/policy/facts.js";
import type { JudgeSubject } from "../../src/domain/ports/judge.js";
import { gatherFacts } from "../../src/policy/gather-facts.js";
import { activePolicy } from "../../src/policy/index.js";
import { load, oneOrder } from "../shop/shop-context.js";
import { withDatabase } from "../support/database.js";
import { OPEN_POLICY, usePolicy } from "../support/ledger-world.js";
import { putOperation } from "./ledger-rows.js";

const database = withDatabase({ reset: "never" });

const COUNTING = OPEN_POLICY.replace(
  "totals: []",
  `totals:
      - { per: order, windowHours: 720, count: 1000, then: hold }
      - { per: customer, windowHours: 26.5, count: 1000, then: hold }
      - { per: filer, windowHours: 3, count: 1000, then: hold }
      - { per: shop, windowHours: 24, count: 1000, then: refuse }
      - { per: shop, windowHours: 0.75, count: 1000, then: refuse }
      - { per: day, windowHours: 24, count: 1000, then: refuse }`,
);

/** Distances from an edge in microseconds: on it, a hair beside it, and anywhere near. */
const nearEdge = fc.oneof(
  fc.constantFrom(0, 1, -1, 60_000_000),
  fc.integer({ min: -7_200_000_000, max: 7_200_000_000 }),
);

interface Entry {
  readonly hours: number;
  readonly micros: number;
  readonly amount: number;
  readonly currency: string;
  readonly filer: string;
  readonly fullest: "microsecond" | "minute" | "hour";
}
const entry: fc.Arbitrary<Entry> = fc.record({
  hours: fc.constantFrom(0.75, 3, 24, 26.5, 720),
  micros: nearEdge,
  amount: fc.integer({ min: 1, max: 100_000 }),
  currency: fc.constantFrom("GBP", "USD"),
  filer: fc.constantFrom("U_AGENT", "U_AGENT2"),
  fullest: fc.constantFrom("microsecond", "minute", "hour"),
});

const SUBJECT: Omit<JudgeSubject, "customerId" | "orderId" | "paymentId"> = {
  intent: {
    kind: "refund",
    customerRef: "CUS-1",
    orderRef: "ORD-1",
    subscriptionRef: null,
    amountMinor: 100n,
    currency: "GBP",
    atPeriodEnd: null,
    occurrence: 1,
  },
  refundScope: "amount",
  itemRefs: [],
  filers: ["U_AGENT"],
  bindingConfirmed: true,
  subscriptionId: null,
  operationId: null,
  predecessorId: null,
};

/** $1 scope, $2 begin of the window, $3 own operation: what the entries themselves say. */
const PLAIN = `
SELECT count(*)::int AS count, COALESCE(sum(amount_minor) FILTER (WHERE currency = 'GBP'), 0)::bigint AS "amountMinor"
FROM total_entries e
WHERE e.scope = $1 AND e.kind = 'refund' AND e.at >= $2::timestamptz AND e.operation_id IS DISTINCT FROM $3
  AND ($3::text IS NULL OR e.at < (SELECT at FROM total_entries WHERE scope = 'shop' AND operation_id = $3))`;

describe("buckets of the totals", () => {
  test("equal the sum of the entries after any sequence of entries that come and leave, on every edge of a window", {
    timeout: 240_000,
  }, async () => {
    const { db } = database;
    await fc.assert(
      fc.asyncProperty(
        fc.array(entry, { minLength: 1, maxLength: 12 }),
        fc.array(fc.nat({ max: 11 }), { maxLength: 5 }),
        fc.nat({ max: 11 }),
        async (entries, leaving, own) => {
          await database.reset();
          await load(db, oneOrder());
          await usePolicy(db, COUNTING);
          const ids: string[] = [];
          for (const each of entries) {
            ids.push(
              await putOperation(db, {
                orderRef: "ORD-1",
                amountMinor: BigInt(each.amount),
                currency: each.currency,
                filers: [each.filer],
                hoursAgo: each.hours + each.micros / 3_600_000_000,
                fullest: each.fullest,
              }),
            );
          }
          const left = new Set(leaving.flatMap((index) => ids[index] ?? []));
          await db.sql(undefined, "DELETE FROM total_entries WHERE operation_id = ANY($1::text[])", [
            [...left],
          ]);
          const self = ids[own];
          const operationId = self === undefined || left.has(self) ? null : (self as `op_${string}`);
          await compare({ ...SUBJECT, customerId: "", orderId: null, paymentId: null, operationId });
          await compare({ ...SUBJECT, customerId: "", orderId: null, paymentId: null });
        },
      ),
      { numRuns: 40 },
    );

    async function compare(subject: JudgeSubject): Promise<void> {
      const { policy } = await activePolicy(db);
      await db.tx(async (tx) => {
        const { facts } = await gatherFacts(tx, subject, policy.kinds.refund);
        expect(facts.totals).toHaveLength(6);
        for (const total of facts.totals) {
          const scopes = scopesFor(total.per, { ...subject.intent, filers: subject.filers });
          expect(scopes).toContain(total.scope);
          const since =
            total.per === "day"
              ? new Date(new Date(facts.now).setUTCHours(0, 0, 0, 0))
              : new Date(facts.now.getTime() - total.windowHours * 3_600_000);
          const [plain] = await tx.sql(undefined, PLAIN, [total.scope, since, subject.operationId]);
          expect({ count: total.count, amountMinor: total.amountMinor }).toEqual(plain);
        }
      });
    }
  });
});
