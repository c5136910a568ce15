/**
 * The runs room: the only writer of tickets, runs, turns, tool calls, notes and spend.
 *
 * Lock order: this room's rows come last (approval, operation, order, payment, totals, then ticket, then run, then the day's
 * spend), so a transaction that also touches the ledger writes here at its end.
 */

export type * from "./api.js";
export { changeBinding, confirmBinding } from "./binding.js";
export { type BudgetName, failReservation, type Reservation, reserveCall, spentToday } from "./budget.js";
export { type EndRun, endRun } from "./ending.js";
export {
  countTrouble,
  fence,
  type GiveBack,
  giveBack,
  LeaseLost,
  leaseRun,
  renewLease,
  setRunning,
} from "./lease.js";
export {
  type AskedFor,
  askedBy,
  currentRun,
  dueRuns,
  findRuns,
  findTicket,
  getRun,
  getTicket,
  type ListedRun,
  listRuns,
  makeForgottenRunsDue,
  type RunList,
  runsOfFiler,
  ticketOfThread,
  viewRun,
} from "./read.js";
export { requestCancel, threadReply } from "./replies.js";
export { isBlank, needsAnAnswer, startCodeRun, startRun, startRunIn } from "./start.js";
export { followSuccessor } from "./successor.js";
export { fileTicket, setTicketThread } from "./tickets.js";
export { type Trace, type TracedOperation, traceRun } from "./trace.js";
export {
  type CallResult,
  type CallUpdate,
  decideCall,
  finishCall,
  handOnReleased,
  moveTurn,
  type NewCall,
  type NewTurn,
  recordTurn,
  unholdCall,
} from "./turns.js";
export type * from "./types.js";
export { runsShowing, wakeRun, wakeWaitingRuns } from "./wakeups.js";
