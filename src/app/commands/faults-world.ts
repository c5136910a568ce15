/**
 * One world of the fault matrix as a process of its own: `countersign faults` starts several, each with databases of its own, hands
 * each a share of the plan and puts their runs together.
 */
import { fork } from "node:child_process";
import { fileURLToPath } from "node:url";
import { z } from "zod";
import { type MatrixRun, matrixRunSchema, openWorld, runMatrix } from "../../evaluation/index.js";
import { CommandFailure } from "../exit.js";
import { systemClock, systemIds } from "../system.js";

/** The command that such a process is started as. */
const WORLD_COMMAND = "faults-world";

const COMMAND_LINE = fileURLToPath(new URL("../../../bin/countersign.js", import.meta.url));
const quiet = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };

const taskSchema = z.object({
  ledgerUrl: z.string(),
  providerUrl: z.string(),
  episodes: z.int(),
  seed: z.int(),
  share: z.object({ index: z.int(), of: z.int() }),
});
type WorldTask = z.infer<typeof taskSchema>;

const messageSchema = z.discriminatedUnion("kind", [
  z.object({ kind: z.literal("ready") }),
  z.object({ kind: z.literal("played") }),
  z.object({ kind: z.literal("run"), run: matrixRunSchema }),
]);

/**
 * Starts a process for one share and waits for its run. It ends with this process, whatever ends this one.
 * @throws CommandFailure when it ends without a run
 */
export function playInProcess(task: WorldTask, onPlayed: () => void): Promise<MatrixRun> {
  return new Promise((resolve, reject) => {
    const child = fork(COMMAND_LINE, [WORLD_COMMAND], { stdio: ["ignore", "ignore", "inherit", "ipc"] });
    let run: MatrixRun | null = null;
    child.on("message", (raw) => {
      const message = messageSchema.safeParse(raw);
      if (!message.success) {
        reject(
          new CommandFailure(`A world of the matrix said something unreadable: ${message.error.message}`),
        );
        child.kill();
        return;
      }
      if (message.data.kind === "ready") child.send(task);
      if (message.data.kind === "played") onPlayed();
      if (message.data.kind === "run") run = message.data.run;
    });
    child.once("error", reject);
    child.once("exit", (code, signal) => {
      if (run !== null) resolve(run);
      else
        reject(
          new CommandFailure(`A world of the matrix ended without a result (${signal ?? `exit ${code}`}).`),
        );
    });
  });
}

/** The process itself: asks for its task, plays it, hands the run over. */
export async function world(): Promise<void> {
  const say = (message: z.input<typeof messageSchema>): Promise<void> =>
    new Promise((said, failed) => {
      if (process.send === undefined) {
        failed(new CommandFailure(`${WORLD_COMMAND} is started by "countersign faults" alone.`));
        return;
      }
      process.send(message, (error: Error | null) => (error === null ? said() : failed(error)));
    });
  const orphaned = (): never => process.exit(1);
  process.once("disconnect", orphaned);
  const told = new Promise<unknown>((hear) => process.once("message", hear));
  await say({ kind: "ready" });
  const task = taskSchema.parse(await told);
  const opened = await openWorld({
    ports: { ids: systemIds, clock: systemClock, log: quiet },
    ledgerUrl: task.ledgerUrl,
    providerUrl: task.providerUrl,
  });
  try {
    const run = await runMatrix(opened, {
      episodes: task.episodes,
      seed: task.seed,
      share: task.share,
      onEpisode: () => void say({ kind: "played" }),
    });
    await say({ kind: "run", run });
  } finally {
    await opened.close();
  }
  process.off("disconnect", orphaned);
  process.disconnect();
}
