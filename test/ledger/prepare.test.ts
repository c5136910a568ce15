/** Who an operation is, what it reserves, and how a turn is decided as a whole. */
import { describe, expect, test } from "vitest";
import type { Db } from "../../src/db/connect.js";
import type { Operation, OperationStatus } from "../../src/domain/operation.js";
import * as ledger from "../../src/ledger/index.js";
import { makeJudge } from "../../src/policy/index.js";
import { oneOrder } from "../shop/shop-context.js";
import { withDatabase } from "../support/database.js";
import { type LedgerWorld, OPEN_POLICY, putRun, refund, usePolicy } from "../support/ledger-world.js";
import {
  claimed,
  HOLDING_POLICY,
  held,
  inState,
  intact,
  moneyOf,
  openShop,
  outcomes,
  prepare,
  prepared,
  reread,
  settle,
} from "./scene.js";

const database = withDatabase({ poolSize: 20 });

const approval = (accepts: boolean, by = "U_SUP1"): ledger.ApprovedBinding => ({
  approvalId: "apr_00000000000000000000000000000001",
  approvedBy: [by],
  accepts: async () => (accepts ? { holds: true } : { holds: false, changes: [{ what: "order_status" }] }),
});

/** Releases operations that were held, as the approvals room does. */
function release(
  ctx: LedgerWorld,
  calls: readonly { operation: Operation; approval: ledger.ApprovedBinding | null }[],
  more: readonly ledger.Proposal[] = [],
): Promise<ledger.PerCall[]> {
  return ctx.db.tx((tx) =>
    ledger.prepareTurn(tx, ctx, {
      calls: [
        ...calls.map(({ operation, approval: given }) => ({
          callId: ctx.ids.next("call_"),
          operationId: operation.id,
          approval: given,
          bindingConfirmed: true,
        })),
        ...more.map((proposal) => ({ callId: proposal.callId, proposal })),
      ],
      judge: makeJudge(),
      onHold: async () => {},
    }),
  );
}

const rows = async (db: Db): Promise<number> =>
  (await db.sql<{ id: string }>(undefined, "SELECT id FROM operations")).length;

describe("identity", () => {
  test("the same intent from the same run, another run and another ticket is one operation; all filers count", async () => {
    const ctx = await openShop(database.db);
    const owner = await putRun(ctx.db);
    const [first] = await prepare(ctx, refund(owner, 2000n));
    const other = await putRun(ctx.db, "U_OTHER");
    const again = [
      ...(await prepare(ctx, refund(owner, 2000n))),
      ...(await prepare(ctx, { ...refund(other, 2000n), filers: ["U_OTHER"] })),
    ];
    if (first?.outcome !== "prepared") throw new Error("not prepared");
    for (const call of again) {
      expect(call).toMatchObject({ outcome: "same", operation: { id: first.operation.id } });
    }
    const now = await reread(ctx.db, first.operation);
    expect(now.filers).toEqual(["U_AGENT", "U_OTHER"]);
    expect(await ledger.waitersOf(ctx.db, now.id)).toMatchObject([{ runId: other.runId, filer: "U_OTHER" }]);
    expect(await moneyOf(ctx.db)).toMatchObject({ reserved: 2000n });
    expect(await intact(ctx.db)).toEqual([]);
  });

  test("free text and how the amount was named change nothing", async () => {
    const ctx = await openShop(database.db);
    const owner = await putRun(ctx.db);
    await prepare(ctx, refund(owner, 10_000n));
    const [call] = await prepare(ctx, {
      ...refund(owner, 10_000n),
      refundScope: "everything_left",
      reason: "another wording",
    });
    expect(call?.outcome).toBe("same");
    expect(await rows(ctx.db)).toBe(1);
  });

  test("the stored result is replayed after the end, from another process", async () => {
    const ctx = await openShop(database.db);
    const operation = await inState(ctx, "CONFIRMED");
    const later = { ...ctx, db: database.openAnother("later") };
    const [call] = await prepare(later, refund(await putRun(ctx.db), 2000n));
    expect(call).toMatchObject({
      outcome: "same",
      operation: { id: operation.id, status: "CONFIRMED", result: { code: "confirmed" } },
    });
    expect(await moneyOf(ctx.db)).toMatchObject({ reserved: 0n, refunded: 2000n });
  });

  test("the same key with other material fields is refused before anything is sent", async () => {
    const ctx = await openShop(database.db);
    const operation = await prepared(ctx);
    const proposal = refund(await putRun(ctx.db), 2000n);
    const [call] = await prepare(ctx, {
      ...proposal,
      landing: { paymentIntent: "pi_other", providerSubscription: null },
    });
    expect(call).toMatchObject({ outcome: "conflict", operation: { id: operation.id } });
    expect(await rows(ctx.db)).toBe(1);
  });

  test("a new contract version does not turn replays into conflicts", async () => {
    const ctx = await openShop(database.db);
    const operation = await inState(ctx, "CONFIRMED");
    const deployed = {
      ...ctx,
      contracts: { ...ctx.contracts, refund: { ...ctx.contracts.refund, version: "stripe-refund/2" } },
    };
    const [call] = await prepare(deployed, refund(await putRun(ctx.db), 2000n));
    expect(call).toMatchObject({ outcome: "same", operation: { id: operation.id } });
  });

  test.each(["DENIED", "EXPIRED", "VOIDED"] as const)(
    "%s while it waits for an approval: its card tells the owner's thread, and no post says it a second time",
    async (status) => {
      const ctx = await openShop(database.db);
      const { approvalId } = await inState(ctx, status);
      expect(approvalId).toBeNull();
      expect(ctx.notes).not.toContain("thread operation_outcome");
    },
  );

  test("denied is told again in its ticket; a later ticket makes a successor that is held and names it", async () => {
    const ctx = await openShop(database.db, { policy: HOLDING_POLICY });
    const owner = await putRun(ctx.db);
    const [first] = await prepare(ctx, refund(owner, 2000n));
    if (first?.outcome !== "held") throw new Error("not held");
    await ctx.db.tx((tx) =>
      ledger.deny(tx, ctx, {
        operationId: first.operation.id,
        actor: "slack:U_SUP1",
        code: "denied",
        detail: "not now",
      }),
    );
    await usePolicy(ctx.db, OPEN_POLICY);
    expect(await prepare(ctx, refund(owner, 2000n))).toMatchObject([
      { outcome: "denied_before", operation: { id: first.operation.id, status: "DENIED" } },
    ]);
    const [successor] = await prepare(ctx, refund(await putRun(ctx.db), 2000n));
    expect(successor).toMatchObject({
      outcome: "held",
      operation: { predecessorId: first.operation.id, status: "AWAITING_APPROVAL" },
    });
    expect(await intact(ctx.db)).toEqual([]);
  });

  test("refused by the provider is told again in its ticket, one operation however often it is asked (S-AG-5)", async () => {
    const ctx = await openShop(database.db);
    const owner = await putRun(ctx.db);
    const [first] = await prepare(ctx, refund(owner, 2000n));
    if (first?.outcome !== "prepared") throw new Error("not prepared");
    await settle(ctx, await claimed(ctx, first.operation), outcomes.rejected());
    for (let round = 0; round < 12; round += 1) {
      const [call] = await prepare(ctx, { ...refund(owner, 2000n), reason: `wording ${round}` });
      expect(call).toMatchObject({ outcome: "denied_before", operation: { status: "REJECTED" } });
    }
    expect(await rows(ctx.db)).toBe(1);
    const [elsewhere] = await prepare(ctx, refund(await putRun(ctx.db), 2000n));
    expect(elsewhere?.outcome).toBe("prepared");
  });

  test.each(["EXPIRED", "VOIDED"] as const)(
    "%s may be asked for again, in the same ticket too",
    async (end) => {
      const ctx = await openShop(database.db);
      const ended = await inState(ctx, end);
      const [call] = await prepare(ctx, {
        ...refund(await putRun(ctx.db), 2000n),
        ...(ended.ticketId === null ? {} : { ticketId: ended.ticketId }),
      });
      expect(call).toMatchObject({ outcome: "prepared", operation: { predecessorId: null } });
    },
  );

  test.each(["CONFIRMED", "REVERSED", "OUTCOME_UNKNOWN"] as const)(
    "after %s only a person's further occurrence is another operation: held, once, however often it is asked",
    async (status) => {
      const ctx = await openShop(database.db);
      const operation = await inState(ctx, status);
      const owner = await putRun(ctx.db);
      const further = { askedBy: "U_AGENT", of: operation.id };
      const [plain] = await prepare(ctx, refund(owner, 2000n));
      expect(plain).toMatchObject({ outcome: "same", operation: { id: operation.id } });
      const [asked] = await prepare(ctx, { ...refund(owner, 2000n), further });
      expect(asked).toMatchObject({ outcome: "held", operation: { occurrence: 2 } });
      const [twice] = await prepare(ctx, { ...refund(owner, 2000n), further });
      expect(twice).toMatchObject({ outcome: "same", operation: { occurrence: 2 } });
      expect(await rows(ctx.db)).toBe(2);
    },
  );

  test("a further occurrence of something else, or of what had no effect, is refused", async () => {
    const ctx = await openShop(database.db);
    const denied = await inState(ctx, "DENIED");
    const owner = await putRun(ctx.db);
    for (const [amount, of] of [
      [2000n, denied.id],
      [2500n, (await prepared(ctx, 3000n)).id],
      [2000n, "op_00000000000000000000000000000000" as const],
    ] as const) {
      const [call] = await prepare(ctx, { ...refund(owner, amount), further: { askedBy: "U_AGENT", of } });
      expect(call).toMatchObject({ outcome: "refused", code: "not_further" });
    }
  });
});

describe("one owner, many waiters", () => {
  test("a cancelled owner hands what was never sent to the oldest waiter, and what was sent goes on", async () => {
    const ctx = await openShop(database.db);
    const owner = await putRun(ctx.db);
    const [call, sentCall] = await prepare(ctx, refund(owner, 2000n), refund(owner, 1000n));
    if (call?.outcome !== "prepared" || sentCall?.outcome !== "prepared") throw new Error("not prepared");
    await claimed(ctx, sentCall.operation);
    const heir = await putRun(ctx.db);
    const later = await putRun(ctx.db);
    await prepare(ctx, refund(heir, 2000n));
    await prepare(ctx, refund(later, 2000n));
    await ctx.db.tx((tx) => ledger.abandon(tx, ctx, { runId: owner.runId, actor: `run:${owner.runId}` }));
    expect(await reread(ctx.db, call.operation)).toMatchObject({
      status: "PREPARED",
      ownerRunId: heir.runId,
      ticketId: heir.ticketId,
    });
    expect((await ledger.waitersOf(ctx.db, call.operation.id)).map(({ runId }) => runId)).toEqual([
      later.runId,
    ]);
    expect(await reread(ctx.db, sentCall.operation)).toMatchObject({ status: "DISPATCHED" });
    expect(await intact(ctx.db)).toEqual([]);
  });

  test("without a waiter, or with one whose run has ended, it is voided and the money released", async () => {
    const ctx = await openShop(database.db);
    const owner = await putRun(ctx.db);
    const [call] = await prepare(ctx, refund(owner, 2000n));
    if (call?.outcome !== "prepared") throw new Error("not prepared");
    const gone = await putRun(ctx.db);
    await prepare(ctx, refund(gone, 2000n));
    await ctx.db.sql(undefined, "UPDATE runs SET state = 'cancelled' WHERE id = $1", [gone.runId]);
    await ctx.db.tx((tx) => ledger.abandon(tx, ctx, { runId: owner.runId, actor: "slack:U_AGENT" }));
    expect(await reread(ctx.db, call.operation)).toMatchObject({
      status: "VOIDED",
      result: { code: "nobody_waits" },
    });
    expect(await moneyOf(ctx.db)).toMatchObject({ reserved: 0n, counted: 0n });
  });
});

describe("reservations", () => {
  test("fifty concurrent refunds with room for three end as exactly three", async () => {
    const ctx = await openShop(database.db);
    const calls = await Promise.all(
      Array.from({ length: 50 }, async (_, index) =>
        prepare(ctx, refund(await putRun(ctx.db), 3000n + BigInt(index))),
      ),
    );
    const outcomesOf = calls.flat().map(({ outcome }) => outcome);
    expect(outcomesOf.filter((outcome) => outcome === "prepared")).toHaveLength(3);
    expect(outcomesOf.filter((outcome) => outcome === "insufficient")).toHaveLength(47);
    expect(await intact(ctx.db)).toEqual([]);
  });

  test.each(["customer", "filer", "shop", "day"])(
    "fifty concurrent refunds on fifty orders with room for three under the total of the %s end as exactly three",
    async (per) => {
      const window = per === "day" ? "" : "windowHours: 24, ";
      const ctx = await openShop(database.db, {
        policy: OPEN_POLICY.replace(
          "totals: []",
          `totals: [{ per: ${per}, ${window}amount: { GBP: 9000 }, then: refuse }]`,
        ),
        content: fiftyOrders(),
      });
      const calls = await Promise.all(
        Array.from({ length: 50 }, async (_, index) => {
          const proposal = refund(await putRun(ctx.db), 3000n, { orderRef: `ORD-${index + 1}` });
          return prepare(ctx, {
            ...proposal,
            landing: { paymentIntent: `pi_${index + 1}`, providerSubscription: null },
          });
        }),
      );
      const outcomesOf = calls.flat().map(({ outcome }) => outcome);
      expect(outcomesOf.filter((outcome) => outcome === "prepared")).toHaveLength(3);
      expect(outcomesOf.filter((outcome) => outcome === "refused")).toHaveLength(47);
      expect(await intact(ctx.db)).toEqual([]);
    },
  );

  test("a hundred proposals of twenty keys at once make twenty operations, all others are those", async () => {
    const ctx = await openShop(database.db);
    const calls = await Promise.all(
      Array.from({ length: 100 }, async (_, index) =>
        prepare(ctx, refund(await putRun(ctx.db), 100n + BigInt(index % 20))),
      ),
    );
    const made = calls.flat().filter(({ outcome }) => outcome === "prepared");
    expect(made).toHaveLength(20);
    expect(calls.flat().filter(({ outcome }) => outcome === "same")).toHaveLength(80);
    expect(await rows(ctx.db)).toBe(20);
    expect(await intact(ctx.db)).toEqual([]);
  });

  test("a whole refund asked for twice at the same moment is one operation, never 'nothing left'", async () => {
    const ctx = await openShop(database.db);
    for (let round = 0; round < 20; round += 1) {
      await database.reset();
      await openShop(database.db);
      const calls = await Promise.all(
        Array.from({ length: 4 }, async () => prepare(ctx, refund(await putRun(ctx.db), 10_000n))),
      );
      expect(
        calls
          .flat()
          .map(({ outcome }) => outcome)
          .sort(),
      ).toEqual(["prepared", "same", "same", "same"]);
    }
  });

  test("two approved refunds that together exceed the payment: one is prepared, the other ends saying what is left (S-PAY-6)", async () => {
    const ctx = await openShop(database.db, { policy: HOLDING_POLICY });
    for (let round = 0; round < 20; round += 1) {
      await database.reset();
      await openShop(database.db, { policy: HOLDING_POLICY });
      const pair = [await held(ctx, 6000n), await held(ctx, 7000n)];
      const ended = await Promise.all(
        pair.map((operation) => release(ctx, [{ operation, approval: approval(true) }])),
      );
      const calls = ended.flat();
      expect(calls.map(({ outcome }) => outcome).sort()).toEqual(["ended", "prepared"]);
      const loser = calls.find(({ outcome }) => outcome === "ended");
      if (loser?.outcome !== "ended") throw new Error("nobody lost");
      expect(loser.operation.status).toBe("VOIDED");
      expect(loser.operation.result?.detail).toMatch(/Only £(40|30)\.00 GBP is left/);
      const { captured, reserved, refunded } = await moneyOf(ctx.db);
      expect(reserved + refunded).toBeLessThanOrEqual(captured);
      expect(await intact(ctx.db)).toEqual([]);
    }
  });

  test("are released by every end that never had an effect, and by nothing else", async () => {
    const ctx = await openShop(database.db);
    const keeps: Record<OperationStatus, boolean> = {
      AWAITING_APPROVAL: false,
      PREPARED: true,
      DISPATCHED: true,
      OUTCOME_UNKNOWN: true,
      RECONCILING: true,
      QUARANTINED: true,
      CONFIRMED: false,
      REJECTED: false,
      DENIED: false,
      EXPIRED: false,
      VOIDED: false,
      REVERSED: false,
    };
    for (const [status, reserved] of Object.entries(keeps) as [OperationStatus, boolean][]) {
      await database.reset();
      await openShop(database.db);
      await inState(ctx, status);
      const refunded = status === "CONFIRMED" ? 2000n : 0n;
      const counted = reserved || refunded > 0n ? 2000n : 0n;
      expect(await moneyOf(ctx.db), status).toMatchObject({
        reserved: reserved ? 2000n : 0n,
        refunded,
        counted,
      });
    }
  });
});

describe("a turn", () => {
  test("of which one call is held prepares nothing: the allowed ones have no row and reserve nothing", async () => {
    const ctx = await openShop(database.db, {
      policy: OPEN_POLICY.replace("auto: { GBP: 100000, USD: 100000 }", "auto: { GBP: 1500 }"),
    });
    const owner = await putRun(ctx.db);
    const armed: string[] = [];
    const proposals = [refund(owner, 500n), refund(owner, 4000n), refund(owner, 600n)];
    const calls = await ctx.db.tx((tx) =>
      ledger.prepareTurn(tx, ctx, {
        calls: proposals.map((proposal) => ({ callId: proposal.callId, proposal })),
        judge: makeJudge(),
        onHold: async (_tx, call) => {
          armed.push(call.callId);
        },
      }),
    );
    expect(calls.map(({ outcome }) => outcome)).toEqual(["ready", "held", "ready"]);
    expect(armed).toEqual([proposals[1]?.callId]);
    expect(await rows(ctx.db)).toBe(1);
    expect(await moneyOf(ctx.db)).toMatchObject({ reserved: 0n, counted: 0n });
    expect(await intact(ctx.db)).toEqual([]);
  });

  test("of which one is refused or too large prepares the others", async () => {
    const ctx = await openShop(database.db);
    const owner = await putRun(ctx.db);
    const calls = await prepare(
      ctx,
      refund(owner, 6000n),
      refund(owner, 6001n),
      refund(owner, 100n, { orderRef: "ORD-9" }),
      refund(owner, 4000n),
    );
    expect(calls.map(({ outcome }) => outcome)).toEqual(["prepared", "insufficient", "refused", "prepared"]);
    expect(calls[1]).toMatchObject({ leftMinor: 4000n, currency: "GBP" });
    expect(await moneyOf(ctx.db)).toMatchObject({ reserved: 10_000n });
  });

  test("that asks for the same thing twice is answered once, whatever the answer", async () => {
    const ctx = await openShop(database.db);
    const owner = await putRun(ctx.db);
    const twice = await prepare(ctx, refund(owner, 2000n), refund(owner, 2000n));
    expect(twice.map(({ outcome }) => outcome)).toEqual(["prepared", "same"]);
    const tooMuch = await prepare(ctx, refund(owner, 9000n), refund(owner, 9000n));
    expect(tooMuch.map(({ outcome }) => outcome)).toEqual(["insufficient", "insufficient"]);
    await usePolicy(ctx.db, HOLDING_POLICY);
    const heldTwice = await prepare(ctx, refund(owner, 3000n), refund(owner, 3000n));
    expect(heldTwice.map(({ outcome }) => outcome)).toEqual(["held", "same"]);
    expect(await rows(ctx.db)).toBe(2);
  });

  test("about another customer's order, or another payment, is refused and leaves no row", async () => {
    const ctx = await openShop(database.db);
    const owner = await putRun(ctx.db);
    const calls = await prepare(
      ctx,
      refund(owner, 100n, { customerRef: "CUS-2" }),
      { ...refund(owner, 200n), landing: { paymentIntent: "pi_2", providerSubscription: null } },
      refund(owner, 300n, { currency: "USD" }),
    );
    expect(calls).toMatchObject([
      { outcome: "refused", code: "other_customer" },
      { outcome: "refused", code: "world_changed" },
      { outcome: "refused", code: "world_changed" },
    ]);
    expect(await rows(ctx.db)).toBe(0);
  });

  test("is released as a whole: prepared with its approvers, its own reservations in place", async () => {
    const ctx = await openShop(database.db, { policy: HOLDING_POLICY });
    const pair = [await held(ctx, 6000n), await held(ctx, 4000n)];
    const calls = await release(
      ctx,
      pair.map((operation) => ({ operation, approval: approval(true) })),
    );
    expect(calls).toMatchObject([
      { outcome: "prepared", operation: { approvedBy: ["U_SUP1"], status: "PREPARED" } },
      { outcome: "prepared", operation: { approvedBy: ["U_SUP1"], status: "PREPARED" } },
    ]);
    expect(await moneyOf(ctx.db)).toMatchObject({ reserved: 10_000n, counted: 10_000n });
    const events = await ledger.eventsOf(ctx.db, (pair[0] as Operation).id);
    expect(events.at(-1)).toMatchObject({ type: "release", data: { approvedBy: ["slack:U_SUP1"] } });
  });

  test("with one drifted approval prepares nothing, and the drifted operation still waits", async () => {
    const ctx = await openShop(database.db, { policy: HOLDING_POLICY });
    const pair = [await held(ctx, 6000n), await held(ctx, 4000n)];
    const calls = await release(ctx, [
      { operation: pair[0] as Operation, approval: approval(true) },
      { operation: pair[1] as Operation, approval: approval(false) },
    ]);
    expect(calls.map(({ outcome }) => outcome)).toEqual(["ready", "drifted"]);
    for (const operation of pair) expect(await reread(ctx.db, operation)).toEqual(operation);
    expect(await moneyOf(ctx.db)).toMatchObject({ reserved: 0n, counted: 0n });
  });

  test("with an undecided sibling judges nothing; an ended one does not block", async () => {
    const ctx = await openShop(database.db, { policy: HOLDING_POLICY });
    const [a, b, c] = [await held(ctx, 100n), await held(ctx, 200n), await held(ctx, 300n)];
    const waiting = await release(ctx, [
      { operation: a, approval: approval(true) },
      { operation: b, approval: null },
    ]);
    expect(waiting.map(({ outcome }) => outcome)).toEqual(["ready", "held"]);
    await ctx.db.tx((tx) =>
      ledger.deny(tx, ctx, { operationId: b.id, actor: "slack:U_SUP1", code: "denied", detail: "no" }),
    );
    const calls = await release(ctx, [
      { operation: a, approval: approval(true) },
      { operation: b, approval: null },
      { operation: c, approval: approval(true) },
    ]);
    expect(calls.map(({ outcome }) => outcome)).toEqual(["prepared", "ended", "prepared"]);
  });

  test("whose ready sibling is held now is held again, and nothing is prepared", async () => {
    const ctx = await openShop(database.db, { policy: HOLDING_POLICY });
    const operation = await held(ctx, 100n);
    const calls = await release(
      ctx,
      [{ operation, approval: approval(true) }],
      [refund(await putRun(ctx.db), 900n)],
    );
    expect(calls.map(({ outcome }) => outcome)).toEqual(["ready", "held"]);
    expect(await moneyOf(ctx.db)).toMatchObject({ reserved: 0n });
  });

  test("rolled back by its caller leaves nothing", async () => {
    const ctx = await openShop(database.db);
    const proposal = refund(await putRun(ctx.db), 2000n);
    await expect(
      ctx.db.tx(async (tx) => {
        await ledger.prepareTurn(tx, ctx, {
          calls: [{ callId: proposal.callId, proposal }],
          judge: makeJudge(),
          onHold: async () => {},
        });
        throw new Error("the caller gives up");
      }),
    ).rejects.toThrow("gives up");
    expect(await rows(ctx.db)).toBe(0);
    expect(await moneyOf(ctx.db)).toMatchObject({ reserved: 0n, counted: 0n });
  });

  test("is not decided by a judge that forgets what must be held", async () => {
    const ctx = await openShop(database.db);
    const judge = makeJudge();
    const careless = {
      ...judge,
      judge: async (...args: Parameters<typeof judge.judge>) => ({
        ...(await judge.judge(...args)),
        answer: "allow" as const,
      }),
    };
    const proposal = { ...refund(await putRun(ctx.db), 2000n), bindingConfirmed: false };
    const tried = ctx.db.tx((tx) =>
      ledger.prepareTurn(tx, ctx, {
        calls: [{ callId: proposal.callId, proposal }],
        judge: careless,
        onHold: async () => {},
      }),
    );
    await expect(tried).rejects.toMatchObject({ code: "judge_must_hold" });
  });
});

function fiftyOrders(): object {
  const numbers = Array.from({ length: 50 }, (_, index) => index + 1);
  const one = oneOrder();
  return {
    ...one,
    orders: numbers.map((n) => ({
      ...one.orders[0],
      ref: `ORD-${n}`,
      items: [{ ref: `ORD-${n}-1`, sku: "S", name: "Thing", quantity: 2, unitAmount: 5000 }],
      payment: { paymentIntent: `pi_${n}`, captured: 10000 },
    })),
  };
}
