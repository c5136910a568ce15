/**
 * A held turn as a model of a few states against the real room, ledger and database: three refunds, votes in any order,
 * noes at any moment, drift, a second run that waits for the first refund, deadlines, workers that die and workers that race.
 *
 * The model knows, for each call, what its card showed of the order's balance, and what it was released with; everything else is
 * derived. The second and third refund are of one order, so that what one sets aside is part of what the other's card shows.
 */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  type ApprovalsContext,
  attendDue,
  ownerGone,
  readTurn,
  readVoters,
  releaseTurn,
  replaceDrifted,
  stillHolds,
} from "../../src/approvals/index.js";
import type { Approval } from "../../src/domain/approval.js";
import type { OperationId } from "../../src/domain/ids.js";
import { claim, getOperation } from "../../src/ledger/index.js";
import { withDatabase } from "../support/database.js";
import { type Harness, type Held, harness } from "./harness.js";
import { balanceOf, eventTypes, moveClock, operationAt, statusOf } from "./steps.js";

type CallState = "pending" | "approved" | "prepared" | "sent" | "denied" | "expired" | "voided";

interface ModelCall {
  state: CallState;
  /** What was left to refund on the order when the present card was made. */
  shown: number;
  /** Operations that were prepared together with this one: what they set aside is no drift. */
  group: readonly OperationId[];
}

interface Model {
  calls: ModelCall[];
  /** Refunded elsewhere, by order. */
  elsewhere: Map<string, number>;
  /** Where the first refund lives: in the first run, or with the one that waited for it. */
  stopped: boolean;
  hours: number;
}

interface Real {
  h: Harness;
  held: Held;
  /** The operations that the calls stand for now; a successor takes its predecessor's place. */
  operations: OperationId[];
  waiter: Held;
}

const ORDERS = ["ORD-A", "ORD-B", "ORD-B"] as const;
const CAPTURED = 50_000;
const AMOUNTS = [6_000, 7_000, 8_000] as const;
const OPEN: ReadonlySet<CallState> = new Set(["pending", "approved"]);
const SPENDING: ReadonlySet<CallState> = new Set(["prepared", "sent"]);

const callOf = (model: Model, index: number): ModelCall => {
  const call = model.calls[index];
  if (call === undefined) throw new Error(`no call ${index}`);
  return call;
};
const idOf = (real: Real, index: number): OperationId => {
  const id = real.operations[index];
  if (id === undefined) throw new Error(`no operation ${index}`);
  return id;
};
const orderOf = (index: number): string => ORDERS[index] ?? "";

/** The calls that the turn of this moment still has: all three, or the first alone once its owner was stopped. */
const inTurn = (model: Model): number[] => (model.stopped ? [0] : [0, 1, 2]);

function turnOf(model: Model, real: Real): Parameters<typeof releaseTurn>[1] {
  const { runId, turnId, calls } = model.stopped ? real.waiter : real.held;
  return {
    runId,
    turnId,
    calls: calls.map(({ callId }, index) => ({ callId, operationId: idOf(real, index) })),
  };
}

async function approvalOf(model: Model, real: Real, index: number): Promise<Approval> {
  const { turnId } = turnOf(model, real);
  const all = [...(await readTurn(real.h.db, real.held.turnId)), ...(await readTurn(real.h.db, turnId))];
  const found = all.findLast((each) => each.operationId === idOf(real, index));
  if (found === undefined) throw new Error(`call ${index} has no approval`);
  return found;
}

/** What is left to refund on the order of a call, what `but` set aside not counted. */
function leftFor(model: Model, real: Real, index: number, but: readonly OperationId[]): number {
  const order = orderOf(index);
  const spent = model.calls.map(({ state }, other) => {
    const counts = orderOf(other) === order && SPENDING.has(state) && !but.includes(idOf(real, other));
    return counts ? (AMOUNTS[other] ?? 0) : 0;
  });
  return spent.reduce((left, amount) => left - amount, CAPTURED - (model.elsewhere.get(order) ?? 0));
}

/** What a release does to the model. */
function modelRelease(model: Model, real: Real): "still_held" | "released" {
  const indices = inTurn(model);
  const calls = indices.map((index) => callOf(model, index));
  if (calls.some((call) => call.state === "pending")) return "still_held";
  const approved = indices.filter((index) => callOf(model, index).state === "approved");
  const drifted = approved.filter((index) => callOf(model, index).shown !== leftFor(model, real, index, []));
  for (const index of drifted) {
    const call = callOf(model, index);
    call.state = "pending";
    call.shown = leftFor(model, real, index, []);
  }
  if (drifted.length > 0) return "still_held";
  const group = approved.map((index) => idOf(real, index));
  for (const index of approved) Object.assign(callOf(model, index), { state: "prepared", group });
  return "released";
}

type Act = (model: Model, real: Real) => Promise<void>;

/** A step of the model; after it the rows are compared with the model. */
function step(
  name: string,
  act: Act,
  check: (model: Readonly<Model>) => boolean = () => true,
): fc.AsyncCommand<Model, Real> {
  return {
    check,
    run: async (model, real) => {
      await act(model, real);
      await compare(model, real);
    },
    toString: () => name,
  };
}

const approve = (index: number, who: string) =>
  step(`approve(${index}, ${who})`, async (model, real) => {
    const call = callOf(model, index);
    const outcome = await real.h.click(who, await approvalOf(model, real, index));
    if (call.state === "pending") {
      expect(outcome.outcome).toBe("approved");
      call.state = "approved";
    } else expect(outcome.outcome).toBe("ended");
  });

/** Whatever is undecided gets its yes: so that most sequences come as far as a release. */
const approveAll = (who: string) =>
  step(`approve all(${who})`, async (model, real) => {
    for (const [index, call] of model.calls.entries()) {
      if (call.state !== "pending") continue;
      const outcome = await real.h.click(who, await approvalOf(model, real, index));
      expect(outcome.outcome).toBe("approved");
      call.state = "approved";
    }
  });

/** The short way to a released turn: so that many sequences begin where dispatch does. */
const approveAndRelease = () =>
  step("approve all and release", async (model, real) => {
    await approveAll("U_SUP1").run(model, real);
    await release(1).run(model, real);
  });

const deny = (index: number) =>
  step(`deny(${index})`, async (model, real) => {
    const call = callOf(model, index);
    const outcome = await real.h.click("U_SUP2", await approvalOf(model, real, index), "deny");
    if (OPEN.has(call.state) || call.state === "prepared") {
      expect(outcome).toMatchObject({ outcome: "denied", late: call.state !== "pending" });
      call.state = "denied";
    } else expect(outcome.outcome).toBe(call.state === "sent" ? "already_sent" : "ended");
  });

const change = (index: number) =>
  step(`change(${index})`, async (model, real) => {
    const order = orderOf(index);
    model.elsewhere.set(order, (model.elsewhere.get(order) ?? 0) + 1);
    await real.h.db.sql(
      undefined,
      "UPDATE payments SET refunded_elsewhere = refunded_elsewhere + 1 FROM orders o WHERE o.id = order_id AND o.ref = $1",
      [orderOf(index)],
    );
  });

const release = (workers: 1 | 2) =>
  step(`release(${workers})`, async (model, real) => {
    const turn = turnOf(model, real);
    const outcomes = await Promise.all(Array.from({ length: workers }, () => releaseTurn(real.h.ctx, turn)));
    // A second worker comes after the first: it finds what the first has left.
    const expected = outcomes.map(() => modelRelease(model, real));
    expect(outcomes.map((each) => each.outcome).toSorted()).toEqual(expected.toSorted());
  });

/** The worker dies inside the transaction, at the n-th question to the policy: as if it had never begun. */
const dyingRelease = (at: number) =>
  step(`dying release(${at})`, async (model, real) => {
    let asked = 0;
    const { judge } = real.h.ctx;
    const dying: ApprovalsContext = {
      ...real.h.ctx,
      judge: {
        plan: (tx, subject) => judge.plan(tx, subject),
        judge: async (tx, subject) => {
          asked += 1;
          if (asked === at) throw new Error("killed");
          return judge.judge(tx, subject);
        },
      },
    };
    try {
      await releaseTurn(dying, turnOf(model, real));
    } catch (error) {
      expect(String(error)).toContain("killed");
      return;
    }
    modelRelease(model, real);
  });

const claimOne = (index: number) =>
  step(`claim(${index})`, async (model, real) => {
    const call = callOf(model, index);
    const { ctx } = real.h;
    const operationId = idOf(real, index);
    const operation = await getOperation(ctx.db, operationId);
    if (operation?.status !== "PREPARED") {
      expect(call.state).not.toBe("prepared");
      return;
    }
    expect(call.state).toBe("prepared");
    const voters = await readVoters(ctx, operationId);
    const result = await claim(ctx.ledger, {
      operation,
      worker: "w",
      request: { endpoint: "refunds.create", target: null, params: {} },
      guard: async (tx, locked) => {
        const look = await stillHolds(tx, ctx, { operation: locked, voters });
        return look.holds ? { ok: true } : { ok: false, detail: look.code };
      },
    });
    if (call.shown === leftFor(model, real, index, call.group)) {
      expect(result.claimed).toBe(true);
      call.state = "sent";
      return;
    }
    expect(result).toMatchObject({ claimed: false, why: "guard", detail: "drift" });
    const replaced = await replaceDrifted(ctx, { operationId });
    if (replaced.outcome !== "replaced" || replaced.successor === null) throw new Error("no successor");
    call.state = "pending";
    call.group = [];
    call.shown = leftFor(model, real, index, []);
    real.operations[index] = replaced.successor.id;
  });

const deadline = () =>
  step("deadline", async (model, real) => {
    model.hours += 25;
    await moveClock(real.h.db, model.hours * 60);
    await attendDue(real.h.ctx, { limit: 100 });
    for (const call of model.calls) if (call.state === "pending") call.state = "expired";
  });

/** The first run is stopped: what it had not sent ends, except the first refund, which another run waits for. */
const stop = () =>
  step(
    "stop",
    async (model, real) => {
      const { ctx } = real.h;
      await ctx.db.tx(async (tx) => {
        await ownerGone(tx, ctx, { runId: real.held.runId, actor: `run:${real.held.runId}` });
        await tx.sql(undefined, "UPDATE runs SET state = 'cancelled' WHERE id = $1", [real.held.runId]);
      });
      model.stopped = true;
      for (const [index, call] of model.calls.entries()) {
        const unsent = OPEN.has(call.state) || call.state === "prepared";
        if (unsent && index > 0) call.state = "voided";
      }
    },
    (model) => !model.stopped,
  );

const STATUS: Readonly<Record<CallState, string>> = {
  pending: "AWAITING_APPROVAL",
  approved: "AWAITING_APPROVAL",
  prepared: "PREPARED",
  sent: "DISPATCHED",
  denied: "DENIED",
  expired: "EXPIRED",
  voided: "VOIDED",
};
const APPROVAL: Readonly<Record<CallState, string>> = {
  pending: "PENDING",
  approved: "APPROVED",
  prepared: "RELEASED",
  sent: "RELEASED",
  denied: "DENIED",
  expired: "EXPIRED",
  voided: "VOIDED",
};

/** After every step the rows say what the model says, and the money that is set aside is exactly what may be spent. */
async function compare(model: Model, real: Real): Promise<void> {
  for (const [index, call] of model.calls.entries()) {
    const id = idOf(real, index);
    const where = `call ${index}`;
    expect(await statusOf(real.h.db, id), where).toBe(STATUS[call.state]);
    expect((await approvalOf(model, real, index)).state, where).toBe(APPROVAL[call.state]);
    const { captured, reserved, refunded } = await balanceOf(real.h.db, orderOf(index));
    const elsewhere = model.elsewhere.get(orderOf(index)) ?? 0;
    expect(captured - reserved - refunded - elsewhere, where).toBe(leftFor(model, real, index, []));
    const releases = (await eventTypes(real.h.db, id)).filter((type) => type === "release");
    expect(releases.length, where).toBeLessThanOrEqual(1);
  }
}

const call = fc.constantFrom(0, 1, 1, 2, 2);
const approval = fc
  .tuple(call, fc.constantFrom("U_SUP1", "U_SUP2"))
  .map(([index, who]) => approve(index, who));
const commands = fc.commands(
  [
    approval,
    fc.constantFrom("U_SUP1", "U_SUP2").map(approveAll),
    fc.constant(null).map(approveAndRelease),
    fc.constant(null).map(approveAndRelease),
    call.map(deny),
    call.map(change),
    fc.constantFrom<1 | 2>(1, 1, 2).map(release),
    fc.constantFrom<1 | 2>(1, 1, 2).map(release),
    fc.integer({ min: 1, max: 3 }).map(dyingRelease),
    call.map(claimOne),
    call.map(claimOne),
    fc.constant(null).map(deadline),
    fc.constant(null).map(stop),
  ],
  { maxCommands: 24, size: "max" },
);

describe("a held turn behaves as its model, whatever happens in whatever order", () => {
  const database = withDatabase();

  it("three refunds, drift, a waiter and kills", { timeout: 300_000 }, async () => {
    await fc.assert(
      fc.asyncProperty(commands, async (steps) => {
        await database.reset();
        const h = await harness(database.db);
        for (const order of new Set(ORDERS)) await h.order({ ref: order, captured: CAPTURED });
        const held = await h.turn(
          await h.ticket(),
          ORDERS.map((order, position) => ({ order, amount: BigInt(AMOUNTS[position] ?? 0) })),
        );
        const waiter = await h.turn(await h.ticket({ filers: ["U_OTHER"] }), [
          { order: "ORD-A", amount: 6_000n },
        ]);
        expect(waiter.outcomes.map((call) => call.outcome)).toEqual(["same"]);
        const model: Model = {
          calls: ORDERS.map(() => ({ state: "pending", shown: CAPTURED, group: [] })),
          elsewhere: new Map(),
          stopped: false,
          hours: 0,
        };
        const real: Real = {
          h,
          held,
          waiter,
          operations: ORDERS.map((_, position) => operationAt(held, position)),
        };
        await fc.asyncModelRun(() => ({ model, real }), steps);
      }),
      { numRuns: 60, verbose: 1 },
    );
  });
});
