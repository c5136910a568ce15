/** The audit chain: green under load, and every kind of tampering is named. */
import { describe, expect, test } from "vitest";
import { openDb } from "../../src/db/connect.js";
import { canonicalJson, sha256Hex } from "../../src/domain/canonical.js";
import * as ledger from "../../src/ledger/index.js";
import { oneOrder } from "../shop/shop-context.js";
import { withDatabase } from "../support/database.js";
import { deferred, inLanes, waitFor } from "../support/wait.js";
import { claimed, inState, openShop, outcomes, prepared, reread, settle } from "./scene.js";

const database = withDatabase({ poolSize: 20 });

/** Writes behind everybody's back, as somebody with the database's password could. */
async function tamper(text: string, parameters: readonly unknown[] = []): Promise<void> {
  await database.db.tx(async (tx) => {
    await tx.sql(undefined, "SET LOCAL session_replication_role = replica");
    await tx.sql(undefined, text, parameters);
  });
}

const first = async (): Promise<ledger.BrokenLink | undefined> =>
  (await ledger.verifyAudit(database.db)).broken[0];

describe("the chain", () => {
  test("is whole after two hundred parallel settles on four pools, sealed meanwhile (S-OP-3)", async () => {
    const ctx = await openShop(database.db, {
      content: oneOrder({ payment: { paymentIntent: "pi_1", captured: 1_000_000 } }),
    });
    const amounts = Array.from({ length: 200 }, (_, index) => 1n + BigInt(index));
    const claims = await inLanes(8, amounts, async (amount) => claimed(ctx, await prepared(ctx, amount)));
    const worlds = Array.from({ length: 4 }, (_, index) => ({
      ...ctx,
      db: database.openAnother(`w${index}`),
    }));
    let sealing = true;
    const sealer = (async () => {
      while (sealing) await ledger.sealBlocks(database.db);
    })();
    // As many at once as the four pools have connections: who waits for one longer than ten seconds is told so.
    await inLanes(40, claims, (claim, index) =>
      settle(worlds[index % 4] ?? ctx, claim, outcomes.committed(claim.operation, { ref: `re_${index}` })),
    );
    sealing = false;
    await sealer;
    await ledger.sealBlocks(database.db, { patienceMs: 30_000 });
    const report = await ledger.verifyAudit(database.db);
    expect(report.broken).toEqual([]);
    expect(report).toMatchObject({ intact: true, operations: 200, events: 600, sealedEvents: 600 });
  });

  test("is looked through whole, however long one statement of it takes", async () => {
    const ctx = await openShop(database.db);
    await inState(ctx, "CONFIRMED");
    const hasty = openDb({ url: database.url, applicationName: "hasty", statementTimeoutMs: 150 });
    const looked = deferred<void>();
    const locked = deferred<void>();
    const rival = database.db.tx(async (tx) => {
      await tx.sql(undefined, "LOCK TABLE total_entries IN ACCESS EXCLUSIVE MODE");
      locked.resolve();
      await looked.promise;
    });
    try {
      await locked.promise;
      await expect(hasty.sql(undefined, "SELECT 1 FROM total_entries", [])).rejects.toThrow(
        /statement timeout/,
      );
      const verified = ledger.verifyAudit(hasty);
      await waitFor(async () => {
        const waiting = await database.db.sql(
          undefined,
          `SELECT 1 FROM pg_stat_activity WHERE application_name = 'hasty' AND wait_event_type = 'Lock'
             AND clock_timestamp() - query_start > interval '300 ms'`,
        );
        return waiting.length === 1;
      });
      looked.resolve();
      expect((await verified).intact).toBe(true);
    } finally {
      looked.resolve();
      await rival;
      await hasty.close();
    }
  });

  test("holds times with microseconds as the database gives them back", async () => {
    const ctx = await openShop(database.db);
    const operation = await inState(ctx, "CONFIRMED");
    for (const event of await ledger.eventsOf(ctx.db, operation.id)) {
      expect(event.at).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/);
    }
    await ctx.db.sql(undefined, "SET TIME ZONE 'Asia/Kathmandu'");
    expect((await ledger.verifyAudit(ctx.db)).intact).toBe(true);
  });
});

describe("tampering is named", () => {
  const EVENT = "(SELECT id FROM operation_events ORDER BY id OFFSET 1 LIMIT 1)";
  test.each([
    [
      "one byte of an event's content",
      `UPDATE operation_events SET body = replace(body, 'claim', 'clain') WHERE id = ${EVENT}`,
      "event",
      "2",
    ],
    [
      "a column beside the content",
      `UPDATE operation_events SET actor = 'system:nobody' WHERE id = ${EVENT}`,
      "event",
      "2",
    ],
    [
      "a time by a microsecond",
      `UPDATE operation_events SET at = at + interval '1 microsecond' WHERE id = ${EVENT}`,
      "event",
      "2",
    ],
    ["a dropped event", `DELETE FROM operation_events WHERE id = ${EVENT}`, "event", "3"],
    [
      "a dropped last event",
      "DELETE FROM operation_events WHERE id = (SELECT max(id) FROM operation_events)",
      "operation",
      null,
    ],
    [
      "a status written by hand",
      "UPDATE operations SET status = 'REJECTED', result = '{}', reserved_minor = 0",
      "operation",
      null,
    ],
    ["an amount written by hand", "UPDATE operations SET amount_minor = 1", "operation", null],
    ["another customer", "UPDATE operations SET customer_ref = 'CUS-9'", "operation", null],
    ["all events gone", "DELETE FROM operation_events", "operation", null],
    ["an operation gone", "DELETE FROM operations", "event", "1"],
    ["a payment's figure", "UPDATE payments SET refunded = refunded - 1", "payment", null],
  ] as const)("%s", async (_name, text, what, where) => {
    const ctx = await openShop(database.db);
    const operation = await inState(ctx, "CONFIRMED");
    expect(await first()).toBeUndefined();
    await tamper(text);
    const broken = await first();
    expect(broken).toMatchObject({ what });
    if (where !== null) expect(broken?.where).toBe(where);
    if (what === "operation") expect(broken?.where).toBe(operation.id);
  });

  test("two events that changed places", async () => {
    const ctx = await openShop(database.db);
    await inState(ctx, "CONFIRMED");
    for (const [from, to] of [
      [2, 9],
      [3, 2],
      [9, 3],
    ]) {
      await tamper("UPDATE operation_events SET seq = $2 WHERE seq = $1", [from, to]);
    }
    expect(await first()).toMatchObject({ what: "event", where: "2" });
  });

  test("a history rewritten with hashes that recompute still breaks its block", async () => {
    const ctx = await openShop(database.db);
    const operation = await inState(ctx, "CONFIRMED");
    await ledger.sealBlocks(ctx.db, { patienceMs: 30_000 });
    const rows = await ctx.db.sql<{ id: bigint; body: string }>(
      undefined,
      "SELECT id, body FROM operation_events ORDER BY seq",
    );
    let prev = "";
    for (const { id, body } of rows) {
      const forged = canonicalJson({ ...JSON.parse(body), actor: "system:forger" });
      const hash = sha256Hex(`${prev}\n${forged}`);
      await tamper(
        "UPDATE operation_events SET body = $2, actor = 'system:forger', prev_hash = $3, hash = $4 WHERE id = $1",
        [id, forged, prev, hash],
      );
      prev = hash;
    }
    await tamper("UPDATE operations SET head_hash = $2 WHERE id = $1", [operation.id, prev]);
    expect(await ledger.verifyAudit(ctx.db)).toMatchObject({
      intact: false,
      broken: expect.arrayContaining([expect.objectContaining({ what: "block", where: "1" })]),
    });
  });

  test.each([
    ["a block's content", "UPDATE audit_blocks SET event_count = event_count + 1", "1"],
    ["a dropped block", "DELETE FROM audit_blocks WHERE seq = 1", "2"],
    [
      "an event moved below the seal",
      `WITH last AS (DELETE FROM operation_events WHERE id = (SELECT max(id) FROM operation_events) RETURNING *)
       INSERT INTO operation_events OVERRIDING SYSTEM VALUE
       SELECT 0, operation_id, seq, at, type, from_status, to_status, actor, attempt, body, prev_hash, hash FROM last`,
      "1",
    ],
  ] as const)("%s", async (_name, text, where) => {
    const ctx = await openShop(database.db);
    await inState(ctx, "CONFIRMED");
    await ledger.sealBlocks(ctx.db, { patienceMs: 30_000 });
    await prepared(ctx, 300n);
    await ledger.sealBlocks(ctx.db, { patienceMs: 30_000 });
    expect(await first()).toBeUndefined();
    await tamper(text);
    const report = await ledger.verifyAudit(ctx.db);
    expect(report.intact).toBe(false);
    expect(report.broken.filter(({ what }) => what === "block").at(0)?.where).toBe(where);
  });

  test("a hundred findings at most are kept, the earliest first", async () => {
    const ctx = await openShop(database.db);
    for (let index = 0; index < 60; index += 1) await prepared(ctx, 1n + BigInt(index));
    await tamper("UPDATE operation_events SET body = replace(body, 'prepare', 'prepbre')");
    const report = await ledger.verifyAudit(ctx.db);
    expect(report.broken).toHaveLength(100);
    expect(report.broken[0]).toMatchObject({ what: "event", where: "1" });
  });
});

describe("sealing", () => {
  test("waits for a running transaction, and seals nothing that it could still precede", async () => {
    const ctx = await openShop(database.db);
    const operation = await prepared(ctx);
    const inside = deferred<void>();
    const commit = deferred<void>();
    const slow = database.openAnother("slow").tx(async (tx) => {
      const claim = await ledger.claimIn(tx, ctx, {
        operation,
        worker: "w",
        request: { endpoint: "refunds.create", target: null, params: {} },
      });
      inside.resolve();
      await commit.promise;
      return claim;
    });
    await inside.promise;
    await prepared(ctx, 300n);
    expect(await ledger.sealBlocks(ctx.db, { patienceMs: 0 })).toBe(0);
    commit.resolve();
    expect((await slow).claimed).toBe(true);
    expect(await ledger.sealBlocks(ctx.db, { patienceMs: 30_000 })).toBe(3);
    expect(await ledger.sealBlocks(ctx.db)).toBe(0);
    expect((await ledger.verifyAudit(ctx.db)).broken).toEqual([]);
  });

  test("by several sealers at once makes one chain", async () => {
    const ctx = await openShop(database.db);
    for (let index = 0; index < 30; index += 1) await prepared(ctx, 1n + BigInt(index));
    await Promise.all(Array.from({ length: 5 }, () => ledger.sealBlocks(ctx.db, { patienceMs: 30_000 })));
    expect(await ledger.verifyAudit(ctx.db)).toMatchObject({ intact: true, sealedEvents: 30 });
  });
});

describe("personal data", () => {
  test("stands in the log as salted hashes, and can be erased without breaking it", async () => {
    const ctx = await openShop(database.db);
    const operation = await inState(ctx, "AWAITING_APPROVAL");
    await ctx.db.tx((tx) =>
      ledger.deny(tx, ctx, {
        operationId: operation.id,
        actor: "slack:U_SUP1",
        code: "denied",
        detail: "Tom called and does not want it any more",
      }),
    );
    const last = async () => (await ledger.eventsOf(ctx.db, operation.id)).at(-1);
    expect(await last()).toMatchObject({
      actor: "slack:U_SUP1",
      data: { detail: "Tom called and does not want it any more" },
    });
    const lines: string[] = [];
    for await (const line of ledger.exportAudit(ctx.db)) lines.push(line);
    expect(lines.join("\n")).not.toMatch(/U_SUP1|Tom/);

    expect(await ledger.eraseSubject(ctx.db, "U_SUP1")).toBe(1);
    expect(await ledger.eraseSubject(ctx.db, "Tom called and does not want it any more")).toBe(1);
    expect(await last()).toMatchObject({ actor: "erased", data: { detail: "erased" } });
    expect((await ledger.verifyAudit(ctx.db)).broken).toEqual([]);
  });

  test("of one person is one hash, also when ten events name them first at once", async () => {
    const ctx = await openShop(database.db);
    const operations = [];
    for (let index = 0; index < 10; index += 1) operations.push(await prepared(ctx, 1n + BigInt(index)));
    await Promise.all(
      operations.map((operation) =>
        ctx.db.tx((tx) =>
          ledger.deny(tx, ctx, {
            operationId: operation.id,
            actor: "slack:U_SUP1",
            code: "denied",
            detail: "no",
          }),
        ),
      ),
    );
    const actors = await ctx.db.sql(
      undefined,
      "SELECT DISTINCT actor FROM operation_events WHERE type = 'deny'",
    );
    expect(actors).toHaveLength(1);
    for (const operation of operations) expect((await reread(ctx.db, operation)).status).toBe("DENIED");
  });
});

describe("the export", () => {
  test("is JSON Lines from which everything recomputes without the database", async () => {
    const ctx = await openShop(database.db);
    await inState(ctx, "CONFIRMED");
    await ledger.sealBlocks(ctx.db, { patienceMs: 30_000 });
    const lines: Record<string, unknown>[] = [];
    for await (const line of ledger.exportAudit(ctx.db)) {
      expect(line).not.toContain("\n");
      lines.push(JSON.parse(line) as Record<string, unknown>);
    }
    expect(lines).toHaveLength(4);
    for (const { event, prevHash, hash } of lines.slice(0, 3)) {
      expect(sha256Hex(`${String(prevHash)}\n${canonicalJson(event as never)}`)).toBe(hash);
    }
    const content = lines.slice(0, 3).map(({ id, hash }) => `${String(id)}:${String(hash)}\n`);
    expect(lines[3]).toMatchObject({ block: 1, eventCount: 3, contentHash: sha256Hex(content.join("")) });
  });
});
