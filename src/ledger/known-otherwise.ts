/** A reference that a person names, by what answers and evidence have told of it. */
import type { SqlRunner } from "../db/connect.js";
import { sameCurrency } from "../domain/as-asked.js";
import type { Operation } from "../domain/operation.js";

/** $1 operation, $2 reference. What is known of it, the newest first: as an answer, as an effect, or as made elsewhere. */
const KNOWN_OF = `
SELECT k.target, k.amount, k.currency FROM (
  SELECT e.at, COALESCE(e.payload ->> 'target', e.payload ->> 'paymentIntent', e.payload #>> '{effect,target}') AS target,
    COALESCE(e.payload ->> 'amountMinor', e.payload ->> 'amount', e.payload #>> '{effect,amountMinor}') AS amount,
    COALESCE(e.payload ->> 'currency', e.payload #>> '{effect,currency}') AS currency
  FROM provider_evidence e WHERE e.provider_ref = $2
  UNION ALL
  SELECT a.finished_at, a.evidence #>> '{effect,target}', a.evidence #>> '{effect,amountMinor}', a.evidence #>> '{effect,currency}'
  FROM attempts a WHERE a.operation_id = $1 AND a.provider_ref = $2
) k ORDER BY k.at DESC NULLS LAST`;

/**
 * Whether a reference that a person names, and that the provider does not show on the operation's payment now, was shown as something else
 * than was asked for: on another payment, of another amount or in another currency. By the newest word of each.
 */
export async function isKnownOtherwise(
  on: SqlRunner,
  { id, paymentIntent, amountMinor, currency }: Operation,
  ref: string,
): Promise<boolean> {
  const known = await on.sql<{ target: string | null; amount: string | null; currency: string | null }>(
    "ledger.known_of",
    KNOWN_OF,
    [id, ref],
  );
  const newest = (field: "target" | "amount" | "currency"): string | null =>
    known.map((one) => one[field]).find((word) => word !== null && word !== "") ?? null;
  const [target, amount, other] = [newest("target"), newest("amount"), newest("currency")];
  return (
    (target !== null && target !== paymentIntent) ||
    (amount !== null && amount !== String(amountMinor)) ||
    (other !== null && !sameCurrency({ currency: other }, { currency }))
  );
}
