/** What on-call has decided: what stands on its word alone says so everywhere, and what was opened again or made differently is told as that. */
import { describe, expect, test } from "vitest";
import { onWord } from "../../src/domain/named-evidence.js";
import { MADE_DIFFERENTLY } from "../../src/domain/resolving.js";
import { approvalCard } from "../../src/slack/cards/approval-card.js";
import { quarantineCard } from "../../src/slack/cards/ops-cards.js";
import { opsPost, outcomePost, replayedPost } from "../../src/slack/cards/posts.js";
import { outcomeOf, resultOf, standingOf } from "../../src/slack/cards/sentences.js";
import { resolutionOf, said } from "./support/resolutions.js";
import { approvalViewOf, operationOf, TOM_REFUND } from "./support/views.js";

describe("confirmed by on-call", () => {
  const confirmedWith = (code: string) =>
    operationOf({
      status: "CONFIRMED",
      resolvedByPerson: true,
      settledBy: ["U_ONC1"],
      providerRef: "re_1",
      referenceGiven: onWord({ code }) !== null,
      result: { code, detail: "Confirmed by on-call: re_1." },
    });
  const card = (code: string) =>
    approvalCard({
      ...approvalViewOf({
        ...TOM_REFUND,
        state: "RELEASED",
        operationStatus: "CONFIRMED",
      }),
      operation: confirmedWith(code),
    });

  test.each([
    ["confirmed_unasked", "the provider could not be asked"],
    ["confirmed_unseen", "the provider did not show it"],
  ])(
    "%s: thread, approval card and announcement say on whose word, and whose reference it is",
    (code, why) => {
      const operation = confirmedWith(code);
      const end = `, by on-call's word alone: ${why}. Reference given: re_1.`;
      expect(outcomePost(operation).text).toBe(
        `Refunded £180.00 GBP on order ORD-10042 to Tom Whitfield (CUS-7)${end} Confirmed by <@U_ONC1>.`,
      );
      expect(JSON.stringify(outcomePost(operation).blocks)).toContain("Confirmed by <@U_ONC1>.");
      for (const part of [card(code).text, JSON.stringify(card(code).blocks)]) {
        expect(part).toContain(`Refunded${end}`);
        expect(part).toContain("Confirmed by <@U_ONC1>.");
      }
      const resolved = {
        type: "resolved",
        operationId: operation.id,
        verb: "confirm",
        by: "U_ONC1",
      } as const;
      expect(opsPost({ ...resolved, reason: "r", evidence: "e" }, operation).text).toContain(end);
      expect(replayedPost(operation, "tkt_1").text).toContain(end);
      expect(standingOf(operation)).toBe(`done, by on-call's word alone: ${why}`);
      for (const kind of ["cancel_order", "cancel_subscription"] as const) {
        for (const text of [outcomeOf({ ...operation, kind }), resultOf({ ...operation, kind })]) {
          expect(text).toContain(`, by on-call's word alone: ${why}.`);
        }
      }
    },
  );

  test("its own card calls the reference what it is, and says once on whose word it rests", () => {
    const operation = { ...confirmedWith("confirmed_unasked"), providerRef: "Dashboard" };
    const probe = { says: "unknown", providerRef: null, sentence: "The provider could not be asked." };
    const resolution = resolutionOf({ verb: "confirm", evidenceRef: "Dashboard", probe });
    const card = JSON.stringify(quarantineCard({ operation, attempts: [], resolution }).blocks);
    expect(card).toContain("Reference given");
    expect(card).not.toContain("Provider reference");
    expect(card.match(/could not be asked/gu)).toHaveLength(1);
  });

  test.each(["confirmed_unasked", "confirmed_by_person"])(
    "%s: each card of it says the amount and the reference once",
    (code) => {
      const operation = confirmedWith(code);
      const parked = JSON.stringify(quarantineCard({ operation, attempts: [], resolution: null }).blocks);
      expect(parked).toContain("Refunded");
      for (const each of [parked, JSON.stringify(card(code).blocks)]) {
        expect(each.match(/re_1\b/gu)).toHaveLength(1);
        expect(each.match(/£180\.00/gu)).toHaveLength(1);
      }
    },
  );

  test("where the provider showed it, it is told as what it is", () => {
    const code = "confirmed_by_person";
    const said = `${outcomePost(confirmedWith(code)).text}${JSON.stringify(card(code))}`;
    expect(said).toContain("(CUS-7). Reference re_1.");
    expect(said).toContain("Refunded. Reference re_1.");
    expect(said).not.toMatch(/word|Confirmed by|given/u);
  });
});

describe("rejected by on-call", () => {
  const rejectedWith = (code: string) =>
    operationOf({
      status: "REJECTED",
      resolvedByPerson: true,
      settledBy: ["U_ONC1", "U_ONC2"],
      result: { code, detail: "Closed by on-call as not executed." },
    });

  test.each([
    ["rejected_unseen", ", by on-call's word alone: the provider did not show it, which is no proof."],
    [
      "rejected_beside_another",
      ", by on-call's word alone: the provider showed one that nobody here asked for.",
    ],
    ["rejected_by_person", ", by on-call's word alone."],
  ])("%s: every place says on whose word, and none that no money moved", (code, end) => {
    const operation = rejectedWith(code);
    const post = outcomePost(operation).text;
    expect(post).toBe(
      `Refund of £180.00 GBP on order ORD-10042: not carried out${end} Rejected by <@U_ONC1> and <@U_ONC2>.`,
    );
    expect(resultOf(operation)).toBe(`Not carried out${end}`);
    expect(`${standingOf(operation)}.`).toBe(`not carried out${end}`);
    const card = said(
      quarantineCard({ operation, attempts: [], resolution: resolutionOf({ verb: "reject" }) }),
    );
    expect(card).toContain(end);
    for (const text of [post, card]) expect(text).not.toContain("No money moved");
  });

  test("where the provider's evidence proves it, it is told as what is", () => {
    const text = outcomeOf(rejectedWith("rejected_proven"));
    expect(text).toContain("Closed by on-call as not executed. No money moved.");
    expect(text).not.toContain("word");
  });
});

describe("opened again", () => {
  const operation = operationOf({
    status: "QUARANTINED",
    quarantineReason: "opened_again: It had been settled as done.",
    unknownSince: new Date("2026-11-30T03:00:00Z"),
    approvedBy: ["U_SUP1"],
  });

  test.each([
    ["CONFIRMED", "done"],
    ["REJECTED", "not carried out"],
  ] as const)("after %s, the thread hears that what it was told does not hold any more", (was, as) => {
    const { text, blocks } = outcomePost(operation, was);
    const head = `<@U_AGENT> and <@U_SUP1>: what was told here as ${as} does not hold any more.`;
    expect(text).toContain(`${head} Refund of £180.00 GBP on order ORD-10042: a person opened it again.`);
    expect(JSON.stringify(blocks)).toContain(head);
    expect(outcomePost({ ...operation, status: was }, was).text).not.toContain("does not hold");
  });

  test("its card tells who opened it as what is, not as what was before", () => {
    const card = said(
      quarantineCard({ operation, attempts: [], resolution: resolutionOf({ verb: "reopen" }) }),
    );
    expect(card).toContain("*Opened again* by <@U_ONC1>");
    expect(card).not.toContain("Before this");
  });

  test("its card calls the time at which that happened by its name", () => {
    const card = said(quarantineCard({ operation, attempts: [], resolution: null }));
    expect(card).toContain("Open again since");
    expect(card).not.toContain("Unknown since");
  });
});

describe("rejected because something else was made", () => {
  const operation = operationOf({
    status: "REJECTED",
    resolvedByPerson: true,
    result: {
      code: MADE_DIFFERENTLY,
      detail: "Not carried out as asked: the provider made re_1 of £170.00 GBP instead. Closed by on-call.",
    },
  });

  test("is told once, and nobody reads that the provider refused it or that no money moved", () => {
    for (const text of [outcomeOf(operation), resultOf(operation), standingOf(operation)]) {
      expect(text.match(/not carried out/giu)).toHaveLength(1);
      expect(text).not.toMatch(/refused|No money moved/u);
    }
    expect(outcomeOf(operation)).toContain("not carried out as asked: the provider made re_1 of £170.00 GBP");
  });
});
