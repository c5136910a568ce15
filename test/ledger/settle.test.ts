/** What an attempt's outcome does: state, money, attempt row, and what happens to answers that come too late. */
import { describe, expect, test } from "vitest";
import { openDb } from "../../src/db/connect.js";
import type { AttemptOutcome } from "../../src/domain/evidence.js";
import * as ledger from "../../src/ledger/index.js";
import { withDatabase } from "../support/database.js";
import { effectFor } from "../support/ledger-world.js";
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
  reread,
  settle,
  taken,
} from "./scene.js";

const database = withDatabase({ poolSize: 12 });

describe("an attempt's outcome", () => {
  test.each([
    ["committed", "CONFIRMED", 0n, 2000n],
    ["rejected", "REJECTED", 0n, 0n],
    ["unknown", "OUTCOME_UNKNOWN", 2000n, 0n],
    ["not_executed", "PREPARED", 2000n, 0n],
    ["pending", "OUTCOME_UNKNOWN", 2000n, 0n],
    ["postcondition_failed", "OUTCOME_UNKNOWN", 2000n, 0n],
    ["failed_at_provider", "REJECTED", 0n, 0n],
  ] as const)(
    "%s makes it %s, with the money where it belongs",
    async (verdict, status, reserved, refunded) => {
      const ctx = await openShop(database.db);
      const claim = await claimed(ctx, await prepared(ctx));
      const effect = effectFor(claim.operation);
      const outcome: Record<typeof verdict, AttemptOutcome> = {
        committed: outcomes.committed(claim.operation),
        rejected: outcomes.rejected(),
        unknown: outcomes.unknown(),
        not_executed: outcomes.notExecuted(),
        pending: { verdict: "pending", effect, reason: "processing", requestId: null },
        postcondition_failed: {
          verdict: "postcondition_failed",
          effect,
          differs: ["amount"],
          requestId: null,
        },
        failed_at_provider: { verdict: "failed_at_provider", effect, code: "declined" },
      };
      const done = await settle(ctx, claim, outcome[verdict]);
      expect(done).toMatchObject({ settled: true, operation: { status } });
      expect(await moneyOf(ctx.db)).toMatchObject({ reserved, refunded, counted: reserved + refunded });
      expect(await ledger.attemptsOf(ctx.db, claim.operation.id)).toMatchObject([{ number: 1, verdict }]);
      const ended = status === "CONFIRMED" || status === "REJECTED";
      expect((await reread(ctx.db, claim.operation)).result !== null).toBe(ended);
      const due = await ctx.db.sql<{ due: boolean }>(
        undefined,
        "SELECT due_at IS NOT NULL AS due FROM operations",
      );
      expect(due).toEqual([{ due: !ended }]);
      expect(await intact(ctx.db)).toEqual([]);
    },
  );

  test("the totals' triggers do not run for an outcome that changes nothing under them, and do for one that does", async () => {
    const ctx = await openShop(database.db);
    const pool = database.db.pool;
    await pool.query(`
      CREATE TABLE totals_named (what text NOT NULL);
      CREATE FUNCTION note_totals_named() RETURNS trigger LANGUAGE plpgsql AS $$
      BEGIN INSERT INTO totals_named VALUES (TG_OP); RETURN NULL; END $$;
      CREATE TRIGGER note_totals_named AFTER INSERT OR DELETE ON total_entries
        FOR EACH STATEMENT EXECUTE FUNCTION note_totals_named()`);
    const named = async (): Promise<string[]> => {
      const { rows } = await pool.query<{ what: string }>("DELETE FROM totals_named RETURNING what");
      return rows.map(({ what }) => what).sort();
    };
    try {
      const done = await claimed(ctx, await prepared(ctx));
      expect(await named()).toContain("INSERT");
      await settle(ctx, done, outcomes.committed(done.operation));
      expect(await named()).toEqual([]);
      const refused = await claimed(ctx, await prepared(ctx, 1000n));
      await named();
      await settle(ctx, refused, outcomes.rejected());
      expect(await named()).toContain("DELETE");
      expect(await moneyOf(ctx.db)).toMatchObject({ reserved: 0n, refunded: 2000n, counted: 2000n });
    } finally {
      await pool.query(
        "DROP TRIGGER note_totals_named ON total_entries; DROP FUNCTION note_totals_named(); DROP TABLE totals_named",
      );
    }
    expect(await intact(ctx.db)).toEqual([]);
  });

  test("not executed comes back after the provider's Retry-After and not before, under the same key", async () => {
    const ctx = await openShop(database.db, { timing: { reconcileMaxMs: 60_000 } });
    const first = await claimed(ctx, await prepared(ctx));
    const back = await settle(ctx, first, outcomes.notExecuted(60_000));
    const early = await ledger.claim(ctx, {
      operation: back.operation,
      worker: "w1",
      request: first.request,
    });
    expect(early).toMatchObject({ claimed: false, why: "not_yet" });
    await passTime(ctx.db, 60_000);
    const second = await claimed(ctx, await reread(ctx.db, back.operation));
    expect(second).toMatchObject({ attempt: 2, request: first.request });
    expect(second.operation.idempotencyKey).toBe(first.operation.idempotencyKey);
  });

  test("a Retry-After is kept while an earlier attempt is open, too", async () => {
    const ctx = await openShop(database.db, { timing: { reconcileBaseMs: 1, reconcileMaxMs: 60_000 } });
    const operation = await inState(ctx, "OUTCOME_UNKNOWN");
    const { leaseToken } = await taken(ctx, operation);
    const again = await ledger.resend(ctx, {
      operationId: operation.id,
      leaseToken,
      worker: "w2",
      evidence: { says: "absent" },
    });
    if (!again.claimed) throw new Error(again.why);
    const done = await settle(ctx, again, outcomes.notExecuted(60_000));
    expect(done).toMatchObject({ settled: true, operation: { status: "OUTCOME_UNKNOWN" } });
    await passTime(ctx.db, 30_000);
    const due = { operationId: operation.id, worker: "r2", because: "due" } as const;
    expect(await ledger.takeForReconcile(ctx, due)).toBeNull();
    await passTime(ctx.db, 30_000);
    expect(await ledger.takeForReconcile(ctx, due)).not.toBeNull();
  });

  test("a refusal while an earlier attempt is open proves nothing: the outcome stays unknown and the money reserved", async () => {
    const ctx = await openShop(database.db);
    const operation = await inState(ctx, "OUTCOME_UNKNOWN");
    const take = await taken(ctx, operation);
    const again = await ledger.resend(ctx, {
      operationId: operation.id,
      leaseToken: take.leaseToken,
      worker: "w2",
      evidence: { says: "absent" },
    });
    if (!again.claimed) throw new Error(again.why);
    const done = await settle(ctx, again, outcomes.rejected("charge_already_refunded"));
    expect(done).toMatchObject({ settled: true, operation: { status: "OUTCOME_UNKNOWN" } });
    expect(await moneyOf(ctx.db)).toMatchObject({ reserved: 2000n, refunded: 0n });
  });

  test("is told in the threads of owner and waiters, and an open one only once", async () => {
    const ctx = await openShop(database.db);
    const operation = await inState(ctx, "OUTCOME_UNKNOWN");
    expect(ctx.notes.filter((note) => note === "thread operation_being_checked")).toHaveLength(1);
    const take = await taken(ctx, operation);
    await decide(ctx, take, { do: "confirm", effect: effectFor(operation) });
    expect(ctx.notes.filter((note) => note === "thread operation_outcome")).toHaveLength(1);
  });
});

describe("a success that the provider has already reported as failed", () => {
  test("confirms nothing: the outcome is open until the reconciler has read it, and the money stays reserved", async () => {
    const ctx = await openShop(database.db);
    const claim = await claimed(ctx, await prepared(ctx));
    const effect = effectFor(claim.operation, { status: "failed", failureReason: "declined" });
    await ctx.db.tx((tx) =>
      ledger.recordEvidence(tx, ctx, {
        operationId: claim.operation.id,
        source: "webhook",
        providerRef: effect.ref,
        dedupeKey: `effect:${effect.ref}:failed:2000`,
        payload: { ref: effect.ref, status: "failed" },
      }),
    );
    const done = await settle(ctx, claim, outcomes.committed(claim.operation));
    expect(done).toMatchObject({ settled: true, operation: { status: "OUTCOME_UNKNOWN" } });
    expect(await moneyOf(ctx.db)).toMatchObject({ reserved: 2000n, refunded: 0n });
    const take = await taken(ctx, claim.operation);
    await decide(ctx, take, { do: "reject", code: "declined", detail: "failed at the provider" });
    expect(await moneyOf(ctx.db)).toMatchObject({ reserved: 0n, refunded: 0n });
    expect(ctx.notes.filter((note) => note === "thread operation_outcome")).toHaveLength(1);
  });
});

describe("an answer from a lost lease", () => {
  test.each(["OUTCOME_UNKNOWN", "RECONCILING", "DISPATCHED"] as const)(
    "overwrites nothing while the operation is %s, and is kept as its attempt's verdict and as evidence",
    async (now) => {
      const ctx = await openShop(database.db);
      const lost = await claimed(ctx, await prepared(ctx), { leaseMs: 1_000 });
      await passTime(ctx.db, 2_000);
      const take = await taken(ctx, lost.operation);
      if (now === "OUTCOME_UNKNOWN") await decide(ctx, take, { do: "later", why: "nothing is listed" });
      if (now === "DISPATCHED") {
        const again = await ledger.resend(ctx, {
          operationId: lost.operation.id,
          leaseToken: take.leaseToken,
          worker: "w2",
          evidence: { says: "absent" },
        });
        expect(again.claimed).toBe(true);
      }
      const late = await settle(ctx, lost, outcomes.committed(lost.operation));
      expect(late).toMatchObject({ settled: false, why: "fenced", operation: { status: now } });
      const [attempt] = await ledger.attemptsOf(ctx.db, lost.operation.id);
      expect(attempt).toMatchObject({ number: 1, verdict: "committed" });
      expect(await ledger.evidenceOf(ctx.db, lost.operation.id)).toMatchObject([{ source: "late_response" }]);
      expect((await ledger.eventsOf(ctx.db, lost.operation.id)).at(-1)).toMatchObject({
        type: "late_answer",
        from: now,
        to: now,
        attempt: 1,
      });
      expect(await moneyOf(ctx.db)).toMatchObject({ reserved: 2000n, refunded: 0n });
      if (now === "OUTCOME_UNKNOWN") {
        expect((await ledger.dueOperations(ctx.db, { limit: 10 })).map(({ id }) => id)).toEqual([
          lost.operation.id,
        ]);
      }
      expect(await intact(ctx.db)).toEqual([]);
    },
  );

  test("told twice is told once", async () => {
    const ctx = await openShop(database.db);
    const lost = await claimed(ctx, await prepared(ctx), { leaseMs: 1_000 });
    await passTime(ctx.db, 2_000);
    await taken(ctx, lost.operation);
    await settle(ctx, lost, outcomes.committed(lost.operation));
    const events = await ledger.eventsOf(ctx.db, lost.operation.id);
    await settle(ctx, lost, outcomes.committed(lost.operation));
    expect(await ledger.eventsOf(ctx.db, lost.operation.id)).toEqual(events);
  });

  test("on a parked operation makes a reconciler take it again", async () => {
    const ctx = await openShop(database.db);
    const lost = await claimed(ctx, await prepared(ctx), { leaseMs: 1_000 });
    await passTime(ctx.db, 2_000);
    const take = await taken(ctx, lost.operation);
    await decide(ctx, take, { do: "quarantine", reason: "unknown_too_long", detail: "nothing is listed" });
    const due = { operationId: lost.operation.id, worker: "r2", because: "due" } as const;
    expect(await ledger.takeForReconcile(ctx, due)).toBeNull();
    await settle(ctx, lost, outcomes.committed(lost.operation));
    expect(await ledger.dueOperations(ctx.db, { limit: 10 })).toMatchObject([{ quarantine: "evidence" }]);
    expect((await ledger.takeForReconcile(ctx, due))?.operation.status).toBe("RECONCILING");
  });

  test("while a reconciler is about to park it makes it due at once", async () => {
    const ctx = await openShop(database.db);
    const lost = await claimed(ctx, await prepared(ctx), { leaseMs: 1_000 });
    await passTime(ctx.db, 2_000);
    const take = await taken(ctx, lost.operation);
    await settle(ctx, lost, outcomes.committed(lost.operation));
    const parking = { do: "quarantine", reason: "unknown_too_long", detail: "nothing is listed" } as const;
    expect(await decide(ctx, take, parking)).toMatchObject({ operation: { status: "OUTCOME_UNKNOWN" } });
    const due = { operationId: lost.operation.id, worker: "r2", because: "due" } as const;
    expect((await ledger.takeForReconcile(ctx, due))?.attempts).toMatchObject([{ verdict: "committed" }]);
    expect(await intact(ctx.db)).toEqual([]);
  });

  test("with another reference than only a person named: no duplicate; a reconciler settles it by what the provider shows", async () => {
    const ctx = await openShop(database.db);
    const lost = await claimed(ctx, await prepared(ctx), { leaseMs: 1_000 });
    await passTime(ctx.db, 2_000);
    const parked = await decide(ctx, await taken(ctx, lost.operation), {
      do: "quarantine",
      reason: "unknown_too_long",
      detail: "nobody answers",
    });
    await ledger.resolve(ctx, {
      operationId: lost.operation.id,
      expectedVersion: parked.operation?.version ?? 0n,
      verb: "confirm",
      by: "U_ONC1",
      reason: "They say it is done.",
      evidenceRef: "re_typo",
      probe: { says: "unknown", reason: "nobody answers" },
      needsSecond: false,
      secondWithinMs: 60_000,
    });
    const late = await settle(ctx, lost, outcomes.committed(lost.operation));
    expect(late.operation).toMatchObject({ status: "QUARANTINED" });
    expect((await ledger.listIncidents(ctx.db, {})).rows).toMatchObject([
      {
        kind: "contradiction",
        operationId: lost.operation.id,
        detail: { resolution: expect.stringMatching(/^res_/) },
      },
    ]);
    const due = { operationId: lost.operation.id, worker: "r2", because: "due" } as const;
    const again = await ledger.takeForReconcile(ctx, due);
    if (again === null) throw new Error("nobody could take it");
    const { ref } = effectFor(lost.operation);
    await decide(ctx, again, { do: "confirm", effect: effectFor(lost.operation) });
    expect(await reread(ctx.db, lost.operation)).toMatchObject({ status: "CONFIRMED", providerRef: ref });
    expect(await intact(ctx.db)).toEqual([]);
  });

  test("with another reference than the confirmed one is a duplicate: an incident, once, and the state stays", async () => {
    const ctx = await openShop(database.db);
    const lost = await claimed(ctx, await prepared(ctx), { leaseMs: 1_000 });
    await passTime(ctx.db, 2_000);
    const take = await taken(ctx, lost.operation);
    await decide(ctx, take, { do: "confirm", effect: effectFor(lost.operation) });
    const late = await settle(ctx, lost, outcomes.committed(lost.operation, { ref: "re_second" }));
    expect(late.operation).toMatchObject({ status: "CONFIRMED", providerRef: effectFor(lost.operation).ref });
    expect((await ledger.listIncidents(ctx.db, {})).rows).toMatchObject([
      { kind: "duplicate_effect", operationId: lost.operation.id, detail: { ref: "re_second" } },
    ]);
    expect(await moneyOf(ctx.db)).toMatchObject({ reserved: 0n, refunded: 2000n });
  });

  test("that proves a rejection wrong reopens the case, and reserves the money again even where it breaks the plan", async () => {
    const ctx = await openShop(database.db);
    const lost = await claimed(ctx, await prepared(ctx, 8000n), { leaseMs: 1_000 });
    await passTime(ctx.db, 2_000);
    const take = await taken(ctx, lost.operation);
    await decide(ctx, take, { do: "reject", code: "lost", detail: "taken for not executed" });
    await inState(ctx, "CONFIRMED");
    await prepared(ctx, 7000n);
    const late = await settle(ctx, lost, outcomes.committed(lost.operation, { ref: "re_late" }));
    expect(late.operation.status).toBe("QUARANTINED");
    expect(await moneyOf(ctx.db)).toMatchObject({ reserved: 15_000n, refunded: 2000n, counted: 17_000n });
    const kinds = (await ledger.listIncidents(ctx.db, {})).rows.map(({ kind }) => kind).sort();
    expect(kinds).toEqual(["contradiction", "overdrawn"]);
    expect(await intact(ctx.db)).toEqual([]);
  });
});

describe("the database undoes a transaction (S-DB-2)", () => {
  /** Raises each SQLSTATE once on every change of an operation, as a deadlock or a serialization failure would. */
  async function raise(sqlstates: readonly string[], on: "INSERT" | "UPDATE"): Promise<void> {
    const cases = sqlstates
      .map((state, index) => `WHEN ${index + 1} THEN RAISE EXCEPTION 'injected' USING ERRCODE = '${state}';`)
      .join(" ");
    await database.db.sql(undefined, "DROP TRIGGER IF EXISTS injected ON operations");
    await database.db.sql(undefined, "DROP SEQUENCE IF EXISTS injections");
    await database.db.sql(undefined, "CREATE SEQUENCE injections");
    await database.db.sql(
      undefined,
      `CREATE OR REPLACE FUNCTION injected() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
         CASE nextval('injections') ${cases} ELSE NULL; END CASE; RETURN NEW; END $$`,
    );
    await database.db.sql(
      undefined,
      `CREATE TRIGGER injected BEFORE ${on} ON operations FOR EACH ROW EXECUTE FUNCTION injected()`,
    );
  }
  const calm = async (): Promise<void> => {
    await database.db.sql(undefined, "DROP TRIGGER IF EXISTS injected ON operations");
    await database.db.sql(undefined, "DROP SEQUENCE IF EXISTS injections");
  };

  test("PREPARE, claim, settle and resolve go through after a deadlock and a serialization failure each", async () => {
    const ctx = await openShop(database.db);
    try {
      await raise(["40P01", "40001"], "INSERT");
      const operation = await prepared(ctx);
      await raise(["40P01", "40001"], "UPDATE");
      const claim = await claimed(ctx, operation);
      await raise(["40P01", "40001"], "UPDATE");
      expect(await settle(ctx, claim, outcomes.unknown())).toMatchObject({ settled: true });
      await raise(["40P01", "40001"], "UPDATE");
      const take = await taken(ctx, operation);
      await raise(["40P01", "40001"], "UPDATE");
      await decide(ctx, take, { do: "quarantine", reason: "unknown_too_long", detail: "" });
      await raise(["40P01", "40001"], "UPDATE");
      const resolved = await ledger.resolve(ctx, {
        operationId: operation.id,
        expectedVersion: (await reread(ctx.db, operation)).version,
        verb: "confirm",
        by: "U_ONC1",
        reason: "seen in the dashboard",
        evidenceRef: "re_seen",
        probe: { says: "committed", effect: effectFor(operation), postcondition: "holds" },
        needsSecond: false,
        secondWithinMs: 3_600_000,
      });
      expect(resolved).toMatchObject({ outcome: "applied", operation: { status: "CONFIRMED" } });
    } finally {
      await calm();
    }
    expect(await intact(ctx.db)).toEqual([]);
  });

  test("once the tries are used up everything is as before, and the error says what it was", async () => {
    const ctx = await openShop(database.db);
    const claim = await claimed(ctx, await prepared(ctx));
    try {
      await raise(
        Array.from({ length: 40 }, () => "40P01"),
        "UPDATE",
      );
      await expect(settle(ctx, claim, outcomes.committed(claim.operation))).rejects.toMatchObject({
        code: "40P01",
      });
    } finally {
      await calm();
    }
    expect(await reread(ctx.db, claim.operation)).toEqual(claim.operation);
    expect(await settle(ctx, claim, outcomes.committed(claim.operation))).toMatchObject({ settled: true });
  });
});

describe("no transaction waits for the outside (S-DB-3)", () => {
  test("twenty claims in flight hold no connection and no lock: a pool of two prepares, lists and settles beside them", async () => {
    const ctx = await openShop(database.db);
    const operations = [];
    for (let index = 0; index < 20; index += 1) operations.push(await prepared(ctx, 100n + BigInt(index)));
    const claims = await Promise.all(operations.map((operation) => claimed(ctx, operation)));
    const small = openDb({ url: database.url, poolSize: 2, applicationName: "small" });
    try {
      const idle = await small.sql(
        undefined,
        `SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND state LIKE 'idle in transaction%'`,
      );
      expect(idle).toEqual([]);
      const beside = { ...ctx, db: small };
      expect((await prepared(beside, 999n)).status).toBe("PREPARED");
      expect((await ledger.listOperations(small, { status: "DISPATCHED" })).rows).toHaveLength(20);
      await Promise.all(claims.map((claim) => settle(beside, claim, outcomes.committed(claim.operation))));
    } finally {
      await small.close();
    }
    expect(await intact(ctx.db)).toEqual([]);
    expect(await prepare(ctx)).toEqual([]);
  });
});
