/** Who waits with another ticket's operation is told which ticket that is. */
import { describe, expect, test } from "vitest";
import { replayedPost } from "../../src/slack/cards/posts.js";
import { runCard } from "../../src/slack/cards/run-card.js";
import type { OperationFacts } from "../../src/slack/cards/sentences.js";
import { operationOf, runOf } from "./support/views.js";

const WORKSPACE = "https://northwind.slack.com/";
const FIRST = "tkt_0192d3a4b5c6d7e8f90a1b2c3d4e0001" as const;
const LINK = "<https://northwind.slack.com/archives/C_TICK/p1795953600000100|another ticket>";

const first = (changes: Partial<OperationFacts["ticket"] & object> = {}) => ({
  id: FIRST,
  ref: null,
  message: { channelId: "C_TICK", ts: "1795953600.000100" },
  ...changes,
});

const card = (
  about: OperationFacts,
  state: "awaiting_approval" | "cancelled" | "resolved",
  url = WORKSPACE as string | null,
) =>
  JSON.stringify(
    runCard(
      runOf({
        state,
        prose: "",
        ending: state === "awaiting_approval" ? null : "Done.",
        calls: [{ name: "issue_refund", input: { order_reference: "ORD-10042" } }],
        about,
      }),
      url,
    ).blocks,
  );

describe("the run of a ticket that waits with another one's operation", () => {
  test("names and links the ticket that asked first", () => {
    expect(card(operationOf({ ticket: first() }), "awaiting_approval")).toContain(
      `Step 1: ${LINK} asked for the same first, and this one waits with it.`,
    );
  });

  test("names it by its short id where there is no link, by its reference where it has one", () => {
    const about = (ticket: OperationFacts["ticket"]) => operationOf({ ticket });
    expect(card(about(first()), "awaiting_approval", null)).toContain(
      "another ticket (tkt_0192d3a4b5c6) asked",
    );
    expect(card(about(first({ message: null })), "awaiting_approval")).toContain(
      "another ticket (tkt_0192d3a4b5c6) asked",
    );
    expect(card(about(first({ ref: "TCK-2001", message: null })), "awaiting_approval")).toContain(
      "another ticket (TCK-2001) asked",
    );
  });

  test("says which ticket it leaves it to, and which asked for what has ended", () => {
    expect(card(operationOf({ ticket: first() }), "cancelled")).toContain(`left to ${LINK}.`);
    expect(card(operationOf({ ticket: first(), status: "CONFIRMED" }), "resolved")).toContain(
      `${LINK} asked for the same before.`,
    );
  });

  test("says nothing of its own", () => {
    const own = runOf({
      state: "awaiting_approval",
      prose: "",
      ending: null,
      calls: [],
      about: operationOf(),
    }).view.ticket;
    expect(card(operationOf({ ticket: first({ id: own.id }) }), "awaiting_approval")).not.toContain(
      "another ticket",
    );
    expect(card(operationOf(), "awaiting_approval")).not.toContain("another ticket");
  });
});

test("the stored result of another ticket's request says which ticket asked for it, in the notification too", () => {
  const operation = operationOf({ status: "CONFIRMED", ticket: first() });
  const post = replayedPost(operation, "tkt_0192d3a4b5c6d7e8f90a1b2c3d4e0002", WORKSPACE);
  expect(JSON.stringify(post.blocks)).toContain(`It was asked for in ${LINK}.`);
  expect(post.text).toContain(`It was asked for in ${LINK}.`);
  expect(JSON.stringify(replayedPost(operation, FIRST, WORKSPACE))).not.toContain("It was asked for in");
});
