/** Opaque positions in lists that are ordered by a time and an id. */

import { CountersignError } from "./errors.js";
import { cutText } from "./text/cut.js";

export interface Position {
  /** UTC with microseconds, or `infinity`. */
  readonly at: string;
  readonly id: string;
}

/** Before the first row of a list that runs backwards: later than every time, greater than every id. */
export const NEWEST: Position = { at: "infinity", id: "~" };

export const encodeCursor = (position: Position): string =>
  Buffer.from(`${position.at} ${position.id}`, "utf8").toString("base64url");

/**
 * The position that a cursor names; null: from the beginning.
 * @throws CountersignError `bad_cursor` when no list has given it out
 */
export function decodeCursor(cursor: string | null): Position | null {
  if (cursor === null) return null;
  const match = /^(\d{4}-\d\d-\d\dT[\d:.]+Z) ([a-z]+_[0-9a-f]{32})$/.exec(
    Buffer.from(cursor, "base64url").toString("utf8"),
  );
  const [, at, id] = match ?? [];
  if (at === undefined || id === undefined) {
    throw new CountersignError(
      "bad_cursor",
      `"${cutText(cursor, 80)}" is no page of this list. Take what the last page named as the next, as it stands.`,
    );
  }
  return { at, id };
}
