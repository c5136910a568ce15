/** Lists and scans: complete, by key, and costing what they show, whatever is stored. */
import { describe, expect, test } from "vitest";
import type { Db } from "../../src/db/connect.js";
import * as ledger from "../../src/ledger/index.js";
import { withDatabase } from "../support/database.js";
import { inState, openShop, passTime, prepared, REQUEST } from "./scene.js";

const database = withDatabase();

/** Ended operations of the past, written at once: `n` of them, one in `rare` REJECTED. */
async function history(db: Db, n: number, rare = 1_000): Promise<void> {
  await db.tx(async (tx) => {
    await tx.sql(undefined, "SET LOCAL session_replication_role = replica");
    await tx.sql(
      undefined,
      `INSERT INTO operations (id, key, occurrence, kind, status, customer_id, customer_ref, amount_minor, currency, fingerprint,
         contract_version, idempotency_key, policy_hash, decision, provider_ref, created_at, updated_at)
       SELECT 'op_' || lpad(to_hex(g), 32, '0'), 'past:' || g, 1, 'refund',
         CASE WHEN g % $2 = 0 THEN 'REJECTED' ELSE 'CONFIRMED' END, 'c', 'C', 1, 'GBP', 'f', 'v', 'k' || g, 'p', '{}', 're_' || g,
         now() - interval '30 days' + g * interval '1 second', now()
       FROM generate_series(1, $1::int) g`,
      [n, rare],
    );
  });
  await db.sql(undefined, "ANALYZE operations");
}

/** The statements that `read` runs, each with its plan's buffers under a generic plan. */
async function buffersOf(read: (db: Db) => Promise<unknown>): Promise<{ name: string; buffers: number }[]> {
  const seen: { name: string; text: string; params: readonly unknown[] }[] = [];
  const recorder: Db = {
    ...database.db,
    sql: (name, text, params) => {
      seen.push({ name: name ?? "", text, params: params ?? [] });
      return database.db.sql(name, text, params);
    },
  };
  await read(recorder);
  const measured = [];
  for (const { name, text, params } of seen) {
    measured.push(
      await database.db.tx(async (tx) => {
        await tx.sql(undefined, "SET LOCAL plan_cache_mode = force_generic_plan");
        await tx.sql(undefined, `PREPARE measured AS ${text}`);
        const values = params.map((value) => (value === null ? "NULL" : `'${String(value)}'`)).join(", ");
        const explain = `EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) EXECUTE measured${values === "" ? "" : `(${values})`}`;
        await tx.sql(undefined, explain);
        const [row] = await tx.sql<{ "QUERY PLAN": [{ Plan: Record<string, number> }] }>(undefined, explain);
        await tx.sql(undefined, "DEALLOCATE measured");
        const plan = row?.["QUERY PLAN"][0].Plan ?? {};
        return { name, buffers: (plan["Shared Hit Blocks"] ?? 0) + (plan["Shared Read Blocks"] ?? 0) };
      }),
    );
  }
  return measured;
}

describe("a list", () => {
  test("pages through everything once, newest first, while new ones arrive", async () => {
    const ctx = await openShop(database.db);
    const made: string[] = [];
    for (let index = 0; index < 25; index += 1) made.push((await prepared(ctx, 1n + BigInt(index))).id);
    const seen: string[] = [];
    let cursor: string | null = null;
    do {
      const page: ledger.Page<{ id: string }> = await ledger.listOperations(ctx.db, { cursor, limit: 7 });
      seen.push(...page.rows.map(({ id }) => id));
      cursor = page.next;
      await prepared(ctx, 100n + BigInt(seen.length));
    } while (cursor !== null);
    expect(seen).toEqual(made.toReversed());
  });

  test("of a status that only history has finds all of it, page by page", async () => {
    await openShop(database.db);
    await history(database.db, 9_000, 1_000);
    const seen: string[] = [];
    let cursor: string | null = null;
    let pages = 0;
    do {
      const page: ledger.Page<{ id: string }> = await ledger.listOperations(database.db, {
        status: "REJECTED",
        cursor,
        limit: 4,
      });
      seen.push(...page.rows.map(({ id }) => id));
      cursor = page.next;
      pages += 1;
    } while (cursor !== null && pages < 50);
    expect(seen).toHaveLength(9);
    expect(new Set(seen).size).toBe(9);
  });

  test.each([
    "PREPARED",
    "DISPATCHED",
    "OUTCOME_UNKNOWN",
    "RECONCILING",
    "QUARANTINED",
    "AWAITING_APPROVAL",
  ] as const)("of %s finds what is in it now", async (status) => {
    const ctx = await openShop(database.db);
    const operation = await inState(ctx, status);
    const page = await ledger.listOperations(ctx.db, { status });
    expect(page.rows.map(({ id }) => id)).toEqual([operation.id]);
  });

  test("refuses a cursor that is none", async () => {
    for (const cursor of ["", "nonsense", Buffer.from("2026 op_1").toString("base64url")]) {
      await expect(ledger.listOperations(database.db, { cursor })).rejects.toMatchObject({
        code: "bad_cursor",
      });
    }
  });
});

describe("the beginning of an id", () => {
  test("finds the operations that begin with it, newest first, and nothing for anything else", async () => {
    const ctx = await openShop(database.db);
    const operation = await prepared(ctx);
    for (const typed of [
      operation.id,
      operation.id.slice(0, 20),
      operation.id.slice(3, 15),
      ` ${operation.id.toUpperCase()} `,
    ]) {
      expect(await ledger.findByPrefix(ctx.db, typed, { limit: 5 })).toEqual([operation.id]);
    }
    for (const typed of ["", "op_", "op_zz", "run_1", "%", "op_f_"]) {
      expect(await ledger.findByPrefix(ctx.db, typed, { limit: 5 })).toEqual([]);
    }
  });
});

describe("what hangs on an operation", () => {
  test("is read back: request, attempts, events, waiters, open counts, what is live on an order", async () => {
    const ctx = await openShop(database.db);
    const operation = await inState(ctx, "OUTCOME_UNKNOWN");
    expect(await ledger.requestOf(ctx.db, operation.id)).toEqual(REQUEST);
    expect(await ledger.requestOf(ctx.db, (await prepared(ctx, 300n)).id)).toBeNull();
    expect(await ledger.attemptsOf(ctx.db, operation.id)).toMatchObject([
      { number: 1, worker: "w1", verdict: "unknown", code: "timeout" },
    ]);
    expect(await ledger.openCounts(ctx.db)).toEqual({ OUTCOME_UNKNOWN: 1, PREPARED: 1 });
    expect(await ledger.liveOn(ctx.db, { kind: "refund", orderRef: "ORD-1" })).toHaveLength(2);
    expect(await ledger.liveOn(ctx.db, { kind: "refund", orderRef: "ORD-9" })).toEqual([]);
    expect(await ledger.getOperation(ctx.db, "op_00000000000000000000000000000000")).toBeNull();
  });
});

describe("cost", () => {
  test("of scans and lists does not grow with what is stored, under generic plans too", async () => {
    const ctx = await openShop(database.db);
    await inState(ctx, "QUARANTINED");
    for (let index = 0; index < 10; index += 1) await prepared(ctx, 1n + BigInt(index));
    await passTime(ctx.db, 7_200_000);
    const measure = async (): Promise<Record<string, number>> => {
      const all = [
        ...(await buffersOf((db) => ledger.dueOperations(db, { limit: 50 }))),
        ...(await buffersOf((db) => ledger.listOperations(db, { limit: 50 }))),
        ...(await buffersOf((db) => ledger.listOperations(db, { status: "QUARANTINED" }))),
        ...(await buffersOf((db) => ledger.openCounts(db))),
        ...(await buffersOf((db) => ledger.findByPrefix(db, "op_000000000000000", { limit: 5 }))),
      ];
      return Object.fromEntries(all.map(({ name, buffers }) => [name, buffers]));
    };
    await history(database.db, 1_000);
    const small = await measure();
    await database.db.tx(async (tx) => {
      await tx.sql(undefined, "SET LOCAL session_replication_role = replica");
      await tx.sql(undefined, "DELETE FROM operations WHERE key LIKE 'past:%'");
    });
    await history(database.db, 60_000);
    await database.db.sql(undefined, "VACUUM ANALYZE operations");
    const large = await measure();
    expect(Object.keys(large).sort()).toEqual([
      "ledger.due",
      "ledger.find_by_prefix",
      "ledger.list",
      "ledger.list_open",
      "ledger.open_counts",
    ]);
    for (const [name, buffers] of Object.entries(large)) {
      expect(buffers, `${name}: ${small[name]} blocks with a thousand rows`).toBeLessThanOrEqual(
        2 * (small[name] ?? 0) + 20,
      );
    }
  });

  test("of taking what is due follows the index over due rows", async () => {
    const ctx = await openShop(database.db);
    await inState(ctx, "OUTCOME_UNKNOWN");
    await history(database.db, 30_000);
    const [row] = await database.db.tx(async (tx) => {
      await tx.sql(undefined, "SET LOCAL plan_cache_mode = force_generic_plan");
      return tx.sql<{ "QUERY PLAN": unknown }>(
        undefined,
        `EXPLAIN (FORMAT JSON) SELECT o.id FROM operations o, LATERAL (SELECT countersign_now() AS now) n
         WHERE o.due_at IS NOT NULL AND o.due_at <= n.now AND o.status IN ('DISPATCHED', 'OUTCOME_UNKNOWN', 'RECONCILING')
         ORDER BY o.due_at, o.id LIMIT 10 FOR NO KEY UPDATE OF o SKIP LOCKED`,
      );
    });
    expect(JSON.stringify(row)).toContain("operations_due");
  });
});
