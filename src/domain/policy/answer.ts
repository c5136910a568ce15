/** What the policy gate answers, and the part of an answer that an approval is bound to. */
import { canonicalHash } from "../canonical.js";

export const RULE_NAMES = [
  "amount",
  "currency",
  "balance",
  "order_status",
  "window",
  "never",
  "auto",
  "binding",
  "occurrence",
  "successor",
  "order_lines",
  "total",
  "cooling_off",
  "approval",
] as const;
export type RuleName = (typeof RULE_NAMES)[number];

export type Verdict = "allow" | "hold" | "refuse";

/** One rule that had something to say. The sentence is written for the people who read the card. */
export interface RuleVerdict {
  readonly rule: RuleName;
  readonly verdict: Verdict;
  readonly sentence: string;
}

/** What approval is needed. Times in minutes, may be decimal. */
export interface ApprovalNeed {
  readonly role: string;
  /** Distinct people. */
  readonly approvers: number;
  /** Position in the kind's `approval` list, from 0. */
  readonly line: number;
  readonly isLastLine: boolean;
  /** This amount plus what is already reserved or refunded on the order in the window; chose the line. Minor units. */
  readonly ladderMinor: bigint;
  /** The approver repeats the amount. */
  readonly confirmAmount: boolean;
  readonly selfApproval: boolean;
  readonly expireAfterMinutes: number;
  readonly remindAfterMinutes: readonly number[];
  readonly escalateTo: readonly string[];
}

/** `rules` names every rule that spoke, in a fixed order. `coolingOffMinutes` runs from the release; 0: none. */
export type PolicyAnswer =
  | { readonly answer: "allow"; readonly rules: readonly RuleVerdict[]; readonly coolingOffMinutes: number }
  | {
      readonly answer: "hold";
      readonly rules: readonly RuleVerdict[];
      readonly coolingOffMinutes: number;
      readonly approval: ApprovalNeed;
    }
  | { readonly answer: "refuse"; readonly rules: readonly RuleVerdict[] };

/**
 * SHA-256 over what an answer demands: allow, hold or refuse; whose approval and how many; whether the amount is repeated,
 * the filer may approve, and how long it cools off. Sentences, positions, reminders and the reasons behind a hold are not
 * in it: a changed answer matters, a changed comment does not.
 */
export function answerFingerprint(answer: PolicyAnswer): string {
  if (answer.answer === "refuse") return canonicalHash({ answer: "refuse" });
  const { coolingOffMinutes } = answer;
  if (answer.answer === "allow") return canonicalHash({ answer: "allow", coolingOffMinutes });
  const { role, approvers, confirmAmount, selfApproval } = answer.approval;
  return canonicalHash({ answer: "hold", coolingOffMinutes, role, approvers, confirmAmount, selfApproval });
}

/** Sentences of the rules that gave the answer: why it is refused, or else why it is held, or else why it is allowed. */
export function reasons(answer: PolicyAnswer): readonly string[] {
  return answer.rules.filter((rule) => rule.verdict === answer.answer).map((rule) => rule.sentence);
}
