/**
 * What somebody with the database's password made unreadable is a finding, and stops neither its payment, nor a reading of it, nor what
 * is due beside it.
 */
import { beforeEach, describe, expect, it } from "vitest";
import { listPending } from "../../src/approvals/index.js";
import { refreshBalance } from "../../src/dispatch/index.js";
import { exportAudit, storyOf, verifyAudit } from "../../src/ledger/index.js";
import { recordPolicyActivated } from "../../src/ledger/subject-events.js";
import { reconcileDue, sweepOrphans } from "../../src/reconcile/index.js";
import { onlyApproval, operationAt } from "../approvals/steps.js";
import { withPaymentsSandbox } from "../payments/support.js";
import { writeByHand } from "../support/by-hand.js";
import { withDatabase } from "../support/database.js";
import { SEALS } from "../support/ledger-world.js";
import { type CaseWorld, withCaseWorld } from "./case-world.js";

const database = withDatabase();
const build = withCaseWorld(withPaymentsSandbox());
const DAY_MS = 86_400_000;

let w: CaseWorld;
beforeEach(async () => {
  w = await build(database.db);
  await w.order({ ref: "ORD-1", captured: 100_000 });
});

const elsewhere = async (): Promise<unknown> =>
  (await w.db.sql(undefined, "SELECT refunded_elsewhere AS minor FROM payments"))[0];
const kinds = async (): Promise<unknown[]> =>
  (await w.db.sql<{ kind: string }>(undefined, "SELECT kind FROM incidents ORDER BY kind")).map(
    ({ kind }) => kind,
  );

describe("what was refunded elsewhere on a payment", () => {
  it.each([
    ["its event is no JSON", "UPDATE operation_events SET body = '{' WHERE type = 'refunded_elsewhere'"],
    [
      "its event names a text",
      `UPDATE operation_events SET body = '{"data":{"effects":"re"}}' WHERE type = 'refunded_elsewhere'`,
    ],
    [
      "what was seen has a text for an amount",
      `UPDATE provider_evidence SET payload = payload || '{"amount":"much"}', provider_ref = 're_other'`,
    ],
    [
      "what was seen has no time",
      `UPDATE provider_evidence SET payload = payload || '{"createdAt":"later"}', provider_ref = 're_other'`,
    ],
  ])("%s: what the provider shows counts, and an operation of it is found out", async (_what, statement) => {
    await w.control.dashboardRefund({ paymentIntent: "pi_ORD-1", amount: 1_000 });
    const ctx = w.worker("w");
    await sweepOrphans(ctx);
    expect(await elsewhere()).toEqual({ minor: 1_000n });
    const id = await w.prepared("ORD-1", 2_000n);
    w.control.arm({ kind: "commit_then_drop" });
    await w.look(ctx, id);
    await writeByHand(w.db, null, statement);
    await w.control.dashboardRefund({ paymentIntent: "pi_ORD-1", amount: 1_100 });
    await refreshBalance(ctx, { paymentIntent: "pi_ORD-1", providerSubscription: null });
    expect(await elsewhere()).toEqual({ minor: 2_100n });
    expect(await w.work(ctx, id)).toMatchObject({ status: "CONFIRMED" });
    expect(await w.committed()).toBe(3);
  });
});

describe("an event that is no JSON any more", () => {
  it("leaves the story, the export and the verifier readable", async () => {
    const id = await w.prepared("ORD-1", 2_000n);
    expect(await w.work(w.worker("w"), id)).toMatchObject({ status: "CONFIRMED" });
    await writeByHand(
      w.db,
      id,
      "UPDATE operation_events SET body = '{' WHERE operation_id = $1 AND type = 'claim'",
    );
    const story = await storyOf(w.db, id);
    expect(story.map(({ type }) => type)).toEqual(["prepare", "claim", "settle_confirmed"]);
    expect(story[1]?.data).toEqual({});
    const lines: string[] = [];
    for await (const line of exportAudit(w.db)) lines.push(line);
    expect(lines.map((line) => (JSON.parse(line) as { event?: unknown }).event)).toContain("{");
    expect((await verifyAudit(w.db)).broken.length).toBeGreaterThan(0);
  });

  it("of the policy: another one is activated all the same, and told of", async () => {
    const told = async () =>
      (await w.db.sql(undefined, "SELECT 1 FROM operation_events WHERE subject = 'policy'")).length;
    const activate = (hash: string) =>
      w.db.tx((tx) => recordPolicyActivated(SEALS)(tx, { hash, textHash: "t" }));
    await activate("p1");
    await activate("p1");
    const before = await told();
    await writeByHand(w.db, null, "UPDATE operation_events SET body = '{' WHERE subject = 'policy'");
    await activate("p2");
    expect(await told()).toBe(before + 1);
  });

  it.each([
    ["holds what no column can", `'{"data":{"note":"\\u0000"}}'`],
    ["names people in words", `replace(body, '"approvers":1', '"approvers":"one"')`],
  ])(
    "or %s: its operation is not sent, on-call hears, and the verifier comes to an end",
    async (_what, body) => {
      const held = await w.ask("ORD-1", 18_000n);
      const id = operationAt(held, 0);
      await w.h.click("U_SUP1", onlyApproval(held));
      await w.h.release(held);
      await writeByHand(
        w.db,
        null,
        `UPDATE operation_events SET body = ${body} WHERE subject LIKE 'approval:%' AND type = 'approval_asked'`,
      );
      await w.look(w.worker("w"), id);
      expect(await w.posts()).toEqual([]);
      expect(await kinds()).toEqual(["row_changed"]);
      expect((await verifyAudit(w.db)).broken.length).toBeGreaterThan(0);
    },
  );
});

it("an approval that asks for what cannot be read: the others are listed", async () => {
  await w.order({ ref: "ORD-2", captured: 100_000 });
  const [spoilt, whole] = [await w.ask("ORD-1", 18_000n), await w.ask("ORD-2", 18_000n)];
  await writeByHand(w.db, onlyApproval(spoilt).id, "UPDATE approvals SET binding = '5' WHERE id = $1");
  expect((await listPending(w.db)).approvals.map(({ approval }) => approval.id)).toEqual([
    onlyApproval(whole).id,
  ]);
  const first = await listPending(w.db, { limit: 1 });
  const next = await listPending(w.db, { limit: 1, cursor: first.next });
  expect([...first.approvals, ...next.approvals]).toHaveLength(1);
});

it("an open outcome about which nothing can be written: the others are looked at, and on-call hears of it", async () => {
  const ctx = w.worker("w");
  await w.order({ ref: "ORD-2", captured: 100_000 });
  const [spoilt, whole] = [await w.prepared("ORD-1", 2_000n), await w.prepared("ORD-2", 2_000n)];
  w.control.arm({ kind: "commit_then_drop", times: 2 });
  await w.look(ctx, spoilt);
  await w.look(ctx, whole);
  await writeByHand(w.db, spoilt, "UPDATE operations SET event_count = event_count - 1 WHERE id = $1");
  await w.advance(DAY_MS / 24);
  expect(await reconcileDue(ctx, { limit: 10 })).toBe(2);
  expect(await w.now(whole)).toMatchObject({ status: "CONFIRMED" });
  expect(await w.now(spoilt)).toMatchObject({ status: "OUTCOME_UNKNOWN" });
  expect(await kinds()).toEqual(["row_changed"]);
  // It does not stand before the others a second time.
  expect(await reconcileDue(ctx, { limit: 10 })).toBe(0);
});
