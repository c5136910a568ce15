/** The statement that brings an operation into being, alone or with its first claim. */
import type { JsonObject } from "../domain/json.js";
import type { StoredRequest } from "../domain/ports/payment-provider.js";
import { type EventParameters, eventBody, eventHash, INSERT_EVENT } from "./event-sql.js";
import { switchesOf } from "./freeze.js";
import { operationColumns } from "./rows.js";
import { statement } from "./statement.js";

export interface InsertParameters {
  id: string;
  key: string;
  occurrence: number;
  kind: string;
  customer_id: string;
  customer_ref: string;
  order_id: string | null;
  order_ref: string | null;
  payment_id: string | null;
  payment_intent: string | null;
  subscription_id: string | null;
  subscription_ref: string | null;
  provider_subscription: string | null;
  amount: bigint;
  currency: string;
  at_period_end: boolean | null;
  refund_scope: string | null;
  item_refs: readonly string[];
  reason: string;
  fingerprint: string;
  contract: string;
  idempotency_key: string;
  policy_hash: string;
  /** That the policy allowed it by itself; null: people are asked. */
  seal: string | null;
  decision: JsonObject;
  predecessor: string | null;
  run_id: string;
  ticket_id: string;
  filers: readonly string[];
  scopes: readonly string[];
  reserve: boolean;
  due_ms: number | null;
  not_before_ms: number | null;
  actor: string;
  data: string;
  event: string;
  from: null;
  to: string;
}

/** The claim, where it is made at once. Durations in milliseconds. */
export interface ClaimParameters {
  claimed_to: string;
  claim_event: string;
  claim_actor: string;
  claim_data: string;
  worker: string;
  lease_ms: number;
  timeout_ms: number;
  attempt_id: string;
  request: StoredRequest;
}

const FIRST_ATTEMPT = 1;
const CLAIM_EVENT: EventParameters = {
  actor: ":claim_actor",
  data: ":claim_data",
  event: ":claim_event",
  from: ":to",
  to: ":claimed_to",
};

/** Of the claim: what stands before `m` and after `e`, and what each column of the row is. All empty without one. */
interface ClaimParts {
  readonly before: string;
  readonly frozen: string;
  readonly after: string;
  readonly joined: string;
  readonly columns: string;
  readonly values: string;
  readonly status: string;
  readonly due: string;
  readonly count: string;
  readonly hash: string;
  readonly returned: string;
  readonly events: string;
  readonly tried: string;
}

const NO_CLAIM: ClaimParts = {
  before: "",
  frozen: "",
  after: "",
  joined: "",
  columns: "",
  values: "",
  status: ":to::text",
  due: "e.at_now + :due_ms::bigint * interval '1 millisecond'",
  count: "1",
  hash: "e.hash",
  returned: "",
  events: `${INSERT_EVENT} WHERE EXISTS (SELECT 1 FROM wrote)`,
  tried: "",
};

/** As `ledger.dispatch` makes it: the switches are locked in share mode, and while one is frozen there is no claim (`c` is empty). */
const WITH_CLAIM: ClaimParts = {
  before: `f AS MATERIALIZED (
  SELECT bool_or(s.frozen) AS frozen FROM (${switchesOf(":kind", "FOR SHARE")}) s
), `,
  frozen: ", f.frozen FROM f",
  after: `, c AS MATERIALIZED (
  SELECT m.*, ${FIRST_ATTEMPT} AS event_attempt, b.body, ${eventHash("m.head_hash", "b.body")} AS hash
  FROM (SELECT e.id, e.event_count + 1 AS event_count, e.hash AS head_hash, e.at_now FROM e WHERE NOT e.frozen) m
    CROSS JOIN LATERAL (SELECT ${eventBody({ attempt: `${FIRST_ATTEMPT}`, token: "1" }, CLAIM_EVENT)} AS body) b
)`,
  joined: "LEFT JOIN c ON true",
  columns: ", version, attempts, lease_token, lease_holder, lease_until, first_claimed_at, request",
  values: `, 1 + (c.id IS NOT NULL)::int, CASE WHEN c.id IS NULL THEN 0 ELSE ${FIRST_ATTEMPT} END, (c.id IS NOT NULL)::int,
    CASE WHEN c.id IS NOT NULL THEN :worker END, c.at_now + :lease_ms::int * interval '1 millisecond', c.at_now,
    CASE WHEN c.id IS NOT NULL THEN :request::jsonb END`,
  status: "CASE WHEN c.id IS NULL THEN :to::text ELSE :claimed_to::text END",
  due: `COALESCE(c.at_now + :lease_ms::int * interval '1 millisecond', e.at_now + :due_ms::bigint * interval '1 millisecond')`,
  count: "COALESCE(c.event_count, e.event_count) + 1",
  hash: "COALESCE(c.hash, e.hash)",
  returned: ", o.request, o.lease_until",
  events: `
  INSERT INTO operation_events
    (operation_id, seq, at, type, from_status, to_status, actor, attempt, body, prev_hash, hash)
  SELECT x.* FROM (
    SELECT e.id, e.event_count + 1 AS seq, e.at_now, :event::text, :from::text, :to::text, :actor::text, e.event_attempt,
           e.body, e.head_hash, e.hash FROM e
    UNION ALL
    SELECT c.id, c.event_count + 1, c.at_now, :claim_event::text, :to::text, :claimed_to::text, :claim_actor::text,
           c.event_attempt, c.body, c.head_hash, c.hash FROM c
  ) x WHERE EXISTS (SELECT 1 FROM wrote) ORDER BY x.seq`,
  tried: `, tried AS (
  INSERT INTO attempts (id, operation_id, number, lease_token, worker, started_at, timeout_ms)
  SELECT :attempt_id, c.id, ${FIRST_ATTEMPT}, 1, :worker, c.at_now, :timeout_ms::int
  FROM c WHERE EXISTS (SELECT 1 FROM wrote)
)`,
};

const insertText = (claim: ClaimParts): string => `
WITH ${claim.before}m AS MATERIALIZED (
  SELECT :id::text AS id, 0 AS event_count, ''::text AS head_hash, countersign_now() AS at_now${claim.frozen}
), money AS (
  UPDATE payments p
  SET reserved = p.reserved + :amount::bigint, version = p.version + 1, updated_at = m.at_now
  FROM m
  WHERE :reserve::boolean AND p.id = :payment_id
    AND :amount::bigint <= payment_left(p)
  RETURNING p.id
), e AS MATERIALIZED (
  SELECT m.*, NULL::int AS event_attempt, b.body, ${eventHash("m.head_hash", "b.body")} AS hash
  FROM m CROSS JOIN LATERAL (SELECT ${eventBody({ attempt: "NULL::int", token: "0" })} AS body) b
  WHERE NOT :reserve::boolean OR :payment_id::text IS NULL OR EXISTS (SELECT 1 FROM money)
)${claim.after}, wrote AS (
  INSERT INTO operations AS o (id, key, occurrence, kind, status, customer_id, customer_ref, order_id, order_ref, payment_id,
    payment_intent, subscription_id, subscription_ref, provider_subscription, amount_minor, currency, at_period_end, refund_scope,
    item_refs, reason, fingerprint, contract_version, idempotency_key, policy_hash, seal, decision, predecessor_id, owner_run_id,
    ticket_id, filers, reserved_minor, scopes, due_at, not_before, event_count, head_hash, created_at, updated_at${claim.columns})
  SELECT e.id, :key, :occurrence::int, :kind::text, ${claim.status}, :customer_id, :customer_ref, :order_id, :order_ref, :payment_id,
    :payment_intent, :subscription_id, :subscription_ref, :provider_subscription, :amount::bigint, :currency::text,
    :at_period_end::boolean, :refund_scope, :item_refs::text[], :reason, :fingerprint, :contract, :idempotency_key, :policy_hash, :seal,
    :decision::jsonb, :predecessor, :run_id, :ticket_id, :filers::text[],
    CASE WHEN :reserve::boolean THEN :amount::bigint ELSE 0 END, :scopes::text[],
    ${claim.due}, e.at_now + :not_before_ms::bigint * interval '1 millisecond',
    ${claim.count}, ${claim.hash}, e.at_now, e.at_now${claim.values}
  FROM e ${claim.joined}
  ON CONFLICT (key) WHERE key_live DO NOTHING
  RETURNING ${operationColumns("o")}${claim.returned}
), event AS (${claim.events}
), counted AS (
  INSERT INTO total_entries (scope, operation_id, kind, currency, amount_minor, at)
  SELECT s.name, w.id, :kind::text, :currency::text, :amount::bigint, w.created_at
  FROM wrote w CROSS JOIN LATERAL unnest(:scopes::text[]) AS s(name)
  WHERE :reserve::boolean
)${claim.tried}
SELECT * FROM wrote`;

/**
 * Money in minor units, durations in milliseconds. Reserves only what fits into what is left of the payment. No row: a live
 * operation has this key, or the balance does not hold it.
 */
export const INSERT = statement<InsertParameters>("ledger.insert", insertText(NO_CLAIM));

/** As `INSERT`, and claimed in the same statement unless its kind is frozen: both events, one version of the row. */
export const INSERT_CLAIMED = statement<InsertParameters & ClaimParameters>(
  "ledger.insert_claimed",
  insertText(WITH_CLAIM),
);
