/** What the room needs from outside: the ledger's context, the approvals' for the last look, and the adapters through ports. */
import type { ApprovalsContext } from "../approvals/index.js";
import type { Operation } from "../domain/operation.js";
import type { Tx } from "../domain/ports/database.js";
import type { Logger } from "../domain/ports/logger.js";
import type { PaymentProvider, VerifyWebhook } from "../domain/ports/payment-provider.js";
import type { LedgerCtx } from "../ledger/index.js";

/** An effect in our own database: written in the transaction of its operation. */
export type LocalEffect = (
  tx: Tx,
  operation: Operation,
) => Promise<{ ok: true; ref: string } | { ok: false; code: string; detail: string }>;

export interface DispatchCtx extends LedgerCtx {
  readonly approvals: ApprovalsContext;
  readonly provider: PaymentProvider;
  readonly verifyWebhook: VerifyWebhook;
  readonly localEffect: LocalEffect;
  readonly log: Logger;
  /** Names this process in leases and attempts. */
  readonly worker: string;
}
