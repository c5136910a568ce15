/**
 * The role that the product runs under in production: it works with rows and owns nothing, so it can neither change a recorded
 * event nor switch off what refuses such a change. Made by the owner of the schema, after each migration.
 *
 *  1. Tables of record are appended to: no UPDATE, no DELETE, no TRUNCATE.
 *  2. Rows are deleted only where the product deletes.
 *  3. Tables of rules, and the clock, are only read.
 */
import pg from "pg";
import { CountersignError } from "../domain/errors.js";

/** Beside what a trigger of the schema refuses. */
const APPEND_ONLY = ["policy_versions"] as const;
const READ_ONLY = [
  "_prisma_migrations",
  "operation_transitions",
  "approval_transitions",
  "clock_offset",
] as const;
const DELETED_FROM = [
  "audit_subjects",
  "operation_waiters",
  "order_items",
  "shipments",
  "slack_inbox",
  "slack_outbox",
  "slack_pace",
  "total_entries",
] as const;

export interface AppRole {
  readonly name: string;
  /** Set, or set anew; null: the role exists and keeps its own. */
  readonly password: string | null;
}

/**
 * Makes the role where it is missing and gives it exactly its rights on every table that there is now. Run as the owner.
 *
 * @throws CountersignError `app_role` when the role is missing and has no password, or may not be used for this
 */
export async function grantAppRole(ownerUrl: string, role: AppRole): Promise<void> {
  if (!/^[a-z_][a-z0-9_]{0,62}$/.test(role.name)) {
    throw refused(`"${role.name}" is no plain role name: small letters, digits and _ only`);
  }
  const client = new pg.Client({ connectionString: ownerUrl });
  await client.connect();
  try {
    await client.query("BEGIN");
    await makeRole(client, role);
    await grantTables(client, role.name);
    await grantQueue(client, role.name);
    await client.query("COMMIT");
  } finally {
    await client.end();
  }
}

async function makeRole(client: pg.Client, role: AppRole): Promise<void> {
  const name = client.escapeIdentifier(role.name);
  const known = await client.query<{ super: boolean; self: boolean }>(
    "SELECT rolsuper AS super, rolname = current_user AS self FROM pg_roles WHERE rolname = $1",
    [role.name],
  );
  const [found] = known.rows;
  if (found?.self === true)
    throw refused(`${role.name} owns the schema: the product needs a role of its own`);
  if (found?.super === true) throw refused(`${role.name} is a superuser and may change everything`);
  if (found === undefined && role.password === null) {
    throw refused(`there is no role ${role.name}: set APP_ROLE_PASSWORD and it is made`);
  }
  if (found === undefined) await client.query(`CREATE ROLE ${name} LOGIN NOINHERIT`);
  if (role.password !== null) {
    await client.query(`ALTER ROLE ${name} PASSWORD ${client.escapeLiteral(role.password)}`);
  }
}

// What triggers refuse is not granted either; 8 and 16 are the bits of DELETE and UPDATE in a trigger's type.
const refuses = (bit: 8 | 16): string => `EXISTS (
  SELECT 1 FROM pg_trigger t JOIN pg_proc p ON p.oid = t.tgfoid
  WHERE t.tgrelid = c.oid AND p.proname = 'refuse_change' AND t.tgtype & ${bit} <> 0)`;
const TABLES = `
SELECT c.relname AS name, ${refuses(16)} AS "noUpdate", ${refuses(8)} AS "noDelete"
FROM pg_class c WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p') ORDER BY 1`;

async function grantTables(client: pg.Client, roleName: string): Promise<void> {
  const role = client.escapeIdentifier(roleName);
  const found = await client.query<Table>(TABLES);
  await client.query(`REVOKE CREATE ON SCHEMA public FROM PUBLIC, ${role}`);
  await client.query(`GRANT USAGE ON SCHEMA public TO ${role}`);
  await client.query(`REVOKE ALL ON ALL TABLES IN SCHEMA public FROM PUBLIC, ${role}`);
  for (const table of found.rows) {
    const name = client.escapeIdentifier(table.name);
    await client.query(`GRANT ${rightsOn(table)} ON public.${name} TO ${role}`);
  }
  await client.query(`GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO ${role}`);
}

interface Table {
  readonly name: string;
  readonly noUpdate: boolean;
  readonly noDelete: boolean;
}

function rightsOn({ name, noUpdate, noDelete }: Table): string {
  const isIn = (list: readonly string[]): boolean => list.includes(name);
  if (isIn(READ_ONLY)) return "SELECT";
  const update = noUpdate || isIn(APPEND_ONLY) ? [] : ["UPDATE"];
  const remove = !noDelete && isIn(DELETED_FROM) ? ["DELETE"] : [];
  return ["SELECT", "INSERT", ...update, ...remove].join(", ");
}

/** The queue's own schema, where it is on PostgreSQL: wake-ups, which nobody's money hangs on. */
async function grantQueue(client: pg.Client, roleName: string): Promise<void> {
  const there = await client.query<{ there: boolean }>(
    "SELECT to_regnamespace('bullmq') IS NOT NULL AS there",
  );
  if (there.rows[0]?.there !== true) return;
  const role = client.escapeIdentifier(roleName);
  // BullMQ makes a sequence for each queue when it is first used.
  await client.query(`GRANT USAGE, CREATE ON SCHEMA bullmq TO ${role}`);
  await client.query(`GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA bullmq TO ${role}`);
  await client.query(`GRANT USAGE ON ALL SEQUENCES IN SCHEMA bullmq TO ${role}`);
  await client.query(`GRANT EXECUTE ON ALL ROUTINES IN SCHEMA bullmq TO ${role}`);
}

const refused = (sentence: string): CountersignError => new CountersignError("app_role", sentence);
