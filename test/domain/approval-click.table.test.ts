import { describe, expect, it } from "vitest";
import { type ClickDecision, decideClick } from "../../src/domain/approval-click.js";
import {
  approvalOf,
  cardOf,
  NOW,
  readingOf,
  stateOf,
  tablePolicy,
} from "../approvals/decision-situations.js";
import { type DecisionRow, decisionRows } from "../approvals/decision-table.js";

describe("a click is decided as CONTRACT and DESIGN say", () => {
  const rows = decisionRows();

  it("the table has at least 200 rows and no line twice", () => {
    expect(rows.length).toBeGreaterThanOrEqual(200);
    expect(new Set(rows.map((row) => row.line)).size).toBe(rows.length);
  });

  it.each(rows.map((row) => [row.line, row] as const))("%s", (_line, row) => {
    expect(spoken(decided(row), row)).toBe(row.expected);
  });
});

function decided(row: DecisionRow): ClickDecision {
  const approval = approvalOf(row.card, row.state);
  const card = cardOf(row.card);
  if (row.click.verb === "undo" && approval.state === "PENDING") {
    return { act: "none", because: "stale_card" };
  }
  return decideClick(
    {
      cardVersion: row.click.card ?? approval.cardVersion,
      verdict: row.click.verb === "approve" ? "approve" : "deny",
      repeatedAmount: row.click.amount,
      suggestedMinor: row.click.suggest,
    },
    {
      approval,
      operationStatus: stateOf(row.state).operation,
      filers: card.filersNow,
      reading: readingOf(row.person),
      policy: tablePolicy({ selfApproval: card.selfNow }),
      now: NOW,
    },
  );
}

function spoken(decision: ClickDecision, row: DecisionRow): string {
  switch (decision.act) {
    case "vote":
      return decision.completes ? "approved" : "recorded";
    case "deny":
      return decision.late ? "denied-late" : "denied";
    case "expire":
      return "ended:EXPIRED";
    case "none":
      if (decision.because === "ended") return `ended:${stateOf(row.state).state}`;
      return decision.because === "refused" ? `refused:${decision.reason}` : decision.because;
  }
}
