/** What the audit log is told of an approval: who voted how, when, and what gave them the right. */
import type { Tx } from "../db/connect.js";
import type { Change } from "../domain/approval.js";
import type { ApprovalId } from "../domain/ids.js";
import type { Json } from "../domain/json.js";
import type { VoteFact } from "../ledger/index.js";
import { changesToJson } from "./binding-json.js";

/** The votes in the order in which they were given. */
export async function voteFacts(tx: Tx, id: ApprovalId): Promise<readonly VoteFact[]> {
  const rows = await tx.sql<{
    user_id: string;
    verdict: VoteFact["verdict"];
    role: string;
    granted_by: string | null;
    card_version: number;
    at: Date;
  }>(
    "approvals.vote_facts",
    `SELECT user_id, verdict, role, role_evidence ->> 'by' AS granted_by, card_version, at FROM votes WHERE approval_id = $1 ORDER BY at, id`,
    [id],
  );
  return rows.map((row) => ({
    userId: row.user_id,
    verdict: row.verdict,
    role: row.role,
    // A list names its member; the group or the list is what matters here.
    grantedBy: row.granted_by?.startsWith("list") === true ? "list" : row.granted_by,
    cardVersion: row.card_version,
    at: row.at.toISOString(),
  }));
}

/** Changes without the people they name: the votes beside them say who. */
export function changesForAudit(changes: readonly Change[]): readonly Json[] {
  return changes.flatMap((change) =>
    change.what === "voter" ? [{ what: "voter" }] : changesToJson([change]),
  );
}
