/**
 * Somebody with the owner's password changes one column of one row behind the product's back. The verifier names it, or the column
 * stands in the list of what the log does not vouch for (docs/security.md says the same in words).
 */
import { beforeEach, describe, expect, it } from "vitest";
import { sendClaimed } from "../../src/dispatch/index.js";
import type { OperationId } from "../../src/domain/ids.js";
import { claim, recordPolicyActivated, verifyAudit } from "../../src/ledger/index.js";
import { activatePolicy, readPolicyText } from "../../src/policy/index.js";
import { POLICY } from "../approvals/harness.js";
import { withPaymentsSandbox } from "../payments/support.js";
import { withDatabase } from "../support/database.js";
import { SEALS } from "../support/ledger-world.js";
import { type CaseWorld, withCaseWorld } from "./case-world.js";

const database = withDatabase();
const build = withCaseWorld(withPaymentsSandbox());

/** Why a change of these is not named; every other column is. */
const NOT_VOUCHED: Readonly<Record<string, Readonly<Record<string, readonly string[]>>>> = {
  operations: {
    "decides no money and no authority once it is over": [
      "version",
      "refund_scope",
      "item_refs",
      "reason",
      "predecessor_id",
      "owner_run_id",
      "ticket_id",
      "probes",
      "not_before",
      "last_send_ended_at",
      "unknown_since",
      "due_at",
      "lease_until",
      "lease_holder",
      "created_at",
      "updated_at",
      "resolved_by_person",
    ],
    "words about the outcome; the outcome itself is named": [
      "provider_status",
      "result",
      "quarantine_reason",
    ],
    "its policy, rules and answer are named; what else stands there is not read": ["decision"],
    "compared with the operation before every sending, which is refused": ["request"],
    "part of the key where it is set, and not set here": ["at_period_end"],
    "belongs to a cancellation, and this is a refund": ["subscription_id"],
  },
  attempts: { "when, and how long it might have taken": ["id", "timeout_ms", "finished_at"] },
  operation_events: {},
  approvals: {
    "what a card showed; what was released is the operation's own": [
      "binding",
      "policy_hash",
      "answer_hash",
      "card_version",
      "changes",
      "deny_note",
      "end_code",
      "end_detail",
      "suggested_minor",
    ],
    "the card's course": [
      "run_id",
      "turn_id",
      "ticket_id",
      "version",
      "predecessor_id",
      "gate",
      "released_with",
      "expires_at",
      "reminders_sent",
      "due_at",
      "decided_at",
      "created_at",
      "updated_at",
    ],
  },
  votes: {
    "what was seen and said; who voted, how and with which role is named": [
      "id",
      "note",
      "role_evidence",
      "seen",
      "at",
    ],
  },
  total_entries: {},
  payments: {
    "facts of shop and provider, read anew: the provider refuses what is not left": [
      "payment_intent",
      "currency",
      "captured",
    ],
    bookkeeping: ["version", "updated_at", "compared_at"],
  },
  policy_versions: {
    "must hash to its name whenever it is read, or nothing is judged by it": ["hash", "parsed"],
    bookkeeping: ["loaded_at"],
  },
};

/** Values where another one of the type would be refused. */
const SPECIAL: Readonly<Record<string, string>> = {
  "operations.kind": "'cancel_order'",
  "operations.status": "'REVERSED'",
  "attempts.verdict": "'unknown'",
  "approvals.state": "'VOIDED'",
  "votes.verdict": "'deny'",
  "operation_events.seq": "seq + 100",
  "operation_events.body": "'{'",
  "operation_events.operation_id": "operation_id || 'x'",
};

/** Another value of the column's type, as SQL over the old one. */
function another(type: string, column: string): string {
  if (/^(bigint|integer|smallint)$/.test(type)) return `COALESCE(${column}, 0) + 1`;
  if (type === "boolean") return `NOT ${column}`;
  if (type === "jsonb") return `COALESCE(${column}, '{}') || '{"x": 1}'`;
  if (type.startsWith("timestamp")) return `COALESCE(${column}, countersign_now()) + interval '1 day'`;
  if (type === "ARRAY") return `COALESCE(${column}, '{}') || '{x}'`;
  return `COALESCE(${column}, '') || 'x'`;
}

class Undo extends Error {}

let w: CaseWorld;
let id: OperationId;
/** A refund that a supervisor approved and the provider made. */
beforeEach(async () => {
  w = await build(database.db);
  await activatePolicy(database.db, readPolicyText(POLICY, "policy"), recordPolicyActivated(SEALS));
  await w.order({ ref: "ORD-1", captured: 20_000 });
  await w.order({ ref: "ORD-2", captured: 20_000 });
  const held = await w.ask("ORD-1", 6_000n);
  const [approval] = held.approvals;
  const [call] = held.calls;
  if (approval === undefined || call?.operationId === undefined) throw new Error("not held");
  id = call.operationId;
  await w.h.click("U_SUP1", approval, "approve");
  await w.h.release(held);
  expect(await w.work(w.worker("w"), id)).toMatchObject({ status: "CONFIRMED" });
});

/** What the verifier finds after one statement with triggers off; the statement is undone. */
async function foundAfter(statement: string): Promise<string[]> {
  let found: string[] = [];
  const undone = database.db.tx(
    async (tx) => {
      await tx.sql(undefined, "SET LOCAL session_replication_role = replica");
      await tx.sql(undefined, statement);
      const report = await verifyAudit(
        {
          ...database.db,
          sql: (name, text, parameters) => tx.sql(name, text, parameters),
          tx: (work) => work(tx),
        },
        SEALS,
      );
      found = report.broken.map(({ what, problem }) => `${what}: ${problem}`);
      throw new Undo();
    },
    { retries: 0 },
  );
  await expect(undone).rejects.toBeInstanceOf(Undo);
  return found;
}

describe("a column changed by hand", () => {
  it.each(Object.keys(NOT_VOUCHED))("of %s is named, or known not to be", async (table) => {
    const columns = await database.db.sql<{ name: string; type: string }>(
      undefined,
      `SELECT column_name AS name, data_type AS type FROM information_schema.columns
       WHERE table_schema = 'public' AND table_name = $1 AND is_identity = 'NO' AND column_name <> 'subject' ORDER BY ordinal_position`,
      [table],
    );
    expect(columns.length).toBeGreaterThan(4);
    const unnamed: string[] = [];
    for (const { name, type } of columns) {
      const value = SPECIAL[`${table}.${name}`] ?? another(type, name);
      const found = await foundAfter(`UPDATE ${table} SET ${name} = ${value}`);
      if (found.length === 0) unnamed.push(name);
    }
    expect(unnamed.sort()).toEqual(
      Object.values(NOT_VOUCHED[table] ?? {})
        .flat()
        .sort(),
    );
  });

  it.each([
    ["a verdict", "UPDATE attempts SET verdict = 'not_executed'", "operation: an attempt of it is not"],
    [
      "an attempt's reference",
      "UPDATE attempts SET provider_ref = 're_x'",
      "operation: an attempt of it is not",
    ],
    ["a vote gone", "DELETE FROM votes", "operation: it was released on more approvers than voted for it"],
    ["a vote turned", "UPDATE votes SET verdict = 'deny'", "operation: the votes that released it"],
    ["another voter", "UPDATE votes SET user_id = 'U_SUP2'", "operation: the votes that released it"],
    ["another role", "UPDATE votes SET role = 'finance'", "operation: the votes that released it"],
    [
      "a second voter asked for",
      "UPDATE approvals SET approvers_needed = 2",
      "operation: it was released on more",
    ],
    [
      "its approval turned into another's",
      "UPDATE approvals SET operation_id = 'op_x'",
      "operation: it was released on",
    ],
    [
      "an approval that was never released",
      "UPDATE approvals SET state = 'VOIDED'",
      "operation: its approval is not released",
    ],
    ["its approval gone", "DELETE FROM approvals", "operation: its approval is not released, or gone"],
    ["another filer", "UPDATE operations SET filers = '{U_OTHER}'", "operation: who asked for it is not"],
    ["a filer gone", "UPDATE operations SET filers = '{}'", "operation: who asked for it is not"],
    ["another policy", "UPDATE operations SET policy_hash = 'h'", "operation: its decision is not"],
    [
      "a rule taken out",
      "UPDATE operations SET decision = decision #- '{rules,0}'",
      "operation: its decision is not",
    ],
    [
      "another order behind the reference",
      "UPDATE operations SET order_id = 'x'",
      "operation: it points at other rows",
    ],
    [
      "another customer behind the reference",
      "UPDATE operations SET customer_id = 'x'",
      "operation: it points at other rows",
    ],
    [
      "money that went elsewhere",
      "UPDATE payments SET refunded_elsewhere = 1",
      "payment: what was refunded elsewhere is not what its events say",
    ],
    [
      "a policy's text",
      "UPDATE policy_versions SET body = replace(body, 'version: 1', 'version:  1')",
      "policy: its text is not",
    ],
    [
      "a policy's text and its hash",
      "UPDATE policy_versions SET body = '#', text_hash = encode(sha256('#'), 'hex')",
      "policy: its text is not",
    ],
  ])("%s is named", async (_what, statement, problem) => {
    expect(await foundAfter("SELECT 1")).toEqual([]);
    expect(await foundAfter(statement)).toEqual(expect.arrayContaining([expect.stringContaining(problem)]));
  });

  it("a body that is no JSON is named, and does not silence the rest", async () => {
    const found = await foundAfter(
      "WITH p AS (UPDATE payments SET refunded = 0) UPDATE operation_events SET body = '{' WHERE type = 'claim'",
    );
    expect(found).toEqual(
      expect.arrayContaining([
        "event: its content is not canonical JSON",
        "payment: reserved and refunded are not the sums of its operations",
      ]),
    );
  });

  it.each([
    ["a stored request", "request = jsonb_set(request, '{params,amount}', '9000')"],
    ["an amount", "amount_minor = 1100"],
    ["the key for the provider", "idempotency_key = 'countersign-made-up'"],
    ["a payment", "payment_intent = 'pi_elsewhere'"],
  ])(
    "%s that was changed while the outcome is open is never sent, and a person hears of it",
    async (_what, change) => {
      const next = await w.prepared("ORD-2", 1_000n);
      w.control.arm({ kind: "drop_before_commit", match: { method: "POST" } });
      await w.look(w.worker("w"), next);
      expect(await w.now(next)).toMatchObject({ status: "OUTCOME_UNKNOWN" });
      const committed = await w.committed();
      await database.db.tx(async (tx) => {
        await tx.sql(undefined, "SET LOCAL session_replication_role = replica");
        await tx.sql(undefined, `UPDATE operations SET ${change} WHERE id = $1`, [next]);
      });
      const posts = (await w.posts()).length;
      await w.work(w.worker("w"), next);
      expect((await w.posts()).length).toBe(posts);
      expect(await w.committed()).toBe(committed);
      expect(await w.now(next)).toMatchObject({
        status: "QUARANTINED",
        quarantineReason: expect.stringMatching(/^row_changed/),
      });
      const found = await database.db.sql<{ kind: string }>(
        undefined,
        "SELECT kind FROM incidents WHERE operation_id = $1",
        [next],
      );
      expect(found).toEqual([{ kind: "row_changed" }]);
    },
  );

  it("a cooling-off that was taken away is named", async () => {
    const policy = POLICY.replace(
      "    totals: []",
      "    totals: []\n    coolingOffMinutes: { GBP: { above: 100, minutes: 30 } }",
    );
    await activatePolicy(database.db, readPolicyText(policy, "policy"), recordPolicyActivated(SEALS));
    const waits = await w.prepared("ORD-2", 1_000n);
    expect(await w.look(w.worker("w"), waits)).toMatchObject({ status: "PREPARED", attempts: 0 });
    await database.db.sql(undefined, "UPDATE operations SET not_before = NULL WHERE id = $1", [waits]);
    expect((await verifyAudit(database.db)).broken).toMatchObject([
      { operationId: waits, problem: "it may be sent before its cooling-off is over" },
    ]);
    // Changed after the look at it, and before the claim: the claim is in the log, and nothing leaves.
    const ctx = w.worker("w");
    const operation = await w.now(waits);
    const request = ctx.provider.buildRequest(operation);
    const claimed = await claim(ctx, { operation, worker: ctx.worker, request });
    if (!claimed.claimed) throw new Error(claimed.why);
    const posts = (await w.posts()).length;
    expect(await sendClaimed(ctx, claimed)).toMatchObject({ status: "VOIDED" });
    expect((await w.posts()).length).toBe(posts);
    expect((await verifyAudit(database.db)).broken).toMatchObject([
      { operationId: waits, problem: "it was claimed before its cooling-off was over" },
    ]);
  });
});

describe("a decision made up by hand before it is used", () => {
  let approval: string;
  beforeEach(async () => {
    const held = await w.ask("ORD-2", 6_000n);
    approval = held.approvals[0]?.id ?? "";
    await w.h.click("U_FIN1", approval as never, "approve");
    expect(await foundAfter("SELECT 1")).toEqual([]);
  });
  const another = (table: string, changes: object, where: string): string =>
    `INSERT INTO ${table} SELECT (jsonb_populate_record(r, '${JSON.stringify(changes)}')).* FROM ${table} r WHERE ${where} LIMIT 1`;

  it.each([
    [
      "a vote that nobody gave",
      () =>
        another(
          "votes",
          { id: "vote_x", approval_id: approval, person: "p", user_id: "U_SUP2" },
          "verdict = 'approve'",
        ),
      "a vote about it is not what was voted",
    ],
    [
      "another number of people asked for",
      () => `UPDATE approvals SET approvers_needed = 2 WHERE id = '${approval}'`,
      "its approval asks for something else",
    ],
    [
      "another role asked for",
      () => `UPDATE approvals SET role = 'oncall' WHERE id = '${approval}'`,
      "its approval asks for something else",
    ],
    [
      "an approval that nobody asked for",
      () => another("approvals", { id: "apr_x", state: "VOIDED" }, `id = '${approval}'`),
      "its approval asks for something else",
    ],
    [
      "an approval that is gone",
      () => `DELETE FROM approvals WHERE id = '${approval}'`,
      "an approval of it is gone",
    ],
    [
      "a person's decision that nobody took",
      () => `INSERT INTO resolutions (id, operation_id, verb, state, operation_version, by, reason, evidence_ref, probe, expires_at)
        VALUES ('res_x', '${id}', 'reject', 'proposed', 1, 'U_ONC1', 'r', 'e', '{}', countersign_now() + interval '1 hour')`,
      "a person's decision about it is not what the log tells",
    ],
  ])("%s is named", async (_what, statement, problem) => {
    expect(await foundAfter(statement())).toEqual(expect.arrayContaining([expect.stringContaining(problem)]));
  });
});
