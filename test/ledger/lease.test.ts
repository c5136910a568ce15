/** Leases, fencing, the last question before the socket, the freeze, and reconcilers side by side. */
import { describe, expect, test } from "vitest";
import type { Operation } from "../../src/domain/operation.js";
import * as ledger from "../../src/ledger/index.js";
import { withDatabase } from "../support/database.js";
import { effectFor, type LedgerWorld, OPEN_POLICY, putRun, refund } from "../support/ledger-world.js";
import { barrier, deferred, waitFor } from "../support/wait.js";
import {
  claimed,
  decide,
  inState,
  intact,
  moneyOf,
  openShop,
  outcomes,
  passTime,
  prepare,
  prepared,
  REQUEST,
  reread,
  settle,
  taken,
} from "./scene.js";

const database = withDatabase({ poolSize: 20 });
const DAY_MS = 86_400_000;

const lease = (claim: { operation: Operation; leaseToken: bigint }): ledger.LeaseRef => ({
  operationId: claim.operation.id,
  leaseToken: claim.leaseToken,
});

describe("a claim", () => {
  test("of one operation by ten workers on ten connections is given once, with one attempt", async () => {
    const ctx = await openShop(database.db);
    for (let round = 0; round < 10; round += 1) {
      const operation = await prepared(ctx, 100n + BigInt(round));
      const ready = barrier(10);
      const claims = await Promise.all(
        Array.from({ length: 10 }, async (_, index) => {
          await ready();
          return ledger.claim(ctx, { operation, worker: `w${index}`, request: REQUEST });
        }),
      );
      expect(claims.filter(({ claimed: won }) => won)).toHaveLength(1);
      for (const lost of claims) if (!lost.claimed) expect(lost).toMatchObject({ why: "moved" });
      expect(await ledger.attemptsOf(ctx.db, operation.id)).toHaveLength(1);
    }
    expect(await intact(ctx.db)).toEqual([]);
  });

  test("stores the request with the first attempt, and every later one sends that", async () => {
    const ctx = await openShop(database.db);
    const first = await claimed(ctx, await prepared(ctx));
    const back = await settle(ctx, first, outcomes.notExecuted());
    await passTime(ctx.db, 1_000);
    const second = await ledger.claim(ctx, {
      operation: await reread(ctx.db, back.operation),
      worker: "w2",
      request: { ...REQUEST, params: { payment_intent: "pi_1", amount: 2000, reason: "rendered anew" } },
    });
    expect(second).toMatchObject({ claimed: true, attempt: 2, request: REQUEST });
  });

  test("waits out the cooling-off, and says until when", async () => {
    const ctx = await openShop(database.db, {
      policy: OPEN_POLICY.replace(
        "coolingOffMinutes: {}",
        "coolingOffMinutes: { GBP: { above: 1000, minutes: 10 } }",
      ),
    });
    const operation = await prepared(ctx);
    const early = await ledger.claim(ctx, { operation, worker: "w1", request: REQUEST });
    expect(early).toMatchObject({ claimed: false, why: "not_yet", until: operation.notBefore });
    await passTime(ctx.db, 10 * 60_000);
    expect((await claimed(ctx, operation)).attempt).toBe(1);
  });

  test("whose guard says no changes nothing; the guard is asked before the row is locked", async () => {
    const ctx = await openShop(database.db);
    const operation = await prepared(ctx);
    const lost = await ledger.claim(ctx, {
      operation,
      worker: "w1",
      request: REQUEST,
      guard: async (tx) => {
        const other = await database.db.sql(
          undefined,
          "SELECT id FROM operations WHERE id = $1 FOR UPDATE NOWAIT",
          [operation.id],
        );
        expect(other).toHaveLength(1);
        expect(tx.kind).toBe("tx");
        return { ok: false, detail: "drift" };
      },
    });
    expect(lost).toMatchObject({ claimed: false, why: "guard", detail: "drift" });
    expect(await reread(ctx.db, operation)).toEqual(operation);
  });
});

describe("the last question before the socket", () => {
  test("is answered yes while the lease holds, and no once it is over, taken or settled", async () => {
    const ctx = await openShop(database.db);
    const claim = await claimed(ctx, await prepared(ctx), { leaseMs: 5_000 });
    expect(await ledger.checkSend(ctx, lease(claim))).toEqual({ ok: true });
    await passTime(ctx.db, 5_000);
    expect(await ledger.checkSend(ctx, lease(claim))).toEqual({ ok: false, code: "lease_lost" });
    await taken(ctx, claim.operation);
    expect(await ledger.checkSend(ctx, lease(claim))).toEqual({ ok: false, code: "lease_lost" });
  });

  test("is answered no when the key's life ends during the request, though the lease holds", async () => {
    const ctx = await openShop(database.db);
    const first = await claimed(ctx, await prepared(ctx));
    const back = await settle(ctx, first, outcomes.notExecuted());
    await passTime(ctx.db, DAY_MS - 10_000);
    const second = await claimed(ctx, await reread(ctx.db, back.operation), { leaseMs: 60_000 });
    expect(await ledger.checkSend(ctx, lease(second))).toEqual({ ok: true });
    await passTime(ctx.db, 9_000);
    expect(await ledger.checkSend(ctx, lease(second))).toEqual({ ok: false, code: "key_expiring" });
  });

  test("is answered no while frozen", async () => {
    const ctx = await openShop(database.db);
    const claim = await claimed(ctx, await prepared(ctx));
    await ledger.freeze(ctx, { kind: "all", by: "U_ONC1", reason: "looking" });
    expect(await ledger.checkSend(ctx, lease(claim))).toEqual({ ok: false, code: "frozen" });
  });
});

describe("a key past its life", () => {
  test("is never claimed and never sent again, and the operation may be voided", async () => {
    const ctx = await openShop(database.db);
    const first = await claimed(ctx, await prepared(ctx));
    const back = await settle(ctx, first, outcomes.notExecuted());
    await passTime(ctx.db, DAY_MS);
    const late = await ledger.claim(ctx, {
      operation: await reread(ctx.db, back.operation),
      worker: "w1",
      request: REQUEST,
    });
    expect(late).toMatchObject({ claimed: false, why: "key_expired" });
    const ended = await ctx.db.tx((tx) =>
      ledger.voidOperation(tx, ctx, {
        operationId: back.operation.id,
        actor: "system:dispatch",
        code: "key_expired",
        detail: "Not sent.",
      }),
    );
    expect(ended.moved).toBe(true);
  });

  test("refuses a reconciler's resend as well", async () => {
    const ctx = await openShop(database.db);
    const operation = await inState(ctx, "OUTCOME_UNKNOWN");
    await passTime(ctx.db, DAY_MS);
    const take = await taken(ctx, operation);
    const again = await ledger.resend(ctx, { ...lease(take), worker: "w2", evidence: { says: "absent" } });
    expect(again).toMatchObject({ claimed: false, why: "key_expired" });
    expect(await reread(ctx.db, operation)).toMatchObject({ status: "RECONCILING", attempts: 1 });
  });
});

describe("a heartbeat", () => {
  test("prolongs a lease that holds, and never revives one that is over or taken", async () => {
    const ctx = await openShop(database.db);
    const claim = await claimed(ctx, await prepared(ctx), { leaseMs: 5_000 });
    await passTime(ctx.db, 4_000);
    expect(await ledger.renewLease(ctx, { ...lease(claim), leaseMs: 5_000 })).toBe(true);
    await passTime(ctx.db, 4_000);
    expect(await ledger.checkSend(ctx, lease(claim))).toEqual({ ok: true });
    await passTime(ctx.db, 1_000);
    expect(await ledger.renewLease(ctx, { ...lease(claim), leaseMs: 5_000 })).toBe(false);
    const take = await taken(ctx, claim.operation);
    expect(await ledger.renewLease(ctx, lease(claim))).toBe(false);
    expect(await ledger.renewLease(ctx, lease(take))).toBe(true);
  });
});

describe("a worker that does not come back", () => {
  test("leaves an unknown outcome: its expired lease sends nothing by itself", async () => {
    const ctx = await openShop(database.db);
    const claim = await claimed(ctx, await prepared(ctx), { leaseMs: 1_000 });
    expect(await ledger.takeDue(ctx, { worker: "r1", limit: 10 })).toEqual([]);
    await passTime(ctx.db, 1_000);
    const [take] = await ledger.takeDue(ctx, { worker: "r1", limit: 10 });
    expect(take).toMatchObject({
      operation: { id: claim.operation.id, status: "RECONCILING", attempts: 1 },
      attempts: [{ number: 1, verdict: "open" }],
    });
    expect(take?.leaseToken).toBeGreaterThan(claim.leaseToken);
    expect(take?.lastSendEndedAt?.getTime()).toBe(claim.leaseUntil.getTime() + ctx.timing.providerTimeoutMs);
    const types = (await ledger.eventsOf(ctx.db, claim.operation.id)).map(({ type }) => type);
    expect(types).toEqual(["prepare", "claim", "settle_unknown", "reconcile"]);
    expect(await moneyOf(ctx.db)).toMatchObject({ reserved: 2000n });
  });

  test("as a reconciler is succeeded by another when its lease is over, and is fenced then", async () => {
    const ctx = await openShop(database.db);
    const first = await taken(ctx, await inState(ctx, "OUTCOME_UNKNOWN"));
    expect(await ledger.takeDue(ctx, { worker: "r2", limit: 10 })).toEqual([]);
    await passTime(ctx.db, ctx.timing.leaseMs);
    const [second] = await ledger.takeDue(ctx, { worker: "r2", limit: 10 });
    if (second === undefined) throw new Error("nobody succeeded it");
    const effect = effectFor(first.operation);
    expect(await decide(ctx, first, { do: "reject", code: "x", detail: "x" })).toMatchObject({
      settled: false,
      why: "fenced",
    });
    expect(
      await ledger.resend(ctx, { ...lease(first), worker: "r1", evidence: { says: "absent" } }),
    ).toMatchObject({
      claimed: false,
      why: "moved",
    });
    expect(await decide(ctx, second, { do: "confirm", effect })).toMatchObject({
      settled: true,
      operation: { status: "CONFIRMED" },
    });
    expect(await intact(ctx.db)).toEqual([]);
  });
});

describe("many reconcilers", () => {
  test("share what is due: each row is taken by one of them, and all rows are taken", async () => {
    const ctx = await openShop(database.db);
    for (let index = 0; index < 40; index += 1) {
      const claim = await claimed(ctx, await prepared(ctx, 100n + BigInt(index)));
      await settle(ctx, claim, outcomes.unknown());
    }
    await passTime(ctx.db, 1_000);
    const worlds = Array.from({ length: 6 }, (_, index) => ({
      ...ctx,
      db: database.openAnother(`reconciler-${index}`),
    }));
    const ready = barrier(worlds.length);
    const takes = await Promise.all(
      worlds.map(async (world, index) => {
        await ready();
        const mine: string[] = [];
        for (;;) {
          const batch = await ledger.takeDue(world, { worker: `r${index}`, limit: 3 });
          if (batch.length === 0) return mine;
          mine.push(...batch.map(({ operation }) => operation.id));
        }
      }),
    );
    // An empty batch may only mean that the rest is locked by others at that moment.
    const rest = await ledger.takeDue(ctx, { worker: "last", limit: 100 });
    const all = [...takes.flat(), ...rest.map(({ operation }) => operation.id)];
    expect(new Set(all).size).toBe(40);
    expect(all).toHaveLength(40);
    expect(await intact(ctx.db)).toEqual([]);
  });

  test("are not starved: what is due longest comes first, and a row that is looked at goes to the end", async () => {
    const ctx = await openShop(database.db, { timing: { reconcileBaseMs: 60_000, reconcileMaxMs: 60_000 } });
    const waiting: Operation[] = [];
    for (let index = 0; index < 5; index += 1) {
      const claim = await claimed(ctx, await prepared(ctx, 100n + BigInt(index)));
      waiting.push((await settle(ctx, claim, outcomes.unknown())).operation);
    }
    await passTime(ctx.db, 120_000);
    const seen: string[] = [];
    for (let round = 0; round < 5; round += 1) {
      const [take] = await ledger.takeDue(ctx, { worker: "r1", limit: 1 });
      if (take === undefined) break;
      seen.push(take.operation.id);
      await decide(ctx, take, { do: "later", why: "nothing is listed" });
    }
    expect(seen.sort()).toEqual(waiting.map(({ id }) => id).sort());
  });

  test("wait longer with every look, with jitter and a cap", async () => {
    const ctx = await openShop(database.db, { timing: { reconcileBaseMs: 1_000, reconcileMaxMs: 6_000 } });
    const operation = await inState(ctx, "OUTCOME_UNKNOWN");
    const waits: number[] = [];
    for (let look = 0; look < 6; look += 1) {
      await decide(ctx, await taken(ctx, operation), { do: "later", why: "nothing is listed" });
      const [row] = await ctx.db.sql<{ ms: string }>(
        undefined,
        "SELECT round(extract(epoch FROM due_at - updated_at) * 1000)::text AS ms FROM operations",
      );
      waits.push(Number(row?.ms));
    }
    const caps = [1_000, 2_000, 4_000, 6_000, 6_000, 6_000];
    waits.forEach((ms, look) => {
      expect(ms).toBeLessThanOrEqual(caps[look] ?? 0);
      expect(ms).toBeGreaterThanOrEqual((caps[look] ?? 0) / 2);
    });
  });
});

describe("a freeze", () => {
  test("that was acknowledged lets nothing be claimed or sent again, whatever began at the same moment", async () => {
    const ctx = await openShop(database.db);
    for (let round = 0; round < 15; round += 1) {
      await database.reset();
      await openShop(database.db);
      const operations: Operation[] = [];
      for (let index = 0; index < 6; index += 1) operations.push(await prepared(ctx, 100n + BigInt(index)));
      const open = await inState(ctx, "OUTCOME_UNKNOWN");
      const take = await taken(ctx, open);
      const ready = barrier(8);
      let acknowledged = false;
      const late: string[] = [];
      const sending = [
        ...operations.map(
          (operation) => async () => ledger.claim(ctx, { operation, worker: "w", request: REQUEST }),
        ),
        async () => ledger.resend(ctx, { ...lease(take), worker: "w", evidence: { says: "absent" } }),
      ].map(async (send) => {
        await ready();
        const startedAfter = acknowledged;
        const result = await send();
        if (startedAfter && result.claimed) late.push(result.operation.id);
      });
      const freezing = (async () => {
        await ready();
        await ledger.freeze({ ...ctx, db: database.db }, { kind: "refund", by: "U_ONC1", reason: "stop" });
        acknowledged = true;
        const attempts = await ctx.db.sql<{ n: bigint }>(undefined, "SELECT count(*) AS n FROM attempts");
        return attempts[0]?.n;
      })();
      const atAcknowledgement = await freezing;
      await Promise.all(sending);
      const after = await ctx.db.sql<{ n: bigint }>(undefined, "SELECT count(*) AS n FROM attempts");
      expect(after[0]?.n).toBe(atAcknowledgement);
      expect(late).toEqual([]);
    }
  });

  test("waits for a claim that began before it", async () => {
    const ctx = await openShop(database.db);
    const operation = await prepared(ctx);
    const claimedInside = deferred<void>();
    const commit = deferred<void>();
    const claiming = database.openAnother("claiming").tx(async (tx) => {
      const claim = await ledger.claimIn(tx, ctx, { operation, worker: "w", request: REQUEST });
      claimedInside.resolve();
      await commit.promise;
      return claim;
    });
    await claimedInside.promise;
    let acknowledged = false;
    const freezing = ledger.freeze(ctx, { kind: "all", by: "U_ONC1", reason: "stop" }).then(() => {
      acknowledged = true;
    });
    await waitFor(async () => {
      const rows = await database.db.sql(
        undefined,
        "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'",
      );
      return rows.length > 0;
    });
    expect(acknowledged).toBe(false);
    commit.resolve();
    expect((await claiming).claimed).toBe(true);
    await freezing;
    expect(
      await ledger.claim(ctx, { operation: await prepared(ctx, 500n), worker: "w", request: REQUEST }),
    ).toMatchObject({
      claimed: false,
      why: "frozen",
    });
  });

  test("of one kind lets the others go on; probes and settling go on in any case; a thaw lets everything go on", async () => {
    const ctx = await openShop(database.db);
    const claim = await claimed(ctx, await prepared(ctx));
    await ledger.freeze(ctx, { kind: "cancel_order", by: "U_ONC1", reason: "stop" });
    const free = await claimed(ctx, await prepared(ctx, 300n));
    await ledger.freeze(ctx, { kind: "refund", by: "U_ONC1", reason: "stop" });
    expect(await ledger.freeze(ctx, { kind: "refund", by: "U_ONC2", reason: "again" })).toMatchObject({
      already: true,
      state: { by: "U_ONC1" },
    });
    expect(await settle(ctx, claim, outcomes.committed(claim.operation))).toMatchObject({ settled: true });
    const unknown = await settle(ctx, free, outcomes.unknown());
    const take = await taken(ctx, unknown.operation);
    expect(
      await ledger.resend(ctx, { ...lease(take), worker: "w", evidence: { says: "absent" } }),
    ).toMatchObject({ why: "frozen" });
    await decide(ctx, take, { do: "later", why: "frozen" });
    const waiting = await prepared(ctx, 400n);
    expect(await ledger.claim(ctx, { operation: waiting, worker: "w", request: REQUEST })).toMatchObject({
      why: "frozen",
    });
    expect(await ledger.askThaw(ctx, { kind: "refund", by: "U_ONC1", withinMs: 60_000 })).toMatchObject({
      kept: null,
      state: { thawAskedBy: "U_ONC1" },
    });
    expect(await ledger.thaw(ctx, { kind: "refund", by: "U_ONC2" })).toMatchObject({ changed: true });
    expect(await ledger.thaw(ctx, { kind: "refund", by: "U_ONC2" })).toMatchObject({ changed: false });
    expect((await claimed(ctx, waiting)).attempt).toBe(1);
    expect(await intact(ctx.db)).toEqual([]);
  });
});

describe("a local effect", () => {
  const cancel = async (ctx: LedgerWorld): Promise<Operation> => {
    const [call] = await prepare(ctx, {
      ...refund(await putRun(ctx.db), 0n, { kind: "cancel_order", amountMinor: 0n }),
      landing: { paymentIntent: null, providerSubscription: null },
      refundScope: null,
    });
    if (call?.outcome !== "prepared") throw new Error(`not prepared but ${call?.outcome}`);
    return call.operation;
  };
  const shop = (): Promise<LedgerWorld> =>
    openShop(database.db, {
      content: {
        customers: [{ ref: "CUS-1", name: "Alice", email: "alice@shop.example" }],
        orders: [
          {
            ref: "ORD-1",
            customer: "CUS-1",
            status: "packed",
            currency: "GBP",
            placedAt: "2026-11-02T09:00:00Z",
            items: [{ ref: "ORD-1-1", sku: "S", name: "Thing", quantity: 1, unitAmount: 5000 }],
            payment: { paymentIntent: "pi_1", captured: 5000 },
          },
        ],
      },
    });
  const statusOf = async (ctx: LedgerWorld): Promise<string | undefined> =>
    (await ctx.db.sql<{ status: string }>(undefined, "SELECT status FROM orders"))[0]?.status;
  const setStatus = (status: string) => async (tx: Parameters<ledger.LocalRequest["effect"]>[0]) => {
    await tx.sql(undefined, "UPDATE orders SET status = $1", [status]);
  };

  test("and its operation happen together or not at all", async () => {
    const ctx = await shop();
    const operation = await cancel(ctx);
    await expect(
      ledger.executeLocal(ctx, {
        operation,
        worker: "w",
        effect: async (tx) => {
          await setStatus("cancelled")(tx);
          throw new Error("the process dies here");
        },
      }),
    ).rejects.toThrow("dies here");
    expect(await statusOf(ctx)).toBe("packed");
    expect(await reread(ctx.db, operation)).toEqual(operation);

    const done = await ledger.executeLocal(ctx, {
      operation,
      worker: "w",
      effect: async (tx) => {
        await setStatus("cancelled")(tx);
        return { ok: true, ref: "ORD-1" };
      },
    });
    expect(done).toMatchObject({ done: true, operation: { status: "CONFIRMED", providerRef: "ORD-1" } });
    expect(await statusOf(ctx)).toBe("cancelled");
    expect(await intact(ctx.db)).toEqual([]);
  });

  test("that answers no leaves nothing of what it wrote", async () => {
    const ctx = await shop();
    const operation = await cancel(ctx);
    const done = await ledger.executeLocal(ctx, {
      operation,
      worker: "w",
      effect: async (tx) => {
        await setStatus("cancelled")(tx);
        return { ok: false, code: "dispatched", detail: "It has left." };
      },
    });
    expect(done).toMatchObject({
      done: true,
      operation: { status: "REJECTED", result: { code: "dispatched" } },
    });
    expect(await statusOf(ctx)).toBe("packed");
  });

  test("is carried out once by ten workers, and not at all while frozen", async () => {
    const ctx = await shop();
    const operation = await cancel(ctx);
    await ledger.freeze(ctx, { kind: "cancel_order", by: "U_ONC1", reason: "stop" });
    let ran = 0;
    const run = (): Promise<ledger.LocalOutcome> =>
      ledger.executeLocal(ctx, {
        operation,
        worker: "w",
        effect: async () => {
          ran += 1;
          return { ok: true, ref: "ORD-1" };
        },
      });
    expect(await run()).toMatchObject({ done: false, lost: { why: "frozen" } });
    await ledger.thaw(ctx, { kind: "cancel_order", by: "U_ONC2" });
    const results = await Promise.all(Array.from({ length: 10 }, run));
    expect(results.filter(({ done }) => done)).toHaveLength(1);
    expect(ran).toBe(1);
  });
});
