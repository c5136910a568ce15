/** What the scripted planner cannot read as an amount moves no money: counted at the provider. */
import { expect, test } from "vitest";
import { scriptedPlanner } from "../../src/agent/index.js";
import { loopSuite } from "./support/suite.js";

const suite = loopSuite();

test.each([
  ["Refund ORD-1001 5", 'The ticket says "5" without a currency'],
  ["Refund ORD-1001 $-5.00", 'The ticket says "$-5.00", which reads as a negative amount'],
  ["Refund ORD-1001, just twenty of it", 'The ticket says "twenty", which may be the amount'],
  ["Refund everything but the delivery on ORD-1001", "which may mean less than everything on ORD-1001"],
])("%s moves no money with the scripted planner: a person is told what was read", async (ticket, told) => {
  const started = await suite.start({ planner: scriptedPlanner() });
  const { runId } = await started.fileConfirmed(ticket);
  await started.pump();
  const { run, calls } = await started.view(runId);
  expect(run.state).toBe("escalated");
  expect(JSON.stringify(calls)).toContain(JSON.stringify(told).slice(1, -1));
  expect(await suite.payments.sandbox.control.effects()).toEqual([]);
  expect(await started.operations()).toEqual([]);
});
