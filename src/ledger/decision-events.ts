/** What the log is told of people's decisions as they are given, before anything comes of them: approvals and votes, and proposals. */
import type { Tx } from "../db/connect.js";
import type { ApprovalId, OperationId } from "../domain/ids.js";
import type { Seals } from "../domain/seals.js";
import { dataIn } from "./audit-check.js";
import { resolutionHolds } from "./decision-seals.js";
import { recordSubjectEvent } from "./subject-events.js";
import { actorName, hiddenHash, reveal, textName } from "./subjects.js";
import { REFUSED_BY, type Resolution } from "./types.js";

/** An approval is asked for: what it takes to give it. Joins the transaction that makes its row. */
export function recordAsked(
  tx: Tx,
  asked: {
    id: ApprovalId;
    operationId: OperationId;
    role: string;
    approvers: number;
    bindingHash: string;
    confirmAmount: boolean;
  },
): Promise<void> {
  const { id, operationId, ...data } = asked;
  return recordSubjectEvent(tx, {
    subject: `approval:${id}`,
    type: "approval_asked",
    actor: "system:approvals",
    data: { operation: operationId, ...data },
  });
}

/** A person's vote. Joins the transaction that stores it. */
export function recordVote(
  tx: Tx,
  vote: {
    approvalId: ApprovalId;
    userId: string;
    verdict: "approve" | "deny";
    role: string;
    cardVersion: number;
  },
): Promise<void> {
  const { approvalId, userId, ...data } = vote;
  return recordSubjectEvent(tx, {
    subject: `approval:${approvalId}`,
    type: "voted",
    actor: `slack:${userId}`,
    data,
  });
}

/** A person's decision waits for a second one. Joins the transaction that stores it. */
export async function recordProposed(tx: Tx, proposal: Resolution): Promise<void> {
  await recordSubjectEvent(tx, {
    subject: `resolution:${proposal.id}`,
    type: "resolution_proposed",
    actor: `slack:${proposal.by}`,
    data: {
      operation: proposal.operationId,
      verb: proposal.verb,
      reason: await textName(tx, proposal.reason),
      evidence: await textName(tx, proposal.evidenceRef),
    },
  });
}

/** $1 subject. */
const PROPOSED = `
SELECT e.actor, e.body FROM operation_events e WHERE e.subject = $1 AND e.type = 'resolution_proposed'
  AND NOT EXISTS (SELECT 1 FROM operation_events x WHERE x.subject = $1 AND x.type = 'resolution_ended') LIMIT 1`;

/**
 * Whether this person proposed just this, by its seal and by the log, and it has not ended: a row alone is nobody's decision for a
 * second person to agree to.
 */
export async function proposalIsTold(tx: Tx, seals: Seals, proposal: Resolution): Promise<boolean> {
  if (!resolutionHolds(seals, proposal)) return false;
  const [told] = await tx.sql<{ actor: string; body: string }>("ledger.told_proposal", PROPOSED, [
    `resolution:${proposal.id}`,
  ]);
  if (told === undefined) return false;
  const { operation, verb, reason, evidence } = dataIn(told.body);
  const names = [told.actor, String(reason), String(evidence)] as const;
  const known = await reveal(
    tx,
    names.flatMap((name) => hiddenHash(name) ?? []),
  );
  // What was erased since can no longer be compared: the seal has vouched for it.
  const tells = (name: string, value: string): boolean => {
    const hash = hiddenHash(name);
    return hash !== null && (known.get(hash) ?? value) === value;
  };
  return (
    operation === proposal.operationId &&
    verb === proposal.verb &&
    tells(names[0], `slack:${proposal.by}`) &&
    tells(names[1], proposal.reason) &&
    tells(names[2], proposal.evidenceRef)
  );
}

/** How it ended, and by whom. Joins the transaction that ends it. */
export async function recordProposalEnded(tx: Tx, ended: Resolution): Promise<void> {
  const refusal = ended.probe[REFUSED_BY];
  await recordSubjectEvent(tx, {
    subject: `resolution:${ended.id}`,
    type: "resolution_ended",
    actor: ended.secondBy === null ? "system:ledger" : `slack:${ended.secondBy}`,
    data: {
      state: ended.state,
      verdict: ended.secondVerdict,
      second: ended.secondBy === null ? null : await actorName(tx, `slack:${ended.secondBy}`),
      ...(refusal === undefined ? {} : { refusal }),
    },
  });
}
