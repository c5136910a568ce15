/**
 * Events of the audit log about what is no operation: a freeze switch, an incident, the active policy, what was refunded elsewhere on
 * a payment. Each subject has its own
 * chain, serialised by its row in `audit_heads`; export, seal and verifier are those of the operations' events.
 */
import type { Tx } from "../db/connect.js";
import { utcMicros } from "../db/connect.js";
import type { Actor } from "../domain/operation.js";
import type { Seals } from "../domain/seals.js";
import { sealPolicy } from "./decision-seals.js";
import { eventHash } from "./event-sql.js";
import { canonicalData } from "./json.js";
import { isToldByUs } from "./policy-told.js";
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
 * $1 subject. Its head, locked until the transaction ends, made where it is new. The row is written, so that the transaction has its
 * number before it draws an event's (see `audit-blocks.ts`).
 */
const LOCK_HEAD = `
INSERT INTO audit_heads AS h (subject) VALUES ($1)
ON CONFLICT (subject) DO UPDATE SET event_count = h.event_count`;

/** $1 subject, $2 type, $3 actor, $4 canonical data. Its head is locked by the statement before. Keys in the order of RFC 8785. */
const WRITE = `
WITH m AS MATERIALIZED (
  SELECT h.event_count, h.head_hash, countersign_now() AS at_now FROM audit_heads h WHERE h.subject = $1
), e AS MATERIALIZED (
  SELECT m.*, b.body, ${eventHash("m.head_hash", "b.body")} AS hash
  FROM m CROSS JOIN LATERAL (SELECT
    '{"actor":' || to_json($3::text)::text
    || ',"at":"' || ${utcMicros("m.at_now")}
    || '","data":' || $4::text
    || ',"seq":' || (m.event_count + 1)::text
    || ',"subject":' || to_json($1::text)::text
    || ',"type":' || to_json($2::text)::text || '}' AS body) b
), head AS (
  UPDATE audit_heads h SET event_count = e.event_count + 1, head_hash = e.hash FROM e WHERE h.subject = $1
)
INSERT INTO operation_events (subject, seq, at, type, actor, body, prev_hash, hash)
SELECT $1, e.event_count + 1, e.at_now, $2, $3, e.body, e.head_hash, e.hash FROM e`;

/**
 * Appends to the subject's chain, in the transaction of the change that it tells of. People are named by hash. Nobody waits for what it
 * writes: it goes with the next statement, or with COMMIT.
 */
export async function recordSubjectEvent(
  tx: Tx,
  event: { subject: AuditSubject; type: SubjectEventType; actor: Actor; data: object },
): Promise<void> {
  const actor = await actorName(tx, event.actor);
  tx.later("ledger.lock_audit_head", LOCK_HEAD, [event.subject]);
  tx.later("ledger.subject_event", WRITE, [event.subject, event.type, actor, canonicalData(event.data)]);
}

/** How a switch or an incident names who acted: a Slack user, or a part of ours. */
export const actorOf = (by: string): Actor => (by.startsWith("system:") ? (by as Actor) : `slack:${by}`);

const POLICIES_TOLD = "SELECT event_count FROM audit_heads WHERE subject = 'policy'";

/**
 * Tells the log which policy is in force, sealed, unless it says so already and a process with this secret said it. Call in the
 * transaction that makes it the active one, which others that do the same wait for.
 */
export const recordPolicyActivated =
  (seals: Seals) =>
  async (tx: Tx, { hash: policy, textHash: text }: { hash: string; textHash: string }): Promise<void> => {
    const [last] = await tx.sql<{ event_count: number }>("ledger.policies_told", POLICIES_TOLD);
    const seq = last?.event_count ?? 0;
    if (await isToldByUs(tx, seals, { policy, text, seq })) return;
    await recordSubjectEvent(tx, {
      subject: "policy",
      type: "policy_activated",
      actor: "system:policy",
      data: { policy, text, seal: sealPolicy(seals, { policy, text, seq: seq + 1 }) },
    });
  };
