/** What the ledger knows about a target, so that a provider's list of it can be judged. */
import type { Db, Tx } from "../db/connect.js";
import type { OperationId } from "../domain/ids.js";
import type { ListingContext } from "../domain/judge-listing.js";
import type { Operation } from "../domain/operation.js";

/**
 * Context for judging a listing about one operation. `listed` are the references of the listing: those that were recorded as
 * made elsewhere before the operation could have made them are told apart from news.
 */
export async function listingContext(
  db: Db | Tx,
  operation: Operation,
  listed: readonly string[],
): Promise<ListingContext> {
  const siblings =
    operation.orderRef === null
      ? await db.sql<{ id: OperationId; ref: string | null }>(
          "ledger.listing-siblings-subscription",
          "SELECT id, provider_ref AS ref FROM operations WHERE provider_subscription = $1",
          [operation.providerSubscription],
        )
      : await db.sql<{ id: OperationId; ref: string | null }>(
          "ledger.listing-siblings-order",
          `SELECT o.id, o.provider_ref AS ref FROM operations o JOIN orders r ON r.id = o.order_id WHERE r.ref = $1`,
          [operation.orderRef],
        );
  const [payment] = await db.sql<{ captured: bigint }>(
    "ledger.listing-captured",
    "SELECT captured FROM payments WHERE payment_intent = $1",
    [operation.paymentIntent],
  );
  const seen = await db.sql<{ ref: string }>(
    "ledger.listing-seen",
    `SELECT DISTINCT provider_ref AS ref FROM provider_evidence
      WHERE provider_ref = ANY ($1) AND operation_id IS NULL AND at < $2`,
    [listed, operation.firstClaimedAt ?? operation.createdAt],
  );
  const known = new Map<string, OperationId>();
  for (const { id, ref } of siblings) if (ref !== null) known.set(ref, id);
  return {
    known,
    operations: new Set(siblings.map((sibling) => sibling.id)),
    seenBefore: new Set(seen.map((row) => row.ref)),
    capturedMinor: payment?.captured ?? null,
  };
}
