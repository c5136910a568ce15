/** The agent room: drives one run by phase, from rows, at any crash point. */
export type * from "./planner.js";
export type * from "./ports.js";
