/** Wake-ups that nobody of ours sent: by the hundred, all at once, for whatever state the rows are in. */
import { expect, test } from "vitest";
import { attendOne } from "../../src/approvals/index.js";
import { drive as driveOperation } from "../../src/dispatch/index.js";
import { byTurn, says, uses } from "../support/messages-stub.js";
import { look, loopSuite, refund } from "./support/suite.js";

const suite = loopSuite();

test("a held refund is woken a hundred times before and after its approval, and leaves once", async () => {
  const world = await suite.start();
  suite.stub.script(
    byTurn(
      () => uses(look("ORD-10042")),
      () => uses(refund("ORD-10042", 18_000)),
      () => says("Done."),
    ),
  );
  const { runId } = await world.fileConfirmed("ORD-10042 arrived torn, £180.00 back");
  await world.pump();
  const [approval] = await world.pending();
  if (approval === undefined) throw new Error("nothing is pending");
  const wakes = () =>
    Promise.all(
      Array.from({ length: 100 }, async () => {
        await world.drive(runId);
        await driveOperation(world.dispatch, approval.operationId);
        await attendOne(world.approvals, approval.id);
      }),
    );
  await wakes();
  expect(await suite.committed()).toBe(0);
  await Promise.all([wakes(), world.click("U_SUP1", approval)]);
  await wakes();
  await world.pump();
  expect(await suite.committed()).toBe(1);
  expect((await world.view(runId)).run.state).toBe("resolved");
  expect((await world.operations()).map(({ status, attempts }) => [status, attempts])).toEqual([
    ["CONFIRMED", 1],
  ]);
});
