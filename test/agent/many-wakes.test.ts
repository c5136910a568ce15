/** Wake-ups that nobody of ours sent: by the hundred, all at once, for whatever state the rows are in. */
import { expect, test } from "vitest";
import { attendOne } from "../../src/approvals/index.js";
import { drive as driveOperation } from "../../src/dispatch/index.js";
import { heldRefund, loopSuite } from "./support/suite.js";

const suite = loopSuite();

test("a held refund is woken a hundred times before and after its approval, and leaves once", async () => {
  const { world, runId, approval } = await heldRefund(suite);
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
