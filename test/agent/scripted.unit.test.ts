/** The scripted planner's rules, turn by turn: what it asks for when words and results are as they are. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { scriptedPlanner, TOOL_DEFINITIONS } from "../../src/agent/index.js";
import type { Message } from "../../src/agent/planner.js";
import { readWishes } from "../../src/agent/planners/scripted-wishes.js";

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

describe("a number that may be an amount and is not one for certain is handed over, never read as everything left", () => {
  test.each([
    ["Refund ORD-1 5", 'says "5" without a currency'],
    ["Refund 5 on ORD-1 please", 'says "5" without a currency'],
    ["refund ord 1 20", 'says "20" without a currency'],
    ["Refund ORD-1: 5,00", 'says "5,00" without a currency'],
    ["Refund ORD-1 in full, 5", 'says "5" without a currency'],
    ["Refund ORD-1 50%", 'says "50%" without a currency'],
    ["Refund ORD-1 ５", 'says "5" without a currency'],
    ["Refund ORD-1 2 jackets", 'says "2" without a currency'],
    ["Refund ORD-1 5p", 'says "5p" without a currency'],
    ["Refund ORD-1 gbp5", 'says "gbp5" without a currency'],
    ["Refund ORD-1 and ORD-2 20", 'says "20" without a currency'],
    ["He paid £180.00, refund 5 on ORD-1", 'says "5" without a currency'],
    ["Refund ORD-1 £-5.00", 'says "£-5.00", which reads as a negative amount'],
    ["Refund ORD-1 £ - 5.00", 'says "£ - 5.00", which reads as a negative amount'],
    ["Refund ORD-1 -£5.00", 'says "-£5.00", which reads as a negative amount'],
    ["Refund ORD-1 minus £5.00", 'says "minus £5.00", which reads as a negative amount'],
    ["Refund ORD-1 -5 GBP", "which reads as a negative amount"],
    ["Refund ORD-1 GBP -5", "which reads as a negative amount"],
    ["Refund ORD-1 −5", 'says "-5", which reads as a negative amount'],
    ["Refund ORD-1 £5k", 'says "£5k", which may be the amount'],
    ["Refund ORD-1 £1.234,56", 'says "£1.234,56", which may be the amount'],
    ["Refund ORD-1 £five", 'says "£five", which may be the amount'],
    ["Refund ORD-1 five pounds", 'says "five pounds", which may be the amount'],
    ["Refund ORD-1 twenty please", 'says "twenty", which may be the amount'],
    ["Refund half of ORD-1", 'says "half of", which may be the amount'],
    ["Refund ORD-1 (ORD-1-5)", 'says "ORD-1-5", which is nothing on ORD-1'],
    ["Refund ORD-1 GBP-5", 'says "GBP-5", which is nothing on ORD-1'],
    ["Refund ORD-1 in full, he paid £180.00 and £5.00", "names several amounts"],
    ["Refund ORD-1-1 of ORD-1: £5.00", "names ORD-1-1 and £5.00 GBP, which is not what that costs"],
  ])("%s", async (ticket, reason) => {
    const moves = await play(ticket, SHOP);
    expect(amounts(moves)).toEqual([]);
    expect(summary(moves)).toContain(reason);
  });

  test.each([
    ["Refund ORD-1, just twenty of it", 'says "twenty", which may be the amount'],
    ["Please refund twenty on ORD-1", 'says "twenty", which may be the amount'],
    ["Refund one hundred and eighty on ORD-1", 'says "one hundred and eighty", which may be the amount'],
    ["Refund ORD-1 a couple of pounds", 'says "pounds", which may be the amount'],
    ["Refund ORD-1 vingt euros", 'says "euros", which may be the amount'],
    ["Refund ORD-1 by half", 'says "half", which may be the amount'],
    ["Refund some of ORD-1", 'says "some of", which may be the amount'],
    ["Refund ORD-1 a small amount", 'says "small amount", which may be the amount'],
    ["Refund ORD-1 XX GBP", 'says "GBP", which may be the amount'],
    ["Refund half of £50.00 on ORD-1", 'says "half of", which may be the amount'],
    ["Refund ORD-1 £5²", 'says "^2" without a currency'],
    ["Refund ORD-1 £5½", "which may be the amount"],
    ["Refund ORD-1 £1 k", 'says "£1 k", which may be the amount'],
    ["Refund nothing on ORD-1", 'says "nothing", which may be the amount'],
    ["5 of 3 items on ORD-1 back, refund please", 'says "5" without a currency'],
    ["Refund one of the items on ORD-1", 'says "one", which may be the amount'],
    ["Refund two jackets on ORD-1", 'says "two", which may be the amount'],
    ["ORD-1: two jackets are torn, refund them", 'says "two", which may be the amount'],
    ["Refund the second line of ORD-1", 'says "second line", which may mean less'],
    ["Refund the postage on ORD-1", "which may mean less than everything"],
    ["Refund everything but the jacket on ORD-1", 'says "everything but", which may mean less'],
    ["Refund all but the jacket of ORD-1", 'says "all but", which may mean less'],
    ["Refund ORD-1, he keeps the jacket", 'says "keeps the", which may mean less'],
    ["Refund the gloves of ORD-1", 'says "gloves", which is no line of ORD-1'],
    ["Refund ORD-1 all but £20", 'says "all but", which may mean less'],
    ["Refund ORD-1 but £20", 'says "but £20", which may not be what is to be refunded'],
    ["Refund ORD-1 if it is under £20", "may not be what is to be refunded"],
    ["Refund ORD-1, I paid £180.00", 'says "paid £180.00", which may not be what is to be refunded'],
    ["ORD-1 cost £180.00, refund the delivery", "may not be what is to be refunded"],
  ])("in words: %s", async (ticket, reason) => {
    const moves = await play(ticket, SHOP);
    expect(amounts(moves)).toEqual([]);
    expect(summary(moves)).toContain(reason);
  });

  test.each([
    "Never refund ORD-1",
    "Please stop the refund on ORD-1",
    "ORD-1 has been refunded already, thank you",
    "I was refunded £20 on ORD-1",
    "Was ORD-1 refunded?",
    "The refund on ORD-1 arrived, thanks",
    "A question about the refund policy on ORD-1",
  ])("and what asks for no refund gets none: %s", async (ticket) => {
    expect(amounts(await play(ticket, SHOP))).toEqual([]);
  });

  test("also where the customer's only order is meant: Refund 20", async () => {
    const only = {
      find_customer: { customer: { reference: "CUS-7" }, orders: [order("ORD-1").order], subscriptions: [] },
    };
    const moves = await play("Refund 20 please", { ...SHOP, ...only });
    expect(amounts(moves)).toEqual([]);
    expect(summary(moves)).toContain('says "20" without a currency, which may be the amount for ORD-1');
  });

  test("and it is told how an amount is written, in the order's currency", async () => {
    expect(summary(await play("Refund ORD-1 5", SHOP))).toContain(
      'The ticket says "5" without a currency, which may be the amount for ORD-1: please write an amount with its currency, like £10.00 GBP.',
    );
  });

  test.each([
    "Refund ORD-1",
    "Refund ord 1 please",
    "#ORD-1 arrived torn on 3 May 2026 at 14:30, please refund it in full",
    "Refund ORD-1, bought on 2026-05-03, not used for 30 days. Call +44 20 7946 0958, SW1A 1AA",
    "Refund ORD-1 of CUS-7 (TCK-12), c7@shop.example, since May 3rd, 2 weeks ago",
    "Refund ORD-1, it arrived with two holes, three weeks late, and both sleeves are torn",
    "Refund the torn order ORD-1, two to three working days ago he wrote four e-mails",
    "Refund the customer for ORD-1 please, one sleeve is missing",
    "Refund the whole amount of ORD-1",
    "Refund the Jackets on ORD-1",
    "Refund the jacket on ORD-1, only the zip is broken",
    "Refund ORD-1, @tom2 asks, parcel JD0002233445566 came back at 2 pm. Order number 1",
  ])("while other numbers ask for no amount: %s", async (ticket) => {
    const moves = await play(ticket, SHOP);
    expect(moves.flat()).toContainEqual({
      name: "issue_refund",
      input: expect.objectContaining({ order_reference: "ORD-1", scope: "everything_left" }),
    });
  });

  test("in a time that grows with the length of the text", { timeout: 60_000 }, () => {
    const pieces = [
      "5",
      "£5.00 ",
      "5 ",
      "a",
      "a-",
      "ORD-1 ",
      "five ",
      "£",
      "- ",
      "-",
      "1,234",
      " 5 May",
      "(0) 1 ",
      "+1",
      "[@",
      "A1",
      "two ",
      "half of ",
      "refund the ",
      "is refunded ",
      "no ",
      "paid ",
    ];
    for (const piece of pieces) {
      const startedAt = performance.now();
      readWishes(`Refund ORD-1 ${piece.repeat(40_000 / piece.length)}`);
      expect([piece, performance.now() - startedAt < 5_000]).toEqual([piece, true]);
    }
  });

  test("for any number, written anyhow beside the order, no more than it is ever proposed", async () => {
    const space = fc.constantFrom("", " ", "  ", "\u00a0", "\u202f", "\t", "\n");
    const apart = fc.constantFrom(" ", "  ", "\u00a0", ", ", ": ", "\n", " - ", " (", "-", "/");
    const written = fc.record({
      minor: fc.integer({ min: 0, max: 9_999_999 }),
      form: fc.constantFrom("plain", "grouped", "whole", "comma", "more"),
      before: fc.constantFrom("", "", "-", "−", "+", "£", "£-", "-£", "GBP", "GBP-", "$", "minus"),
      after: fc.constantFrom("", "", "GBP", "gbp", "pounds", "k", "%", "p"),
      inside: space,
      behind: space,
      apart,
      words: fc.constantFrom(
        "Refund ORD-1@",
        "@ back on ORD-1, refund",
        "refund@ORD-1 please",
        "Refund ORD 1@",
        "Refund ORD-1-1@",
        "Refund all of ORD-1@",
      ),
    });
    await fc.assert(
      fc.asyncProperty(written, async (one) => {
        const whole = String(Math.floor(one.minor / 100));
        const cents = String(one.minor % 100).padStart(2, "0");
        const digits = {
          plain: `${whole}.${cents}`,
          grouped: `${whole.replace(/\B(?=(?:\d{3})+$)/g, ",")}.${cents}`,
          whole,
          comma: `${whole},${cents}`,
          more: `${whole}.${cents}7`,
        }[one.form];
        const number = `${one.before}${one.inside}${digits}${one.behind}${one.after}`;
        const ticket = one.words.replace("@", `${one.apart}${number} `);
        const asked = (await play(ticket, SHOP))
          .flatMap((move) => (typeof move === "string" ? [] : move))
          .filter(({ name }) => name === "issue_refund");
        for (const { input } of asked) {
          expect([ticket, input["scope"]]).toEqual([ticket, "amount"]);
          expect(input["amount_minor"]).toBeLessThanOrEqual(one.minor);
          // A dash with a space behind it parts words: "ORD-1 - 5 GBP".
          const dashed = /^[-−]$/.test(one.before) && one.inside !== "";
          expect([ticket, !dashed && /[-−]|minus/.test(one.before)]).toEqual([ticket, false]);
        }
      }),
      { numRuns: 1_000 },
    );
  });
});

describe("what it cannot do", () => {
  test("too many decimals and nothing at all are told as that, with the currency", async () => {
    const fine = await play("Refund £5.001 on ORD-1", SHOP);
    expect(amounts(fine)).toEqual([]);
    expect(summary(fine)).toContain("The amount 5.001 in the ticket has more decimals than GBP");
    expect(summary(await play("Refund £0 on ORD-1", SHOP))).toContain("the ticket names £0.00 GBP on ORD-1");
  });

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

describe("a subscription that is to be cancelled", () => {
  const PROFILE = {
    find_customer: {
      customer: { reference: "CUS-7" },
      orders: [order("ORD-1").order, order("ORD-2").order],
      subscriptions: [{ reference: "SUB-1", status: "active" }],
    },
    "get_order ORD-1": order("ORD-1", "paid"),
    cancel_subscription: { done: true },
    "cancel_order ORD-1": { done: true },
    "issue_refund ORD-1": "Refunded £20.00 GBP on order ORD-1.",
  };
  const writes = (moves: readonly Played[]): string[] =>
    moves
      .flatMap((move) => (typeof move === "string" ? [] : move))
      .filter(({ name }) => /^(?:cancel|issue)_/u.test(name))
      .map(({ name, input }) => `${name} ${input["subscription_reference"] ?? input["order_reference"]}`);

  test.each([
    "Please cancel my subscription, Alice here\nA-4473 B-9001",
    "Please cancel my subscription\nORD-1",
    "Cancel subscription SUB-1. ORD-1 is their order.",
    "Cancel subscription SUB-1, ORD-1 is their order.",
    "My order ORD-1 came with a membership; cancel the membership",
    "Cancel the membership and tell them that ORD-1 was fine",
  ])("is that alone, whatever order says whom it is about: %s", async (ticket) => {
    expect(writes(await play(ticket, PROFILE))).toEqual(["cancel_subscription SUB-1"]);
  });

  test.each([
    ["Cancel subscription SUB-1 and order ORD-1", ["cancel_order ORD-1", "cancel_subscription SUB-1"]],
    ["Cancel SUB-1 and ORD-1 please", ["cancel_order ORD-1", "cancel_subscription SUB-1"]],
    ["Cancel order ORD-1 and the subscription", ["cancel_order ORD-1", "cancel_subscription SUB-1"]],
    [
      "Refund £20.00 on ORD-1 and cancel my subscription",
      ["issue_refund ORD-1", "cancel_subscription SUB-1"],
    ],
  ])("and what else is asked for is done as well: %s", async (ticket, right) => {
    expect(writes(await play(ticket, PROFILE))).toEqual(right);
  });

  test.each([
    ["Cancel my subscription and refund the last month", "only orders can be refunded here"],
    ["Cancel my subscription. Refund £20.00 please", "It is not clear on which order the rest of it is."],
    ["Cancel my subscription and refund it\nORD-1", "only orders can be refunded here"],
  ])(
    "and money back with no order: the subscription, and a person for the rest: %s",
    async (ticket, said) => {
      const moves = await play(ticket, PROFILE);
      expect(writes(moves)).toEqual(["cancel_subscription SUB-1"]);
      expect(summary(moves)).toContain(said);
    },
  );

  test.each([
    "I want my money back for the membership\nORD-1",
    "Refund my subscription, please. The customer is the one of ORD-1.",
  ])("is never refunded on an order that says whom it is about: %s", async (ticket) => {
    const moves = await play(ticket, PROFILE);
    expect(writes(moves)).toEqual([]);
    expect(summary(moves)).toContain("only orders can be refunded here");
  });
});
