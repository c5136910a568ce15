/** Whether the customer is confirmed is said once and truly, at each time: asked, confirmed since, approved, over. */
import { describe, expect, test } from "vitest";
import { bindingRule, CUSTOMER_UNCONFIRMED } from "../../src/domain/policy/rules-order.js";
import { approvalCard } from "../../src/slack/cards/approval-card.js";
import { bindingCard } from "../../src/slack/cards/binding-card.js";
import { approvalViewOf, TOM_REFUND, ticketOf } from "./support/views.js";

const OTHER = "The same refund was done before; this is number 2.";

function card(customerConfirmed: boolean, reasons: string[], othersWait = false): string {
  const view = approvalViewOf({
    ...TOM_REFUND,
    reasons,
    state: "PENDING",
    operationStatus: "AWAITING_APPROVAL",
  });
  const binding = { ...view.approval.binding, bindingUnconfirmed: true };
  const { text, blocks } = approvalCard({
    ...view,
    approval: { ...view.approval, binding },
    customerConfirmed,
    othersWait,
  });
  return `${text}\n${JSON.stringify(blocks)}`;
}

const times = (text: string, what: RegExp): number => [...text.matchAll(new RegExp(what, "gu"))].length;

describe("an approval card of a customer that was not confirmed", () => {
  test.each([
    [[OTHER, CUSTOMER_UNCONFIRMED]],
    // Recorded without the policy's sentence: said all the same.
    [[OTHER]],
  ])("of the reasons %j says it once before, and once after the filer confirms", (reasons) => {
    const before = card(false, reasons);
    expect(
      times(
        before,
        /Nobody has confirmed the customer\. Approving confirms the customer for this operation alone\./,
      ),
    ).toBe(1);
    expect(times(before, /by the filer after|when this was judged/)).toBe(0);
    const after = card(true, reasons);
    expect(times(after, /Tom Whitfield \(CUS-7\), confirmed by the filer after this card was made/)).toBe(1);
    expect(times(after, /Nobody has|not confirmed|Approving confirms/)).toBe(0);
    expect(before).toContain(OTHER);
    expect(after).toContain(OTHER);
  });

  test("is not told as a reason to hold, nor in the notification, once the filer has confirmed it", () => {
    const after = card(true, [CUSTOMER_UNCONFIRMED]);
    expect(times(after, /not confirmed|confirmed the customer/)).toBe(0);
    expect(after).toContain("The policy asks for an approval.");
  });

  test("that stands though the filer has confirmed it says that another ticket waits with it", () => {
    const waits = /Another ticket asks for the same and waits for this as well\./;
    expect(times(card(false, [CUSTOMER_UNCONFIRMED], true), waits)).toBe(0);
    // On the card, and in the notification.
    expect(times(card(true, [CUSTOMER_UNCONFIRMED], true), waits)).toBe(2);
    expect(times(card(true, [CUSTOMER_UNCONFIRMED]), waits)).toBe(0);
  });

  test("finds the policy's sentence by the rule's own words", () => {
    const facts = { bindingConfirmed: false } as Parameters<typeof bindingRule>[0];
    expect(bindingRule(facts).map(({ sentence }) => sentence)).toEqual([CUSTOMER_UNCONFIRMED]);
  });
});

describe("the ticket's card of whom it is about, when the work is over", () => {
  const ticket = ticketOf({
    binding: "unconfirmed",
    customerId: "c",
    customerRef: "CUS-7",
    customerName: "Tom Whitfield",
  });
  const shown = (approved: boolean): string =>
    JSON.stringify(bindingCard(ticket, { ended: true, approved, waits: [] }).blocks);

  test("says that approving confirmed the customer for what was approved", () => {
    expect(shown(true)).toContain(
      "Whoever filed it did not confirm this. Approving confirmed the customer for what was approved alone.",
    );
    expect(shown(true)).not.toContain("Nobody confirmed");
  });

  test("says that nobody did, where nothing was approved", () => {
    expect(shown(false)).toContain("Nobody confirmed this.");
    expect(shown(false)).not.toContain("Approving");
  });
});

test("the question whom a ticket is about names what waits for it, and whose words are theirs stays text", () => {
  const ticket = ticketOf({
    binding: "unconfirmed",
    customerId: "c",
    customerRef: "CUS-2",
    customerName: "Bob Lindqvist",
  });
  const blocks = (waits: readonly string[]): string =>
    JSON.stringify(bindingCard(ticket, { ended: false, approved: false, waits }).blocks);
  const named = blocks(["Cancel order B-9001", "Refund on order <!channel>", "c", "d", "e", "f"]);
  expect(named).toContain("*Waits for this:*");
  expect(named).toContain("• Cancel order B-9001");
  expect(named).not.toContain("<!channel>");
  expect(named).toContain("• and 1 more");
  expect(named).toContain("Once it is confirmed, what the policy allows by itself is done at once.");
  expect(blocks([])).not.toContain("Waits for this");
});
