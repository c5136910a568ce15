/** Both books compared: what the provider made and nobody here asked for, and what is confirmed here and not there. */
import { beforeEach, describe, expect, it } from "vitest";
import type { OperationId } from "../../src/domain/ids.js";
import { sweepOrphans } from "../../src/reconcile/index.js";
import { readOperation } from "../../src/slack/views/operation.js";
import { SECRET_KEY, withPaymentsSandbox } from "../payments/support.js";
import { countersOf } from "../support/counters.js";
import { withDatabase } from "../support/database.js";
import { foreignRefund } from "../support/ledger-world.js";
import { type CaseWorld, withCaseWorld } from "./case-world.js";

const database = withDatabase();
const payments = withPaymentsSandbox();
const build = withCaseWorld(payments);
const { incidents } = countersOf(database, payments);
let w: CaseWorld;

beforeEach(async () => {
  w = await build(database.db);
  await w.order({ ref: "ORD-1001", captured: 18_000, currency: "GBP" });
});

/** A refund on the order's payment by somebody with the provider's key, under this operation's id. */
async function refundUnder(operationId: string, amount: number): Promise<void> {
  const [row] = await database.db.sql<{ payment_intent: string }>(
    undefined,
    "SELECT p.payment_intent FROM payments p JOIN orders o ON o.id = p.order_id WHERE o.ref = 'ORD-1001'",
  );
  const answer = await fetch(`${payments.sandbox.url}/v1/refunds`, {
    method: "POST",
    headers: { authorization: `Bearer ${SECRET_KEY}`, "content-type": "application/x-www-form-urlencoded" },
    body: new URLSearchParams({
      payment_intent: row?.payment_intent ?? "",
      amount: String(amount),
      "metadata[operation_id]": operationId,
    }),
  });
  expect(answer.status).toBe(200);
}

const elsewhere = async (): Promise<bigint | undefined> =>
  (await database.db.sql<{ sum: bigint }>(undefined, "SELECT refunded_elsewhere AS sum FROM payments"))[0]
    ?.sum;

describe("an effect at the provider that no operation here made", () => {
  it("is one incident however often it is seen, and its amount is gone from the payment", async () => {
    await refundUnder("op_01a200000000000000000000000000ff", 3_000);
    for (const name of ["first", "second"]) {
      expect(await sweepOrphans(w.worker(name))).toMatchObject({ read: true, effects: 1, orphans: 1 });
    }
    expect(await incidents()).toEqual(["orphan_effect"]);
    expect(await w.balance("ORD-1001")).toMatchObject({ refunded: 0 });
    expect(await elsewhere()).toBe(3_000n);
  });

  it("a second one under a confirmed operation's id is a duplicate, and counts as gone beside its own", async () => {
    const id = await w.prepared("ORD-1001", 2_000n);
    expect(await w.work(w.worker("first"), id)).toMatchObject({ status: "CONFIRMED" });
    await refundUnder(id, 2_000);
    for (const name of ["first", "second"]) await sweepOrphans(w.worker(name));
    expect(await incidents()).toEqual(["duplicate_effect"]);
    expect(await w.balance("ORD-1001")).toMatchObject({ refunded: 2_000 });
    expect(await elsewhere()).toBe(2_000n);
    expect(await w.committed()).toBe(2);
    const operation = await readOperation(database.db, id as OperationId);
    expect(operation?.duplicates).toEqual([expect.stringMatching(/^£20\.00 GBP \(re_\w+\)$/u)]);
    expect(
      new Set(
        w.h.shown.thread.flatMap(({ key, message }) =>
          message.type === "operation_outcome" && message.operationId === id ? [key] : [],
        ),
      ).size,
      "once that it was refunded, once that it was refunded twice",
    ).toBe(2);
  });
});

it("a refund under the id of an operation that waits for an approval: what is approved then is not sent", async () => {
  const held = await w.ask("ORD-1001", 6_000n);
  const [approval] = held.approvals;
  const id = held.calls[0]?.operationId;
  if (approval === undefined || id === undefined) throw new Error("not held");
  await refundUnder(id, 6_000);
  await w.h.click("U_SUP1", approval, "approve");
  await w.h.release(held);

  const operation = await w.work(w.worker("w"), id);

  expect(operation).toMatchObject({ status: "VOIDED", attempts: 0, result: { code: "effect_elsewhere" } });
  expect(await w.committed()).toBe(1);
  expect(await w.balance("ORD-1001")).toMatchObject({ reserved: 0, refunded: 0 });
  expect(await elsewhere()).toBe(6_000n);
  await sweepOrphans(w.worker("w"));
  expect(await incidents()).toEqual(["orphan_effect"]);
  await w.intact();
});

describe("a refund that a person made in the provider's dashboard, of which no webhook told", () => {
  it("is one incident, its amount is gone from the payment, and a refund that no longer fits is not prepared", async () => {
    await w.control.dashboardRefund({ paymentIntent: "pi_ORD-1001", amount: 17_000 });
    for (const name of ["first", "second"]) {
      expect(await sweepOrphans(w.worker(name))).toMatchObject({ read: true, effects: 1, orphans: 0 });
    }
    expect(await incidents()).toEqual(["refunded_elsewhere"]);
    expect(await elsewhere()).toBe(17_000n);
    const asked = await w.ask("ORD-1001", 2_000n);
    expect(asked.outcomes).toMatchObject([{ outcome: "insufficient", leftMinor: 1_000n }]);
    expect(await w.posts()).toEqual([]);
    await w.intact();
  });

  it("is read once: a sweep asks for a payment's list only where it shows something new", async () => {
    await w.control.dashboardRefund({ paymentIntent: "pi_ORD-1001", amount: 1_000 });
    const lists = async (): Promise<number> =>
      (await w.control.requests({ method: "GET", paymentIntent: "pi_ORD-1001" })).length;
    await sweepOrphans(w.worker("first"));
    const once = await lists();
    expect(once).toBeGreaterThan(0);
    await sweepOrphans(w.worker("first"));
    expect(await lists()).toBe(once);
    await w.control.dashboardRefund({ paymentIntent: "pi_ORD-1001", amount: 500 });
    await sweepOrphans(w.worker("first"));
    expect(await elsewhere()).toBe(1_500n);
    expect(await incidents()).toEqual(["refunded_elsewhere", "refunded_elsewhere"]);
  });
});

describe("a confirmed operation that the provider does not show", () => {
  it("is one incident, once the list has had its time", async () => {
    const id = await w.prepared("ORD-1001", 2_000n);
    await w.work(w.worker("first"), id);
    expect(await sweepOrphans(w.worker("first"))).toMatchObject({ missing: 0 });
    await database.db.sql(undefined, "UPDATE operations SET provider_ref = 're_gone' WHERE id = $1", [id]);
    await w.advance(700_000);
    expect(await sweepOrphans(w.worker("first"))).toMatchObject({ missing: 1 });
    expect(await sweepOrphans(w.worker("second"))).toMatchObject({ missing: 0 });
    expect(await incidents()).toContain("missing_effect");
    expect((await incidents()).filter((kind) => kind === "missing_effect")).toHaveLength(1);
  });

  it("is found among any number of others that the provider does show", async () => {
    const id = await w.prepared("ORD-1001", 2_000n);
    await w.work(w.worker("first"), id);
    const others = 1_100;
    await database.db.tx(async (tx) => {
      await tx.sql(undefined, "SET LOCAL session_replication_role = replica");
      await tx.sql(
        undefined,
        `INSERT INTO operations SELECT (jsonb_populate_record(o, jsonb_build_object(
           'id', 'op_' || n, 'key', n, 'idempotency_key', n, 'provider_ref', 're_' || n, 'created_at', o.created_at + interval '1 second'))).*
         FROM operations o, generate_series(1, $2::int) n WHERE o.id = $1`,
        [id, others],
      );
    });
    await w.advance(700_000);
    const ctx = w.worker("first");
    const found = await sweepOrphans({
      ...ctx,
      provider: {
        ...ctx.provider,
        // It shows every other one.
        listSince: async () => ({
          read: "complete",
          effects: Array.from({ length: others }, (_, index) => ({
            ...foreignRefund(2_000n, `re_${index + 1}`),
            target: "pi_ORD-1001",
            operationId: `op_${index + 1}`,
          })),
          balance: null,
          readAt: new Date(),
        }),
        read: async () => ({ read: "complete", effects: [], balance: null, readAt: new Date() }),
      },
    });
    expect(found).toMatchObject({ missing: 1 });
    const [told] = await database.db.sql<{ id: string }>(
      undefined,
      "SELECT operation_id AS id FROM incidents WHERE kind = 'missing_effect'",
    );
    expect(told?.id).toBe(id);
  });
});
