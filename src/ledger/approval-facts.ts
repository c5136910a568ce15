/** Approvals in the audit log: the votes with their authority, people behind salted hashes. */
import type { Tx } from "../db/connect.js";
import type { JsonObject } from "../domain/json.js";
import type { Operation } from "../domain/operation.js";
import { note } from "./note.js";
import { personNames } from "./subjects.js";
import type { ApprovalFact } from "./types.js";

/** What an event says about an approval; `approvedBy`: people whose yes counts, where that is said. */
export async function approvalData(
  tx: Tx,
  fact: ApprovalFact & { readonly approvedBy?: readonly string[] },
): Promise<JsonObject> {
  const { approvedBy } = fact;
  const people = await personNames(tx, [...fact.votes.map((vote) => vote.userId), ...(approvedBy ?? [])]);
  return {
    approval: fact.approvalId,
    votes: fact.votes.map(({ verdict, role, grantedBy, cardVersion, at }, index) => ({
      person: people[index] ?? "",
      verdict,
      role,
      grantedBy,
      ...(cardVersion === undefined ? {} : { cardVersion }),
      at,
    })),
    ...(approvedBy === undefined ? {} : { approvedBy: people.slice(fact.votes.length) }),
    ...(fact.changes === undefined ? {} : { changes: [...fact.changes] }),
  };
}

/**
 * Records that an approval died while its operation goes on waiting for a new one: an event without a change of state. The caller
 * holds the operation's lock. Returns the operation at its new version.
 */
export async function noteApprovalVoided(
  tx: Tx,
  operation: Operation,
  fact: ApprovalFact,
): Promise<Operation> {
  const noted = await note(tx, {
    id: operation.id,
    status: operation.status,
    version: operation.version,
    note: "approval_voided",
    actor: "system:approvals",
    data: await approvalData(tx, fact),
  });
  if (noted === null) throw new Error(`operation ${operation.id} moved although its row is locked`);
  return noted;
}
