/**
 * The ledger: the only writer of operations, attempts, events, totals, `payments.reserved` and `payments.refunded`, provider
 * evidence, incidents, freeze switches, resolutions and the audit chain.
 *
 * Invariants
 *  1. A row is committed before anything is sent for it.
 *  2. A status moves only along `TRANSITIONS`, in one place (`transition.ts`), conditional on the status and version that were
 *     read and, for lease holders, on their token; its event is written by the same statement.
 *  3. Money is reserved before an operation can be sent, and released only when no attempt can have committed.
 *  4. Nothing is claimed or sent again while its kind is frozen.
 *  5. Events are hashed over their content and their predecessor; the database refuses to change them.
 */
import type { Tx } from "../db/connect.js";
import { claimOn } from "./claim.js";
import type { LedgerCtx } from "./context.js";
import type { ClaimRequest, ClaimResult } from "./types.js";

export { eraseSubject, eventsOf, exportAudit, sealBlocks, verifyAudit } from "./audit.js";
export { checkSend, claim, renewLease } from "./claim.js";
export type { LedgerCtx, LedgerHooks, LedgerTiming } from "./context.js";
export { abandon, contradict, deny, expire, reverse, voidOperation } from "./ends.js";
export {
  closeIncident,
  getIncident,
  listIncidents,
  openIncident,
  recordElsewhere,
  recordEvidence,
} from "./evidence.js";
export { askThaw, freeze, freezeStates, thaw } from "./freeze.js";
export { listingContext } from "./listing-context.js";
export { executeLocal } from "./local.js";
export { prepareTurn } from "./prepare.js";
export {
  attemptsOf,
  dueOperations,
  evidenceOf,
  findByPrefix,
  getOperation,
  knownReferences,
  listOperations,
  liveOn,
  openCounts,
  operationByProviderRef,
  requestOf,
  waitersOf,
} from "./reads.js";
export { resend, settleReconcile, takeDue, takeForReconcile } from "./reconcile.js";
export { getResolution, openResolutionOf, resolve, secondResolve, sendAuthorised } from "./resolve.js";
export { settle } from "./settle.js";
export type * from "./types.js";

/** As `claim`, inside the caller's transaction: PREPARE and claim in one commit. The guard is not offered here. */
export function claimIn(tx: Tx, ctx: LedgerCtx, request: Omit<ClaimRequest, "guard">): Promise<ClaimResult> {
  return claimOn(tx, ctx, request);
}
