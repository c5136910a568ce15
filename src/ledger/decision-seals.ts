/**
 * What the seals of decisions are made of: of a vote that approves, of on-call's decisions, of what the policy let through, by itself
 * or by an approval, and of which policy that is.
 *
 * 1. A vote is bound to its approval, to what that was asked for (operation, fingerprint, binding, role, people) and to its voter.
 * 2. A decision of on-call is bound to its operation, its verb, who gave it, whether it waits for a second person, who agreed, and the
 *    version of the operation that it was given for. It is sealed anew with the agreement, and only where the proposal's own seal held.
 * 3. A policy that is put in force is bound to its place in the log: one of long ago is not in force again by being copied.
 * 4. What an approval releases is sealed with it by whoever released it, after world, policy and voters were compared once more: votes
 *    alone, on an approval that asked for less than the policy does, let nothing go.
 * 5. A no needs none: nothing leaves by it.
 */

import type { JsonObject } from "../domain/json.js";
import type { Operation } from "../domain/operation.js";
import type { Seals } from "../domain/seals.js";
import type { Resolution } from "./types.js";

/** What is said where a seal is missing or does not hold. Before there were seals none was made. */
export const UNSEALED_VOTE = "a vote about it bears no seal of ours";
export const UNSEALED_RESOLUTION = "a person's decision about it bears no seal of ours";
export const UNSEALED_ACTIVATION = "a policy was put in force without a seal of ours";
export const UNKNOWN_ACTIVATION =
  "the policy was put in force under no secret that this process knows (SEAL_SECRET, SEAL_SECRETS_ACCEPTED)";
export const UNSEALED_POLICY = "the policy that it was decided under was put in force without a seal of ours";
export const UNSEALED_OPERATION = "it bears no seal of the policy's answer";

/** A yes, as it is sealed. */
export interface SealedVote {
  readonly approvalId: string;
  readonly operationId: string;
  readonly fingerprint: string;
  readonly bindingHash: string;
  readonly approvers: number;
  readonly userId: string;
  readonly person: string;
  readonly role: string;
  readonly cardVersion: number;
}

const voteParts = (vote: SealedVote) => [
  vote.approvalId,
  vote.operationId,
  vote.fingerprint,
  vote.bindingHash,
  vote.approvers,
  vote.userId,
  vote.person,
  vote.role,
  vote.cardVersion,
  "approve",
];

/** The seal of a person's yes. */
export const sealVote = (seals: Seals, vote: SealedVote): string => seals.make("vote", voteParts(vote));

/** Whether this yes is one that a process of ours took from a person. */
export const voteHolds = (seals: Seals, vote: SealedVote, seal: string | null): boolean =>
  seals.holds("vote", voteParts(vote), seal);

/** A decision of on-call, as it is sealed: one that waits for a second person, or one that was carried out. */
export type SealedResolution = Pick<
  Resolution,
  "id" | "operationId" | "verb" | "state" | "operationVersion" | "by" | "reason" | "evidenceRef" | "secondBy"
>;

const resolutionParts = (given: SealedResolution) => [
  given.id,
  given.operationId,
  given.verb,
  given.state,
  given.operationVersion,
  given.by,
  given.reason,
  given.evidenceRef,
  given.secondBy,
];

/** The seal of a decision as it stands. */
export const sealResolution = (seals: Seals, given: SealedResolution): string =>
  seals.make("resolution", resolutionParts(given));

/** Whether this decision is one that a process of ours took from people, and as it was given. */
export const resolutionHolds = (
  seals: Seals,
  given: SealedResolution & { readonly seal: string | null },
): boolean => seals.holds("resolution", resolutionParts(given), given.seal);

/** What the policy answered about, and the approval that its answer asked for; null: it allowed it by itself. */
export type SealedAnswer = Pick<Operation, "id" | "fingerprint" | "policyHash" | "approvalId">;

const answerParts = ({ id, fingerprint, policyHash, approvalId }: SealedAnswer) => [
  id,
  fingerprint,
  policyHash,
  approvalId,
];

/** The seal of an operation that the policy lets go: by itself, or with the approval that it asked for. */
export const sealAnswer = (seals: Seals, operation: SealedAnswer): string =>
  seals.make("operation", answerParts(operation));

/** Whether it was the policy, asked by a process of ours, that let this through, by this approval where it is by one. */
export const answerHolds = (seals: Seals, operation: SealedAnswer, seal: string | null): boolean =>
  seals.holds("operation", answerParts(operation), seal);

/** A policy that is put in force, as its event tells it. */
export interface SealedPolicy {
  readonly policy: string;
  readonly text: string;
  /** Of the event in the log of policies. */
  readonly seq: number;
}

/** The seal of a policy that comes into force. */
export const sealPolicy = (seals: Seals, { policy, text, seq }: SealedPolicy): string =>
  seals.make("policy", [policy, text, seq]);

/** Whether a process of ours put this policy in force, at this place of the log. `data` is its event's. */
export function policyHolds(seals: Seals, data: JsonObject, seq: number): boolean {
  const { policy, text, seal } = data;
  return (
    typeof policy === "string" &&
    typeof text === "string" &&
    typeof seal === "string" &&
    seals.holds("policy", [policy, text, seq], seal)
  );
}
