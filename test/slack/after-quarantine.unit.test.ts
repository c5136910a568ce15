/** What was parked and then decided: its cards and posts say nothing that stops being true while the operation goes on. */
import { describe, expect, test } from "vitest";
import { onWord } from "../../src/domain/named-evidence.js";
import type { OperationStatus } from "../../src/domain/operation.js";
import { MADE_DIFFERENTLY } from "../../src/domain/resolving.js";
import type { FreezeState, VerbView } from "../../src/ops/index.js";
import { probeView } from "../../src/ops/resolution-view.js";
import { approvalCard } from "../../src/slack/cards/approval-card.js";
import { reopenForm, resolveForm } from "../../src/slack/cards/forms.js";
import { INCIDENT_KINDS, incidentCard } from "../../src/slack/cards/incident-card.js";
import { incidentDetail } from "../../src/slack/cards/incident-detail.js";
import {
  quarantineCard,
  type ResolutionFacts,
  resolutionCard,
  thawCard,
} from "../../src/slack/cards/ops-cards.js";
import { opsPost, outcomePost, replayedPost } from "../../src/slack/cards/posts.js";
import { outcomeOf, resultOf, standingOf } from "../../src/slack/cards/sentences.js";
import { localTime } from "../../src/slack/text/time.js";
import { approvalViewOf, operationOf, TOM_REFUND } from "./support/views.js";

const said = (message: { text: string; blocks: readonly object[] }): string =>
  `${message.text}\n${JSON.stringify(message.blocks)}`;

const resolutionOf = (changes: Partial<ResolutionFacts> = {}): ResolutionFacts => ({
  id: "res_1",
  operationId: operationOf().id,
  verb: "retry",
  state: "applied",
  by: "U_ONC1",
  reason: "not there",
  evidenceRef: "case 7",
  probe: null,
  shownSince: null,
  shownTimes: 0,
  agreedOn: null,
  secondBy: "U_ONC2",
  secondVerdict: "agree",
  secondNote: null,
  refusal: null,
  expiresAt: null,
  createdAt: new Date("2026-11-30T03:00:00Z"),
  decidedAt: new Date("2026-11-30T03:10:00Z"),
  ...changes,
});

describe("the card of an operation that was in quarantine", () => {
  const title = (status: OperationStatus): string => {
    const [first] = quarantineCard({
      operation: operationOf({ status }),
      attempts: [],
      resolution: resolutionOf(),
    }).blocks;
    return first?.type === "header" ? first.text.text : "";
  };

  test.each(["PREPARED", "DISPATCHED", "OUTCOME_UNKNOWN", "RECONCILING"] as const)(
    "is not called settled while it is %s",
    (status) => expect(title(status)).toContain("not settled yet"),
  );

  test.each(["CONFIRMED", "REJECTED", "REVERSED", "VOIDED"] as const)("is called settled at %s", (status) =>
    expect(title(status)).toBe("Settled"),
  );

  test("opened again by evidence, it tells the decision before as one before", () => {
    const operation = operationOf({ status: "QUARANTINED", quarantineReason: "evidence_contradicts" });
    const card = said(
      quarantineCard({ operation, attempts: [], resolution: resolutionOf({ verb: "reject" }) }),
    );
    expect(card).toContain("Before this: *Reject* done by <@U_ONC1>, agreed by <@U_ONC2>");
  });

  test("a request that ran out is told with the time at which it was made", () => {
    const resolution = resolutionOf({ state: "expired", secondBy: null, secondVerdict: null });
    const operation = operationOf({ status: "QUARANTINED", quarantineReason: "unknown_too_long" });
    const card = said(quarantineCard({ operation, attempts: [], resolution }));
    expect(card).toContain("asked for by <@U_ONC1>");
    expect(card).toContain("03:00 UTC");
    expect(card).not.toContain("03:10 UTC");
  });
});

describe("the second person's card, once it is answered", () => {
  test.each([
    ["applied", "It is sent once more under the same key"],
    ["disagreed", "Nothing was done by this"],
    ["expired", "Nothing was done by this"],
    ["refused", "Nothing was done by this"],
    ["superseded", "Nothing was done by this"],
  ] as const)("%s: says what it led to and leaves the operation to its own card", (state, words) => {
    const operation = operationOf({ status: "DISPATCHED" });
    const card = said(resolutionCard({ operation, resolution: resolutionOf({ state }) }));
    expect(card).toContain(words);
    expect(card).not.toMatch(/the answer is not there yet|On-call has the case/);
  });
});

describe("the second person's card, while it asks", () => {
  const asks = (verb: ResolutionFacts["verb"], quarantineReason = "unknown_too_long: no answer"): string => {
    const operation = operationOf({ status: "QUARANTINED", quarantineReason });
    const resolution = resolutionOf({ verb, state: "proposed", secondBy: null, secondVerdict: null });
    return said(resolutionCard({ operation, resolution }));
  };

  test.each([
    ["confirm", "*Agree* records that the provider carried it out. Nothing is sent."],
    [
      "reject",
      "*Agree* records that it did not happen and cannot happen any more; the amount is free again. Nothing is sent. That the provider shows nothing is no proof as long as something that was sent can still arrive.",
    ],
    ["retry", "*Agree* sends it once more under the same key, unless the provider shows that it happened."],
  ] as const)("%s: says what pressing Agree does, and names the operation", (verb, sentence) => {
    expect(asks(verb)).toContain(sentence);
    expect(asks(verb)).toContain(operationOf().id);
  });

  test("a reject of what was made differently frees no amount", () => {
    expect(asks("reject", "postcondition_failed: £17.00")).toContain(
      "*Agree* records that it was not carried out as asked; what was made instead counts as refunded elsewhere.",
    );
  });
});

describe("the form of a verb", () => {
  const place = { channelId: null, messageTs: null, threadTs: null, home: false };
  const formOf = (verb: Omit<VerbView, "people" | "sentence">, says: string | null = null) => {
    const operation = operationOf({ status: "QUARANTINED" });
    const view: VerbView = { ...verb, people: 1, sentence: "Not possible: it was made. Reject it." };
    const form = resolveForm(
      operation,
      view,
      { about: operation.id, verb: verb.verb, place },
      says === null ? null : { says, providerRef: null, sentence: "So it is there." },
    );
    return {
      submit: form.submit?.text,
      inputs: form.blocks.filter(({ type }) => type === "input").length,
      text: JSON.stringify(form.blocks),
    };
  };

  test("that is never possible says why and what to do instead, and has nothing to send", () => {
    const { submit, inputs, text } = formOf({ verb: "retry", possible: false, never: true });
    expect({ submit, inputs }).toEqual({ submit: undefined, inputs: 0 });
    expect(text).toContain("Not possible: it was made. Reject it.");
    expect(text).not.toContain("The provider is asked once more");
  });

  test.each([
    ["confirm", "absent", "confirmed now, it rests on your word alone"],
    ["confirm", "failed_at_provider", "it failed at the provider, so it is not confirmed"],
    ["confirm", "pending", "it is pending at the provider, so it is not confirmed"],
    ["reject", "absent", "that the provider shows nothing is no proof"],
    ["reject", "committed", "the provider shows one, so it is not rejected"],
    ["retry", "committed", "the provider shows one, so nothing is sent"],
    ["retry", "failed_at_provider", "it failed at the provider, so nothing is sent"],
    ["confirm", "unattributed", "nobody here asked for what the provider shows. Ask who made it"],
    [
      "retry",
      "unattributed",
      "nobody here asked for what the provider shows, so nothing is sent. Ask who made it",
    ],
    ["confirm", "committed", null],
    ["reject", "failed_at_provider", null],
    ["retry", "absent", null],
  ] as const)("says before it is sent what %s does where the provider shows: %s", (verb, says, care) => {
    const { text } = formOf({ verb, possible: true }, says);
    if (care === null) expect(text).not.toContain("Take care");
    else expect(text).toContain(`*Take care:* ${care}`);
  });

  test.each([
    [
      "reject",
      "QUARANTINED",
      "the provider shows one that is not what was asked for. Rejected, it counts as not carried out, and what was made counts as refunded elsewhere.",
    ],
    ["reject", "OUTCOME_UNKNOWN", "so it is not rejected until it waits for a person"],
    ["confirm", "QUARANTINED", "what the provider shows is not what was asked for, so it is not confirmed"],
    ["retry", "QUARANTINED", "the provider shows one that is not what was asked for, so nothing is sent"],
  ] as const)("says what %s of what was made differently does: %s", (verb, status, care) => {
    const effect = {
      ref: "re_1",
      kind: "refund",
      target: "pi_1",
      amountMinor: 1_700n,
      currency: "GBP",
      status: "succeeded",
      pendingReason: null,
      failureReason: null,
      operationId: operationOf().id,
      createdAt: new Date(0),
    } as const;
    const probe = probeView({ says: "committed", effect, postcondition: "fails", differs: ["amount"] });
    const view: VerbView = { verb, possible: true, people: 2, sentence: "Say it." };
    const form = resolveForm(operationOf({ status }), view, { about: "x", verb, place }, probe);
    const text = JSON.stringify(form.blocks);
    expect(text).toContain(care);
    expect(text).not.toContain("settled by it as carried out");
    if (verb === "reject" && status === "QUARANTINED") expect(text).not.toContain("it is not rejected");
  });

  test.each([
    ["reject", "the provider shows it more than once, so it is not rejected."],
    ["retry", "the provider shows it more than once, so nothing is sent."],
  ] as const)("says what %s does where the provider shows it twice", (verb, care) => {
    expect(formOf({ verb, possible: true }, "duplicate").text).toContain(`*Take care:* ${care}`);
  });

  test("that is possible is sent with a reason and evidence", () => {
    expect(formOf({ verb: "retry", possible: true })).toMatchObject({ submit: "Authorise retry", inputs: 2 });
  });

  test("that can only ask the provider says so on its button", () => {
    expect(formOf({ verb: "confirm", possible: false })).toMatchObject({
      submit: "Ask the provider",
      inputs: 2,
    });
  });
});

describe("the card that asks for a thaw", () => {
  const asks = (kind: FreezeState["kind"]): string =>
    said(
      thawCard({
        kind,
        frozen: true,
        by: "U_ONC1",
        reason: "odd",
        at: new Date("2026-11-30T03:00:00Z"),
        thawAskedBy: "U_ONC1",
        thawExpiresAt: null,
        version: 2,
        answer: null,
      }),
    );

  test("says what Agree releases, and what stays frozen by a switch of its own", () => {
    expect(asks("all")).toContain(
      "*Agree* lets everything that this freeze holds back be sent. A kind that is frozen by a switch of its own stays frozen.",
    );
    expect(asks("refund")).toContain(
      "*Agree* lets the refund operations that this freeze holds back be sent, unless everything is frozen by its own switch: that stays frozen.",
    );
  });
});

describe("the post about a decision", () => {
  const post = (verb: string, status: OperationStatus, second: string | null): string =>
    opsPost(
      {
        type: "resolved",
        operationId: operationOf().id,
        verb,
        by: "U_ONC1",
        second,
        reason: "r",
        evidence: "e",
      },
      operationOf({ status }),
    ).text;

  test("names both people, and says of a retry what was decided, not where the operation stood", () => {
    const text = post("retry", "QUARANTINED", "U_ONC2");
    expect(text).toContain("*Authorise retry* by <@U_ONC1>, agreed by <@U_ONC2>:");
    expect(text).toContain("it is sent once more under the same key.");
    expect(text).not.toContain("On-call has the case");
  });

  test("says of what was opened again that it waits for a person", () => {
    expect(post("reopen", "QUARANTINED", null)).toContain("waits for a person again");
  });
});

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
    expect(card).toContain("*Open again* done by <@U_ONC1>");
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

describe("parked because something else was made", () => {
  const operation = operationOf({
    status: "QUARANTINED",
    quarantineReason: "postcondition_failed: re_1 of £170.00 GBP differs in amount from what was asked for.",
  });
  const made = "he provider made something else than was asked for: re_1 of £170.00 GBP (differs in amount).";

  test("its card, its approval's card and the thread say what was made, and none that it is not known", () => {
    const parked = quarantineCard({ operation, attempts: [], resolution: null });
    expect(parked.blocks[0]).toMatchObject({
      text: { text: "Not what was asked for: a person must decide" },
    });
    expect(said(parked)).toContain(
      "*What is possible:* *Reject*, with a second person, who is then asked here: ",
    );
    const view = approvalViewOf({ ...TOM_REFUND, state: "RELEASED", operationStatus: "QUARANTINED" });
    const shown = [parked, approvalCard({ ...view, operation }), outcomePost(operation)].map(said);
    for (const text of [...shown, outcomeOf(operation), resultOf(operation)]) {
      expect(text).toContain(made);
      expect(text).not.toMatch(/not known|cannot be established/u);
    }
    expect(standingOf(operation)).toBe("not what was asked for, with on-call");
  });

  test("of a cancellation, no amount counts as spent", () => {
    const cancelled = { ...operation, kind: "cancel_subscription", subscriptionRef: "SUB-1" } as const;
    const card = said(quarantineCard({ operation: cancelled, attempts: [], resolution: null }));
    const place = { channelId: null, messageTs: null, threadTs: null, home: false };
    const form = JSON.stringify(reopenForm(cancelled, { about: cancelled.id, place }));
    for (const text of [card, form, outcomeOf(cancelled)]) expect(text).not.toContain("amount counts");
  });
});

describe("a card whose operation the provider has shown", () => {
  const buttonsOf = (quarantineReason: string): string[] =>
    quarantineCard({
      operation: operationOf({ status: "QUARANTINED", quarantineReason }),
      attempts: [],
      resolution: null,
    }).blocks.flatMap((block) =>
      block.type === "actions"
        ? block.elements.flatMap((one) => (one.type === "button" ? [one.text.text] : []))
        : [],
    );

  test.each([
    ["pending_too_long: re_1: processing", []],
    ["postcondition_failed: re_1 differs in amount", ["Reject"]],
    ["duplicate_effect: re_1, re_2", ["Confirm committed"]],
    ["unattributed_effect: re_9", ["Confirm committed", "Reject"]],
    ["unknown_too_long: http_500", ["Confirm committed", "Reject", "Authorise retry"]],
  ])("has the buttons that show calls possible: %s", (reason, left) => {
    expect(buttonsOf(reason)).toEqual([...left, "Details"]);
  });

  test.each([
    ["unattributed_effect: re_9", "*Reject* may need a second person", "Authorise retry"],
    [
      "unknown_too_long: http_500",
      "*Reject* and *Authorise retry* may need a second person",
      "none of these",
    ],
  ])("speaks of no button that is not there: %s", (reason, note, absent) => {
    const operation = operationOf({ status: "QUARANTINED", quarantineReason: reason });
    const card = said(quarantineCard({ operation, attempts: [], resolution: null }));
    expect(card).toContain(note);
    expect(card).not.toContain(absent);
  });

  test("one verb that needs nobody else speaks of none", () => {
    const operation = operationOf({
      status: "QUARANTINED",
      quarantineReason:
        "evidence_contradicts: Counted as rejected, but the provider lists re_1 as succeeded.",
    });
    const card = said(quarantineCard({ operation, attempts: [], resolution: null }));
    expect(card).not.toMatch(/Reject|second person/u);
  });

  test("pending for too long: it says what to do, and whom to ask when", () => {
    const card = said(
      quarantineCard({
        operation: operationOf({
          status: "QUARANTINED",
          quarantineReason: "pending_too_long: re_1: processing",
        }),
        attempts: [],
        resolution: null,
      }),
    );
    expect(card).toContain(
      "*What to do:* Wait: when the provider tells that it succeeded or failed, this ends by itself.",
    );
    expect(card).toContain("Ask the provider's support with the reference");
    expect(card).not.toContain("nothing yet");
    expect(card).not.toContain("Each button");
  });
});

describe("an incident card", () => {
  test.each(["refunded_elsewhere", "overdrawn"] as const)(
    "%s: beside an open operation of the same amount it names that one, and to decide it first",
    (kind) => {
      const facts = {
        id: "inc_1",
        kind,
        status: "open",
        operation: null,
        customer: null,
        detail: [],
        createdAt: new Date("2026-11-30T03:00:00Z"),
        closedBy: null,
        closedAt: null,
        closeReason: null,
      } as const;
      const operation = operationOf({ status: "QUARANTINED" });
      const card = said(incidentCard({ ...facts, undecided: [operation] }));
      expect(card).toContain("*What to do:* Decide first: ");
      expect(card).toContain(operation.id);
      expect(card).toContain("*Confirm committed* with its reference");
      expect(card).not.toContain("What to do:* Nothing");
      expect(said(incidentCard({ ...facts, undecided: [] }))).not.toContain("Decide first");
    },
  );

  test("says whose order it is", () => {
    const card = incidentCard({
      id: "inc_1",
      kind: "overdrawn",
      status: "open",
      operation: null,
      customer: { name: "Tom Whitfield", ref: "CUS-7" },
      detail: [],
      createdAt: new Date(0),
      closedBy: null,
      closedAt: null,
      closeReason: null,
      undecided: [],
    });
    expect(said(card)).toContain("Tom Whitfield (CUS-7)");
  });

  test("of a refund elsewhere shows what happened and what is left, not how the balance is made up", () => {
    const balance = {
      captured: 18_000,
      reserved: 3_000,
      refunded: 1_000,
      refundedElsewhere: 7_000,
      before: 2_000,
    };
    expect(incidentDetail("refunded_elsewhere", { ...balance, effects: ["re_1"] }, "GBP")).toEqual([
      ["Refunded elsewhere", "£50.00 GBP"],
      ["Left to refund then", "£70.00 GBP"],
      ["Provider shows", "re_1"],
    ]);
    expect(incidentDetail("overdrawn", { ...balance, captured: 9_000 }, "GBP")).toContainEqual([
      "Too much by",
      "£20.00 GBP",
    ]);
  });

  test.each([
    ["QUARANTINED", "Decide it anew on its own card", "with on-call"],
    ["CONFIRMED", "has been settled since", "done"],
    ["REJECTED", "has been settled since", "refused by the provider"],
  ] as const)(
    "of contradicting evidence says how the operation stands now: %s",
    (status, meaning, stands) => {
      const facts = {
        id: "inc_1",
        kind: "contradiction",
        operation: operationOf({ status }),
        customer: null,
        detail: incidentDetail("contradiction", { was: "REJECTED" }, null),
        createdAt: new Date(0),
        closedAt: null,
        closeReason: null,
        undecided: [],
      } as const;
      const card = said(incidentCard({ ...facts, status: "open", closedBy: null }));
      for (const words of [meaning, stands, "State now"]) expect(card).toContain(words);
      if (status !== "QUARANTINED") expect(card).not.toContain("Decide it anew");
      expect(said(incidentCard({ ...facts, status: "closed", closedBy: "system:reconcile" }))).toContain(
        "Closed by Countersign itself",
      );
    },
  );

  test("of more than was paid says what of it rests on a word, what is left now, and when it is over", () => {
    const facts = {
      id: "inc_1",
      kind: "overdrawn",
      status: "open",
      operation: null,
      customer: null,
      detail: [],
      createdAt: new Date(0),
      closedBy: null,
      closedAt: null,
      closeReason: null,
      undecided: [],
    } as const;
    const one = operationOf({ status: "CONFIRMED" });
    const open = said(
      incidentCard({
        ...facts,
        vouched: [one],
        leftNow: { amountMinor: -7_000n, currency: "GBP", at: new Date("2026-11-30T03:00:00Z") },
      }),
    );
    expect(open).toContain(
      `nothing: £70.00 GBP more than was paid is refunded or set aside, as of ${localTime(new Date("2026-11-30T03:00:00Z"))}`,
    );
    expect(open).toContain(
      `(\`${one.id}\`) rests on a person's word alone. Open the payment at the provider`,
    );
    expect(open).not.toContain("*What to do:* Tell finance");
    expect(open).not.toMatch(/[-−]£|minus/u);
    const over = said(
      incidentCard({
        ...facts,
        vouched: [],
        leftNow: { amountMinor: 3_000n, currency: "GBP", at: new Date("2026-11-30T03:00:00Z") },
      }),
    );
    expect(over).toContain("It no longer is.");
    expect(over).toContain("£30.00 GBP");
    expect(over).not.toContain("Tell finance");
    expect(said(incidentCard({ ...facts, vouched: [] }))).toContain("*What to do:* Tell finance");
  });

  test("names states as people do", () => {
    expect(incidentDetail("contradiction", { was: "CONFIRMED", detail: "x" }, null)).toContainEqual([
      "It was",
      "confirmed",
    ]);
  });

  test.each(INCIDENT_KINDS)("%s: says what to do while it is open", (kind) => {
    const facts = { id: "inc_1", kind, operation: null, customer: null, detail: [], createdAt: new Date(0) };
    const nobody = { closedBy: null, closedAt: null, closeReason: null, undecided: [] };
    expect(said(incidentCard({ ...facts, ...nobody, status: "open" }))).toMatch(/\*What to do:\* [A-Z]/);
    expect(said(incidentCard({ ...facts, ...nobody, status: "closed" }))).not.toContain("What to do");
  });

  test("of a freeze that was lifted in the database speaks of the freeze, not of an operation", () => {
    const facts = {
      id: "inc_1",
      kind: "row_changed",
      status: "open",
      customer: null,
      createdAt: new Date(0),
      closedBy: null,
      closedAt: null,
      closeReason: null,
      undecided: [],
    } as const;
    const detail = incidentDetail("row_changed", { kind: "refund", problems: ["lifted"] }, null);
    const text = said(incidentCard({ ...facts, operation: null, detail }));
    expect(text).toContain("A freeze switch was changed in the database, and not by anybody on call.");
    expect(text).not.toContain("An operation's row");
    expect(detail).toContainEqual(["Frozen", "refund operations"]);
    const policy = incidentDetail("row_changed", { policy: "abc", problems: ["unknown"] }, null);
    const ofPolicy = said(incidentCard({ ...facts, operation: null, detail: policy }));
    expect(ofPolicy).toContain("What is decided under it is not sent here.");
    expect(ofPolicy).not.toContain("freeze switch");
    expect(said(incidentCard({ ...facts, operation: operationOf(), detail: [] }))).toContain(
      "An operation's row",
    );
  });

  test.each([
    ["QUARANTINED", "One person on call presses *Reject* on the operation's card, another presses *Agree*"],
    ["REJECTED", "has been closed as not carried out"],
    ["CONFIRMED", "has been settled since"],
    ["REVERSED", "has been settled since"],
  ] as const)("of what was made differently says what is left to do: %s", (status, words) => {
    const facts = { id: "inc_1", kind: "made_differently", status: "open", customer: null } as const;
    const nobody = { closedBy: null, closedAt: null, closeReason: null, undecided: [], detail: [] };
    const text = said(
      incidentCard({ ...facts, ...nobody, operation: operationOf({ status }), createdAt: new Date(0) }),
    );
    expect(text).toContain(words);
    expect(text).not.toContain("Two people press");
    if (status !== "QUARANTINED") expect(text).not.toMatch(/presses \*Reject/);
  });

  test("of an automatic freeze follows the switch", () => {
    const facts = { id: "inc_1", kind: "freeze_tripped", operation: null, customer: null } as const;
    const nobody = { closedBy: null, closedAt: null, closeReason: null, undecided: [], detail: [] };
    const open = { ...facts, ...nobody, status: "open", createdAt: new Date(0) } as const;
    expect(said(incidentCard(open))).toContain("new effects are frozen until a person thaws them");
    expect(said(incidentCard(open))).toContain("One person on call is enough for that thaw");
    const thawed = said(
      incidentCard({ ...open, thawed: { by: "slack:U_ONC1", at: new Date("2026-11-30T03:00:00Z") } }),
    );
    expect(thawed).toMatch(/Thawed.*<@U_ONC1>.*03:00 UTC/u);
    expect(thawed).not.toMatch(/until a person thaws|\/ops thaw/u);
  });

  test("names the switch that tripped as people do", () => {
    expect(incidentDetail("freeze_tripped", { kind: "all", reason: "x" }, null)).toContainEqual([
      "Frozen",
      "everything",
    ]);
    expect(incidentDetail("freeze_tripped", { kind: "cancel_order" }, null)).toEqual([
      ["Frozen", "cancel order operations"],
    ]);
  });
});
