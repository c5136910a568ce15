/** Runs that meet: the same effect wanted twice, owners that go away, effects that must wait. */
import { describe, expect, test } from "vitest";
import { freeze, thaw } from "../../src/ledger/index.js";
import { requestCancel } from "../../src/runs/index.js";
import { byTurn, says, uses } from "../support/messages-stub.js";
import { look, loopSuite, refund } from "./support/suite.js";

const suite = loopSuite();

/** The model looks the order up and asks for the refund, whichever ticket it is. */
const wants = (order: string, minor: number) =>
  byTurn(
    () => uses(look(order)),
    () => uses(refund(order, minor)),
    () => says("Done."),
  );

describe("two tickets that want the same held refund", () => {
  async function bothWait() {
    const world = await suite.start();
    suite.stub.script(wants("ORD-10042", 18_000));
    const first = await world.fileConfirmed("ORD-10042 arrived torn, £180.00 back");
    await world.pump();
    const second = await world.fileConfirmed(
      "ORD-10042: please refund £180.00 (second mail of the customer)",
    );
    await world.pump();
    const [approval, ...more] = await world.pending();
    if (approval === undefined) throw new Error("nothing is pending");
    expect(more).toEqual([]);
    return { world, first, second, approval };
  }

  test("wait for one decision and one effect; the second hears that it was one", async () => {
    const { world, first, second, approval } = await bothWait();
    expect((await world.view(second.runId)).run.state).toBe("awaiting_approval");
    await world.click("U_SUP1", approval);
    await world.pump();
    const one = await world.view(first.runId);
    const two = await world.view(second.runId);
    expect([one.run.state, two.run.state]).toEqual(["resolved", "resolved"]);
    expect(one.calls.at(-1)).toMatchObject({
      replayed: false,
      result: expect.stringMatching(/^Refunded £180/),
    });
    expect(two.calls.at(-1)).toMatchObject({
      replayed: true,
      result: expect.stringMatching(/^Already refunded: £180/),
    });
    expect(await suite.committed()).toBe(1);
  });

  test("of which the owner is stopped: the waiter inherits it, and it still happens once", async () => {
    const { world, first, second, approval } = await bothWait();
    await requestCancel(world.ctx, { runId: first.runId, by: "U_AGENT" });
    await world.pump();
    expect((await world.view(first.runId)).run.state).toBe("cancelled");
    expect((await world.operations())[0]).toMatchObject({
      status: "AWAITING_APPROVAL",
      ownerRunId: second.runId,
    });
    await world.click("U_SUP1", approval);
    await world.pump();
    expect((await world.view(second.runId)).run.state).toBe("resolved");
    expect(await suite.committed()).toBe(1);
  });
});

test("the same refund twice in one turn is one effect; the second call is told that it was the first", async () => {
  const world = await suite.start();
  suite.stub.script(
    byTurn(
      () => uses(look("ORD-1001")),
      () => uses(refund("ORD-1001", 2_000), refund("ORD-1001", 2_000, "to be sure")),
      () => says("Done."),
    ),
  );
  const { runId } = await world.fileConfirmed("ORD-1001 came broken, $20 back please");
  await world.pump();
  const { calls } = await world.view(runId);
  expect(calls.slice(1).map((call) => call.replayed)).toEqual([false, true]);
  expect(await world.operations()).toHaveLength(1);
  expect(await suite.committed()).toBe(1);
});

test("two refunds of one turn that together pass a line are held for the role of the sum", async () => {
  const world = await suite.start();
  suite.stub.script(
    byTurn(
      () => uses(look("ORD-10042")),
      () => uses(refund("ORD-10042", 4_000), refund("ORD-10042", 4_500)),
      () => says("Done."),
    ),
  );
  await world.fileConfirmed("ORD-10042 arrived torn");
  await world.pump();
  expect(await suite.committed()).toBe(0);
  expect((await world.pending()).map(({ binding, role }) => [binding.amountMinor, role])).toEqual([
    [4_500n, "supervisor"],
  ]);
});

describe("split refunds climb the ladder of their sum", () => {
  const lines = (world: Awaited<ReturnType<typeof suite.start>>) =>
    world
      .pending()
      .then((pending) => pending.map(({ binding, role }) => [binding.orderRef, binding.amountMinor, role]));

  test("in one turn: the part that takes the sum above £500.00 is finance's", async () => {
    const world = await suite.start();
    suite.stub.script(
      byTurn(
        () => uses(look("ORD-BIG")),
        () => uses(refund("ORD-BIG", 30_000), refund("ORD-BIG", 30_100)),
        () => says("Done."),
      ),
    );
    await world.fileConfirmed("ORD-BIG arrived torn");
    await world.pump();
    expect(await lines(world)).toEqual([
      ["ORD-BIG", 30_000n, "supervisor"],
      ["ORD-BIG", 30_100n, "finance"],
    ]);
  });

  test("one after the other, in two tickets: the second is held for finance although it is small by itself", async () => {
    const world = await suite.start();
    suite.stub.script(wants("ORD-BIG", 49_000));
    await world.fileConfirmed("ORD-BIG arrived torn, £490.00 back");
    await world.pump();
    expect(await lines(world)).toEqual([["ORD-BIG", 49_000n, "supervisor"]]);
    const [first] = await world.pending();
    if (first === undefined) throw new Error("nothing is pending");
    await world.click("U_SUP1", first);
    await world.pump();
    suite.stub.script(wants("ORD-BIG", 4_000));
    await world.fileConfirmed("ORD-BIG: £40.00 more, please");
    await world.pump();
    expect(await lines(world)).toEqual([["ORD-BIG", 4_000n, "finance"]]);
    const [second] = await world.pending();
    if (second === undefined) throw new Error("nothing is pending");
    expect((await world.click("U_SUP1", second)).outcome).not.toBe("approved");
    await world.pump();
    expect((await suite.payments.sandbox.control.effects()).map(({ amount }) => amount)).toEqual([49_000]);
    await world.click("U_FIN1", second);
    await world.pump();
    expect((await suite.payments.sandbox.control.effects()).map(({ amount }) => amount).sort()).toEqual([
      4_000, 49_000,
    ]);
  });

  test("in many parts within the agent's own authority: after the first, the sum is held", async () => {
    const world = await suite.start();
    suite.stub.script(
      byTurn(
        () => uses(look("ORD-BIG")),
        () => uses(...[4_900, 4_901, 4_902, 4_903].map((minor) => refund("ORD-BIG", minor))),
        () => says("Done."),
      ),
    );
    await world.fileConfirmed("ORD-BIG arrived torn");
    await world.pump();
    expect(await suite.committed()).toBe(0);
    expect(await lines(world)).toEqual([
      ["ORD-BIG", 4_901n, "supervisor"],
      ["ORD-BIG", 4_902n, "supervisor"],
      ["ORD-BIG", 4_903n, "supervisor"],
    ]);
  });
});

test("a stopped run takes nothing back that was sent: the outcome is still found and told", async () => {
  const world = await suite.start();
  suite.payments.sandbox.control.arm({ kind: "commit_then_drop" });
  suite.stub.script(wants("ORD-1001", 2_000));
  const { runId } = await world.fileConfirmed("ORD-1001 came broken, $20 back please");
  await world.drive(runId);
  expect((await world.view(runId)).run.state).toBe("waiting");
  await requestCancel(world.ctx, { runId, by: "U_AGENT" });
  await world.pump();
  expect((await world.view(runId)).run.state).toBe("cancelled");
  expect((await world.operations()).map((operation) => operation.status)).toEqual(["CONFIRMED"]);
  expect(world.says("operation_outcome")).toHaveLength(1);
  expect(await suite.committed()).toBe(1);
});

test("a frozen kind makes the run wait, and a thaw lets it go on", async () => {
  const world = await suite.start();
  suite.stub.script(wants("ORD-1001", 2_000));
  await freeze(world.dispatch, { kind: "refund", by: "U_ONC1", reason: "drill" });
  const { runId } = await world.fileConfirmed("ORD-1001 came broken, $20 back please");
  await world.drive(runId);
  expect((await world.view(runId)).run.state).toBe("waiting");
  expect(await suite.committed()).toBe(0);
  await thaw(world.dispatch, { kind: "refund", by: "U_ONC2" });
  await world.pump();
  expect((await world.view(runId)).run.state).toBe("resolved");
  expect(await suite.committed()).toBe(1);
});

test("an approval that nobody gives in time ends as an ordinary result: expired, not denied", async () => {
  const world = await suite.start();
  suite.stub.script(wants("ORD-10042", 18_000));
  const { runId } = await world.fileConfirmed("ORD-10042 arrived torn, £180.00 back");
  await world.pump();
  await world.db.sql(
    undefined,
    "UPDATE approvals SET expires_at = countersign_now(), due_at = countersign_now()",
  );
  await world.pump();
  const { calls, run } = await world.view(runId);
  expect(calls.at(-1)).toMatchObject({
    isError: true,
    result: expect.stringMatching(/^Expired: nobody decided/),
  });
  expect(run.state).toBe("resolved");
  expect(await suite.committed()).toBe(0);
});
