/** Gathers what `explain.ts` needs of one operation: its row, attempts and switches, at the database's time. */
import type { Operation } from "../domain/operation.js";
import {
  attemptsOf,
  endedBefore,
  FROZEN_COLUMNS,
  FROZEN_JOIN,
  type FrozenRow,
  frozenOf,
} from "../ledger/index.js";
import type { LookContext } from "./context.js";
import type { Explained } from "./explain.js";
import { REFERENCE_IS_GIVEN } from "./reference-given.js";

export interface Extra extends Explained {
  readonly customerName: string;
  /** Its reference is only what a person named. */
  readonly referenceGiven: boolean;
  /** What is counted as refunded elsewhere on its payment, in its own currency; null: nothing. */
  readonly refundedElsewhere: { readonly amountMinor: bigint; readonly currency: string } | null;
}

/** Reads only, one moment after another: what is shown may be a moment old, what is decided is checked again. */
export async function explained(ctx: LookContext, operation: Operation): Promise<Extra> {
  const [row] = await ctx.db.sql<
    FrozenRow & {
      now: Date;
      last_send_ended_at: Date | null;
      due_at: Date | null;
      lease_until: Date | null;
      customer_name: string;
      reference_given: boolean;
      ended_before: boolean;
      elsewhere: bigint | null;
      elsewhere_currency: string | null;
    }
  >(
    "ops.explained",
    `SELECT countersign_now() AS now, o.last_send_ended_at, o.due_at, o.lease_until, c.name AS customer_name, ${REFERENCE_IS_GIVEN} AS reference_given,
       ${endedBefore("o.id")} AS ended_before,
       p.refunded_elsewhere AS elsewhere, p.currency AS elsewhere_currency,
       ${FROZEN_COLUMNS}
     FROM operations o JOIN customers c ON c.id = o.customer_id LEFT JOIN payments p ON p.id = o.payment_id ${FROZEN_JOIN} WHERE o.id = $1`,
    [operation.id],
  );
  if (row === undefined) throw new Error(`operation ${operation.id} is gone`);
  const { timing, contracts } = ctx.ledger;
  return {
    operation,
    contract: contracts[operation.kind],
    attempts: await attemptsOf(ctx.db, operation.id),
    now: row.now,
    lastSendEndedAt: row.last_send_ended_at,
    nextLookAt: row.due_at,
    leaseUntil: row.lease_until,
    frozen: frozenOf(row),
    timing,
    maxAttempts: ctx.maxAttempts,
    endedBefore: row.ended_before,
    customerName: row.customer_name,
    referenceGiven: row.reference_given,
    refundedElsewhere:
      row.elsewhere === null || row.elsewhere === 0n || row.elsewhere_currency === null
        ? null
        : { amountMinor: row.elsewhere, currency: row.elsewhere_currency },
  };
}
