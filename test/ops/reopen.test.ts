import { beforeEach, describe, expect, it } from "vitest";
import { probe } from "../../src/dispatch/index.js";
import type { Operation } from "../../src/domain/operation.js";
import {
  endStaleProposals,
  eraseSubject,
  eventsOf,
  getResolution,
  recordEvidence,
  takeForReconcile,
  verifyAudit,
} from "../../src/ledger/index.js";
import { timelineEntry } from "../../src/ops/index.js";
import { reconcileOne } from "../../src/reconcile/index.js";
import { POLICY } from "../approvals/harness.js";
import { balanceOf, moveClock } from "../approvals/steps.js";
import { withPaymentsSandbox } from "../payments/support.js";
import { withDatabase } from "../support/database.js";
import { SEALS } from "../support/ledger-world.js";
import { form } from "./forms.js";
import { expectStatus, type OpsWorld, withOpsWorld } from "./ops-world.js";

const database = withDatabase({ poolSize: 12 });
const payments = withPaymentsSandbox();
const build = withOpsWorld(payments);
let w: OpsWorld;

beforeEach(async () => {
  w = await build(database.db);
});

/** The connection breaks before the provider did anything; nobody can know that. */
async function parked(): Promise<Operation> {
  payments.sandbox.control.arm({ kind: "drop_before_commit" });
  return expectStatus(await w.quarantined(), "QUARANTINED");
}

/** A rejection that waits for its second person. */
async function proposed(operation: Operation, userId = "U_ONC1"): Promise<string> {
  const first = await w.ops.resolve(form(operation, "reject", userId));
  if (first.outcome !== "needs_second") throw new Error(first.outcome);
  return first.resolution.id;
}

async function rejected(): Promise<Operation> {
  const operation = await parked();
  const resolutionId = await proposed(operation);
  await w.ops.second({ resolutionId, userId: "U_ONC2", verdict: "agree" });
  return expectStatus(await w.now(operation.id), "REJECTED");
}

const request = (operation: Operation, userId = "U_ONC1") => ({
  ref: operation.id,
  userId,
  reason: "Wrong row, says Pat.",
  evidenceRef: "note 7",
});
const opsMessages = () => w.h.shown.ops.map(({ message }) => message);

describe("a wrong click can be opened again, with a record of its own", () => {
  it("a person's rejection goes back to quarantine, and its money counts as spent again", async () => {
    const operation = await rejected();
    expect((await balanceOf(w.h.db, "ORD-1")).reserved).toBe(0);
    expect(await w.ops.reopen(request(operation))).toMatchObject({
      outcome: "reopened",
      operation: { status: "QUARANTINED", resolvedByPerson: false },
    });
    expect((await balanceOf(w.h.db, "ORD-1")).reserved).toBe(18_000);
    const record = await w.h.db.sql(
      undefined,
      `SELECT state, by, reason, evidence_ref FROM resolutions WHERE verb = 'reopen'`,
    );
    expect(record).toEqual([
      { state: "applied", by: "U_ONC1", reason: "Wrong row, says Pat.", evidence_ref: "note 7" },
    ]);
    expect(opsMessages()).toContainEqual(
      expect.objectContaining({ type: "resolved", verb: "reopen", by: "U_ONC1", evidence: "note 7" }),
    );
    expect(await w.h.db.sql(undefined, "SELECT kind FROM incidents")).toEqual([]);
    expect(await w.ops.reopen(request(operation))).toMatchObject({ outcome: "not_safe" });
  });

  it("a rejection that nothing proves rests on people's word: the row, the timeline and `/ops show` say so", async () => {
    const operation = await rejected();
    expect(operation.result?.code).toBe("rejected_unseen");
    const timeline = await w.ops.events({ userId: "U_ONC1", ref: operation.id });
    if (timeline.outcome !== "events") throw new Error(timeline.outcome);
    const told = timelineEntry(timeline.events.at(-1) ?? expect.fail("no event"));
    expect(told.what).toBe("Rejected on a person's word: not carried out; the money is free again.");
    const word = "This rests on a person's word: that the provider showed nothing of it is no proof.";
    expect(told.evidence).toContain(word);
    const view = await w.ops.show({ userId: "U_ONC1", ref: operation.id });
    if (view.outcome !== "operation") throw new Error(view.outcome);
    expect(view.recovery).toContain(word);
  });

  it("a reference that a person made up is theirs also after its end was taken back and rejected", async () => {
    const operation = await parked();
    await w.ops.resolve({ ...form(operation, "confirm"), evidenceRef: "re_doesnotexist" });
    await w.ops.reopen(request(await w.now(operation.id)));
    const given = async () => {
      const view = await w.ops.show({ userId: "U_ONC1", ref: operation.id });
      return view.outcome === "operation" ? [view.operation.providerRef, view.referenceGiven] : view;
    };
    expect(await given()).toEqual(["re_doesnotexist", true]);
    const resolutionId = await proposed(await w.now(operation.id));
    await w.ops.second({ resolutionId, userId: "U_ONC2", verdict: "agree" });
    expect((await w.now(operation.id)).status).toBe("REJECTED");
    expect(await given()).toEqual(["re_doesnotexist", true]);
    expect(await verifyAudit(w.h.db)).toMatchObject({ intact: true });
    expect(await payments.sandbox.control.counts()).toMatchObject({ committed: 0 });
  });

  it.each(["U_ONC1", "Nothing of it arrived.", "note 6"])(
    "a proposal of which %s was erased from the log is a proposal all the same: the second person agrees to it",
    async (erased) => {
      const operation = await parked();
      const first = await w.ops.resolve({
        ...form(operation, "reject"),
        reason: "Nothing of it arrived.",
        evidenceRef: "note 6",
      });
      if (first.outcome !== "needs_second") throw new Error(first.outcome);
      await eraseSubject(w.h.db, erased);
      const { id: resolutionId } = first.resolution;
      expect(await w.ops.second({ resolutionId, userId: "U_ONC2", verdict: "agree" })).toMatchObject({
        outcome: "resolved",
        operation: { status: "REJECTED" },
      });
      expect(await w.h.db.sql(undefined, "SELECT kind FROM incidents")).toEqual([]);
      expect((await verifyAudit(w.h.db, SEALS)).broken).toEqual([]);
      expect(await payments.sandbox.control.counts()).toMatchObject({ committed: 0 });
    },
  );

  it("a proposal of which another person is named than the log tells is nobody's, also where a third was erased", async () => {
    const operation = await parked();
    const resolutionId = await proposed(operation);
    await eraseSubject(w.h.db, "U_SUP1");
    await w.h.db.sql(undefined, "UPDATE resolutions SET by = 'U_SUP1' WHERE id = $1", [resolutionId]);
    expect(await w.ops.second({ resolutionId, userId: "U_ONC2", verdict: "agree" })).toMatchObject({
      outcome: "not_safe",
    });
    expect(await w.now(operation.id)).toMatchObject({ status: "QUARANTINED" });
  });

  it("a form that is taken a second time, after its end was opened again, ends nothing again; a new one does", async () => {
    const typedAt = new Date(Date.now() - 1_000);
    const operation = await parked();
    const confirmed = { ...form(operation, "confirm"), evidenceRef: "re_doesnotexist", typedAt };
    expect(await w.ops.resolve(confirmed)).toMatchObject({ outcome: "resolved" });
    const opening = { ...request(await w.now(operation.id), "U_ONC2"), typedAt };
    expect(await w.ops.reopen(opening)).toMatchObject({ outcome: "reopened" });
    expect(await w.ops.resolve(confirmed)).toMatchObject({
      outcome: "overtaken",
      by: "U_ONC1",
      sentence: expect.stringContaining("carried out before"),
    });
    expect(await w.now(operation.id)).toMatchObject({ status: "QUARANTINED" });
    const [{ now } = { now: typedAt }] = await w.h.db.sql<{ now: Date }>(
      undefined,
      "SELECT countersign_now() + interval '1 second' AS now",
    );
    await moveClock(w.h.db, 1);
    expect(await w.ops.resolve({ ...confirmed, typedAt: now })).toMatchObject({ outcome: "resolved" });
    expect(await w.ops.reopen(opening)).toMatchObject({
      outcome: "not_safe",
      sentence: expect.stringContaining("carried out before"),
    });
    expect(await w.now(operation.id)).toMatchObject({ status: "CONFIRMED" });
    expect((await verifyAudit(w.h.db, SEALS)).broken).toEqual([]);
  });

  it("the reference that the provider showed is the provider's", async () => {
    const done = expectStatus(await w.sent(), "CONFIRMED");
    expect(await w.ops.show({ userId: "U_ONC1", ref: done.id })).toMatchObject({ referenceGiven: false });
  });

  it("the card of the run that asked is rendered again each time, though the run is over: opened again, and rejected anew", async () => {
    const operation = await rejected();
    const runId = operation.ownerRunId;
    await w.h.db.sql(undefined, "UPDATE runs SET state = 'resolved' WHERE id = $1", [runId]);
    const run = { kind: "run", id: runId };
    const again = async (step: () => Promise<unknown>) => {
      w.h.shown.followed.length = 0;
      await step();
      return w.h.shown.followed;
    };
    expect(await again(() => w.ops.reopen(request(operation)))).toContainEqual(run);
    const resolutionId = await proposed(await w.now(operation.id));
    const agreed = () => w.ops.second({ resolutionId, userId: "U_ONC2", verdict: "agree" });
    expect(await again(agreed)).toContainEqual(run);
    expect((await w.now(operation.id)).status).toBe("REJECTED");
  });

  it("the event says who, why and on which evidence by erasable names, and the chain verifies", async () => {
    const operation = await rejected();
    await w.ops.reopen(request(operation));
    const events = await eventsOf(w.h.db, operation.id);
    expect(events.at(-1)).toMatchObject({
      type: "quarantine",
      from: "REJECTED",
      actor: "slack:U_ONC1",
      data: { verb: "reopen", was: "REJECTED" },
    });
    const stored = await w.h.db.sql<{ text: string }>(
      undefined,
      "SELECT e::text AS text FROM operation_events e WHERE operation_id = $1 AND type = 'quarantine'",
      [operation.id],
    );
    for (const { text } of stored) expect(text).not.toMatch(/Wrong row|note 7|U_ONC1/);
    expect(await verifyAudit(w.h.db)).toMatchObject({ intact: true });
  });

  it("what was opened again is settled anew, by a person or by evidence", async () => {
    const operation = await rejected();
    await w.ops.reopen(request(operation));
    const resolutionId = await proposed(await w.now(operation.id), "U_ONC2");
    expect(await w.ops.second({ resolutionId, userId: "U_ONC1", verdict: "agree" })).toMatchObject({
      outcome: "resolved",
      operation: { status: "REJECTED", resolvedByPerson: true },
    });
    expect((await balanceOf(w.h.db, "ORD-1")).reserved).toBe(0);
    expect(await payments.sandbox.control.counts()).toMatchObject({ committed: 0 });
  });

  it.each<[string, string, string]>([
    ["a supervisor", "U_SUP2", "not_in_role"],
    ["the filer", "U_AGENT", "is_filer"],
    ["the approver", "U_SUP1", "is_approver"],
  ])("%s may not", async (_who, userId, reason) => {
    const operation = await rejected();
    if (reason !== "not_in_role") w.h.people.all.set(userId, { roles: ["oncall"] });
    for (const outcome of [
      await w.ops.reopen(request(operation, userId)),
      await w.ops.openReopening({ userId, ref: operation.id }),
    ]) {
      expect(outcome).toMatchObject({ outcome: "refused", reason });
    }
    expect((await w.now(operation.id)).version).toBe(operation.version);
  });

  it("reason and evidence are needed; what the provider's evidence settled is not a person's to open", async () => {
    const done = expectStatus(await w.sent(), "CONFIRMED");
    expect(await w.ops.reopen({ ...request(done), evidenceRef: " " })).toMatchObject({
      outcome: "invalid",
      field: "evidence",
    });
    expect(await w.ops.reopen(request(done))).toMatchObject({ outcome: "not_safe" });
    expect(await w.ops.openReopening({ userId: "U_ONC1", ref: done.id })).toMatchObject({
      outcome: "not_safe",
    });
  });
});

describe("what the thread was told of an end that is opened again", () => {
  const told = (operation: Operation) =>
    w.h.shown.thread
      .map(({ message }) => message)
      .filter((one) => one.type === "operation_outcome" && one.operationId === operation.id);

  it.each(["CONFIRMED", "REJECTED"] as const)(
    "%s: is taken back there, once, and a retry repeats nothing",
    async (was) => {
      const operation = was === "REJECTED" ? await rejected() : await parked();
      if (was === "CONFIRMED") {
        expect(await w.ops.resolve(form(operation, "confirm"))).toMatchObject({ outcome: "resolved" });
      }
      const before = told(operation).length;
      await w.ops.reopen(request(operation));
      expect(told(operation).slice(before)).toEqual([
        { type: "operation_outcome", operationId: operation.id, was },
      ]);
      const first = await w.ops.resolve(form(await w.now(operation.id), "retry"));
      if (first.outcome !== "needs_second") throw new Error(first.outcome);
      await w.ops.second({ resolutionId: first.resolution.id, userId: "U_ONC2", verdict: "agree" });
      expect(await w.now(operation.id)).toMatchObject({ status: "QUARANTINED" });
      expect(told(operation)).toHaveLength(before + 1);
    },
  );
});

describe("a proposal that waits for a second person", () => {
  it("runs out after the policy's time: the late click is told so, nothing is done, and it can be asked anew", async () => {
    await w.h.policy(`${POLICY}resolution: { expireAfterMinutes: 30 }\n`);
    const operation = await parked();
    const id = await proposed(operation);
    await moveClock(w.h.db, 61 * 5 + 31);
    expect(await w.ops.second({ resolutionId: id, userId: "U_ONC2", verdict: "agree" })).toMatchObject({
      outcome: "overtaken",
      by: null,
      sentence: expect.stringContaining("left without an answer for too long"),
    });
    expect((await w.now(operation.id)).status).toBe("QUARANTINED");
    expect(await getResolution(w.h.db, id)).toMatchObject({ state: "expired", secondBy: null });
    expect(opsMessages()).toContainEqual({
      type: "proposal_ended",
      operationId: operation.id,
      verb: "reject",
      by: "U_ONC1",
      how: "expired",
    });
    await proposed(operation, "U_ONC2");
  });

  it("runs out by the sweep as well, and not before its time", async () => {
    await w.h.policy(`${POLICY}resolution: { expireAfterMinutes: 30 }\n`);
    const operation = await parked();
    const id = await proposed(operation);
    await moveClock(w.h.db, 61 * 5 + 29);
    expect(await endStaleProposals(w.dispatch, { limit: 10 })).toBe(0);
    await moveClock(w.h.db, 61 * 5 + 31);
    expect(await endStaleProposals(w.dispatch, { limit: 10 })).toBe(1);
    expect(await getResolution(w.h.db, id)).toMatchObject({ state: "expired" });
    expect(await endStaleProposals(w.dispatch, { limit: 10 })).toBe(0);
  });

  it("is void once the operation has moved: another can be asked for, and the old card does nothing", async () => {
    const operation = await parked();
    const id = await proposed(operation);
    // A webhook's news lets a reconciler look, which finds nothing and parks it again.
    await w.h.db.tx((tx) =>
      recordEvidence(tx, w.dispatch, {
        operationId: operation.id,
        source: "webhook",
        providerRef: null,
        dedupeKey: "news",
        payload: {},
      }),
    );
    const taken = await takeForReconcile(w.dispatch, {
      operationId: operation.id,
      worker: "w",
      because: "evidence",
    });
    expect(taken).not.toBeNull();
    expect(await endStaleProposals(w.dispatch, { limit: 10 })).toBe(1);
    expect(await getResolution(w.h.db, id)).toMatchObject({ state: "superseded" });
    expect(opsMessages()).toContainEqual(
      expect.objectContaining({ type: "proposal_ended", how: "superseded" }),
    );
    expect(await w.ops.second({ resolutionId: id, userId: "U_ONC2", verdict: "agree" })).toMatchObject({
      outcome: "overtaken",
      sentence: expect.stringContaining("has moved since"),
    });
  });
});

describe("what was made differently, closed, opened again and closed once more", () => {
  const elsewhere = async () => {
    const [row] = await database.db.sql<{ elsewhere: bigint }>(
      "test.elsewhere",
      "SELECT refunded_elsewhere AS elsewhere FROM payments WHERE payment_intent = 'pi_1'",
    );
    return row?.elsewhere;
  };
  const close = async (operation: Operation): Promise<Operation> => {
    const resolutionId = await proposed(operation);
    await w.ops.second({ resolutionId, userId: "U_ONC2", verdict: "agree" });
    return expectStatus(await w.now(operation.id), "REJECTED");
  };

  it("counts as gone each time it is closed, once, and no refund is judged without it", async () => {
    payments.sandbox.control.arm({ kind: "wrong_answer", amount: 50_000 });
    const sent = expectStatus(await w.sent(), "OUTCOME_UNKNOWN");
    await reconcileOne(w.reconcile, sent.id, "due");
    await close(expectStatus(await w.now(sent.id), "QUARANTINED"));
    expect(await elsewhere()).toBe(50_000n);

    await w.ops.reopen(request(await w.now(sent.id)));
    const open = expectStatus(await w.now(sent.id), "QUARANTINED");
    await probe(w.dispatch, open);
    await close(open);
    expect(await elsewhere()).toBe(50_000n);
    await probe(w.dispatch, await w.now(sent.id));
    expect(await elsewhere()).toBe(50_000n);

    const made = await payments.sandbox.control.effects({ paymentIntent: "pi_1" });
    expect(made.map(({ amount }) => amount)).toEqual([50_000]);
    const next = await w.h.turn(await w.h.ticket(), [{ order: "ORD-1", amount: 60_000n }]);
    expect(next.outcomes).toMatchObject([{ outcome: "insufficient" }]);
    expect((await verifyAudit(w.h.db)).broken).toEqual([]);
  });
});
