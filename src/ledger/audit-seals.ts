/**
 * The seals of decisions, each looked at with the secret that they were made with. Rows are read a page at a time; the secret stays in
 * this process.
 *
 * Decisions of before there were seals (migration 0014) bear none, and are passed over where the log told of them by then.
 */
import type { SqlRunner } from "../db/connect.js";
import { isUnreadableValue } from "../db/sqlstate.js";
import { type ApprovalId, isOperationId, type OperationId } from "../domain/ids.js";
import type { Seals } from "../domain/seals.js";
import { dataIn } from "./audit-check.js";
import {
  answerHolds,
  policyHolds,
  resolutionHolds,
  UNSEALED_ACTIVATION,
  UNSEALED_OPERATION,
  UNSEALED_RESOLUTION,
  UNSEALED_VOTE,
  voteHolds,
} from "./decision-seals.js";
import type { ResolutionRow } from "./resolution-rows.js";
import type { BrokenLink } from "./types.js";

const AT_A_TIME = 1_000;

/** SQL: since when decisions are sealed. */
const SEALED_SINCE = `(SELECT COALESCE(min(m.finished_at), 'infinity') FROM _prisma_migrations m WHERE m.migration_name = '0014_sealed_decisions')`;

/** SQL: the log told of an event with this condition before decisions were sealed. */
const toldBefore = (where: string): string =>
  `EXISTS (SELECT 1 FROM operation_events e WHERE ${where} AND e.at <= ${SEALED_SINCE})`;

/** What every page has: where it goes on, and what it is about. */
interface Page {
  readonly id: string;
  readonly operation_id: string;
  readonly seal: string | null;
}

interface VoteRow extends Page {
  approval_id: string;
  fingerprint: string;
  binding_hash: string;
  approvers: number;
  user_id: string;
  person: string;
  role: string;
  card_version: number;
}

/** $1 last id seen, $2 rows. */
const VOTES = `
SELECT v.id, a.operation_id, v.seal, v.approval_id, o.fingerprint, a.binding_hash, a.approvers_needed AS approvers, v.user_id, v.person,
       v.role, v.card_version
FROM votes v JOIN approvals a ON a.id = v.approval_id JOIN operations o ON o.id = a.operation_id
WHERE v.id > $1 AND v.verdict = 'approve' AND NOT (v.seal IS NULL AND v.at <= ${SEALED_SINCE} AND (
    ${toldBefore("e.subject = 'approval:' || a.id AND e.type = 'voted'")} OR ${toldBefore("e.operation_id = o.id AND e.seq = 1")}
  ))
ORDER BY v.id LIMIT $2::int`;

type SealedRow = Page &
  Pick<
    ResolutionRow,
    "verb" | "state" | "operation_version" | "by" | "reason" | "evidence_ref" | "second_by"
  >;

/** $1 last id seen, $2 rows. What waits for a second person, and what was carried out. */
const RESOLUTIONS = `
SELECT r.id, r.operation_id, r.seal, r.verb, r.state, r.operation_version, r.by, r.reason, r.evidence_ref, r.second_by
FROM resolutions r
WHERE r.id > $1 AND r.state IN ('proposed', 'applied') AND NOT (r.seal IS NULL AND r.updated_at <= ${SEALED_SINCE} AND (
    ${toldBefore("e.subject = 'resolution:' || r.id")}
    OR ${toldBefore("e.operation_id = r.operation_id AND e.body::jsonb #>> '{data,resolution}' = r.id")}
  ))
ORDER BY r.id LIMIT $2::int`;

interface OperationRow extends Page {
  fingerprint: string;
  policy_hash: string;
  approval_id: ApprovalId | null;
}

/** $1 last id seen, $2 rows. What the policy let through, by itself or by an approval. */
const OPERATIONS = `
SELECT o.id, o.id AS operation_id, o.seal, o.fingerprint, o.policy_hash, o.approval_id FROM operations o
WHERE o.id > $1 AND EXISTS (SELECT 1 FROM operation_events e WHERE e.operation_id = o.id AND e.type IN ('prepare', 'release'))
  AND NOT (o.seal IS NULL AND ${toldBefore("e.operation_id = o.id AND e.type IN ('prepare', 'release')")})
ORDER BY o.id LIMIT $2::int`;

/** $1 last one seen, $2 rows. Policies that were put in force since decisions are sealed. */
const POLICIES = `
SELECT e.seq, e.body FROM operation_events e
WHERE e.subject = 'policy' AND e.type = 'policy_activated' AND e.seq > $1::int AND e.at > ${SEALED_SINCE}
ORDER BY e.seq LIMIT $2::int`;

/** A policy is in force, and the log was told of none. */
const UNTOLD = `
SELECT 1 FROM active_policy
WHERE NOT EXISTS (SELECT 1 FROM operation_events e WHERE e.subject = 'policy' AND e.type = 'policy_activated')`;

/** Appends what bears no seal of ours, at most `limit` of each kind; returns how many decisions were looked at. */
export async function checkSeals(
  on: SqlRunner,
  seals: Seals,
  broken: BrokenLink[],
  limit: number,
): Promise<number> {
  const found = { broken, limit };
  await checkPolicies(on, seals, broken);
  const counts = [
    await each<OperationRow>(on, "ledger.audit_operation_seals", OPERATIONS, found, (row) =>
      answerHolds(
        seals,
        {
          id: row.id as OperationId,
          fingerprint: row.fingerprint,
          policyHash: row.policy_hash,
          approvalId: row.approval_id,
        },
        row.seal,
      )
        ? null
        : UNSEALED_OPERATION,
    ),
    await each<VoteRow>(on, "ledger.audit_vote_seals", VOTES, found, (row) => {
      const vote = {
        approvalId: row.approval_id,
        operationId: row.operation_id,
        fingerprint: row.fingerprint,
        bindingHash: row.binding_hash,
        approvers: row.approvers,
        userId: row.user_id,
        person: row.person,
        role: row.role,
        cardVersion: row.card_version,
      };
      return voteHolds(seals, vote, row.seal) ? null : UNSEALED_VOTE;
    }),
    await each<SealedRow>(on, "ledger.audit_resolution_seals", RESOLUTIONS, found, (row) => {
      const given = {
        id: row.id,
        operationId: row.operation_id as OperationId,
        verb: row.verb,
        state: row.state,
        operationVersion: row.operation_version,
        by: row.by,
        reason: row.reason,
        evidenceRef: row.evidence_ref,
        secondBy: row.second_by,
        seal: row.seal,
      };
      return resolutionHolds(seals, given) ? null : UNSEALED_RESOLUTION;
    }),
  ];
  return counts.reduce((sum, count) => sum + count, 0);
}

/** Names policies of which nobody with our secret said that they are in force. Their number is that of changed files: a few. */
async function checkPolicies(on: SqlRunner, seals: Seals, broken: BrokenLink[]): Promise<void> {
  const untold = seals.policiesTold ? await on.sql("ledger.audit_policy_untold", UNTOLD) : [];
  if (untold.length > 0) {
    broken.push({
      what: "subject",
      where: "policy",
      operationId: null,
      seq: null,
      problem: UNSEALED_ACTIVATION,
    });
  }
  for (let after = 0; ; ) {
    const rows = await on.sql<{ seq: number; body: string }>("ledger.audit_policy_seals", POLICIES, [
      after,
      AT_A_TIME,
    ]);
    for (const { seq, body } of rows) {
      after = seq;
      if (policyHolds(seals, dataIn(body), seq)) continue;
      broken.push({ what: "subject", where: "policy", operationId: null, seq, problem: UNSEALED_ACTIVATION });
    }
    if (rows.length === 0) return;
  }
}

/** Every row of one statement, a page at a time. A value that cannot be read is named as one, and ends it. */
async function each<R extends Page>(
  on: SqlRunner,
  name: string,
  text: string,
  { broken, limit }: { readonly broken: BrokenLink[]; readonly limit: number },
  problemOf: (row: R) => string | null,
): Promise<number> {
  let count = 0;
  let named = 0;
  const say = (where: string, problem: string): void => {
    named += 1;
    if (named > limit) return;
    const operationId = isOperationId(where) ? where : null;
    broken.push({ what: "operation", where, operationId, seq: null, problem });
  };
  for (let after = ""; ; ) {
    const rows = await readable(() => on.sql<R>(name, text, [after, AT_A_TIME]));
    if (rows === null) {
      say("a value that cannot be read", "its seal cannot be looked at");
      return count;
    }
    for (const row of rows) {
      after = row.id;
      count += 1;
      const problem = problemOf(row);
      if (problem !== null) say(row.operation_id, problem);
    }
    if (rows.length === 0) return count;
  }
}

/** null: somebody stored what cannot even be compared. */
async function readable<T>(read: () => Promise<T>): Promise<T | null> {
  try {
    return await read();
  } catch (error) {
    if (!isUnreadableValue(error)) throw error;
    return null;
  }
}
