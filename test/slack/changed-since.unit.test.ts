/** A card that waits says what of it is not so any more, before anybody clicks; one that is decided says what became of it instead. */
import { describe, expect, test } from "vitest";
import type { Change } from "../../src/domain/approval.js";
import { approvalCard, plainApprovalCard } from "../../src/slack/cards/approval-card.js";
import { approvalViewOf, TOM_REFUND } from "./support/views.js";

const CHANGES: readonly Change[] = [
  { what: "order_status", from: "delivered", to: "returned" },
  { what: "refundable", fromMinor: 18_000n, toMinor: 5_000n, currency: "GBP" },
];
const view = approvalViewOf({ ...TOM_REFUND, state: "PENDING", operationStatus: "AWAITING_APPROVAL" });

describe.each([
  ["with all its blocks", approvalCard],
  ["in its plainest form", plainApprovalCard],
])("a waiting card %s", (_how, card) => {
  test("says each change once, and that approving sends nothing as long as it is so", () => {
    const { blocks, text } = card({ ...view, changedSince: CHANGES });
    const shown = JSON.stringify(blocks);
    for (const said of [
      "*Changed since this card was made*",
      "Order status: delivered → returned",
      "Left to refund before this: £180.00 GBP → £50.00 GBP",
      "*As long as this is so, approving sends nothing.* What still holds is asked for again on a new card.",
    ]) {
      expect(shown.split(said)).toHaveLength(2);
    }
    expect(text).toContain(
      "Changed since this card was made: Order status: delivered → returned. As long as this is so, approving sends nothing.",
    );
  });

  test("says nothing of it while everything is as it was", () => {
    expect(JSON.stringify(card(view))).not.toMatch(/Changed since|As long as/u);
  });
});
