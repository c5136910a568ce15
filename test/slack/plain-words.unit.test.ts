/** What reads like a failure, a doubled sentence or somebody else's words, said as it is. */
import { describe, expect, test } from "vitest";
import { quarantineWords } from "../../src/domain/quarantine-words.js";
import { MADE_DIFFERENTLY } from "../../src/domain/resolving.js";
import type { RunState } from "../../src/domain/run.js";
import type { HealthView } from "../../src/ops/index.js";
import type { PlannerName } from "../../src/runs/index.js";
import { approvalCard } from "../../src/slack/cards/approval-card.js";
import { decideSentence } from "../../src/slack/cards/decide-sentences.js";
import { quarantineCard, type ResolutionFacts, resolutionCard } from "../../src/slack/cards/ops-cards.js";
import { opsHealth } from "../../src/slack/cards/ops-views.js";
import { escalatedPost, runEndedPost } from "../../src/slack/cards/posts.js";
import { runCard } from "../../src/slack/cards/run-card.js";
import { outcomeOf, standingOf } from "../../src/slack/cards/sentences.js";
import { localTime } from "../../src/slack/text/time.js";
import { approvalViewOf, operationOf, runOf, TOM_REFUND } from "./support/views.js";

const said = (message: { text: string; blocks: readonly object[] }): string =>
  `${message.text}\n${JSON.stringify(message.blocks)}`;

const RUN = {
  state: "cancelled",
  prose: "",
  ending: "Stopped on request.",
  calls: [],
  about: operationOf(),
} as const;

const refund = {
  ...TOM_REFUND,
  money: { amountMinor: 1_000n, currency: "GBP" },
};

describe("a run that ended and left its request to another ticket", () => {
  const calls = [{ name: "cancel_order", input: { order_reference: "A-4471" } }];
  const step = (status: "AWAITING_APPROVAL" | "PREPARED" | "CONFIRMED", state: "cancelled" | "waiting") =>
    said(runCard(runOf({ ...RUN, state, ending: null, calls, about: operationOf({ status }) })));

  test.each(["AWAITING_APPROVAL", "PREPARED"] as const)(
    "says so of what is %s, and promises nothing",
    (status) => {
      expect(step(status, "cancelled")).toContain("left to another ticket that asks for it too, told there");
      expect(step(status, "cancelled")).not.toContain("nothing sent");
      expect(step(status, "waiting")).not.toContain("another ticket");
    },
  );

  test("tells what was done as it stands", () => {
    expect(step("CONFIRMED", "cancelled")).not.toContain("another ticket");
  });
});

describe("a small refund that the filer's word lets go", () => {
  const view = approvalViewOf({ ...refund, state: "VOIDED", operationStatus: "VOIDED" });
  const approval = { ...view.approval, endCode: "binding_confirmed" as const };
  const operation = operationOf({
    status: "VOIDED",
    result: { code: "binding_confirmed", detail: "The filer confirmed the customer." },
  });

  test("ends its card as not needed any more, with the amount, and alarms nobody", () => {
    const card = said(approvalCard({ ...view, approval, operation }));
    expect(card).toContain("Approval not needed any more: refund");
    expect(card).toContain(
      "The filer confirmed the customer, and £10.00 GBP is within what the agent may do alone.",
    );
    expect(card).not.toMatch(/No longer valid|withdrawn|Nothing was sent/i);
    for (const words of [outcomeOf(operation), standingOf(operation)]) {
      expect(words).not.toMatch(/withdrawn|No longer valid/i);
    }
  });

  const NEXT = "op_0192d3a4b5c6d7e8f90a1b2c3d4e5f61" as const;
  const ALONE = `It was asked for anew as the refund of £10.00 GBP on order ORD-10042, which the policy allows without an approver.`;
  const confirmed = { code: "refunded", detail: "" };

  test.each([
    ["PREPARED", {}, `${ALONE} Not sent yet.`],
    ["OUTCOME_UNKNOWN", {}, `${ALONE} Sent; the outcome is not known yet and is being checked.`],
    ["CONFIRMED", { result: confirmed }, `${ALONE} Refunded. Reference re_1.`],
    [
      "AWAITING_APPROVAL",
      {},
      `It was asked for anew as the refund of £10.00 GBP on order ORD-10042 and is held for another reason; its own card asks.`,
    ],
    ["DENIED", {}, `It was asked for anew as the refund of £10.00 GBP on order ORD-10042. Nothing was sent.`],
    [
      "CONFIRMED",
      { result: confirmed, approvedBy: ["U_SUP1"] },
      `It was asked for anew as the refund of £10.00 GBP on order ORD-10042. Refunded. Reference re_1.`,
    ],
  ] as const)(
    "says which operation went on in its place and what came of it: %s %o",
    (status, facts, sentence) => {
      const instead = operationOf({ ...facts, id: NEXT, status, amountMinor: 1_000n });
      const card = approvalCard({ ...view, approval, operation, instead, confirmedBy: "U_AGENT" });
      expect(JSON.stringify(card.blocks)).toContain(sentence);
      expect(card.text).toContain(sentence);
      expect(JSON.stringify(card.blocks)).toContain("The customer was confirmed by <@U_AGENT>.");
    },
  );

  test("until there is one says where it will be told", () => {
    expect(said(approvalCard({ ...view, approval, operation }))).toContain(
      "It is judged anew; the ticket's thread tells what comes of it.",
    );
  });

  test("answers a late click so, too", () => {
    const decision = {
      state: "VOIDED" as const,
      by: [],
      at: new Date(0),
      note: null,
      detail: null,
      endCode: "binding_confirmed" as const,
    };
    const standing = {
      operationStatus: "VOIDED" as const,
      resultCode: null,
      waitsFor: 0,
      notBefore: null,
      frozen: null,
      attempts: 0,
      canBeStopped: false,
    };
    const ended = decideSentence({
      outcome: "ended",
      approval,
      decision,
      standing,
      successorId: null,
    } as Parameters<typeof decideSentence>[0]);
    expect(ended).toMatch(
      /^Approval not needed any more: Refund of £10\.00 GBP .* within what the agent may do alone\.$/,
    );
  });
});

test.each([
  ["CONFIRMED", "refunded", "It has been carried out."],
  [
    "CONFIRMED",
    "confirmed_unasked",
    "It has been carried out, by on-call's word alone: the provider could not be asked.",
  ],
  [
    "CONFIRMED",
    "confirmed_unseen",
    "It has been carried out, by on-call's word alone: the provider did not show it.",
  ],
  ["REJECTED", MADE_DIFFERENTLY, "It was not carried out as asked, closed by on-call."],
] as const)("a late click on what is %s (%s) hears: %s", (operationStatus, resultCode, sentence) => {
  const { approval } = approvalViewOf({ ...TOM_REFUND, state: "RELEASED", operationStatus });
  const said = decideSentence({
    outcome: "ended",
    approval,
    decision: {
      state: "RELEASED",
      by: ["U_SUP1"],
      at: new Date(0),
      note: null,
      detail: null,
      endCode: null,
    },
    standing: {
      operationStatus,
      resultCode,
      waitsFor: 0,
      notBefore: null,
      frozen: null,
      attempts: 0,
      canBeStopped: false,
    },
    successorId: null,
  });
  expect(said).toMatch(/^Already approved by <@U_SUP1>, /u);
  expect(said.endsWith(sentence)).toBe(true);
});

test("an approval that is no longer valid says that nothing was sent", () => {
  const endDetail = "The order was cancelled";
  const view = approvalViewOf({ ...refund, endDetail, state: "VOIDED", operationStatus: "VOIDED" });
  const card = said(approvalCard(view));
  expect(card).toContain("No longer valid: refund");
  expect(card).toContain("The order was cancelled. Nothing was sent.");
});

test("a mistyped amount is told what is wrong with it and nothing else", () => {
  const { approval } = approvalViewOf({ ...refund, state: "PENDING", operationStatus: "AWAITING_APPROVAL" });
  expect(
    decideSentence({ outcome: "bad_suggestion", approval, sentence: "Not an amount." } as Parameters<
      typeof decideSentence
    >[0]),
  ).toBe("Not an amount.");
  expect(decideSentence({ outcome: "repeat_amount", approval } as Parameters<typeof decideSentence>[0])).toBe(
    "This needs the amount typed again: £10.00 GBP.",
  );
});

describe("a further refund", () => {
  test("is asked for by a person, not by a planner", () => {
    const view = approvalViewOf({ ...refund, state: "PENDING", operationStatus: "AWAITING_APPROVAL" });
    const reason = "A further refund, asked for by U_AGENT.";
    const card = said(approvalCard({ ...view, operation: { ...view.operation, reason } }));
    expect(card).toContain("A further refund, asked for by <@U_AGENT>.");
    expect(card).not.toContain("Planner's words");
    const planners = { ...view.operation, reason: "A further refund, asked for by U_AGENT. And more." };
    expect(said(approvalCard({ ...view, operation: planners }))).toContain("Planner's words, unverified");
  });

  test("counts no steps of a model that is not called", () => {
    const shown = runOf({ ...RUN, state: "running" });
    const steps = (planner: PlannerName) =>
      said(runCard({ ...shown, view: { ...shown.view, run: { ...shown.view.run, planner } } }));
    expect(steps("scripted")).toMatch(/step \d+ of \d+/);
    expect(steps("code")).not.toMatch(/step \d+ of \d+/);
  });
});

test("a stop is told once", () => {
  const { run } = runOf(RUN).view;
  expect(runEndedPost(run, ["U_AGENT"]).text).toBe("Stopped on request.");
});

describe("an end after which a person has to go on", () => {
  const WHO =
    "<@U_AGENT> and <@U_AGENT2>, who filed it. This run has ended; on-call sees it under `/ops runs`.";
  const post = (state: RunState, ending: string) =>
    runEndedPost(runOf({ ...RUN, state, ending }).view.run, ["U_AGENT", "U_AGENT2"]);

  test.each([
    ["escalated", "Stuck: the same get_order was asked for 3 times."],
    ["budget_exhausted", "All 12 model calls of this run are used."],
    ["failed", "No model is configured."],
  ] as const)("%s names who has it back", (state, ending) => {
    const { text, blocks } = post(state, ending);
    expect(text).toContain(`${ending} It is back with ${WHO}`);
    expect(JSON.stringify(blocks)).toContain(`It is back with ${WHO}`);
  });

  test.each(["resolved", "cancelled"] as const)("%s asks nobody", (state) => {
    expect(said(post(state, "Over."))).not.toMatch(/back with|<@/u);
  });

  test("the planner's handover names them, too", () => {
    const { text, blocks } = escalatedPost(null, "Please call back.", ["U_AGENT", "U_AGENT2"]);
    expect(text).toBe(`Handed back to ${WHO} Summary by the planner, unverified: Please call back.`);
    expect(JSON.stringify(blocks)).toContain(`*Handed back* to ${WHO}`);
  });
});

test("a case that was opened again is told once", () => {
  expect(quarantineWords("opened_again: It had been settled as done.")).toBe(
    "A person opened it again. It had been settled as done.",
  );
});

describe("the headline of health", () => {
  const health = (frozen: readonly string[], ok = true, parked = 0, openIncidents = 0): string => {
    const view = {
      parts: [{ name: "database", ok, sentence: "answers" }],
      backlog: [],
      frozen: ["all", "refund"].map((kind) => ({
        kind,
        frozen: frozen.includes(kind),
        by: null,
        reason: null,
        at: null,
        thawAskedBy: null,
        thawExpiresAt: null,
        version: 1,
      })),
      counts: parked === 0 ? {} : { QUARANTINED: parked },
      pendingApprovals: 0,
      oldestPendingAt: null,
      oldestUnknown: null,
      coolingOff: null,
      triedAgain: null,
      openIncidents,
    } as unknown as HealthView;
    return JSON.stringify(opsHealth(view, new Date(0)).blocks[0]);
  };

  test.each([
    [[], true, "Healthy"],
    [["all"], true, "Sending of everything is frozen. All parts are there"],
    [["refund"], true, "Refunds are frozen. All parts are there"],
    [["all"], false, "Not all parts work. Sending of everything is frozen"],
    [[], false, "Not all parts work"],
  ] as const)("with %j frozen and parts there: %j", (frozen, ok, title) => {
    expect(health(frozen, ok)).toContain(`"text":"${title}"`);
  });

  test.each([
    ["unknown_too_long", "unknown since"],
    ["opened_again: It had been settled as done.", "open again since"],
    ["duplicate_effect: re_1, re_2", "open since"],
  ])("names what is not settled for longest, and from when it counts: %s", (quarantineReason, since) => {
    const { id, kind, amountMinor, currency, orderRef } = operationOf();
    const at = new Date("2026-11-29T12:00:00Z");
    const oldestUnknown = { id, kind, amountMinor, currency, orderRef, unknownSince: at, quarantineReason };
    const none = { parts: [], backlog: [], frozen: [], counts: {}, coolingOff: null, triedAgain: null };
    const view = { ...none, pendingApprovals: 0, oldestPendingAt: null, openIncidents: 0, oldestUnknown };
    const told = JSON.stringify(opsHealth(view as unknown as HealthView, at).blocks);
    expect(told).toContain(
      `Oldest that is not settled: refund £180.00 GBP ORD-10042 \`${id}\`, ${since} ${localTime(at)}.`,
    );
  });

  test("is not healthy while something waits for a person", () => {
    expect(health([], true, 1)).toContain('"text":"1 operation with a person. All parts are there"');
    expect(health([], false, 2, 13)).toContain(
      '"text":"Not all parts work. 2 operations with a person, 13 open incidents"',
    );
  });
});

test("a settled case shows when it was decided, not when it was asked for", () => {
  const asked = new Date("2026-11-02T09:00:00Z");
  const decided = new Date("2026-11-02T11:30:00Z");
  const resolution: ResolutionFacts = {
    id: "res_1",
    operationId: "op_00000000000000000000000000000000",
    verb: "confirm",
    state: "applied",
    by: "U_ONC1",
    reason: "seen",
    evidenceRef: "TICKET-1",
    probe: null,
    secondBy: "U_ONC2",
    secondVerdict: "agree",
    secondNote: null,
    shownSince: null,
    shownTimes: 0,
    agreedOn: null,
    refusal: null,
    expiresAt: asked,
    createdAt: asked,
    decidedAt: decided,
  };
  const operation = operationOf({ status: "CONFIRMED" });
  for (const card of [
    said(resolutionCard({ resolution, operation })),
    said(quarantineCard({ resolution, operation, attempts: [] })),
  ]) {
    expect(card).toContain(localTime(decided));
    expect(card).not.toContain(localTime(asked));
  }
});
