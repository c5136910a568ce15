/** Every other card of rows that mean harm: quarantine, second person, thaw, incident, run. Structure, places and pings stay ours. */
import { fc, test } from "@fast-check/vitest";
import type { KnownBlock } from "@slack/types";
import { describe, expect } from "vitest";
import { formatMoney } from "../../src/domain/money.js";
import { OPERATION_STATUSES } from "../../src/domain/operation.js";
import { RUN_STATES } from "../../src/domain/run.js";
import { INCIDENT_KINDS, incidentCard } from "../../src/slack/cards/incident-card.js";
import {
  quarantineCard,
  type ResolutionFacts,
  resolutionCard,
  thawCard,
} from "../../src/slack/cards/ops-cards.js";
import { runCard } from "../../src/slack/cards/run-card.js";
import { runDetails } from "../../src/slack/cards/run-details.js";
import { LIMITS } from "../../src/slack/limits.js";
import { hostile, line } from "./support/hostile.js";
import { buttons, cut, harmless, one, table, values, withinLimits } from "./support/read-card.js";
import { operationOf, runOf } from "./support/views.js";

const ID = "0192d3a4b5c6d7e8f90a1b2c3d4e5f60";
const AT = new Date("2026-11-29T12:00:00Z");
const RUNS = { numRuns: 80 };

const operation = fc
  .record({
    status: fc.constantFrom(...OPERATION_STATUSES),
    amountMinor: fc.bigInt({ min: 1n, max: 9_999_999_999n }),
    currency: fc.constantFrom("GBP", "JPY", "KWD"),
    customerName: line,
    customerRef: line,
    orderRef: line,
    providerRef: fc.option(line),
    quarantineReason: fc.option(hostile),
    unknownSince: fc.option(fc.constant(AT)),
  })
  .map(operationOf);

const resolution = fc
  .record({
    verb: fc.constantFrom("confirm", "reject", "retry"),
    state: fc.constantFrom("proposed", "applied", "disagreed", "refused", "superseded", "expired"),
    reason: line,
    evidenceRef: line,
    probe: fc.option(hostile.map((sentence) => ({ says: "unknown", providerRef: null, sentence }))),
    shownSince: fc.option(hostile.map((sentence) => ({ says: "absent", providerRef: null, sentence }))),
    agreedOn: fc.option(hostile.map((sentence) => ({ says: "absent", providerRef: null, sentence }))),
    secondNote: fc.option(hostile),
    refusal: fc.option(hostile),
  })
  .map(
    (facts): ResolutionFacts => ({
      id: `res_${ID}`,
      operationId: `op_${ID}`,
      by: "U_ONC1",
      secondBy: facts.state === "disagreed" ? "U_ONC2" : null,
      secondVerdict: facts.state === "disagreed" ? "disagree" : null,
      createdAt: AT,
      expiresAt: AT,
      shownTimes: facts.shownSince === null ? 0 : 1,
      decidedAt: facts.state === "proposed" ? null : AT,
      ...facts,
    }),
  );

const attempts = fc.array(
  fc.record({
    number: fc.integer({ min: 1, max: 99 }),
    startedAt: fc.constant(AT),
    verdict: line,
    code: fc.option(line),
  }),
  { maxLength: 20 },
);

const what = (o: { amountMinor: bigint; currency: string; orderRef: string | null }): unknown =>
  cut(`Refund of ${formatMoney(o)} on order ${one(o.orderRef ?? "")}`);
const customer = (o: { customerName: string; customerRef: string }): unknown =>
  cut(`${one(o.customerName)} (${one(o.customerRef)})`);

describe("a quarantine card", () => {
  test.prop([operation, attempts, fc.option(resolution)], RUNS)(
    "has each value once in its row, and its buttons only while a person must decide",
    (facts, tried, settled) => {
      const card = quarantineCard({ operation: facts, attempts: tried, resolution: settled });
      withinLimits(card);
      harmless(card, ["U_ONC1", "U_ONC2", "U_AGENT"]);
      const shown = table(card);
      expect(shown.get("Operation")).toEqual([what(facts)]);
      expect(shown.get("Customer")).toEqual([customer(facts)]);
      expect(shown.get("Id")).toEqual([`op_${ID}`]);
      expect(buttons(card)).toEqual(
        facts.status === "QUARANTINED" ? ["Confirm committed", "Reject", "Authorise retry", "Details"] : [],
      );
      for (const value of values(card)) expect(value).toBe(`op_${ID}`);
    },
  );
});

describe("the card that asks a second person", () => {
  test.prop([operation, resolution], RUNS)("shows the claim literally, once in its row", (facts, asked) => {
    const card = resolutionCard({ operation: facts, resolution: asked });
    withinLimits(card);
    harmless(card, ["U_ONC1", "U_ONC2"]);
    const shown = table(card);
    expect(shown.get("Operation")).toEqual([what(facts)]);
    expect(shown.get("Reason")).toEqual([cut(one(asked.reason))]);
    expect(shown.get("Evidence")).toEqual([cut(one(asked.evidenceRef))]);
    expect(shown.get("Asked by")).toEqual(["<@U_ONC1>"]);
    expect(buttons(card)).toEqual(asked.state === "proposed" ? ["Agree", "Disagree"] : []);
  });
});

describe("a thaw card", () => {
  test.prop([line, fc.boolean(), fc.boolean()], RUNS)(
    "shows the reason literally while it asks, and is one line without buttons when it does not",
    (reason, frozen, asked) => {
      const answer = { askedBy: "slack:U_ONC2", by: "slack:U_ONC1", thawed: true };
      const by = { kind: "refund", by: "U_ONC1", at: AT, thawExpiresAt: null, version: 7, answer } as const;
      const card = thawCard({ ...by, frozen, reason, thawAskedBy: asked ? "U_ONC2" : null });
      withinLimits(card);
      harmless(card, ["U_ONC1", "U_ONC2"]);
      expect(table(card).get("Because")).toEqual(frozen && asked ? [cut(one(reason))] : undefined);
      if (!frozen || !asked)
        expect(card.text).toBe(
          "It was asked here whether to thaw refund operations. Asked by <@U_ONC2>, agreed by <@U_ONC1>. The answer stands below.",
        );
      expect(buttons(card)).toEqual(frozen && asked ? ["Agree", "Disagree"] : []);
    },
  );
});

describe("an incident card", () => {
  const detail = fc.uniqueArray(fc.tuple(fc.string({ minLength: 3, maxLength: 12 }), line), {
    maxLength: 20,
    selector: ([label]) => label,
  });
  test.prop([fc.constantFrom(...INCIDENT_KINDS), fc.option(operation), detail, fc.boolean(), hostile], RUNS)(
    "keeps what was found in rows of its own",
    (kind, about, found, open, reason) => {
      const card = incidentCard({
        id: `inc_${ID}`,
        kind,
        status: open ? "open" : "closed",
        operation: about,
        customer: null,
        undecided: about === null ? [] : [about],
        detail: found,
        closedBy: open ? null : "U_ONC1",
        closedAt: open ? null : AT,
        closeReason: open ? null : reason,
        createdAt: AT,
      });
      withinLimits(card);
      harmless(card, ["U_ONC1", "U_AGENT"]);
      expect(JSON.stringify(card.blocks).split(`\`inc_${ID}\``)).toHaveLength(2);
      if (about !== null) expect(table(card).get("Operation")).toHaveLength(1);
      expect(buttons(card)).toEqual(open ? ["Close"] : []);
      for (const value of values(card)) expect(value).toBe(`inc_${ID}`);
    },
  );
});

describe("a run's card", () => {
  const call = fc.record({
    input: fc.dictionary(fc.constantFrom("order_reference", "query"), line),
    name: line,
  });
  test.prop(
    [fc.constantFrom(...RUN_STATES), hostile, hostile, fc.array(call, { maxLength: 30 }), operation],
    RUNS,
  )(
    "tells steps and the planner's prose apart, whatever stands in them",
    (state, prose, ending, calls, about) => {
      const ended = ["resolved", "escalated", "budget_exhausted", "failed", "cancelled"].includes(state);
      const card = runCard(runOf({ state, prose, ending: ended ? ending : null, calls, about }));
      withinLimits(card);
      harmless(card, []);
      expect(buttons(card)).toEqual(ended ? ["Details"] : ["Stop", "Details"]);
      for (const value of values(card)) expect(value).toBe(`run_${ID}`);
    },
  );

  test.prop([hostile, fc.array(call, { maxLength: 40 }), hostile, fc.jsonValue(), operation], RUNS)(
    "its details are within Slack's limits and literal, whatever was asked and came back",
    (prose, calls, sentence, stored, about) => {
      const card = runOf({ state: "running", prose, ending: null, calls, about });
      const results = [sentence, JSON.stringify({ inner: stored, list: [stored] })];
      const told = card.view.calls.map((one, n) => ({ ...one, result: results[n % 2] ?? null }));
      const modal = runDetails({ ...card, view: { ...card.view, calls: told } });
      expect(modal.blocks.length).toBeLessThanOrEqual(LIMITS.blocksPerView);
      for (let at = 0; at < modal.blocks.length; at += LIMITS.blocksPerMessage) {
        const blocks = modal.blocks.slice(at, at + LIMITS.blocksPerMessage) as KnownBlock[];
        const message = { text: "x", blocks };
        withinLimits(message);
        harmless(message, []);
      }
      const last = JSON.stringify(modal.blocks.at(-1));
      expect(last).toContain(`countersign trace run_${ID} --out FILE`);
    },
  );

  test.each(["🚀", "x🚀", "xy🇬🇧"])("a step of many %s is cut between two of them, and says so", (piece) => {
    const card = runCard(
      runOf({
        state: "running",
        prose: "",
        ending: null,
        calls: [{ name: "get_order", input: { order_reference: piece.repeat(300) } }],
        about: operationOf(),
      }),
    );
    const steps = JSON.stringify(card.blocks);
    expect(steps).toContain("…");
    expect(steps).not.toMatch(/\ufffd/u);
    const shown = /“([^…]*)…/u.exec(steps)?.[1] ?? "";
    expect(shown.length).toBeGreaterThan(100);
    expect(piece.repeat(300).startsWith(shown)).toBe(true);
  });
});
