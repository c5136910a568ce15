/**
 * Rows that say what the log does not tell: whoever writes to the database can make a row look approved, unsent or fresh, and cannot
 * write the log alike. Nothing of it leaves, and on-call hears of it.
 */
import { beforeEach, describe, expect, it } from "vitest";
import type { Db } from "../../src/db/connect.js";
import { sendClaimed } from "../../src/dispatch/index.js";
import type { OperationId } from "../../src/domain/ids.js";
import { sendAuthorised } from "../../src/ledger/index.js";
import { withPaymentsSandbox } from "../payments/support.js";
import { writeByHand } from "../support/by-hand.js";
import { withDatabase } from "../support/database.js";
import { type CaseWorld, withCaseWorld } from "./case-world.js";

const database = withDatabase();
const build = withCaseWorld(withPaymentsSandbox());
const DAY_MS = 86_400_000;

let w: CaseWorld;
beforeEach(async () => {
  w = await build(database.db);
  await w.order({ ref: "ORD-1", captured: 100_000 });
});

const byHand = (id: OperationId, ...statements: readonly string[]): Promise<void> =>
  writeByHand(database.db, id, ...statements);

const ROW_IS = (set: string): string => `UPDATE operations SET ${set} WHERE id = $1`;
const PREPARED = ROW_IS("status = 'PREPARED', due_at = countersign_now()");
const UNSENT = ROW_IS(
  "status = 'PREPARED', due_at = countersign_now(), attempts = 0, first_claimed_at = NULL, provider_ref = NULL, request = NULL",
);
const NO_ATTEMPTS = "DELETE FROM attempts WHERE operation_id = $1";

const incidentsOf = async (id: OperationId): Promise<string[]> =>
  (
    await database.db.sql<{ kind: string }>(
      undefined,
      "SELECT kind FROM incidents WHERE operation_id = $1 ORDER BY kind",
      [id],
    )
  ).map(({ kind }) => kind);

const idOf = (held: Awaited<ReturnType<CaseWorld["ask"]>>): OperationId => {
  const [call] = held.outcomes;
  if (call === undefined || !("operation" in call) || call.operation === null)
    throw new Error("the turn has no operation");
  return call.operation.id;
};

/** A database on which something else is committed once, just before the first statement of this name. */
function justBefore(name: string, happen: () => Promise<void>): { db: Db; happened: () => boolean } {
  let done = false;
  const db: Db = {
    ...database.db,
    sql: async (statement, text, parameters) => {
      if (statement === name && !done) {
        done = true;
        await happen();
      }
      return database.db.sql(statement, text, parameters);
    },
  };
  return { db, happened: () => done };
}

describe("an approval that nobody gave", () => {
  it.each([
    ["prepared while its approval waits", [PREPARED]],
    ["prepared, its approval gone", [PREPARED, "DELETE FROM approvals WHERE operation_id = $1"]],
    [
      "prepared, its approval released",
      [PREPARED, "UPDATE approvals SET state = 'RELEASED' WHERE operation_id = $1"],
    ],
    [
      "prepared and released by name",
      [
        ROW_IS(
          "status = 'PREPARED', due_at = countersign_now(), approved_by = '{U_SUP1}', approval_id = (SELECT id FROM approvals WHERE operation_id = $1)",
        ),
        "UPDATE approvals SET state = 'RELEASED' WHERE operation_id = $1",
      ],
    ],
  ])("%s: nothing is sent, and the row stays for whoever mends it", async (_what, statements) => {
    const held = await w.ask("ORD-1", 18_000n);
    const id = idOf(held);
    await byHand(id, ...statements);
    await w.look(w.worker("w"), id);
    expect(await w.posts()).toEqual([]);
    expect(await w.now(id)).toMatchObject({ status: "PREPARED", attempts: 0 });
    expect(await incidentsOf(id)).toEqual(["row_changed"]);
    // Mended, it waits for its people as before.
    await byHand(
      id,
      ROW_IS("status = 'AWAITING_APPROVAL', approval_id = NULL, approved_by = '{}', due_at = NULL"),
    );
  });

  it("complete without a vote: it is asked for again", async () => {
    const held = await w.ask("ORD-1", 18_000n);
    await byHand(idOf(held), "UPDATE approvals SET state = 'APPROVED' WHERE operation_id = $1");
    expect(await w.h.release(held)).toMatchObject({ outcome: "still_held" });
    expect(await w.now(idOf(held))).toMatchObject({ status: "AWAITING_APPROVAL" });
    const [old, fresh] = await approvalsOf(idOf(held));
    expect([old?.state, fresh?.state]).toEqual(["VOIDED", "PENDING"]);
    expect(old?.end).toContain("It takes 1 vote, and has 0.");
  });

  it("of two people, made an approval of one: one vote releases nothing", async () => {
    const held = await w.ask("ORD-1", 60_000n);
    const id = idOf(held);
    await byHand(id, "UPDATE approvals SET approvers_needed = 1 WHERE operation_id = $1");
    const [approval] = held.approvals;
    await w.h.click("U_FIN1", approval?.id as never, "approve");
    await w.h.release(held);
    await w.look(w.worker("w"), id);
    expect(await w.posts()).toEqual([]);
    expect((await w.balance("ORD-1")).reserved).toBe(0);
  });

  it("with a vote that was made up: it is not released but asked for anew, and on-call hears of it", async () => {
    const held = await w.ask("ORD-1", 60_000n);
    const id = idOf(held);
    const [approval] = held.approvals;
    await w.h.click("U_FIN1", approval?.id as never, "approve");
    await byHand(
      id,
      `INSERT INTO votes SELECT (jsonb_populate_record(v, '{"id": "vote_x", "person": "T_HOME:U_FIN2", "user_id": "U_FIN2"}')).*
         FROM votes v JOIN approvals a ON a.id = v.approval_id WHERE a.operation_id = $1`,
      "UPDATE approvals SET state = 'APPROVED' WHERE operation_id = $1",
    );
    await w.h.release(held);
    await w.look(w.worker("w"), id);
    expect(await w.posts()).toEqual([]);
    expect(await w.now(id)).toMatchObject({ status: "AWAITING_APPROVAL" });
    expect((await approvalsOf(id)).map(({ state }) => state)).toEqual(["VOIDED", "PENDING"]);
    expect(await incidentsOf(id)).toEqual(["row_changed"]);
    expect((await w.balance("ORD-1")).reserved).toBe(0);
  });
});

describe("an approval that a person takes back while it is looked at", () => {
  it.each([
    ["by somebody else, before the log is read", "U_SUP2", "ledger.audit_operation"],
    ["by somebody else, before its approval is read", "U_SUP2", "ledger.released_by"],
    ["by somebody else, before the approval's log is read", "U_SUP2", "ledger.audit_subject"],
    ["by who gave it, before the log is read", "U_SUP1", "ledger.audit_operation"],
    ["by who gave it, before its approval is read", "U_SUP1", "ledger.released_by"],
    ["by who gave it, before the approval's log is read", "U_SUP1", "ledger.audit_subject"],
  ])("%s: denied, nothing is sent, and nobody hears of a changed row", async (_how, who, statement) => {
    const held = await w.ask("ORD-1", 18_000n);
    const id = idOf(held);
    const [approval] = held.approvals;
    await w.h.click("U_SUP1", approval?.id as never, "approve");
    await w.h.release(held);
    expect(await w.now(id)).toMatchObject({ status: "PREPARED" });
    const meanwhile = justBefore(statement, async () => {
      expect(await w.h.click(who, approval?.id as never, "deny")).toMatchObject({ outcome: "denied" });
    });
    await w.look(w.worker("w", meanwhile.db), id);
    expect(meanwhile.happened()).toBe(true);
    expect(await w.posts()).toEqual([]);
    expect(await w.now(id)).toMatchObject({ status: "DENIED" });
    expect(await incidentsOf(id)).toEqual([]);
    expect((await w.balance("ORD-1")).reserved).toBe(0);
    await w.intact();
  });
});

describe("an effect that was made, and a row that says it was not", () => {
  it.each([
    ["prepared again", [PREPARED]],
    ["its key born again", [UNSENT]],
    ["its attempts gone", [UNSENT, NO_ATTEMPTS]],
    [
      "its events gone as well",
      [UNSENT, NO_ATTEMPTS, "DELETE FROM operation_events WHERE operation_id = $1 AND seq > 1"],
    ],
    [
      "its head moved back to its first event",
      [
        UNSENT,
        NO_ATTEMPTS,
        "UPDATE operations o SET event_count = 1, head_hash = e.hash FROM operation_events e WHERE o.id = $1 AND e.operation_id = o.id AND e.seq = 1",
      ],
    ],
  ])("%s: nothing is sent when the key's life is over", async (_what, statements) => {
    const id = await w.prepared("ORD-1", 2_000n);
    expect(await w.work(w.worker("w"), id)).toMatchObject({ status: "CONFIRMED" });
    // Others set money aside on the same payment, so that the sums would bear it.
    await w.prepared("ORD-1", 3_000n);
    await w.advance(2 * DAY_MS);
    await byHand(id, ...statements);
    await w.look(w.worker("w"), id);
    expect((await w.posts()).length).toBe(1);
    expect(await w.committed()).toBe(1);
    expect(await w.now(id)).toMatchObject({ status: "PREPARED" });
    expect(await incidentsOf(id)).toEqual(["row_changed"]);
  });

  it("unknown again, its key young and the provider's list not to be read: a person is asked, nothing is sent", async () => {
    const id = await w.prepared("ORD-1", 2_000n);
    expect(await w.work(w.worker("w"), id)).toMatchObject({ status: "CONFIRMED" });
    await w.advance(2 * DAY_MS);
    await byHand(
      id,
      ROW_IS(
        "status = 'OUTCOME_UNKNOWN', due_at = countersign_now(), unknown_since = countersign_now(), first_claimed_at = countersign_now(), provider_ref = NULL",
      ),
      "UPDATE attempts SET verdict = 'unknown' WHERE operation_id = $1",
    );
    w.control.arm({ kind: "read_down", how: "500", times: null });
    await w.work(w.worker("w"), id);
    expect((await w.posts()).length).toBe(1);
    expect(await w.now(id)).toMatchObject({
      status: "QUARANTINED",
      quarantineReason: expect.stringMatching(/^row_changed/),
    });
    expect(await incidentsOf(id)).toContain("row_changed");
  });
});

it("a retry that nobody authorised: nothing is sent, and it stays with its person", async () => {
  const id = await w.prepared("ORD-1", 2_000n);
  w.control.arm({ kind: "drop_before_commit", match: { method: "POST" }, times: null });
  w.control.arm({ kind: "read_down", times: null });
  expect(await w.work(w.worker("w"), id)).toMatchObject({ status: "QUARANTINED" });
  const posts = (await w.posts()).length;
  await byHand(
    id,
    `INSERT INTO resolutions (id, operation_id, verb, state, operation_version, by, reason, evidence_ref)
     SELECT 'res_made_up', id, 'retry', 'applied', version, 'U_ONC1', 'made up', 'none' FROM operations WHERE id = $1`,
  );
  const ctx = w.worker("w");
  const claimed = await sendAuthorised(ctx, { operationId: id, worker: ctx.worker });
  if (claimed.claimed) await sendClaimed(ctx, claimed);
  await w.work(w.worker("w"), id);
  expect((await w.posts()).length).toBe(posts);
  expect(await w.now(id)).toMatchObject({ status: "QUARANTINED" });
  expect(await incidentsOf(id)).toEqual(["row_changed"]);
});

const approvalsOf = (id: OperationId) =>
  database.db.sql<{ state: string; end: string | null }>(
    undefined,
    "SELECT state, end_detail AS end FROM approvals WHERE operation_id = $1 ORDER BY created_at, id",
    [id],
  );
