/**
 * kill -9 at every failpoint of the loop, then another process goes on: one effect for each approved call, a result for every
 * `tool_use`, and not one request that the model service would refuse (S-AG-1, S-AG-3).
 */
import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, expect, test } from "vitest";
import { FAILPOINTS, type FailpointName } from "../../src/domain/failpoints.js";
import { listRuns, viewRun } from "../../src/runs/index.js";
import { withPaymentsSandbox } from "../payments/support.js";
import { withDatabase } from "../support/database.js";
import {
  byTurn,
  type MessagesStub,
  says,
  startMessagesStub,
  text,
  use,
  uses,
} from "../support/messages-stub.js";
import type { DriverOptions } from "./support/driver.process.js";
import { stockShop } from "./support/world.js";

const database = withDatabase();
const payments = withPaymentsSandbox();
const DRIVER = fileURLToPath(new URL("./support/driver.process.ts", import.meta.url));
const PATIENCE_MS = 600_000;
let stub: MessagesStub;

const look = (order: string) => use("get_order", { order_reference: order });
const refund = (order: string, minor: number) =>
  use("issue_refund", {
    order_reference: order,
    scope: "amount",
    item_references: [],
    amount_minor: minor,
    reason: "damaged",
  });

beforeEach(async () => {
  await stockShop(database.db, payments.sandbox.control);
  stub = await startMessagesStub(
    byTurn(
      () =>
        uses(
          { type: "thinking", thinking: "First look.", signature: "c2ln" },
          text("Looking."),
          look("ORD-10042"),
          look("ORD-10050"),
        ),
      () => uses(refund("ORD-10050", 2_000), refund("ORD-10042", 18_000)),
      () => says("Both are settled."),
    ),
  );
});
afterEach(() => stub.close());

const SHORT_LEASE_MS = 400;
const LONG_LEASE_MS = 60_000;

function run(
  killAt: DriverOptions["killAt"],
  leaseMs = SHORT_LEASE_MS,
): Promise<{ signal: string | null; code: number | null; log: string }> {
  const options: DriverOptions = {
    databaseUrl: database.url,
    modelUrl: stub.url,
    paymentsUrl: payments.sandbox.url,
    text: "Tom Whitfield: ORD-10042 torn, £180.00 back, and £20.00 for ORD-10050 please",
    killAt,
    leaseMs,
  };
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, ["--import", "tsx", DRIVER, JSON.stringify(options)], {
      stdio: ["ignore", "ignore", "pipe"],
    });
    let log = "";
    child.stderr.setEncoding("utf8").on("data", (piece: string) => {
      log += piece;
    });
    child.once("error", reject);
    child.once("exit", (code, signal) => resolve({ code, signal, log }));
  });
}

async function expectSettled(): Promise<void> {
  const { runs } = await listRuns(database.db, {});
  expect(runs).toHaveLength(1);
  const only = runs[0];
  if (only === undefined) throw new Error("no run");
  const view = await viewRun(database.db, only.run.id);
  expect(view?.run).toMatchObject({
    state: "resolved",
    ending: { verifiedSuccess: true, constraintsKept: true },
  });
  expect(view?.calls.every((call) => call.state === "done" && call.result !== null)).toBe(true);
  expect(view?.turns[0]?.content[0]).toEqual({
    type: "thinking",
    thinking: "First look.",
    signature: "c2ln",
  });
  const effects = await payments.sandbox.control.effects();
  expect(effects.map((effect) => effect.amount).sort((a, b) => a - b)).toEqual([2_000, 18_000]);
  const keys = (await payments.sandbox.control.requests({ method: "POST" })).map(
    (request) => request.idempotencyKey,
  );
  expect(new Set(keys).size).toBe(2);
  expect(stub.refused.map((request) => request.problem)).toEqual([]);
}

/** Where the workers die, one after the other, along the whole story: each takes up what the one before it left. */
const DEATHS: readonly FailpointName[] = [
  "runs.after_ticket_filed",
  "agent.after_lease",
  // the first turn: two lookups
  "agent.before_model_call",
  "agent.after_model_reply",
  "agent.after_turn_recorded",
  "agent.after_turn_prepared",
  "agent.after_turn_released",
  "agent.before_tool",
  "agent.after_tool_ran",
  "agent.after_call_finished",
  "agent.after_turn_resolved",
  // the second turn: one refund within the agent's authority, one that is held
  "agent.after_model_reply",
  "agent.after_turn_recorded",
  "agent.after_turn_prepared",
  "agent.after_turn_held",
  // the supervisor has approved; both are carried out
  "agent.after_turn_released",
  "agent.before_tool",
  "agent.after_tool_ran",
  "agent.after_call_finished",
  "agent.after_tool_ran",
  "agent.after_call_finished",
  "agent.after_turn_resolved",
  "agent.before_run_end",
  "agent.after_run_ended",
];

test("the story passes every failpoint of the loop and of filing", () => {
  const named = FAILPOINTS.filter((name) => name.startsWith("agent.") || name.startsWith("runs."));
  expect(named.filter((name) => !DEATHS.includes(name))).toEqual([]);
});

test("workers killed at one point after the other lose nothing and do nothing twice", {
  timeout: PATIENCE_MS,
}, async () => {
  for (const [index, name] of DEATHS.entries()) {
    const killed = await run({ name, pass: 1 });
    expect(killed.signal, `${index}: ${name} did not fire: ${killed.log}`).toBe("SIGKILL");
  }
  const finished = await run(null);
  expect(finished.code, finished.log).toBe(0);
  await expectSettled();
});

test("two workers at once drive one run once", { timeout: PATIENCE_MS }, async () => {
  const [one, two] = await Promise.all([run(null, LONG_LEASE_MS), run(null, LONG_LEASE_MS)]);
  expect([one.code, two.code], `${one.log}${two.log}`).toEqual([0, 0]);
  await expectSettled();
  expect(stub.requests).toHaveLength(3);
});
