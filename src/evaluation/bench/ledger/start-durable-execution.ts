/** Starts `durable-execution.mjs`. A development dependency: where it is not installed, its arm is left out. */
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import pg from "pg";
import { z } from "zod";
import type { Measured } from "./measure.js";
import { AMOUNT_MINOR } from "./premises.js";

export interface DurableExecution {
  run(options: { lanes: number; seconds: number; most: number }): Promise<Measured>;
  /** Workflows that ended well, by its own books. */
  succeeded(): Promise<number>;
  close(): Promise<void>;
}

const answerSchema = z.discriminatedUnion("is", [
  z.object({ is: z.literal("missing") }),
  z.object({ is: z.literal("ready") }),
  z.object({
    is: z.literal("measured"),
    measured: z.object({ operations: z.number(), seconds: z.number(), cpuMs: z.number() }),
  }),
]);
type Answer = z.infer<typeof answerSchema>;

/** null: it is not installed. */
export async function openDurableExecution(
  databaseUrl: string,
  apiUrl: string,
): Promise<DurableExecution | null> {
  const program = fileURLToPath(new URL("./durable-execution.mjs", import.meta.url));
  const child = fork(program, [databaseUrl, apiUrl, String(AMOUNT_MINOR)], {
    stdio: ["ignore", "ignore", "inherit", "ipc"],
    // Its driver warns once of how it is used; no error is hidden by that.
    execArgv: ["--no-deprecation"],
  });
  const first = await answerOf(child);
  if (first.is === "missing") return null;
  return {
    run: async (options) => {
      const answer = answerOf(child);
      child.send(options);
      const measured = await answer;
      if (measured.is !== "measured") throw new Error(`durable execution answered "${measured.is}"`);
      return measured.measured;
    },
    succeeded: () => countSucceeded(databaseUrl),
    close: async () => {
      const gone = once(child, "exit");
      child.disconnect();
      await gone;
    },
  };
}

/** Its next message; an error if it ends without one. */
async function answerOf(child: ChildProcess): Promise<Answer> {
  const stop = new AbortController();
  const ended = once(child, "exit", { signal: stop.signal }).then(([code]) => {
    throw new Error(`durable execution ended with ${String(code)}`);
  });
  try {
    const [answer] = (await Promise.race([once(child, "message", { signal: stop.signal }), ended])) as [
      unknown,
    ];
    return answerSchema.parse(answer);
  } finally {
    stop.abort();
    await ended.catch(() => {});
  }
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
