/** What an approval is compared with: the operation's row and the world around it, read in the caller's transaction. */
import type { SqlRunner, Tx } from "../db/connect.js";
import type { Approval, Change, EarlierOperation, WorldSnapshot } from "../domain/approval.js";
import { type PresentOperation, snapshotChanges } from "../domain/approval-drift.js";
import type { ContractBook } from "../domain/contracts.js";
import { fingerprint, operationKey } from "../domain/identity.js";
import type { OperationId } from "../domain/ids.js";
import type { Operation, OperationKind, OperationStatus } from "../domain/operation.js";

/** One operation as the database has it now, and its surroundings. */
export interface Surroundings {
  readonly operation: PresentOperation;
  readonly status: OperationStatus;
  /** Slack user ids that count as filer now. */
  readonly filers: readonly string[];
  readonly world: WorldSnapshot;
  readonly customerName: string;
  readonly bindingUnconfirmed: boolean;
}

interface Row {
  kind: OperationKind;
  status: OperationStatus;
  filers: string[];
  customer_ref: string;
  customer_name: string;
  order_ref: string | null;
  subscription_ref: string | null;
  amount_minor: bigint;
  currency: string;
  at_period_end: boolean | null;
  occurrence: number;
  fingerprint: string;
  order_now: { ref: string; status: string; currency: string; customer: string } | null;
  bound_intent: string | null;
  bound_subscription: string | null;
  payment_intent: string | null;
  payment_currency: string | null;
  captured: bigint | null;
  refunded: bigint | null;
  elsewhere: bigint | null;
  reserved: bigint | null;
  refundable: bigint | null;
  subscription_now: { ref: string; status: string; customer: string; provider_ref: string } | null;
  ticket_binding: string | null;
  ticket_customer: string | null;
}

/**
 * Reads the surroundings of an operation.
 *
 * `together`: operations that were released together. What they have set aside or refunded is counted as still refundable, so
 * that a released turn is no drift to itself.
 *
 * null: there is no such operation.
 */
export async function readSurroundings(
  on: SqlRunner,
  contracts: ContractBook,
  id: OperationId,
  together: readonly string[],
): Promise<Surroundings | null> {
  const [row] = await on.sql<Row>("approvals.surroundings", SURROUNDINGS, [id, [...together]]);
  if (row === undefined) return null;
  return {
    status: row.status,
    filers: row.filers,
    customerName: row.customer_name,
    bindingUnconfirmed: row.ticket_binding !== null && row.ticket_binding !== "confirmed",
    operation: {
      amountMinor: row.amount_minor,
      currency: row.currency,
      occurrence: row.occurrence,
      customerRef: row.customer_ref,
      fingerprint: row.fingerprint,
      freshFingerprint: freshFingerprint(row, contracts),
    },
    world: snapshotOf(row),
  };
}

/** What has changed in the world since the approval's card was made. */
export async function changesSince(
  on: SqlRunner,
  { operationId, binding }: Pick<Approval, "operationId" | "binding">,
): Promise<readonly Change[]> {
  const [row] = await on.sql<Row>("approvals.surroundings", SURROUNDINGS, [operationId, []]);
  return row === undefined ? [] : snapshotChanges(binding.world, snapshotOf(row));
}

function snapshotOf(row: Row): WorldSnapshot {
  const order = row.order_now;
  const subscription = row.subscription_now;
  return {
    customerRef: row.customer_ref,
    ticketCustomerRef: row.ticket_customer,
    order:
      order === null
        ? null
        : { ref: order.ref, status: order.status, currency: order.currency, customerRef: order.customer },
    payment:
      row.captured === null || row.refundable === null || row.payment_currency === null
        ? null
        : {
            capturedMinor: row.captured,
            refundableMinor: row.refundable,
            currency: row.payment_currency,
            spent: {
              refundedMinor: row.refunded ?? 0n,
              elsewhereMinor: row.elsewhere ?? 0n,
              reservedMinor: row.reserved ?? 0n,
            },
          },
    subscription:
      subscription === null
        ? null
        : { ref: subscription.ref, status: subscription.status, customerRef: subscription.customer },
  };
}

// $1 operation id, $2 ids of operations of the same turn. One row or none. The payment is the order's present one.
const SURROUNDINGS = `
SELECT o.kind, o.status, o.filers, o.customer_ref, c.name AS customer_name, o.order_ref, o.subscription_ref, o.amount_minor, o.currency,
  o.at_period_end, o.occurrence, o.fingerprint, o.payment_intent AS bound_intent,
  o.provider_subscription AS bound_subscription,
  CASE WHEN r.id IS NULL THEN NULL ELSE
    jsonb_build_object('ref', r.ref, 'status', r.status, 'currency', r.currency, 'customer', rc.ref) END AS order_now,
  p.payment_intent, p.currency AS payment_currency, p.captured,
  p.refunded, p.refunded_elsewhere AS elsewhere, p.reserved,
  payment_left(p) + CASE WHEN p.other_currency IS NULL THEN coalesce((
    SELECT sum(m.reserved_minor + CASE WHEN m.status = 'CONFIRMED' AND m.kind = 'refund' THEN m.amount_minor ELSE 0 END)
    FROM operations m WHERE m.id = ANY ($2::text[]) AND m.payment_id = p.id), 0) ELSE 0 END::bigint AS refundable,
  CASE WHEN s.id IS NULL THEN NULL ELSE jsonb_build_object('ref', s.ref, 'status', s.status, 'customer', sc.ref,
    'provider_ref', s.provider_ref) END AS subscription_now,
  t.binding AS ticket_binding, tc.ref AS ticket_customer
FROM operations o
JOIN customers c ON c.id = o.customer_id
LEFT JOIN orders r ON r.id = o.order_id
LEFT JOIN customers rc ON rc.id = r.customer_id
LEFT JOIN payments p ON p.order_id = o.order_id
LEFT JOIN subscriptions s ON s.id = o.subscription_id
LEFT JOIN customers sc ON sc.id = s.customer_id
LEFT JOIN tickets t ON t.id = o.ticket_id
LEFT JOIN customers tc ON tc.id = t.customer_id
WHERE o.id = $1`;

/** The fingerprint of what would be sent now: the row's fields, the present landing, the contract in force. */
function freshFingerprint(row: Row, contracts: ContractBook): string {
  return fingerprint(
    {
      kind: row.kind,
      customerRef: row.customer_ref,
      orderRef: row.order_ref,
      subscriptionRef: row.subscription_ref,
      amountMinor: row.amount_minor,
      currency: row.currency,
      atPeriodEnd: row.at_period_end,
      occurrence: row.occurrence,
    },
    {
      paymentIntent: row.bound_intent === null ? null : row.payment_intent,
      providerSubscription:
        row.bound_subscription === null ? null : (row.subscription_now?.provider_ref ?? null),
    },
    contracts[row.kind].version,
  );
}

/**
 * Earlier operations of the same wish: a further occurrence and a successor show them on their card. Those that were denied
 * say by whom. What ended because nobody decided or the world moved on is left out: it says nothing about this one.
 */
export async function readEarlier(on: SqlRunner, operation: Operation): Promise<readonly EarlierOperation[]> {
  const occurrences = Array.from({ length: operation.occurrence }, (_, index) => index + 1);
  const keys = occurrences.map((occurrence) => operationKey({ ...operation, occurrence }));
  const rows = await on.sql<{
    id: string;
    status: string;
    amount_minor: bigint;
    currency: string;
    at: string;
    denied: EarlierOperation["denied"];
  }>("approvals.earlier", EARLIER, [keys, operation.id]);
  return rows.map((row) => ({
    operationId: row.id as OperationId,
    status: row.status,
    amountMinor: row.amount_minor,
    currency: row.currency,
    at: row.at,
    denied: row.denied,
  }));
}

// $1 keys, $2 the operation itself. Up to 20 rows, oldest first.
const EARLIER = `
SELECT e.id, e.status, e.amount_minor, e.currency, to_char(e.created_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') AS at,
  (SELECT jsonb_build_object('by', v.user_id, 'note', v.note,
      'at', to_char(v.at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'))
    FROM approvals a JOIN votes v ON v.approval_id = a.id AND v.verdict = 'deny'
    WHERE a.operation_id = e.id ORDER BY v.at DESC LIMIT 1) AS denied
FROM operations e
WHERE e.key = ANY ($1::text[]) AND e.id <> $2 AND e.status NOT IN ('EXPIRED', 'VOIDED')
ORDER BY e.created_at, e.id LIMIT 20`;

/**
 * Locks operations, then orders, then payments, each in the order of their ids: the lock order of the whole program. They are held
 * when the next statement of the transaction runs.
 */
export function lockWorld(tx: Tx, ids: readonly OperationId[], orderRefs: readonly string[]): void {
  tx.later("approvals.lock_world", LOCK_WORLD, [[...ids], [...orderRefs]]);
}

// $1 operation ids, $2 order references. Each step waits for the one before it to hold all of its rows. Nothing that is read here
// is used: what was waited for may be newer.
const LOCK_WORLD = `
WITH held_operations AS MATERIALIZED (
  SELECT o.id, o.order_id FROM operations o WHERE o.id = ANY ($1::text[]) ORDER BY o.id FOR NO KEY UPDATE
), held_orders AS MATERIALIZED (
  SELECT r.id FROM orders r WHERE (SELECT count(*) FROM held_operations) >= 0
    AND r.id IN (SELECT order_id FROM held_operations UNION SELECT x.id FROM orders x WHERE x.ref = ANY ($2::text[]))
  ORDER BY r.id FOR NO KEY UPDATE
)
SELECT 1 FROM payments p WHERE (SELECT count(*) FROM held_orders) >= 0 AND p.order_id IN (SELECT id FROM held_orders)
ORDER BY p.id FOR NO KEY UPDATE`;
