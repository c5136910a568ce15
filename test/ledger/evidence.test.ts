/** Facts once, incidents once, money that moved without us, and ends that are taken back. */
import { describe, expect, test } from "vitest";
import type { Db } from "../../src/db/connect.js";
import type { ProviderEffect } from "../../src/domain/evidence.js";
import { judgeListing } from "../../src/domain/judge-listing.js";
import type { Move } from "../../src/domain/recovery.js";
import * as ledger from "../../src/ledger/index.js";
import { withDatabase } from "../support/database.js";
import { effectFor, foreignRefund, putRun, refund } from "../support/ledger-world.js";
import { deferred, waitFor } from "../support/wait.js";
import {
  claimed,
  decide,
  evidenceOf,
  inState,
  intact,
  moneyOf,
  openShop,
  outcomes,
  passTime,
  prepare,
  prepared,
  reread,
  settle,
  taken,
} from "./scene.js";

const database = withDatabase({ poolSize: 25 });

describe("evidence", () => {
  test("that twenty webhooks and the response bring in the same moment is one row, and nobody fails (S-DB-1)", async () => {
    const ctx = await openShop(database.db);
    const claim = await claimed(ctx, await prepared(ctx));
    const effect = effectFor(claim.operation);
    const fact: ledger.NewEvidence = {
      operationId: claim.operation.id,
      source: "webhook",
      providerRef: effect.ref,
      dedupeKey: `effect:${effect.ref}:${effect.status}:${effect.amountMinor}`,
      payload: { ref: effect.ref },
    };
    const [settled, ...hooks] = await Promise.all([
      settle(ctx, claim, outcomes.committed(claim.operation)),
      ...Array.from({ length: 20 }, () => ctx.db.tx((tx) => ledger.recordEvidence(tx, ctx, fact))),
    ]);
    expect(settled.settled).toBe(true);
    expect(new Set(hooks.map(({ id }) => id)).size).toBe(1);
    expect(await ledger.evidenceOf(ctx.db, claim.operation.id)).toHaveLength(1);
    expect(await moneyOf(ctx.db)).toMatchObject({ reserved: 0n, refunded: 2000n });
    expect(await intact(ctx.db)).toEqual([]);
  });

  test("about an open outcome makes it due at once; what was known changes nothing", async () => {
    const ctx = await openShop(database.db, {
      timing: { reconcileBaseMs: 3_600_000, reconcileMaxMs: 3_600_000 },
    });
    const operation = await inState(ctx, "OUTCOME_UNKNOWN");
    expect(await ledger.dueOperations(ctx.db, { limit: 5 })).toEqual([]);
    const record = () =>
      ctx.db.tx((tx) => ledger.recordEvidence(tx, ctx, evidenceOf(operation, "succeeded")));
    expect(await record()).toMatchObject({ first: true });
    expect(await ledger.dueOperations(ctx.db, { limit: 5 })).toMatchObject([{ id: operation.id }]);
    await decide(ctx, await taken(ctx, operation), { do: "later", why: "still nothing" });
    expect(await record()).toMatchObject({ first: false });
    expect(await ledger.dueOperations(ctx.db, { limit: 5 })).toEqual([]);
  });

  test.each<[string, Exclude<Move, { do: "send_again" }>]>([
    ["later", { do: "later", why: "nothing is listed" }],
    ["to a person", { do: "quarantine", reason: "unknown_too_long", detail: "nothing is listed" }],
    ["as rejected", { do: "reject", code: "charge_disputed", detail: "refused" }],
    ["as never executed", { do: "prepare_again", why: "no attempt was executed" }],
  ])(
    "that comes while a reconciler holds the operation is looked at, not put off %s",
    async (_where, move) => {
      const ctx = await openShop(database.db, {
        timing: { reconcileBaseMs: 3_600_000, reconcileMaxMs: 3_600_000 },
      });
      const take = await taken(ctx, await inState(ctx, "OUTCOME_UNKNOWN"));
      await ctx.db.tx((tx) => ledger.recordEvidence(tx, ctx, evidenceOf(take.operation, "succeeded")));
      expect(await decide(ctx, take, move)).toMatchObject({
        settled: true,
        operation: { status: "OUTCOME_UNKNOWN" },
      });
      expect(await moneyOf(ctx.db)).toMatchObject({ reserved: 2000n, refunded: 0n });
      const due = { operationId: take.operation.id, worker: "r2", because: "due" } as const;
      const again = await ledger.takeForReconcile(ctx, due);
      if (again === null) throw new Error("nobody looks at the news");
      const { status } = (await decide(ctx, again, move)).operation ?? { status: null };
      expect(status, "what is no news any more is decided").not.toBe("RECONCILING");
      expect(await ledger.takeForReconcile(ctx, due)).toBeNull();
      expect(await intact(ctx.db)).toEqual([]);
    },
  );

  test("whose time lies ahead, for the clock stepped back or by hand, is no news for ever: it is put off and parked all the same", async () => {
    const ctx = await openShop(database.db, {
      timing: { reconcileBaseMs: 3_600_000, reconcileMaxMs: 3_600_000 },
    });
    const operation = await inState(ctx, "OUTCOME_UNKNOWN");
    await ctx.db.tx((tx) => ledger.recordEvidence(tx, ctx, evidenceOf(operation, "succeeded")));
    await ctx.db.sql(undefined, "UPDATE provider_evidence SET at = countersign_now() + interval '1 year'");
    const due = { operationId: operation.id, worker: "r2", because: "due" } as const;
    await decide(ctx, await taken(ctx, operation), { do: "later", why: "nothing is listed" });
    expect(await ledger.takeForReconcile(ctx, due), "put off").toBeNull();
    const parking = { do: "quarantine", reason: "unknown_too_long", detail: "nothing is listed" } as const;
    expect(await decide(ctx, await taken(ctx, operation), parking)).toMatchObject({
      operation: { status: "QUARANTINED" },
    });
    expect(await ledger.takeForReconcile(ctx, due), "with a person").toBeNull();
    expect(await intact(ctx.db)).toEqual([]);
  });

  test("that comes between a reading and sending again stops the sending", async () => {
    const ctx = await openShop(database.db);
    const take = await taken(ctx, await inState(ctx, "OUTCOME_UNKNOWN"));
    await ctx.db.tx((tx) => ledger.recordEvidence(tx, ctx, evidenceOf(take.operation, "succeeded")));
    const { leaseToken } = take;
    const absent = { says: "absent" } as const;
    const resend = (token: bigint): Promise<ledger.ClaimResult> =>
      ledger.resend(ctx, {
        operationId: take.operation.id,
        leaseToken: token,
        worker: "r1",
        evidence: absent,
      });
    expect(await resend(leaseToken)).toMatchObject({ claimed: false, why: "news" });
    await decide(ctx, take, { do: "later", why: "news" });
    expect(await resend((await taken(ctx, take.operation)).leaseToken)).toMatchObject({ claimed: true });
    expect(await intact(ctx.db)).toEqual([]);
  });

  test("that is being written while a reconciler parks the operation is not lost", async () => {
    const ctx = await openShop(database.db);
    const take = await taken(ctx, await inState(ctx, "OUTCOME_UNKNOWN"));
    const written = deferred<void>();
    const commit = deferred<void>();
    const hook = ctx.db.tx(async (tx) => {
      await ledger.recordEvidence(tx, ctx, evidenceOf(take.operation, "succeeded"));
      written.resolve();
      await commit.promise;
    });
    await written.promise;
    const parked = decide(ctx, take, { do: "quarantine", reason: "unknown_too_long", detail: "nothing" });
    await waitFor(async () => {
      const waiting = await ctx.db.sql(
        undefined,
        "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'",
      );
      return waiting.length > 0;
    });
    commit.resolve();
    await hook;
    expect(await parked).toMatchObject({ operation: { status: "OUTCOME_UNKNOWN" } });
    const due = { operationId: take.operation.id, worker: "r2", because: "due" } as const;
    expect(await ledger.takeForReconcile(ctx, due)).not.toBeNull();
  });
});

describe("an incident", () => {
  test("found by ten sweeps at once is one incident with one card", async () => {
    const ctx = await openShop(database.db);
    const found: ledger.NewIncident = {
      kind: "orphan_effect",
      dedupeKey: "orphan:re_x",
      operationId: null,
      paymentId: null,
      detail: { ref: "re_x" },
    };
    const results = await Promise.all(
      Array.from({ length: 10 }, () => ctx.db.tx((tx) => ledger.openIncident(tx, ctx, found))),
    );
    expect(results.filter(({ first }) => first)).toHaveLength(1);
    expect(ctx.notes.filter((note) => note === "touch incident")).toHaveLength(1);
    const [{ id } = { id: "" }] = results;
    expect(await ledger.getIncident(ctx.db, id)).toMatchObject({ ...found, status: "open" });
    const close = () =>
      ctx.db.tx((tx) => ledger.closeIncident(tx, ctx, { id, by: "U_ONC1", reason: "understood" }));
    expect(await close()).toBe(true);
    expect(await close()).toBe(false);
    expect((await ledger.listIncidents(ctx.db, {})).rows).toEqual([]);
    expect(await ledger.countIncidents(ctx.db, { kind: "orphan_effect", windowMs: 60_000 })).toBe(1);
  });
});

/** A session of this database waits for a lock. */
const anyoneWaits = async (db: Db): Promise<boolean> =>
  (
    await db.sql(
      undefined,
      "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'",
    )
  ).length > 0;

describe("refunds made elsewhere", () => {
  test("are recorded with an incident, leave less to refund, and stop a second try before it is sent (S-PAY-5)", async () => {
    const ctx = await openShop(database.db);
    expect(
      await ledger.recordElsewhere(ctx, { paymentIntent: "pi_1", listed: [foreignRefund(9000n, "re_h")] }),
    ).toMatchObject({ changed: true, overdrawn: false });
    expect(
      await ledger.recordElsewhere(ctx, { paymentIntent: "pi_1", listed: [foreignRefund(9000n, "re_h")] }),
    ).toMatchObject({ changed: false, overdrawn: false });
    const [call] = await prepare(ctx, refund(await putRun(ctx.db), 2000n));
    expect(call).toMatchObject({ outcome: "insufficient", leftMinor: 1000n });
    expect((await ledger.listIncidents(ctx.db, {})).rows).toMatchObject([{ kind: "refunded_elsewhere" }]);
    expect(await ledger.recordElsewhere(ctx, { paymentIntent: "pi_?", listed: [] })).toMatchObject({
      changed: false,
      overdrawn: false,
    });
  });

  test("that break the plan are recorded all the same, as an incident", async () => {
    const ctx = await openShop(database.db);
    await claimed(ctx, await prepared(ctx, 8000n));
    expect(
      await ledger.recordElsewhere(ctx, { paymentIntent: "pi_1", listed: [foreignRefund(5000n, "re_h")] }),
    ).toMatchObject({ changed: true, overdrawn: true });
    expect(await moneyOf(ctx.db)).toMatchObject({ reserved: 8000n, elsewhere: 5000n });
    expect((await ledger.listIncidents(ctx.db, {})).rows).toMatchObject([{ kind: "overdrawn" }]);
    expect(await intact(ctx.db)).toEqual([]);
  });

  test("do not overdraw a payment of which the rest is only set aside, for that is stopped before it leaves", async () => {
    const ctx = await openShop(database.db);
    await prepared(ctx, 8000n);
    expect(
      await ledger.recordElsewhere(ctx, { paymentIntent: "pi_1", listed: [foreignRefund(5000n, "re_h")] }),
    ).toMatchObject({ changed: true, overdrawn: false });
    expect((await ledger.listIncidents(ctx.db, {})).rows).toMatchObject([{ kind: "refunded_elsewhere" }]);
  });

  test("are also what carries an operation's id and is not its own refund", async () => {
    const ctx = await openShop(database.db);
    const done = await inState(ctx, "CONFIRMED");
    const { operation: open } = await claimed(ctx, await prepared(ctx, 1500n));
    const refunds = [
      effectFor(done, { ref: done.providerRef ?? "" }),
      effectFor(done, { ref: "re_again" }),
      effectFor(open, { ref: "re_open", createdAt: new Date(1_000) }),
      effectFor(open, { ref: "re_open_again", createdAt: new Date(2_000) }),
      effectFor(open, { ref: "re_failed", status: "failed" }),
      effectFor(open, { ref: "re_foreign", operationId: null }),
    ];
    const unexplained = await ledger.unexplainedRefunds(ctx.db, "pi_1", refunds);
    expect(unexplained.map(({ effect }) => effect.ref).sort()).toEqual([
      "re_again",
      "re_foreign",
      "re_open_again",
    ]);
  });

  test("stay counted when an older list is written after a newer one, until the provider takes the refund itself back", async () => {
    const ctx = await openShop(database.db);
    const [first, second] = [foreignRefund(3000n, "re_h"), foreignRefund(1000n, "re_i")];
    const write = (listed: ProviderEffect[], gone: string[] = []) =>
      ledger.recordElsewhere(ctx, { paymentIntent: "pi_1", listed, gone: new Set(gone) });
    await write([first, second]);
    for (const older of [[first], [second], []]) {
      expect(await write(older)).toMatchObject({ changed: false, overdrawn: false });
      expect(await moneyOf(ctx.db)).toMatchObject({ elsewhere: 4000n });
    }
    expect(await write([first], ["re_i"])).toMatchObject({ changed: true });
    expect(await moneyOf(ctx.db)).toMatchObject({ elsewhere: 3000n });
    expect(await write([{ ...first, status: "failed" }], ["re_i"])).toMatchObject({ changed: true });
    expect(await moneyOf(ctx.db)).toMatchObject({ elsewhere: 0n });
    expect(await intact(ctx.db)).toEqual([]);
  });

  test("are counted once by rivals that write at the same moment, whichever list is older", async () => {
    const ctx = await openShop(database.db);
    const rival = database.openAnother("rival");
    const held = deferred<void>();
    const locked = deferred<void>();
    const listed = [foreignRefund(3000n, "re_h")];
    const first = rival.tx(async (tx) => {
      const inside = { ...ctx, db: { ...rival, tx: <T>(work: (on: typeof tx) => Promise<T>) => work(tx) } };
      const written = await ledger.recordElsewhere(inside, { paymentIntent: "pi_1", listed });
      locked.resolve();
      await held.promise;
      return written;
    });
    await locked.promise;
    const older = ledger.recordElsewhere(ctx, { paymentIntent: "pi_1", listed: [] });
    await waitFor(() => anyoneWaits(ctx.db), { what: "the older list to wait for the payment" });
    held.resolve();
    expect(await first).toMatchObject({ changed: true });
    expect(await older).toMatchObject({ changed: false });
    expect(await moneyOf(ctx.db)).toMatchObject({ elsewhere: 3000n });
    expect(await intact(ctx.db)).toEqual([]);
  });

  test("count as news for an operation that was open when they were seen, and as known for a later one", async () => {
    const ctx = await openShop(database.db);
    const open = await inState(ctx, "OUTCOME_UNKNOWN");
    const stranger = effectFor(open, { ref: "re_h", operationId: null });
    const listing = {
      read: "complete",
      effects: [stranger],
      balance: null,
      readAt: stranger.createdAt,
    } as const;
    const judged = async (operation: typeof open) =>
      judgeListing(operation, listing, await ledger.listingContext(ctx.db, operation, ["re_h"])).says;
    expect(await judged(open)).toBe("unattributed");
    await ledger.recordElsewhere(ctx, { paymentIntent: "pi_1", listed: [foreignRefund(2000n, "re_h")] });
    expect(await judged(open)).toBe("unattributed");
    await passTime(ctx.db, 1_000);
    const later = await claimed(ctx, await prepared(ctx, 1500n));
    expect(await judged(later.operation)).toBe("absent");
  });

  test("references of ours are known for what they are", async () => {
    const ctx = await openShop(database.db);
    const done = await inState(ctx, "CONFIRMED");
    expect((await ledger.operationByProviderRef(ctx.db, done.providerRef ?? ""))?.id).toBe(done.id);
  });
});

describe("a refund that the bank sends back days later", () => {
  test("reopens the case: reversed once, the money counted again, the thread told, only a further occurrence may follow", async () => {
    const ctx = await openShop(database.db);
    const operation = await inState(ctx, "CONFIRMED");
    const reverse = () =>
      ledger.reverse(ctx, {
        operationId: operation.id,
        actor: "system:webhook",
        code: "insufficient_funds",
        detail: "The bank sent it back.",
        evidence: evidenceOf(operation, "failed"),
      });
    const results = await Promise.all([reverse(), reverse(), reverse()]);
    expect(results.filter(({ moved }) => moved)).toHaveLength(1);
    expect(await reread(ctx.db, operation)).toMatchObject({
      status: "REVERSED",
      result: { code: "insufficient_funds", providerRef: operation.providerRef },
    });
    expect(await moneyOf(ctx.db)).toMatchObject({ reserved: 0n, refunded: 0n, counted: 0n });
    expect(ctx.notes.filter((note) => note === "thread operation_outcome")).toHaveLength(2);
    const [again] = await prepare(ctx, refund(await putRun(ctx.db), 2000n));
    expect(again).toMatchObject({ outcome: "same", operation: { status: "REVERSED" } });
    expect(await intact(ctx.db)).toEqual([]);
  });

  test("a quarantined operation's card is due again on schedule, once each time", async () => {
    const ctx = await openShop(database.db, { timing: { quarantineRepostMs: 60_000 } });
    const operation = await inState(ctx, "QUARANTINED");
    const rest = () => ctx.db.tx((tx) => ledger.restQuarantined(tx, ctx, operation.id));
    expect(await rest()).toBe(false);
    await passTime(ctx.db, 60_000);
    expect(await ledger.dueOperations(ctx.db, { limit: 5 })).toMatchObject([{ quarantine: "repost" }]);
    expect((await Promise.all([rest(), rest(), rest()])).filter((mine) => mine)).toHaveLength(1);
    expect(await ledger.dueOperations(ctx.db, { limit: 5 })).toEqual([]);
    expect(await intact(ctx.db)).toEqual([]);
  });
});
