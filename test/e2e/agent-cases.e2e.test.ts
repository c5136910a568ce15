/** Failure cases of agent loops, over all three wires of the product: Slack, payments, and a model that plays each case. */
import { describe, expect, it } from "vitest";
import type { Thread } from "../../src/app/demo/stage.js";
import {
  type Block,
  type Play,
  type Script,
  says,
  startMessagesStub,
  text,
  use,
  uses,
} from "../support/messages-stub.js";
import { withDatabases } from "./support/databases.js";
import { type House, inHouse } from "./support/house.js";
import { NOTHING_COUNTED } from "./support/nothing-counted.js";

const databases = withDatabases();
const LONG_MS = 300_000;

const look = (order: string): Block => use("get_order", { order_reference: order });
const refund = (order: string, minor: number, reason = "It arrived broken."): Block =>
  use("issue_refund", {
    order_reference: order,
    scope: "amount",
    item_references: [],
    amount_minor: minor,
    reason,
  });
const cut = (rawInputs?: Record<number, string>): Play => ({
  play: "reply",
  content: [text("Refunding now."), use("issue_refund", { order_reference: "ORD-1001", scope: "amount" })],
  stop_reason: "max_tokens",
  usage: { input_tokens: 900, output_tokens: 1024 },
  ...(rawInputs === undefined ? {} : { rawInputs }),
});
const empty = (...content: Block[]): Play => ({ play: "reply", content, stop_reason: "end_turn" });

/** What the model answers to the ticket with this word, `done` replies being in the conversation already. */
const CASES: Readonly<Record<string, (done: number, maxTokens: number) => Play>> = {
  "killed between": (done) =>
    [uses(look("ORD-10050")), uses(refund("ORD-10050", 820))][done] ?? says("As the results say."),
  "cut off": (_done, maxTokens) =>
    maxTokens === 1024 ? cut() : cut({ 1: '{"order_reference":"ORD-1001","amount_minor":2' }),
  "says nothing": () => empty(),
  "empty text": (done) =>
    done === 0
      ? { play: "reply", content: [text(""), look("ORD-10042")], stop_reason: "tool_use" }
      : empty(text(" ")),
  "the same forever": () => uses(look("ORD-999")),
  "two in turn": (done) => uses(look(done % 2 === 0 ? "ORD-998" : "ORD-999")),
  "other words": (done) =>
    done === 0 ? uses(look("ORD-1001")) : uses(refund("ORD-1001", 2_000, `Reason number ${done}.`)),
  "both wrong": (done) =>
    [uses(look("A-4471"), look("B-9001")), uses(refund("A-4471", 1_000), refund("B-9001", 1_000))][done] ??
    says("As the results say."),
  "pat@shop.example": () => says("Which of the two is meant?"),
};

const script: Script = ({ body }) => {
  const ticket = JSON.stringify(body.messages[0]);
  const name = Object.keys(CASES).find((word) => ticket.includes(word));
  const done = body.messages.filter(({ role }) => role === "assistant").length;
  return (name === undefined ? undefined : CASES[name]?.(done, body.max_tokens)) ?? says("No case.");
};

const effects = async (house: House): Promise<number[]> =>
  (await house.world.payments.control.effects()).map(({ amount }) => amount);

async function confirmed(house: House, ticket: string): Promise<Thread> {
  const thread = await house.stage.file("U_AGENT", ticket);
  await house.stage.confirmBinding(thread);
  return thread;
}

const hears = (house: House, thread: Thread, words: RegExp): Promise<boolean> =>
  house.stage.until(`${words} in the thread`, async () =>
    house.stage.threadMessages(thread).some((message) => words.test(message.text)) ? true : undefined,
  );

describe("agent cases over the product's wires", () => {
  it("S-AG-1, 2, 4, 5 and 6 come out as written", { timeout: LONG_MS }, async () => {
    const stub = await startMessagesStub(script);
    try {
      const env = { PLANNER: "model", ANTHROPIC_API_KEY: "sk-ant-test", ANTHROPIC_BASE_URL: stub.url };
      await inHouse(databases, { policy: { text: NOTHING_COUNTED }, env }, async (house) => {
        await killedBetween(house);
        await cutOff(house);
        await emptyText(house);
        await severalPeople(house);
        await theSameForever(house);
        await house.assertAuditIntact();
      });
      expect(
        stub.refused.map(({ problem }) => problem),
        "requests that the real service refuses",
      ).toEqual([]);
    } finally {
      await stub.close();
    }
  });
});

/** S-AG-1: after the reply is stored and before the tool ran; after it ran and before its result was stored. */
async function killedBetween(house: House): Promise<void> {
  const { stage } = house;
  await stage.start({ COUNTERSIGN_FAILPOINTS: "agent.after_turn_recorded=kill@1" });
  const thread = await stage.file(
    "U_AGENT",
    "ORD-10050 of Tom Whitfield, killed between: £8.20 back please.",
  );
  await stage.productEnded();
  await stage.start({ COUNTERSIGN_FAILPOINTS: "agent.after_tool_ran=kill@2" });
  await stage.confirmBinding(thread);
  await stage.productEnded();
  await stage.start({ COUNTERSIGN_FAILPOINTS: "" });
  await stage.runIn(thread, "resolved");
  expect(await effects(house)).toEqual([820]);
}

/** S-AG-2: no tool runs, one larger try at most, a named end. */
async function cutOff(house: House): Promise<void> {
  const thread = await confirmed(house, "ORD-1001 came broken (cut off), $20 back please");
  await house.stage.runIn(thread, "escalated");
  await hears(house, thread, /cut off twice.*None of it was acted on/);
  expect(await effects(house)).toEqual([820]);
}

/** S-AG-4 */
async function emptyText(house: House): Promise<void> {
  const first = await confirmed(house, "ORD-10042 arrived torn; the model says nothing");
  await house.stage.runIn(first, "escalated");
  await hears(house, first, /ended without an answer/);
  const second = await confirmed(house, "ORD-10042 arrived torn; an empty text comes first");
  await house.stage.runIn(second, "resolved");
  await blankTicket(house);
}

/** A ticket of nothing that can be seen: a question in its thread, no run, and the answer in the thread begins one. */
async function blankTicket(house: House): Promise<void> {
  const { stage, world, db } = house;
  const count = async (): Promise<number> =>
    (await db.sql<{ n: number }>("test.runs", "SELECT count(*)::int AS n FROM runs"))[0]?.n ?? -1;
  const before = await count();
  const thread = await stage.file("U_AGENT", "\u200b \u3164");
  await hears(house, thread, /^What should be done\?/);
  // Slack's own client does not send three spaces; whoever posts for a person by its API may.
  const event = { type: "message", channel: "C_TICK", channel_type: "channel", user: "U_AGENT", text: "   " };
  await world.slack.control.injectEvent({ ...event, ts: "1796000000.000100", event_ts: "1796000000.000100" });
  await stage.until("the second blank ticket", async () => {
    const rows = await db.sql("test.blank", "SELECT 1 FROM tickets WHERE message_ts = '1796000000.000100'");
    return rows.length === 1;
  });
  expect(await count()).toBe(before);
  await world.slack.control.post({
    as: "U_AGENT",
    channel: thread.channel,
    threadTs: thread.ts,
    text: "ORD-10042 arrived torn; the model says nothing",
  });
  await stage.confirmBinding(thread);
  await stage.runIn(thread, "escalated");
  expect(await count()).toBe(before + 1);
}

/** S-AG-6: nobody is guessed, the thread lists the candidates; the other one's order is refused, not held. */
async function severalPeople(house: House): Promise<void> {
  const { stage } = house;
  const thread = await stage.file("U_AGENT", "A-4471 and B-9001 both wrong, refund both");
  await stage.runIn(thread, "awaiting_binding");
  await hears(house, thread, /More than one customer fits this text/);
  expect((await stage.operations()).filter(({ orderRef }) => /^[AB]-/.test(orderRef ?? ""))).toEqual([]);
  await stage.chooseCustomer(thread, "A-4471");
  await stage.runIn(thread, "resolved");
  const [call] = await house.db.sql<{ decision: string; operation_id: string | null; result: string }>(
    "test.other_order",
    "SELECT decision, operation_id, result FROM tool_calls WHERE name = 'issue_refund' AND input ->> 'order_reference' = 'B-9001'",
  );
  expect(call).toMatchObject({
    decision: "refused",
    operation_id: null,
    result: expect.stringMatching(/^There is no order B-9001 that this ticket may touch/),
  });
  const shared = await stage.file("U_AGENT", "refund pat@shop.example");
  await stage.runIn(shared, "awaiting_binding");
  await hears(house, shared, /More than one customer fits this text/);
  expect(await effects(house)).toEqual([820]);
}

/** S-AG-5: three ways of never getting on; the last made one operation and one request. */
async function theSameForever(house: House): Promise<void> {
  const { stage } = house;
  for (const word of ["the same forever", "two in turn"]) {
    const thread = await confirmed(house, `ORD-1001 came broken, ${word}`);
    await stage.runIn(thread, "escalated");
    await hears(house, thread, /Stuck: get_order \(ORD-99[89]\) failed 3 times/);
  }
  const before = (await house.world.payments.control.requests({ method: "POST" })).length;
  stage.fault({ kind: "refuse", code: "charge_disputed", times: null });
  const thread = await confirmed(house, "ORD-1001 came broken, asked in other words each time");
  await stage.runIn(thread, "escalated");
  await hears(house, thread, /Stuck: issue_refund \(ORD-1001\) failed 3 times/);
  // What was asked for before the filer's word came is withdrawn unsent by that word, and asked for once more.
  const made = (await stage.operations()).filter(
    ({ orderRef, status, attempts }) => orderRef === "ORD-1001" && !(status === "VOIDED" && attempts === 0),
  );
  expect(made.map(({ status }) => status)).toEqual(["REJECTED"]);
  expect((await house.world.payments.control.requests({ method: "POST" })).length - before).toBe(1);
  expect(await effects(house)).toEqual([820]);
  const [spent] = await house.db.sql<{ free: bigint }>(
    "test.spend",
    "SELECT count(*) AS free FROM runs WHERE cost_used_micro_usd = 0 OR reserved_micro_usd <> 0",
  );
  expect(spent?.free, "every run's spend is booked").toBe(0n);
}
