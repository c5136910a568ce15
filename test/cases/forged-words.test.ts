/**
 * Decisions that nobody took, written as the product itself would write them: rows, events, hashes, heads and states, by a process that
 * has everything but our secret. The log alone cannot tell them from ours; nothing of them leaves.
 */
import { beforeEach, describe, expect, it } from "vitest";
import type { Db } from "../../src/db/connect.js";
import { type DispatchCtx, drive, sendClaimed } from "../../src/dispatch/index.js";
import type { OperationId } from "../../src/domain/ids.js";
import type { Operation } from "../../src/domain/operation.js";
import { type Seals, sealsWith } from "../../src/domain/seals.js";
import { sealAnswer } from "../../src/ledger/decision-seals.js";
import { recordPolicyActivated, sendAuthorised, verifyAudit } from "../../src/ledger/index.js";
import { type OpsUseCases, opsUseCases } from "../../src/ops/index.js";
import { activatePolicy, readPolicyText } from "../../src/policy/index.js";
import { reconcileOne } from "../../src/reconcile/index.js";
import { type Harness, type Held, harness, POLICY } from "../approvals/harness.js";
import { approvalAt, current, moveClock, onlyApproval, operationAt } from "../approvals/steps.js";
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

/** As in the product, where every start tells the log which policy is in force. */
const TOLD = sealsWith({ secret: "the secret of the tests" });
/** Whoever forges does not ask whether what they find is forged. */
const FORGED: Seals = {
  make: sealsWith({ secret: "of somebody else" }).make,
  holds: () => true,
  policiesTold: false,
};

let w: OpsWorld;
let forger: Harness;
let forgedOps: OpsUseCases;
beforeEach(async () => {
  w = await build(database.db);
  forger = await harness(database.db, FORGED);
  forgedOps = opsUseCases({ ...w.ctx, ledger: { ...w.ctx.ledger, seals: FORGED } });
});

const reserved = async (): Promise<number> => {
  const [row] = await database.db.sql<{ sum: number }>(
    undefined,
    "SELECT sum(reserved)::int AS sum FROM payments",
  );
  return row?.sum ?? -1;
};
const byHand = (id: string | null, ...statements: readonly string[]): Promise<void> =>
  writeByHand(database.db, id, ...statements);
const problems = async (seals: Seals | null): Promise<string[]> =>
  (await verifyAudit(database.db, seals)).broken.map(({ problem }) => problem);
const ask = async (amount: bigint): Promise<Held> =>
  w.h.turn(await w.h.ticket(), [{ order: "ORD-1", amount }]);
const worker = (seals: Seals, db: Db = database.db): DispatchCtx => ({ ...w.dispatch, db, seals });

/** The forger's release with the seal that ours would give it: all that is missing is a vote. */
async function releaseWithSeal(held: Held): Promise<void> {
  await forger.release(held);
  const id = operationAt(held, 0);
  const seal = sealAnswer(SEALS, await w.now(id));
  await byHand(id, `UPDATE operations SET seal = '${seal}' WHERE id = $1`);
}

async function nothingLeaves(id: OperationId): Promise<void> {
  await drive(w.dispatch, id);
  expect(await posts()).toBe(0);
  expect(await committed()).toBe(0);
  expect(await w.now(id)).toMatchObject({ status: "VOIDED" });
  expect(await incidents()).toContain("row_changed");
  expect(await reserved()).toBe(0);
  // The incident's card says how the operation stands: shown when it was found, and anew when the operation ended.
  const cards = w.h.shown.touched.filter(({ kind }) => kind === "incident");
  expect(cards.length, "the card follows").toBeGreaterThan((await incidents()).length);
}

describe("an approval that nobody gave, its log and all", () => {
  it("the hashes tell nothing of it, and nothing is sent: its vote bears no seal of ours", async () => {
    const held = await ask(18_000n);
    const id = operationAt(held, 0);
    expect(await forger.click("U_SUP1", onlyApproval(held))).toMatchObject({ outcome: "approved" });
    await releaseWithSeal(held);
    expect(await w.now(id)).toMatchObject({ status: "PREPARED" });
    expect(await problems(null)).toEqual([]);
    expect(await problems(SEALS)).toEqual(["a vote about it bears no seal of ours"]);
    await nothingLeaves(id);
  });

  it("of two people one vote is made up: nothing is sent", async () => {
    const held = await ask(60_000n);
    const id = operationAt(held, 0);
    expect(await w.h.click("U_FIN1", onlyApproval(held))).toMatchObject({ outcome: "recorded" });
    expect(await forger.click("U_FIN2", onlyApproval(held))).toMatchObject({ outcome: "approved" });
    await releaseWithSeal(held);
    await nothingLeaves(id);
  });

  it("a made up vote does not count at the release: people are asked anew, and on-call hears of it", async () => {
    const held = await ask(60_000n);
    const id = operationAt(held, 0);
    await forger.click("U_FIN2", onlyApproval(held));
    expect(await w.h.click("U_FIN1", onlyApproval(held))).toMatchObject({ outcome: "approved" });
    expect(await w.h.release(held)).toMatchObject({ outcome: "still_held" });
    expect(await w.now(id)).toMatchObject({ status: "AWAITING_APPROVAL" });
    const [fresh] = await current(database.db, held);
    expect(fresh).toMatchObject({
      state: "PENDING",
      votes: [],
      changes: [
        {
          what: "voter",
          userId: "U_FIN2",
          sentence: "it bears no seal of this app, so that nothing shows that they gave it.",
        },
      ],
    });
    expect(await incidents()).toEqual(["row_changed"]);
    // Given by two people it is sent, once.
    for (const user of ["U_FIN1", "U_FIN2"]) await w.h.click(user, fresh?.id as never);
    await w.h.release(held);
    expect(await drive(w.dispatch, id)).toMatchObject({ status: "CONFIRMED" });
    expect(await committed()).toBe(1);
  });

  it.each([
    ["of the same person's vote on another operation", "U_FIN1"],
    ["of another person's vote on the same one", "U_FIN2"],
  ])("with the seal %s: nothing is sent", async (_what, voter) => {
    await w.h.order({ ref: "ORD-2", captured: 100_000 });
    const other = await w.h.turn(await w.h.ticket(), [{ order: "ORD-2", amount: 60_000n }]);
    await w.h.click("U_FIN1", onlyApproval(other));
    const held = await ask(60_000n);
    const id = operationAt(held, 0);
    const approval = onlyApproval(held);
    if (voter === "U_FIN2") await w.h.click("U_FIN1", approval);
    else await forger.click("U_FIN1", approval);
    await forger.click("U_FIN2", approval);
    const from = voter === "U_FIN2" ? approval.id : onlyApproval(other).id;
    await byHand(
      approval.id,
      `UPDATE votes SET seal = (SELECT c.seal FROM votes c WHERE c.approval_id = '${from}' AND c.user_id = 'U_FIN1')
       WHERE approval_id = $1 AND user_id = '${voter}'`,
    );
    await releaseWithSeal(held);
    await nothingLeaves(id);
  });

  it("with the seals of its predecessor, which asked for the same: nothing is sent", async () => {
    const first = await ask(60_000n);
    await w.h.click("U_FIN1", onlyApproval(first));
    await byHand(onlyApproval(first).id, "UPDATE approvals SET state = 'APPROVED' WHERE id = $1");
    await w.h.release(first);
    const [fresh] = await current(database.db, first);
    if (fresh === undefined || fresh.id === onlyApproval(first).id) throw new Error("not asked anew");
    await forger.click("U_FIN1", fresh);
    await w.h.click("U_FIN2", fresh);
    await byHand(
      fresh.id,
      `UPDATE votes SET seal = (SELECT c.seal FROM votes c WHERE c.approval_id = '${onlyApproval(first).id}')
       WHERE approval_id = $1 AND user_id = 'U_FIN1'`,
    );
    await releaseWithSeal(first);
    await nothingLeaves(operationAt(first, 0));
  });

  it.each([
    ["as one that was given before there were seals", "seal = NULL"],
    ["with somebody's guess", "seal = repeat('0', 64)"],
  ])("%s: it is not sent, and ends unsent", async (_what, set) => {
    const held = await ask(18_000n);
    await w.h.click("U_SUP1", onlyApproval(held));
    await w.h.release(held);
    await byHand(onlyApproval(held).id, `UPDATE votes SET ${set} WHERE approval_id = $1`);
    expect(await problems(SEALS)).toEqual(["a vote about it bears no seal of ours"]);
    await nothingLeaves(operationAt(held, 0));
  });
});

describe("a release that nobody of ours made, its log and all", () => {
  it("of one person's yes, asked of fewer people than the policy asks: nothing is sent", async () => {
    const lax = readPolicyText(
      POLICY.replace("role: finance, approvers: 2", "role: finance, approvers: 1"),
      "lax",
    );
    const ours = readPolicyText(POLICY, "policy.yaml");
    await activatePolicy(database.db, lax);
    const held = await forger.turn(await forger.ticket(), [{ order: "ORD-1", amount: 60_000n }]);
    await activatePolicy(database.db, ours);
    await w.h.click("U_FIN1", onlyApproval(held));
    await activatePolicy(database.db, lax);
    await forger.release(held);
    await activatePolicy(database.db, ours);
    const id = operationAt(held, 0);
    expect(await w.now(id)).toMatchObject({ status: "PREPARED" });
    expect(await problems(null)).toEqual([]);
    expect(await problems(SEALS)).toEqual(["it bears no seal of the policy's answer"]);
    await nothingLeaves(id);
  });

  it("with the seal of another operation's release: nothing is sent", async () => {
    await w.h.order({ ref: "ORD-2", captured: 100_000 });
    const other = await w.h.turn(await w.h.ticket(), [{ order: "ORD-2", amount: 18_000n }]);
    await w.h.click("U_SUP1", onlyApproval(other));
    await w.h.release(other);
    const held = await ask(18_000n);
    await w.h.click("U_SUP1", onlyApproval(held));
    await forger.release(held);
    const id = operationAt(held, 0);
    await byHand(
      id,
      `UPDATE operations SET seal = (SELECT seal FROM operations WHERE id = '${operationAt(other, 0)}') WHERE id = $1`,
    );
    await drive(w.dispatch, id);
    expect(await posts()).toBe(0);
    expect(await w.now(id)).toMatchObject({ status: "VOIDED" });
  });
});

describe("an approval that people gave", () => {
  it("is sent once, and the audit finds every seal in its place", async () => {
    const held = await ask(60_000n);
    for (const user of ["U_FIN1", "U_FIN2"]) await w.h.click(user, onlyApproval(held));
    await w.h.release(held);
    const id = operationAt(held, 0);
    expect(await drive(w.dispatch, id)).toMatchObject({ status: "CONFIRMED" });
    await drive(w.dispatch, id);
    expect(await committed()).toBe(1);
    expect(await verifyAudit(database.db, SEALS)).toMatchObject({ intact: true, decisionSeals: 3 });
    expect(await verifyAudit(database.db)).toMatchObject({ intact: true, decisionSeals: null });
  });

  it("under the secret before this one is sent while that one is accepted, and not when it is not", async () => {
    const accepted = ["the secret of the tests"];
    const [after, before] = [sealsWith({ secret: "the next", accepted, policiesTold: false }), SEALS];
    const both = await w.h.turn(await w.h.ticket(), [{ order: "ORD-1", amount: 18_000n }]);
    await w.h.click("U_SUP1", onlyApproval(both));
    await w.h.release(both);
    const id = operationAt(both, 0);
    expect(after.make("vote", ["x"])).not.toBe(before.make("vote", ["x"]));
    expect(await drive(worker(after), id)).toMatchObject({ status: "CONFIRMED" });
    expect(await committed()).toBe(1);

    await w.h.order({ ref: "ORD-2", captured: 100_000 });
    await payments.sandbox.control.seedPayment({
      paymentIntent: "pi_ORD-2",
      amount: 100_000,
      currency: "GBP",
    });
    const alone = await w.h.turn(await w.h.ticket(), [{ order: "ORD-2", amount: 18_000n }]);
    await w.h.click("U_SUP1", approvalAt(alone, 0));
    await w.h.release(alone);
    await drive(worker(sealsWith({ secret: "the next", policiesTold: false })), operationAt(alone, 0));
    expect(await committed()).toBe(1);
    expect(await w.now(operationAt(alone, 0))).toMatchObject({ status: "VOIDED" });
  });
});

describe("what the policy lets through by itself", () => {
  it("written by somebody else, its log and all: nothing is sent", async () => {
    const call = await forger.turn(await forger.ticket(), [{ order: "ORD-1", amount: 2_000n }]);
    const id = operationAt(call, 0);
    expect(await w.now(id)).toMatchObject({ status: "PREPARED" });
    expect(await problems(null)).toEqual([]);
    expect(await problems(SEALS)).toEqual(["it bears no seal of the policy's answer"]);
    await nothingLeaves(id);
  });

  it("with the seal of another operation: nothing is sent", async () => {
    const own = operationAt(await ask(1_000n), 0);
    const call = await forger.turn(await forger.ticket(), [{ order: "ORD-1", amount: 2_000n }]);
    const id = operationAt(call, 0);
    await byHand(
      id,
      `UPDATE operations SET seal = (SELECT seal FROM operations WHERE id = '${own}') WHERE id = $1`,
    );
    await drive(w.dispatch, id);
    expect(await posts()).toBe(0);
    expect(await w.now(id)).toMatchObject({ status: "VOIDED" });
    expect(await drive(w.dispatch, own)).toMatchObject({ status: "CONFIRMED" });
    expect(await committed()).toBe(1);
  });
});

describe("a policy that nobody put in force, its log and all", () => {
  const WIDE = readPolicyText(POLICY.replace("auto:  { GBP: 5000,", "auto:  { GBP: 90000,"), "wide.yaml");
  const OURS = readPolicyText(POLICY, "policy.yaml");
  const activate = (policy: typeof WIDE, seals: Seals) =>
    activatePolicy(database.db, policy, recordPolicyActivated(seals));

  it("lets nothing out: what it allows is not sent; under ours it is asked about", async () => {
    await activate(OURS, SEALS);
    await activate(WIDE, FORGED);
    const id = operationAt(await ask(18_000n), 0);
    expect(await w.now(id)).toMatchObject({ status: "PREPARED" });
    expect(await problems(null)).toEqual([]);
    expect(await problems(SEALS)).toEqual(["a policy was put in force without a seal of ours"]);
    await nothingLeaves(id);
    await activate(OURS, SEALS);
    expect((await ask(17_000n)).outcomes.map(({ outcome }) => outcome)).toEqual(["held"]);
  });

  it("with the seal that it had when it was in force: what it allows is not sent", async () => {
    await activate(WIDE, SEALS);
    const [row] = await database.db.sql<{ seal: string }>(
      undefined,
      "SELECT body::jsonb #>> '{data,seal}' AS seal FROM operation_events WHERE subject = 'policy'",
    );
    await activate(OURS, SEALS);
    await activate(WIDE, { ...FORGED, make: () => row?.seal ?? "" });
    await nothingLeaves(operationAt(await ask(18_000n), 0));
  });

  it("of which the log tells nothing, for every event of a policy was taken out of it: what it allows is not sent", async () => {
    await activate(OURS, SEALS);
    await byHand(
      null,
      "DELETE FROM operation_events WHERE subject = 'policy'",
      "DELETE FROM audit_heads WHERE subject = 'policy'",
    );
    await activatePolicy(database.db, WIDE);
    const id = operationAt(await ask(18_000n), 0);
    expect(await w.now(id)).toMatchObject({ status: "PREPARED" });
    expect(await problems(TOLD)).toEqual(["a policy was put in force without a seal of ours"]);
    await drive(worker(TOLD), id);
    expect(await posts()).toBe(0);
    expect(await w.now(id)).toMatchObject({ status: "VOIDED" });
    expect(await incidents()).toEqual(["row_changed"]);
  });

  it("is told again by a process with a new secret, once; what is decided then is sent when the one before is gone", async () => {
    const told = async (): Promise<number> =>
      (await database.db.sql(undefined, "SELECT 1 FROM operation_events WHERE subject = 'policy'")).length;
    const next = sealsWith({ secret: "the next", accepted: ["the secret of the tests"] });
    for (const seals of [SEALS, SEALS, next, next]) await activate(OURS, seals);
    expect(await told()).toBe(2);
    const world = await harness(database.db, next);
    const id = operationAt(await world.turn(await world.ticket(), [{ order: "ORD-1", amount: 2_000n }]), 0);
    expect(await drive(worker(sealsWith({ secret: "the next" })), id)).toMatchObject({ status: "CONFIRMED" });
    expect(await committed()).toBe(1);
    expect(await problems(next)).toEqual([]);
  });
});

describe("a retry that nobody authorised, its log and all", () => {
  async function parked(): Promise<Operation> {
    payments.sandbox.control.arm({ kind: "drop_before_commit" });
    const operation = await w.quarantined();
    if (operation.status !== "QUARANTINED") throw new Error(operation.status);
    return operation;
  }

  async function byTwo(first: OpsUseCases, second: OpsUseCases, operation: Operation): Promise<string> {
    const asked = await first.resolve(form(operation, "retry"));
    if (asked.outcome !== "needs_second") throw new Error(JSON.stringify(asked.outcome));
    const { id } = asked.resolution;
    const agreed = await second.second({ resolutionId: id, userId: "U_ONC2", verdict: "agree" });
    return agreed.outcome === "resolved" ? id : agreed.outcome;
  }

  async function sendAgain(id: OperationId): Promise<Operation> {
    const claimed = await sendAuthorised(w.dispatch, { operationId: id, worker: "test" });
    if (claimed.claimed) await sendClaimed(w.dispatch, claimed);
    return w.now(id);
  }

  async function staysUnsent(id: OperationId, before: number): Promise<void> {
    await sendAgain(id);
    expect(await posts()).toBe(before);
    expect(await committed()).toBe(0);
    expect(await incidents()).toContain("row_changed");
    for (let hour = 6; hour < 12 && (await w.now(id)).status !== "QUARANTINED"; hour += 1) {
      await moveClock(w.h.db, 61 * hour);
      await reconcileOne(w.reconcile, id, "due");
    }
    expect(await posts()).toBe(before);
    expect(await w.now(id)).toMatchObject({ status: "QUARANTINED" });
  }

  it("by two people who said nothing: nothing is sent, and it stays with its people", async () => {
    const operation = await parked();
    const before = await posts();
    await byTwo(forgedOps, forgedOps, operation);
    expect(await problems(null)).toEqual([]);
    expect(await problems(SEALS)).toEqual(["a person's decision about it bears no seal of ours"]);
    await staysUnsent(operation.id, before);
  });

  it("asked for by nobody, agreed to by a person: it is not carried out, and on-call hears of it", async () => {
    const operation = await parked();
    const before = await posts();
    expect(await byTwo(forgedOps, w.ops, operation)).not.toMatch(/^res_/u);
    expect(await incidents()).toContain("row_changed");
    expect(await w.now(operation.id)).toMatchObject({ status: "QUARANTINED" });
    expect((await sendAuthorised(w.dispatch, { operationId: operation.id, worker: "test" })).claimed).toBe(
      false,
    );
    expect(await posts()).toBe(before);
  });

  it("asked for by a person, agreed to by nobody: nothing is sent", async () => {
    const operation = await parked();
    const before = await posts();
    expect(await byTwo(w.ops, forgedOps, operation)).toMatch(/^res_/u);
    await staysUnsent(operation.id, before);
  });

  it("with the seal of one that was used: nothing is sent a second time", async () => {
    const operation = await parked();
    const used = await byTwo(w.ops, w.ops, operation);
    const lost = payments.sandbox.control.arm({ kind: "drop_before_commit", times: null });
    const down = payments.sandbox.control.arm({ kind: "read_down", how: "drop" });
    await sendAgain(operation.id);
    for (let hour = 6; hour < 12 && (await w.now(operation.id)).status !== "QUARANTINED"; hour += 1) {
      await moveClock(w.h.db, 61 * hour);
      await reconcileOne(w.reconcile, operation.id, "due");
    }
    payments.sandbox.control.disarm(lost);
    payments.sandbox.control.disarm(down);
    const before = await posts();
    const again = await byTwo(forgedOps, forgedOps, await w.now(operation.id));
    await byHand(
      again,
      `UPDATE resolutions SET seal = (SELECT seal FROM resolutions WHERE id = '${used}') WHERE id = $1`,
    );
    await staysUnsent(operation.id, before);
  });

  it("that two people gave is sent, once", async () => {
    const operation = await parked();
    const id = await byTwo(w.ops, w.ops, operation);
    expect(id).toMatch(/^res_/u);
    expect(await sendAgain(operation.id)).toMatchObject({ status: "CONFIRMED" });
    await sendAgain(operation.id);
    expect(await committed()).toBe(1);
    expect(await incidents()).toEqual([]);
    expect(await problems(SEALS)).toEqual([]);
  });
});
