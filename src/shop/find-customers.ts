/** Finding people: by reference, address or part of a name; and the customer that a ticket's text is about. */
import type { SqlRunner } from "../db/connect.js";
import { findReferences, normalEmail, plainSpelling, referenceSpellings } from "../domain/text/references.js";
import type { Customer } from "./types.js";

/** Fewer letters name half the shop, and no index helps to find them: they are looked up as a whole reference only. */
const MIN_PART_LENGTH = 3;
const MAX_FOUND = 10;

export interface FoundCustomers {
  readonly customers: readonly Customer[];
  /** There are more than are listed. */
  readonly more: boolean;
}

/**
 * Customers whose reference is `query`, whose e-mail contains it or whose name contains it (case, accents and
 * typographic variants do not matter). All that fit, exact ones first: an ambiguous query is answered with everybody it may mean.
 */
export async function findCustomers(db: SqlRunner, query: string): Promise<FoundCustomers> {
  const text = plainSpelling(query).trim();
  const part = text.length < MIN_PART_LENGTH ? null : `%${likeText(text.toLowerCase())}%`;
  const rows = await db.sql<Customer>(
    "shop.find-customers",
    `SELECT id, ref, name, email FROM customers
     WHERE ref = ANY($1) OR email_normal LIKE $2 OR plain_name(name) LIKE plain_name($2)
     ORDER BY (ref = ANY($1)) DESC, (email_normal = $3) DESC, (plain_name(name) = plain_name($3)) DESC, name, ref LIMIT $4`,
    [referenceSpellings(text), part, normalEmail(text), MAX_FOUND + 1],
  );
  return { customers: rows.slice(0, MAX_FOUND), more: rows.length > MAX_FOUND };
}

/** Escapes what LIKE reads as a pattern. */
const likeText = (text: string): string => text.replace(/[\\%_]/g, (character) => `\\${character}`);

export interface NamedInText {
  readonly customer: Customer;
  /** What in the text led to this customer: order and subscription references, addresses. */
  readonly by: readonly string[];
}

/**
 * Whom a ticket's text is about. Never a guess: `one` only when everything that the text names and the shop knows belongs to
 * one customer. The binding is read from text, so it is unconfirmed until the filer confirms it.
 */
export type TextBinding =
  | { readonly found: "one"; readonly named: NamedInText; readonly orderRefs: readonly string[] }
  | { readonly found: "several"; readonly candidates: readonly NamedInText[] }
  | {
      readonly found: "none";
      /** References and addresses in the text that the shop does not know. */
      readonly unknown: readonly string[];
    };

/** Reads the binding out of a ticket's plain text (`plainSlackText`). */
export async function bindingFromText(db: SqlRunner, text: string): Promise<TextBinding> {
  const { emails, candidates, lookalikes } = findReferences(text);
  if (emails.length === 0 && candidates.length === 0) return { found: "none", unknown: [] };
  // OFFSET 0: each customer is looked up; joined, all of them could be read.
  const rows = await db.sql<Customer & { by: string; kind: string }>(
    "shop.binding-from-text",
    `SELECT c.id, c.ref, c.name, c.email, m.by, m.kind
     FROM (SELECT customer_id, ref AS by, 'order' AS kind FROM orders WHERE ref = ANY($1)
           UNION ALL SELECT customer_id, ref, 'subscription' FROM subscriptions WHERE ref = ANY($1)
           UNION ALL SELECT id, ref, 'customer' FROM customers WHERE ref = ANY($1)
           UNION ALL SELECT id, email_normal, 'email' FROM customers WHERE email_normal = ANY($2)) m
     JOIN LATERAL (SELECT * FROM customers WHERE id = m.customer_id OFFSET 0) c ON true ORDER BY c.ref, m.kind, m.by`,
    [candidates, emails],
  );
  const named = new Map<string, NamedInText>();
  for (const { by, kind: _kind, ...customer } of rows) {
    named.set(customer.id, { customer, by: [...(named.get(customer.id)?.by ?? []), by] });
  }
  const [first, ...others] = named.values();
  if (first === undefined) return { found: "none", unknown: [...lookalikes, ...emails] };
  if (others.length > 0) return { found: "several", candidates: [first, ...others] };
  const orderRefs = rows.filter(({ kind }) => kind === "order").map(({ by }) => by);
  return { found: "one", named: first, orderRefs };
}
