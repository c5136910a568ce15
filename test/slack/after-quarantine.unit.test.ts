/** What was parked and then decided: its cards and posts say nothing that stops being true while the operation goes on. */
import { describe, expect, test } from "vitest";
import type { OperationStatus } from "../../src/domain/operation.js";
import type { FreezeState, VerbView } from "../../src/ops/index.js";
import { probeView } from "../../src/ops/resolution-view.js";
import { approvalCard } from "../../src/slack/cards/approval-card.js";
import { reopenForm, resolveForm } from "../../src/slack/cards/forms.js";
import {
  quarantineCard,
  type ResolutionFacts,
  resolutionCard,
  thawCard,
} from "../../src/slack/cards/ops-cards.js";
import { opsPost, outcomePost } from "../../src/slack/cards/posts.js";
import { outcomeOf, resultOf, standingOf } from "../../src/slack/cards/sentences.js";
import { resolutionOf, said } from "./support/resolutions.js";
import { approvalViewOf, operationOf, TOM_REFUND } from "./support/views.js";

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
    expect(card).toContain("Before this: *Rejected* by <@U_ONC1>, agreed by <@U_ONC2>");
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
