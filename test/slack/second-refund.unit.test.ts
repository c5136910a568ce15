/** Where the provider has shown a second refund for an operation, nobody reads that the customer has one amount. */
import { describe, expect, test } from "vitest";
import { approvalCard } from "../../src/slack/cards/approval-card.js";
import { outcomePost } from "../../src/slack/cards/posts.js";
import { approvalViewOf, operationOf, TOM_REFUND } from "./support/views.js";

const TWICE = "The provider has shown a second refund for it: £180.00 GBP (re_2). On-call knows.";
const confirmed = (duplicates: readonly string[]) => operationOf({ status: "CONFIRMED", duplicates });

describe("a refund that the provider shows twice", () => {
  test("says both in the thread", () => {
    expect(outcomePost(confirmed(["£180.00 GBP (re_2)"])).text).toMatch(
      /^More was refunded than was asked for\. .*Reference re_1\..*second refund/u,
    );
    expect(outcomePost(confirmed(["£180.00 GBP (re_2)"])).text).toContain(TWICE);
  });

  test("says both on its approved card, in its text too", () => {
    const view = approvalViewOf({ ...TOM_REFUND, state: "RELEASED", operationStatus: "CONFIRMED" });
    const card = approvalCard({ ...view, operation: confirmed(["£180.00 GBP (re_2)"]) });
    expect(JSON.stringify(card.blocks)).toContain(TWICE);
    expect(card.text).toContain(TWICE);
  });

  test("of several names each; of none says nothing", () => {
    expect(outcomePost(confirmed(["£180.00 GBP (re_2)", "re_3"])).text).toContain(
      "more refunds for it: £180.00 GBP (re_2), re_3.",
    );
    expect(outcomePost(confirmed([])).text).not.toContain("On-call knows");
  });
});
