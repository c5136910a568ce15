/** PREPARE and the first claim in one commit: the same rows as one after the other, and only where nothing stands between them. */
import { expect, test } from "vitest";
import type { Operation } from "../../src/domain/operation.js";
import * as ledger from "../../src/ledger/index.js";
import { buildRequest } from "../../src/payments/request.js";
import { makeJudge } from "../../src/policy/index.js";
import { withDatabase } from "../support/database.js";
import { type LedgerWorld, OPEN_POLICY, putRun, refund } from "../support/ledger-world.js";
import {
  claimed,
  decide,
  intact,
  moneyOf,
  openShop,
  outcomes,
  passTime,
  prepared,
  reread,
  settle,
} from "./scene.js";

const database = withDatabase({ poolSize: 12 });

/** Decides a turn of these and claims what may be claimed at once. */
const atOnce = (ctx: LedgerWorld, ...proposals: readonly ledger.Proposal[]): Promise<ledger.PerCall[]> =>
  ctx.db.tx((tx) =>
    ledger.prepareTurn(tx, ctx, {
      calls: proposals.map((proposal) => ({ callId: proposal.callId, proposal })),
      judge: makeJudge(),
      onHold: async () => {},
      claim: { worker: "w1", buildRequest },
    }),
  );

async function one(ctx: LedgerWorld): Promise<{ operation: Operation; claim: ledger.Claim | null }> {
  const [call] = await atOnce(ctx, refund(await putRun(ctx.db), 2000n));
  if (call?.outcome !== "prepared") throw new Error(`not prepared but ${call?.outcome}`);
  return call;
}

async function oneClaimed(ctx: LedgerWorld): Promise<ledger.Claim> {
  const { claim } = await one(ctx);
  if (claim === null) throw new Error("not claimed");
  return claim;
}

/** Everything of an operation's rows that does not differ from one operation to the next. */
async function rowsOf(ctx: LedgerWorld, { id }: Operation): Promise<string> {
  const [row] = await ctx.db.sql<Record<string, unknown>>(
    undefined,
    `SELECT o.status, o.version, o.attempts, o.lease_token, o.lease_holder, o.event_count, o.reserved_minor, o.key_live, o.scopes,
            o.lease_until - o.first_claimed_at = interval '30 seconds' AS leased, o.due_at = o.lease_until AS due_with_lease,
            o.request->>'endpoint' AS endpoint, o.request->'params'->'amount' AS amount, o.not_before, o.last_send_ended_at,
            (SELECT jsonb_agg(jsonb_build_array(e.seq, e.type, e.from_status, e.to_status, e.attempt,
               (e.body::jsonb || jsonb_build_object('data', (e.body::jsonb->'data') - ARRAY['key', 'fingerprint', 'idempotencyKey', 'rules',
                 'run', 'ticket'])) - ARRAY['operation', 'at', 'actor']) ORDER BY e.id) FROM operation_events e WHERE e.operation_id = o.id) AS events,
            (SELECT jsonb_agg(jsonb_build_array(a.number, a.lease_token, a.worker, a.timeout_ms, a.verdict))
               FROM attempts a WHERE a.operation_id = o.id) AS attempts_made,
            (SELECT count(*)::int FROM total_entries t WHERE t.operation_id = o.id) AS counted
     FROM operations o WHERE o.id = $1`,
    [id],
  );
  return JSON.stringify(row, (_, value: unknown) => (typeof value === "bigint" ? `${value}` : value));
}

test("leaves the rows that PREPARE and a claim leave one after the other, in a chain that verifies", async () => {
  const ctx = await openShop(database.db);
  const claim = await oneClaimed(ctx);
  const together = await rowsOf(ctx, claim.operation);
  expect(claim).toMatchObject({
    attempt: 1,
    leaseToken: 1n,
    operation: { status: "DISPATCHED", version: 2n },
  });
  expect(claim.request).toEqual(buildRequest(claim.operation));
  expect(await intact(ctx.db)).toEqual([]);

  const operation = await prepared(ctx, 2001n);
  const apart = await ledger.claim(ctx, { operation, worker: "w1", request: buildRequest(operation) });
  if (!apart.claimed) throw new Error(`not claimed: ${apart.why}`);
  expect(together).toEqual((await rowsOf(ctx, apart.operation)).replaceAll("2001", "2000"));
});

test("is settled by who has the claim, in one statement, and the money moves", async () => {
  const ctx = await openShop(database.db);
  const claim = await oneClaimed(ctx);
  expect(await moneyOf(ctx.db)).toMatchObject({ reserved: 2000n, refunded: 0n });
  const { operation } = await settle(ctx, claim, outcomes.committed(claim.operation));
  expect(operation.status).toBe("CONFIRMED");
  expect(await moneyOf(ctx.db)).toMatchObject({ reserved: 0n, refunded: 2000n });
  expect((await ledger.eventsOf(ctx.db, operation.id)).map(({ type }) => type)).toEqual([
    "prepare",
    "claim",
    "settle_confirmed",
  ]);
  expect(await intact(ctx.db)).toEqual([]);
});

test("frozen and lifted in the database alone, it is prepared and not claimed", async () => {
  const ctx = await openShop(database.db);
  await ledger.freeze(ctx, { kind: "all", by: "U_ONC1", reason: "look first" });
  await ctx.db.sql(undefined, "UPDATE freeze_switches SET frozen = false");
  const { operation, claim } = await one(ctx);
  expect(claim).toBeNull();
  expect(operation).toMatchObject({ status: "PREPARED", attempts: 0 });
});

test("frozen, it is prepared and not claimed; thawed, whoever drives it claims it", async () => {
  const ctx = await openShop(database.db);
  await ledger.freeze(ctx, { kind: "refund", by: "slack:U_ONC1", reason: "look first" });
  const { operation, claim } = await one(ctx);
  expect(claim).toBeNull();
  expect(operation).toMatchObject({ status: "PREPARED", attempts: 0, leaseToken: 0n, version: 1n });
  expect(await ledger.attemptsOf(ctx.db, operation.id)).toEqual([]);
  expect((await ledger.eventsOf(ctx.db, operation.id)).map(({ type }) => type)).toEqual(["prepare"]);
  await ledger.thaw(ctx, { kind: "refund", by: "slack:U_ONC1" });
  expect((await claimed(ctx, operation)).attempt).toBe(1);
  expect(await intact(ctx.db)).toEqual([]);
});

test("a freeze that is not committed yet is waited for: nothing is claimed past it", async () => {
  const ctx = await openShop(database.db);
  const rival = await database.db.pool.connect();
  try {
    await rival.query("BEGIN");
    await rival.query("UPDATE freeze_switches SET frozen = true WHERE kind = 'refund'");
    const asked = one(ctx);
    await expect
      .poll(async () => (await database.db.sql(undefined, "SELECT 1 FROM pg_locks WHERE NOT granted")).length)
      .toBeGreaterThan(0);
    await rival.query("COMMIT");
    expect((await asked).claim).toBeNull();
  } finally {
    rival.release();
  }
});

test("what cools off is not claimed", async () => {
  const ctx = await openShop(database.db, {
    policy: OPEN_POLICY.replace(
      "coolingOffMinutes: {}",
      "coolingOffMinutes: { GBP: { above: 1000, minutes: 10 } }",
    ),
  });
  const { operation, claim } = await one(ctx);
  expect(claim).toBeNull();
  expect(operation.status).toBe("PREPARED");
  expect(operation.notBefore).not.toBeNull();
});

test("of a turn of two nothing is claimed: the second would wait under a lease that runs", async () => {
  const ctx = await openShop(database.db);
  const owner = await putRun(ctx.db);
  const calls = await atOnce(ctx, refund(owner, 1000n), refund(owner, 2000n));
  expect(calls).toMatchObject([
    { outcome: "prepared", claim: null, operation: { status: "PREPARED" } },
    { outcome: "prepared", claim: null, operation: { status: "PREPARED" } },
  ]);
});

test("the same intent from twenty runs at once is claimed by one of them", async () => {
  const ctx = await openShop(database.db);
  const owners = await Promise.all(Array.from({ length: 20 }, () => putRun(ctx.db)));
  const calls = (await Promise.all(owners.map((owner) => atOnce(ctx, refund(owner, 2000n))))).flat();
  expect(calls.filter((call) => call.outcome === "prepared" && call.claim !== null)).toHaveLength(1);
  expect(calls.filter((call) => call.outcome === "same")).toHaveLength(19);
  const [{ n } = { n: 0 }] = await ctx.db.sql<{ n: number }>(
    undefined,
    "SELECT count(*)::int AS n FROM attempts",
  );
  expect(n).toBe(1);
  expect(await intact(ctx.db)).toEqual([]);
});

test("nobody sends it: at the end of its lease it is due and taken, its money stays reserved, and who wakes then sends nothing", async () => {
  const ctx = await openShop(database.db);
  const claim = await oneClaimed(ctx);
  expect(await ledger.dueOperations(ctx.db, { limit: 10 })).toEqual([]);
  await passTime(ctx.db, ctx.timing.leaseMs);
  expect((await ledger.dueOperations(ctx.db, { limit: 10 })).map(({ id }) => id)).toEqual([
    claim.operation.id,
  ]);
  const [take] = await ledger.takeDue(ctx, { worker: "r1", limit: 1 });
  if (take === undefined) throw new Error("nothing was taken");
  expect(take.attempts).toMatchObject([{ number: 1, verdict: "open" }]);
  expect(
    await ledger.checkSend(ctx, { operationId: claim.operation.id, leaseToken: claim.leaseToken }),
  ).toEqual({ ok: false, code: "lease_lost" });
  await decide(ctx, take, { do: "later", why: "nothing is listed yet" });
  expect(await moneyOf(ctx.db)).toMatchObject({ reserved: 2000n });
  const late = await settle(ctx, claim, outcomes.committed(claim.operation));
  expect(late).toMatchObject({ settled: false, why: "fenced" });
  expect((await reread(ctx.db, claim.operation)).status).toBe("OUTCOME_UNKNOWN");
  expect(await intact(ctx.db)).toEqual([]);
});
