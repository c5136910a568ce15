import { beforeEach, describe, expect, it } from "vitest";
import { handlers } from "../../src/app/compose/handlers.js";
import { systemClock, systemIds } from "../../src/app/system.js";
import { drive } from "../../src/dispatch/index.js";
import { armFailpoint, type FailpointName } from "../../src/domain/failpoints.js";
import type { OperationId } from "../../src/domain/ids.js";
import type { Operation } from "../../src/domain/operation.js";
import { attemptsOf, evidenceOf, listOperations, resolve, verifyAudit } from "../../src/ledger/index.js";
import { reconcileDue } from "../../src/reconcile/index.js";
import { signatureHeader } from "../../src/sandbox/payments/index.js";
import { POLICY } from "../approvals/harness.js";
import { WEBHOOK_SECRET, withPaymentsSandbox } from "../payments/support.js";
import { withDatabase } from "../support/database.js";
import { deferred, waitFor } from "../support/wait.js";
import { type CaseWorld, withCaseWorld } from "./case-world.js";

const database = withDatabase({ poolSize: 20 });
const payments = withPaymentsSandbox();
const build = withCaseWorld(payments);
let w: CaseWorld;

beforeEach(async () => {
  w = await build(database.db);
  await w.order({ ref: "ORD-1", captured: 100_000 });
});

/** Stops whoever passes there first, until it is let go; later passers are not stopped. */
function pauseAt(name: FailpointName): { reached: Promise<void>; letGo(): void; disarm(): void } {
  const [reached, released] = [deferred<void>(), deferred<void>()];
  const disarm = armFailpoint(name, async () => {
    reached.resolve();
    await released.promise;
  });
  return { reached: reached.promise, letGo: () => released.resolve(), disarm };
}

describe("S-Q-1: a worker is stopped, another takes over, the first wakes up", () => {
  it.each([
    ["before it sends: it sends nothing when it wakes", "dispatch.before_send"],
    ["with the answer in its hand: that is kept as evidence and overwrites nothing", "dispatch.after_send"],
  ] as const)("%s", async (_when, point) => {
    const id = await w.prepared("ORD-1", 2_000n);
    const pause = pauseAt(point);
    const a = w.worker("a", database.openAnother());
    const sleeping = drive(a, id);
    await pause.reached;
    // The heartbeat of a stopped process stops too.
    await w.advance(a.timing.leaseMs + a.timing.providerTimeoutMs);
    await w.db.sql(
      undefined,
      "UPDATE operations SET lease_until = countersign_now() - interval '1 second', due_at = countersign_now()",
    );
    const b = w.worker("b");
    const done = await w.work(b, id);
    expect(done.status).toBe("CONFIRMED");
    pause.letGo();
    await sleeping;
    pause.disarm();

    expect(await w.now(id)).toMatchObject({ status: "CONFIRMED", providerRef: done.providerRef });
    expect(await w.committed()).toBe(1);
    const posts = await w.posts();
    expect(new Set(posts.map((post) => post.key)).size).toBe(1);
    expect(posts).toHaveLength(point === "dispatch.before_send" ? 1 : posts.length);
    const attempts = await attemptsOf(w.db, id);
    expect(attempts[0]?.verdict).toBe(point === "dispatch.before_send" ? "not_executed" : "committed");
    const path = await w.path(id);
    expect(path.filter((to) => to === "CONFIRMED")).toHaveLength(1);
    const told = await w.told();
    expect(told.filter((text) => text.startsWith("Refunded"))).toHaveLength(1);
    expect(await w.balance("ORD-1")).toMatchObject({ reserved: 0, refunded: 2_000 });
    await w.intact();
  });
});

describe("S-DB-1: one fact from many sides in the same millisecond", () => {
  it("twenty identical webhooks beside the answer: each is acknowledged, one row of evidence for each fact, one settle", async () => {
    const hang = w.control.arm({ kind: "commit_then_hang", delayMs: 60_000 });
    const id = await w.prepared("ORD-1", 2_000n);
    const driving = drive(w.worker("w"), id);
    await waitFor(() => w.control.fired(hang) > 0, { what: "the commit" });
    const [event] = await waitFor(async () => {
      const made = (await w.control.events()).filter((one) => one.type === "refund.created");
      return made.length > 0 ? made : false;
    });
    if (event === undefined) throw new Error("no event");
    const signature = signatureHeader(
      event.body,
      WEBHOOK_SECRET,
      Math.floor(systemClock.now().getTime() / 1000),
    );
    const web = w.worker("web");
    const heard = Promise.all(
      Array.from({ length: 20 }, () => w.hear(web, Buffer.from(event.body), signature)),
    );
    await w.control.hurry();
    expect(await heard).toEqual(Array.from({ length: 20 }, () => 200));
    await driving;
    expect((await w.work(web, id)).status).toBe("CONFIRMED");
    const facts = (await evidenceOf(w.db, id)).map((row) => `${row.providerRef}`);
    expect(facts).toHaveLength(1);
    expect((await w.path(id)).filter((to) => to === "CONFIRMED")).toHaveLength(1);
    expect(await w.balance("ORD-1")).toMatchObject({ reserved: 0, refunded: 2_000 });
  });
});

/** Every write to the table fails `times` times, first with a deadlock, then with a serialization failure. */
async function trouble(table: string, times: number): Promise<() => Promise<void>> {
  await w.db.sql(undefined, "CREATE SEQUENCE IF NOT EXISTS trouble_seen");
  await w.db.sql(undefined, "ALTER SEQUENCE trouble_seen RESTART");
  await w.db.sql(
    undefined,
    `CREATE OR REPLACE FUNCTION trouble() RETURNS trigger LANGUAGE plpgsql AS $$
     DECLARE n bigint := nextval('trouble_seen');
     BEGIN
       IF n <= ${times} THEN
         IF n % 2 = 1 THEN RAISE EXCEPTION 'injected' USING ERRCODE = '40P01'; END IF;
         RAISE EXCEPTION 'injected' USING ERRCODE = '40001';
       END IF;
       RETURN NEW;
     END $$`,
  );
  await w.db.sql(
    undefined,
    `CREATE TRIGGER trouble BEFORE INSERT OR UPDATE ON ${table} FOR EACH ROW EXECUTE FUNCTION trouble()`,
  );
  return async () => {
    await w.db.sql(undefined, `DROP TRIGGER trouble ON ${table}`);
  };
}

describe("S-DB-2: deadlocks and serialization failures", () => {
  it("once each at PREPARE, at the click, at settle and at resolve: tried again, and nobody reads of a failure", async () => {
    let calm = await trouble("operations", 2);
    const id = await w.prepared("ORD-1", 2_000n);
    await calm();

    const held = await w.ask("ORD-1", 18_000n);
    calm = await trouble("votes", 2);
    const clicked = await w.h.click("U_SUP1", held.approvals[0] ?? "apr_");
    await calm();
    expect(clicked.outcome).toBe("approved");

    calm = await trouble("operation_events", 2);
    expect((await w.look(w.worker("w"), id)).status).toBe("CONFIRMED");
    await calm();
    expect(await w.committed()).toBe(1);

    w.control.arm({ kind: "wrong_answer", amount: 2_101 });
    const wrong = await w.prepared("ORD-1", 2_100n);
    const parked = await w.work(w.worker("w"), wrong);
    expect(parked.status).toBe("QUARANTINED");
    calm = await trouble("operations", 2);
    const outcome = await resolve(w.worker("w"), {
      operationId: wrong,
      expectedVersion: parked.version,
      verb: "confirm",
      by: "U_ONC1",
      reason: "looked at it",
      evidenceRef: "https://dashboard.example/re_2",
      probe: { says: "unknown", reason: "not asked" },
      needsSecond: false,
      secondWithinMs: 3_600_000,
    });
    await calm();
    expect(["applied", "needs_second"]).toContain(outcome.outcome);
    expect((await w.told()).join(" ")).not.toMatch(/fail|denied|not carried out/i);
    await w.intact();
  });

  it("when the tries are used up, a claim changes nothing, sends nothing, and the next worker goes on", async () => {
    const id = await w.prepared("ORD-1", 2_000n);
    const before = await w.now(id);
    const calm = await trouble("operations", 1_000);
    await expect(drive(w.worker("w"), id)).rejects.toMatchObject({ code: expect.stringMatching(/^40/) });
    await calm();
    expect(await w.now(id)).toEqual(before);
    expect(await w.posts()).toEqual([]);
    expect((await w.look(w.worker("w"), id)).status).toBe("CONFIRMED");
    expect(await w.committed()).toBe(1);
  });

  it("when a settle cannot be written at all, the outcome is found at the provider instead", async () => {
    const id = await w.prepared("ORD-1", 2_000n);
    const ctx = w.worker("w");
    const pause = pauseAt("dispatch.after_send");
    const driving = drive(ctx, id);
    await pause.reached;
    const calm = await trouble("operations", 1_000);
    pause.letGo();
    await expect(driving).rejects.toMatchObject({ code: expect.stringMatching(/^40/) });
    pause.disarm();
    await calm();
    await w.advance(ctx.timing.leaseMs + ctx.timing.providerTimeoutMs);
    expect((await w.work(w.worker("next"), id)).status).toBe("CONFIRMED");
    expect(await w.committed()).toBe(1);
  });
});

describe("S-DB-3: twenty refunds hang at the provider at once", () => {
  it("a pool of five still prepares, clicks and lists, no transaction idles, and no lock is held meanwhile", async () => {
    const hang = w.control.arm({ kind: "hang_then_commit", delayMs: 600_000, times: null });
    const ids: OperationId[] = [];
    for (let index = 0; index < 20; index += 1) {
      await w.order({ ref: `ORD-H${index}`, captured: 5_000 });
      ids.push(await w.prepared(`ORD-H${index}`, 1_000n));
    }
    const five = database.openAnother();
    const ctx = { ...w.worker("w", five), timing: { ...w.worker("w").timing, providerTimeoutMs: 20_000 } };
    const sending = ids.map((id) => drive(ctx, id));
    await waitFor(async () => (await w.posts()).length === 20, { what: "twenty requests at the provider" });

    const before = performance.now();
    const held = await w.ask("ORD-1", 18_000n);
    expect((await w.h.click("U_SUP1", held.approvals[0] ?? "apr_")).outcome).toBe("approved");
    expect((await listOperations(five, { status: "DISPATCHED" })).rows).toHaveLength(20);
    const quick = await five.tx(async (tx) =>
      tx.sql(undefined, "SELECT id FROM operations WHERE status = 'DISPATCHED' FOR UPDATE NOWAIT"),
    );
    expect(quick).toHaveLength(20);
    const idle = await w.db.sql(
      undefined,
      `SELECT query FROM pg_stat_activity WHERE datname = current_database()
        AND state LIKE 'idle in transaction%' AND state_change < clock_timestamp() - interval '1 second'`,
    );
    expect(idle).toEqual([]);
    expect(performance.now() - before, "milliseconds for all of it").toBeLessThan(20_000);

    w.control.disarm(hang);
    await w.control.hurry();
    const ends = await Promise.all(sending);
    expect(new Set(ends.map((end) => end.status))).toEqual(new Set(["CONFIRMED"]));
    expect(await w.committed()).toBe(20);
    await w.intact();
  });
});

describe("S-OP-2: wake-ups from weeks ago", () => {
  it("find nothing to do: no request, no post, no changed row", async () => {
    const confirmed = await w.prepared("ORD-1", 2_000n);
    await w.work(w.worker("w"), confirmed);
    await w.order({ ref: "ORD-2", captured: 5_000 });
    await w.control.dispute("pi_ORD-2");
    const rejected = await w.prepared("ORD-2", 1_000n);
    await w.work(w.worker("w"), rejected);
    const denied = await w.ask("ORD-1", 18_000n);
    await w.h.click("U_SUP1", denied.approvals[0] ?? "apr_", "deny", { note: "no" });
    await w.h.release(denied);
    w.control.arm({ kind: "outcome", status: "pending" });
    const unknown = await w.prepared("ORD-1", 2_200n);
    await w.look(w.worker("w"), unknown);
    // On a slow machine it would be due again before the two hundredth wake-up, and rightly looked at.
    await database.db.sql(
      undefined,
      "UPDATE operations SET due_at = countersign_now() + interval '1 day' WHERE id = $1",
      [unknown],
    );

    const old = [confirmed, rejected, denied.calls[0]?.operationId ?? confirmed, unknown];
    const [posts, told] = [(await w.posts()).length, (await w.told()).length];
    const rows = await all();
    const missing: OperationId = systemIds.next("op_");
    const worker = w.worker("w");
    const wake = handlers({
      contexts: { dispatch: worker, reconcile: worker },
    } as unknown as Parameters<typeof handlers>[0]);
    for (let index = 0; index < 200; index += 1) await wake.operation(old[index % old.length] ?? "");
    await wake.operation(missing);
    await wake.operation("op_not an id");
    expect((await w.posts()).length).toBe(posts);
    expect((await w.told()).length).toBe(told);
    expect(await all()).toEqual(rows);

    async function all(): Promise<readonly Operation[]> {
      return (await listOperations(w.db, {})).rows;
    }
  });
});

describe("S-OP-3: the chain under load, and a changed byte", () => {
  it("two hundred refunds through four workers leave it whole; one changed byte is named", async () => {
    await w.h.policy(POLICY.replace("auto:  { GBP: 5000,", "auto:  { GBP: 200000,"));
    const ids: OperationId[] = [];
    for (let index = 0; index < 200; index += 1) {
      ids.push(await w.prepared("ORD-1", 100n + BigInt(index)));
    }
    const workers = Array.from({ length: 4 }, (_, n) => w.worker(`w${n}`, database.openAnother(`w${n}`)));
    await Promise.all(
      workers.map(async (ctx, n) => {
        for (const id of ids.filter((_, index) => index % workers.length === n)) await drive(ctx, id);
        await reconcileDue(ctx, { limit: 50 });
      }),
    );
    expect(await w.committed()).toBe(200);
    const whole = await verifyAudit(w.db);
    expect(whole).toMatchObject({ intact: true, operations: 200, broken: [] });
    const [event] = await w.db.sql<{ operation_id: string; seq: number }>(
      undefined,
      "SELECT operation_id, seq FROM operation_events WHERE type = 'settle_confirmed' ORDER BY id LIMIT 1",
    );
    await w.db.sql(undefined, "ALTER TABLE operation_events DISABLE TRIGGER ALL");
    await w.db.sql(
      undefined,
      `UPDATE operation_events SET body = replace(body, 'CONFIRMED', 'CONFIRMEd')
        WHERE operation_id = $1 AND seq = $2`,
      [event?.operation_id, event?.seq],
    );
    await w.db.sql(undefined, "ALTER TABLE operation_events ENABLE TRIGGER ALL");
    const broken = await verifyAudit(w.db);
    expect(broken.intact).toBe(false);
    expect(broken.broken[0]).toMatchObject({ operationId: event?.operation_id, seq: event?.seq });
  });
});
