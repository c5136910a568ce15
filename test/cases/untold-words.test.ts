/**
 * People's words that were changed in the database after they were given: a retry, a freeze, a policy, a deadline for Undo, a vote, who
 * asked. What the log was told is what counts; and what people did honestly is stopped by none of that.
 */
import { beforeEach, describe, expect, it } from "vitest";
import { undo } from "../../src/approvals/index.js";
import type { Db } from "../../src/db/connect.js";
import { drive, sendClaimed } from "../../src/dispatch/index.js";
import type { ApprovalId, OperationId } from "../../src/domain/ids.js";
import type { Operation } from "../../src/domain/operation.js";
import {
  freeze,
  freezeStates,
  recordPolicyActivated,
  sendAuthorised,
  setLiftedBack,
  thaw,
  verifyAudit,
} from "../../src/ledger/index.js";
import { activatePolicy, readPolicyText } from "../../src/policy/index.js";
import { reconcileOne } from "../../src/reconcile/index.js";
import { POLICY } from "../approvals/harness.js";
import { moveClock, onlyApproval, operationAt } from "../approvals/steps.js";
import { form } from "../ops/forms.js";
import { type OpsWorld, withOpsWorld } from "../ops/ops-world.js";
import { withPaymentsSandbox } from "../payments/support.js";
import { writeByHand } from "../support/by-hand.js";
import { countersOf } from "../support/counters.js";
import { withDatabase } from "../support/database.js";
import { SEALS } from "../support/ledger-world.js";

const database = withDatabase({ poolSize: 12 });
const payments = withPaymentsSandbox();
const build = withOpsWorld(payments);
const { posts, committed, incidents } = countersOf(database, payments);
const CLERK_POLICY = POLICY.replace("auto:  { GBP: 5000,", "auto:  { GBP: 90000,");
const COOLING_POLICY = POLICY.replace(
  "totals: []",
  "totals: []\n    coolingOffMinutes: { GBP: { above: 1, minutes: 10 } }",
);

const RETRY_OF_REOPENING =
  "UPDATE resolutions SET verb = 'retry' WHERE operation_id = $1 AND verb = 'reopen'";

let w: OpsWorld;
beforeEach(async () => {
  w = await build(database.db);
});

const byHand = (id: string | null, ...statements: readonly string[]): Promise<void> =>
  writeByHand(database.db, id, ...statements);

async function parked(): Promise<Operation> {
  payments.sandbox.control.arm({ kind: "drop_before_commit" });
  const operation = await w.quarantined();
  if (operation.status !== "QUARANTINED") throw new Error(operation.status);
  return operation;
}

async function byTwo(operation: Operation, verb: "reject" | "retry"): Promise<void> {
  const first = await w.ops.resolve(form(operation, verb));
  if (first.outcome !== "needs_second") throw new Error(JSON.stringify(first.outcome));
  const second = await w.ops.second({
    resolutionId: first.resolution.id,
    userId: "U_ONC2",
    verdict: "agree",
  });
  if (second.outcome !== "resolved") throw new Error(second.outcome);
}

/** Rejected by two people, and opened again by one. */
async function openedAgain(): Promise<Operation> {
  const operation = await parked();
  await byTwo(operation, "reject");
  await w.ops.reopen({ ref: operation.id, userId: "U_ONC1", reason: "wrong row", evidenceRef: "note 7" });
  return operation;
}

async function sendAgain(id: OperationId): Promise<Operation> {
  const claimed = await sendAuthorised(w.dispatch, { operationId: id, worker: "test" });
  if (claimed.claimed) await sendClaimed(w.dispatch, claimed);
  return w.now(id);
}

/** Looked at hour by hour, as the reconciler does, until it is a person's. */
async function untilParked(id: OperationId, hours: number): Promise<Operation> {
  for (let hour = hours; hour < hours + 6 && (await w.now(id)).status !== "QUARANTINED"; hour += 1) {
    await moveClock(w.h.db, 61 * hour);
    await reconcileOne(w.reconcile, id, "due");
  }
  return w.now(id);
}

const held = async (amount = 18_000n) => w.h.turn(await w.h.ticket(), [{ order: "ORD-1", amount }]);

describe("a retry", () => {
  it("made of a person's reopening: nothing is sent", async () => {
    const operation = await openedAgain();
    const before = await posts();
    await byHand(operation.id, RETRY_OF_REOPENING);
    await sendAgain(operation.id);
    expect(await untilParked(operation.id, 6)).toMatchObject({ status: "QUARANTINED" });
    expect(await posts()).toBe(before);
    expect(await incidents()).toContain("row_changed");
  });

  it("made of a person's reopening, and somebody else asks for the same before it leaves: nothing is sent", async () => {
    const operation = await openedAgain();
    const before = await posts();
    await byHand(operation.id, RETRY_OF_REOPENING);
    const claimed = await sendAuthorised(w.dispatch, { operationId: operation.id, worker: "test" });
    if (!claimed.claimed) throw new Error(claimed.why);
    expect((await held()).outcomes).toMatchObject([{ operation: { id: operation.id } }]);
    await sendClaimed(w.dispatch, claimed);
    expect(await posts()).toBe(before);
  });

  it("used once, and made to count again: nothing is sent", async () => {
    const operation = await parked();
    await byTwo(operation, "retry");
    const lost = payments.sandbox.control.arm({ kind: "drop_before_commit", times: null });
    const down = payments.sandbox.control.arm({ kind: "read_down", how: "drop" });
    await sendAgain(operation.id);
    expect(await untilParked(operation.id, 6)).toMatchObject({ status: "QUARANTINED" });
    payments.sandbox.control.disarm(lost);
    payments.sandbox.control.disarm(down);
    const before = await posts();
    await byHand(
      operation.id,
      "UPDATE resolutions r SET operation_version = o.version FROM operations o WHERE o.id = r.operation_id AND o.id = $1",
    );
    await sendAgain(operation.id);
    expect(await untilParked(operation.id, 12)).toMatchObject({ status: "QUARANTINED" });
    expect(await posts()).toBe(before);
    expect(await incidents()).toContain("row_changed");
  });

  it("that two people gave is sent, also after a reopening", async () => {
    const operation = await openedAgain();
    await byTwo(await w.now(operation.id), "retry");
    expect(await sendAgain(operation.id)).toMatchObject({ status: "CONFIRMED" });
    expect(await committed()).toBe(1);
    expect(await incidents()).toEqual([]);
  });
});

describe("a freeze", () => {
  it("taken back in the row alone holds on; a person's thaw ends it", async () => {
    const id = await w.prepared(2_000n);
    await freeze(w.dispatch, { kind: "refund", by: "U_ONC1", reason: "odd refunds" });
    await byHand(null, "UPDATE freeze_switches SET frozen = false");
    await drive(w.dispatch, id);
    expect(await posts()).toBe(0);
    expect(await w.now(id)).toMatchObject({ status: "PREPARED", attempts: 0 });
    await freeze(w.dispatch, { kind: "refund", by: "U_ONC1", reason: "still" });
    await thaw(w.dispatch, { kind: "refund", by: "U_ONC2" });
    expect(await drive(w.dispatch, id)).toMatchObject({ status: "CONFIRMED" });
    expect(await committed()).toBe(1);
  });
});

describe("a freeze that was lifted in the database", () => {
  const switches = async (): Promise<readonly { kind: string; frozen: boolean; by: string | null }[]> =>
    (await freezeStates(database.db)).map(({ kind, frozen, by }) => ({ kind, frozen, by }));

  it("is set back as the log tells it, once, and on-call hears of it", async () => {
    const id = await w.prepared(2_000n);
    await freeze(w.dispatch, { kind: "refund", by: "U_ONC1", reason: "odd refunds" });
    expect(await setLiftedBack(w.dispatch)).toBe(0);
    await byHand(null, "UPDATE freeze_switches SET frozen = false, by = 'U_ONC2'");
    expect((await verifyAudit(database.db)).broken).not.toEqual([]);
    expect(await Promise.all([setLiftedBack(w.dispatch), setLiftedBack(w.dispatch)])).toContain(1);
    expect(await setLiftedBack(w.dispatch)).toBe(0);
    // Who froze it is whom the log names: another person must thaw it.
    expect(await switches()).toContainEqual({ kind: "refund", frozen: true, by: "U_ONC1" });
    expect((await switches()).filter(({ frozen }) => frozen)).toHaveLength(1);
    expect(await incidents()).toEqual(["row_changed"]);
    expect((await verifyAudit(database.db)).broken).toEqual([]);
    await thaw(w.dispatch, { kind: "refund", by: "U_ONC2" });
    expect(await setLiftedBack(w.dispatch)).toBe(0);
    expect(await drive(w.dispatch, id)).toMatchObject({ status: "CONFIRMED" });
    expect(await committed()).toBe(1);
  });
});

describe("a freeze switch that was deleted in the database", () => {
  it.each(["all", "refund"] as const)(
    "%s holds all the same, is put back, and on-call hears of it",
    async (kind) => {
      const id = await w.prepared(2_000n);
      await freeze(w.dispatch, { kind, by: "U_ONC1", reason: "odd refunds" });
      await byHand(kind, "DELETE FROM freeze_switches WHERE kind = $1");
      await drive(w.dispatch, id);
      expect(await posts()).toBe(0);
      expect(await w.now(id)).toMatchObject({ status: "PREPARED", attempts: 0 });
      expect(await Promise.all([setLiftedBack(w.dispatch), setLiftedBack(w.dispatch)])).toContain(1);
      expect(await setLiftedBack(w.dispatch)).toBe(0);
      expect(await incidents()).toEqual(["row_changed"]);
      expect((await verifyAudit(database.db)).broken).toEqual([]);
      expect(await freezeStates(database.db)).toContainEqual(
        expect.objectContaining({ kind, frozen: true, by: "U_ONC1" }),
      );
      await thaw(w.dispatch, { kind, by: "U_ONC2" });
      expect(await setLiftedBack(w.dispatch)).toBe(0);
      // Again, and it is news again.
      await byHand(kind, "DELETE FROM freeze_switches WHERE kind = $1");
      expect(await setLiftedBack(w.dispatch)).toBe(1);
      expect(await incidents()).toEqual(["row_changed", "row_changed"]);
      expect(await drive(w.dispatch, id)).toMatchObject({ status: "CONFIRMED" });
      expect(await committed()).toBe(1);
    },
  );

  it("holds back what is prepared and claimed at once", async () => {
    await byHand(null, "DELETE FROM freeze_switches WHERE kind = 'all'");
    const id = await w.prepared(2_000n);
    await drive(w.dispatch, id);
    expect(await posts()).toBe(0);
    expect(await setLiftedBack(w.dispatch)).toBe(1);
    expect(await drive(w.dispatch, id)).toMatchObject({ status: "CONFIRMED" });
  });
});

describe("the policy in force", () => {
  it("changed in the row to an older, wider one: what it lets through is not sent", async () => {
    const record = recordPolicyActivated(SEALS);
    await activatePolicy(database.db, readPolicyText(CLERK_POLICY, "wide.yaml"), record);
    await activatePolicy(database.db, readPolicyText(POLICY, "policy.yaml"), record);
    const wide = readPolicyText(CLERK_POLICY, "wide.yaml").hash;
    await byHand(wide, "UPDATE active_policy SET hash = $1");
    const call = await held();
    expect(call.outcomes.map(({ outcome }) => outcome)).toEqual(["prepared"]);
    await drive(w.dispatch, operationAt(call, 0));
    expect(await posts()).toBe(0);
    expect(await incidents()).toEqual(["row_changed"]);
  });

  it("changed by a person between proposal, release and claim stops nothing that was decided under it", async () => {
    const record = recordPolicyActivated(SEALS);
    await activatePolicy(database.db, readPolicyText(CLERK_POLICY, "wide.yaml"), record);
    const call = await held();
    await activatePolicy(database.db, readPolicyText(POLICY, "policy.yaml"), record);
    expect(await drive(w.dispatch, operationAt(call, 0))).toMatchObject({ status: "CONFIRMED" });
    expect(await incidents()).toEqual([]);
  });
});

describe("the time to undo", () => {
  it("taken away in the row: nothing is sent before it is over", async () => {
    await w.h.policy(COOLING_POLICY);
    const call = await held();
    await w.h.click("U_SUP1", onlyApproval(call));
    await w.h.release(call);
    const id = operationAt(call, 0);
    expect((await w.now(id)).notBefore).not.toBeNull();
    await byHand(id, "UPDATE operations SET not_before = NULL, due_at = countersign_now() WHERE id = $1");
    await drive(w.dispatch, id);
    expect(await posts()).toBe(0);
    expect(await incidents()).toEqual(["row_changed"]);
  });
});

describe("who asked and who voted", () => {
  it("a filer who is taken out of the row approves their own: nothing is sent", async () => {
    const call = await w.h.turn(await w.h.ticket({ filers: ["U_SUP1"] }), [
      { order: "ORD-1", amount: 18_000n },
    ]);
    const id = operationAt(call, 0);
    await byHand(id, "UPDATE operations SET filers = '{U_AGENT}' WHERE id = $1");
    await w.h.click("U_SUP1", onlyApproval(call));
    await w.h.release(call);
    await drive(w.dispatch, id);
    expect(await posts()).toBe(0);
  });

  it("a vote that is made another person's after the release: nothing is sent", async () => {
    const call = await held();
    const id = operationAt(call, 0);
    await w.h.click("U_SUP1", onlyApproval(call));
    await w.h.release(call);
    w.h.people.all.set("U_SUP1", { roles: [] });
    await byHand(
      id,
      "UPDATE votes SET user_id = 'U_SUP2', person = 'person:U_SUP2' WHERE approval_id = (SELECT approval_id FROM operations WHERE id = $1)",
      "UPDATE operations SET approved_by = '{U_SUP2}' WHERE id = $1",
    );
    await drive(w.dispatch, id);
    expect(await posts()).toBe(0);
  });

  it("votes that are written into the log without its chain: nothing is sent", async () => {
    const call = await held(60_000n);
    const id = operationAt(call, 0);
    await w.h.click("U_FIN1", onlyApproval(call));
    await byHand(
      id,
      `INSERT INTO votes SELECT (jsonb_populate_record(v, '{"id": "vote_x", "person": "T_HOME:U_FIN2", "user_id": "U_FIN2"}')).*
         FROM votes v JOIN approvals a ON a.id = v.approval_id WHERE a.operation_id = $1`,
      "UPDATE approvals SET state = 'APPROVED' WHERE operation_id = $1",
      `INSERT INTO operation_events (subject, seq, at, type, actor, body, prev_hash, hash)
       SELECT e.subject, e.seq + 1, e.at, e.type, 'person:made-up', e.body, e.hash, 'ff' FROM operation_events e JOIN approvals a ON e.subject = 'approval:' || a.id
       WHERE a.operation_id = $1 AND e.type = 'voted'`,
    );
    await w.h.release(call);
    await drive(w.dispatch, id);
    expect(await posts()).toBe(0);
  });

  it("asked for a second time in the log, with one person less: nothing is sent", async () => {
    const call = await held(60_000n);
    const id = operationAt(call, 0);
    await w.h.click("U_FIN1", onlyApproval(call));
    const body = `replace(replace(e.body, '"approvers":2', '"approvers":1'), '"seq":1', '"seq":0')`;
    await byHand(
      id,
      "UPDATE approvals SET state = 'APPROVED', approvers_needed = 1 WHERE operation_id = $1",
      `INSERT INTO operation_events (subject, seq, at, type, actor, body, prev_hash, hash)
       SELECT e.subject, 0, e.at, e.type, e.actor, ${body}, 'before', 'ff' FROM operation_events e JOIN approvals a ON e.subject = 'approval:' || a.id
       WHERE a.operation_id = $1 AND e.type = 'approval_asked'`,
    );
    await w.h.release(call);
    if ((await w.now(id)).status === "PREPARED") await drive(w.dispatch, id);
    expect(await posts()).toBe(0);
  });

  it("a release in the log that names no approval: nothing is sent", async () => {
    const call = await held();
    const id = operationAt(call, 0);
    const body = `'{"actor":"system:approvals","at":"' || to_char(n.at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') || '","attempt":null,"data":{},"from":"AWAITING_APPROVAL","operation":' || to_json(o.id)::text || ',"seq":2,"to":"PREPARED","token":0,"type":"release"}'`;
    await byHand(
      id,
      `WITH n AS (SELECT countersign_now() AS at), e AS (SELECT o.id, o.head_hash, n.at, ${body} AS body FROM operations o, n WHERE o.id = $1),
         h AS (SELECT e.*, encode(sha256(convert_to(e.head_hash || E'\\n' || e.body, 'UTF8')), 'hex') AS hash FROM e),
         i AS (INSERT INTO operation_events (operation_id, seq, at, type, from_status, to_status, actor, body, prev_hash, hash)
           SELECT h.id, 2, h.at, 'release', 'AWAITING_APPROVAL', 'PREPARED', 'system:approvals', h.body, h.head_hash, h.hash FROM h)
       UPDATE operations o SET status = 'PREPARED', reserved_minor = amount_minor, due_at = h.at, event_count = 2, head_hash = h.hash, version = 2 FROM h WHERE o.id = h.id`,
      "UPDATE payments SET reserved = reserved + 18000 WHERE id = (SELECT payment_id FROM operations WHERE id = $1)",
    );
    await drive(w.dispatch, id);
    expect(await posts()).toBe(0);
    expect(await incidents()).toEqual(["row_changed"]);
  });
});

describe("an approval from before the log told of approvals", () => {
  it("with one vote from then and one from now: it is sent, and the audit finds nothing", async () => {
    const [{ at = null } = {}] = await database.db.sql<{ at: string | null }>(
      undefined,
      "SELECT finished_at::text AS at FROM _prisma_migrations WHERE migration_name = '0010_other_currency'",
    );
    const call = await held(60_000n);
    const id = operationAt(call, 0);
    const approval = onlyApproval(call);
    await w.h.click("U_FIN1", approval);
    await byHand(
      approval.id,
      "DELETE FROM operation_events WHERE subject = 'approval:' || $1",
      "DELETE FROM audit_heads WHERE subject = 'approval:' || $1",
    );
    await byHand(
      null,
      "UPDATE _prisma_migrations SET finished_at = now() WHERE migration_name = '0010_other_currency'",
    );
    try {
      await w.h.click("U_FIN2", approval);
      await w.h.release(call);
      expect(await drive(w.dispatch, id)).toMatchObject({ status: "CONFIRMED" });
      expect(await incidents()).toEqual([]);
      expect((await verifyAudit(database.db)).broken).toEqual([]);
    } finally {
      await byHand(
        at,
        "UPDATE _prisma_migrations SET finished_at = $1::timestamptz WHERE migration_name = '0010_other_currency'",
      );
    }
  });
});

describe("what people do honestly while a worker looks", () => {
  it.each(["before the log is read", "after it"])(
    "an undo %s: it is undone, and nobody reads of a changed row",
    async (when) => {
      const call = await held();
      const id = operationAt(call, 0);
      const approval = onlyApproval(call);
      await w.h.click("U_SUP1", approval);
      await w.h.release(call);
      let done = false;
      const meanwhile = async (name: string | undefined): Promise<void> => {
        const at = when === "after it" ? "ledger.released_by" : "ledger.audit_operation";
        if (done || name !== at) return;
        done = true;
        await undo(w.h.ctx, { approvalId: approval.id as ApprovalId, userId: "U_SUP1" });
      };
      const db: Db = new Proxy(database.db, {
        get: (target, key) =>
          key === "sql"
            ? async (name: string | undefined, ...rest: [string, unknown[]]) => {
                await meanwhile(name);
                return target.sql(name, ...rest);
              }
            : Reflect.get(target, key),
      });
      const after = await drive({ ...w.dispatch, db }, id);
      expect(done).toBe(true);
      expect(after.status).toBe("DENIED");
      expect(await w.now(id)).toMatchObject({ status: "DENIED", result: { code: "undone" } });
      expect(await posts()).toBe(0);
      expect(await incidents()).toEqual([]);
    },
  );
});
