/** Numbers of this room; each comment says what goes wrong with another value. */

/** Oldest reading of a person at a click and at a turn's release (CONTRACT §4). Longer: a role taken away still signs. */
export const CLICK_READING_MAX_AGE_MS = 5_000;
/** Oldest reading of the voters at the claim (CONTRACT §4). */
export const CLAIM_READING_MAX_AGE_MS = 60_000;
/** Readings for the question whether anybody could decide; nothing is granted on them. */
export const GATE_READING_MAX_AGE_MS = 60_000;
/** Members of a role that are read one by one to find enough who could decide. More: a large group costs a call each. */
export const GATE_MEMBERS_READ = 50;
/** When Slack cannot be asked whether the gate can be satisfied, ask again after this. */
export const GATE_RETRY_MS = 60_000;
/** How often a release starts again because votes or readings changed under it, before it gives up for now. */
export const RELEASE_TRIES = 5;
/** Longest note that is kept, in characters. */
export const NOTE_MAX_CHARS = 3_000;
/** Rows of a list when the caller names no limit. */
export const LIST_LIMIT = 20;
/** While nobody could decide, look again after this: somebody may have been added to the role. */
export const GATE_RECHECK_MS = 600_000;
/** A row whose attention failed is left alone for this long, so that it does not hide the others. */
export const ATTEND_RETRY_MS = 60_000;
