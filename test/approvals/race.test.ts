import { beforeEach, describe, expect, it } from "vitest";
import {
  type DecideOutcome,
  decide,
  readVoters,
  releaseTurn,
  stillHolds,
  undo,
} from "../../src/approvals/index.js";
import { claim, getOperation } from "../../src/ledger/index.js";
import { withDatabase } from "../support/database.js";
import { type Harness, type Held, harness, turnCalls } from "./harness.js";
import { approvalNow, balanceOf, barrier, eventTypes, onlyApproval, operationAt, statusOf } from "./steps.js";

const database = withDatabase({ poolSize: 12 });
let h: Harness;

beforeEach(async () => {
  h = await harness(database.db);
  await h.order({ ref: "ORD-1", captured: 18_000 });
  await h.order({ ref: "ORD-2", captured: 100_000 });
});

const ROUNDS = 12;
const rounds = Array.from({ length: ROUNDS }, (_, index) => [index]);

async function held(amount = 18_000n, order = "ORD-1"): Promise<Held> {
  return h.turn(await h.ticket(), [{ order, amount }]);
}

/** A click from a process of its own. */
const clickFrom = (userId: string, turn: Held, verdict: "approve" | "deny") => {
  const elsewhere = h.elsewhere(database.openAnother());
  const { id, cardVersion } = onlyApproval(turn);
  return (): Promise<DecideOutcome> => decide(elsewhere, { approvalId: id, cardVersion, userId, verdict });
};

describe("clicks at the same moment: exactly one decides, everybody hears the same story", () => {
  it.each(rounds)("two supervisors approve, round %i (S-SL-2)", async () => {
    const turn = await held();
    const { id } = onlyApproval(turn);
    const outcomes = await barrier(h.db, id, [
      clickFrom("U_SUP1", turn, "approve"),
      clickFrom("U_SUP2", turn, "approve"),
    ]);
    expect(outcomes.map((each) => each.outcome).toSorted()).toEqual(["approved", "ended"]);
    const approval = await approvalNow(h.db, id);
    expect(approval.votes).toHaveLength(1);
    const told = outcomes.find((each) => each.outcome === "ended");
    if (told?.outcome !== "ended") throw new Error("nobody was told");
    expect(told.decision).toMatchObject({ state: "APPROVED", by: [approval.votes[0]?.userId] });
    expect(told.decision.at.getTime()).toBe(approval.decidedAt?.getTime());
  });

  it("the same click five times: one vote, four honest answers (S-SL-2)", async () => {
    const turn = await held();
    const { id } = onlyApproval(turn);
    const clicks = Array.from({ length: 5 }, () => clickFrom("U_SUP1", turn, "approve"));
    const outcomes = await barrier(h.db, id, clicks);
    expect(outcomes.map((each) => each.outcome).toSorted()).toEqual([
      "approved",
      "ended",
      "ended",
      "ended",
      "ended",
    ]);
    expect((await approvalNow(h.db, id)).votes).toHaveLength(1);
    expect(h.shown.decidedTurns).toEqual([turn.turnId]);
  });

  it.each(rounds)("approve and deny, round %i: the no wins, once, whoever was first (S-AP-3)", async () => {
    const turn = await held();
    const { id } = onlyApproval(turn);
    const [yes, no] = await barrier(h.db, id, [
      clickFrom("U_SUP1", turn, "approve"),
      clickFrom("U_SUP2", turn, "deny"),
    ]);
    expect(no?.outcome).toBe("denied");
    expect(["approved", "ended"]).toContain(yes?.outcome);
    const approval = await approvalNow(h.db, id);
    expect(approval.state).toBe("DENIED");
    expect(await statusOf(h.db, operationAt(turn, 0))).toBe("DENIED");
    expect((await eventTypes(h.db, operationAt(turn, 0))).filter((type) => type === "deny")).toHaveLength(1);
    expect(await h.release(turn)).toMatchObject({ outcome: "released", calls: [{ outcome: "ended" }] });
  });

  it("two of finance at once complete an approval of two together", async () => {
    const turn = await held(80_000n, "ORD-2");
    const { id } = onlyApproval(turn);
    const outcomes = await barrier(h.db, id, [
      clickFrom("U_FIN1", turn, "approve"),
      clickFrom("U_FIN2", turn, "approve"),
    ]);
    expect(outcomes.map((each) => each.outcome).toSorted()).toEqual(["approved", "recorded"]);
    expect((await approvalNow(h.db, id)).votes).toHaveLength(2);
  });

  it("two siblings decided at once: the run is told exactly when both are", async () => {
    const turn = await h.turn(await h.ticket(), [
      { order: "ORD-1", amount: 6_000n },
      { order: "ORD-2", amount: 7_000n },
    ]);
    const [first, second] = turn.approvals;
    if (first === undefined || second === undefined) throw new Error("two approvals were expected");
    const elsewhere = [h.elsewhere(database.openAnother()), h.elsewhere(database.openAnother())] as const;
    await barrier(h.db, first.id, [
      () =>
        decide(elsewhere[0], { approvalId: first.id, cardVersion: 1, userId: "U_SUP1", verdict: "approve" }),
      () =>
        decide(elsewhere[1], { approvalId: second.id, cardVersion: 1, userId: "U_SUP2", verdict: "approve" }),
    ]);
    expect(h.shown.decidedTurns).toEqual([turn.turnId]);
  });
});

describe("a no against the dispatch", () => {
  it.each(rounds)("deny and release at once, round %i: denied, or prepared and then denied", async () => {
    const turn = await held();
    await h.click("U_SUP1", onlyApproval(turn));
    const elsewhere = h.elsewhere(database.openAnother());
    const [no] = await barrier(h.db, onlyApproval(turn).id, [
      clickFrom("U_SUP2", turn, "deny"),
      async () => {
        await releaseTurn(elsewhere, { runId: turn.runId, turnId: turn.turnId, calls: turnCalls(turn) });
        return { outcome: "not_found" } as DecideOutcome;
      },
    ]);
    expect(no?.outcome).toBe("denied");
    expect(await statusOf(h.db, operationAt(turn, 0))).toBe("DENIED");
    expect((await balanceOf(h.db, "ORD-1")).reserved).toBe(0);
  });

  it.each(rounds)(
    "deny and claim at once, round %i: either it is denied, or it left and the person hears that",
    async () => {
      const turn = await held();
      await h.click("U_SUP1", onlyApproval(turn));
      await h.release(turn);
      const operationId = operationAt(turn, 0);
      const elsewhere = h.elsewhere(database.openAnother());
      const voters = await readVoters(elsewhere, operationId);
      const operation = await getOperation(elsewhere.db, operationId);
      if (operation === null) throw new Error("gone");
      let claimed = false;
      const [no] = await barrier(h.db, onlyApproval(turn).id, [
        clickFrom("U_SUP2", turn, "deny"),
        async () => {
          const result = await claim(elsewhere.ledger, {
            operation,
            worker: "w",
            request: { endpoint: "refunds.create", target: null, params: {} },
            guard: async (tx, locked) => {
              const look = await stillHolds(tx, elsewhere, { operation: locked, voters });
              return look.holds ? { ok: true } : { ok: false, detail: look.code };
            },
          });
          claimed = result.claimed;
          return { outcome: "not_found" } as DecideOutcome;
        },
      ]);
      const status = await statusOf(h.db, operationId);
      const approval = await approvalNow(h.db, onlyApproval(turn).id);
      if (claimed) {
        expect([no?.outcome, status, approval.state]).toEqual(["already_sent", "DISPATCHED", "RELEASED"]);
        expect((await balanceOf(h.db, "ORD-1")).reserved).toBe(18_000);
      } else {
        expect([no?.outcome, status, approval.state]).toEqual(["denied", "DENIED", "DENIED"]);
        expect((await balanceOf(h.db, "ORD-1")).reserved).toBe(0);
      }
    },
  );

  it("Undo during cooling-off ends it without an effect, and a second Undo hears so", async () => {
    const turn = await held();
    await h.click("U_SUP1", onlyApproval(turn));
    await h.release(turn);
    const { id } = onlyApproval(turn);
    expect(await undo(h.ctx, { approvalId: id, userId: "U_SUP1" })).toMatchObject({
      outcome: "denied",
      late: true,
    });
    expect((await approvalNow(h.db, id)).endCode).toBe("undone");
    expect(await undo(h.ctx, { approvalId: id, userId: "U_SUP2" })).toMatchObject({
      outcome: "ended",
      decision: { state: "DENIED", by: ["U_SUP1"] },
    });
    expect((await balanceOf(h.db, "ORD-1")).reserved).toBe(0);
  });
});

describe("the person is read again at the click", () => {
  it("a role that is taken away while the click waits for a lock does not sign", async () => {
    const turn = await held();
    let asked = 0;
    h.people.beforeAnswer = async () => {
      asked += 1;
    };
    h.people.all.set("U_SUP1", { roles: [] });
    expect(await h.click("U_SUP1", onlyApproval(turn))).toMatchObject({
      outcome: "refused",
      reason: "not_in_role",
    });
    expect(asked).toBe(1);
  });
});
