/** From what a person typed to one operation, or to a sentence and what they may have meant. */

import { isOperationId, type OperationId } from "../domain/ids.js";
import type { Operation } from "../domain/operation.js";
import type { Db } from "../domain/ports/database.js";
import { counted } from "../domain/text/counted.js";
import { cutText } from "../domain/text/cut.js";
import { findByPrefix, getOperation } from "../ledger/index.js";
import type { Suggestion, Unresolved } from "./types.js";

/** Fewer characters behind `op_` than this name nothing in particular. */
const MIN_PREFIX = 4;
const SUGGESTIONS = 5;

export type Found = { readonly outcome: "found"; readonly operation: Operation } | Unresolved;

/** Where to look for the right one. */
const LOOK = "/ops list shows the newest ones.";

/** Which of all operations of what was typed is the one that is meant; null: that cannot be told. */
export type Meant = (operations: readonly Operation[], name: string) => Operation | null;

/** Whoever only looks is shown the one that there is; what was given up and asked for anew is told as that one. */
export const theOnlyOne: Meant = (operations, name) => {
  const [only, ...more] = operations.filter((one) => !wasAskedAnew(one, operations));
  return only !== undefined && more.length === 0 && isNamed(only, name) ? only : null;
};

const wasAskedAnew = ({ id, key, status }: Operation, operations: readonly Operation[]): boolean =>
  status === "VOIDED" && operations.some((next) => next.key === key && next.id > id);

/** An order's only operation that a verb fits; where there is but one, that one, and the verb says why it does not fit. */
export const onlyOneThat =
  (fits: (operation: Operation) => boolean): Meant =>
  (operations, name) => {
    const fitting = operations.filter(fits);
    const [only, ...more] = fitting.length === 0 ? operations : fitting;
    return only !== undefined && more.length === 0 && isOfOrder(only, name) ? only : null;
  };

/** Reads a full id, or its beginning; `op_` may be left out. By any other name, that is found which `meant` says. */
export async function findOperation(db: Db, typed: string, meant: Meant = () => null): Promise<Found> {
  const ref = withPrefix(typed.trim().toLowerCase());
  if (!/^op_[0-9a-f]{0,32}$/.test(ref)) {
    return (
      (await byOtherName(db, typed, meant)) ??
      unresolved(
        `“${short(typed)}” is no operation id: those are op_ and then digits and letters a to f. No operation is of such an order or reference. ${LOOK}`,
      )
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
    const other = ref === typed.trim().toLowerCase() ? null : await byOtherName(db, typed, meant);
    if (other !== null) return other;
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

/**
 * $1 as typed, $2 rows. Operations of an order, a subscription or a payment by any of its names, with this reference, or with evidence
 * of it; and for a refund made elsewhere, those of its payment.
 */
const BY_OTHER_NAME = `
SELECT f.id FROM (
  SELECT o.id FROM operations o WHERE o.order_id = ANY (ARRAY(
    SELECT id FROM orders WHERE ref IN ($1, upper($1))
    UNION SELECT order_id FROM payments WHERE payment_intent = $1
    UNION SELECT order_id FROM payments WHERE payment_intent = (
      SELECT e.payload ->> 'paymentIntent' FROM provider_evidence e WHERE e.dedupe_key = 'elsewhere:' || $1)))
  UNION SELECT o.id FROM operations o WHERE o.subscription_id = ANY (ARRAY(
    SELECT id FROM subscriptions WHERE ref IN ($1, upper($1))
    UNION SELECT id FROM subscriptions WHERE provider_ref = $1))
  UNION SELECT o.id FROM operations o WHERE o.provider_ref = $1
  UNION SELECT e.operation_id FROM provider_evidence e WHERE e.provider_ref = $1 AND e.operation_id IS NOT NULL
) f ORDER BY f.id DESC LIMIT $2::int`;

/** What people have at hand where they have no id: they are shown what it may be. null: nothing is. */
async function byOtherName(db: Db, typed: string, meant: Meant): Promise<Found | null> {
  const name = typed.trim();
  const { ids, more } = await operationsNamed(db, name);
  if (ids.length === 0) return null;
  const near = await suggested(db, ids);
  const operation = more
    ? null
    : meant(
        near.map((one) => one.operation),
        name,
      );
  if (operation !== null) return { outcome: "found", operation };
  const many = more ? `The newest ${SUGGESTIONS} of more operations` : counted(ids.length, "operation");
  return unresolved(
    `“${short(name)}” is no operation id. ${many} of that order, payment or reference; take the id of the one that is meant:`,
    near,
  );
}

/** By its own order, payment, subscription or reference; a refund that somebody else made on its payment is none of it. */
const isNamed = (operation: Operation, name: string): boolean =>
  [
    operation.orderRef,
    operation.subscriptionRef,
    operation.paymentIntent,
    operation.providerSubscription,
    operation.providerRef,
  ].some(isCalled(name));

/** By its own order or subscription, as the shop writes them. */
const isOfOrder = ({ orderRef, subscriptionRef }: Operation, name: string): boolean =>
  [orderRef, subscriptionRef].some(isCalled(name));

const isCalled =
  (name: string) =>
  (own: string | null): boolean =>
    own === name || own === name.toUpperCase();

/** The newest operations of an order, a subscription, a payment or a reference; `more`: there are others. */
export async function operationsNamed(
  db: Db,
  name: string,
): Promise<{ readonly ids: readonly OperationId[]; readonly more: boolean }> {
  const rows = await db.sql<{ id: OperationId }>("ops.by_other_name", BY_OTHER_NAME, [name, SUGGESTIONS + 1]);
  return { ids: rows.slice(0, SUGGESTIONS).map(({ id }) => id), more: rows.length > SUGGESTIONS };
}

/** Operations that share the longest beginning of at least `MIN_PREFIX` characters: a slip at the end of an id. */
async function relatives(db: Db, ref: string): Promise<readonly Suggestion[]> {
  for (let length = ref.length - 1; length >= "op_".length + MIN_PREFIX; length -= 4) {
    const ids = await findByPrefix(db, ref.slice(0, length), { limit: SUGGESTIONS });
    if (ids.length > 0) return suggested(db, ids);
  }
  return [];
}

type Near = Extract<Suggestion, { kind: "operation" }>;

async function suggested(db: Db, ids: readonly OperationId[]): Promise<readonly Near[]> {
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
