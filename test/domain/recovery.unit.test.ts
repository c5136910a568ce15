import { describe, expect, it } from "vitest";
import type { EffectContract } from "../../src/domain/contract.js";
import { contractBook } from "../../src/domain/contracts.js";
import type { Evidence, ProviderEffect } from "../../src/domain/evidence.js";
import {
  type AttemptFact,
  absenceIsTerminal,
  keyIsSafe,
  type RecoveryInput,
  recover,
} from "../../src/domain/recovery.js";

const NOW = new Date("2026-11-29T12:00:00Z");
const ago = (ms: number): Date => new Date(NOW.getTime() - ms);
const MINUTE = 60_000;
const HOUR = 60 * MINUTE;

const effect: ProviderEffect = {
  ref: "re_1",
  kind: "refund",
  target: "pi_1",
  amountMinor: 2000n,
  currency: "GBP",
  status: "succeeded",
  pendingReason: null,
  failureReason: null,
  operationId: "op_1",
  createdAt: NOW,
};

const EVIDENCE = {
  committed: { says: "committed", effect, postcondition: "holds" },
  mismatch: { says: "committed", effect, postcondition: "fails", differs: ["amount"] },
  absent: { says: "absent" },
  pending: { says: "pending", effect, reason: "insufficient_funds" },
  down: { says: "unknown", reason: "timeout" },
  stranger: { says: "unattributed", effects: [effect] },
  duplicate: { says: "duplicate", effects: [effect, { ...effect, ref: "re_2" }] },
  failed: { says: "failed_at_provider", effect, code: "lost_or_stolen_card" },
} as const satisfies Record<string, Evidence>;

const base = contractBook({ keyTtlMs: 24 * HOUR }).refund;
const contract = (part: Partial<EffectContract>): EffectContract => ({ ...base, ...part });

/** The three columns of DESIGN §5, each with the contracts that fall into it and how long ago the first claim was. */
const COLUMNS: Record<string, { contract: EffectContract; claimedAgoMs: number; column: 1 | 2 | 3 }> = {
  "key with a life, inside it": { contract: contract({}), claimedAgoMs: HOUR, column: 1 },
  "key for ever": { contract: contract({ keyTtlMs: null }), claimedAgoMs: 400 * HOUR, column: 1 },
  "key expired, strong read, bound passed": {
    contract: contract({ readback: { kind: "strong" }, inflightBoundMs: MINUTE }),
    claimedAgoMs: 25 * HOUR,
    column: 2,
  },
  "no key, strong read, bound passed": {
    contract: contract({
      keyed: false,
      keyTtlMs: null,
      readback: { kind: "strong" },
      inflightBoundMs: MINUTE,
    }),
    claimedAgoMs: HOUR,
    column: 2,
  },
  "key expired, no bound known": {
    contract: contract({ readback: { kind: "strong" } }),
    claimedAgoMs: 25 * HOUR,
    column: 3,
  },
  "key expired, eventual read": {
    contract: contract({ inflightBoundMs: MINUTE }),
    claimedAgoMs: 25 * HOUR,
    column: 3,
  },
  "no key, strong read, bound not passed": {
    contract: contract({
      keyed: false,
      keyTtlMs: null,
      readback: { kind: "strong" },
      inflightBoundMs: 2 * HOUR,
    }),
    claimedAgoMs: HOUR,
    column: 3,
  },
  "no key, no readback": {
    contract: contract({ keyed: false, keyTtlMs: null, readback: { kind: "none" } }),
    claimedAgoMs: HOUR,
    column: 3,
  },
};

const open: AttemptFact = { number: 1, verdict: "open", code: null };
const unanswered: AttemptFact = { number: 2, verdict: "unknown", code: "timeout" };

function input(part: Partial<RecoveryInput>): RecoveryInput {
  return {
    contract: base,
    evidence: EVIDENCE.absent,
    attempts: [open],
    now: NOW,
    firstClaimedAt: ago(HOUR),
    lastSendEndedAt: ago(HOUR),
    unknownSince: ago(MINUTE),
    quarantineAfterMs: HOUR,
    timeoutMs: 10_000,
    marginMs: 1_000,
    maxAttempts: 10,
    endedBefore: false,
    ...part,
  };
}

type Row = keyof typeof EVIDENCE;
/** By hand, from the table: what each row does in each column while there is time, and once time is up. */
const TABLE: Record<Row, Record<1 | 2 | 3, [early: string, late: string]>> = {
  committed: { 1: ["confirm", "confirm"], 2: ["confirm", "confirm"], 3: ["confirm", "confirm"] },
  mismatch: {
    1: ["quarantine", "quarantine"],
    2: ["quarantine", "quarantine"],
    3: ["quarantine", "quarantine"],
  },
  absent: {
    1: ["send_again", "quarantine"],
    2: ["not committed", "not committed"],
    3: ["later", "quarantine"],
  },
  pending: { 1: ["later", "quarantine"], 2: ["later", "quarantine"], 3: ["later", "quarantine"] },
  down: { 1: ["send_again", "quarantine"], 2: ["later", "quarantine"], 3: ["later", "quarantine"] },
  stranger: {
    1: ["quarantine", "quarantine"],
    2: ["quarantine", "quarantine"],
    3: ["quarantine", "quarantine"],
  },
  duplicate: {
    1: ["quarantine", "quarantine"],
    2: ["quarantine", "quarantine"],
    3: ["quarantine", "quarantine"],
  },
  failed: { 1: ["reject", "reject"], 2: ["reject", "reject"], 3: ["reject", "reject"] },
};

describe("recovery, cell by cell", () => {
  for (const [name, { contract: terms, claimedAgoMs, column }] of Object.entries(COLUMNS)) {
    for (const row of Object.keys(TABLE) as Row[]) {
      const [early, late] = TABLE[row][column];
      for (const [when, unknownSince, wanted] of [
        ["while there is time", ago(MINUTE), early],
        ["once time is up", ago(2 * HOUR), late],
      ] as const) {
        it(`${row} under "${name}", ${when}: ${wanted}`, () => {
          const move = recover(
            input({
              contract: terms,
              evidence: EVIDENCE[row],
              firstClaimedAt: ago(claimedAgoMs),
              unknownSince,
              attempts: terms.keyed ? [open, unanswered] : [open],
            }),
          );
          // Proven not committed: without a key it is sent again; a key past its life is never sent again.
          const expected =
            wanted === "not committed" ? (terms.keyed ? "prepare_again" : "send_again") : wanted;
          expect(move.do).toBe(expected);
        });
      }
    }
  }

  it("is the same whether or not what was sent can be called back: that is a person's to do", () => {
    for (const { contract: terms, claimedAgoMs } of Object.values(COLUMNS)) {
      for (const evidence of Object.values(EVIDENCE)) {
        for (const unknownSince of [ago(MINUTE), ago(2 * HOUR)]) {
          const cell = { evidence, firstClaimedAt: ago(claimedAgoMs), unknownSince };
          expect(recover(input({ ...cell, contract: { ...terms, cancellable: true } }))).toEqual(
            recover(input({ ...cell, contract: { ...terms, cancellable: false } })),
          );
        }
      }
    }
  });

  it("never sends when an effect on the payment cannot be attributed, whatever the contract", () => {
    for (const { contract: terms } of Object.values(COLUMNS)) {
      expect(recover(input({ contract: terms, evidence: EVIDENCE.stranger }))).toMatchObject({
        do: "quarantine",
        reason: "unattributed_effect",
      });
    }
  });

  it("stops sending again after the last allowed attempt, even under a safe key", () => {
    const attempts = Array.from({ length: 3 }, (_, i): AttemptFact => ({ ...open, number: i + 1 }));
    expect(recover(input({ attempts, maxAttempts: 3 }))).toMatchObject({ do: "quarantine" });
    expect(recover(input({ attempts, maxAttempts: 4 }))).toMatchObject({ do: "send_again" });
    const outage = attempts.map(
      (one, i): AttemptFact =>
        i === 0 ? one : { ...one, verdict: "not_executed", code: "connection_failed" },
    );
    expect(
      recover(input({ attempts: outage, maxAttempts: 2 })),
      "what never left tried nothing",
    ).toMatchObject({
      do: "send_again",
    });
  });

  it("does not send when the key would run out during the request", () => {
    const almost = ago(24 * HOUR - 10_500);
    expect(recover(input({ firstClaimedAt: almost })).do).toBe("later");
    expect(keyIsSafe(base, { now: NOW, firstClaimedAt: almost, timeoutMs: 9_000, marginMs: 1_000 })).toBe(
      true,
    );
  });

  it("takes an empty list for proof only where reading is strong and nothing sent can still commit", () => {
    const strong = contract({ readback: { kind: "strong" }, inflightBoundMs: MINUTE });
    expect(absenceIsTerminal(strong, { now: NOW, lastSendEndedAt: ago(MINUTE) })).toBe(true);
    expect(absenceIsTerminal(strong, { now: NOW, lastSendEndedAt: ago(MINUTE - 1) })).toBe(false);
    expect(absenceIsTerminal(strong, { now: NOW, lastSendEndedAt: null })).toBe(false);
    const eventual = contract({ readback: { kind: "eventual", lagMs: 1 }, inflightBoundMs: 0 });
    expect(absenceIsTerminal(eventual, { now: NOW, lastSendEndedAt: ago(HOUR) })).toBe(false);
  });
});

describe("verdicts of attempts in recovery", () => {
  it("goes back to prepared when every attempt is proven not executed, also while the probe is down", () => {
    const attempts: AttemptFact[] = [{ number: 1, verdict: "not_executed", code: "rate_limit" }];
    for (const evidence of [EVIDENCE.absent, EVIDENCE.down]) {
      expect(recover(input({ attempts, evidence })).do).toBe("prepare_again");
    }
  });

  it("what had ended is a person's where nothing is shown, and ends by what is", () => {
    const proven: AttemptFact = { number: 1, verdict: "not_executed", code: "rate_limit" };
    const refused: AttemptFact = { number: 1, verdict: "rejected", code: "charge_disputed" };
    const again = { endedBefore: true, unknownSince: ago(2 * HOUR) };
    const parked = { do: "quarantine", reason: "ended_before" };
    for (const attempt of [open, proven, refused]) {
      const attempts = [attempt];
      expect(recover(input({ attempts, endedBefore: true }))).toMatchObject(parked);
      expect(recover(input({ attempts, endedBefore: true, unknownSince: ago(1_000) })).do).toBe("later");
      expect(recover(input({ attempts, evidence: EVIDENCE.down, endedBefore: true })).do).toBe("later");
      expect(recover(input({ attempts, evidence: EVIDENCE.down, ...again }))).toMatchObject(parked);
    }
    expect(recover(input({ evidence: EVIDENCE.committed, endedBefore: true })).do).toBe("confirm");
    expect(recover(input({ evidence: EVIDENCE.failed, endedBefore: true })).do).toBe("reject");
  });

  it("rejects only when every attempt is proven, and names the refusal", () => {
    const refused: AttemptFact = { number: 2, verdict: "rejected", code: "charge_disputed" };
    const proven: AttemptFact = { number: 1, verdict: "not_executed", code: "connection_failed" };
    expect(recover(input({ attempts: [proven, refused] }))).toMatchObject({
      do: "reject",
      code: "charge_disputed",
    });
  });

  it("asks once more under the key when the last attempt was refused while an earlier one is open, then a person", () => {
    const refused: AttemptFact = { number: 2, verdict: "rejected", code: "charge_disputed" };
    const again: AttemptFact = { ...refused, number: 3 };
    expect(recover(input({ attempts: [open, refused] })).do).toBe("send_again");
    expect(recover(input({ attempts: [open, refused], maxAttempts: 2 })).do).toBe("later");
    expect(recover(input({ attempts: [open, refused, again] })).do).toBe("later");
    expect(recover(input({ attempts: [open, refused, again], unknownSince: ago(2 * HOUR) }))).toMatchObject({
      do: "quarantine",
      reason: "proof_incomplete",
    });
    const unkeyed = contract({ keyed: false, keyTtlMs: null });
    expect(recover(input({ contract: unkeyed, attempts: [open, refused] })).do).toBe("later");
  });

  it("rejects after a refusal while an earlier attempt is open only where nothing can come of that one", () => {
    const refused: AttemptFact = { number: 2, verdict: "rejected", code: "charge_disputed" };
    const strong = contract({ keyed: false, readback: { kind: "strong" }, inflightBoundMs: MINUTE });
    const attempts = [open, refused];
    expect(recover(input({ contract: strong, attempts }))).toMatchObject({
      do: "reject",
      code: "charge_disputed",
    });
    expect(recover(input({ contract: strong, attempts, lastSendEndedAt: ago(1_000) })).do).toBe("later");
    expect(recover(input({ contract: strong, attempts, evidence: EVIDENCE.down })).do).toBe("later");
  });

  it("tries what is safe once before it asks a person, however late the first look comes", () => {
    const late = { unknownSince: ago(5 * HOUR), firstClaimedAt: ago(6 * HOUR) };
    for (const evidence of [EVIDENCE.absent, EVIDENCE.down]) {
      expect(recover(input({ ...late, evidence, attempts: [open] })).do).toBe("send_again");
      expect(recover(input({ ...late, evidence, attempts: [open, unanswered] }))).toMatchObject({
        do: "quarantine",
        reason: "unknown_too_long",
      });
    }
  });

  it("waits for a lagging list when an answer already said committed, and never sends again", () => {
    const attempts: AttemptFact[] = [{ number: 1, verdict: "committed", code: null }];
    expect(recover(input({ attempts })).do).toBe("later");
    expect(recover(input({ attempts, unknownSince: ago(2 * HOUR) }))).toMatchObject({
      do: "quarantine",
      reason: "evidence_contradicts",
    });
  });

  it("sends nothing when the provider holds another request under the key: the probe decides, else a person", () => {
    const attempts: AttemptFact[] = [
      { number: 1, verdict: "unknown", code: "timeout" },
      { number: 2, verdict: "unknown", code: "idempotency_error" },
    ];
    expect(recover(input({ attempts, lastSendEndedAt: ago(1_000) })).do).toBe("later");
    expect(recover(input({ attempts, lastSendEndedAt: ago(2 * MINUTE) }))).toMatchObject({
      do: "quarantine",
      reason: "key_conflict",
    });
    expect(recover(input({ attempts, evidence: EVIDENCE.down })).do).toBe("later");
    expect(recover(input({ attempts, evidence: EVIDENCE.committed })).do).toBe("confirm");
  });

  it("takes a failed effect for the end of one attempt alone where attempts share no key", () => {
    const unkeyed = contract({ keyed: false, keyTtlMs: null });
    const two = [open, { ...open, number: 2 }];
    expect(recover(input({ contract: unkeyed, evidence: EVIDENCE.failed, attempts: two })).do).toBe("later");
    expect(
      recover(
        input({
          contract: unkeyed,
          evidence: EVIDENCE.failed,
          attempts: two,
          unknownSince: ago(2 * HOUR),
        }),
      ),
    ).toMatchObject({ do: "quarantine", reason: "proof_incomplete" });
    expect(recover(input({ contract: unkeyed, evidence: EVIDENCE.failed, attempts: [open] })).do).toBe(
      "reject",
    );
    const strong = contract({ keyed: false, readback: { kind: "strong" }, inflightBoundMs: MINUTE });
    expect(recover(input({ contract: strong, evidence: EVIDENCE.failed, attempts: two })).do).toBe("reject");
  });
});

describe("the contracts", () => {
  it("each cite where their promises are written, and promise no in-flight bound that nobody published", () => {
    const book = contractBook({ keyTtlMs: HOUR });
    for (const terms of Object.values(book)) expect(terms.sources.length).toBeGreaterThan(0);
    expect(book.refund).toMatchObject({ keyed: true, keyTtlMs: HOUR, inflightBoundMs: null });
    expect(book.cancel_subscription.inflightBoundMs).toBeNull();
    expect(book.cancel_order.local).toBe(true);
  });
});

describe("an answer that named an effect, and a list that shows nothing", () => {
  const named = (["pending", "postcondition_failed"] as const).map((verdict) => ({
    number: 1,
    verdict,
    code: null,
  }));
  const columns = Object.values(COLUMNS);
  const cases = named.flatMap((attempt) => columns.map((column) => ({ attempt, ...column })));

  it.each(cases)(
    "$attempt.verdict: is never sent again without a safe key, nor given up ($column)",
    (one) => {
      const at = { contract: one.contract, firstClaimedAt: ago(one.claimedAgoMs) };
      const { attempt } = one;
      for (const unknownSince of [ago(MINUTE), ago(2 * HOUR)]) {
        const move = recover(input({ ...at, attempts: [attempt], unknownSince }));
        const again = keyIsSafe(one.contract, { ...input(at) }) ? ["send_again"] : [];
        expect(["later", "quarantine", ...again]).toContain(move.do);
        const refused: AttemptFact = { number: 2, verdict: "rejected", code: "charge_already_refunded" };
        const after = recover(input({ ...at, attempts: [attempt, refused], unknownSince }));
        expect(["later", "quarantine", ...again]).toContain(after.do);
      }
    },
  );
});
