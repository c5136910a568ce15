/**
 * Personal data of the audit log. An event names a salted hash; the value stands in `audit_subjects`, where it can be erased
 * while the chain still verifies.
 */
import type { SqlRunner } from "../db/connect.js";
import type { Actor } from "../domain/operation.js";

const PERSON = "person:";
const TEXT = "text:";

/** $1 values. Hash of each, made where it is missing. A value that another transaction is making is waited for. */
const HIDE = `
WITH made AS (
  INSERT INTO audit_subjects (hash, salt, value)
  SELECT encode(sha256(convert_to(s.salt || ':' || s.value, 'UTF8')), 'hex'), s.salt, s.value
  FROM (SELECT gen_random_uuid()::text AS salt, v.value FROM unnest($1::text[]) AS v(value)) s
  WHERE NOT EXISTS (SELECT 1 FROM audit_subjects a WHERE a.value = s.value)
  ON CONFLICT (value) DO NOTHING
  RETURNING hash, value
)
SELECT hash, value FROM made
UNION ALL
SELECT a.hash, a.value FROM audit_subjects a WHERE a.value = ANY($1::text[])`;

async function hide(on: SqlRunner, values: readonly string[]): Promise<Map<string, string>> {
  const hashes = new Map<string, string>();
  let missing = [...new Set(values)].sort();
  while (missing.length > 0) {
    const rows = await on.sql<{ hash: string; value: string }>("ledger.hide_subjects", HIDE, [missing]);
    for (const row of rows) hashes.set(row.value, row.hash);
    missing = missing.filter((value) => !hashes.has(value));
  }
  return hashes;
}

/** How an event names an actor: a person by hash, our own parts by name. */
export async function actorName(on: SqlRunner, actor: Actor): Promise<string> {
  if (!actor.startsWith("slack:")) return actor;
  const hashes = await hide(on, [actor]);
  return `${PERSON}${hashes.get(actor) ?? ""}`;
}

/** How an event names people, in the order given. */
export async function personNames(on: SqlRunner, userIds: readonly string[]): Promise<string[]> {
  const hashes = await hide(
    on,
    userIds.map((id) => `slack:${id}`),
  );
  return userIds.map((id) => `${PERSON}${hashes.get(`slack:${id}`) ?? ""}`);
}

/** How an event names free text that a person wrote. */
export async function textName(on: SqlRunner, text: string): Promise<string> {
  const hashes = await hide(on, [text]);
  return `${TEXT}${hashes.get(text) ?? ""}`;
}

const HIDDEN = /^(?:person|text):([0-9a-f]{64})$/;

/** The hash that a name in an event refers to; null for what is not hidden. */
export const hiddenHash = (name: string): string | null => HIDDEN.exec(name)?.[1] ?? null;

/** Values by hash, for those that were not erased. */
export async function reveal(on: SqlRunner, hashes: readonly string[]): Promise<Map<string, string>> {
  if (hashes.length === 0) return new Map();
  const rows = await on.sql<{ hash: string; value: string }>(
    "ledger.reveal_subjects",
    "SELECT hash, value FROM audit_subjects WHERE hash = ANY($1::text[])",
    [[...new Set(hashes)]],
  );
  return new Map(rows.map((row) => [row.hash, row.value]));
}

/** Erases what a value (a Slack user id, or a text) stands for. Returns how many hashes no longer mean anything. */
export async function eraseSubject(on: SqlRunner, value: string): Promise<number> {
  const rows = await on.sql(
    "ledger.erase_subject",
    "DELETE FROM audit_subjects WHERE value = $1 OR value = 'slack:' || $1 RETURNING hash",
    [value],
  );
  return rows.length;
}
