/**
 * The gate as the ledger asks it (`domain/ports/judge.ts`): the active policy, locked against change, over facts read under the
 * caller's locks. Every judgement carries the hash of the policy that it was made under.
 */
import type { Tx } from "../db/connect.js";
import { answerFingerprint, type PolicyAnswer } from "../domain/policy/answer.js";
import { evaluate } from "../domain/policy/evaluate.js";
import { type Facts, scopesToLock, totalScopes } from "../domain/policy/facts.js";
import type { Judge, Judgement, JudgeSubject } from "../domain/ports/judge.js";
import { type ActivePolicy, lockActivePolicy } from "./active-policy.js";
import { gatherFacts, scopeSubject } from "./gather-facts.js";

export function makeJudge(): Judge<Tx> {
  return {
    plan: async (tx, subject) => {
      const { policy } = await lockActivePolicy(tx);
      const scopes = scopeSubject(subject);
      return { lock: scopesToLock(policy.kinds[subject.intent.kind], scopes), count: totalScopes(scopes) };
    },
    judge: async (tx, subject) => {
      const active = await lockActivePolicy(tx);
      const facts = await gatherFacts(tx, subject, active.policy.kinds[subject.intent.kind]);
      return judgementOf(subject, facts, active);
    },
  };
}

/** Evaluates facts that were gathered already. */
export function judgementOf(subject: JudgeSubject, facts: Facts, active: ActivePolicy): Judgement {
  const { kind, amountMinor, currency, occurrence } = subject.intent;
  const answer = evaluate({ kind, amountMinor, currency, occurrence }, facts, active.policy);
  const approval = answer.answer === "hold" ? answer.approval : null;
  return {
    answer: answer.answer,
    rules: answer.rules,
    approval,
    confirmAmount: approval?.confirmAmount ?? false,
    notBeforeMinutes: coolingOff(answer),
    policyHash: active.hash,
    answerHash: answerFingerprint(answer),
    facts,
  };
}

function coolingOff(answer: PolicyAnswer): number | null {
  if (answer.answer === "refuse" || answer.coolingOffMinutes === 0) return null;
  return answer.coolingOffMinutes;
}
