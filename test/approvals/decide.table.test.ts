import { describe, expect, it } from "vitest";
import { type DecideOutcome, decide, undo } from "../../src/approvals/index.js";
import { withDatabase } from "../support/database.js";
import { expectOnlyWhatIsAllowed, insertCase, standOf } from "./decision-cases.js";
import { cardOf, personKeyOf, readingOf } from "./decision-situations.js";
import { decisionRows } from "./decision-table.js";
import { type Harness, harness, POLICY } from "./harness.js";

describe("every row of the decision table, on the database", () => {
  const database = withDatabase({ reset: "never" });
  let ready: Promise<Harness> | null = null;
  const world = (): Promise<Harness> => {
    ready ??= prepareWorld();
    return ready;
  };

  async function prepareWorld(): Promise<Harness> {
    const made = await harness(database.db);
    await made.order({ ref: "ORD-10042", captured: 1_000_000 });
    return made;
  }

  it.each(decisionRows().map((row) => [row.line, row] as const))("%s", async (_line, row) => {
    const { db, ctx, policy } = await world();
    await policy(
      cardOf(row.card).selfNow ? POLICY.replace("selfApproval: false", "selfApproval: true") : POLICY,
    );
    const id = await insertCase(db, row, { personKeyOf, cardVersion: 1 });
    const before = await standOf(db, id);
    const context = {
      ...ctx,
      directory: {
        ...ctx.directory,
        person: async (userId: string) => readingOf(userId),
        members: async () => ({ ok: false as const, reason: "not asked" }),
      },
    };
    const click = { approvalId: id, userId: row.person };
    const outcome =
      row.click.verb === "undo"
        ? await undo(context, click)
        : await decide(context, {
            ...click,
            verdict: row.click.verb,
            cardVersion: row.click.card ?? 1,
            repeatedAmount: row.click.amount,
            suggestedMinor: row.click.suggest,
          });
    expect(spoken(outcome)).toBe(row.expected);
    const after = await standOf(db, id);
    expectOnlyWhatIsAllowed(row, before, after);
  });
});

function spoken(outcome: DecideOutcome): string {
  switch (outcome.outcome) {
    case "ended":
      return `ended:${outcome.approval.state}`;
    case "denied":
      return outcome.late ? "denied-late" : "denied";
    case "refused":
      return `refused:${outcome.reason}`;
    default:
      return outcome.outcome;
  }
}
