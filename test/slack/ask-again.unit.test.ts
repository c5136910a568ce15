/** Whoever filed what was denied, ran out or was called off reads what they can do about it; where a card asks again, nothing of the kind. */
import { describe, expect, test } from "vitest";
import type { ApprovalEndCode, ApprovalState } from "../../src/domain/approval.js";
import type { OperationStatus } from "../../src/domain/operation.js";
import { approvalCard } from "../../src/slack/cards/approval-card.js";
import { outcomePost, replayedPost, voidedPost } from "../../src/slack/cards/posts.js";
import { approvalViewOf, operationOf, TOM_REFUND } from "./support/views.js";

const AFTER_NO =
  "To ask for this again, file a new ticket. It waits for an approval then, and its card names who said no.";
const AFTER_NONE = "If it is still needed, file a new ticket. It is judged anew.";

const said = (message: { text: string; blocks: readonly object[] }): string =>
  `${message.text}\n${JSON.stringify(message.blocks)}`;

function cardOf(state: ApprovalState, endCode: ApprovalEndCode, successor = false): string {
  const status = state as OperationStatus;
  const view = approvalViewOf({ ...TOM_REFUND, state, operationStatus: status });
  return said(approvalCard({ ...view, successor, approval: { ...view.approval, endCode } }));
}

describe("the card of what was not approved", () => {
  test.each(["denied", "denied_late", "undone"] as const)(
    "%s: says how it can be asked for again",
    (code) => {
      expect(cardOf("DENIED", code)).toContain(AFTER_NO);
    },
  );

  test.each([
    ["EXPIRED", "expired"],
    ["VOIDED", "drift"],
    ["VOIDED", "nobody_waits"],
  ] as const)("%s (%s): says that a new ticket is judged anew", (state, code) => {
    expect(cardOf(state, code)).toContain(AFTER_NONE);
  });

  test("sends nobody to a new ticket where a new card asks, or where it ended otherwise", () => {
    expect(cardOf("VOIDED", "drift", true)).not.toContain("new ticket");
    expect(cardOf("VOIDED", "superseded")).not.toContain("new ticket");
    expect(cardOf("VOIDED", "binding_confirmed")).not.toContain("new ticket");
  });

  test("says that the suggested amount is a new ticket's", () => {
    const view = approvalViewOf({ ...TOM_REFUND, state: "DENIED", operationStatus: "DENIED" });
    const card = said(approvalCard({ ...view, approval: { ...view.approval, suggestedMinor: 5_000n } }));
    expect(card).toContain("Suggested instead: £50.00 GBP. A new ticket can ask for that.");
  });

  test("an Undo that is still possible says what it ends", () => {
    const view = approvalViewOf({ ...TOM_REFUND, state: "RELEASED", operationStatus: "PREPARED" });
    const notBefore = new Date("2026-11-29T12:10:00Z");
    const card = said(approvalCard({ ...view, operation: { ...view.operation, notBefore } }));
    expect(card).toContain("Until then it can be undone; what was undone cannot be approved again.");
  });
});

describe("the thread", () => {
  test.each(["EXPIRED", "VOIDED"] as const)("of everybody who waited for what is %s", (status) => {
    expect(outcomePost(operationOf({ status })).text).toContain(AFTER_NONE);
  });

  test("of whoever asks again for what was denied in this ticket", () => {
    const post = said(
      replayedPost(operationOf({ status: "DENIED" }), "tkt_0192d3a4b5c6d7e8f90a1b2c3d4e5f60"),
    );
    expect(post).toContain(AFTER_NO);
  });

  test("of a further refund names the button that a new ticket shows", () => {
    expect(outcomePost(operationOf({ status: "DENIED", occurrence: 2 })).text).toContain(
      "file a new ticket and press “This is a further refund” there",
    );
  });

  test("of what no longer holds, unless a new card asks", () => {
    const view = approvalViewOf({ ...TOM_REFUND, state: "VOIDED", operationStatus: "VOIDED" });
    expect(said(voidedPost(view.approval, view.operation, false))).toContain(AFTER_NONE);
    expect(said(voidedPost(view.approval, view.operation, true))).not.toContain("new ticket");
  });

  test.each(["CONFIRMED", "REJECTED", "REVERSED", "QUARANTINED"] as const)(
    "of what is %s sends nobody to a new ticket",
    (status) => {
      expect(outcomePost(operationOf({ status })).text).not.toContain("new ticket");
    },
  );
});
