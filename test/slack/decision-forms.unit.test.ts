/** Slack draws every form's button in green: title and label say which decision it is, and of what; so does the Undo on a card. */
import { describe, expect, test } from "vitest";
import type { OperationKind } from "../../src/domain/operation.js";
import { approvalCard } from "../../src/slack/cards/approval-card.js";
import { amountForm, denyForm, type FormMeta } from "../../src/slack/cards/forms.js";
import { buttons } from "./support/read-card.js";
import { approvalViewOf, TOM_REFUND } from "./support/views.js";

const META: FormMeta = {
  about: "apr_1.1",
  place: { channelId: null, messageTs: null, threadTs: null, home: false },
};

function viewOf(kind: OperationKind, state: "PENDING" | "RELEASED" = "PENDING") {
  const view = approvalViewOf({ ...TOM_REFUND, state, operationStatus: "PREPARED" });
  return {
    ...view,
    approval: { ...view.approval, binding: { ...view.approval.binding, kind } },
    operation: { ...view.operation, kind, notBefore: new Date("2026-11-29T12:10:00Z") },
  };
}

describe.each([
  ["refund", "refund"],
  ["cancel_order", "cancellation"],
  ["cancel_subscription", "cancellation"],
] as const)("a decision on %s", (kind, word) => {
  const { approval } = viewOf(kind);

  test("that denies says so in title and label, whole", () => {
    const { title, submit, blocks } = denyForm(approval, META);
    expect([title.text, submit?.text]).toEqual([`Deny this ${word}`, `Deny ${word}`]);
    expect(JSON.stringify(blocks)).toContain("says no: nothing is sent.");
  });

  test("that approves says so", () => {
    const { title, submit } = amountForm(approval, META);
    expect([title.text, submit?.text]).toEqual([`Approve ${word}`, `Approve ${word}`]);
  });

  test("that may be undone says what is undone", () => {
    expect(buttons(approvalCard(viewOf(kind, "RELEASED")))).toEqual([
      kind === "refund" ? "Undo approval of £180.00 GBP" : "Undo approval",
    ]);
  });
});
