/** When a row is due was changed by hand, so that nobody would look at it again: it is looked at, and somebody hears of it. */
import { beforeEach, describe, expect, it } from "vitest";
import { attendDue } from "../../src/approvals/index.js";
import { closeIncident } from "../../src/ledger/index.js";
import { remindForgotten } from "../../src/reconcile/index.js";
import { makeForgottenRunsDue } from "../../src/runs/index.js";
import { onlyApproval } from "../approvals/steps.js";
import { withPaymentsSandbox } from "../payments/support.js";
import { writeByHand } from "../support/by-hand.js";
import { withDatabase } from "../support/database.js";
import { type CaseWorld, withCaseWorld } from "./case-world.js";

const database = withDatabase();
const build = withCaseWorld(withPaymentsSandbox());
const LIMIT = { limit: 10 };

let w: CaseWorld;
beforeEach(async () => {
  w = await build(database.db);
  await w.order({ ref: "ORD-1", captured: 100_000 });
});

const kinds = async (): Promise<unknown[]> =>
  (await w.db.sql<{ kind: string }>(undefined, "SELECT kind FROM incidents")).map(({ kind }) => kind);
const isDue = async (table: "operations" | "approvals" | "runs", id: string): Promise<unknown> =>
  (
    await w.db.sql(undefined, `SELECT due_at <= countersign_now() AS due FROM ${table} WHERE id = $1`, [id])
  )[0];

describe.each([
  ["taken away", "NULL", ["row_changed"]],
  // By hand, or by a setting that is shorter since: that alone accuses nobody.
  ["put off for years", "countersign_now() + interval '3 years'", []],
])("when it is due was %s", (_how, when, told) => {
  it("an operation that waits to be sent: it is due, and it is made once", async () => {
    const ctx = w.worker("w");
    const id = await w.prepared("ORD-1", 2_000n);
    expect(await remindForgotten(ctx, LIMIT)).toBe(0);
    await writeByHand(w.db, id, `UPDATE operations SET due_at = ${when} WHERE id = $1`);
    expect(await remindForgotten(ctx, LIMIT)).toBe(1);
    expect(await isDue("operations", id)).toEqual({ due: true });
    expect(await kinds()).toEqual(told);
    expect(await remindForgotten(ctx, LIMIT)).toBe(0);
    expect(await w.work(ctx, id)).toMatchObject({ status: "CONFIRMED" });
    expect(await w.committed()).toBe(1);
  });

  it("one whose outcome is unknown, and one that waits for a person", async () => {
    const ctx = w.worker("w");
    const id = await w.prepared("ORD-1", 2_000n);
    w.control.arm({ kind: "commit_then_drop" });
    expect(await w.look(ctx, id)).toMatchObject({ status: "OUTCOME_UNKNOWN" });
    expect(await remindForgotten(ctx, LIMIT)).toBe(0);
    await writeByHand(w.db, id, `UPDATE operations SET due_at = ${when} WHERE id = $1`);
    expect(await remindForgotten(ctx, LIMIT)).toBe(1);
    expect(await w.look(ctx, id)).toMatchObject({ status: "CONFIRMED" });
    expect(await w.committed()).toBe(1);

    w.control.arm({ kind: "outcome", status: "pending", pendingReason: "insufficient_funds" });
    const other = await w.prepared("ORD-1", 3_000n);
    expect(await w.work(ctx, other)).toMatchObject({ status: "QUARANTINED" });
    expect(await remindForgotten(ctx, LIMIT)).toBe(0);
    await writeByHand(w.db, other, `UPDATE operations SET due_at = ${when} WHERE id = $1`);
    expect(await remindForgotten(ctx, LIMIT)).toBe(1);
    expect(await isDue("operations", other)).toEqual({ due: true });
    expect(await kinds()).toEqual([...told, ...told]);
  });

  it("an approval: it expires in time", async () => {
    const { id } = onlyApproval(await w.ask("ORD-1", 18_000n));
    await attendDue(w.h.ctx, LIMIT);
    await writeByHand(w.db, id, `UPDATE approvals SET due_at = ${when} WHERE id = $1`);
    await w.advance(365 * 86_400_000);
    expect(await attendDue(w.h.ctx, LIMIT)).toBe(1);
    expect(await w.db.sql(undefined, "SELECT state FROM approvals WHERE id = $1", [id])).toEqual([
      { state: "EXPIRED" },
    ]);
  });
});

it("a run at work that is due at no time: it is due", async () => {
  const { runId } = await w.ask("ORD-1", 18_000n);
  await writeByHand(w.db, runId, "UPDATE runs SET state = 'queued', due_at = NULL WHERE id = $1");
  expect(await makeForgottenRunsDue(w.db, 10)).toEqual([runId]);
  expect(await isDue("runs", runId)).toEqual({ due: true });
  expect(await makeForgottenRunsDue(w.db, 10)).toEqual([]);
});

it("ended operations, and one whose time to undo is long, are left alone", async () => {
  const ctx = w.worker("w");
  const ended = await w.prepared("ORD-1", 2_000n);
  await w.work(ctx, ended);
  const waits = await w.prepared("ORD-1", 3_000n);
  await writeByHand(
    w.db,
    waits,
    `UPDATE operations SET not_before = countersign_now() + interval '30 days', due_at = countersign_now() + interval '30 days' WHERE id = $1`,
  );
  expect(await remindForgotten(ctx, LIMIT)).toBe(0);
  expect(await kinds()).toEqual([]);
});

it("an operation whose row is still not as the log tells it when its incident was closed: on-call hears again, one at a time", async () => {
  const ctx = w.worker("w");
  const id = await w.prepared("ORD-1", 2_000n);
  await writeByHand(w.db, id, "UPDATE operations SET event_count = event_count + 1 WHERE id = $1");
  const told = async (): Promise<readonly { id: string; status: string }[]> =>
    w.db.sql(
      undefined,
      "SELECT id, status FROM incidents WHERE kind = 'row_changed' ORDER BY created_at, id",
    );
  const look = async (): Promise<void> => {
    await w.advance(120_000);
    await w.look(ctx, id);
  };
  await look();
  await look();
  const [first] = await told();
  expect(await told()).toEqual([{ id: first?.id, status: "open" }]);
  await w.db.tx((tx) => closeIncident(tx, ctx, { id: first?.id ?? "", by: "U_ONC1", reason: "mended" }));
  await look();
  await look();
  expect((await told()).map(({ status }) => status)).toEqual(["closed", "open"]);
  expect(await w.posts()).toEqual([]);
});
