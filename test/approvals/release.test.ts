import { beforeEach, describe, expect, it } from "vitest";
import {
  approvalOfOperation,
  attendDue,
  ownerGone,
  releaseTurn,
  replaceDrifted,
} from "../../src/approvals/index.js";
import { eventsOf, verifyAudit, waitersOf } from "../../src/ledger/index.js";
import { withDatabase } from "../support/database.js";
import { type Harness, type Held, harness, POLICY, turnCalls } from "./harness.js";
import {
  approvalAt,
  approvalNow,
  balanceOf,
  current,
  eventTypes,
  moveClock,
  onlyApproval,
  operationAt,
  statusOf,
} from "./steps.js";

const database = withDatabase();
let h: Harness;

beforeEach(async () => {
  h = await harness(database.db);
  await h.order({ ref: "ORD-1", captured: 18_000 });
  await h.order({ ref: "ORD-2", captured: 30_000 });
  await h.order({ ref: "ORD-3", captured: 40_000 });
});

const refund = (order: string, amount: bigint) => ({ order, amount });

async function heldTurn(...writes: { order: string; amount: bigint }[]): Promise<Held> {
  return h.turn(await h.ticket(), writes);
}

describe("a held turn is released as a whole, once", () => {
  it("an approved refund is prepared with its approvers, and reserves only then", async () => {
    const held = await heldTurn(refund("ORD-1", 18_000n));
    const operationId = operationAt(held, 0);
    expect(await h.release(held)).toMatchObject({ outcome: "still_held", waiting: [onlyApproval(held).id] });
    expect(await h.click("U_SUP1", onlyApproval(held))).toMatchObject({ outcome: "approved", waitsFor: 0 });
    expect(await statusOf(h.db, operationId)).toBe("AWAITING_APPROVAL");
    expect((await balanceOf(h.db, "ORD-1")).reserved).toBe(0);
    expect(h.shown.decidedTurns).toEqual([held.turnId]);
    expect(h.shown.woken).toContainEqual({ kind: "run", id: held.runId });

    const released = await h.release(held);
    expect(released).toMatchObject({
      outcome: "released",
      calls: [
        {
          outcome: "prepared",
          operation: { id: operationId, approvedBy: ["U_SUP1"], approvalId: onlyApproval(held).id },
        },
      ],
    });
    expect((await approvalNow(h.db, onlyApproval(held).id)).state).toBe("RELEASED");
    expect((await balanceOf(h.db, "ORD-1")).reserved).toBe(18_000);
  });

  it("a call that needs nobody waits for its held sibling, and both are prepared together (S-AG-3)", async () => {
    const held = await heldTurn(refund("ORD-1", 2_000n), refund("ORD-2", 18_000n));
    expect(held.outcomes.map((call) => call.outcome)).toEqual(["ready", "held"]);
    expect((await h.release(held)).outcome).toBe("still_held");
    await h.click("U_SUP1", onlyApproval(held));
    const released = await h.release(held);
    expect(released).toMatchObject({
      outcome: "released",
      calls: [{ outcome: "prepared" }, { outcome: "prepared" }],
    });
    expect((await balanceOf(h.db, "ORD-1")).reserved).toBe(2_000);
    expect((await balanceOf(h.db, "ORD-2")).reserved).toBe(18_000);
  });

  it("three held calls decided in the order 3, 1, 2, one denied: the two others are prepared after the last decision (S-AG-3)", async () => {
    const held = await heldTurn(refund("ORD-1", 6_000n), refund("ORD-2", 7_000n), refund("ORD-3", 8_000n));
    expect(await h.click("U_SUP1", approvalAt(held, 2))).toMatchObject({ outcome: "approved", waitsFor: 2 });
    expect((await h.release(held)).outcome).toBe("still_held");
    expect(await h.click("U_SUP2", approvalAt(held, 0), "deny", { note: "not this one" })).toMatchObject({
      outcome: "denied",
      late: false,
    });
    expect((await h.release(held)).outcome).toBe("still_held");
    expect(h.shown.decidedTurns).toEqual([]);
    expect(await h.click("U_SUP2", approvalAt(held, 1))).toMatchObject({ outcome: "approved", waitsFor: 0 });
    expect(h.shown.decidedTurns).toEqual([held.turnId]);
    const released = await h.release(held);
    expect(released).toMatchObject({
      outcome: "released",
      calls: [
        { outcome: "ended", operation: { status: "DENIED" } },
        { outcome: "prepared" },
        { outcome: "prepared" },
      ],
    });
    expect((await balanceOf(h.db, "ORD-1")).reserved).toBe(0);
  });

  it("released again, and by a second worker at the same time: every operation is prepared once", async () => {
    const held = await heldTurn(refund("ORD-1", 2_000n), refund("ORD-2", 18_000n));
    await h.click("U_SUP1", onlyApproval(held));
    const elsewhere = h.elsewhere(database.openAnother());
    const turn = { runId: held.runId, turnId: held.turnId, calls: turnCalls(held) };
    const both = await Promise.all([h.release(held), releaseTurn(elsewhere, turn)]);
    expect(both.map((each) => each.outcome)).toEqual(["released", "released"]);
    const again = await h.release(held);
    expect(again.outcome).toBe("released");
    const rows = await h.db.sql<{ status: string }>(undefined, "SELECT status FROM operations ORDER BY id");
    expect(rows.map((row) => row.status)).toEqual(["PREPARED", "PREPARED"]);
    expect((await eventTypes(h.db, operationAt(held, 1))).filter((type) => type === "release")).toHaveLength(
      1,
    );
    expect((await balanceOf(h.db, "ORD-1")).reserved).toBe(2_000);
  });

  it("a decision does not expire while it waits for its siblings; an undecided one does, at the release itself", async () => {
    const held = await heldTurn(refund("ORD-1", 6_000n), refund("ORD-2", 7_000n));
    await h.click("U_SUP1", approvalAt(held, 0));
    await moveClock(h.db, 24 * 60 + 1);
    const released = await h.release(held);
    expect(released).toMatchObject({
      outcome: "released",
      calls: [{ outcome: "prepared" }, { outcome: "ended", operation: { status: "EXPIRED" } }],
    });
    expect((await current(h.db, held)).map((approval) => approval.state)).toEqual(["RELEASED", "EXPIRED"]);
  });

  it("one sibling's drift asks for that one again; the other's decision stands and is not asked again", async () => {
    const held = await heldTurn(refund("ORD-1", 6_000n), refund("ORD-2", 7_000n));
    await h.click("U_SUP1", approvalAt(held, 0));
    await h.click("U_SUP1", approvalAt(held, 1));
    await h.order({ ref: "ORD-2", captured: 31_000 });
    const release = await h.release(held);
    expect(release).toMatchObject({ outcome: "still_held", rearmed: [expect.stringMatching(/^apr_/)] });
    const [first, second] = await current(h.db, held);
    expect([first?.state, second?.state]).toEqual(["APPROVED", "PENDING"]);
    expect(second?.predecessorId).toBe(approvalAt(held, 1).id);
    expect(second?.changes.map((change) => change.what)).toEqual(["captured", "refundable"]);
    expect((await balanceOf(h.db, "ORD-1")).reserved).toBe(0);
    if (second === undefined) throw new Error("not asked again");
    await h.click("U_SUP2", second);
    expect((await h.release(held)).outcome).toBe("released");
    expect((await balanceOf(h.db, "ORD-1")).reserved).toBe(6_000);
    expect((await balanceOf(h.db, "ORD-2")).reserved).toBe(7_000);
  });

  it("two refunds of one order in one turn are no drift to each other", async () => {
    const held = await heldTurn(refund("ORD-3", 10_000n), refund("ORD-3", 12_000n));
    await h.click("U_SUP1", approvalAt(held, 0));
    await h.click("U_SUP1", approvalAt(held, 1));
    expect((await h.release(held)).outcome).toBe("released");
    expect((await balanceOf(h.db, "ORD-3")).reserved).toBe(22_000);
  });

  it("a sibling that was small alone is held at the release, when the two together pass the line", async () => {
    const held = await heldTurn(refund("ORD-3", 38_000n), refund("ORD-3", 2_000n));
    expect(held.outcomes.map((call) => call.outcome)).toEqual(["held", "ready"]);
    await h.click("U_SUP1", approvalAt(held, 0));
    const release = await h.release(held);
    expect(release).toMatchObject({ outcome: "still_held", rearmed: [expect.stringMatching(/^apr_/)] });
    expect((await approvalNow(h.db, approvalAt(held, 0).id)).state).toBe("APPROVED");
    expect((await balanceOf(h.db, "ORD-3")).reserved).toBe(0);
    if (release.outcome !== "still_held") return;
    const [second] = release.rearmed;
    if (second === undefined) throw new Error("not asked");
    await h.click("U_SUP2", second);
    expect((await h.release(held)).outcome).toBe("released");
    expect((await balanceOf(h.db, "ORD-3")).reserved).toBe(40_000);
  });

  it("a small sibling of a denied refund is prepared alone", async () => {
    const held = await heldTurn(refund("ORD-3", 38_000n), refund("ORD-3", 2_000n));
    await h.click("U_SUP1", approvalAt(held, 0), "deny");
    expect(await h.release(held)).toMatchObject({
      outcome: "released",
      calls: [{ outcome: "ended" }, { outcome: "prepared" }],
    });
    expect((await balanceOf(h.db, "ORD-3")).reserved).toBe(2_000);
  });

  it("people cannot be read: nothing is released and nothing is lost", async () => {
    const held = await heldTurn(refund("ORD-1", 18_000n));
    await h.click("U_SUP1", onlyApproval(held));
    h.people.away = true;
    expect((await h.release(held)).outcome).toBe("voters_unreadable");
    expect((await approvalNow(h.db, onlyApproval(held).id)).state).toBe("APPROVED");
    h.people.away = false;
    expect((await h.release(held)).outcome).toBe("released");
  });

  it("a customer read from text, confirmed after the card was made, does not void the card", async () => {
    const run = await h.ticket({ confirmed: false });
    const held = await h.turn(run, [refund("ORD-1", 2_000n)]);
    expect(onlyApproval(held).binding.bindingUnconfirmed).toBe(true);
    await h.db.sql(undefined, "UPDATE tickets SET binding = 'confirmed' WHERE id = $1", [run.ticketId]);
    await h.click("U_SUP1", onlyApproval(held));
    expect((await h.release(held)).outcome).toBe("released");
  });

  it("a large amount cools off before it may be sent", async () => {
    await h.policy(POLICY.replace("totals: []", "coolingOffMinutes: { GBP: { above: 10000, minutes: 10 } }"));
    const held = await heldTurn(refund("ORD-1", 18_000n));
    await h.click("U_SUP1", onlyApproval(held));
    const released = await h.release(held);
    if (released.outcome !== "released") throw new Error(released.outcome);
    const [call] = released.calls;
    if (call?.outcome !== "prepared") throw new Error("not prepared");
    const minutes = ((call.operation.notBefore?.getTime() ?? 0) - Date.now()) / 60_000;
    expect(minutes).toBeGreaterThan(5);
    expect(minutes).toBeLessThan(15);
  });
});

describe("the audit log", () => {
  it("says who voted, in which role and by what right, without their names; a release, a void and a no each once", async () => {
    const held = await heldTurn(refund("ORD-1", 18_000n));
    await h.click("U_SUP1", onlyApproval(held));
    await h.order({ ref: "ORD-1", captured: 19_000 });
    await h.release(held);
    const [again] = await current(h.db, held);
    if (again === undefined) throw new Error("not asked again");
    await h.click("U_SUP2", again);
    await h.release(held);
    await h.click("U_SUP1", again, "deny", { note: "on second thoughts" });
    const events = await eventsOf(h.db, operationAt(held, 0));
    expect(events.map(({ type }) => type)).toEqual(["hold", "approval_voided", "release", "deny"]);
    const [, voided, released, denied] = events;
    expect(voided?.data).toMatchObject({
      approval: onlyApproval(held).id,
      votes: [{ verdict: "approve", role: "supervisor", grantedBy: "list" }],
    });
    expect(JSON.stringify(voided?.data)).toContain("captured");
    expect(released?.data).toMatchObject({ approval: again.id, votes: [{ verdict: "approve" }] });
    expect(denied).toMatchObject({
      actor: "slack:U_SUP1",
      data: { code: "denied_late", approval: again.id },
    });
    const [stored] = await h.db.sql<{ bodies: string }>(
      undefined,
      "SELECT string_agg(body, ' ') AS bodies FROM operation_events",
    );
    expect(stored?.bodies).not.toMatch(/U_SUP|second thoughts/);
    expect((await verifyAudit(h.db)).intact).toBe(true);
  });
});

describe("one of two refunds of an order has been sent when the other drifts at the claim", () => {
  it("the successor's card shows what is left now, and approving it releases it: it is not asked again and again", async () => {
    const held = await heldTurn(refund("ORD-3", 6_000n), refund("ORD-3", 7_000n));
    for (const approval of held.approvals) await h.click("U_SUP1", approval);
    await h.release(held);
    await h.db.sql(
      undefined,
      "UPDATE payments SET refunded_elsewhere = 1000 FROM orders o WHERE o.id = order_id AND o.ref = 'ORD-3'",
    );
    const replaced = await replaceDrifted(h.ctx, { operationId: operationAt(held, 1) });
    if (replaced.outcome !== "replaced" || replaced.successor === null) throw new Error(replaced.outcome);
    const { approval, successor } = replaced;
    expect(approval?.binding.world.payment).toMatchObject({
      capturedMinor: 40_000n,
      refundableMinor: 33_000n,
      spent: { refundedMinor: 0n, elsewhereMinor: 1_000n, reservedMinor: 6_000n },
    });
    if (approval === null) throw new Error("not asked again");
    await h.click("U_SUP2", approval);
    const calls = turnCalls(held).map((call, index) =>
      index === 1 ? { callId: call.callId, operationId: successor.id } : call,
    );
    expect(await releaseTurn(h.ctx, { runId: held.runId, turnId: held.turnId, calls })).toMatchObject({
      outcome: "released",
      calls: [{ outcome: "same" }, { outcome: "prepared" }],
    });
  });
});

describe("who waited for an operation that drifted at the claim", () => {
  it("waits for its successor, which is handed to them when its owner is stopped", async () => {
    const held = await heldTurn(refund("ORD-1", 6_000n));
    const waiter = await h.turn(await h.ticket({ filers: ["U_OTHER"] }), [refund("ORD-1", 6_000n)]);
    expect(waiter.outcomes).toMatchObject([{ outcome: "same", operation: { id: operationAt(held, 0) } }]);
    await h.click("U_SUP1", onlyApproval(held));
    await h.release(held);
    await h.order({ ref: "ORD-1", captured: 19_000 });
    const replaced = await replaceDrifted(h.ctx, { operationId: operationAt(held, 0) });
    if (replaced.outcome !== "replaced" || replaced.successor === null) throw new Error(replaced.outcome);
    const successor = replaced.successor.id;
    expect(await waitersOf(h.db, successor)).toMatchObject([{ runId: waiter.runId, filer: "U_OTHER" }]);
    await h.db.tx((tx) => ownerGone(tx, h.ctx, { runId: held.runId, actor: `run:${held.runId}` }));
    expect(await statusOf(h.db, successor)).toBe("AWAITING_APPROVAL");
    // In the waiter's own turn, so that a decision wakes it and releases it there.
    expect(await approvalOfOperation(h.db, successor)).toMatchObject({
      runId: waiter.runId,
      turnId: waiter.turnId,
    });
  });
});

describe("two tickets on one order (S-PAY-6)", () => {
  it.each(Array.from({ length: 8 }, (_, index) => [index]))(
    "round %i: £60 and £70 of £100, approved at once: exactly one is prepared",
    async () => {
      await h.order({ ref: "ORD-100", captured: 10_000 });
      const first = await heldTurn(refund("ORD-100", 6_000n));
      const second = await heldTurn(refund("ORD-100", 7_000n));
      await Promise.all([h.click("U_SUP1", onlyApproval(first)), h.click("U_SUP2", onlyApproval(second))]);
      const elsewhere = h.elsewhere(database.openAnother());
      await Promise.all([
        h.release(first),
        releaseTurn(elsewhere, { runId: second.runId, turnId: second.turnId, calls: turnCalls(second) }),
      ]);
      const statuses = await Promise.all([first, second].map((held) => statusOf(h.db, operationAt(held, 0))));
      expect(statuses.toSorted()).toEqual(["PREPARED", "VOIDED"]);
      const loser = statuses[0] === "VOIDED" ? first : second;
      const left = statuses[0] === "VOIDED" ? "£30.00" : "£40.00";
      const [row] = await h.db.sql<{ result: { detail: string } }>(
        undefined,
        "SELECT result FROM operations WHERE id = $1",
        [operationAt(loser, 0)],
      );
      expect(row?.result.detail.toLowerCase()).toContain(`only ${left}`);
      const { state, endDetail } = await approvalNow(h.db, onlyApproval(loser).id);
      expect(state).toBe("VOIDED");
      // What is left stands on the card once.
      expect(endDetail?.split(left)).toHaveLength(2);
      expect(endDetail).toMatch(
        /^The policy no longer allows it: only £[34]0\.00 GBP is left to refund on this order, less than £[67]0\.00 GBP\.$/u,
      );
      const { reserved, refunded, captured } = await balanceOf(h.db, "ORD-100");
      expect(reserved + refunded).toBeLessThanOrEqual(captured);
    },
  );
});

describe("nobody waits", () => {
  it("an approval that nobody decides ends as EXPIRED by the sweep, and its run is told", async () => {
    const held = await heldTurn(refund("ORD-1", 18_000n));
    await moveClock(h.db, 24 * 60 + 1);
    await attendDue(h.ctx, { limit: 10 });
    expect((await approvalNow(h.db, onlyApproval(held).id)).state).toBe("EXPIRED");
    expect(await statusOf(h.db, operationAt(held, 0))).toBe("EXPIRED");
    expect(h.shown.decidedTurns).toEqual([held.turnId]);
  });
});
