/** Opaque positions in lists that are ordered by time and id. */
export interface Position {
  /** UTC with microseconds, or `infinity`. */
  readonly at: string;
  readonly id: string;
}

/** Before the first row of any list: greater than every id. */
const START: Position = { at: "infinity", id: "~" };

export const encodeCursor = (position: Position): string =>
  Buffer.from(`${position.at} ${position.id}`, "utf8").toString("base64url");

/** Reads a cursor; one that is none of ours begins the list anew. */
export function decodeCursor(cursor: string | null): Position {
  if (cursor === null) return START;
  const match = /^(\d{4}-\d\d-\d\dT[\d:.]+Z) ([a-z]+_[0-9a-f]{32})$/.exec(
    Buffer.from(cursor, "base64url").toString("utf8"),
  );
  const [, at, id] = match ?? [];
  return at === undefined || id === undefined ? START : { at, id };
}
