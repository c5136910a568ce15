/** What somebody with the database's password changes behind the product's back is named by the verifier. */
import { describe, expect, test } from "vitest";
import * as ledger from "../../src/ledger/index.js";
import { activatePolicy, readPolicyText } from "../../src/policy/index.js";
import { withDatabase } from "../support/database.js";
import { OPEN_POLICY, putRun, refund, SEALS } from "../support/ledger-world.js";
import { HOLDING_POLICY, inState, intact, openShop, prepare, prepared } from "./scene.js";

const database = withDatabase();

/** Triggers are off, as they are for whoever owns the tables. */
async function tamper(text: string, parameters: readonly unknown[] = []): Promise<void> {
  await database.db.tx(async (tx) => {
    await tx.sql(undefined, "SET LOCAL session_replication_role = replica");
    await tx.sql(undefined, text, parameters);
  });
}

const problems = async (): Promise<string[]> =>
  (await ledger.verifyAudit(database.db)).broken.map(({ what, problem }) => `${what}: ${problem}`);

describe("an operation's row", () => {
  test.each([
    [
      "another provider reference",
      "UPDATE operations SET provider_ref = 're_other'",
      "operation: its provider reference is not",
    ],
    [
      "a hold after its end",
      "UPDATE operations SET reserved_minor = 1",
      "operation: it says to hold 1, 0 would be right",
    ],
    ["an attempt forgotten", "UPDATE operations SET attempts = 0", "operation: it counts 0 attempts"],
    [
      "a key made younger",
      "UPDATE operations SET first_claimed_at = first_claimed_at + interval '1 day'",
      "operation: the life of its key",
    ],
    ["an older lease", "UPDATE operations SET lease_token = lease_token - 1", "operation: its lease token"],
    [
      "its key set free, so that the same refund may come again",
      "UPDATE operations SET key_live = false",
      "operation: its key is free",
    ],
    [
      "an approval that never was",
      "UPDATE operations SET approval_id = 'apr_x'",
      "operation: it names an approval",
    ],
    [
      "an approver that never was",
      "UPDATE operations SET approved_by = '{U_SUP1}'",
      "operation: it names an approval",
    ],
    ["its attempt gone", "DELETE FROM attempts", "operation: its attempts are not numbered"],
    [
      "another idempotency key",
      "UPDATE operations SET idempotency_key = 'k'",
      "operation: its idempotency key",
    ],
    [
      "another payment",
      "UPDATE operations SET payment_intent = 'pi_2'",
      "operation: its fingerprint does not recompute",
    ],
  ] as const)("with %s", async (_name, text, problem) => {
    const ctx = await openShop(database.db);
    await inState(ctx, "CONFIRMED");
    expect(await problems()).toEqual([]);
    await tamper(text);
    expect(await problems()).toEqual(expect.arrayContaining([expect.stringContaining(problem)]));
  });

  test("is named by the look at that operation alone, and not at another", async () => {
    const ctx = await openShop(database.db);
    const changed = await inState(ctx, "CONFIRMED");
    const audit = await ledger.auditOperation(database.db, changed.id);
    expect(audit).toMatchObject({ broken: [], blocks: [], events: audit?.unsealed });
    await ledger.sealBlocks(database.db, { patienceMs: 30_000 });
    expect(await ledger.auditOperation(database.db, changed.id)).toMatchObject({
      broken: [],
      unsealed: 0,
      blocks: [{ seq: 1n, hash: expect.stringMatching(/^[0-9a-f]{64}$/) }],
    });
    await tamper("UPDATE operations SET provider_ref = 're_other'");
    const after = await ledger.auditOperation(database.db, changed.id);
    expect(after?.broken.map(({ what, where }) => [what, where])).toEqual([["operation", changed.id]]);
    expect(await ledger.auditOperation(database.db, "op_00000000000000000000000000000000")).toBeNull();
  });

  test("with another approver than its release names, or more of them", async () => {
    const ctx = await openShop(database.db, { policy: HOLDING_POLICY });
    const [call] = await prepare(ctx, refund(await putRun(ctx.db), 2000n));
    if (call?.outcome !== "held") throw new Error(`not held but ${call?.outcome}`);
    const { operation } = call;
    const released = await ctx.db.tx((tx) =>
      ledger.prepareTurn(tx, ctx, {
        calls: [
          {
            callId: call.callId,
            operationId: operation.id,
            bindingConfirmed: true,
            approval: {
              approvalId: "apr_1",
              approvedBy: ["U_SUP1"],
              accepts: async () => ({ holds: true }),
            },
          },
        ],
        judge: {
          plan: async () => ({ lock: [], count: ["shop"] }),
          judge: async () => ({ ...call.judgement, answer: "allow" }) as never,
        },
        onHold: async () => {},
      }),
    );
    expect(released).toMatchObject([{ outcome: "prepared" }]);
    expect(await problems()).toEqual([]);
    for (const approvers of ["{U_SUP2}", "{U_SUP1,U_SUP2}", "{}"]) {
      await tamper("UPDATE operations SET approved_by = $1::text[]", [approvers]);
      expect(await problems()).toEqual(["operation: who approved it is not who its release names"]);
    }
    await tamper("UPDATE operations SET approved_by = '{U_SUP1}', approval_id = 'apr_2'");
    expect(await problems()).toEqual(["operation: its approval is not the one that released it"]);
    await tamper("UPDATE operations SET approval_id = 'apr_1'");
    expect(await problems()).toEqual([]);
    // Who is erased can no longer be compared, and is no finding.
    expect(await ledger.eraseSubject(ctx.db, "U_SUP1")).toBe(1);
    expect(await problems()).toEqual([]);
  });
});

describe("what adds up", () => {
  test.each([
    [
      "a payment and its operation changed together",
      "WITH o AS (UPDATE operations SET reserved_minor = 0) UPDATE payments SET reserved = 0",
      [
        "operation: it says to hold 0, 2000 would be right in its state",
        "payment: reserved and refunded are not",
      ],
    ],
    [
      "an entry of the totals lowered",
      "UPDATE total_entries SET amount_minor = 1",
      ["operation: what the totals count", "total: its bucket"],
    ],
    [
      "an entry gone",
      "DELETE FROM total_entries WHERE scope = 'shop'",
      ["operation: what the totals count", "total: its bucket"],
    ],
    [
      "a bucket emptied",
      "UPDATE total_buckets SET count = 0, amount_minor = 0 WHERE width = 'hour'",
      ["total: its bucket"],
    ],
    [
      "a bucket gone",
      "DELETE FROM total_buckets WHERE width = 'minute' AND scope = 'shop'",
      ["total: its bucket"],
    ],
    [
      "a bucket that nobody made",
      `INSERT INTO total_buckets SELECT scope, 'cancel_order', width, starts_at, currency, shard, 1, -100000 FROM total_buckets`,
      ["total: its bucket"],
    ],
  ] as const)("with %s", async (_name, text, expected) => {
    const ctx = await openShop(database.db);
    await prepared(ctx);
    expect(await problems()).toEqual([]);
    await tamper(text);
    const found = await problems();
    for (const problem of expected)
      expect(found).toEqual(expect.arrayContaining([expect.stringContaining(problem)]));
  });
});

describe("freeze switches, incidents and the policy", () => {
  /** A freeze with its thaw, a trip, an incident that was closed and one that is open, and a policy that changed. */
  async function busyNight(): Promise<{ closed: string; open: string }> {
    const ctx = await openShop(database.db);
    for (const text of [OPEN_POLICY, HOLDING_POLICY]) {
      await activatePolicy(ctx.db, readPolicyText(text, "policy"), ledger.recordPolicyActivated(SEALS));
    }
    // The same policy again, as every start activates it, is no news.
    await activatePolicy(
      ctx.db,
      readPolicyText(HOLDING_POLICY, "policy"),
      ledger.recordPolicyActivated(SEALS),
    );
    await ledger.freeze(ctx, { kind: "refund", by: "U_ONC1", reason: "Tom says it is odd" });
    await ledger.askThaw(ctx, { kind: "refund", by: "U_ONC1", withinMs: 60_000 });
    await ledger.thaw(ctx, { kind: "refund", by: "U_ONC2" });
    await ledger.freeze(ctx, { kind: "all", by: "system:trip", reason: "20 unknown in an hour" });
    const found = async (dedupeKey: string): Promise<string> =>
      (
        await ctx.db.tx((tx) =>
          ledger.openIncident(tx, ctx, {
            kind: "orphan_effect",
            dedupeKey,
            operationId: null,
            paymentId: null,
            detail: { ref: "re_1", amount: 5 },
          }),
        )
      ).id;
    const closed = await found("a");
    const open = await found("b");
    await found("b");
    await ctx.db.tx((tx) =>
      ledger.closeIncident(tx, ctx, { id: closed, by: "U_ONC1", reason: "ours after all" }),
    );
    await ledger.sealBlocks(ctx.db, { patienceMs: 30_000 });
    return { closed, open };
  }

  test("stand in the log, each once, people and their texts behind hashes", async () => {
    const { closed, open } = await busyNight();
    const lines: string[] = [];
    for await (const line of ledger.exportAudit(database.db)) lines.push(line);
    const events = lines.flatMap((line) => {
      const { event } = JSON.parse(line) as { event?: { subject?: string; type: string; actor: string } };
      return event?.subject === undefined ? [] : [event];
    });
    expect(events.map(({ subject, type }) => `${subject} ${type}`)).toEqual([
      "policy policy_activated",
      "policy policy_activated",
      "freeze:refund freeze",
      "freeze:refund thaw_asked",
      "freeze:refund thaw",
      "freeze:all freeze",
      `incident:${closed} incident_opened`,
      `incident:${open} incident_opened`,
      `incident:${closed} incident_closed`,
    ]);
    expect(events.map(({ actor }) => actor.split(":")[0])).toEqual([
      "system",
      "system",
      "person",
      "person",
      "person",
      "system",
      "system",
      "system",
      "person",
    ]);
    expect(lines.join("\n")).not.toMatch(/U_ONC|Tom says|ours after all/);
    expect(await ledger.verifyAudit(database.db)).toMatchObject({
      intact: true,
      subjectEvents: 9,
      sealedEvents: 9,
    });
  });

  test.each([
    [
      "an event's content",
      "UPDATE operation_events SET body = replace(body, 'thaw_asked', 'thaw_taken') WHERE type = 'thaw_asked'",
      "event: its hash does not recompute",
    ],
    [
      "an event's actor",
      "UPDATE operation_events SET actor = 'system:nobody' WHERE type = 'thaw'",
      "event: its column actor differs",
    ],
    [
      "a dropped event",
      "DELETE FROM operation_events WHERE type = 'thaw_asked'",
      "event: event 2 is missing",
    ],
    [
      "a dropped last event",
      "DELETE FROM operation_events WHERE type = 'incident_closed'",
      "subject: it counts 2 events, 1 are there",
    ],
    [
      "a whole chain gone",
      "WITH e AS (DELETE FROM operation_events WHERE subject = 'policy') DELETE FROM audit_heads WHERE subject = 'policy'",
      "block: events were added or removed",
    ],
    ["a head gone", "DELETE FROM audit_heads WHERE subject = 'freeze:all'", "subject: its head is gone"],
    [
      "a switch thawed by hand",
      "UPDATE freeze_switches SET frozen = false WHERE kind = 'all'",
      "subject: it is not frozen, its events say otherwise",
    ],
    [
      "a switch frozen by hand",
      "UPDATE freeze_switches SET frozen = true WHERE kind = 'cancel_order'",
      "subject: it is frozen, its events say otherwise",
    ],
    ["a switch gone", "DELETE FROM freeze_switches WHERE kind = 'all'", "subject: the switch is gone"],
    [
      "an incident closed by hand",
      "UPDATE incidents SET status = 'closed'",
      "subject: it is closed, its events say open",
    ],
    [
      "an incident turned into another",
      "UPDATE incidents SET kind = 'reversed'",
      "subject: it is not what was opened",
    ],
    ["an incident gone", "DELETE FROM incidents WHERE status = 'open'", "subject: the incident is gone"],
    [
      "an incident that nobody opened",
      "INSERT INTO incidents (id, kind, dedupe_key, detail) VALUES ('inc_x', 'reversed', 'x', '{}')",
      "subject: no event opened it",
    ],
    [
      "another policy put in force by hand",
      "UPDATE active_policy SET hash = (SELECT hash FROM policy_versions WHERE hash <> (SELECT hash FROM active_policy) LIMIT 1)",
      "subject: the active policy is",
    ],
  ] as const)("with %s", async (_name, text, problem) => {
    await busyNight();
    expect(await intact(database.db)).toEqual([]);
    await tamper(text);
    expect(await problems()).toEqual(expect.arrayContaining([expect.stringContaining(problem)]));
  });

  test("with two events that changed places", async () => {
    await busyNight();
    for (const [from, to] of [
      [2, 9],
      [3, 2],
      [9, 3],
    ]) {
      await tamper("UPDATE operation_events SET seq = $2 WHERE subject = 'freeze:refund' AND seq = $1", [
        from,
        to,
      ]);
    }
    expect(await problems()).toEqual(
      expect.arrayContaining([expect.stringContaining("event: it does not follow its predecessor")]),
    );
  });

  test("refuse changes to their events from anybody", async () => {
    await busyNight();
    await expect(
      database.db.sql(undefined, "DELETE FROM operation_events WHERE subject = 'policy'"),
    ).rejects.toThrow("append-only");
  });

  test("opened at once by many transactions make one chain each, without a gap", async () => {
    const ctx = await openShop(database.db);
    await Promise.all(
      Array.from({ length: 10 }, (_, index) =>
        ledger.freeze(ctx, {
          kind: index % 2 === 0 ? "refund" : "cancel_order",
          by: "U_ONC1",
          reason: "drill",
        }),
      ),
    );
    await Promise.all(Array.from({ length: 6 }, () => ledger.thaw(ctx, { kind: "refund", by: "U_ONC2" })));
    expect(await ledger.verifyAudit(ctx.db)).toMatchObject({ intact: true, subjectEvents: 3 });
  });
});
