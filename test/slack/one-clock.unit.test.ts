/** Nobody reads two clocks on one card: what is told in the reader's time zone is told so everywhere on it. */
import { describe, expect, it } from "vitest";
import { utcSecond, utcTime } from "../../src/domain/text/utc-time.js";
import { approvalCard } from "../../src/slack/cards/approval-card.js";
import { localSecond, localTime, withLocalTimes } from "../../src/slack/text/time.js";
import { type ApprovalFacts, approvalViewOf, TOM_REFUND } from "./support/views.js";

const MONTHS = Array.from({ length: 12 }, (_, month) => new Date(Date.UTC(2026, month, 1, 3, 4, 5)));

describe("times in sentences", () => {
  it("become the reader's, of each month, to the minute or the second as they were written", () => {
    for (const at of MONTHS) {
      const minute = new Date(Math.floor(at.getTime() / 60_000) * 60_000);
      expect(withLocalTimes(`until ${utcTime(at)}.`)).toBe(`until ${localTime(minute)}.`);
      expect(withLocalTimes(`until ${utcSecond(at)}.`)).toBe(`until ${localSecond(at)}.`);
    }
    expect(withLocalTimes("31 Nop 2026, 99:99 UTC")).toBe("31 Nop 2026, 99:99 UTC");
  });
});

describe("an approval card", () => {
  const facts: ApprovalFacts = {
    ...TOM_REFUND,
    reasons: ["The same request was denied before."],
    state: "PENDING",
    operationStatus: "AWAITING_APPROVAL",
    earlier: 1,
  };

  it("tells earlier requests, and its own end, by the same clock as the rest of it", () => {
    for (const changed of [{}, { state: "EXPIRED", operationStatus: "EXPIRED" } as const]) {
      const shown = JSON.stringify(approvalCard(approvalViewOf({ ...facts, ...changed })).blocks);
      expect(shown).toContain("<!date^");
      // What Slack shows where it cannot show a date stands behind the bar, and nowhere else.
      expect(shown.replace(/<!date\^[^>]*>/gu, "")).not.toMatch(/UTC/u);
    }
  });
});
