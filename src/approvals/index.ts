/**
 * Approvals: the only writer of `approvals` and `votes`.
 *
 * A hold arms an approval (`request`), people vote (`decide`, `undo`), and when the last sibling of a held turn is decided
 * the turn is released as a whole (`releaseTurn`) or asks again where the world has moved on.
 */
export { attendDue, attendOne } from "./attend.js";
export { bindingWasConfirmed } from "./binding-confirmed.js";
export {
  approvalOfOperation,
  type Replaced,
  readVoters,
  replaceDrifted,
  stillHolds,
} from "./claim.js";
export type { ApprovalsContext, ApprovalsHooks } from "./context.js";
export { asItStands, decide, lookBeforeDeny, readAhead, undo } from "./decide.js";
export { ownerGone } from "./gone.js";
export { type ApprovalPage, listPending, type PendingFor, pendingFor } from "./list.js";
export { type AskedTurn, type HeldTurn, type ReleaseMore, releaseTurn } from "./release.js";
export { request } from "./request.js";
export { getApproval, readTurn } from "./rows.js";
export { decisionOf, standingOf, successorOf } from "./standing.js";
export type {
  ApprovalRequest,
  ApprovalStanding,
  DecideClick,
  DecidedTurn,
  DecideOutcome,
  DecisionWhoWhen,
  Holds,
  ListedApproval,
  MayDeny,
  PersonAhead,
  ReadPeople,
  ReleaseOutcome,
  TurnCall,
  UndoClick,
  VoterReadings,
} from "./types.js";
export { changesSince } from "./world.js";
