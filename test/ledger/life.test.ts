import { describe, expect, test } from "vitest";
import type { Db } from "../../src/db/connect.js";
import type { Operation } from "../../src/domain/operation.js";
import type { StoredRequest } from "../../src/domain/ports/payment-provider.js";
import * as ledger from "../../src/ledger/index.js";
import { makeJudge } from "../../src/policy/index.js";
import { load, oneOrder } from "../shop/shop-context.js";
import { withDatabase } from "../support/database.js";
import {
  effectFor,
  type LedgerWorld,
  ledgerWorld,
  OPEN_POLICY,
  putRun,
  refund,
  usePolicy,
} from "../support/ledger-world.js";

const database = withDatabase({ poolSize: 20 });
const REQUEST: StoredRequest = {
  endpoint: "refunds.create",
  target: null,
  params: { payment_intent: "pi_1" },
};

async function world(policy = OPEN_POLICY): Promise<LedgerWorld> {
  await load(database.db, oneOrder());
  await usePolicy(database.db, policy);
  return ledgerWorld(database.db);
}

async function prepare(ctx: LedgerWorld, ...proposals: ledger.Proposal[]): Promise<ledger.PerCall[]> {
  return ctx.db.tx((tx) =>
    ledger.prepareTurn(tx, ctx, {
      calls: proposals.map((proposal) => ({ callId: proposal.callId, proposal })),
      judge: makeJudge(),
      onHold: async () => {},
    }),
  );
}

async function prepared(ctx: LedgerWorld, amount: bigint): Promise<Operation> {
  const [call] = await prepare(ctx, refund(await putRun(ctx.db), amount));
  if (call?.outcome !== "prepared") throw new Error(`not prepared: ${JSON.stringify(call?.outcome)}`);
  return call.operation;
}

async function claimed(ctx: LedgerWorld, operation: Operation): Promise<ledger.Claim> {
  const claim = await ledger.claim(ctx, { operation, worker: "w1", request: REQUEST });
  if (!claim.claimed) throw new Error(`not claimed: ${claim.why}`);
  return claim;
}

const balance = async (db: Db): Promise<{ reserved: bigint; refunded: bigint }> => {
  const [row] = await db.sql<{ reserved: bigint; refunded: bigint }>(
    undefined,
    "SELECT reserved, refunded FROM payments",
  );
  if (row === undefined) throw new Error("no payment");
  return row;
};

describe("the life of an operation", () => {
  test("prepared, claimed and settled, the money moves from reserved to refunded and the chain verifies", async () => {
    const ctx = await world();
    const operation = await prepared(ctx, 2000n);
    expect(await balance(ctx.db)).toEqual({ reserved: 2000n, refunded: 0n });
    const claim = await claimed(ctx, operation);
    const done = await ledger.settle(ctx, {
      operationId: operation.id,
      leaseToken: claim.leaseToken,
      attempt: claim.attempt,
      outcome: { verdict: "committed", effect: effectFor(operation), requestId: "req", replayed: false },
    });
    expect(done).toMatchObject({ settled: true, operation: { status: "CONFIRMED" } });
    expect(await balance(ctx.db)).toEqual({ reserved: 0n, refunded: 2000n });
    expect(await ledger.sealBlocks(ctx.db, { patienceMs: 30_000 })).toBe(3);
    expect(await ledger.verifyAudit(ctx.db)).toMatchObject({
      intact: true,
      events: 3,
      operations: 1,
      blocks: 1,
    });
    expect((await ledger.eventsOf(ctx.db, operation.id)).map((event) => event.type)).toEqual([
      "prepare",
      "claim",
      "settle_confirmed",
    ]);
  });

  test("an answer after the lease was lost overwrites nothing and is kept", async () => {
    const ctx = await world();
    const operation = await prepared(ctx, 2000n);
    const first = await ledger.claim(
      { ...ctx, timing: { ...ctx.timing, leaseMs: 1 } },
      {
        operation,
        worker: "w1",
        request: REQUEST,
      },
    );
    if (!first.claimed) throw new Error(first.why);
    let taken = await ledger.takeForReconcile(ctx, {
      operationId: operation.id,
      worker: "w2",
      because: "due",
    });
    while (taken === null) {
      taken = await ledger.takeForReconcile(ctx, { operationId: operation.id, worker: "w2", because: "due" });
    }
    const again = await ledger.resend(ctx, {
      operationId: operation.id,
      leaseToken: taken.leaseToken,
      worker: "w2",
      evidence: { says: "absent" },
    });
    if (!again.claimed) throw new Error(again.why);
    expect(again.attempt).toBe(2);
    const effect = effectFor(operation);
    const settle = (claim: ledger.Claim): Promise<ledger.SettleResult> =>
      ledger.settle(ctx, {
        operationId: operation.id,
        leaseToken: claim.leaseToken,
        attempt: claim.attempt,
        outcome: { verdict: "committed", effect, requestId: null, replayed: false },
      });
    expect(await settle(again)).toMatchObject({ settled: true, operation: { status: "CONFIRMED" } });
    expect(await settle(first)).toMatchObject({
      settled: false,
      why: "fenced",
      operation: { status: "CONFIRMED" },
    });
    const attempts = await ledger.attemptsOf(ctx.db, operation.id);
    expect(attempts.map((attempt) => attempt.verdict)).toEqual(["committed", "committed"]);
    expect(await balance(ctx.db)).toEqual({ reserved: 0n, refunded: 2000n });
    expect((await ledger.verifyAudit(ctx.db)).broken).toEqual([]);
  });

  test("fifty concurrent refunds with room for three end as exactly three", async () => {
    const ctx = await world();
    const owners = await Promise.all(Array.from({ length: 50 }, () => putRun(ctx.db)));
    const results = await Promise.all(
      owners.map((owner, index) => prepare(ctx, refund(owner, 3000n + BigInt(index)))),
    );
    const outcomes = results.flat().map((call) => call.outcome);
    expect(outcomes.filter((outcome) => outcome === "prepared")).toHaveLength(3);
    expect(outcomes.filter((outcome) => outcome === "insufficient")).toHaveLength(47);
    expect((await balance(ctx.db)).reserved).toBeLessThanOrEqual(10000n);
    expect((await ledger.verifyAudit(ctx.db)).broken).toEqual([]);
  });

  test("the same refund from fifty runs at once is one operation", async () => {
    const ctx = await world();
    const owners = await Promise.all(Array.from({ length: 50 }, () => putRun(ctx.db)));
    const calls = (await Promise.all(owners.map((owner) => prepare(ctx, refund(owner, 2000n))))).flat();
    expect(calls.filter((call) => call.outcome === "prepared")).toHaveLength(1);
    expect(calls.filter((call) => call.outcome === "same")).toHaveLength(49);
    expect(await balance(ctx.db)).toEqual({ reserved: 2000n, refunded: 0n });
  });

  test("two refunds of one turn that together pass a line are both stopped until a person decides", async () => {
    const ctx = await world(OPEN_POLICY.replace("GBP: 100000, USD: 100000", "GBP: 5000, USD: 5000"));
    const owner = await putRun(ctx.db);
    const calls = await prepare(ctx, refund(owner, 4000n), refund(owner, 4500n));
    expect(calls.map((call) => call.outcome)).toEqual(["ready", "held"]);
    expect(await balance(ctx.db)).toEqual({ reserved: 0n, refunded: 0n });
  });

  test("a frozen kind is not claimed, and goes on after the thaw", async () => {
    const ctx = await world();
    const operation = await prepared(ctx, 2000n);
    await ledger.freeze(ctx, { kind: "refund", by: "U_ONC1", reason: "looking" });
    expect(await ledger.claim(ctx, { operation, worker: "w1", request: REQUEST })).toMatchObject({
      claimed: false,
      why: "frozen",
    });
    await ledger.thaw(ctx, { kind: "refund", by: "U_ONC2" });
    const now = await ledger.getOperation(ctx.db, operation.id);
    if (now === null) throw new Error("gone");
    expect(await ledger.claim(ctx, { operation: now, worker: "w1", request: REQUEST })).toMatchObject({
      claimed: true,
    });
  });

  test("a changed event is named by the verifier", async () => {
    const ctx = await world();
    const operation = await prepared(ctx, 2000n);
    await ctx.db.sql(undefined, "ALTER TABLE operation_events DISABLE TRIGGER ALL");
    await ctx.db.sql(undefined, "UPDATE operation_events SET body = replace(body, '2000', '2001')");
    await ctx.db.sql(undefined, "ALTER TABLE operation_events ENABLE TRIGGER ALL");
    const report = await ledger.verifyAudit(ctx.db);
    expect(report.intact).toBe(false);
    expect(report.broken[0]).toMatchObject({ operationId: operation.id, seq: 1 });
  });
});
