/** The scripted planner's rules, turn by turn: what it asks for when words and results are as they are. */
import { describe, expect, test } from "vitest";
import { scriptedPlanner, TOOL_DEFINITIONS } from "../../src/agent/index.js";
import type { Message } from "../../src/agent/planner.js";

type Played = { name: string; input: Record<string, unknown> }[] | string;

/** Plays until it speaks or hands over; tools answer from `results` by name and reference. */
async function play(
  ticket: string,
  results: Readonly<Record<string, object | string>>,
  customer: string | null = "CUS-7",
): Promise<Played[]> {
  const planner = scriptedPlanner();
  const opening = [{ type: "text", text: `Ticket T\n<ticket>\n${ticket}\n</ticket>` }];
  const told =
    customer === null
      ? []
      : [
          {
            type: "text",
            text: `From the system: The filer confirmed that this ticket is about customer ${customer} (X).`,
          },
        ];
  const messages: Message[] = [{ role: "user", content: [...opening, ...told] }];
  const moves: Played[] = [];
  for (let turn = 0; turn < 8; turn += 1) {
    const answer = await planner.plan({
      system: "",
      tools: TOOL_DEFINITIONS,
      messages,
      maxTokens: 100,
      deadlineMs: 1_000,
      signal: new AbortController().signal,
    });
    if (!answer.ok) throw new Error("the scripted planner always answers");
    const { content } = answer.reply;
    const calls = content.filter(({ type }) => type === "tool_use");
    if (calls.length === 0) {
      moves.push(String(content[0]?.["text"]));
      return moves;
    }
    moves.push(
      calls.map((call) => ({ name: String(call["name"]), input: call["input"] as Record<string, unknown> })),
    );
    if (calls.some(({ name }) => name === "escalate_to_human")) return moves;
    messages.push({ role: "assistant", content });
    messages.push({
      role: "user",
      content: calls.map((call) => {
        const input = call["input"] as Record<string, unknown>;
        const result =
          results[`${call["name"]} ${input["order_reference"] ?? ""}`.trim()] ?? "Nothing is known.";
        return typeof result === "string"
          ? {
              type: "tool_result",
              tool_use_id: String(call["id"]),
              content: result,
              is_error: !result.startsWith("Refunded"),
            }
          : { type: "tool_result", tool_use_id: String(call["id"]), content: JSON.stringify(result) };
      }),
    });
  }
  return moves;
}

const order = (reference: string, status = "delivered") => ({
  order: { reference, status, currency: "GBP", lines: [{ reference: `${reference}-1`, name: "Jacket" }] },
  payment: { paid_minor: 18_000, refundable_left_minor: 18_000, refundable_left: "£180.00 GBP" },
});
const SHOP = {
  "get_order ORD-1": order("ORD-1"),
  "get_order ORD-2": order("ORD-2"),
  "issue_refund ORD-1": "Refunded £20.00 GBP on order ORD-1.",
  "issue_refund ORD-2": "Refunded £150.00 GBP on order ORD-2.",
};
const amounts = (moves: readonly Played[]) =>
  moves
    .flatMap((move) => (typeof move === "string" ? [] : move))
    .filter(({ name }) => name === "issue_refund")
    .map(({ input }) => [input["order_reference"], input["amount_minor"]]);
const summary = (moves: readonly Played[]): string => {
  const last = moves.at(-1);
  return typeof last === "object" && last[0]?.name === "escalate_to_human"
    ? String(last[0].input["summary"])
    : "";
};

describe("several orders", () => {
  test.each([
    [
      "ORD-1 and ORD-2 arrived torn, refund £20.00 and £150.00",
      [
        ["ORD-1", 2_000],
        ["ORD-2", 15_000],
      ],
    ],
    [
      "Refund £20.00 for ORD-1 and £150.00 for ORD-2",
      [
        ["ORD-1", 2_000],
        ["ORD-2", 15_000],
      ],
    ],
    [
      "Refund £20.00 each for ORD-1 and ORD-2",
      [
        ["ORD-1", 2_000],
        ["ORD-2", 2_000],
      ],
    ],
  ])("with the amounts that belong to them: %s", async (ticket, right) => {
    expect(amounts(await play(ticket, SHOP))).toEqual(right);
  });

  test("with one amount for nobody knows which: nothing is asked for, a person takes over", async () => {
    const moves = await play("ORD-1 and ORD-2 arrived torn, £20.00 back please", SHOP);
    expect(amounts(moves)).toEqual([]);
    expect(summary(moves)).toMatch(/does not say how much of what it names is for ORD-1/);
  });
});

describe("an order whose reference does not look like one", () => {
  const big = {
    find_customer: {
      customer: { reference: "CUS-7" },
      orders: [order("ORD-1").order, order("ORD-BIG").order, order("big-one").order],
      subscriptions: [],
    },
    "get_order ORD-BIG": order("ORD-BIG"),
    "get_order big-one": order("big-one"),
    "issue_refund ORD-BIG": "Refunded £2,500.00 GBP on order ORD-BIG.",
    "issue_refund big-one": "Refunded £20.00 GBP on order big-one.",
  };

  test.each([
    ["Refund ORD-BIG £2,500.00", [["ORD-BIG", 250_000]]],
    ["Refund ord-big £2,500.00", [["ORD-BIG", 250_000]]],
    [
      "Refund £20.00 on Big-One and £30.00 on ord-big",
      [
        ["big-one", 2_000],
        ["ORD-BIG", 3_000],
      ],
    ],
  ])("is found among the customer's: %s", async (ticket, right) => {
    expect(amounts(await play(ticket, big))).toEqual(right);
  });

  test("and where none is named, which one is meant stays open", async () => {
    expect(summary(await play("Refund £20.00", big))).toContain("not clear which order is meant");
  });
});

describe("what it cannot do", () => {
  test.each(["£0.00", "0 GBP"])(
    "a refund of %s is told to need an amount, not another currency",
    async (none) => {
      const moves = await play(`Refund ${none} on ORD-1`, SHOP);
      expect(amounts(moves)).toEqual([]);
      expect(summary(moves)).toContain("The amount of a refund must be above zero");
    },
  );

  test("an order that is not the customer's is a person's, and what can be done is done first", async () => {
    const moves = await play("Please refund £20.00 on ORD-1 and £150.00 on ORD-9", {
      ...SHOP,
      "get_order ORD-9":
        "There is no order ORD-9 that this ticket may touch. Check the reference, or hand the ticket to a person.",
    });
    expect(amounts(moves)).toEqual([["ORD-1", 2_000]]);
    expect(summary(moves)).toContain("There is no order ORD-9 that this ticket may touch. The ticket says:");
  });

  test("an order that is not there, of nobody known, is said and left to the thread's question", async () => {
    const moves = await play(
      "Refund ORD-9 please",
      {
        "get_order ORD-9":
          "There is no order ORD-9 that this ticket may touch. Check the reference, or hand the ticket to a person.",
      },
      null,
    );
    expect(moves.at(-1)).toBe(
      "Scripted planner, no model. There is no order ORD-9 that this ticket may touch.",
    );
  });

  test("a complaint is handed over at once, whatever else the ticket asks", async () => {
    const moves = await play("Formal complaint: ORD-1 burnt my hand, refund it, or my lawyer writes", SHOP);
    expect(moves).toHaveLength(1);
    expect(summary(moves)).toMatch(/complaint for a person.*Nothing was changed/);
  });

  test("what was denied is told to people without what is meant for a planner", async () => {
    const moves = await play("Cancel ORD-2 please", {
      ...SHOP,
      "cancel_order ORD-2":
        "Denied by a person: the cancellation of order ORD-2 was not done. Note: wait. Do not ask for it again in this ticket.",
    });
    expect(summary(moves)).toContain("was not done. Note: wait. The ticket says:");
  });

  test("a cancellation that is refused is handed over with the reason", async () => {
    const moves = await play("Cancel ORD-2 please", {
      ...SHOP,
      "cancel_order ORD-2": "The order is dispatched: it cannot be cancelled. Nothing was done.",
    });
    expect(summary(moves)).toMatch(/dispatched: it cannot be cancelled/);
  });
});

test("where a parcel is comes from the shipment's rows, and nothing is changed", async () => {
  const moves = await play("Where is my parcel? ORD-1", {
    ...SHOP,
    "get_shipment_status ORD-1": {
      order: { reference: "ORD-1", status: "dispatched" },
      shipments: [{ carrier: "Royal Mail", tracking: "RM1", status: "in transit" }],
    },
  });
  expect(moves.at(-1)).toMatch(/ORD-1 is dispatched\. Royal Mail RM1: in transit\./);
  expect(amounts(moves)).toEqual([]);
});

describe("a general question", () => {
  const RETURNS = {
    title: "How long can I return something?",
    body: "You can return an item within 30 days of delivery.",
  };
  const ADDRESS = {
    title: "Changing the delivery address",
    body: "We can change the address until the order is packed. After that the carrier can often redirect the parcel.",
  };
  const found = (...articles: object[]) => ({ search_help_centre: { articles } });

  test.each([
    ["How long can a customer return something?", RETURNS],
    ["Hi! Can I still change the delivery adress? Thanks", ADDRESS],
    ["Tom has moved to Leeds with his family and asks about changing the address for a delivery", ADDRESS],
  ])("is the help centre's where it answers it: %s", async (question, right) => {
    const moves = await play(question, found(RETURNS, ADDRESS), null);
    expect(moves).toHaveLength(2);
    expect(moves.at(-1)).toContain(`The help centre says under "${right.title}": ${right.body}`);
  });

  test.each([
    ["How do I change my password?", found(ADDRESS)],
    ["Do you deliver to the moon, and what does a rocket cost?", found(ADDRESS, RETURNS)],
    ["What are your opening hours?", found()],
    ["🚀\n".repeat(300), found()],
  ])("that it does not answer is handed over, and the run says so: %#", async (question, results) => {
    const moves = await play(question, results, null);
    expect(moves).toHaveLength(2);
    expect(summary(moves)).toMatch(
      /the help centre does not answer it\. A person should read it\. The ticket says:/,
    );
    expect(summary(moves).isWellFormed()).toBe(true);
  });
});
