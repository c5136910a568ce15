import { describe, expect, it } from "vitest";
import type { AttemptOutcome, ProviderEffect } from "../../src/domain/evidence.js";
import { holdingChange, holdingOf, keyIsTaken } from "../../src/domain/holding.js";
import {
  ENDED,
  next,
  OPERATION_EVENTS,
  OPERATION_STATUSES,
  RESERVING,
  TRANSITIONS,
} from "../../src/domain/operation.js";
import type { AttemptFact } from "../../src/domain/recovery.js";
import { settlementOf } from "../../src/domain/settlement.js";

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
  createdAt: new Date("2026-11-29T12:00:00Z"),
};

const OUTCOMES = {
  committed: { verdict: "committed", effect, requestId: "req_1", replayed: false },
  postcondition_failed: { verdict: "postcondition_failed", effect, differs: ["amount"], requestId: null },
  pending: { verdict: "pending", effect, reason: "processing", requestId: null },
  not_executed: { verdict: "not_executed", code: "rate_limit", detail: "busy", retryAfterMs: 700 },
  rejected: { verdict: "rejected", code: "charge_disputed", detail: "disputed", httpStatus: 400 },
  failed_at_provider: { verdict: "failed_at_provider", effect, code: "declined" },
  unknown: { verdict: "unknown", code: "timeout", detail: "no answer", httpStatus: null },
} as const satisfies Record<AttemptOutcome["verdict"], AttemptOutcome>;

const others = {
  none: [],
  proven: [{ number: 1, verdict: "not_executed", code: "connection_failed" }],
  open: [{ number: 1, verdict: "open", code: null }],
  unknown: [{ number: 1, verdict: "unknown", code: "timeout" }],
  committed: [{ number: 1, verdict: "committed", code: null }],
} as const satisfies Record<string, readonly AttemptFact[]>;

/** By hand: the event for each outcome when all other attempts are proven, and when one is not. */
const WANTED: Record<AttemptOutcome["verdict"], [proven: string, open: string]> = {
  committed: ["settle_confirmed", "settle_confirmed"],
  postcondition_failed: ["settle_unknown", "settle_unknown"],
  pending: ["settle_unknown", "settle_unknown"],
  not_executed: ["not_executed", "settle_unknown"],
  rejected: ["settle_rejected", "settle_unknown"],
  failed_at_provider: ["settle_rejected", "settle_unknown"],
  unknown: ["settle_unknown", "settle_unknown"],
};

describe("what an attempt's outcome makes of its operation", () => {
  for (const verdict of Object.keys(WANTED) as AttemptOutcome["verdict"][]) {
    for (const [name, facts] of Object.entries(others)) {
      const wanted = WANTED[verdict][name === "none" || name === "proven" ? 0 : 1];
      it(`${verdict} with other attempts ${name}: ${wanted}`, () => {
        expect(settlementOf(OUTCOMES[verdict], facts).event).toBe(wanted);
      });
    }
  }

  it("takes the key's own stored refusal for the end of every open attempt under it, and of none that had another answer", () => {
    const replay = { ...OUTCOMES.rejected, replayed: true } as const;
    for (const name of ["open", "unknown", "proven", "none"] as const) {
      expect(settlementOf(replay, others[name]).event).toBe("settle_rejected");
    }
    expect(settlementOf(replay, others.committed).event).toBe("settle_unknown");
  });

  it("only ever names an event that a dispatched operation allows", () => {
    for (const outcome of Object.values(OUTCOMES)) {
      for (const facts of Object.values(others)) {
        expect(next("DISPATCHED", settlementOf(outcome, facts).event).legal).toBe(true);
      }
    }
  });
});

describe("the transition table", () => {
  it("answers every pair, and refuses every pair that it does not name", () => {
    for (const from of OPERATION_STATUSES) {
      const row: Readonly<Record<string, string>> = TRANSITIONS[from];
      for (const event of OPERATION_EVENTS) {
        const to = row[event];
        expect(next(from, event)).toEqual(
          to === undefined ? { legal: false, from, event } : { legal: true, to },
        );
      }
    }
  });

  it("reaches every state from the two in which an operation begins", () => {
    const reached = new Set<string>(["AWAITING_APPROVAL", "PREPARED"]);
    for (;;) {
      const before = reached.size;
      for (const from of OPERATION_STATUSES) {
        if (reached.has(from)) for (const to of Object.values(TRANSITIONS[from])) reached.add(to);
      }
      if (reached.size === before) break;
    }
    expect([...reached].sort()).toEqual([...OPERATION_STATUSES].sort());
  });

  it("lets nothing be sent from an end, and confirms only what was sent", () => {
    for (const from of ENDED) {
      for (const event of ["claim", "resend", "settle_confirmed", "release"] as const) {
        expect(next(from, event).legal).toBe(false);
      }
    }
    const confirming = OPERATION_STATUSES.filter((from) => next(from, "settle_confirmed").legal);
    expect(confirming).toEqual(["DISPATCHED", "RECONCILING", "QUARANTINED"]);
  });
});

describe("money by state", () => {
  it("is reserved exactly where it may still be spent", () => {
    for (const status of OPERATION_STATUSES) {
      expect(holdingOf(status) === "reserved").toBe(RESERVING.has(status));
    }
  });

  it("is never counted twice and never lost along any legal path", () => {
    for (const from of OPERATION_STATUSES) {
      for (const to of Object.values(TRANSITIONS[from])) {
        const change = holdingChange(from, to);
        const before = holdingOf(from);
        expect((before === "reserved" ? 1 : 0) + change.reserved).toBe(holdingOf(to) === "reserved" ? 1 : 0);
        expect((before === "refunded" ? 1 : 0) + change.refunded).toBe(holdingOf(to) === "refunded" ? 1 : 0);
        expect(change.counted === "enters" || change.counted === "stays").toBe(holdingOf(to) !== "none");
      }
    }
  });

  it("keeps a key taken while there may be an effect, and after a person closed it", () => {
    for (const status of RESERVING) expect(keyIsTaken(status, false)).toBe(true);
    expect(keyIsTaken("CONFIRMED", false)).toBe(true);
    expect(keyIsTaken("REVERSED", false)).toBe(true);
    expect(keyIsTaken("AWAITING_APPROVAL", false)).toBe(true);
    expect(keyIsTaken("REJECTED", false)).toBe(false);
    expect(keyIsTaken("REJECTED", true)).toBe(true);
    for (const status of ["DENIED", "EXPIRED", "VOIDED"] as const)
      expect(keyIsTaken(status, true)).toBe(false);
  });
});

it("an effect that is not as asked for is looked for at once, and told again after a while", () => {
  const outcome = OUTCOMES.postcondition_failed;
  expect(settlementOf(outcome, [])).toMatchObject({ look: "now" });
  const before: AttemptFact = { number: 1, verdict: "unknown", code: "timeout" };
  expect(settlementOf(outcome, [before])).toMatchObject({ look: "now" });
  expect(settlementOf(outcome, [{ ...before, verdict: "postcondition_failed" }])).toMatchObject({
    look: "backoff",
  });
});
