/** One run through the loop with its real neighbours and a stand-in model: what is held, done, told, and ended. */
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { armFailpoint } from "../../src/domain/failpoints.js";
import { withPaymentsSandbox } from "../payments/support.js";
import { withDatabase } from "../support/database.js";
import { inOrder, type MessagesStub, says, startMessagesStub, use, uses } from "../support/messages-stub.js";
import { type AgentWorld, agentWorld, stockShop, stubPlanner, type WorldOptions } from "./support/world.js";

const database = withDatabase();
const payments = withPaymentsSandbox();
let stub: MessagesStub;
let world: AgentWorld;

const start = async (more: Partial<WorldOptions> = {}): Promise<AgentWorld> => {
  world = await agentWorld({
    db: database.db,
    control: payments.sandbox.control,
    paymentsUrl: payments.sandbox.url,
    planner: stubPlanner(stub),
    ...more,
  });
  return world;
};

beforeEach(async () => {
  stub = await startMessagesStub();
  await stockShop(database.db, payments.sandbox.control);
});
afterEach(async () => {
  await world.close();
  await stub.close();
  expect(stub.refused.map((request) => request.problem)).toEqual([]);
});

const refund = (order: string, minor: number, reason = "it arrived broken") =>
  use("issue_refund", {
    order_reference: order,
    scope: "amount",
    item_references: [],
    amount_minor: minor,
    reason,
  });
const look = (order: string) => use("get_order", { order_reference: order });
const committed = async () => (await payments.sandbox.control.counts()).committed;

describe("a refund", () => {
  test("within the agent's own authority is made once and told to the model from the ledger's row", async () => {
    await start();
    stub.script(
      inOrder(uses(look("ORD-1001")), uses(refund("ORD-1001", 2_000)), says("All done, refunded!")),
    );
    const { runId } = await world.fileConfirmed("ORD-1001 came broken, $20 back please");
    await world.pump();
    const { run, calls } = await world.view(runId);
    expect(run).toMatchObject({
      state: "resolved",
      ending: { code: "end_turn", verifiedSuccess: true, constraintsKept: true },
    });
    expect(calls.at(-1)?.result).toMatch(/^Refunded \$20\.00 USD on order ORD-1001\. Reference re_/);
    expect(await committed()).toBe(1);
    expect(world.says("model_says")).toEqual([
      { type: "model_says", text: "All done, refunded!", planner: "messages-api" },
    ]);
    const last = stub.requests.at(-1)?.body.messages.at(-1);
    expect(JSON.stringify(last)).toContain("Refunded $20.00 USD");
  });

  test("alone in its turn is claimed with the turn's commit and sent once, also when the drive breaks in between", async () => {
    await start();
    stub.script(inOrder(uses(look("ORD-1001")), uses(refund("ORD-1001", 2_000)), says("Done.")));
    const seen: unknown[] = [];
    const disarm = armFailpoint(
      "agent.after_turn_released",
      async () => {
        seen.push([(await world.operations()).map(({ status }) => status), await committed()]);
        throw new Error("the drive breaks here");
      },
      { atPass: 2 },
    );
    try {
      const { runId } = await world.fileConfirmed("ORD-1001 came broken, $20 back please");
      await world.pump();
      expect(seen).toEqual([[["DISPATCHED"], 0]]);
      expect(world.logs.map(({ message }) => message)).toContain("driving the run broke");
      expect((await world.view(runId)).run).toMatchObject({
        state: "resolved",
        ending: { verifiedSuccess: true },
      });
      expect((await world.operations()).map(({ status, attempts }) => [status, attempts])).toEqual([
        ["CONFIRMED", 1],
      ]);
      expect(await committed()).toBe(1);
    } finally {
      disarm();
    }
  });

  test("above it is held, nothing is sent, and goes out once when a supervisor has approved it in another process", async () => {
    await start();
    stub.script(inOrder(uses(look("ORD-10042")), uses(refund("ORD-10042", 18_000)), says("Done.")));
    const { runId } = await world.fileConfirmed("ORD-10042 arrived torn, £180.00 back please");
    await world.pump();
    expect((await world.view(runId)).run.state).toBe("awaiting_approval");
    expect(await committed()).toBe(0);
    const [approval] = await world.pending();
    if (approval === undefined) throw new Error("nothing is pending");
    await world.close();
    await start({ worker: "another-process" });
    expect((await world.click("U_SUP1", approval)).outcome).toBe("approved");
    await world.pump();
    const { run, calls } = await world.view(runId);
    expect(run).toMatchObject({ state: "resolved", ending: { verifiedSuccess: true } });
    expect(calls.at(-1)?.result).toMatch(/Refunded £180\.00 GBP/);
    expect(await committed()).toBe(1);
  });

  test("that is denied comes back as an ordinary result, with the note, and moves no money", async () => {
    await start();
    stub.script(inOrder(uses(look("ORD-10042")), uses(refund("ORD-10042", 18_000)), says("Sorry.")));
    const { runId } = await world.fileConfirmed("ORD-10042 arrived torn, £180.00 back please");
    await world.pump();
    const [approval] = await world.pending();
    if (approval === undefined) throw new Error("nothing is pending");
    await world.click("U_SUP1", approval, "deny", { note: "photo does not show damage" });
    await world.pump();
    const { run, calls } = await world.view(runId);
    expect(calls.at(-1)).toMatchObject({ isError: true });
    expect(calls.at(-1)?.result).toMatch(/^Denied by a person.*photo does not show damage/);
    expect(run).toMatchObject({
      state: "resolved",
      ending: { plannerSuccess: true, verifiedSuccess: false },
    });
    expect(await committed()).toBe(0);
  });

  test("whose answer is lost makes the run wait, never fail; the later outcome arrives as the tool's result", async () => {
    await start();
    payments.sandbox.control.arm({ kind: "commit_then_drop" });
    stub.script(inOrder(uses(look("ORD-1001")), uses(refund("ORD-1001", 2_000)), says("Done.")));
    const { runId } = await world.fileConfirmed("ORD-1001 came broken, $20 back please");
    await world.drive(runId);
    expect((await world.view(runId)).run.state).toBe("waiting");
    expect(stub.requests).toHaveLength(2);
    await world.pump();
    expect((await world.view(runId)).run.state).toBe("resolved");
    expect((await world.view(runId)).calls.at(-1)?.result).toMatch(/Refunded \$20\.00 USD/);
    expect(await committed()).toBe(1);
  });

  test("asked for again by a second ticket replays the stored result, flagged, and pays nothing", async () => {
    await start();
    const script = inOrder(uses(look("ORD-1001")), uses(refund("ORD-1001", 2_000)), says("Done."));
    stub.script(script);
    await world.fileConfirmed("ORD-1001 came broken, $20 back please");
    await world.pump();
    stub.script(
      inOrder(uses(look("ORD-1001")), uses(refund("ORD-1001", 2_000, "other words")), says("Done.")),
    );
    const { runId } = await world.fileConfirmed("ORD-1001 again: $20 back please");
    await world.pump();
    const { calls } = await world.view(runId);
    expect(calls.at(-1)).toMatchObject({ replayed: true, isError: false });
    expect(calls.at(-1)?.result).toMatch(/^Already refunded: \$20\.00 USD/);
    expect(world.says("operation_replayed")).toHaveLength(1);
    expect(await committed()).toBe(1);
  });

  test("of everything left, asked for twice, is the same refund and not a second one", async () => {
    await start();
    const all = () =>
      use("issue_refund", {
        order_reference: "ORDER-100",
        scope: "everything_left",
        item_references: [],
        amount_minor: 0,
        reason: "wrong map",
      });
    stub.script(inOrder(uses(look("ORDER-100")), uses(all()), uses(all()), says("Done.")));
    const { runId } = await world.fileConfirmed("ORDER-100: wrong map, refund it in full");
    await world.pump();
    const { calls } = await world.view(runId);
    expect(calls.map((call) => call.replayed)).toEqual([false, false, true]);
    expect(await committed()).toBe(1);
  });

  test("of a line is computed by the server (S-PAY-8: 4.99 of three items)", async () => {
    await start();
    const items = use("issue_refund", {
      order_reference: "ORD-10050",
      scope: "items",
      item_references: ["ORD-10050-2"],
      amount_minor: 0,
      reason: "laces too short",
    });
    stub.script(inOrder(uses(look("ORD-10050")), uses(items), says("Done.")));
    await world.fileConfirmed("Please refund the laces of ORD-10050");
    await world.pump();
    expect((await payments.sandbox.control.effects()).map((effect) => effect.amount)).toEqual([900]);
  });
});

describe("scope", () => {
  test("somebody else's order and one that does not exist are refused with the same words, and not held", async () => {
    await start();
    stub.script(
      inOrder(
        uses(look("ORD-2001"), look("ORD-9999")),
        uses(refund("ORD-2001", 1_000), refund("ORD-9999", 1_000)),
        says("I cannot."),
      ),
    );
    const { runId } = await world.fileConfirmed("ORD-1001 came broken");
    await world.pump();
    const { calls, run } = await world.view(runId);
    const words = calls.map((call) => call.result?.replace(/ORD-\d+/g, "ORD"));
    expect(new Set([words[0], words[1]]).size).toBe(1);
    expect(new Set([words[2], words[3]]).size).toBe(1);
    expect(calls.every((call) => call.isError)).toBe(true);
    expect(await world.operations()).toEqual([]);
    expect(run.state).toBe("resolved");
    expect(JSON.stringify(stub.requests)).not.toMatch(/Sleeping mat/);
  });

  test("a write on an order that the run has not looked up is refused with a sentence", async () => {
    await start();
    stub.script(
      inOrder(
        uses(refund("ORD-1001", 2_000)),
        uses(look("ORD-1001")),
        uses(refund("ORD-1001", 2_000)),
        says("Done."),
      ),
    );
    const { runId } = await world.fileConfirmed("ORD-1001 came broken, $20 back please");
    await world.pump();
    const { calls } = await world.view(runId);
    expect(calls[0]).toMatchObject({ isError: true, decision: "refused" });
    expect(calls[0]?.result).toMatch(/has not been looked up.*get_order/);
    expect(await committed()).toBe(1);
  });

  test("a binding read from text holds every write, whatever its amount, until the filer confirms it", async () => {
    await start();
    stub.script(inOrder(uses(look("ORD-1001")), uses(refund("ORD-1001", 500)), says("Done.")));
    const { run } = await world.file("ORD-1001 came broken, $5 back please");
    await world.pump();
    expect((await world.view(run.id)).run.state).toBe("awaiting_approval");
    expect(await committed()).toBe(0);
  });
});

describe("money named by the model (S-PAY-8)", () => {
  test.each(["145.05", 145.05, -2000, "1e3", null, 0])(
    "%j is refused with a sentence; no row, no request",
    async (amount) => {
      await start();
      const bad = use("issue_refund", {
        order_reference: "ORD-1001",
        scope: "amount",
        item_references: [],
        amount_minor: amount,
        reason: "r",
      });
      stub.script(inOrder(uses(look("ORD-1001")), uses(bad), says("Sorry.")));
      const { runId } = await world.fileConfirmed("ORD-1001 came broken");
      await world.pump();
      const { calls } = await world.view(runId);
      expect(calls[1]).toMatchObject({ isError: true, decision: "invalid" });
      expect(calls[1]?.result).toMatch(/amount_minor.*Nothing was done\./s);
      expect(await world.operations()).toEqual([]);
      expect(await payments.sandbox.control.requests({ method: "POST" })).toEqual([]);
    },
  );

  test("exact amounts go over the wire unchanged", async () => {
    await start();
    stub.script(inOrder(uses(look("B-9002")), uses(refund("B-9002", 820)), says("Done.")));
    await world.fileConfirmed("B-9002: £8.20 back please");
    await world.pump();
    expect((await payments.sandbox.control.effects()).map((effect) => effect.amount)).toEqual([820]);
  });
});
