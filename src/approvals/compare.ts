/** One approval against the present: world, policy's answer and voters, as changes. */
import type { Tx } from "../db/connect.js";
import type { Approval, Change } from "../domain/approval.js";
import { type PresentAnswer, policyChanges, worldChanges } from "../domain/approval-drift.js";
import type { Policy } from "../domain/policy/policy.js";
import type { Judgement } from "../domain/ports/judge.js";
import { bindingHash } from "./binding-json.js";
import type { ApprovalsContext } from "./context.js";
import type { VoterReadings } from "./types.js";
import { checkVoters } from "./voters.js";
import { readSurroundings } from "./world.js";

/** What differs in the world and among the voters. `unreadable`: the voters cannot be judged now. */
export async function compareWorldAndVoters(
  tx: Tx,
  ctx: Pick<ApprovalsContext, "ledger">,
  approval: Approval,
  present: {
    readonly policy: Policy;
    readonly readings: VoterReadings;
    /** Operations released with it: what they set aside since then is no drift. */
    readonly together: readonly string[];
  },
): Promise<{ changes: readonly Change[]; unreadable: string | null }> {
  const around = await readSurroundings(tx, ctx.ledger.contracts, approval.operationId, present.together);
  if (around === null) throw new Error(`operation ${approval.operationId} is gone`);
  const world = [...alteration(approval), ...worldChanges(approval.binding, around.operation, around.world)];
  const voters = checkVoters(
    approval,
    { filers: around.filers, policy: present.policy, seals: ctx.ledger.seals },
    present.readings,
  );
  if (voters.stand === "unreadable") return { changes: world, unreadable: voters.reason };
  return { changes: voters.stand ? world : [...world, ...voters.changes], unreadable: null };
}

/** The stored binding, with what the row itself asks of people, no longer has the hash that it was stored with: it is not what was shown. */
function alteration(approval: Approval): Change[] {
  const { binding, bindingHash: stored, role, approversNeeded: approvers, confirmAmount } = approval;
  const now = bindingHash({ ...binding, policy: { ...binding.policy, role, approvers, confirmAmount } });
  return now === stored ? [] : [{ what: "fingerprint", from: stored, to: now }];
}

/** What differs in the policy's answer. `siblingEnded` as in `policyChanges`. */
export function comparePolicy(
  approval: Approval,
  judgement: Judgement,
  siblingEnded: boolean,
): readonly Change[] {
  return policyChanges(approval.binding.policy, presentAnswer(judgement), siblingEnded);
}

function presentAnswer(judgement: Judgement): PresentAnswer {
  const { approval, answer, answerHash, policyHash } = judgement;
  if (answer === "refuse") return { refused: true, sentence: refusalSentence(judgement) };
  return {
    refused: false,
    answer,
    answerHash,
    policyHash,
    coolingOffMinutes: judgement.notBeforeMinutes ?? 0,
    role: approval?.role ?? "",
    approvers: approval?.approvers ?? 0,
    line: approval?.line ?? 0,
    confirmAmount: approval?.confirmAmount ?? false,
    selfApproval: approval?.selfApproval ?? true,
  };
}

/** Why the policy refuses, its sentences in one text. */
export function refusalSentence(judgement: Judgement): string {
  return judgement.rules
    .filter((rule) => rule.verdict === "refuse")
    .map((rule) => rule.sentence)
    .join(" ");
}
