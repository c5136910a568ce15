/**
 * The last word before anything leaves: whether the log tells what the row says. Whoever changes rows by hand cannot write the log
 * alike, so that a status, a count of attempts, the birth of a key or an approval that the log does not know sends nothing.
 */
import type { SqlRunner } from "../db/connect.js";
import type { OperationId } from "../domain/ids.js";
import { auditedOperation } from "./audit.js";
import { type AuditedEvent, type AuditedOperation, checkOperation, dataOf } from "./audit-check.js";
import { TOLD_SINCE } from "./audit-decisions.js";

export interface Authority {
  /** What the log does not tell, a sentence each; empty: it may be sent. */
  readonly problems: readonly string[];
  /** By the log nothing of it has left that may have committed: it may be ended as unsent. */
  readonly unsent: boolean;
}

/**
 * $1 operation. What is wrong with the approval that its last release names: the row is not the one that was asked for, or the log does
 * not know of as many votes as it takes. Approvals that are older than the log's knowledge of them are passed over.
 */
const RELEASED_BY = `
WITH r AS (
  SELECT e.body::jsonb #>> '{data,approval}' AS approval FROM operation_events e
  WHERE e.operation_id = $1 AND e.type = 'release' ORDER BY e.seq DESC LIMIT 1
), told AS (
  SELECT e.type, e.actor, e.seq, e.at, e.body::jsonb -> 'data' AS data FROM r JOIN operation_events e ON e.subject = 'approval:' || r.approval
), yes AS (
  SELECT count(*) AS n FROM (
    SELECT DISTINCT ON (v.actor) v.data ->> 'verdict' AS verdict FROM told v WHERE v.type = 'voted' ORDER BY v.actor, v.seq DESC
  ) each WHERE each.verdict = 'approve'
)
SELECT a.id IS NULL AS gone, a.state IS DISTINCT FROM 'RELEASED' AS open, asked.data IS NULL AND f.at > ${TOLD_SINCE} AS unasked,
       asked.data IS NOT NULL AND (asked.data ->> 'operation', asked.data ->> 'role', (asked.data ->> 'approvers')::int,
         asked.data ->> 'bindingHash', (asked.data ->> 'confirmAmount')::boolean)
         IS DISTINCT FROM (a.operation_id, a.role, a.approvers_needed, a.binding_hash, a.confirm_amount) AS altered,
       asked.data IS NOT NULL AND yes.n < (asked.data ->> 'approvers')::int AS few
FROM r CROSS JOIN yes
JOIN operation_events f ON f.operation_id = $1 AND f.seq = 1
LEFT JOIN approvals a ON a.id = r.approval
LEFT JOIN told asked ON asked.type = 'approval_asked'
WHERE r.approval IS NOT NULL`;

interface ReleasedBy {
  gone: boolean;
  open: boolean;
  unasked: boolean;
  altered: boolean;
  few: boolean;
}

/** What the log tells of an operation that is about to be sent. */
export async function authorityOf(on: SqlRunner, id: OperationId): Promise<Authority> {
  const audited = await auditedOperation(on, id);
  if (audited === null) return { problems: ["it is gone"], unsent: false };
  const chain = checkOperation(audited).map(({ problem }) => problem);
  // What was never held has nobody's approval to look for; a release that was taken out of the log is in what the chain says.
  const held = audited.events.some(({ type }) => type === "release");
  const [released] = held ? await on.sql<ReleasedBy>("ledger.released_by", RELEASED_BY, [id]) : [];
  return {
    problems: [
      ...new Set([
        ...chain,
        ...(released === undefined ? [] : approvalProblems(released)),
        ...retryProblems(audited.events),
      ]),
    ],
    unsent: isUnsent(audited),
  };
}

/** PREPARED, or claimed just now from there, by as many events as the row counts. */
function isUnsent({ events, eventCount, headHash }: AuditedOperation): boolean {
  const last = events.at(-1);
  if (last === undefined || events.length !== eventCount || last.hash !== headHash) return false;
  return (last.type === "claim" ? events.at(-2) : last)?.to === "PREPARED";
}

/** What is sent again by a person's word: the log has their word, too. */
function retryProblems(events: readonly AuditedEvent[]): string[] {
  const last = events.at(-1);
  const resolution = last?.type === "resend" ? dataOf(last)["resolution"] : undefined;
  if (resolution === undefined) return [];
  const told = events.some((event) => event.type !== "resend" && dataOf(event)["resolution"] === resolution);
  return told ? [] : ["the log does not tell that a person authorised sending it again"];
}

function approvalProblems({ gone, open, unasked, altered, few }: ReleasedBy): string[] {
  if (gone) return ["the approval that released it is gone"];
  return [
    ...(open ? ["the approval that released it is not released"] : []),
    ...(unasked ? ["the log does not tell that its approval was asked for"] : []),
    ...(altered ? ["its approval asks for something else than was asked for"] : []),
    ...(few ? ["the log does not tell of the votes that it takes"] : []),
  ];
}
