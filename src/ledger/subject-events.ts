/**
 * Events of the audit log about what is no operation: a freeze switch, an incident, the active policy, what was refunded elsewhere on
 * a payment. Each subject has its own
 * chain, serialised by its row in `audit_heads`; export, seal and verifier are those of the operations' events.
 */
import type { Tx } from "../db/connect.js";
import { utcMicros } from "../db/connect.js";
import { type Canonical, canonicalJson, sha256Hex } from "../domain/canonical.js";
import type { Actor } from "../domain/operation.js";
import { toJsonObject } from "./json.js";
import { actorName } from "./subjects.js";

/** What an event may be about. */
export type AuditSubject =
  | `freeze:${string}`
  | `incident:${string}`
  | `payment:${string}`
  | "policy"
  | `approval:${string}`
  | `resolution:${string}`;

export const SUBJECT_EVENTS = [
  "freeze",
  "thaw_asked",
  "thaw_request_ended",
  "thaw",
  "incident_opened",
  "incident_closed",
  "policy_activated",
  "refunded_elsewhere",
  "approval_asked",
  "voted",
  "resolution_proposed",
  "resolution_ended",
] as const;
export type SubjectEventType = (typeof SUBJECT_EVENTS)[number];

/**
 * $1 subject. Its head, locked until the transaction ends, made where it is new; and the time after the lock was held. The row is
 * written, so that the transaction has its number before it draws an event's (see `audit-blocks.ts`).
 */
const LOCK_HEAD = `
INSERT INTO audit_heads AS h (subject) VALUES ($1)
ON CONFLICT (subject) DO UPDATE SET event_count = h.event_count
RETURNING event_count, head_hash, ${utcMicros("countersign_now()")} AS at`;

/** $1 subject, $2 seq, $3 time, $4 type, $5 actor, $6 body, $7 previous hash, $8 hash. */
const WRITE = `
WITH head AS (
  UPDATE audit_heads SET event_count = $2::int, head_hash = $8 WHERE subject = $1 RETURNING subject
)
INSERT INTO operation_events (subject, seq, at, type, actor, body, prev_hash, hash)
SELECT head.subject, $2::int, $3::timestamptz, $4, $5, $6, $7, $8 FROM head`;

/** Appends to the subject's chain, in the transaction of the change that it tells of. People are named by hash. */
export async function recordSubjectEvent(
  tx: Tx,
  event: { subject: AuditSubject; type: SubjectEventType; actor: Actor; data: object },
): Promise<void> {
  const actor = await actorName(tx, event.actor);
  const [head] = await tx.sql<{ event_count: number; head_hash: string; at: string }>(
    "ledger.lock_audit_head",
    LOCK_HEAD,
    [event.subject],
  );
  if (head === undefined) throw new Error(`the chain of ${event.subject} could not be locked`);
  const seq = head.event_count + 1;
  const body = canonicalJson({
    actor,
    at: head.at,
    data: toJsonObject(event.data),
    seq,
    subject: event.subject,
    type: event.type,
  } as Canonical);
  const hash = sha256Hex(`${head.head_hash}\n${body}`);
  await tx.sql("ledger.subject_event", WRITE, [
    event.subject,
    seq,
    head.at,
    event.type,
    actor,
    body,
    head.head_hash,
    hash,
  ]);
}

/** How a switch or an incident names who acted: a Slack user, or a part of ours. */
export const actorOf = (by: string): Actor => (by.startsWith("system:") ? (by as Actor) : `slack:${by}`);

/** $1 policy's hash. No row: it is the one that the log told of last. */
const NEWS_OF_POLICY = `
SELECT 1 AS news WHERE NOT EXISTS (
  SELECT 1 FROM operation_events e WHERE e.subject = 'policy'
    AND e.seq = (SELECT event_count FROM audit_heads WHERE subject = 'policy') AND e.body::jsonb #>> '{data,policy}' = $1)`;

/** Records which policy is in force, unless the log says so already. Call in the transaction that makes it the active one. */
export async function recordPolicyActivated(
  tx: Tx,
  policy: { hash: string; textHash: string },
): Promise<void> {
  if ((await tx.sql("ledger.news_of_policy", NEWS_OF_POLICY, [policy.hash])).length === 0) return;
  await recordSubjectEvent(tx, {
    subject: "policy",
    type: "policy_activated",
    actor: "system:policy",
    data: { policy: policy.hash, text: policy.textHash },
  });
}
