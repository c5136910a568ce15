/** Quarantine, resolutions, thaws and incidents, from their rows. */
import type { SqlRunner } from "../../db/connect.js";
import { contractBook } from "../../domain/contracts.js";
import type { Frozen } from "../../domain/frozen.js";
import type { OperationId } from "../../domain/ids.js";
import type { JsonObject } from "../../domain/json.js";
import type { Policy } from "../../domain/policy/policy.js";
import type { AttemptFacts, FreezeKind, ResolutionVerb, ResolutionView } from "../../ops/index.js";
import {
  CONFIRMED_ON_WORD,
  countedElsewhere,
  personNamed,
  storedAnswers,
  storedRefusal,
  verbsOfTwo,
} from "../../ops/index.js";
import type { IncidentKind, IncidentView } from "../cards/incident-card.js";
import { incidentDetail } from "../cards/incident-detail.js";
import type {
  QuarantineView,
  ResolutionCardView,
  ResolutionFacts,
  ThawCardView,
} from "../cards/ops-cards.js";
import type { OperationFacts } from "../cards/sentences.js";
import { withoutAddresses } from "../text/addresses.js";
import { withRef } from "../text/safe.js";
import { readOperation, readOperations } from "./operation.js";

/** `policy` null: none is at hand, and how many people a verb takes is not told. `keyTtlMs` absent: nor how long its key is good. */
export async function readQuarantine(
  db: SqlRunner,
  id: OperationId,
  policy: Policy | null = null,
  keyTtlMs?: number,
): Promise<QuarantineView | null> {
  const operation = await readOperation(db, id);
  if (operation === null) return null;
  const attempts = await db.sql<{
    number: number;
    started_at: Date;
    verdict: AttemptFacts["verdict"];
    code: string | null;
    replayed: boolean;
  }>(
    "slack.attempts",
    "SELECT number, started_at, verdict, code, COALESCE(evidence ->> 'replayed' = 'true', false) AS replayed FROM attempts WHERE operation_id = $1 ORDER BY number",
    [id],
  );
  const [resolution] = await db.sql<ResolutionRow>(
    "slack.last_resolution",
    `SELECT ${RESOLUTION} FROM resolutions WHERE operation_id = $1 ORDER BY created_at DESC, id DESC LIMIT 1`,
    [id],
  );
  return {
    operation,
    attempts: attempts.map(
      ({ number, started_at, verdict, code, replayed }): AttemptFacts => ({
        replayed,
        number,
        startedAt: started_at,
        verdict,
        code,
      }),
    ),
    resolution: resolution === undefined ? null : resolutionOf(resolution),
    ...(keyTtlMs === undefined ? {} : await keyOf(db, operation, keyTtlMs)),
    ...(policy === null ? {} : { verbsOfTwo: verbsOfTwo(operation, attempts, policy) }),
  };
}

/** $1 operation. */
const FIRST_CLAIM = "SELECT first_claimed_at, countersign_now() AS now FROM operations WHERE id = $1";

/** How long its key is good, where its provider has keys that end. */
async function keyOf(
  db: SqlRunner,
  { id, kind }: Pick<OperationFacts, "id" | "kind">,
  keyTtlMs: number,
): Promise<Pick<QuarantineView, "key">> {
  const contract = contractBook({ keyTtlMs })[kind];
  const [row] = await db.sql<{ first_claimed_at: Date | null; now: Date }>("slack.first_claim", FIRST_CLAIM, [
    id,
  ]);
  const from = row?.first_claimed_at ?? null;
  if (row === undefined || from === null || !contract.keyed || contract.keyTtlMs === null) return {};
  const until = new Date(from.getTime() + contract.keyTtlMs);
  return { key: { until, over: until <= row.now } };
}

interface ResolutionRow {
  id: string;
  operation_id: OperationId;
  verb: ResolutionVerb;
  state: ResolutionView["state"];
  by: string;
  reason: string;
  evidence_ref: string;
  probe: JsonObject;
  second_by: string | null;
  second_verdict: string | null;
  second_note: string | null;
  expires_at: Date | null;
  created_at: Date;
  updated_at: Date;
}

const RESOLUTION =
  "id, operation_id, verb, state, by, reason, evidence_ref, probe, second_by, second_verdict, second_note, expires_at, created_at, updated_at";

function resolutionOf(row: ResolutionRow): ResolutionFacts {
  return {
    id: row.id,
    operationId: row.operation_id,
    verb: row.verb,
    state: row.state,
    by: row.by,
    reason: row.reason,
    evidenceRef: row.evidence_ref,
    ...storedAnswers(row.probe),
    refusal: storedRefusal(row.probe),
    secondBy: row.second_by,
    secondVerdict:
      row.second_verdict === "agree" || row.second_verdict === "disagree" ? row.second_verdict : null,
    secondNote: row.second_note,
    expiresAt: row.expires_at,
    createdAt: row.created_at,
    // Written once more only when it is decided.
    decidedAt: row.state === "proposed" ? null : row.updated_at,
  };
}

export async function readResolution(db: SqlRunner, id: string): Promise<ResolutionCardView | null> {
  const [row] = await db.sql<ResolutionRow>(
    "slack.resolution",
    `SELECT ${RESOLUTION} FROM resolutions WHERE id = $1`,
    [id],
  );
  if (row === undefined) return null;
  const operation = await readOperation(db, row.operation_id);
  return operation === null ? null : { resolution: resolutionOf(row), operation };
}

/**
 * $1 kind. Who asked for the last thaw and how that was answered, from the audit log, because the switch forgets it. No row: nothing was asked, or the question is open.
 */
const LAST_THAW = `
SELECT e.type = 'thaw' AS thawed, COALESCE(${personNamed("asked.actor")}, asked.actor) AS asked_by,
  COALESCE(${personNamed("e.actor")}, e.actor) AS by
FROM operation_events asked
JOIN operation_events e ON e.subject = asked.subject AND e.seq = asked.seq + 1 AND e.type IN ('thaw', 'thaw_request_ended')
WHERE asked.subject = 'freeze:' || $1 AND asked.type = 'thaw_asked'
ORDER BY asked.seq DESC LIMIT 1`;

export async function readFreeze(db: SqlRunner, kind: FreezeKind): Promise<ThawCardView | null> {
  const [row] = await db.sql<{
    frozen: boolean;
    by: string | null;
    reason: string | null;
    at: Date | null;
    thaw_asked_by: string | null;
    thaw_expires_at: Date | null;
    version: bigint;
  }>(
    "slack.freeze",
    "SELECT frozen, by, reason, at, thaw_asked_by, thaw_expires_at, version FROM freeze_switches WHERE kind = $1",
    [kind],
  );
  if (row === undefined) return null;
  const { frozen, by, reason, at } = row;
  const [answer] = await db.sql<{ thawed: boolean; asked_by: string; by: string }>(
    "slack.last_thaw",
    LAST_THAW,
    [kind],
  );
  return {
    kind,
    frozen,
    by,
    reason,
    at,
    thawAskedBy: row.thaw_asked_by,
    thawExpiresAt: row.thaw_expires_at,
    version: Number(row.version),
    answer: answer === undefined ? null : { askedBy: answer.asked_by, by: answer.by, thawed: answer.thawed },
  };
}

/** The switches that are turned off now, the one for everything first. */
export async function readFrozen(db: SqlRunner): Promise<readonly Frozen[]> {
  return db.sql<Frozen>(
    "slack.frozen",
    `SELECT kind, at AS since, by, reason FROM freeze_switches WHERE frozen ORDER BY kind <> 'all', kind`,
  );
}

/** Findings that say, while they are open, what is left of their payment now. */
export const TOLD_WITH_BALANCE: readonly IncidentView["kind"][] = ["refunded_elsewhere", "overdrawn"];

export async function readIncident(db: SqlRunner, id: string): Promise<IncidentView | null> {
  const [row] = await db.sql<{
    kind: IncidentKind;
    status: "open" | "closed";
    operation_id: OperationId | null;
    payment: string | null;
    currency: string | null;
    order_ref: string | null;
    customer_name: string | null;
    customer_ref: string | null;
    detail: JsonObject;
    ended: string[];
    again: string[];
    duplicates: string[];
    ours: string[];
    undecided: OperationId[];
    vouched: OperationId[];
    left_now: bigint | null;
    left_at: Date | null;
    given: string | null;
    given_says: string | null;
    closed_by: string | null;
    closed_at: Date | null;
    close_reason: string | null;
    created_at: Date;
  }>(
    "slack.incident",
    `SELECT i.kind, i.status, i.operation_id, p.payment_intent AS payment, p.currency, r.ref AS order_ref, c.name AS customer_name, c.ref AS customer_ref, i.detail, i.closed_by, i.closed_at,
            i.close_reason, i.created_at, ARRAY(
              SELECT t.ref FROM jsonb_array_elements_text(CASE jsonb_typeof(i.detail -> 'effects') WHEN 'array' THEN i.detail -> 'effects' ELSE '[]' END) AS t (ref)
              WHERE i.payment_id IS NOT NULL AND EXISTS (
                SELECT 1 FROM provider_evidence e WHERE e.dedupe_key IN ('elsewhere_dead:' || t.ref, 'elsewhere_absent:' || t.ref))
                AND t.ref <> ALL($2::text[])
              ORDER BY 1) AS ended, ARRAY(
              SELECT t.ref FROM jsonb_array_elements_text(CASE jsonb_typeof(i.detail -> 'effects') WHEN 'array' THEN i.detail -> 'effects' ELSE '[]' END) AS t (ref)
              WHERE i.payment_id IS NOT NULL AND t.ref = ANY($2::text[]) AND EXISTS (
                SELECT 1 FROM provider_evidence e WHERE e.dedupe_key IN ('elsewhere_dead:' || t.ref, 'elsewhere_absent:' || t.ref))
              ORDER BY 1) AS again, ARRAY(
              SELECT t.ref || ': ' || o.id || ', told in ' || d.id FROM operations o
              JOIN LATERAL (SELECT * FROM incidents WHERE operation_id = o.id AND kind = 'duplicate_effect' OFFSET 0) d ON true
              JOIN jsonb_array_elements_text(CASE jsonb_typeof(i.detail -> 'effects') WHEN 'array' THEN i.detail -> 'effects' ELSE '[]' END) AS t (ref)
                ON t.ref IN (d.detail ->> 'second', d.detail ->> 'ref')
              WHERE o.order_id = p.order_id AND o.payment_id = i.payment_id
              ORDER BY 1) AS duplicates, ARRAY(
              SELECT t.ref || ': ' || o.id FROM jsonb_array_elements_text(CASE jsonb_typeof(i.detail -> 'effects') WHEN 'array' THEN i.detail -> 'effects' ELSE '[]' END) AS t (ref)
              JOIN operations o ON o.provider_ref = t.ref AND o.status = 'CONFIRMED' AND o.order_id = p.order_id AND o.payment_id = i.payment_id
              ORDER BY 1) AS ours, ARRAY(
              SELECT o.id FROM operations o
              WHERE i.kind IN ('refunded_elsewhere', 'overdrawn') AND i.status = 'open' AND o.order_id = p.order_id AND o.payment_id = i.payment_id AND o.kind = 'refund'
                AND o.status IN ('OUTCOME_UNKNOWN', 'RECONCILING', 'QUARANTINED') AND EXISTS (
                SELECT 1 FROM jsonb_array_elements_text(CASE jsonb_typeof(i.detail -> 'effects') WHEN 'array' THEN i.detail -> 'effects' ELSE '[]' END) AS t (ref)
                JOIN provider_evidence e ON e.dedupe_key = 'elsewhere:' || t.ref
                WHERE e.payload ->> 'amount' = o.amount_minor::text AND NOT EXISTS (
                    SELECT 1 FROM provider_evidence d WHERE d.dedupe_key IN ('elsewhere_dead:' || t.ref, 'elsewhere_absent:' || t.ref) AND t.ref <> ALL($2::text[]))
                  AND NOT EXISTS (SELECT 1 FROM operations c WHERE c.provider_ref = t.ref AND c.status = 'CONFIRMED'))
              ORDER BY o.created_at, o.id) AS undecided, ARRAY(
              SELECT o.id FROM operations o
              WHERE i.kind = 'overdrawn' AND i.status = 'open' AND o.order_id = p.order_id AND o.payment_id = p.id AND o.kind = 'refund' AND ${CONFIRMED_ON_WORD}
              ORDER BY o.created_at, o.id) AS vouched,
            CASE WHEN i.kind = ANY($3::text[]) AND i.status = 'open' THEN p.captured - p.reserved - p.refunded - p.refunded_elsewhere END AS left_now, p.updated_at AS left_at, g.evidence_ref AS given, COALESCE(g.probe #>> '{agreedOn,says}', g.probe ->> 'says') AS given_says
       FROM incidents i
       LEFT JOIN resolutions g ON g.id = i.detail ->> 'resolution' AND g.operation_id = i.operation_id
       LEFT JOIN payments p ON p.id = coalesce(i.payment_id, (SELECT id FROM payments WHERE payment_intent = i.detail ->> 'payment'))
       LEFT JOIN orders r ON r.id = p.order_id LEFT JOIN customers c ON c.id = r.customer_id WHERE i.id = $1`,
    [id, await countedFor(db, id), TOLD_WITH_BALANCE],
  );
  if (row === undefined) return null;
  const operation = row.operation_id === null ? null : await readOperation(db, row.operation_id);
  return {
    id,
    kind: row.kind,
    status: row.status,
    operation,
    customer: customerOf(operation, row),
    detail: [
      // The operation's own row names its order.
      ...(row.order_ref === null || operation?.orderRef === row.order_ref
        ? []
        : row.kind === "made_differently"
          ? [["Made on order", row.order_ref] as const, ...whoseRow(row)]
          : [["Order", row.order_ref] as const]),
      ...(row.payment === null || row.detail["payment"] === row.payment
        ? []
        : [["Payment", row.payment] as const]),
      ...(row.given === null ? [] : wordRows(row.given, row.given_says)),
      ...incidentDetail(row.kind, row.detail, row.currency),
      ...(row.ended.length === 0
        ? []
        : [["Came to nothing since", `${row.ended.join(", ")}: does not count any more`] as const]),
      ...(row.again.length === 0
        ? []
        : [["Hidden for a while", `${row.again.join(", ")}: shown again, and counts again`] as const]),
      ...(row.duplicates.length === 0
        ? []
        : [["A second one of ours", `${row.duplicates.join("; ")}; not made elsewhere`] as const]),
      ...(row.ours.length === 0
        ? []
        : [["Confirmed since as ours", `${row.ours.join(", ")}; counts there, and not twice`] as const]),
    ],
    // What carries another operation's id is none of these.
    undecided: areAnothers(row.detail) ? [] : [...(await readOperations(db, row.undecided)).values()],
    vouched: [...(await readOperations(db, row.vouched)).values()],
    ...(row.left_now === null || row.left_at === null || row.currency === null
      ? {}
      : { leftNow: { amountMinor: row.left_now, currency: row.currency, at: row.left_at } }),
    ...(row.given === null ? {} : { onWord: true }),
    ...(row.kind === "refunded_elsewhere" && namesOnly(row.detail, row.duplicates.length)
      ? { ownSecond: true }
      : {}),
    ...(row.kind === "refunded_elsewhere" && areAnothers(row.detail) ? { ofAnother: true } : {}),
    ...(row.kind === "freeze_tripped" ? await thawedSince(db, id) : {}),
    closedBy: row.closed_by,
    closedAt: row.closed_at,
    closeReason: row.close_reason,
    createdAt: row.created_at,
  };
}

/** It tells of so many effects, and of no other. */
const namesOnly = ({ effects }: JsonObject, many: number): boolean =>
  many > 0 && Array.isArray(effects) && effects.length === many;

/** Each effect that it tells of was asked for on another payment. */
const areAnothers = ({ effects, askedBy }: JsonObject): boolean =>
  Array.isArray(effects) && Array.isArray(askedBy) && effects.length === askedBy.length;

/** References that count as refunded elsewhere now, on the payment that the incident is about. */
async function countedFor(db: SqlRunner, id: string): Promise<readonly string[]> {
  const [row] = await db.sql<{ payment_id: string | null }>(
    "slack.payment_of_incident",
    "SELECT payment_id FROM incidents WHERE id = $1",
    [id],
  );
  if (row === undefined || row.payment_id === null) return [];
  return [...(await countedElsewhere(db, row.payment_id)).refs];
}

/** $1 incident of a switch that tripped. Who first turned it back since, by the audit log. */
const THAWED_SINCE = `
SELECT COALESCE(${personNamed("e.actor")}, e.actor) AS by, e.at FROM incidents i
JOIN operation_events e ON e.subject = 'freeze:' || (i.detail ->> 'kind') AND e.type = 'thaw' AND e.at > i.created_at
WHERE i.id = $1 ORDER BY e.seq LIMIT 1`;

async function thawedSince(db: SqlRunner, id: string): Promise<Pick<IncidentView, "thawed">> {
  const [thaw] = await db.sql<{ by: string; at: Date }>("slack.thawed_since", THAWED_SINCE, [id]);
  return thaw === undefined ? {} : { thawed: thaw };
}

/** What a person gave for it, and that nothing else vouched for it. */
function wordRows(evidence: string, says: string | null): [label: string, value: string][] {
  const then =
    says === "unknown" ? "the provider could not be asked then" : "the provider did not show it then";
  return [
    ["Evidence given", evidence],
    ["Rests on", `a person's word: ${then}`],
  ];
}

/** Who has what somebody else was to have. */
const whoseRow = (row: { customer_name: string | null; customer_ref: string | null }) => {
  const whose = customerOf(null, row);
  return whose === null ? [] : [["Order of", withRef(whose.name, whose.ref)] as const];
};

function customerOf(
  operation: OperationFacts | null,
  { customer_name: name, customer_ref: ref }: { customer_name: string | null; customer_ref: string | null },
): IncidentView["customer"] {
  if (operation !== null) return { name: operation.customerName, ref: operation.customerRef };
  return name === null || ref === null ? null : { name: withoutAddresses(name), ref };
}
