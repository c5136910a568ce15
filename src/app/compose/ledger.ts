/** The ledger's context: contracts and timing from the configuration, and what else an end of an operation touches. */
import type { TimingConfig } from "../../config/index.js";
import type { Db, Tx } from "../../db/connect.js";
import { contractBook } from "../../domain/contracts.js";
import type { Operation } from "../../domain/operation.js";
import type { Notices } from "../../domain/ports/notices.js";
import type { Wake } from "../../domain/ports/wake.js";
import type { Seals } from "../../domain/seals.js";
import type { LedgerCtx } from "../../ledger/index.js";
import { runsShowing, wakeWaitingRuns } from "../../runs/index.js";
import { recordSubscriptionCancelled } from "../../shop/index.js";
import { systemIds } from "../system.js";

/** Attempts after which an open outcome is no longer sent again. */
export const MAX_ATTEMPTS = 8;
/** Clocks and buffers between the last look at the lease and the first byte. */
const SEND_MARGIN_MS = 2_000;
/** A prepared operation that nobody drives is due again after this long: its wake-up was lost. */
const PREPARE_GRACE_MS = 2_000;

export function ledgerContext(parts: {
  db: Db;
  notices: Notices<Tx>;
  wake: Wake;
  timing: TimingConfig;
  seals: Seals;
}): LedgerCtx {
  const { timing } = parts;
  return {
    db: parts.db,
    ids: systemIds,
    wake: parts.wake,
    notices: parts.notices,
    contracts: contractBook({ keyTtlMs: timing.providerKeyTtlMs }),
    timing: {
      leaseMs: timing.leaseMs,
      providerTimeoutMs: timing.providerTimeoutMs,
      sendMarginMs: Math.min(SEND_MARGIN_MS, timing.providerTimeoutMs),
      reconcileBaseMs: timing.reconcileBaseMs,
      reconcileMaxMs: timing.reconcileMaxMs,
      quarantineAfterMs: timing.quarantineAfterMs,
      quarantineRepostMs: timing.quarantineRepostMs,
      prepareGraceMs: PREPARE_GRACE_MS,
    },
    hooks: { onSettled, runsShowing },
    seals: parts.seals,
  };
}

/** Runs before the rows of runs: those come last in the lock order. */
async function onSettled(tx: Tx, operation: Operation): Promise<void> {
  if (
    operation.kind === "cancel_subscription" &&
    operation.status === "CONFIRMED" &&
    operation.subscriptionRef !== null
  ) {
    await recordSubscriptionCancelled(tx, {
      subscriptionRef: operation.subscriptionRef,
      atPeriodEnd: operation.atPeriodEnd === true,
    });
  }
  await wakeWaitingRuns(tx, operation.id);
}
