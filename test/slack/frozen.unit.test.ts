/** While sending is frozen, nothing that people read promises that it is sent; after the thaw the same rows say what they said before. */
import { describe, expect, test } from "vitest";
import type { ApprovalStanding } from "../../src/approvals/index.js";
import type { Frozen } from "../../src/domain/frozen.js";
import type { OperationStatus } from "../../src/domain/operation.js";
import type { RunState } from "../../src/domain/run.js";
import { approvalCard, plainApprovalCard } from "../../src/slack/cards/approval-card.js";
import { decideSentence } from "../../src/slack/cards/decide-sentences.js";
import { frozenSentence } from "../../src/slack/cards/frozen.js";
import { opsPost, replayedPost } from "../../src/slack/cards/posts.js";
import { runCard } from "../../src/slack/cards/run-card.js";
import { outcomeOf, standingOf } from "../../src/slack/cards/sentences.js";
import { approvalViewOf, operationOf, runOf, TOM_REFUND } from "./support/views.js";

const SINCE = new Date("2026-11-29T11:30:00Z");
const switched = (kind: Frozen["kind"] = "refund", by = "U_ONC1"): Frozen => ({
  kind,
  since: SINCE,
  by,
  reason: "provider <b> answers oddly",
});
/** As they stand on cards, and in what is read aloud. */
const SWITCH =
  "*Refunds are frozen* since <!date^1795951800^{date_short_pretty} {time}|29 Nov 2026, 11:30 UTC> by <@U_ONC1>: provider &lt;b&gt; answers oddly.";
const SWITCH_TEXT =
  "Refunds are frozen since 29 Nov 2026, 11:30 UTC by <@U_ONC1>: provider &lt;b&gt; answers oddly. Nothing is sent until on-call thaws.";

function viewOf(state: "PENDING" | "APPROVED" | "RELEASED", frozen: boolean) {
  const view = approvalViewOf({
    ...TOM_REFUND,
    state,
    operationStatus: "PREPARED",
  });
  return { ...view, operation: { ...view.operation, frozen: frozen ? switched() : null } };
}

const shown = (state: "APPROVED" | "RELEASED", frozen: boolean): string =>
  JSON.stringify(approvalCard(viewOf(state, frozen)));

describe.each(["APPROVED", "RELEASED"] as const)("the card of a %s approval", (state) => {
  test("says that sending is frozen, and says it no longer after the thaw", () => {
    expect(shown(state, true)).toContain("Not sent: sending is frozen until on-call turns it on again.");
    expect(shown(state, true)).not.toContain("Not sent yet");
    expect(shown(state, false)).toContain("Not sent yet.");
    expect(shown(state, false)).not.toContain("frozen");
  });

  test.each([approvalCard, plainApprovalCard])("says once since when, by whom and why: %o", (card) => {
    const frozen = card(viewOf(state, true));
    expect(
      JSON.stringify(frozen.blocks).split(`${SWITCH} Nothing is sent until on-call thaws.`),
    ).toHaveLength(2);
    expect(frozen.text.split(SWITCH_TEXT)).toHaveLength(2);
    expect(JSON.stringify(frozen)).not.toContain("recorded as your vote");
  });

  test.each(["DISPATCHED", "OUTCOME_UNKNOWN", "CONFIRMED"] as const)(
    "says nothing of it once it is %s",
    (status) => {
      const view = viewOf(state, true);
      const sent = approvalCard({ ...view, operation: { ...view.operation, status } });
      if (state === "RELEASED") expect(JSON.stringify(sent)).not.toContain("since <!date");
    },
  );
});

describe("the card of a waiting approval", () => {
  const SAID = `${SWITCH} An approval is recorded as your vote; nothing is sent until on-call thaws.`;

  test.each([
    ["with all its blocks", approvalCard],
    ["in its plainest form", plainApprovalCard],
  ])(
    "%s says once that its kind is frozen, since when and by whom, and that a click is a vote",
    (_how, card) => {
      const frozen = card(viewOf("PENDING", true));
      expect(JSON.stringify(frozen.blocks).split(SAID)).toHaveLength(2);
      expect(frozen.text).toContain(SWITCH_TEXT);
      const thawed = card(viewOf("PENDING", false));
      expect(`${JSON.stringify(thawed.blocks)}${thawed.text}`).not.toMatch(/frozen|thaw/u);
    },
  );

  test.each([
    ["all", "Sending of everything is frozen"],
    ["refund", "Refunds are frozen"],
    ["cancel_order", "Cancellations of orders are frozen"],
    ["cancel_subscription", "Cancellations of subscriptions are frozen"],
  ] as const)("of the switch for %s", (kind, said) => {
    expect(frozenSentence(switched(kind, "system:trip"))).toContain(`*${said}*`);
    expect(frozenSentence(switched(kind, "system:trip"))).toContain("by Countersign itself");
  });
});

test.each([
  ["all", "Nothing new is sent"],
  ["refund", "No new refund is sent"],
  ["cancel_order", "No new cancellation of an order is sent"],
  ["cancel_subscription", "No new cancellation of a subscription is sent"],
])("the post about the switch for %s names what it holds back and nothing else", (kind, said) => {
  const { text } = opsPost({ type: "frozen", kind, by: "U_ONC1", reason: "" }, null);
  expect(text).toContain(`by <@U_ONC1>. ${said} until a person thaws it;`);
});

describe("the run's card", () => {
  const title = (status: OperationStatus, state: RunState, frozen: Frozen | null): string => {
    const about = operationOf({ status, frozen });
    const { text, blocks } = runCard(runOf({ state, prose: "", ending: null, calls: [], about }));
    return `${text} | ${JSON.stringify(blocks.slice(0, 2))}`;
  };

  test.each([
    ["AWAITING_APPROVAL", "awaiting_approval", "Waiting for an approval"],
    ["PREPARED", "waiting", "Waiting to be sent"],
  ] as const)("whose operation is %s says in its title that sending is frozen", (status, state, plain) => {
    expect(title(status, state, switched())).toContain(`${plain}. ${SWITCH_TEXT}`);
    expect(title(status, state, switched())).toContain(`*${plain}* – refunds are frozen`);
    expect(title(status, state, switched())).toContain(`${SWITCH} Nothing is sent until on-call thaws.`);
    expect(title(status, state, null)).not.toContain("frozen");
  });

  test("waits for an outcome only once something was sent", () => {
    expect(title("PREPARED", "waiting", null)).toContain("*Waiting to be sent*");
    expect(title("DISPATCHED", "waiting", null)).toContain("*Waiting for an outcome*");
    expect(title("OUTCOME_UNKNOWN", "waiting", null)).toContain("*Waiting for an outcome*");
  });

  test.each([
    ["CONFIRMED", "waiting"],
    ["OUTCOME_UNKNOWN", "waiting"],
    ["PREPARED", "cancelled"],
  ] as const)("whose operation is %s while the run is %s does not", (status, state) => {
    expect(title(status, state, switched())).not.toContain("frozen");
  });
});

describe("the answer to a click", () => {
  const { approval } = viewOf("APPROVED", true);

  test("that completes an approval promises no sending while it is frozen", () => {
    const answer = (frozen: Frozen | null, waitsFor = 0): string =>
      decideSentence({ outcome: "approved", approval, waitsFor, frozen, successorId: null });
    expect(answer(switched())).toBe(
      `Approved: Refund of £180.00 GBP on order ORD-10042. Not sent. ${SWITCH} Nothing is sent until on-call thaws.`,
    );
    expect(answer(null)).toMatch(/It is checked once more and then sent\.$/);
    const policy = { ...approval.binding.policy, coolingOffMinutes: 10 };
    const resting = { ...approval, decidedAt: SINCE, binding: { ...approval.binding, policy } };
    expect(
      decideSentence({
        outcome: "approved",
        approval: resting,
        waitsFor: 0,
        frozen: null,
        successorId: null,
      }),
    ).toBe(
      "Approved: Refund of £180.00 GBP on order ORD-10042. It is not sent before <!date^1795952400^{date_short_pretty} {time}|29 Nov 2026, 11:40 UTC>, and checked once more then. Until then it can be undone; what was undone cannot be approved again.",
    );
    const dead = {
      ...approval,
      state: "VOIDED",
      endCode: "drift",
      endDetail: "Only £97.19 GBP is left.",
    } as const;
    expect(
      decideSentence({ outcome: "approved", approval: dead, waitsFor: 0, frozen: null, successorId: null }),
    ).toBe(
      "Your approval is recorded, and nothing was sent: Refund of £180.00 GBP on order ORD-10042 no longer holds. Only £97.19 GBP is left.",
    );
    expect(answer(switched(), 1)).toContain(`nothing is sent before. ${SWITCH} Nothing is sent`);
    expect(answer(null, 1)).toMatch(/nothing is sent before\.$/);
  });

  test("that is one of two says since when, by whom and why nothing is sent", () => {
    const answer = (frozen: Frozen | null): string =>
      decideSentence({ outcome: "recorded", approval, missing: 1, frozen });
    expect(answer(switched())).toContain(
      `needed before anything is sent. ${SWITCH} Nothing is sent until on-call thaws.`,
    );
    expect(answer(null)).not.toContain("frozen");
  });

  test("that came too late says why it has not been sent", () => {
    const answer = (frozen: Frozen | null, operationStatus: OperationStatus = "PREPARED"): string => {
      const standing: ApprovalStanding = {
        operationStatus,
        resultCode: null,
        waitsFor: 0,
        notBefore: null,
        frozen,
        attempts: 0,
        canBeStopped: true,
      };
      const decision = {
        state: "RELEASED",
        endCode: null,
        by: ["U_SUP1"],
        at: new Date(0),
        note: null,
        detail: null,
      } as const;
      return decideSentence({ outcome: "ended", approval, decision, standing, successorId: null });
    };
    expect(answer(switched())).toMatch(/^Already approved by <@U_SUP1>, <!date\^/u);
    expect(answer(switched())).toContain(
      `It has not been sent yet. ${SWITCH} Nothing is sent until on-call thaws.`,
    );
    expect(answer(null)).toMatch(/It has not been sent yet\.$/u);
    expect(answer(switched(), "DISPATCHED")).not.toContain("frozen");
  });
});

describe("the ticket's thread", () => {
  test.each([
    [true, "not sent: sending is frozen", "not sent: sending is frozen until on-call"],
    [false, "not sent yet", "not sent yet."],
  ])("frozen %s: the step and the sentence say so", (frozen, step, sentence) => {
    const operation = operationOf({ status: "PREPARED", frozen: frozen ? switched() : null });
    expect(standingOf(operation)).toBe(`allowed, ${step}`);
    expect(standingOf({ ...operation, approvedBy: ["U_SUP1"] })).toBe(`approved, ${step}`);
    expect(outcomeOf(operation)).toContain(sentence);
  });

  test("the answer to a request that was made before says since when, by whom and why", () => {
    const post = (frozen: Frozen | null) =>
      replayedPost(operationOf({ status: "PREPARED", frozen }), "tkt_0192d3a4b5c6d7e8f90a1b2c3d4e5f60");
    expect(JSON.stringify(post(switched()).blocks)).toContain(SWITCH);
    expect(post(switched()).text).toContain(SWITCH_TEXT);
    expect(JSON.stringify(post(null))).not.toContain("frozen");
  });

  test.each(["DISPATCHED", "CONFIRMED", "OUTCOME_UNKNOWN", "DENIED"] as const)(
    "what is %s stands as it is, frozen or not",
    (status) => {
      expect(outcomeOf(operationOf({ status, frozen: switched() }))).toBe(outcomeOf(operationOf({ status })));
    },
  );
});
