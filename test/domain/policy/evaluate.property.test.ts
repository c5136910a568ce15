import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { answerFingerprint, type PolicyAnswer } from "../../../src/domain/policy/answer.js";
import { evaluate } from "../../../src/domain/policy/evaluate.js";
import { limitFor } from "../../../src/domain/policy/ladder.js";
import type { Policy } from "../../../src/domain/policy/policy.js";
import { parsePolicyFile, policyHash, policyToFile } from "../../../src/domain/policy/policy-file.js";
import { CONTRACT_FILE, policyOf } from "./contract-policy.js";
import { facts, refund, type Situation } from "./situation.js";

const CURRENCIES = ["GBP", "USD", "JPY"] as const;
const currency = fc.constantFrom(...CURRENCIES);
const amount = fc.integer({ min: 0, max: 3000 });
const limit = fc.dictionary(currency, amount, { maxKeys: 3 }).map((entries) => ({ ...entries }));
const maybe = <T>(arbitrary: fc.Arbitrary<T>) => fc.option(arbitrary, { nil: undefined });

/** Any refund rules that the file format allows, sensible or not. */
const refundRules = fc
  .record({
    auto: maybe(fc.oneof(fc.boolean(), limit)),
    never: maybe(limit),
    approval: maybe(
      fc.array(
        fc.record({
          upTo: maybe(limit),
          role: fc.constantFrom("supervisor", "finance"),
          approvers: fc.integer({ min: 1, max: 3 }),
        }),
        {
          maxLength: 3,
        },
      ),
    ),
    totals: maybe(
      fc.array(
        fc.record({
          per: fc.constantFrom("order", "customer", "filer", "shop"),
          windowHours: fc.constantFrom(24, 720),
          count: maybe(fc.integer({ min: 0, max: 3 })),
          amount: limit,
          then: fc.constantFrom("hold", "refuse"),
        }),
        { maxLength: 3 },
      ),
    ),
  })
  .map((rules) => JSON.parse(JSON.stringify(rules)) as Record<string, unknown>);

const policies = refundRules.map((rules) => policyOf({ ...CONTRACT_FILE, kinds: { refund: rules } }));

const situations: fc.Arbitrary<Situation> = fc.record({
  bindingConfirmed: fc.boolean(),
  spentOnOrder: fc.bigInt({ min: 0n, max: 3000n }),
  totals: fc.record({
    order: fc.record({ count: fc.integer({ min: 0, max: 3 }), amount: fc.bigInt({ min: 0n, max: 3000n }) }),
    customer: fc.record({
      count: fc.integer({ min: 0, max: 3 }),
      amount: fc.bigInt({ min: 0n, max: 3000n }),
    }),
  }),
});

const SEVERITY = { allow: 0, hold: 1, refuse: 2 } as const;

/** How strict an answer is: by kind, then by rung of the ladder. */
function strictness(answer: PolicyAnswer): number {
  return SEVERITY[answer.answer] * 10 + (answer.answer === "hold" ? answer.approval.line : 0);
}

const ask = (
  policy: Policy,
  amountMinor: bigint,
  currencyCode: string,
  situation: Situation,
): PolicyAnswer => {
  const proposal = refund(amountMinor, currencyCode);
  return evaluate(proposal, facts(proposal, policy, situation), policy);
};
const minor = fc.bigInt({ min: 1n, max: 4000n });

describe("the policy gate, for any policy", () => {
  it("never gives a larger amount a milder answer", () => {
    fc.assert(
      fc.property(policies, situations, currency, minor, minor, (policy, situation, code, a, b) => {
        const [less, more] = a < b ? [a, b] : [b, a];
        expect(strictness(ask(policy, more, code, situation))).toBeGreaterThanOrEqual(
          strictness(ask(policy, less, code, situation)),
        );
      }),
      { numRuns: 2000 },
    );
  });

  it("never gives a milder answer because more was spent on the order before", () => {
    fc.assert(
      fc.property(
        policies,
        situations,
        currency,
        minor,
        minor,
        (policy, situation, code, amountMinor, extra) => {
          const before = ask(policy, amountMinor, code, situation);
          const spentOnOrder = (situation.spentOnOrder ?? 0n) + extra;
          const after = ask(policy, amountMinor, code, { ...situation, spentOnOrder });
          expect(strictness(after)).toBeGreaterThanOrEqual(strictness(before));
        },
      ),
      { numRuns: 2000 },
    );
  });

  it("asks for the last part of a split refund at least what it asks for the whole", () => {
    fc.assert(
      fc.property(
        policies,
        currency,
        fc.array(minor, { minLength: 2, maxLength: 5 }),
        (policy, code, parts) => {
          const whole = parts.reduce((sum, part) => sum + part, 0n);
          const last = parts.at(-1) ?? 0n;
          const split = ask(policy, last, code, {
            spentOnOrder: whole - last,
            totals: { order: { count: parts.length - 1, amount: whole - last } },
          });
          const single = ask(withoutTotals(policy), whole, code, {});
          expect(strictness(split)).toBeGreaterThanOrEqual(strictness(single));
        },
      ),
      { numRuns: 2000 },
    );
  });

  it("never allows money without a limit that names its currency and covers it", () => {
    fc.assert(
      fc.property(policies, situations, currency, minor, (policy, situation, code, amountMinor) => {
        const answer = ask(policy, amountMinor, code, situation);
        if (answer.answer !== "allow") return;
        const { auto, never } = policy.kinds.refund;
        expect(auto).not.toBe(false);
        const named = limitFor(typeof auto === "object" ? auto : never, code);
        expect(named).toBeDefined();
        expect(amountMinor + (situation.spentOnOrder ?? 0n)).toBeLessThanOrEqual(named ?? -1n);
        expect(situation.bindingConfirmed).toBe(true);
      }),
      { numRuns: 2000 },
    );
  });

  it("names whoever must approve when it holds, and somebody's reason always", () => {
    fc.assert(
      fc.property(policies, situations, currency, minor, (policy, situation, code, amountMinor) => {
        const answer = ask(policy, amountMinor, code, situation);
        expect(answer.rules.some((rule) => rule.verdict === answer.answer)).toBe(true);
        if (answer.answer !== "hold") return;
        const line = policy.kinds.refund.approval[answer.approval.line];
        expect(line).toMatchObject({ role: answer.approval.role, approvers: answer.approval.approvers });
      }),
    );
  });

  it("keeps its identity through storage, and its answers", () => {
    fc.assert(
      fc.property(policies, situations, currency, minor, (policy, situation, code, amountMinor) => {
        const stored: unknown = JSON.parse(JSON.stringify(policyToFile(policy)));
        const again = parsePolicyFile(stored);
        expect(again).toEqual({ ok: true, policy });
        if (!again.ok) return;
        expect(policyHash(again.policy)).toBe(policyHash(policy));
        expect(answerFingerprint(ask(again.policy, amountMinor, code, situation))).toBe(
          answerFingerprint(ask(policy, amountMinor, code, situation)),
        );
      }),
    );
  });
});

function withoutTotals(policy: Policy): Policy {
  const { refund: rules } = policy.kinds;
  return { ...policy, kinds: { ...policy.kinds, refund: { ...rules, totals: [] } } };
}
