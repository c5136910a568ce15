/** What the world's balance, the policy and, for what was held, the approval say about one candidate. */
import type { Tx } from "../db/connect.js";
import { CountersignError } from "../domain/errors.js";
import type { Json, JsonObject } from "../domain/json.js";
import type { Judge, Judgement, JudgeSubject } from "../domain/ports/judge.js";
import { approvalData } from "./approval-facts.js";
import { type Candidate, type Site, shortfall, subjectOf } from "./candidate.js";
import type { Inserted } from "./insert.js";
import type { PerCall } from "./types.js";

export type Verdict =
  | { readonly is: "insufficient"; readonly answer: Extract<PerCall, { outcome: "insufficient" }> }
  | {
      readonly is: "refuse";
      readonly code: string;
      readonly sentence: string;
      readonly judgement: Judgement;
    }
  /** `audit`: what the log is told of its approval, where it has one. `stored` once it is. */
  | {
      readonly is: "allow";
      readonly judgement: Judgement;
      readonly audit: JsonObject | null;
      readonly stored: Inserted | null;
    }
  | { readonly is: "hold"; readonly judgement: Judgement }
  | { readonly is: "drift"; readonly judgement: Judgement; readonly changes: readonly Json[] };

export async function judgeCandidate(
  tx: Tx,
  judge: Judge<Tx>,
  candidate: Candidate,
  site: Site,
): Promise<Verdict> {
  const short = shortfall(candidate, site);
  const subject = subjectOf(candidate, site);
  if (candidate.source.kind === "held") {
    // Whatever no longer holds is drift, for its approval to tell; the balance and a refusal are judged even if it does not see them.
    const { operation, approval } = candidate.source;
    const { approvalId, approvedBy, votes = [] } = approval;
    const [judgement, audit] = await Promise.all([
      judge.judge(tx, subject),
      approvalData(tx, { approvalId, votes, approvedBy }),
    ]);
    const check = await approval.accepts(tx, { operation, judgement });
    if (!check.holds) return { is: "drift", judgement, changes: check.changes };
    if (short !== null) return { is: "insufficient", answer: short };
    if (judgement.answer === "refuse") return refusal(judgement);
    return { is: "allow", judgement, audit, stored: null };
  }
  if (short !== null) return { is: "insufficient", answer: short };
  const judgement = await judge.judge(tx, subject);
  if (judgement.answer === "refuse") return refusal(judgement);
  if (judgement.answer === "hold") return { is: "hold", judgement };
  assertMayBeAllowed(subject);
  return { is: "allow", judgement, audit: null, stored: null };
}

function refusal(judgement: Judgement): Verdict {
  const spoke = judgement.rules.filter(({ verdict }) => verdict === "refuse");
  return {
    is: "refuse",
    code: spoke[0]?.rule ?? "policy",
    sentence: spoke.map(({ sentence }) => sentence).join(" ") || "The policy refuses this.",
    judgement,
  };
}

/** Fails closed on a judge that forgot what must always be held (DESIGN §5, §8). */
function assertMayBeAllowed(subject: JudgeSubject): void {
  const held =
    subject.intent.occurrence > 1 || subject.predecessorId !== null || subject.bindingConfirmed === false;
  if (held) {
    throw new CountersignError(
      "judge_must_hold",
      "the policy gate allowed what must always be held: a further occurrence, a successor or an unconfirmed binding",
    );
  }
}
