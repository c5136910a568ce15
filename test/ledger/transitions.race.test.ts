/**
 * Every transition, with a rival on a second connection: the rival moves the same row first and is still uncommitted when we try.
 * Whoever commits first wins; the other changes nothing.
 */
import { describe, expect, test } from "vitest";
import type { Db } from "../../src/db/connect.js";
import {
  next,
  OPERATION_EVENTS,
  OPERATION_STATUSES,
  type Operation,
  type OperationEventType,
  type OperationStatus,
  TRANSITIONS,
} from "../../src/domain/operation.js";
import { dispatchOnce } from "../../src/ledger/claim-sql.js";
import * as ledger from "../../src/ledger/index.js";
import { move } from "../../src/ledger/transition.js";
import { withDatabase } from "../support/database.js";
import { deferred, waitFor } from "../support/wait.js";
import { inState, intact, moneyOf, openShop, REQUEST, reread } from "./scene.js";

const database = withDatabase({ poolSize: 10 });

interface Pair {
  from: OperationStatus;
  event: OperationEventType;
  to: OperationStatus;
}
const PAIRS: Pair[] = OPERATION_STATUSES.flatMap((from) =>
  OPERATION_EVENTS.flatMap((event) => {
    const step = next(from, event);
    return step.legal ? [{ from, event, to: step.to }] : [];
  }),
);

/** What a release says of the decision that it stands on. */
async function decisionOf(on: Pick<Db, "sql">, { id, policyHash }: Operation): Promise<object> {
  const [row] = await on.sql<{ answer: string; rules: unknown }>(
    undefined,
    "SELECT decision ->> 'answerHash' AS answer, decision -> 'rules' AS rules FROM operations WHERE id = $1",
    [id],
  );
  return { policyHash, answerHash: row?.answer, rules: row?.rules };
}

/** One try at a transition, as the functions of the room make it; null: the race is lost. */
async function attempt(on: Pick<Db, "sql">, operation: Operation, pair: Pair): Promise<Operation | null> {
  if (pair.to === "DISPATCHED") {
    const claim = await dispatchOnce(on, {
      id: operation.id,
      kind: operation.kind,
      from: pair.from,
      version: operation.version,
      token: pair.from === "RECONCILING" ? operation.leaseToken : null,
      event: pair.event === "claim" ? "claim" : "resend",
      actor: "system:test",
      data: { worker: "w" },
      worker: "w",
      leaseMs: 30_000,
      timeoutMs: 1_000,
      marginMs: 100,
      keyTtlMs: null,
      attemptId: `att_${Math.random().toString(16).slice(2)}`,
      request: REQUEST,
      sends: true,
    });
    return claim?.operation ?? null;
  }
  return move(on, {
    id: operation.id,
    from: pair.from,
    version: operation.version,
    token: pair.from === "DISPATCHED" || pair.from === "RECONCILING" ? operation.leaseToken : null,
    event: pair.event,
    actor: "system:test",
    data: pair.event === "release" ? await decisionOf(on, operation) : {},
    patch: {
      providerRef: operation.providerRef ?? "re_test",
      result: { code: "test", detail: "test" },
      quarantineReason: "test",
    },
  });
}

/** Sessions of this database that wait for a lock. */
async function waiting(db: Db): Promise<boolean> {
  const rows = await db.sql(
    undefined,
    "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'",
  );
  return rows.length > 0;
}

describe("a transition whose rival came first", () => {
  test.each(PAIRS)("$from by $event to $to is lost, and writes nothing", async (pair) => {
    const ctx = await openShop(database.db);
    const operation = await inState(ctx, pair.from);
    const rival = database.openAnother("rival");
    const release = deferred<void>();
    const moved = deferred<void>();
    const first = rival.tx(async (tx) => {
      const won = await attempt(tx, operation, pair);
      moved.resolve();
      await release.promise;
      return won;
    });
    await moved.promise;
    const second = attempt(ctx.db, operation, pair);
    await waitFor(() => waiting(database.db), { what: "the second to wait for the first" });
    release.resolve();
    expect((await first)?.status).toBe(pair.to);
    expect(await second).toBeNull();

    const now = await reread(ctx.db, operation);
    expect(now.version).toBe(operation.version + 1n);
    expect((await ledger.eventsOf(ctx.db, operation.id)).at(-1)).toMatchObject({
      type: pair.event,
      from: pair.from,
      to: pair.to,
    });
    expect(await intact(ctx.db)).toEqual([]);
  });

  test.each(PAIRS)("$from by $event goes ahead when the rival rolls back", async (pair) => {
    const ctx = await openShop(database.db);
    const operation = await inState(ctx, pair.from);
    const rival = database.openAnother("rival");
    const release = deferred<void>();
    const moved = deferred<void>();
    const first = rival
      .tx(async (tx) => {
        await attempt(tx, operation, pair);
        moved.resolve();
        await release.promise;
        throw new Error("gives up");
      })
      .catch(() => null);
    await moved.promise;
    const second = attempt(ctx.db, operation, pair);
    await waitFor(() => waiting(database.db), { what: "the second to wait for the first" });
    release.resolve();
    await first;
    expect((await second)?.status).toBe(pair.to);
    expect(await intact(ctx.db)).toEqual([]);
  });
});

describe("a transition whose rival took another way", () => {
  const WAYS = OPERATION_STATUSES.map((from) => [from, PAIRS.filter((pair) => pair.from === from)] as const);

  test.each(WAYS.filter(([, ways]) => ways.length > 1))(
    "from %s is lost whichever way each took",
    async (from, ways) => {
      for (const first of ways) {
        for (const second of ways.filter((way) => way !== first)) {
          await database.reset();
          const ctx = await openShop(database.db);
          const operation = await inState(ctx, from);
          const rival = database.openAnother("rival");
          const release = deferred<void>();
          const moved = deferred<void>();
          const winner = rival.tx(async (tx) => {
            const won = await attempt(tx, operation, first);
            moved.resolve();
            await release.promise;
            return won;
          });
          await moved.promise;
          const loser = attempt(ctx.db, operation, second);
          await waitFor(() => waiting(database.db), { what: `${second.event} to wait for ${first.event}` });
          release.resolve();
          expect((await winner)?.status).toBe(first.to);
          expect(await loser, `${second.event} after ${first.event}`).toBeNull();
          expect((await reread(ctx.db, operation)).version).toBe(operation.version + 1n);
          expect(await intact(ctx.db)).toEqual([]);
        }
      }
    },
  );
});

describe("the holder of an older token", () => {
  test.each(PAIRS.filter(({ from }) => from === "DISPATCHED" || from === "RECONCILING"))(
    "cannot move $from by $event",
    async (pair) => {
      const ctx = await openShop(database.db);
      const operation = await inState(ctx, pair.from);
      const stale = { ...operation, leaseToken: operation.leaseToken - 1n };
      expect(await attempt(ctx.db, stale, pair)).toBeNull();
      expect(await reread(ctx.db, operation)).toEqual(operation);
    },
  );
});

describe("a pair that the table does not name", () => {
  test("is refused before any statement, for every state and event", async () => {
    const ctx = await openShop(database.db);
    const operation = await inState(ctx, "PREPARED");
    for (const from of OPERATION_STATUSES) {
      for (const event of OPERATION_EVENTS) {
        if (next(from, event).legal) continue;
        const tried = move(ctx.db, {
          id: operation.id,
          from,
          version: operation.version,
          token: null,
          event,
          actor: "system:test",
          data: {},
        });
        await expect(tried).rejects.toMatchObject({ code: "illegal_transition" });
      }
    }
    expect(await reread(ctx.db, operation)).toEqual(operation);
  });

  test("is refused by the database as well, whoever writes", async () => {
    const ctx = await openShop(database.db);
    for (const from of OPERATION_STATUSES) {
      await database.reset();
      const again = await openShop(database.db);
      const operation = await inState(again, from);
      const reachable = new Set<string>(Object.values(TRANSITIONS[from]));
      for (const to of OPERATION_STATUSES) {
        if (to === from || reachable.has(to)) continue;
        const raw = again.db.sql(
          undefined,
          "UPDATE operations SET status = $2, version = version + 1, provider_ref = 'x' WHERE id = $1",
          [operation.id, to],
        );
        await expect(raw, `${from} to ${to}`).rejects.toMatchObject({
          code: "23514",
          constraint: "operations_transition_is_legal",
        });
      }
    }
    expect(ctx.notes).toBeDefined();
  });
});

describe("the database's own guards", () => {
  test("hold the same transition table as the code", async () => {
    const rows = await database.db.sql<{ from_status: string; event: string; to_status: string }>(
      undefined,
      "SELECT from_status, event, to_status FROM operation_transitions",
    );
    const inDatabase = rows.map((row) => `${row.from_status} ${row.event} ${row.to_status}`).sort();
    expect(inDatabase).toEqual(PAIRS.map(({ from, event, to }) => `${from} ${event} ${to}`).sort());
  });

  test("refuse a status without a new version, a token that goes back, and other material fields", async () => {
    const ctx = await openShop(database.db);
    const operation = await inState(ctx, "DISPATCHED");
    for (const [assignment, constraint] of [
      ["status = 'OUTCOME_UNKNOWN'", "operations_version_grows"],
      ["lease_token = lease_token - 1", "operations_lease_token_grows"],
      ["amount_minor = 1", "operations_material_fields_are_fixed"],
      ["currency = 'USD'", "operations_material_fields_are_fixed"],
      ["key = 'other'", "operations_material_fields_are_fixed"],
      ["idempotency_key = 'other'", "operations_material_fields_are_fixed"],
      ["fingerprint = 'other'", "operations_material_fields_are_fixed"],
      ["payment_intent = 'pi_other'", "operations_material_fields_are_fixed"],
      ["customer_ref = 'CUS-OTHER'", "operations_material_fields_are_fixed"],
      ["order_ref = 'ORD-OTHER'", "operations_material_fields_are_fixed"],
      ["occurrence = occurrence + 1", "operations_material_fields_are_fixed"],
      ["contract_version = 'other'", "operations_material_fields_are_fixed"],
    ] as const) {
      const raw = ctx.db.sql(undefined, `UPDATE operations SET ${assignment} WHERE id = $1`, [operation.id]);
      await expect(raw, assignment).rejects.toMatchObject({ constraint });
    }
  });

  test("refuse to change, delete or empty events and blocks", async () => {
    const ctx = await openShop(database.db);
    await inState(ctx, "CONFIRMED");
    await ledger.sealBlocks(ctx.db, { patienceMs: 30_000 });
    for (const text of [
      "UPDATE operation_events SET actor = 'me'",
      "DELETE FROM operation_events",
      "TRUNCATE operation_events",
      "UPDATE audit_blocks SET hash = 'x'",
      "DELETE FROM audit_blocks",
      "TRUNCATE audit_blocks",
    ]) {
      await expect(ctx.db.sql(undefined, text), text).rejects.toMatchObject({ code: "42501" });
    }
  });

  test("keep a payment's plan from going below zero", async () => {
    const ctx = await openShop(database.db);
    await inState(ctx, "PREPARED");
    await expect(ctx.db.sql(undefined, "UPDATE payments SET reserved = -1")).rejects.toMatchObject({
      constraint: "payments_balance_is_not_negative",
    });
    expect((await moneyOf(ctx.db)).reserved).toBe(2000n);
  });
});
