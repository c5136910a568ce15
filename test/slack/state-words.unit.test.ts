/** Nobody reads a state as the database spells it: every card, post and answer, in every state of its operation. */
import { describe, expect, test } from "vitest";
import { OPERATION_EVENTS, OPERATION_STATUSES, type OperationStatus } from "../../src/domain/operation.js";
import { parseOpsCommand } from "../../src/ops/parse.js";
import { notResolvable } from "../../src/ops/resolution-outcome.js";
import { timelineEntry } from "../../src/ops/timeline.js";
import { approvalCard, plainApprovalCard } from "../../src/slack/cards/approval-card.js";
import { incidentDetail } from "../../src/slack/cards/incident-detail.js";
import { quarantineCard } from "../../src/slack/cards/ops-cards.js";
import { beingCheckedPost, outcomePost, replayedPost } from "../../src/slack/cards/posts.js";
import { runCard } from "../../src/slack/cards/run-card.js";
import { runDetails } from "../../src/slack/cards/run-details.js";
import { RAW_STATE, textsIn } from "./support/see.js";
import { approvalViewOf, operationOf, runOf, TOM_REFUND } from "./support/views.js";

const AT = new Date("2026-11-30T03:00:00Z");

function everythingOf(status: OperationStatus): string[] {
  const operation = operationOf({ status });
  const run = runOf({
    state: "waiting",
    prose: "",
    ending: null,
    calls: [{ name: "issue_refund", input: { order_reference: "ORD-10042" } }],
    about: operation,
  });
  const view = approvalViewOf({ ...TOM_REFUND, state: "PENDING", operationStatus: status, earlier: 2 });
  const { binding } = view.approval;
  const earlier = binding.earlier.map((one) => ({ ...one, status }));
  const asked = { ...view, approval: { ...view.approval, binding: { ...binding, earlier } } };
  return textsIn([
    approvalCard(asked),
    plainApprovalCard(asked),
    quarantineCard({ operation, attempts: [], resolution: null }),
    runCard(run),
    runDetails(run),
    outcomePost(operation),
    beingCheckedPost(operation),
    replayedPost(operation, "tkt_0192d3a4b5c6d7e8f90a1b2c3d4e5f60"),
  ]);
}

describe.each(OPERATION_STATUSES)("an operation that is %s", (status) => {
  test("is so in words on cards, in threads and in a run's details", () => {
    const texts = everythingOf(status);
    expect(texts.length).toBeGreaterThan(20);
    expect(texts.filter((text) => RAW_STATE.test(text))).toEqual([]);
  });

  test("is so in words where nothing can be resolved, in its timeline and among an incident's facts", () => {
    const operation = operationOf({ status }) as unknown as Parameters<typeof notResolvable>[0];
    const told = OPERATION_EVENTS.flatMap((type) =>
      [{}, { verb: "reopen" }].map((more) =>
        timelineEntry({
          seq: 1,
          at: AT,
          type,
          from: status,
          to: status,
          actor: "slack:U_ONC1",
          attempt: 1,
          evidence: { was: status, ...more },
        }),
      ),
    );
    const facts = incidentDetail("contradiction", { was: status, status, operationStatus: status }, "GBP");
    for (const text of [
      notResolvable(operation),
      JSON.stringify(told.map(({ at: _, ...one }) => one)),
      JSON.stringify(facts),
    ])
      expect(text).not.toMatch(RAW_STATE);
  });
});

test("the words for what has ended and for what `/ops list` takes are those of the list", () => {
  const ended = operationOf({ status: "CONFIRMED" }) as unknown as Parameters<typeof notResolvable>[0];
  expect(notResolvable(ended)).toBe("It is confirmed, so there is nothing to resolve.");
  const parsed = parseOpsCommand("list nonsense");
  if (parsed.ok) throw new Error("it was taken");
  expect(parsed.sentence).toContain(
    "The statuses are awaiting approval, prepared, dispatched, outcome unknown,",
  );
  const slip = parseOpsCommand("list outcome unknwon");
  expect(slip).toMatchObject({ ok: false, suggestion: "/ops list outcome unknown" });
  expect(parseOpsCommand("list outcome unknown")).toMatchObject({ ok: true });
});
