/**
 * Fills a throw-away database with history: copies of rows that the product itself has written, under ids of their own, so that
 * every column is as it is in life. Written past the ledger, which is why only a benchmark may do it: such a log does not verify.
 */
import pg from "pg";

export interface Filled {
  readonly operations: number;
  readonly pendingApprovals: number;
}

/** Rows in one statement. */
const BATCH = 50_000;

/** Of a column in the copy: SQL over the copied row (`o` or `e`) and the number `n`. Every other column is as in the original. */
type Own = Readonly<Record<string, string>>;

/** $1 the row to copy, $2 first number, $3 last number, $4 how many seconds of history lie between two. */
const COPY_ID = "'op_' || lpad(to_hex(n), 32, '0')";
const OWN_OPERATION: Own = {
  id: COPY_ID,
  key: "o.key || ':' || n",
  idempotency_key: "o.idempotency_key || ':' || n",
  approval_id: "NULL",
  due_at: "NULL",
  created_at: "o.created_at - make_interval(secs => n * $4::float8)",
};
const OWN_EVENT: Own = {
  id: "nextval(pg_get_serial_sequence('operation_events', 'id'))",
  operation_id: COPY_ID,
  hash: "e.hash || ':' || n",
  prev_hash: "e.prev_hash || ':' || n",
  at: "e.at - make_interval(secs => n * $4::float8)",
};

async function copyOf(
  client: pg.Client,
  { table, alias, own, which }: { table: string; alias: string; own: Own; which: string },
): Promise<string> {
  const { rows } = await client.query<{ name: string }>(
    "SELECT attname AS name FROM pg_attribute WHERE attrelid = $1::regclass AND attnum > 0 AND NOT attisdropped AND attgenerated = ''",
    [table],
  );
  const names = rows.map(({ name }) => name);
  return `INSERT INTO ${table} (${names.join(", ")}) OVERRIDING SYSTEM VALUE
    SELECT ${names.map((name) => own[name] ?? `${alias}.${name}`).join(", ")}
    FROM ${table} ${alias}, generate_series($2::int, $3::int) n WHERE ${which}`;
}

/** $1 the operation whose approval is copied, $2 how many, $3 where their numbers begin. */
const COPY_HELD = `
WITH held AS (
  INSERT INTO operations SELECT (jsonb_populate_record(o, jsonb_build_object(
    'id', 'op_f' || lpad(to_hex(n), 31, '0'), 'key', o.key || ':' || n, 'idempotency_key', o.idempotency_key || ':' || n,
    'approval_id', 'apr_f' || lpad(to_hex(n), 31, '0')))).*
  FROM operations o, generate_series(1, $2::int) n WHERE o.id = $1 RETURNING id)
INSERT INTO approvals SELECT (jsonb_populate_record(a, jsonb_build_object(
  'id', 'apr_f' || lpad(to_hex(n), 31, '0'), 'operation_id', 'op_f' || lpad(to_hex(n), 31, '0'), 'turn_id', NULL,
  'due_at', a.expires_at))).*
FROM approvals a, generate_series(1, $2::int) n WHERE a.operation_id = $1`;

/**
 * `ended` and `held` are operations of the product's making: one confirmed, one that waits for its approval.
 * History reaches back a second a row.
 */
export async function fill(
  url: string,
  from: { readonly ended: string; readonly held: string },
  want: Filled,
  onProgress: (done: number) => void,
): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    // The copies point where the originals point: a superuser need not have that checked row by row.
    const [who] = (
      await client.query<{ super: boolean }>(
        "SELECT rolsuper AS super FROM pg_roles WHERE rolname = current_user",
      )
    ).rows;
    if (who?.super === true) await client.query("SET session_replication_role = replica");
    const copyOperations = await copyOf(client, {
      table: "operations",
      alias: "o",
      own: OWN_OPERATION,
      which: "o.id = $1",
    });
    const copyEvents = await copyOf(client, {
      table: "operation_events",
      alias: "e",
      own: OWN_EVENT,
      which: "e.operation_id = $1 AND e.seq = 1",
    });
    for (let first = 1; first <= want.operations; first += BATCH) {
      const last = Math.min(want.operations, first + BATCH - 1);
      await client.query(copyOperations, [from.ended, first, last, 1]);
      await client.query(copyEvents, [from.ended, first, last, 1]);
      onProgress(last);
    }
    if (want.pendingApprovals > 0) await client.query(COPY_HELD, [from.held, want.pendingApprovals]);
    await client.query("VACUUM (ANALYZE) operations, operation_events, approvals");
  } finally {
    await client.end();
  }
}
