/** What the scripted planner does next with a conversation. */
import { expect, test } from "vitest";
import type { Message } from "../../src/agent/planner.js";
import { scriptedPlanner } from "../../src/agent/planners/scripted.js";

const NOT_THEIRS =
  "There is no order B-9001 among the orders of this ticket's customer. Check the reference, or hand the ticket to a person.";

/** A ticket, a lookup that failed, and what the system told beside the result. */
function lookedUpInVain(words: string, told: string): Message[] {
  return [
    { role: "user", content: [{ type: "text", text: `<ticket>\n${words}\n</ticket>` }] },
    {
      role: "assistant",
      content: [{ type: "tool_use", id: "t1", name: "get_order", input: { order_reference: "B-9001" } }],
    },
    {
      role: "user",
      content: [
        { type: "tool_result", tool_use_id: "t1", content: NOT_THEIRS, is_error: true },
        { type: "text", text: `From the system: ${told}` },
      ],
    },
  ];
}

const CHOSEN = "The filer confirmed that this ticket is about customer CUS-1 (Alice Moreau).";
const ASKED = "The text of this ticket fits several customers. The filer has been asked which one is meant.";

async function answerTo(messages: Message[]) {
  const answer = await scriptedPlanner().plan({
    messages,
    system: "",
    tools: [],
    maxTokens: 100,
    deadlineMs: 1000,
    signal: new AbortController().signal,
  });
  if (!answer.ok) throw new Error("the scripted planner always answers");
  return answer.reply;
}

test("what was asked for on an order that is not the customer's goes to a person, also when the customer was named meanwhile", async () => {
  for (const words of ["please cancel order B-9001", "please refund order B-9001"]) {
    const reply = await answerTo(lookedUpInVain(words, CHOSEN));
    expect(reply.stopReason).toBe("tool_use");
    expect(reply.content).toMatchObject([
      {
        type: "tool_use",
        name: "escalate_to_human",
        input: { summary: expect.stringContaining(NOT_THEIRS) },
      },
    ]);
  }
});

test("while nobody knows whom the ticket is about, it says what it did not find and takes no decision for the filer", async () => {
  const reply = await answerTo(lookedUpInVain("please cancel order B-9001", ASKED));
  expect(reply.stopReason).toBe("end_turn");
  expect(reply.content).toMatchObject([{ type: "text", text: expect.stringContaining(NOT_THEIRS) }]);
});

test("a question about an order that is not the customer's is answered, not handed over", async () => {
  const reply = await answerTo(lookedUpInVain("where is order B-9001?", CHOSEN));
  expect(reply.content[0]).toMatchObject({ name: "get_shipment_status" });
});
