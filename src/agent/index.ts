/** The agent room: drives one run by phase, from rows, at any crash point. */

export { type DriveOutcome, driveRun } from "./drive.js";
export type * from "./planner.js";
export type * from "./ports.js";
