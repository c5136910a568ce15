import { beforeEach, describe, expect, it } from "vitest";
import { openIncident } from "../../src/ledger/index.js";
import { notShown } from "../../src/slack/listeners/reply.js";
import { moveClock } from "../approvals/steps.js";
import { withPaymentsSandbox } from "../payments/support.js";
import { withDatabase } from "../support/database.js";
import { expectStatus, type OpsWorld, withOpsWorld } from "./ops-world.js";

const database = withDatabase();
const payments = withPaymentsSandbox();
const build = withOpsWorld(payments);
let w: OpsWorld;

beforeEach(async () => {
  w = await build(database.db);
});

describe("what on-call sees", () => {
  it("show: what it is, what was sent and when, evidence, recovery and why, what is safe now", async () => {
    payments.sandbox.control.arm({ kind: "commit_then_drop" });
    const operation = expectStatus(await w.quarantined(), "QUARANTINED");
    const view = await w.ops.show({ userId: "U_ONC1", ref: operation.id });
    if (view.outcome !== "operation") throw new Error(view.outcome);
    expect(view.operation).toMatchObject({
      amountMinor: 18_000n,
      currency: "GBP",
      approvedBy: ["U_SUP1"],
      filers: ["U_AGENT"],
    });
    expect(view.customerName).toBe("Name of CUS-7");
    expect(JSON.stringify(view.request)).toContain("pi_1");
    expect(view.attempts).toMatchObject([
      { number: 1, verdict: "unknown" },
      { number: 2, verdict: "unknown" },
    ]);
    expect(view.target).toBe("pi_1");
    expect(view.lastLook?.sentence, "it is asked again, as by the forms").toMatch(
      /^The provider shows it: re_/,
    );
    expect(view.nextLookAt, "in quarantine nobody looks by themselves").toBeNull();
    expect(view.approval?.state).toBe("RELEASED");
    expect(view.recovery.join(" ")).toContain("parked for a person");
    expect(view.safe.map(({ verb, possible, people }) => [verb, possible, people])).toEqual([
      ["confirm", true, 1],
      ["reject", false, 2],
      ["retry", false, 2],
    ]);
  });

  it("events as a timeline, in order, each with who", async () => {
    const done = expectStatus(await w.sent(), "CONFIRMED");
    const view = await w.ops.events({ userId: "U_ONC1", ref: done.id });
    if (view.outcome !== "events") throw new Error(view.outcome);
    expect(view.events.map(({ from, to }) => [from, to])).toEqual([
      [null, "AWAITING_APPROVAL"],
      ["AWAITING_APPROVAL", "PREPARED"],
      ["PREPARED", "DISPATCHED"],
      ["DISPATCHED", "CONFIRMED"],
    ]);
    expect(view.events.map(({ seq }) => seq)).toEqual([1, 2, 3, 4]);
    for (const { at, actor } of view.events) {
      expect(at.getTime()).toBeGreaterThan(0);
      expect(actor).toMatch(/\S/);
    }
  });

  it("list with counts of what is open, by state, page by page", async () => {
    payments.sandbox.control.arm({ kind: "commit_then_drop" });
    expectStatus(await w.sent(1_000n), "OUTCOME_UNKNOWN");
    await w.prepared(6_000n);
    await w.prepared(7_000n);
    const all = await w.ops.list({ userId: "U_ONC1", status: null, limit: 2 });
    if (all.outcome !== "list") throw new Error(all.outcome);
    expect(all.counts).toMatchObject({ OUTCOME_UNKNOWN: 1, PREPARED: 2 });
    expect(all.operations.map(({ amountMinor }) => amountMinor)).toEqual([7_000n, 6_000n]);
    const rest = await w.ops.list({ userId: "U_ONC1", status: null, limit: 2, cursor: all.next });
    if (rest.outcome !== "list") throw new Error(rest.outcome);
    expect(rest.operations.map(({ amountMinor }) => amountMinor)).toEqual([1_000n]);
    expect(rest.next).toBeNull();
    const unknown = await w.ops.list({ userId: "U_ONC1", status: "OUTCOME_UNKNOWN" });
    if (unknown.outcome !== "list") throw new Error(unknown.outcome);
    expect(unknown.operations).toHaveLength(1);
  });

  it("health: a worker is missed only when rows wait for one", async () => {
    await w.prepared();
    const view = await w.ops.health({ userId: "U_ONC1" });
    expect(view).toMatchObject({
      outcome: "health",
      parts: [
        { name: "database", ok: true },
        { name: "worker", ok: true },
        { name: "queue", ok: false },
      ],
    });
    await moveClock(w.h.db, 3);
    expect(await w.ops.health({ userId: "U_ONC1" })).toMatchObject({
      parts: [
        { name: "database" },
        { name: "worker", ok: false, sentence: expect.stringMatching(/nobody takes them: is a worker/) },
        { name: "queue" },
      ],
    });
    await w.ops.freeze({ userId: "U_ONC1", kind: "refund", reason: "r" });
    expect(await w.ops.health({ userId: "U_ONC1" }), "a freeze keeps it, nobody is late").toMatchObject({
      parts: [{ name: "database" }, { name: "worker", ok: true }, { name: "queue" }],
    });
  });

  it("runs, approvals, health and home", async () => {
    payments.sandbox.control.arm({ kind: "commit_then_drop" });
    const operation = expectStatus(await w.quarantined(), "QUARANTINED");
    await w.h.turn(await w.h.ticket(), [{ order: "ORD-1", amount: 9_000n }]);
    await w.ops.freeze({ userId: "U_ONC1", kind: "refund", reason: "r" });
    const runs = await w.ops.runs({ userId: "U_ONC1" });
    expect(runs).toMatchObject({
      outcome: "runs",
      runs: [
        { state: "running", filer: "U_AGENT", asked: [{ amountMinor: 9_000n, status: "AWAITING_APPROVAL" }] },
        {
          state: "running",
          filer: "U_AGENT",
          asked: [{ operationId: operation.id, kind: "refund", orderRef: "ORD-1", currency: "GBP" }],
        },
      ],
    });
    expect(await w.ops.approvals({ userId: "U_ONC1" })).toMatchObject({
      outcome: "approvals",
      approvals: [{ amountMinor: 9_000n, role: "supervisor", missing: 1, orderRef: "ORD-1" }],
    });
    expect(await w.ops.health({ userId: "U_ONC1" })).toMatchObject({
      outcome: "health",
      parts: [
        { name: "database", ok: true },
        { name: "worker", ok: true },
        { name: "queue", ok: false, sentence: "The queue does not answer." },
      ],
      counts: { QUARANTINED: 1, AWAITING_APPROVAL: 1 },
      pendingApprovals: 1,
      frozen: [{ kind: "refund" }],
      oldestUnknown: { id: operation.id, unknownSince: expect.any(Date) },
    });
    await w.h.db.tx((tx) =>
      openIncident(tx, w.dispatch, {
        kind: "orphan_effect",
        dedupeKey: "re_x",
        operationId: null,
        paymentId: null,
        detail: { ref: "re_x" },
      }),
    );
    const home = await w.ops.home({ userId: "U_ONC1" });
    expect(home).toMatchObject({
      outcome: "home",
      incidents: [{ kind: "orphan_effect", status: "open" }],
      quarantined: [{ id: operation.id }],
      unknown: [],
      frozen: [{ kind: "refund" }],
    });
  });

  it("everything is for on-call only, and nothing is shown to others", async () => {
    const { id } = expectStatus(await w.sent(), "CONFIRMED");
    const refused = { outcome: "refused", reason: "not_in_role" };
    const userId = "U_SUP1";
    expect(await w.ops.list({ userId, status: null })).toMatchObject(refused);
    expect(await w.ops.show({ userId, ref: id })).toMatchObject(refused);
    expect(await w.ops.events({ userId, ref: id })).toMatchObject(refused);
    expect(await w.ops.runs({ userId })).toMatchObject(refused);
    expect(await w.ops.approvals({ userId })).toMatchObject(refused);
    expect(await w.ops.health({ userId })).toMatchObject(refused);
    expect(await w.ops.home({ userId })).toMatchObject(refused);
  });
});

describe("ids as people type them", () => {
  it("the whole id, in capitals, with spaces, or its beginning with or without op_", async () => {
    const { id } = expectStatus(await w.sent(), "CONFIRMED");
    for (const ref of [id, ` ${id.toUpperCase()} `, id.slice(0, 25), id.slice(3, 25)]) {
      expect(await w.ops.show({ userId: "U_ONC1", ref }), ref).toMatchObject({
        outcome: "operation",
        operation: { id },
      });
    }
  });

  it("several: their ids; none: what it may have been; nonsense: what an id looks like", async () => {
    const first = await w.prepared(6_000n);
    const second = await w.prepared(7_000n);
    const common = first.slice(0, 8);
    expect(second.startsWith(common)).toBe(true);
    expect(await w.ops.show({ userId: "U_ONC1", ref: common })).toMatchObject({
      outcome: "unresolved",
      suggestions: [second, first].map((id) => ({ kind: "operation", operation: { id } })),
      sentence: `2 operations begin with “${common}”; add a few characters.`,
    });
    const typo = `${first.slice(0, -1)}${first.endsWith("0") ? "1" : "0"}`;
    expect(await w.ops.show({ userId: "U_ONC1", ref: typo })).toMatchObject({
      outcome: "unresolved",
      sentence: `There is no operation “${typo}”. Meant may be:`,
      suggestions: expect.arrayContaining([
        expect.objectContaining({ operation: expect.objectContaining({ id: first }) }),
      ]),
    });
    expect(await w.ops.show({ userId: "U_ONC1", ref: "op_ab" })).toMatchObject({
      outcome: "unresolved",
      sentence: expect.stringContaining("too short"),
    });
    for (const ref of ["", "ORD-9", "op_xyz", "op_%", "'; drop table operations", "🙂".repeat(200)]) {
      const answer = await w.ops.show({ userId: "U_ONC1", ref });
      expect(answer.outcome, ref).toBe("unresolved");
      if (answer.outcome !== "unresolved") continue;
      expect(answer.sentence.length).toBeLessThan(250);
      expect(answer.sentence).toContain(`“${ref.slice(0, 20)}`);
      expect(answer.sentence).toContain("/ops list shows");
    }
  });

  it("an order, a payment or the provider's reference: the operations of it, with state and amount", async () => {
    const done = expectStatus(await w.sent(), "CONFIRMED");
    const later = await w.prepared(7_000n);
    for (const ref of ["ORD-1", " ord-1 ", "pi_1"]) {
      expect(await w.ops.show({ userId: "U_ONC1", ref }), ref).toMatchObject({
        outcome: "unresolved",
        sentence: expect.stringContaining("2 operations of that order, payment or reference"),
        suggestions: [{ operation: { id: later } }, { operation: { id: done.id } }],
      });
    }
    const byRef = await w.ops.show({ userId: "U_ONC1", ref: done.providerRef ?? "" });
    expect(byRef, "the only one is shown at once").toMatchObject({
      outcome: "operation",
      operation: { id: done.id },
    });
    const byOrder = await w.ops.show({ userId: "U_ONC1", ref: "ORD-1" });
    if (byOrder.outcome !== "unresolved") throw new Error(byOrder.outcome);
    expect(JSON.stringify(notShown(byOrder))).toMatch(/`op_\w+` confirmed · refund £180\.00 GBP ORD-1/u);
    expect(await w.ops.events({ userId: "U_ONC1", ref: done.providerRef ?? "" })).toMatchObject({
      outcome: "events",
    });
    // Nothing is done to what was only guessed.
    expect(await w.ops.openResolution({ userId: "U_ONC1", ref: "ORD-1", verb: "reject" })).toMatchObject({
      outcome: "unresolved",
    });
    const named = { userId: "U_ONC1", ref: done.providerRef ?? "", verb: "reject" } as const;
    expect(await w.ops.openResolution(named)).toMatchObject({ outcome: "unresolved" });
  });

  it("an order opens the form of the only operation that the verb fits, as its id does; of several, their ids", async () => {
    payments.sandbox.control.arm({ kind: "drop_before_commit", times: null });
    const open = expectStatus(await w.quarantined(), "QUARANTINED");
    const as = { userId: "U_ONC1" };
    for (const verb of ["confirm", "reject", "retry"] as const) {
      const byId = await w.ops.openResolution({ ...as, ref: open.id, verb });
      expect(byId).toMatchObject({ outcome: "form", operation: { id: open.id } });
      expect(await w.ops.openResolution({ ...as, ref: " ord-1", verb }), verb).toEqual(byId);
    }
    // Only the form is opened so: what is carried out has an id, and of the only one, the verb says why it does not fit.
    const typed = { reason: "seen there", evidenceRef: "case 1" };
    const carried = await w.ops.resolve({ ...as, ...typed, ref: "ORD-1", verb: "confirm" });
    expect(carried).toMatchObject({ outcome: "unresolved", suggestions: [{ operation: { id: open.id } }] });
    expect(await w.ops.openReopening({ ...as, ref: "ORD-1" })).toMatchObject({
      outcome: "not_safe",
      sentence: "Only what a person has confirmed or rejected can be opened again.",
    });
    const settled = await w.ops.resolve({ ...as, ...typed, ref: open.id, verb: "confirm" });
    expect(settled).toMatchObject({ outcome: "resolved" });
    expect(await w.ops.openReopening({ ...as, ref: "ORD-1" })).toMatchObject({
      outcome: "form",
      operation: { id: open.id },
    });
    expect(await w.ops.reopen({ ...as, ...typed, ref: "ORD-1" })).toMatchObject({ outcome: "unresolved" });
    expect(await w.ops.openResolution({ ...as, ref: "ORD-1", verb: "confirm" })).toMatchObject({
      outcome: "form",
      operation: { id: open.id, status: "CONFIRMED" },
    });
    // What is beside it and does not fit, like a request that the filer's word let go, is not meant.
    await w.prepared(7_000n);
    expect(await w.ops.openReopening({ ...as, ref: "ORD-1" })).toMatchObject({
      outcome: "form",
      operation: { id: open.id },
    });
    expect(await w.ops.openResolution({ ...as, ref: "ORD-1", verb: "confirm" })).toMatchObject({
      outcome: "unresolved",
      sentence: expect.stringContaining("2 operations of that order"),
    });
  });

  it("an order of which the verb fits two opens neither: their ids", async () => {
    payments.sandbox.control.arm({ kind: "drop_before_commit", times: null });
    const first = expectStatus(await w.quarantined(), "QUARANTINED");
    payments.sandbox.control.arm({ kind: "drop_before_commit" });
    const second = expectStatus(await w.sent(7_000n), "OUTCOME_UNKNOWN");
    expect(await w.ops.openResolution({ userId: "U_ONC1", ref: "ORD-1", verb: "confirm" })).toMatchObject({
      outcome: "unresolved",
      suggestions: [{ operation: { id: second.id } }, { operation: { id: first.id } }],
    });
  });

  it("a refund that was made elsewhere: the operations of its payment", async () => {
    payments.sandbox.control.arm({ kind: "drop_before_commit", times: null });
    const { id } = expectStatus(await w.quarantined(), "QUARANTINED");
    const made = await payments.sandbox.control.dashboardRefund({ paymentIntent: "pi_1", amount: 500 });
    expect(await w.ops.show({ userId: "U_ONC1", ref: made.id })).toMatchObject({
      sentence: expect.stringContaining("No operation is of such an order or reference"),
    });
    await w.ops.show({ userId: "U_ONC1", ref: id });
    expect(await w.ops.show({ userId: "U_ONC1", ref: made.id })).toMatchObject({
      outcome: "unresolved",
      suggestions: [{ operation: { id } }],
    });
  });
});
