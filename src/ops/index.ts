/** Use cases behind on-call's commands and cards. */
export type * from "./types.js";
