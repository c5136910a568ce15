/**
 * Approvals: the only writer of `approvals` and `votes`.
 *
 * A hold arms an approval (`request`), people vote (`decide`, `undo`), and when the last sibling of a held turn is decided
 * the turn is released as a whole (`releaseTurn`) or asks again where the world has moved on.
 */
export type { ApprovalsContext, ApprovalsHooks } from "./context.js";
export type {
  ApprovalRequest,
  ApprovalStanding,
  DecideClick,
  DecideOutcome,
  DecisionWhoWhen,
  Holds,
  ListedApproval,
  ReleaseOutcome,
  TurnCall,
  UndoClick,
  VoterReadings,
} from "./types.js";
