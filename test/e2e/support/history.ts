/**
 * Months of ended work in a throw-away database: every row that has ended is copied a thousand times, each time under ids, references
 * and keys of its own that fit together, so that no copy belongs to what is there. Written past every rule: such a log does not verify.
 */
import type pg from "pg";
import { RUN_ENDS } from "../../../src/domain/run.js";

/** What has ended, by table. Rows of the rest are not history, or are what all history shares. */
const ENDED: Readonly<Record<string, string>> = {
  customers: "true",
  orders: "true",
  order_items: "true",
  shipments: "true",
  payments: "true",
  subscriptions: "true",
  tickets: "true",
  runs: `state IN (${RUN_ENDS.map((end) => `'${end}'`).join(", ")})`,
  run_notes: "true",
  turns: "true",
  tool_calls: "true",
  operations: "status IN ('CONFIRMED', 'REJECTED', 'DENIED', 'EXPIRED', 'VOIDED')",
  operation_waiters: "true",
  operation_events: "true",
  attempts: "true",
  approvals: "state NOT IN ('PENDING', 'APPROVED')",
  votes: "true",
  incidents: "status <> 'open'",
  resolutions: "state <> 'proposed'",
  provider_evidence: "true",
  provider_webhooks: "processed_at IS NOT NULL",
  slack_cards: "due_at IS NULL AND wanted_version = shown_version",
  slack_inbox: "due_at IS NULL",
  slack_outbox: "due_at IS NULL",
  total_entries: "true",
  total_scopes: "true",
  audit_subjects: "true",
  audit_heads: "true",
};
/** What says whose a row is, beside the columns of unique indexes. */
const NAMES =
  /(?:^id|_id|^ref|_ref|_key|^key|_ts|_hash|^scope|^filer|payment_intent|provider_subscription|^person)$/u;
/** What all history has in common. */
const SHARED = /^(?:channel_id|team_id|user_id|policy_hash|kind|slot|currency|width)$/u;

interface Column {
  readonly table: string;
  readonly name: string;
  readonly type: string;
  /** Part of a unique index. */
  readonly unique: boolean;
  readonly checked: boolean;
}

/** Returns how many rows each table has afterwards. */
export async function growHistory(
  client: pg.Client,
  copies: number,
): Promise<Readonly<Record<string, number>>> {
  await client.query("SET session_replication_role = replica");
  const columns = (await client.query<Column>(COLUMNS)).rows;
  const rows: Record<string, number> = {};
  for (const [table, ended] of Object.entries(ENDED)) {
    const own = columns.filter((column) => column.table === table);
    const names = own.map(({ name }) => `"${name}"`).join(", ");
    const values = own.map(copied).join(", ");
    await client.query(
      `INSERT INTO ${table} (${names}) OVERRIDING SYSTEM VALUE SELECT ${values} FROM ${table} t, generate_series(1, ${copies}) n WHERE ${ended}`,
    );
    const [counted] = (await client.query<{ n: number }>(`SELECT count(*)::int AS n FROM ${table}`)).rows;
    rows[table] = counted?.n ?? 0;
  }
  await client.query("SET session_replication_role = origin");
  return rows;
}

/** Of a column in a copy: SQL over the copied row `t` and the copy's number `n`. */
function copied({ name, type, unique, checked }: Column): string {
  const value = `t."${name}"`;
  // A check of an id or a reference asks whether there is one; other checks name the words that may stand there.
  const ofItsOwn =
    !SHARED.test(name) && (unique || (NAMES.test(name) && (!checked || /_(?:id|ref)$/u.test(name))));
  if (type === "text" && ofItsOwn) return `${value} || '~' || n`;
  // What was seen of a payment names it.
  if (type === "jsonb")
    return `regexp_replace(${value}::text, '("payment(?:Intent)?": "[^"]+)"', '\\1~' || n || '"')::jsonb`;
  if (type === "bigint" && name === "id") return `${value} + n * 1000000`;
  if (name === "due_at" || name === "lease_until") return "NULL";
  // Long ago, half a minute between two of them: what looks at the last days finds no more than before.
  const isPast = type === "timestamp with time zone" && !unique && name !== "compared_at";
  return isPast ? `${value} - make_interval(days => 60, secs => n * 30)` : value;
}

const COLUMNS = `
SELECT c.relname AS table, a.attname AS name, format_type(a.atttypid, NULL) AS type,
  EXISTS (SELECT 1 FROM pg_index i WHERE i.indrelid = c.oid AND i.indisunique AND a.attnum = ANY (i.indkey)) AS unique,
  EXISTS (SELECT 1 FROM pg_constraint k WHERE k.conrelid = c.oid AND k.contype = 'c' AND a.attnum = ANY (k.conkey)) AS checked
FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = ''
WHERE c.relkind = 'r' AND c.relnamespace = 'public'::regnamespace ORDER BY a.attnum`;
