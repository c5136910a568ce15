/**
 * A widely used library for durable execution doing the least that could be called the same: a workflow of three recorded steps,
 * the middle one with the HTTP call. A development dependency: where it is not installed, its arm is left out.
 */
import type { DBOS } from "@dbos-inc/dbos-sdk";
import pg from "pg";
import { Pool } from "undici";
import { inLanes, type Measured } from "./measure.js";
import { AMOUNT_MINOR, paymentIntent } from "./premises.js";

interface Library {
  readonly DBOS: typeof DBOS;
}
const PACKAGE = "@dbos-inc/dbos-sdk";

export interface DurableExecution {
  readonly version: string;
  run(options: { lanes: number; seconds: number; most: number }): Promise<Measured>;
  /** Workflows that ended well, by its own books. */
  succeeded(): Promise<number>;
  close(): Promise<void>;
}

/** null: it is not installed. */
export async function openDurableExecution(
  databaseUrl: string,
  apiUrl: string,
): Promise<DurableExecution | null> {
  let library: Library;
  try {
    library = (await import(PACKAGE)) as Library;
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ERR_MODULE_NOT_FOUND") return null;
    throw error;
  }
  const dbos = library.DBOS;
  const quiet = { info: () => {}, debug: () => {}, warn: () => {}, error: () => {} };
  dbos.setConfig({ name: "countersign-bench", systemDatabaseUrl: databaseUrl, logger: quiet });
  const http = new Pool(apiUrl, { connections: 64 });
  const refund = dbos.registerWorkflow(
    async (n: number): Promise<string> => {
      const amount = await dbos.runStep(async () => AMOUNT_MINOR, { name: "prepare" });
      const id = await dbos.runStep(() => post(http, n, amount), { name: "send" });
      return dbos.runStep(async () => id, { name: "settle" });
    },
    { name: "refund" },
  );
  await dbos.launch();
  return {
    version: PACKAGE,
    run: (options) => inLanes(options, (n) => refund(n)),
    succeeded: () => countSucceeded(databaseUrl),
    close: async () => {
      await dbos.shutdown();
      await http.close();
    },
  };
}

async function post(http: Pool, n: number, amount: number): Promise<string> {
  const answer = await http.request({
    method: "POST",
    path: "/v1/refunds",
    headers: { "content-type": "application/x-www-form-urlencoded" },
    body: new URLSearchParams({ payment_intent: paymentIntent(n), amount: String(amount) }).toString(),
  });
  return answer.body.text();
}

async function countSucceeded(url: string): Promise<number> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    const { rows } = await client.query(
      "SELECT count(*)::int AS n FROM dbos.workflow_status WHERE status = 'SUCCESS'",
    );
    return Number((rows[0] as { n: number } | undefined)?.n ?? 0);
  } finally {
    await client.end();
  }
}
