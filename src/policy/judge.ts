/**
 * The gate as the ledger asks it (`domain/ports/judge.ts`): the active policy, locked against change, over facts read under the
 * caller's locks. Every judgement carries the hash of the policy that it was made under.
 *
 * Which policy is active is remembered; the statement that reads the facts locks its row and says whether that is still so. If
 * it is not, what was planned under the old one is undone and the whole transaction runs again.
 */
import type { Tx } from "../db/connect.js";
import { answerFingerprint, type PolicyAnswer } from "../domain/policy/answer.js";
import { evaluate } from "../domain/policy/evaluate.js";
import { type Facts, scopesToLock, totalScopes } from "../domain/policy/facts.js";
import type { Judge, Judgement, JudgeSubject } from "../domain/ports/judge.js";
import { type ActivePolicy, activePolicy, policyVersion } from "./active-policy.js";
import { gatherFacts, scopeSubject } from "./gather-facts.js";

/** The policy changed between planning and judging: undo everything and run it again. */
class PolicyChanged extends Error {
  /** `Db.tx` runs a transaction again on this SQLSTATE (serialization failure). */
  readonly code = "40001";
  readonly retry = "again";
  constructor() {
    super("the policy changed meanwhile; run this transaction again");
    this.name = "PolicyChanged";
  }
}

export function makeJudge(): Judge<Tx> {
  let remembered: ActivePolicy | null = null;
  const planned = new WeakMap<Tx, ActivePolicy>();
  const assumed = async (tx: Tx): Promise<ActivePolicy> => {
    remembered ??= await activePolicy(tx);
    return remembered;
  };
  return {
    plan: async (tx, subject) => {
      const active = planned.get(tx) ?? (await assumed(tx));
      planned.set(tx, active);
      const scopes = scopeSubject(subject);
      return {
        lock: scopesToLock(active.policy.kinds[subject.intent.kind], scopes),
        count: totalScopes(scopes),
      };
    },
    judge: async (tx, subject) => {
      const active = planned.get(tx) ?? (await assumed(tx));
      const rules = active.policy.kinds[subject.intent.kind];
      const { facts, policyHash } = await gatherFacts(tx, subject, rules);
      if (policyHash === active.hash) return judgementOf(subject, facts, active);
      const now = { policy: await policyVersion(tx, policyHash), hash: policyHash };
      remembered = now;
      if (planned.has(tx)) throw new PolicyChanged();
      // Its row is locked now: this reading is under the policy that stays.
      const again = await gatherFacts(tx, subject, now.policy.kinds[subject.intent.kind]);
      return judgementOf(subject, again.facts, now);
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
