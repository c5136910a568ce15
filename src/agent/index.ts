/** The agent room: drives one run by phase, from rows, at any crash point. */

export { type DriveOutcome, driveRun } from "./drive.js";
export { askFurther, type FurtherAsked } from "./further.js";
export type * from "./planner.js";
export { type MessagesApiOptions, messagesApiPlanner } from "./planners/messages-api.js";
export { noPlanner } from "./planners/none.js";
export { scriptedPlanner } from "./planners/scripted.js";
export type * from "./ports.js";
export { type ReleasedAtOnce, releaseAtOnce, releaseWithVote } from "./release-at-once.js";
export { TOOL_DEFINITIONS, TOOL_NAMES } from "./tools/catalogue.js";
