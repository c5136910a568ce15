/** An operation's story as people read it: what happened, who did it, on what evidence. */
import { describe, expect, it } from "vitest";
import { OPERATION_EVENTS } from "../../src/domain/operation.js";
import { foundSentence, lastLook, timelineEntry } from "../../src/ops/timeline.js";
import type { EventView } from "../../src/ops/types.js";

const AT = new Date("2026-11-29T14:05:09.120Z");
const event = (changes: Partial<EventView>): EventView => ({
  seq: 1,
  at: AT,
  type: "claim",
  from: "PREPARED",
  to: "DISPATCHED",
  actor: "system:dispatch",
  attempt: null,
  evidence: {},
  ...changes,
});
const effect = {
  ref: "re_1",
  kind: "refund",
  target: "pi_1",
  amountMinor: 18_000,
  currency: "GBP",
  status: "succeeded",
};

describe("a line of the timeline", () => {
  it("names the proposal, its amount with currency, and the rules that held it", () => {
    const told = timelineEntry(
      event({
        type: "hold",
        from: null,
        to: "AWAITING_APPROVAL",
        actor: "run:run_1",
        evidence: {
          order: "ORD-1",
          amount: 18_000,
          currency: "GBP",
          rules: [{ rule: "auto", verdict: "hold", sentence: "It is above what goes by itself." }],
        },
      }),
    );
    expect(told).toMatchObject({
      what: "Asked for: £180.00 GBP on ORD-1; the policy holds it for an approval.",
      by: { part: "the agent, run_1" },
      evidence: ["It is above what goes by itself."],
    });
  });

  it("names who approved, in which role and when", () => {
    const told = timelineEntry(
      event({
        type: "release",
        actor: "system:approvals",
        evidence: {
          votes: [
            { person: "slack:U_SUP1", verdict: "approve", role: "finance", at: "2026-11-29T14:05:00.000Z" },
            { person: "erased", verdict: "approve", role: "finance", at: "2026-11-29T14:05:01.000Z" },
          ],
        },
      }),
    );
    expect(told.votes).toEqual([
      {
        person: { person: "U_SUP1" },
        verdict: "approved",
        role: "finance",
        at: new Date("2026-11-29T14:05:00.000Z"),
      },
      {
        person: { part: "a person whose name was erased" },
        verdict: "approved",
        role: "finance",
        at: new Date("2026-11-29T14:05:01.000Z"),
      },
    ]);
  });

  it("says that an answer was lost, and what a worker's end means", () => {
    const lost = event({
      type: "settle_unknown",
      attempt: 1,
      evidence: { evidence: { verdict: "unknown", code: "connection_lost", detail: "It broke." } },
    });
    expect(timelineEntry(lost)).toMatchObject({
      what: "Attempt 1 had no answer that proves anything: the outcome is unknown.",
      evidence: ["No usable answer. It broke."],
    });
    const dead = event({ type: "settle_unknown", attempt: 2, evidence: { code: "lease_expired" } });
    expect(timelineEntry(dead).what).toBe("The worker of attempt 2 was lost: the outcome is unknown.");
  });

  it.each([
    [
      { verdict: "rejected", code: "charge_disputed", detail: "The customer has disputed it." },
      "The provider refused it. The customer has disputed it (charge_disputed).",
    ],
    [{ verdict: "unknown", code: "body_stalled" }, "No usable answer. Body stalled."],
    [
      {
        verdict: "not_executed",
        code: "send_refused",
        detail: "Not sent: its kind was frozen meanwhile (frozen).",
      },
      "It was not carried out. Not sent: its kind was frozen meanwhile (frozen).",
    ],
    [
      { says: "pending", effect: { ref: "re_1", status: "requires_action" } },
      "The provider has it pending: re_1 (requires action).",
    ],
  ])("tells an answer in words, with the provider's own code at most in brackets: %j", (stored, sentence) => {
    expect(foundSentence(stored)).toBe(sentence);
  });

  it.each(["frozen", "key_expired", "not_yet", "guard"])(
    "says in words why nothing was sent again: %s",
    (why) => {
      const told = timelineEntry(event({ type: "settle_unknown", evidence: { move: { do: "later", why } } }));
      expect(told.evidence.join(" ")).toMatch(/^It is not sent again[a-z, ]+\.$/u);
    },
  );

  it.each([
    ["rejected", "Attempt 2 was not carried out, but an earlier one may have been: the outcome is unknown."],
    ["postcondition_failed", "Attempt 2 did something else than was asked for: it is not counted as done."],
    ["pending", "Attempt 2 was accepted and its end is awaited: the outcome is unknown."],
  ])("does not say that there was no answer when it was: %s", (verdict, what) => {
    const told = event({ type: "settle_unknown", attempt: 2, evidence: { evidence: { verdict } } });
    expect(timelineEntry(told).what).toBe(what);
  });

  it("does not say of what was made differently that nothing happened", () => {
    const probe = { says: "committed", postcondition: "fails", differs: ["amount"] };
    const told = event({
      type: "settle_rejected",
      actor: "slack:U_ONC1",
      evidence: { verb: "reject", reason: "r", evidence: { reference: "case 8", probe } },
    });
    expect(timelineEntry(told).what).toMatch(/^Rejected by a person: it was not made as asked for;/);
  });

  it("says of a confirmation whether the provider showed it, and nothing twice", () => {
    const by = (says: string) =>
      timelineEntry(
        event({
          type: "settle_confirmed",
          actor: "slack:U_ONC1",
          evidence: { verb: "confirm", reason: "r", evidence: { reference: "re_1", probe: { says } } },
        }),
      ).what;
    for (const says of ["absent", "unknown"])
      expect(by(says)).toBe("Confirmed on a person's word: the provider did not show it.");
    expect(by("committed")).toBe("Confirmed by a person.");
    const reason = "timeout: The provider did not answer in time.";
    const parked = timelineEntry(
      event({
        type: "quarantine",
        evidence: {
          evidence: { says: "unknown", reason },
          move: { do: "quarantine", reason: "unknown_too_long", detail: reason },
        },
      }),
    );
    expect(parked.evidence).toEqual([
      "The provider could not be asked: it did not answer in time.",
      "The outcome is still unknown after the time set for that.",
    ]);
  });

  it("names the part that did it by what it did there", () => {
    const by = (type: EventView["type"], actor: string) => timelineEntry(event({ type, actor })).by;
    expect(by("release", "system:approvals")).toEqual({ part: "Countersign, when the votes were complete" });
    expect(by("expire", "system:approvals")).toEqual({ part: "Countersign" });
    expect(by("void", "system:dispatch")).toEqual({ part: "the worker that was to send it" });
  });

  it("begins the reconciler's reason as a sentence, and puts one stop behind it", () => {
    const told = timelineEntry(
      event({
        type: "quarantine",
        evidence: {
          evidence: { says: "unknown", reason: "http_500: The provider answered with HTTP 500." },
          move: { do: "quarantine", reason: "proof_incomplete", detail: "the last attempt was refused" },
        },
      }),
    );
    expect(told.evidence).toEqual([
      "The provider could not be asked: it answered with HTTP 500.",
      "It could not be proven for every attempt that nothing happened. The last attempt was refused.",
    ]);
  });

  it("tells sending again with the reading that made it safe", () => {
    const told = timelineEntry(
      event({
        type: "resend",
        attempt: 2,
        evidence: { worker: "w:1", evidence: { says: "unknown", reason: "http_500" } },
      }),
    );
    expect(told).toMatchObject({
      what: "Attempt 2 began: sent again under the same key.",
      by: { part: "worker w:1" },
      evidence: ["The provider could not be asked: it answered with HTTP 500."],
    });
  });

  it("tells a person's decision with reason, evidence, what the provider said, and the second person", () => {
    const told = timelineEntry(
      event({
        type: "settle_rejected",
        from: "QUARANTINED",
        to: "REJECTED",
        actor: "slack:U_ONC1",
        evidence: {
          verb: "reject",
          reason: "not in the dashboard",
          second: "slack:U_ONC2",
          evidence: { reference: "screenshot 7", probe: { says: "absent" } },
        },
      }),
    );
    expect(told).toMatchObject({
      what: "Rejected by a person: it did not happen; the money is free again.",
      by: { person: "U_ONC1" },
      second: { person: "U_ONC2" },
      evidence: [
        "The provider shows nothing of it.",
        "Evidence: screenshot 7",
        "Reason: not in the dashboard",
      ],
    });
  });

  it("has words of its own for every event that the ledger writes", () => {
    const notes = ["join", "handover", "late_answer", "lease_taken_over", "authorise", "approval_voided"];
    for (const type of ["prepare", "hold", ...OPERATION_EVENTS, ...notes]) {
      const { what } = timelineEntry(event({ type, attempt: 1 }));
      expect(what, type).not.toBe(type.replaceAll("_", " "));
      expect(what, type).toMatch(/[a-z]{3}.*\.$/);
    }
  });

  it("tells what it can of data that it does not know", () => {
    for (const evidence of [null, "text", [], { evidence: 7, votes: "x", rules: [{}], move: [] }]) {
      expect(timelineEntry(event({ evidence })).what).toBe("It began: it is sent.");
    }
  });
});

describe("what the provider showed", () => {
  it("has its amount, and names a difference", () => {
    expect(foundSentence({ says: "committed", effect })).toBe(
      "The provider shows re_1 of £180.00 GBP (succeeded).",
    );
    expect(foundSentence({ says: "committed", postcondition: "fails", differs: ["amount"], effect })).toBe(
      "The provider shows re_1 of £180.00 GBP (succeeded), which differs from what was asked for in amount.",
    );
    expect(foundSentence({ nothing: "of this" })).toBeNull();
  });

  it("is told from the newest event that rests on it", () => {
    const later = new Date(AT.getTime() + 1);
    const events = [
      event({ type: "resend", evidence: { evidence: { says: "unknown", reason: "http_500" } } }),
      event({ type: "settle_unknown", at: later, evidence: { evidence: { says: "absent" } } }),
      event({ type: "claim", evidence: { worker: "w" } }),
      event({ type: "settle_unknown", evidence: { evidence: { verdict: "unknown", code: "x" } } }),
    ];
    expect(lastLook(events)).toEqual({ at: later, sentence: "The provider shows nothing of it.", shows: [] });
    expect(lastLook(events.slice(2))).toBeNull();
  });
});
