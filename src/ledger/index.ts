/**
 * The ledger: the only writer of operations, attempts, events, totals, `payments.reserved`, `refunded`, `refunded_elsewhere` and `other_currency`,
 * provider evidence, incidents, freeze switches, resolutions and the audit chain.
 *
 * Invariants
 *  1. A row is committed before anything is sent for it.
 *  2. A status moves only along `TRANSITIONS`, in two statements (`transition.ts`; `claim-sql.ts` for DISPATCHED), conditional on
 *     the status and version that were read and, for lease holders, on their token; the event is written by the same statement.
 *     A row that is claimed as it is made (`insert-sql.ts`) has both events and the version of a claimed one.
 *  3. Money is reserved before an operation can be sent, and released only when no attempt can have committed.
 *  4. Nothing is claimed or sent again while its kind is frozen.
 *  5. Events are hashed over their content and their predecessor; the database refuses to change them.
 *  6. No transaction is open across a call to the outside.
 */

export { noteApprovalVoided } from "./approval-facts.js";
export { attemptsOf } from "./attempts.js";
export { auditOperation, exportAudit, verifyAudit } from "./audit.js";
export { sealBlocks } from "./audit-blocks.js";
export { dataIn } from "./audit-check.js";
export { type Authority, authorityOf } from "./authority.js";
export { besideWordText } from "./beside-word.js";
export { checkSend, claim, claimIn, renewLease, restUnsent } from "./claim.js";
export type { LedgerCtx, LedgerHooks, LedgerTiming } from "./context.js";
export { type Contradiction, contradict, reverse, staysRejected, wasClosedKnowing } from "./contradiction.js";
export { recordAsked, recordVote } from "./decision-events.js";
export { type SealedVote, sealVote, UNSEALED_VOTE, voteHolds } from "./decision-seals.js";
export { recordElsewhere } from "./elsewhere.js";
export {
  aliveAgainKey,
  countCompared,
  countedElsewhere,
  knownDead,
  listingContext,
  otherCurrencyOn,
  paymentsWithNews,
  seenAndNotListed,
  takeToCompare,
  unexplainedRefunds,
} from "./elsewhere-reads.js";
export { endedBefore } from "./ended-before.js";
export { deny, doesNotFit, expire, voidOperation } from "./endings.js";
export { eventsOf, storyOf, waitersOf } from "./events.js";
export { evidenceOf, lookAgainKey, openAmong, recordEvidence, shownAndNotListed } from "./evidence.js";
export {
  agreeThaw,
  askThaw,
  endStaleThaws,
  freeze,
  freezeStates,
  KEPT_BY_FREEZE,
  refuseThaw,
  setLiftedBack,
  switchesNotShown,
  switchShown,
  type ThawKept,
  thaw,
} from "./freeze.js";
export { FROZEN_COLUMNS, FROZEN_JOIN, type FrozenRow, frozenOf } from "./frozen-by.js";
export {
  closeIncident,
  countIncidents,
  findIncidents,
  getIncident,
  listIncidents,
  openIncident,
  openIncidentsOf,
} from "./incidents.js";
export { abandon } from "./join.js";
export { executeLocal, type LocalRequest } from "./local.js";
export { confirmedOnWord, lastWord, referenceIsGiven, wordOf } from "./on-word.js";
export { paymentProblems } from "./payment-told.js";
export { personNamed } from "./person-names.js";
export { prepareTurn } from "./prepare.js";
export { endStaleProposals } from "./proposals.js";
export {
  askedAgain,
  findByPrefix,
  getOperation,
  listOperations,
  liveOn,
  openCounts,
  operationByProviderRef,
  requestOf,
} from "./reads.js";
export {
  dueOperations,
  dueToTake,
  makeForgottenDue,
  repostIsDue,
  restQuarantined,
  restUntaken,
  settleReconcile,
  takeDue,
  takeForReconcile,
} from "./reconcile.js";
export { reopen } from "./reopen.js";
export { resend, sendAuthorised } from "./resend.js";
export { answerShown, appliedRetry, getResolution, openResolutionOf } from "./resolution-rows.js";
export { resolve, secondResolve } from "./resolve.js";
export { settle } from "./settle.js";
export { SLOWED_DOWN, slowedDown } from "./slowed-down.js";
export { recordPolicyActivated } from "./subject-events.js";
export { eraseSubject } from "./subjects.js";
export type * from "./types.js";
export { AGREED_ON, REFUSED_BY, SHOWN_SINCE } from "./types.js";
export { tellUnknownPolicy } from "./unknown-policy.js";
