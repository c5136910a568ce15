import { describe, expect, it } from "vitest";
import type { EffectContract } from "../../src/domain/contract.js";
import { contractBook } from "../../src/domain/contracts.js";
import { OPERATION_STATUSES, type Operation, type OperationStatus } from "../../src/domain/operation.js";
import type { AttemptFact } from "../../src/domain/recovery.js";
import { type Explained, nextLookOf, recoverySentences, verbViews } from "../../src/ops/explain.js";
import { tablePolicy } from "../approvals/decision-situations.js";

const NOW = new Date("2026-11-20T12:00:00Z");
const HOUR = 3_600_000;
const BOOK = contractBook({ keyTtlMs: 24 * HOUR });
const ago = (ms: number): Date => new Date(NOW.getTime() - ms);

const OPERATION: Operation = {
  id: "op_00000000000000000000000000000001",
  key: "refund:CUS-7:ORD-1:18000:GBP#1",
  kind: "refund",
  status: "OUTCOME_UNKNOWN",
  version: 3n,
  customerRef: "CUS-7",
  orderRef: "ORD-1",
  subscriptionRef: null,
  amountMinor: 18_000n,
  currency: "GBP",
  atPeriodEnd: null,
  occurrence: 1,
  fingerprint: "f",
  contractVersion: "stripe-refund/1",
  idempotencyKey: "k",
  paymentIntent: "pi_1",
  providerSubscription: null,
  itemRefs: [],
  refundScope: "amount",
  reason: "",
  policyHash: "p",
  approvalId: null,
  approvedBy: ["U_SUP1"],
  predecessorId: null,
  ownerRunId: null,
  ticketId: null,
  filers: ["U_AGENT"],
  providerRef: null,
  result: null,
  quarantineReason: null,
  attempts: 1,
  leaseToken: 1n,
  notBefore: null,
  firstClaimedAt: ago(HOUR),
  unknownSince: ago(60_000),
  resolvedByPerson: false,
  createdAt: ago(HOUR),
  updatedAt: ago(60_000),
};

const FROZEN = { kind: "refund", since: ago(HOUR), by: "U_ONC1", reason: "it answers oddly" } as const;
const OPEN: AttemptFact = { number: 1, verdict: "unknown", code: "timeout" };

function view(
  operation: Partial<Operation> = {},
  more: Partial<Omit<Explained, "operation">> = {},
): Explained {
  return {
    operation: { ...OPERATION, ...operation },
    contract: BOOK.refund,
    attempts: [OPEN],
    now: NOW,
    lastSendEndedAt: ago(60_000),
    nextLookAt: new Date(NOW.getTime() + 5_000),
    leaseUntil: null,
    frozen: null,
    timing: { providerTimeoutMs: 10_000, sendMarginMs: 2_000, quarantineAfterMs: HOUR },
    maxAttempts: 5,
    endedBefore: false,
    ...more,
  };
}

const told = (explained: Explained): string => recoverySentences(explained).join(" ");
const verb = (name: string, explained: Explained) =>
  verbViews(explained, tablePolicy()).find((each) => each.verb === name);

describe("what recovery the contract allows is said with its reason", () => {
  it("inside the key's life: sending again is safe, until when, and what each answer would bring", () => {
    const text = told(view());
    expect(text).toContain("Until 21 Nov 2026, 11:00:00 UTC the provider does a repeated key at most once");
    expect(text).toContain("If the provider shows nothing, it is sent again under the same key.");
    expect(text).toContain("looked at again by itself at 20 Nov 2026, 12:00:05 UTC");
    expect(text).toContain("no time after which a request that was sent can no longer take effect");
  });

  describe("accepted by the provider and pending there", () => {
    const accepted: AttemptFact = { number: 1, verdict: "pending", code: null };
    const asked = {
      says: "pending",
      reason: "processing",
      effect: {
        ref: "re_1",
        kind: "refund",
        target: "pi_1",
        amountMinor: 18_000n,
        currency: "GBP",
        status: "pending",
        pendingReason: "processing",
        failureReason: null,
        operationId: OPERATION.id,
        createdAt: ago(60_000),
      },
    } as const;

    it.each([
      ["as its answer said, nobody asked since", view({}, { attempts: [accepted] }), null],
      [
        "as its answer said, the provider is away",
        view({}, { attempts: [accepted] }),
        { says: "unknown", reason: "timeout" },
      ],
      ["as the list shows now, after an answer that was lost", view(), asked],
    ] as const)("%s: waits for its end there, and nothing is sent", (_how, explained, evidence) => {
      const text = recoverySentences(explained, { asked: evidence, verbs: [] }).join(" ");
      expect(text).not.toContain("If the provider shows nothing, it is sent again");
      expect(text).not.toContain("If the provider cannot be asked");
      expect(text).toContain("pending there: nothing is sent as long as that holds.");
      expect(text).toContain(
        "If it ends there as asked for, it is confirmed. If it fails there, it ends as rejected",
      );
      expect(text).toContain("As long as it is pending, it is looked at again later.");
      expect(text).toContain("makes nothing new");
    });

    it("open for longer than a machine waits: goes to a person, whatever its key allows", () => {
      const late = view({ unknownSince: ago(2 * HOUR) }, { attempts: [accepted] });
      expect(recoverySentences(late, { asked, verbs: [] })).toContain(
        "As long as it is pending, it goes to a person.",
      );
    });

    it("past its key's life: it is not sent again in any case", () => {
      const late = view({ firstClaimedAt: ago(25 * HOUR) }, { attempts: [accepted] });
      expect(told(late)).toContain("If the provider does not show it any more, it is looked at again later.");
      expect(told(late)).not.toContain("sent again under the same key");
    });

    it("not shown there any more: what happens is said as for any other", () => {
      const gone = recoverySentences(view({}, { attempts: [accepted] }), {
        asked: { says: "absent" },
        verbs: [],
      });
      expect(gone.join(" ")).toContain("If the provider shows nothing, it is sent again under the same key.");
    });
  });

  it("past the key's life: never sent again by itself, and that it goes to a person", () => {
    const text = told(view({ firstClaimedAt: ago(25 * HOUR), unknownSince: ago(2 * HOUR) }));
    expect(text).toContain("The life of its key ended");
    expect(text).toContain("If the provider shows nothing, it goes to a person.");
  });

  it("a strong list and a bound that has passed: nothing shown means nothing happened", () => {
    const contract: EffectContract = {
      ...BOOK.refund,
      keyed: false,
      keyTtlMs: null,
      readback: { kind: "strong" },
      inflightBoundMs: 30_000,
    };
    const text = told(view({}, { contract }));
    expect(text).toContain("sending again could do it twice");
    expect(text).toContain("nothing that was sent can take effect any more");
    expect(text).toContain("If the provider shows nothing, it is sent again");
    expect(told(view({}, { contract: { ...contract, inflightBoundMs: 120_000 } }))).toContain(
      "may still take effect until",
    );
  });

  it("what can be called back at the provider is said to the person who may do it, and only where the contract has it", () => {
    const contract: EffectContract = { ...BOOK.refund, cancellable: true };
    expect(told(view({ status: "QUARANTINED" }, { contract }))).toContain(
      "can be called back at the provider",
    );
    expect(told(view({ status: "QUARANTINED" }))).not.toContain("called back");
  });

  it("what its worker lost is not told as under way", () => {
    const lost = told(view({ status: "DISPATCHED" }, { leaseUntil: ago(1_000) }));
    expect(lost).not.toContain("is under way");
    expect(lost).toContain("its worker has not been heard of since");
    expect(told(view({ status: "DISPATCHED" }, { leaseUntil: new Date(NOW.getTime() + 1) }))).toContain(
      "Attempt 1 is under way until 20 Nov 2026, 12:00:00 UTC at the latest.",
    );
  });

  it("every state has its sentences, and none speaks of what it does not know", () => {
    for (const status of OPERATION_STATUSES) {
      const sentences = recoverySentences(view({ status, quarantineReason: "unknown_too_long" }));
      expect(sentences.length, status).toBeGreaterThan(0);
      for (const sentence of sentences) expect(sentence, status).toMatch(/^[A-Z“].*\.$/);
      expect(sentences.join(" "), status).not.toMatch(/null|undefined|NaN/);
    }
  });

  it("a frozen kind is said", () => {
    expect(told(view({ status: "PREPARED" }, { frozen: FROZEN }))).toContain(
      "It is not sent as long as this holds: Refunds are frozen since 20 Nov 2026, 11:00 UTC: it answers oddly. It goes on by itself when that is thawed.",
    );
  });

  it("under a freeze nothing is promised to be sent again, and looking goes on", () => {
    const text = told(view({}, { frozen: FROZEN }));
    expect(text).toContain("sent again under the same key, but not before its kind is thawed.");
    expect(text).toContain("It is looked at again by itself at 20 Nov 2026, 12:00:05 UTC.");
  });

  it("only what a machine will look at has a next look; one that is overdue says that nobody took it", () => {
    for (const status of OPERATION_STATUSES) {
      expect(nextLookOf(view({ status })) !== null, status).toBe(status === "OUTCOME_UNKNOWN");
      if (status !== "OUTCOME_UNKNOWN")
        expect(told(view({ status })), status).not.toContain("looked at again by itself at");
    }
    const late = told(view({}, { nextLookAt: ago(61_000) }));
    expect(late).toContain(
      "should have been looked at again by itself at 20 Nov 2026, 11:58:59 UTC, and nobody has",
    );
    expect(late).toContain("/ops health");
  });
});

describe("what a person may do now", () => {
  it.each<[OperationStatus, number]>([
    ["AWAITING_APPROVAL", 0],
    ["PREPARED", 0],
    ["DISPATCHED", 0],
    ["OUTCOME_UNKNOWN", 3],
    ["RECONCILING", 3],
    ["QUARANTINED", 3],
    ["CONFIRMED", 0],
    ["REJECTED", 0],
    ["DENIED", 0],
    ["EXPIRED", 0],
    ["VOIDED", 0],
    ["REVERSED", 0],
  ])("%s: %i verbs", (status, count) => {
    expect(verbViews(view({ status }), tablePolicy())).toHaveLength(count);
  });

  it("while an attempt may still commit and the provider names no bound: only confirm, until it is quarantined", () => {
    expect(verb("confirm", view())).toMatchObject({ possible: true, people: 1 });
    expect(verb("reject", view())).toMatchObject({ possible: false });
    expect(verb("retry", view())).toMatchObject({ possible: false });
    const parked = view({ status: "QUARANTINED" });
    expect(verb("reject", parked)).toMatchObject({ possible: true, people: 2 });
    expect(verb("retry", parked)).toMatchObject({ possible: true, people: 2 });
  });

  it.each(["postcondition_failed: re_1 differs in amount", "duplicate_effect: re_1, re_2"])(
    "nobody reads that sending again is safe where the provider showed an effect: %s",
    (quarantineReason) => {
      const said = recoverySentences(view({ status: "QUARANTINED", quarantineReason })).join(" ");
      expect(said).not.toMatch(/sending again is safe/iu);
      expect(said).toContain("Only a person, or new evidence from the provider, moves it.");
    },
  );

  it.each([
    ["postcondition_failed: re_1 differs in amount", { confirm: 0, reject: 2, retry: 0 }],
    ["duplicate_effect: re_1, re_2", { confirm: 2, reject: 0, retry: 0 }],
    ["pending_too_long: re_1: processing", { confirm: 0, reject: 0, retry: 0 }],
    ["unattributed_effect: re_9", { confirm: 1, reject: 2, retry: 0 }],
    ["evidence_contradicts: Counted as rejected, but re_1 is there.", { confirm: 1, reject: 0, retry: 0 }],
    ["unknown_too_long: http_500", { confirm: 1, reject: 2, retry: 2 }],
  ])("what the provider showed stands in the way: %s", (quarantineReason, people) => {
    const parked = view({ status: "QUARANTINED", quarantineReason });
    for (const [name, needed] of Object.entries(people)) {
      const shown = verb(name, parked);
      expect(shown?.possible === true ? shown.people : 0, `${name}: ${shown?.sentence}`).toBe(needed);
    }
  });

  it("above the policy's line every verb takes two", () => {
    const large = view({ status: "QUARANTINED", amountMinor: 20_001n });
    for (const name of ["confirm", "reject", "retry"]) expect(verb(name, large)).toMatchObject({ people: 2 });
  });

  it("every attempt proven not executed: one person may reject", () => {
    const proven = view(
      { status: "QUARANTINED" },
      { attempts: [{ number: 1, verdict: "rejected", code: "x" }] },
    );
    expect(verb("reject", proven)).toMatchObject({ possible: true, people: 1 });
  });

  it("a bound that has not passed: not yet, for nobody", () => {
    const contract: EffectContract = { ...BOOK.refund, inflightBoundMs: HOUR };
    const parked = view({ status: "QUARANTINED" }, { contract });
    expect(verb("reject", parked)).toMatchObject({ possible: false });
  });

  it("a key past its life is never sent again, whoever asks", () => {
    const late = view({ status: "QUARANTINED", firstClaimedAt: ago(25 * HOUR) });
    expect(verb("retry", late)).toMatchObject({
      possible: false,
      sentence: expect.stringContaining("life of its key is over"),
    });
    expect(verb("reject", late)).toMatchObject({ possible: true });
  });

  it.each(["OUTCOME_UNKNOWN", "RECONCILING", "QUARANTINED"] as const)(
    "%s, a key past its life: which of the two ends it is, is told with its condition and never as a promise",
    (status) => {
      const sentence = verb("retry", view({ status, firstClaimedAt: ago(25 * HOUR) }))?.sentence ?? "";
      expect(sentence).toContain("if it shows it, Confirm committed");
      expect(sentence).toContain("if it shows nothing and nothing can arrive any more, Reject");
      expect(sentence).not.toMatch(/ask for it anew|becomes possible/u);
    },
  );

  it("whatever is told: no advice to reject an operation whose effect nobody has read", () => {
    for (const status of OPERATION_STATUSES)
      for (const firstClaimedAt of [ago(HOUR), ago(25 * HOUR), null])
        for (const quarantineReason of [null, "unknown_too_long: http_500", "pending_too_long: re_1"])
          for (const frozen of [null, FROZEN]) {
            const explained = view({ status, firstClaimedAt, quarantineReason }, { frozen });
            const all = [
              ...recoverySentences(explained),
              ...verbViews(explained, tablePolicy()).map(({ sentence }) => sentence),
            ].join(" ");
            expect(all).not.toMatch(/(?:^|[.:] )Reject it|ask for it anew/u);
          }
  });

  it("pending for too long: no verb is possible, and each form asks the provider again", () => {
    const parked = view({ status: "QUARANTINED", quarantineReason: "pending_too_long" });
    for (const each of ["confirm", "reject", "retry"] as const) {
      expect(verb(each, parked)).toMatchObject({ possible: false });
      expect(verb(each, parked)).not.toHaveProperty("never");
    }
  });

  it("made differently: what is not possible names what is", () => {
    const parked = view({ status: "QUARANTINED", quarantineReason: "postcondition_failed" });
    for (const other of ["confirm", "retry"] as const) {
      expect(verb(other, parked)).toMatchObject({
        possible: false,
        never: true,
        sentence: expect.stringMatching(/^Not possible: .* Reject it, with a second person\.$/),
      });
    }
  });

  it("nothing is sent again while its kind is frozen", () => {
    expect(verb("retry", view({ status: "QUARANTINED" }, { frozen: FROZEN }))).toMatchObject({
      possible: false,
    });
  });
});
