/**
 * Databases that live as long as one command: on the server of DATABASE_URL beside whatever is there, or on an embedded one in a
 * temporary directory.
 */
import { randomBytes } from "node:crypto";
import { chmodSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import pg from "pg";
import { environment } from "../../config/index.js";
import { startEmbedded } from "../../db/embedded.js";
import { applyMigrations } from "../../db/migrate.js";

export interface ThrowAway {
  /** Migrated. */
  readonly ledgerUrl: string;
  /** Empty. */
  readonly providerUrl: string;
  /** A copy of the ledger's database as it was migrated, as long as nobody is connected to that. */
  freshLedger(): Promise<FreshDatabase>;
  /** An empty database. */
  freshProvider(): Promise<FreshDatabase>;
}

export interface FreshDatabase {
  readonly url: string;
  /** Drops it before the end, which would. */
  release(): Promise<void>;
}

/**
 * Makes both databases, hands them to `work`, and removes them whatever comes of it. `durable`: the embedded server writes as a
 * real one does, for measurements.
 */
export async function withThrowAwayDatabases<T>(
  work: (databases: ThrowAway) => Promise<T>,
  options: { durable?: boolean } = {},
): Promise<T> {
  const external = environment()["DATABASE_URL"];
  return external === undefined || external === ""
    ? onEmbedded(work, options.durable === true)
    : onServer(external, work);
}

async function onEmbedded<T>(work: (databases: ThrowAway) => Promise<T>, durable: boolean): Promise<T> {
  const home = mkdtempSync(path.join(tmpdir(), "countersign-"));
  chmodSync(home, 0o755); // started by root, the server runs as another user
  try {
    const server = await startEmbedded({
      dataDir: path.join(home, "postgres"),
      auth: "trust",
      unsafeFast: !durable,
      database: "admin",
    });
    try {
      return await onServer(server.url(), work);
    } finally {
      await server.stop();
    }
  } finally {
    rmSync(home, { recursive: true, force: true });
  }
}

async function onServer<T>(adminUrl: string, work: (databases: ThrowAway) => Promise<T>): Promise<T> {
  const prefix = `countersign_${randomBytes(4).toString("hex")}`;
  const [ledger, provider] = [`${prefix}_ledger`, `${prefix}_provider`] as const;
  const at = (name: string): string => {
    const url = new URL(adminUrl);
    url.pathname = `/${name}`;
    return url.toString();
  };
  const made: string[] = [ledger, provider];
  const fresh = async (kind: string, from: string): Promise<FreshDatabase> => {
    const name = `${prefix}_${kind}_${made.length}`;
    made.push(name);
    await execute(adminUrl, [`CREATE DATABASE ${name}${from}`]);
    return {
      url: at(name),
      release: () => execute(adminUrl, [`DROP DATABASE IF EXISTS ${name} WITH (FORCE)`]),
    };
  };
  try {
    await execute(adminUrl, [`CREATE DATABASE ${ledger}`, `CREATE DATABASE ${provider}`]);
    await applyMigrations(at(ledger));
    return await work({
      ledgerUrl: at(ledger),
      providerUrl: at(provider),
      freshLedger: () => fresh("copy", ` TEMPLATE ${ledger}`),
      freshProvider: () => fresh("payments", ""),
    });
  } finally {
    await execute(
      adminUrl,
      made.map((name) => `DROP DATABASE IF EXISTS ${name} WITH (FORCE)`),
    );
  }
}

/** Runs statements one after the other on a connection of its own. */
export async function execute(url: string, statements: readonly string[]): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    for (const statement of statements) await client.query(statement);
  } finally {
    await client.end();
  }
}
