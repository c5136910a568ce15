/** Databases of the end-to-end tests: copied from the migrated template, dropped with everything in them at the end. */
import pg from "pg";
import { afterAll, inject } from "vitest";

let counter = 0;

export interface Databases {
  readonly serverUrl: string;
  /** Makes a fresh database for the product and gives its name; the payments sandbox makes its own beside it. */
  fresh(): Promise<string>;
}

/** Call at the top of a test file. */
export function withDatabases(): Databases {
  const server = inject("server");
  const made: string[] = [];
  afterAll(async () => {
    if (server.keep) return;
    for (const name of made) {
      await execute(server.adminUrl, `DROP DATABASE IF EXISTS ${name} WITH (FORCE)`);
      await execute(server.adminUrl, `DROP DATABASE IF EXISTS ${name}_payments WITH (FORCE)`);
    }
  });
  return {
    serverUrl: server.adminUrl,
    async fresh() {
      counter += 1;
      const name = `${server.prefix}_e2e_${process.pid}_${counter}`;
      made.push(name);
      await execute(server.adminUrl, `CREATE DATABASE ${name} TEMPLATE ${server.template}`);
      return name;
    },
  };
}

async function execute(url: string, statement: string): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    await client.query(statement);
  } finally {
    await client.end();
  }
}
