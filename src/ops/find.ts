/** From what a person typed to one operation, or to a sentence and what they may have meant. */

import { isOperationId, type OperationId } from "../domain/ids.js";
import type { Operation } from "../domain/operation.js";
import type { Db } from "../domain/ports/database.js";
import { cutText } from "../domain/text/cut.js";
import { findByPrefix, getOperation } from "../ledger/index.js";
import type { Suggestion, Unresolved } from "./types.js";

/** Fewer characters behind `op_` than this name nothing in particular. */
const MIN_PREFIX = 4;
const SUGGESTIONS = 5;

export type Found = { readonly outcome: "found"; readonly operation: Operation } | Unresolved;

/** Where to look for the right one. */
const LOOK = "/ops list shows the newest ones.";

/** Reads a full id, or its beginning; `op_` may be left out. */
export async function findOperation(db: Db, typed: string): Promise<Found> {
  const ref = withPrefix(typed.trim().toLowerCase());
  if (!/^op_[0-9a-f]{0,32}$/.test(ref)) {
    return unresolved(
      `“${short(typed)}” is no operation id: those are op_ and then digits and letters a to f. ${LOOK}`,
    );
  }
  if (isOperationId(ref)) {
    const operation = await getOperation(db, ref);
    if (operation !== null) return { outcome: "found", operation };
    return nothingNamed(`There is no operation “${ref}”.`, await relatives(db, ref));
  }
  if (ref.length < "op_".length + MIN_PREFIX) {
    return unresolved(
      `“${short(typed)}” is too short to name one operation: give at least ${MIN_PREFIX} characters behind op_. ${LOOK}`,
    );
  }
  const ids = await findByPrefix(db, ref, { limit: SUGGESTIONS + 1 });
  const [only] = ids;
  if (only === undefined) {
    return nothingNamed(`No operation begins with “${ref}”.`, await relatives(db, ref));
  }
  if (ids.length > 1) {
    const count = ids.length > SUGGESTIONS ? `More than ${SUGGESTIONS}` : String(ids.length);
    return unresolved(
      `${count} operations begin with “${ref}”; add a few characters.`,
      await suggested(db, ids.slice(0, SUGGESTIONS)),
    );
  }
  const operation = await getOperation(db, only);
  return operation === null
    ? nothingNamed(`There is no operation “${only}”.`, [])
    : { outcome: "found", operation };
}

/** Operations that share the longest beginning of at least `MIN_PREFIX` characters: a slip at the end of an id. */
async function relatives(db: Db, ref: string): Promise<readonly Suggestion[]> {
  for (let length = ref.length - 1; length >= "op_".length + MIN_PREFIX; length -= 4) {
    const ids = await findByPrefix(db, ref.slice(0, length), { limit: SUGGESTIONS });
    if (ids.length > 0) return suggested(db, ids);
  }
  return [];
}

async function suggested(db: Db, ids: readonly OperationId[]): Promise<readonly Suggestion[]> {
  const operations = await Promise.all(ids.map((id) => getOperation(db, id)));
  return operations.flatMap((operation) => (operation === null ? [] : [{ kind: "operation", operation }]));
}

const nothingNamed = (sentence: string, near: readonly Suggestion[]): Unresolved =>
  unresolved(`${sentence} ${near.length === 0 ? LOOK : "Meant may be:"}`, near);

function withPrefix(text: string): string {
  return /^[0-9a-f]+$/.test(text) ? `op_${text}` : text;
}

const unresolved = (sentence: string, suggestions: readonly Suggestion[] = []): Unresolved => ({
  outcome: "unresolved",
  sentence,
  suggestions,
});

const short = (text: string): string => cutText(text, 61);
