/**
 * Whether the payment of a refund that is about to be sent says what its operations and the log say. A row that somebody set back by hand
 * would let more leave than was paid.
 */
import type { SqlRunner } from "../db/connect.js";
import type { OperationId } from "../domain/ids.js";
import { dataIn } from "./audit-check.js";
import { confirmedSum, reservedSum } from "./audit-sums.js";

/** $1 operation. Everything of one moment: each change writes the payment with what it counts. */
const PAYMENT = `
SELECT p.id IS NOT NULL AND p.order_id = o.order_id AS own, p.reserved, p.refunded, p.refunded_elsewhere, p.other_currency, s.set_aside, s.done,
       e.body
FROM operations o LEFT JOIN payments p ON p.id = o.payment_id
  LEFT JOIN LATERAL (
    SELECT COALESCE(${reservedSum("a")}, 0)::bigint AS set_aside, COALESCE(${confirmedSum("a")}, 0)::bigint AS done
    FROM operations a WHERE a.order_id = o.order_id AND a.payment_id = p.id) s ON true
  LEFT JOIN LATERAL (
    SELECT v.body FROM operation_events v WHERE v.subject = 'payment:' || p.id AND v.type = 'refunded_elsewhere' ORDER BY v.seq DESC LIMIT 1
  ) e ON true
WHERE o.id = $1 AND o.kind = 'refund'`;

interface Row {
  own: boolean;
  reserved: bigint;
  refunded: bigint;
  refunded_elsewhere: bigint;
  other_currency: string | null;
  set_aside: bigint;
  done: bigint;
  body: string | null;
}

/** A sentence for each thing that does not hold; empty: it says the same, or the operation is no refund. */
export async function paymentProblems(on: SqlRunner, id: OperationId): Promise<string[]> {
  const [row] = await on.sql<Row & Record<string, unknown>>("ledger.payment_told", PAYMENT, [id]);
  if (row === undefined) return [];
  if (!row.own) return ["its payment is not its order's"];
  const sums = row.reserved === row.set_aside && row.refunded === row.done;
  return [
    ...(sums ? [] : ["what its payment has set aside and refunded is not the sum of its operations"]),
    ...(isElsewhereTold(row)
      ? []
      : ["what counts as refunded elsewhere on its payment is not what the log tells"]),
  ];
}

function isElsewhereTold({ refunded_elsewhere: minor, other_currency: other, body }: Row): boolean {
  const told = body === null ? {} : dataIn(body);
  return String(minor) === String(told["minor"] ?? 0) && other === (told["otherCurrency"] ?? null);
}
