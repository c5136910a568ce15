import { beforeEach, describe, expect, it } from "vitest";
import { probe, sendClaimed } from "../../src/dispatch/index.js";
import type { Operation } from "../../src/domain/operation.js";
import { sendAuthorised, settleReconcile, takeForReconcile, verifyAudit } from "../../src/ledger/index.js";
import { reconcileOne, sweepOrphans } from "../../src/reconcile/index.js";
import { balanceOf, eventTypes } from "../approvals/steps.js";
import { withPaymentsSandbox } from "../payments/support.js";
import { withDatabase } from "../support/database.js";
import { deferred } from "../support/wait.js";
import { form } from "./forms.js";
import { expectStatus, type OpsWorld, withOpsWorld } from "./ops-world.js";

const database = withDatabase({ poolSize: 12 });
const payments = withPaymentsSandbox();
const build = withOpsWorld(payments);
let w: OpsWorld;

beforeEach(async () => {
  w = await build(database.db);
});

const counts = () => payments.sandbox.control.counts();

/** The provider commits and the answer is lost; its list cannot be read for an hour. */
async function committedUnseen(amount?: bigint): Promise<Operation> {
  payments.sandbox.control.arm({ kind: "commit_then_drop" });
  return expectStatus(await w.quarantined(amount), "QUARANTINED");
}

/** The connection breaks before the provider did anything; nobody can know that. */
async function neverArrived(amount?: bigint): Promise<Operation> {
  payments.sandbox.control.arm({ kind: "drop_before_commit" });
  return expectStatus(await w.quarantined(amount), "QUARANTINED");
}

describe("the provider made another amount than was asked for", () => {
  it("is an incident at once, never confirmed, and closed by two people who see both amounts; the money counts as it left", async () => {
    payments.sandbox.control.arm({ kind: "wrong_answer", amount: 17_999 });
    const sent = expectStatus(await w.sent(), "OUTCOME_UNKNOWN");
    await reconcileOne(w.reconcile, sent.id, "due");
    const operation = expectStatus(await w.now(sent.id), "QUARANTINED");
    expect(operation.quarantineReason).toMatch(/re_\w+ of £179\.99 GBP differs in amount/);
    const incidents = async () =>
      w.h.db.sql<{ kind: string; asked: string; made: string }>(
        undefined,
        "SELECT kind, detail ->> 'asked' AS asked, detail ->> 'made' AS made FROM incidents ORDER BY id",
      );
    const found = [
      {
        kind: "made_differently",
        asked: expect.stringContaining("£180.00 GBP"),
        made: expect.stringContaining("£179.99 GBP"),
      },
    ];
    expect(await incidents()).toMatchObject(found);

    const shown = await w.ops.show({ userId: "U_ONC1", ref: operation.id });
    if (shown.outcome !== "operation") throw new Error(shown.outcome);
    expect(shown.safe).toMatchObject([
      { verb: "confirm", possible: false },
      { verb: "reject", possible: true, people: 2 },
      { verb: "retry", possible: false },
    ]);
    const refused = await w.ops.resolve(form(operation, "confirm"));
    expect(refused).toMatchObject({ outcome: "not_safe", sentence: expect.stringContaining("£179.99 GBP") });
    expect(await w.now(operation.id)).toMatchObject({ status: "QUARANTINED" });

    const asked = await w.ops.resolve(form(operation, "reject"));
    if (asked.outcome !== "needs_second") throw new Error(asked.outcome);
    const stored = await w.ops.resolution(asked.resolution.id);
    expect(stored?.probe?.sentence).toMatch(/£179\.99 GBP .*differs from what was asked for in amount/);
    const agreed = await w.ops.second({
      resolutionId: asked.resolution.id,
      userId: "U_ONC2",
      verdict: "agree",
      note: null,
    });
    expect(agreed).toMatchObject({ outcome: "resolved", operation: { status: "REJECTED" } });
    expect(await balanceOf(w.h.db, "ORD-1")).toMatchObject({ reserved: 0, refunded: 0 });
    const elsewhere = async () =>
      w.h.db.sql<{ refunded_elsewhere: bigint }>(
        undefined,
        "SELECT refunded_elsewhere FROM payments WHERE payment_intent = 'pi_1'",
      );
    expect(await elsewhere()).toEqual([{ refunded_elsewhere: 17_999n }]);
    // What left counts for the line that the next refund is measured by, before anybody reads the provider again.
    const next = await w.h.turn(await w.h.ticket(), [{ order: "ORD-1", amount: 4_000n }]);
    expect(next.outcomes).toMatchObject([{ outcome: "held" }]);
    await probe(w.dispatch, operation);
    expect(await elsewhere()).toEqual([{ refunded_elsewhere: 17_999n }]);
    await sweepOrphans(w.reconcile);
    expect(await w.now(operation.id)).toMatchObject({ status: "REJECTED" });
    expect(await incidents()).toMatchObject(found);
    expect(await counts()).toMatchObject({ committed: 1, posts: 1 });
  });

  it("what counts as gone stays so when a list that was read before is written after", async () => {
    payments.sandbox.control.arm({ kind: "wrong_answer", amount: 17_999 });
    const sent = expectStatus(await w.sent(), "OUTCOME_UNKNOWN");
    await reconcileOne(w.reconcile, sent.id, "due");
    const operation = expectStatus(await w.now(sent.id), "QUARANTINED");
    // Read while the provider did not show it yet, and held back until two people have closed the case.
    const closed = deferred<void>();
    const read = deferred<void>();
    const slow: typeof w.dispatch = {
      ...w.dispatch,
      provider: {
        ...w.dispatch.provider,
        list: async (target, options) => {
          const listing = await w.dispatch.provider.list(target, options);
          read.resolve();
          await closed.promise;
          return listing.read === "complete" ? { ...listing, effects: [] } : listing;
        },
      },
    };
    const late = probe(slow, operation);
    await read.promise;
    const asked = await w.ops.resolve(form(operation, "reject"));
    if (asked.outcome !== "needs_second") throw new Error(asked.outcome);
    const second = {
      resolutionId: asked.resolution.id,
      userId: "U_ONC2",
      verdict: "agree",
      note: null,
    } as const;
    expect(await w.ops.second(second)).toMatchObject({ operation: { status: "REJECTED" } });
    closed.resolve();
    await late;

    expect(
      await w.h.db.sql(undefined, "SELECT refunded_elsewhere FROM payments WHERE payment_intent = 'pi_1'"),
    ).toEqual([{ refunded_elsewhere: 17_999n }]);
    expect((await verifyAudit(w.h.db)).broken).toEqual([]);
    expect(await counts()).toMatchObject({ committed: 1, posts: 1 });
  });
});

describe("retry asks the provider first (S-OP-1)", () => {
  it("the provider had committed: refused, shown, and confirmed by that evidence; committed once", async () => {
    payments.sandbox.control.arm({ kind: "commit_then_drop" });
    const operation = expectStatus(await w.sent(), "OUTCOME_UNKNOWN");
    const outcome = await w.ops.resolve(form(operation, "retry"));
    expect(outcome).toMatchObject({
      outcome: "settled_by_evidence",
      operation: { status: "CONFIRMED", resolvedByPerson: false },
      probe: {
        says: "committed",
        providerRef: expect.stringMatching(/^re_/),
        sentence: expect.stringContaining("£180.00 GBP"),
      },
    });
    expect(await counts()).toMatchObject({ committed: 1, posts: 1 });
    expect(await balanceOf(w.h.db, "ORD-1")).toMatchObject({ reserved: 0, refunded: 18_000 });
  });

  it("the same from quarantine", async () => {
    const operation = await committedUnseen();
    expect(await w.ops.resolve(form(operation, "retry"))).toMatchObject({
      outcome: "settled_by_evidence",
      operation: { status: "CONFIRMED" },
    });
    expect(await counts()).toMatchObject({ committed: 1, posts: 2 });
  });

  it("the provider cannot be asked: refused while nobody can know", async () => {
    payments.sandbox.control.arm({ kind: "commit_then_drop" });
    const operation = expectStatus(await w.sent(), "OUTCOME_UNKNOWN");
    payments.sandbox.control.arm({ kind: "read_down", how: "500" });
    const outcome = await w.ops.resolve(form(operation, "retry"));
    expect(outcome).toMatchObject({ outcome: "not_safe", probe: { says: "unknown" } });
    expect((await w.now(operation.id)).status).toBe("OUTCOME_UNKNOWN");
    expect(await counts()).toMatchObject({ committed: 1, posts: 1 });
  });

  it("another on-call person confirms at the same time: one decision, the other is told", async () => {
    const operation = await committedUnseen();
    const both = await Promise.all([
      w.ops.resolve(form(operation, "confirm", "U_ONC1")),
      w.ops.resolve(form(operation, "confirm", "U_ONC2")),
    ]);
    expect(both.filter(({ outcome }) => outcome === "resolved")).toHaveLength(1);
    // Told that somebody was faster, or, having looked a moment later, that it has ended.
    const other = both.find(({ outcome }) => outcome !== "resolved");
    expect(["overtaken", "not_safe"]).toContain(other?.outcome);
    expect(other).toMatchObject({ operation: { status: "CONFIRMED" } });
    expect(
      (await eventTypes(w.h.db, operation.id)).filter((type) => type === "settle_confirmed"),
    ).toHaveLength(1);
    expect(await counts()).toMatchObject({ committed: 1 });
  });

  it("it never arrived: two people let it be sent once more under the same key, and it commits once", async () => {
    const operation = await neverArrived();
    const first = await w.ops.resolve(form(operation, "retry"));
    if (first.outcome !== "needs_second") throw new Error(first.outcome);
    expect(w.h.shown.touched).toContainEqual({ kind: "resolution", id: first.resolution.id });
    const second = await w.ops.second({
      resolutionId: first.resolution.id,
      userId: "U_ONC2",
      verdict: "agree",
    });
    expect(second).toMatchObject({ outcome: "resolved", operation: { status: "QUARANTINED" } });
    expect(w.h.shown.woken).toContainEqual({ kind: "operation", id: operation.id });
    const claimed = await sendAuthorised(w.dispatch, { operationId: operation.id, worker: "w" });
    if (!claimed.claimed) throw new Error(claimed.why);
    expect((await sendClaimed(w.dispatch, claimed)).status).toBe("CONFIRMED");
    expect((await sendAuthorised(w.dispatch, { operationId: operation.id, worker: "w" })).claimed).toBe(
      false,
    );
    const keys = new Set(
      (await payments.sandbox.control.requests({ method: "POST" })).map((each) => each.idempotencyKey),
    );
    expect([...keys]).toEqual([operation.idempotencyKey]);
    expect(await counts()).toMatchObject({ committed: 1 });
  });

  it.each(["agree", "disagree"] as const)(
    "two who press at once, the first to %s: the other reads what became of it, not that it still waits",
    async (verdict) => {
      const operation = await neverArrived();
      const first = await w.ops.resolve(form(operation, "retry"));
      if (first.outcome !== "needs_second") throw new Error(first.outcome);
      const answer = { resolutionId: first.resolution.id, userId: "U_ONC2", verdict };
      const both = await Promise.all([w.ops.second(answer), w.ops.second(answer)]);
      expect(both.filter(({ outcome }) => outcome === "overtaken")).toEqual([
        expect.objectContaining({
          by: "U_ONC2",
          sentence: `This request was ${verdict === "agree" ? "carried out" : "turned down"} already.`,
        }),
      ]);
    },
  );
});

describe("reject", () => {
  it("is refused while what was sent may still take effect", async () => {
    payments.sandbox.control.arm({ kind: "drop_before_commit" });
    const operation = expectStatus(await w.sent(), "OUTCOME_UNKNOWN");
    expect(await w.ops.resolve(form(operation, "reject"))).toMatchObject({
      outcome: "not_safe",
      sentence: expect.stringContaining("may still take effect"),
    });
    expect((await balanceOf(w.h.db, "ORD-1")).reserved).toBe(18_000);
  });

  it("takes two from quarantine; who proposed cannot agree, and a disagreement leaves it parked", async () => {
    const operation = await neverArrived();
    const first = await w.ops.resolve(form(operation, "reject"));
    if (first.outcome !== "needs_second") throw new Error(first.outcome);
    const { id } = first.resolution;
    expect(await w.ops.second({ resolutionId: id, userId: "U_ONC1", verdict: "agree" })).toMatchObject({
      outcome: "refused",
      reason: "same_person",
    });
    expect(await w.ops.second({ resolutionId: id, userId: "U_SUP2", verdict: "agree" })).toMatchObject({
      outcome: "refused",
      reason: "not_in_role",
    });
    expect(
      await w.ops.second({ resolutionId: id, userId: "U_ONC2", verdict: "disagree", note: "I see it." }),
    ).toMatchObject({
      outcome: "disagreed",
      resolution: { secondBy: "U_ONC2", secondNote: "I see it." },
    });
    expect((await w.now(operation.id)).status).toBe("QUARANTINED");
    expect(await w.ops.second({ resolutionId: id, userId: "U_ONC2", verdict: "agree" })).toMatchObject({
      outcome: "overtaken",
    });

    const again = await w.ops.resolve(form(operation, "reject", "U_ONC2"));
    if (again.outcome !== "needs_second") throw new Error(again.outcome);
    expect(
      await w.ops.second({ resolutionId: again.resolution.id, userId: "U_ONC1", verdict: "agree" }),
    ).toMatchObject({
      outcome: "resolved",
      operation: { status: "REJECTED", resolvedByPerson: true },
    });
    expect((await balanceOf(w.h.db, "ORD-1")).reserved).toBe(0);
  });

  it("the provider shows it after all when the second person agrees: confirmed by evidence, not rejected", async () => {
    payments.sandbox.control.arm({ kind: "commit_then_drop" });
    const hidden = payments.sandbox.control.arm({ kind: "lying_read", lie: "hide" });
    const operation = expectStatus(await w.quarantined(), "QUARANTINED");
    const first = await w.ops.resolve(form(operation, "reject"));
    if (first.outcome !== "needs_second") throw new Error(first.outcome);
    payments.sandbox.control.disarm(hidden);
    expect(
      await w.ops.second({ resolutionId: first.resolution.id, userId: "U_ONC2", verdict: "agree" }),
    ).toMatchObject({
      outcome: "settled_by_evidence",
      operation: { status: "CONFIRMED" },
    });
    expect((await balanceOf(w.h.db, "ORD-1")).refunded).toBe(18_000);
  });
});

describe("confirm", () => {
  it("with the provider's evidence: its reference, by one person below the policy's line", async () => {
    const operation = await committedUnseen();
    expect(await w.ops.resolve(form(operation, "confirm"))).toMatchObject({
      outcome: "resolved",
      operation: { status: "CONFIRMED", providerRef: expect.stringMatching(/^re_/), resolvedByPerson: true },
      probe: { says: "committed" },
    });
    expect(w.h.shown.ops.map(({ message }) => message.type)).toContain("resolved");
  });

  it("above the line it takes two", async () => {
    payments.sandbox.control.arm({ kind: "commit_then_drop" });
    const operation = expectStatus(await w.quarantined(20_001n), "QUARANTINED");
    const first = await w.ops.resolve(form(operation, "confirm"));
    if (first.outcome !== "needs_second") throw new Error(first.outcome);
    expect(await w.ops.resolve(form(operation, "confirm", "U_ONC2"))).toMatchObject({
      outcome: "not_safe",
      sentence: expect.stringContaining("waits for a second person's answer"),
    });
    expect(
      await w.ops.second({ resolutionId: first.resolution.id, userId: "U_ONC2", verdict: "agree" }),
    ).toMatchObject({ outcome: "resolved" });
  });

  it("takes an unknown outcome out of a reconciler's hands: what that writes afterwards is fenced", async () => {
    payments.sandbox.control.arm({ kind: "commit_then_drop" });
    const operation = expectStatus(await w.sent(), "OUTCOME_UNKNOWN");
    const taken = await takeForReconcile(w.dispatch, {
      operationId: operation.id,
      worker: "slow",
      because: "evidence",
    });
    if (taken === null) throw new Error("not taken");
    expect(await w.ops.resolve(form(operation, "confirm"))).toMatchObject({
      outcome: "resolved",
      operation: { status: "CONFIRMED" },
    });
    const late = await settleReconcile(w.dispatch, {
      operationId: operation.id,
      leaseToken: taken.leaseToken,
      evidence: { says: "absent" },
      move: { do: "later", why: "slow" },
    });
    expect(late).toMatchObject({ settled: false, why: "fenced" });
    expect((await w.now(operation.id)).status).toBe("CONFIRMED");
  });
});

describe("who may", () => {
  it.each<[string, string, string]>([
    ["a supervisor", "U_SUP2", "not_in_role"],
    ["the filer", "U_AGENT", "is_filer"],
    ["the approver", "U_SUP1", "is_approver"],
    ["a guest", "U_GUEST", "standing"],
  ])("%s may not, whatever their roles", async (_who, userId, reason) => {
    const operation = await committedUnseen();
    if (reason === "is_filer" || reason === "is_approver") w.h.people.all.set(userId, { roles: ["oncall"] });
    if (reason === "standing") w.h.people.all.set(userId, { roles: ["oncall"], standing: "guest" });
    for (const verb of ["confirm", "reject", "retry"] as const) {
      expect(await w.ops.resolve(form(operation, verb, userId))).toMatchObject({
        outcome: "refused",
        reason,
      });
    }
    expect(await w.ops.openResolution({ userId, ref: operation.id, verb: "confirm" })).toMatchObject({
      outcome: "refused",
      reason,
    });
    expect((await w.now(operation.id)).version).toBe(operation.version);
  });

  it("nobody, while Slack cannot say who they are", async () => {
    const operation = await committedUnseen();
    w.h.people.away = true;
    expect(await w.ops.resolve(form(operation, "confirm"))).toMatchObject({
      outcome: "refused",
      reason: "unreadable",
    });
  });

  it("reason and evidence are needed, and blanks are none", async () => {
    const operation = await committedUnseen();
    expect(await w.ops.resolve({ ...form(operation, "confirm"), reason: "  " })).toMatchObject({
      outcome: "invalid",
      field: "reason",
    });
    expect(await w.ops.resolve({ ...form(operation, "confirm"), evidenceRef: "\n" })).toMatchObject({
      outcome: "invalid",
      field: "evidence",
    });
  });

  it("what has ended, or was never sent, cannot be resolved", async () => {
    const id = await w.prepared();
    const prepared = await w.now(id);
    expect(await w.ops.resolve(form(prepared, "confirm"))).toMatchObject({
      outcome: "not_safe",
      sentence: expect.stringContaining("Nothing was sent yet"),
    });
    const done = expectStatus(await w.sent(1_000n), "CONFIRMED");
    expect(await w.ops.resolve(form(done, "reject"))).toMatchObject({
      outcome: "not_safe",
      sentence: "It is confirmed, so there is nothing to resolve.",
    });
  });
});
