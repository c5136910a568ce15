/** What the audit log is told of an approval: who voted how, when, and what gave them the right. */
import type { Approval, Change } from "../domain/approval.js";
import type { Json } from "../domain/json.js";
import type { VoteFact } from "../ledger/index.js";
import { changesToJson } from "./binding-json.js";

/** The votes in the order in which they were given. */
export const voteFacts = ({ votes }: Approval): readonly VoteFact[] =>
  votes.map(({ userId, verdict, role, grantedBy, cardVersion, at }) => ({
    userId,
    verdict,
    role,
    // A list names its member; the group or the list is what matters here.
    grantedBy: grantedBy?.startsWith("list") === true ? "list" : grantedBy,
    cardVersion,
    at: at.toISOString(),
  }));

/** Changes without the people they name: the votes beside them say who. */
export function changesForAudit(changes: readonly Change[]): readonly Json[] {
  return changes.flatMap((change) =>
    change.what === "voter" ? [{ what: "voter" }] : changesToJson([change]),
  );
}
