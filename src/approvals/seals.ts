/** The seal of a vote: bound to its voter and to all that its approval was asked for. */
import type { Approval, Vote } from "../domain/approval.js";
import type { Seals } from "../domain/seals.js";
import { type SealedVote, sealVote, voteHolds } from "../ledger/index.js";

type Bound = Pick<Approval, "id" | "operationId" | "bindingHash" | "binding" | "approversNeeded">;
type Given = Pick<Vote, "userId" | "person" | "role" | "cardVersion">;

const sealed = (approval: Bound, vote: Given): SealedVote => ({
  approvalId: approval.id,
  operationId: approval.operationId,
  fingerprint: approval.binding.fingerprint,
  bindingHash: approval.bindingHash,
  approvers: approval.approversNeeded,
  userId: vote.userId,
  person: vote.person,
  role: vote.role,
  cardVersion: vote.cardVersion,
});

/** Of a yes that a person gives now. */
export const sealOfVote = (seals: Seals, approval: Bound, vote: Given): string =>
  sealVote(seals, sealed(approval, vote));

/** Whether a person gave this yes, to just this approval. */
export const isSealed = (seals: Seals, approval: Bound, vote: Given & Pick<Vote, "seal">): boolean =>
  voteHolds(seals, sealed(approval, vote), vote.seal);
