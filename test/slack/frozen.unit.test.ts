/** While sending is frozen, nothing that people read promises that it is sent; after the thaw the same rows say what they said before. */
import { describe, expect, test } from "vitest";
import type { ApprovalStanding } from "../../src/approvals/index.js";
import { approvalCard } from "../../src/slack/cards/approval-card.js";
import { decideSentence } from "../../src/slack/cards/decide-sentences.js";
import { outcomeOf, standingOf } from "../../src/slack/cards/sentences.js";
import { approvalViewOf, operationOf } from "./support/views.js";

function viewOf(state: "APPROVED" | "RELEASED", frozen: boolean) {
  const view = approvalViewOf({
    money: { amountMinor: 18_000n, currency: "GBP" },
    customerName: "Tom Whitfield",
    customerRef: "CUS-7",
    orderRef: "ORD-10042",
    status: "delivered",
    reason: "",
    itemRefs: [],
    reasons: [],
    note: null,
    endDetail: "",
    state,
    operationStatus: "PREPARED",
    changes: [],
    earlier: 0,
  });
  return { ...view, operation: { ...view.operation, frozen } };
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
});

describe("the answer to a click", () => {
  const { approval } = viewOf("APPROVED", true);

  test("that completes an approval promises no sending while it is frozen", () => {
    const answer = (frozen: boolean, waitsFor = 0): string =>
      decideSentence({ outcome: "approved", approval, waitsFor, frozen });
    expect(answer(true)).toBe(
      "Approved: Refund of £180.00 GBP on order ORD-10042. Not sent: sending is frozen until on-call turns it on again.",
    );
    expect(answer(false)).toMatch(/It is checked once more and then sent\.$/);
    expect(answer(true, 1)).toMatch(/nothing is sent before\. Sending is frozen, too\.$/);
    expect(answer(false, 1)).toMatch(/nothing is sent before\.$/);
  });

  test("that came too late says why it has not been sent", () => {
    const answer = (frozen: boolean): string => {
      const standing: ApprovalStanding = {
        operationStatus: "PREPARED",
        waitsFor: 0,
        notBefore: null,
        frozen,
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
    expect(answer(true)).toContain("It has not been sent: sending is frozen.");
    expect(answer(false)).toContain("It has not been sent yet.");
  });
});

describe("the ticket's thread", () => {
  test.each([
    [true, "approved or allowed, not sent: sending is frozen", "not sent: sending is frozen until on-call"],
    [false, "approved or allowed, not sent yet", "not sent yet."],
  ])("frozen %s: the step and the sentence say so", (frozen, step, sentence) => {
    const operation = operationOf({ status: "PREPARED", frozen });
    expect(standingOf(operation)).toBe(step);
    expect(outcomeOf(operation)).toContain(sentence);
  });

  test.each(["DISPATCHED", "CONFIRMED", "OUTCOME_UNKNOWN", "DENIED"] as const)(
    "what is %s stands as it is, frozen or not",
    (status) => {
      expect(outcomeOf(operationOf({ status, frozen: true }))).toBe(outcomeOf(operationOf({ status })));
    },
  );
});
