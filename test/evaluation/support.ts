/** What the evaluation is handed in tests: the program's own composition on the test's databases. */
import pg from "pg";
import { afterAll, beforeAll, inject } from "vitest";
import { composeContexts } from "../../src/app/compose/contexts.js";
import { systemClock, systemIds } from "../../src/app/system.js";
import { parseConfig } from "../../src/config/index.js";
import type { DeskPorts } from "../../src/evaluation/index.js";
import { createLogger, createMetrics, NO_TRACER } from "../../src/telemetry/index.js";
import type { TestDatabase } from "../support/database.js";
import { withDatabaseName } from "../support/global-setup.js";

/** Each ticket finds the test's database emptied. */
export function deskPorts(database: TestDatabase): DeskPorts {
  const config = parseConfig([], { PLANNER: "scripted" });
  const log = createLogger({ level: "silent", secrets: [], fields: {} });
  const metrics = createMetrics({ processMetrics: false });
  return {
    ids: systemIds,
    clock: systemClock,
    log,
    freshLedger: async () => {
      await database.reset();
      return { url: database.url, release: async () => {} };
    },
    compose: (parts) => {
      const contexts = composeContexts({
        config,
        db: parts.db,
        wake: async () => {},
        notices: parts.notices,
        directory: parts.directory,
        provider: parts.provider,
        verifyWebhook: () => ({ ok: false, reason: "nobody sends webhooks here" }),
        log,
        metrics,
        tracer: NO_TRACER,
        worker: "test",
      });
      const newRuns = { ...contexts.agent.newRuns, planner: parts.planner.name, model: parts.planner.model };
      return {
        ...contexts,
        runs: { ...contexts.runs, newRuns },
        agent: { ...contexts.agent, newRuns, planner: parts.planner },
      };
    },
  };
}

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
