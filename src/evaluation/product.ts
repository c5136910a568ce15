/**
 * The product's ledger, dispatch and reconciler in this process, on a real database and a real wire, for one worker's life. What
 * lies outside is played: people who are who they say, cards that are remembered instead of posted.
 */

import type { ApprovalsContext } from "../approvals/index.js";
import type { EffectContract } from "../domain/contract.js";
import { contractBook } from "../domain/contracts.js";
import type { Clock, Ids } from "../domain/ports/clock.js";
import type { Db, Tx } from "../domain/ports/database.js";
import type { Directory } from "../domain/ports/directory.js";
import type { Logger } from "../domain/ports/logger.js";
import type { CardSubject, Notices } from "../domain/ports/notices.js";
import type { PaymentProvider, VerifyWebhook } from "../domain/ports/payment-provider.js";
import { sealsWith } from "../domain/seals.js";
import type { LedgerCtx, LedgerTiming } from "../ledger/index.js";
import { activePolicy, makeJudge } from "../policy/index.js";
import type { ReconcileCtx } from "../reconcile/index.js";
import { runsShowing } from "../runs/index.js";
import { silent } from "./silent.js";

/** The product's own defaults (README, variables), except the deadline of a call, which each episode chooses. */
export const PRODUCT_TIMING: Omit<LedgerTiming, "providerTimeoutMs"> = {
  leaseMs: 30_000,
  sendMarginMs: 2_000,
  reconcileBaseMs: 2_000,
  reconcileMaxMs: 900_000,
  quarantineAfterMs: 3_600_000,
  quarantineRepostMs: 3_600_000,
  prepareGraceMs: 2_000,
};
const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const MAX_ATTEMPTS = 8;

/** Whoever plays workers on one database knows the same one; nothing real is decided there. */
const SEALS = sealsWith({ secret: "of what is only played", policiesTold: false });

export interface ProductParts {
  readonly db: Db;
  readonly ids: Ids;
  readonly clock: Clock;
  readonly log: Logger;
  readonly provider: PaymentProvider;
  readonly verifyWebhook: VerifyWebhook;
  /** How refunds are recovered. */
  readonly refundContract: EffectContract;
  readonly providerTimeoutMs: number;
  readonly worker: string;
  /** Told of every card that is to be rendered, once its transaction has committed. */
  readonly onCard: (subject: CardSubject) => void;
}

export function inProcessProduct(parts: ProductParts): ReconcileCtx {
  const { db, ids, clock, log } = parts;
  const wake = async (): Promise<void> => {};
  const card = async (tx: Tx, subject: CardSubject): Promise<void> => {
    tx.afterCommit(() => parts.onCard(subject));
  };
  const notices: Notices<Tx> = {
    ...silent,
    touch: card,
    repost: card,
  };
  const ledger: LedgerCtx = {
    db,
    ids,
    wake,
    notices,
    contracts: { ...contractBook({ keyTtlMs: DAY_MS }), refund: parts.refundContract },
    timing: { ...PRODUCT_TIMING, providerTimeoutMs: parts.providerTimeoutMs },
    hooks: { onSettled: async () => {}, runsShowing },
    seals: SEALS,
  };
  const approvals: ApprovalsContext = {
    db,
    ids,
    clock,
    wake,
    notices,
    directory: nobody,
    judge: makeJudge(),
    ledger,
    activePolicy: async (on) => (await activePolicy(on)).policy,
    hooks: { onTurnDecided: async () => {}, onSuccessor: async () => {} },
    log,
  };
  return {
    ...ledger,
    approvals,
    provider: parts.provider,
    verifyWebhook: parts.verifyWebhook,
    localEffect: async () => ({ ok: false, code: "no_local_effect", detail: "There are only refunds here." }),
    log,
    worker: parts.worker,
    reconcile: {
      maxAttempts: MAX_ATTEMPTS,
      concurrency: 4,
      orphanWindowMs: HOUR_MS,
      orphanLagMs: 600_000,
    },
  };
}

/** Refunds of the matrix need nobody's approval. */
const nobody: Directory = {
  person: async () => ({ ok: false, reason: "nobody is here" }),
  members: async () => ({ ok: false, reason: "nobody is here" }),
};
