/** Where a list goes on: the last row's time, as the database writes it, and its id. Opaque to whoever hands it back. */

export function encodeCursor(at: string, id: string): string {
  return Buffer.from(`${at}|${id}`, "utf8").toString("base64url");
}

/** null for null, and for text that is no cursor of ours: the list then begins anew. */
export function decodeCursor(text: string | null): { at: string; id: string } | null {
  if (text === null) return null;
  const match = /^(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d{1,6})?[+-]\d\d(?::\d\d)?)\|(\w{1,64})$/.exec(
    Buffer.from(text, "base64url").toString("utf8"),
  );
  const [, at, id] = match ?? [];
  return at === undefined || id === undefined ? null : { at, id };
}
