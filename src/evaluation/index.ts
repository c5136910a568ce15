/** Evaluation: the product put through faults, tickets and load, and counted from outside. */
export { runLists } from "./bench/ledger/lists.js";
export {
  type LedgerBenchReport,
  type ListsReport,
  ledgerBenchReport,
  listsReport,
} from "./bench/ledger/report.js";
export { runLedgerBench } from "./bench/ledger/run.js";
export { listenForReleases, type Releases } from "./bench/resume/releases.js";
export {
  type Clicked,
  type HeldRun,
  heldRuns,
  leftOver,
  measureResume,
  type ResumeReport,
} from "./bench/resume/resume.js";
export { fill } from "./bench/shared/fill.js";
export type { Spread } from "./bench/shared/spread.js";
export { type AckReport, measureAcks } from "./bench/slack/acks.js";
export { type MatrixRun, mergeRuns, runMatrix } from "./faults/matrix.js";
export { excusedLines, type MatrixReport, matrixReport, reportTables } from "./faults/report.js";
export { matrixRunSchema } from "./faults/stored-run.js";
export { type MatrixPorts, openWorld } from "./faults/world.js";
export { type OracleReport, replayOracle } from "./oracle/replay.js";
export type { DeskPorts } from "./tickets/desk.js";
export {
  evaluateStatic,
  evaluateTickets,
  type PlayedReport,
  type StaticReport,
} from "./tickets/evaluate.js";
export type { TicketResult } from "./tickets/judge.js";
export { playWorstCase } from "./worst-case/play.js";
export type { WorstCaseReport } from "./worst-case/report.js";
