/** What people decided about one operation, held against the log: the audit's own questions, asked of that operation alone. */
import type { SqlRunner } from "../db/connect.js";
import type { OperationId } from "../domain/ids.js";
import { DECISION_CHECKS, TOLD_SINCE } from "./audit-decisions.js";
import { RECORD_CHECKS } from "./audit-records.js";
import { CHECKS } from "./audit-sums.js";

export interface Release {
  /** Of the operation's row at that moment. */
  readonly version: bigint;
  readonly gone: boolean;
  readonly open: boolean;
  readonly unasked: boolean;
  readonly few: boolean;
  /** What else of the approval, its votes and who asked is not what the log tells, a sentence each. */
  readonly problems: readonly string[];
  /** What its votes are bound to beside the operation. */
  readonly bound: { readonly bindingHash: string; readonly approvers: number } | null;
  /** Whoever said yes. */
  readonly yes: readonly YesRow[];
}

export interface YesRow {
  readonly userId: string;
  readonly person: string;
  readonly role: string;
  readonly cardVersion: number;
  readonly seal: string | null;
}

const ASKED_OF_ONE: ReadonlySet<string> = new Set([
  "ledger.audit_approvers",
  "ledger.audit_asked",
  "ledger.audit_decision",
  "ledger.audit_filers",
  "ledger.audit_voted",
  "ledger.audit_voters",
]);
const OF_ONE = [...CHECKS, ...RECORD_CHECKS, ...DECISION_CHECKS].filter(({ name }) => ASKED_OF_ONE.has(name));

/**
 * $1 rows of each question, $2 operation, $3 the approval that its last release names. The questions see this operation and its approvals
 * alone. Whether the approval is the one that was asked for, and the log knows of as many votes as it takes; approvals that are older
 * than the log's knowledge of them are passed over. Seals are looked at by whoever asks: the secret is no part of a statement.
 */
const RELEASE = `
WITH operations AS NOT MATERIALIZED (SELECT * FROM operations WHERE id = $2),
  approvals AS NOT MATERIALIZED (SELECT * FROM approvals WHERE operation_id = $2),
told AS (
  SELECT e.type, e.actor, e.seq, e.body::jsonb -> 'data' AS data FROM operation_events e WHERE e.subject = 'approval:' || $3
), yes AS (
  SELECT count(*) AS n FROM (
    SELECT DISTINCT ON (v.actor) v.data ->> 'verdict' AS verdict FROM told v WHERE v.type = 'voted' ORDER BY v.actor, v.seq DESC
  ) each WHERE each.verdict = 'approve'
)
SELECT o.version, a.id IS NULL AS gone, a.state IS DISTINCT FROM 'RELEASED' AS open,
       asked.data IS NULL AND f.at > ${TOLD_SINCE} AS unasked,
       asked.data IS NOT NULL AND yes.n < (asked.data ->> 'approvers')::int AS few,
       ARRAY(${OF_ONE.map(({ problem, text }) => `SELECT '${problem}' FROM (${text}) q`).join("\nUNION ALL ")}) AS problems,
       CASE WHEN a.id IS NOT NULL THEN jsonb_build_object('bindingHash', a.binding_hash, 'approvers', a.approvers_needed) END AS bound,
       COALESCE((SELECT jsonb_agg(jsonb_build_object('userId', v.user_id, 'person', v.person, 'role', v.role,
           'cardVersion', v.card_version, 'seal', v.seal) ORDER BY v.id)
         FROM votes v WHERE v.approval_id = a.id AND v.verdict = 'approve'), '[]') AS yes
FROM operations o CROSS JOIN yes
JOIN operation_events f ON f.operation_id = o.id AND f.seq = 1
LEFT JOIN approvals a ON a.id = $3
LEFT JOIN LATERAL (SELECT data FROM told WHERE type = 'approval_asked' ORDER BY seq LIMIT 1) asked ON true`;

/** null: the operation is gone. */
export async function releaseOf(on: SqlRunner, id: OperationId, approval: string): Promise<Release | null> {
  const [row] = await on.sql<Release>("ledger.released_by", RELEASE, [1, id, approval]);
  return row ?? null;
}
