/** What the evaluation is handed in tests: the program's own composition on the test's databases. */
import pg from "pg";
import { afterAll, beforeAll, inject } from "vitest";
import { deskPorts as ownPorts } from "../../src/app/commands/evaluation-ports.js";
import { parseConfig } from "../../src/config/index.js";
import type { DeskPorts } from "../../src/evaluation/index.js";
import type { TestDatabase } from "../support/database.js";
import { withDatabaseName } from "../support/global-setup.js";

/** Each ticket finds the test's database emptied. */
export const deskPorts = (database: TestDatabase): DeskPorts =>
  ownPorts(parseConfig([], { PLANNER: "scripted", LOG_LEVEL: "silent" }), async () => {
    await database.reset();
    return { url: database.url, release: async () => {} };
  });

let counter = 0;

/** An empty database for the provider; dropped at the end of the file. */
export function withProviderDatabase(): { readonly url: string } {
  const { adminUrl, prefix } = inject("server");
  counter += 1;
  const name = `${prefix}_eval_${process.pid}_${counter}`;
  beforeAll(() => execute(adminUrl, `CREATE DATABASE ${name}`));
  afterAll(() => execute(adminUrl, `DROP DATABASE IF EXISTS ${name} WITH (FORCE)`));
  return { url: withDatabaseName(adminUrl, name) };
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
