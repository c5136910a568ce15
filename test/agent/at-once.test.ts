/**
 * The last click of a held turn releases it in the process that heard it. The queue is only a safety net: whatever happens to that
 * release, the turn is released once, by somebody, and there is one effect.
 */
import { afterEach, expect, test } from "vitest";
import { releaseAtOnce } from "../../src/agent/index.js";
import { releasingAtOnce } from "../../src/app/compose/at-once.js";
import { type ApprovalsContext, type DecidedTurn, decide } from "../../src/approvals/index.js";
import type { Approval } from "../../src/domain/approval.js";
import { armFailpoint, disarmFailpoints } from "../../src/domain/failpoints.js";
import type { RunId } from "../../src/domain/ids.js";
import { eventsOf, getOperation } from "../../src/ledger/index.js";
import { leaseRun, requestCancel } from "../../src/runs/index.js";
import { heldRefund, loopSuite } from "./support/suite.js";

const suite = loopSuite();
afterEach(() => disarmFailpoints());

/** A run whose only write waits for one supervisor. */
async function held() {
  const { world, runId, approval } = await heldRefund(suite);
  const woken: string[] = [];
  const agent = {
    ...world.ctx,
    wake: async (kind: string, id: string) => void woken.push(`${kind} ${id}`),
  };
  const approve = (by = "U_SUP1", which: Approval = approval) =>
    releasingAtOnce(
      { approvals: world.approvals, agent },
      decide,
    )({
      approvalId: which.id,
      cardVersion: which.cardVersion,
      userId: by,
      verdict: "approve",
    });
  const events = async (): Promise<string[]> =>
    (await eventsOf(world.db, approval.operationId)).map(({ type }) => type);
  const status = async () => (await getOperation(world.db, approval.operationId))?.status;
  const oneEffect = async () => {
    await world.pump();
    expect((await world.view(runId)).run.state).toBe("resolved");
    expect((await events()).filter((type) => type === "release")).toHaveLength(1);
    expect(await suite.committed()).toBe(1);
  };
  return { world, runId, approval, agent, approve, woken, events, status, oneEffect };
}

/** Votes as the product does, and hands out what would be released at once instead of releasing it. */
async function voted({ world, approval }: Awaited<ReturnType<typeof held>>): Promise<DecidedTurn> {
  const decided: DecidedTurn[] = [];
  const ctx: ApprovalsContext = {
    ...world.approvals,
    hooks: { ...world.approvals.hooks, afterTurnDecided: (turn) => void decided.push(turn) },
  };
  await decide(ctx, {
    approvalId: approval.id,
    cardVersion: approval.cardVersion,
    userId: "U_SUP1",
    verdict: "approve",
  });
  const [turn, ...more] = decided;
  if (turn === undefined || more.length > 0) throw new Error("not one decided turn");
  return turn;
}

const due = async (world: Awaited<ReturnType<typeof held>>["world"], runId: RunId) =>
  (
    await world.db.sql<{ due: boolean }>(
      undefined,
      "SELECT due_at <= countersign_now() AS due FROM runs WHERE id = $1",
      [runId],
    )
  )[0]?.due;

test("the click's answer comes with the turn released, nothing sent, and the run due for a worker that is woken", async () => {
  const { world, runId, approve, woken, status, events, oneEffect } = await held();
  const reads = world.people.reads;
  expect(await approve()).toMatchObject({ outcome: "approved", waitsFor: 0 });
  expect(await status()).toBe("PREPARED");
  expect((await events()).at(-1)).toBe("release");
  const view = await world.view(runId);
  expect([view.run.state, view.turns.at(-1)?.state, view.calls.at(-1)?.state]).toEqual([
    "queued",
    "released",
    "ready",
  ]);
  expect([await due(world, runId), woken]).toEqual([true, [`run ${runId}`]]);
  expect(world.people.reads).toBe(reads + 1); // read for the click, and not again for the release
  expect(await suite.committed()).toBe(0);
  await oneEffect();
});

test("a vote whose release finds that nothing holds any more is answered with that, and nothing is sent", async () => {
  const { world, runId, approve, status } = await held();
  await world.db.sql(undefined, "UPDATE payments SET refunded_elsewhere = 10000 WHERE captured = 18000");
  expect(await approve()).toMatchObject({
    outcome: "approved",
    approval: { state: "VOIDED", votes: [{ userId: "U_SUP1", verdict: "approve" }] },
  });
  expect(await status()).toBe("VOIDED");
  await world.pump();
  expect((await world.view(runId)).run.state).not.toBe("awaiting_approval");
  expect(await suite.committed()).toBe(0);
});

test("a run that a worker has taken meanwhile is that worker's: everything at once is undone", async () => {
  const scene = await held();
  const { world, runId, agent, status, events, oneEffect } = scene;
  const turn = await voted(scene);
  let token: bigint | undefined;
  const slow = {
    ...agent,
    gate: {
      ...agent.gate,
      release: async (...[asked, more]: Parameters<typeof agent.gate.release>) => {
        // After the run was read as nobody's.
        token = (await leaseRun(world.db, { runId, holder: "other", leaseMs: 300 }))?.token;
        return agent.gate.release(asked, more);
      },
    },
  };
  const before = await events();
  expect(await releaseAtOnce(slow, turn)).toBe("left");
  expect(token).toBeDefined();
  expect([await status(), await events()]).toEqual(["AWAITING_APPROVAL", before]);
  expect((await world.view(runId)).turns.at(-1)?.state).toBe("held");
  // The worker that took it says nothing more: its lease runs out.
  await expect.poll(() => due(world, runId)).toBe(true);
  await oneEffect();
});

test("at once by two processes and by a worker at the same time: released once", async () => {
  const scene = await held();
  const { world, runId, agent, oneEffect } = scene;
  const turn = await voted(scene);
  await Promise.all([releaseAtOnce(agent, turn), releaseAtOnce(agent, turn), world.drive(runId)]);
  await oneEffect();
});

test("the vote and the release of its turn are one commit", async () => {
  const { world, approval, approve } = await held();
  await approve();
  const [same] = await world.db.sql<{ one: boolean }>(
    undefined,
    `SELECT v.xmin = a.xmin AND a.xmin = t.xmin AND t.xmin = r.xmin AS one FROM votes v JOIN approvals a ON a.id = v.approval_id
     JOIN turns t ON t.id = a.turn_id JOIN runs r ON r.id = a.run_id WHERE a.id = $1`,
    [approval.id],
  );
  expect(same).toEqual({ one: true });
});

test("a release that fails with its vote takes nothing with it: the vote is stored alone, and the turn released after it", async () => {
  const { approve, woken, runId, status, events, oneEffect } = await held();
  armFailpoint("approvals.after_turn_decided", () => {
    throw new Error("failed here");
  });
  expect(await approve()).toMatchObject({ outcome: "approved", waitsFor: 0 });
  expect([await status(), woken]).toEqual(["PREPARED", [`run ${runId}`]]);
  expect((await events()).filter((type) => type === "release")).toHaveLength(1);
  await oneEffect();
});

test("a click that meets a worker in the run stores its vote, and the worker's lease holds", async () => {
  const { world, runId, approval, approve, status, oneEffect } = await held();
  await world.db.sql(undefined, "UPDATE runs SET due_at = countersign_now() WHERE id = $1", [runId]);
  const taken = await leaseRun(world.db, { runId, holder: "other", leaseMs: 60_000 });
  expect(taken).not.toBeNull();
  expect(await approve()).toMatchObject({ outcome: "approved", waitsFor: 0 });
  expect(await status()).toBe("AWAITING_APPROVAL");
  const votes = await world.db.sql(undefined, "SELECT 1 FROM votes WHERE approval_id = $1", [approval.id]);
  expect(votes).toHaveLength(1);
  await world.db.sql(
    undefined,
    "UPDATE runs SET lease_until = countersign_now(), due_at = countersign_now() WHERE id = $1",
    [runId],
  );
  await oneEffect();
});

test("a process that dies between the vote and the release leaves a run that is due, and a turn that a worker releases", async () => {
  const { world, runId, approve, woken, status, oneEffect } = await held();
  const die = (): void => {
    armFailpoint("approvals.after_turn_decided", die);
    throw new Error("died here");
  };
  armFailpoint("approvals.after_turn_decided", die);
  expect(await approve()).toMatchObject({ outcome: "approved" });
  expect([await status(), await due(world, runId)]).toEqual(["AWAITING_APPROVAL", true]);
  expect(woken).toEqual([`run ${runId}`]);
  expect(world.logs.filter(({ level }) => level === "warn").map(({ message }) => message)).toEqual([
    "a decided turn could not be released at once; a worker does it",
  ]);
  await oneEffect();
});

test("a reading that has become too old is made again, and a role that was lost meanwhile does not sign", async () => {
  const scene = await held();
  const { world, agent, status } = scene;
  const turn = await voted(scene);
  if (turn.people === null) throw new Error("nobody was read");
  world.people.all.set("U_SUP1", { roles: [] });
  const old = { ...turn, people: { ...turn.people, readAt: turn.people.readAt - 5_000 } };
  expect(await releaseAtOnce(agent, old)).toBe("left");
  expect(await status()).toBe("AWAITING_APPROVAL");
  const [asked, ...more] = await world.pending();
  expect([asked?.predecessorId, more]).toEqual([scene.approval.id, []]);
  await world.pump();
  expect(await suite.committed()).toBe(0);
});

test("a run that was stopped is left to the worker that ends it: nothing is prepared", async () => {
  const scene = await held();
  const { world, runId, agent, status } = scene;
  const turn = await voted(scene);
  await requestCancel(world.ctx, { runId, by: "U_AGENT" });
  expect(await releaseAtOnce(agent, turn)).toBe("left");
  await world.pump();
  expect([(await world.view(runId)).run.state, await status()]).toEqual(["cancelled", "VOIDED"]);
  expect(await suite.committed()).toBe(0);
});

test("a no is carried on at once too: the run goes on with its answer", async () => {
  const { world, runId, approval, agent, status } = await held();
  const outcome = await releasingAtOnce(
    { approvals: world.approvals, agent },
    decide,
  )({
    approvalId: approval.id,
    cardVersion: approval.cardVersion,
    userId: "U_SUP1",
    verdict: "deny",
    note: "not torn",
  });
  expect(outcome.outcome).toBe("denied");
  expect(await status()).toBe("DENIED");
  const view = await world.view(runId);
  expect([view.run.state, view.turns.at(-1)?.state, view.calls.at(-1)?.state]).toEqual([
    "queued",
    "released",
    "done",
  ]);
  await world.pump();
  expect(await suite.committed()).toBe(0);
});
