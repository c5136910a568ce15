/** Rows that the ledger and the approvals would have written, put down directly: these tests are about reading them. */
import { systemIds } from "../../src/app/system.js";
import type { Db } from "../../src/db/connect.js";
import { SHOP_SCOPE, totalScopes } from "../../src/domain/policy/facts.js";

export interface OperationRow {
  id: `op_${string}`;
  orderRef: string;
  customerRef: string;
  status: string;
  amountMinor: bigint;
  currency: string;
  /** Hours ago that it was reserved. */
  hoursAgo: number;
  /** Moved back to the full minute, hour, … (a field of date_trunc). */
  fullest: "microsecond" | "minute" | "hour";
  filers: readonly string[];
  itemRefs: readonly string[];
  predecessorId: string | null;
  /** Reserved, refunded or maybe spent: it has entries. */
  counts: boolean;
}

/** Stores an operation and its entries; what is not said is a confirmed refund of £10.00 an hour ago by U_AGENT. */
export async function putOperation(
  db: Db,
  changes: Partial<OperationRow> & { orderRef: string },
): Promise<string> {
  const row: OperationRow = {
    id: systemIds.next("op_"),
    customerRef: "CUS-1",
    status: "CONFIRMED",
    amountMinor: 1000n,
    currency: "GBP",
    hoursAgo: 1,
    fullest: "microsecond",
    filers: ["U_AGENT"],
    itemRefs: [],
    predecessorId: null,
    counts: true,
    ...changes,
  };
  await db.sql(
    undefined,
    `INSERT INTO operations (id, key, key_live, occurrence, kind, status, customer_id, customer_ref, order_id, order_ref, payment_id,
       amount_minor, currency, fingerprint, contract_version, idempotency_key, policy_hash, decision, filers, item_refs,
       predecessor_id, provider_ref, reserved_minor)
     SELECT $1, $1, false, 1, 'refund', $2::text, o.customer_id, $3, o.id, o.ref, p.id, $4::bigint, $5, 'f', '1', $1, a.hash, '{}', $6, $7, $8, 're',
       CASE WHEN $2::text = 'PREPARED' THEN $4::bigint ELSE 0 END
     FROM orders o JOIN payments p ON p.order_id = o.id CROSS JOIN active_policy a WHERE o.ref = $9`,
    [
      row.id,
      row.status,
      row.customerRef,
      row.amountMinor,
      row.currency,
      row.filers,
      row.itemRefs,
      row.predecessorId,
      row.orderRef,
    ],
  );
  if (row.counts) {
    const scopes = totalScopes(row);
    if (!scopes.includes(SHOP_SCOPE)) throw new Error("an operation always counts for the shop");
    await db.sql(undefined, "INSERT INTO total_scopes SELECT unnest($1::text[]) ON CONFLICT DO NOTHING", [
      scopes,
    ]);
    await db.sql(
      undefined,
      `WITH m AS MATERIALIZED (
         SELECT date_trunc($6, countersign_now() - make_interval(secs => $5::float8 * 3600), 'UTC') AS at)
       INSERT INTO total_entries (scope, operation_id, kind, currency, amount_minor, at)
       SELECT s, $2, 'refund', $3, $4::bigint, m.at FROM m CROSS JOIN unnest($1::text[]) s`,
      [scopes, row.id, row.currency, row.amountMinor, row.hoursAgo, row.fullest],
    );
  }
  return row.id;
}

/** Stores the denied approval of an operation, with the vote that denied it. */
export async function putDenial(db: Db, operationId: string, by: string, note: string): Promise<void> {
  const id = systemIds.next("apr_");
  await db.sql(
    undefined,
    `INSERT INTO approvals (id, operation_id, state, binding, binding_hash, policy_hash, answer_hash, role, approvers_needed,
       expires_at, decided_at, deny_note)
     SELECT $1, $2, 'DENIED', '{}', 'h', hash, 'h', 'supervisor', 1, countersign_now(), countersign_now(), $3 FROM active_policy`,
    [id, operationId, note],
  );
  await db.sql(
    undefined,
    `INSERT INTO votes (id, approval_id, person, user_id, verdict, role, card_version) VALUES ($1, $1, $2, $2, 'deny', 'supervisor', 1)`,
    [id, by],
  );
}
