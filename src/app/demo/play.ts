/** Plays one story to its end, writes what happened, and judges it by both books. */
import path from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { type OpenDb, openDb } from "../../db/connect.js";
import { isRunId, type RunId } from "../../domain/ids.js";
import { viewRun } from "../../runs/index.js";
import { demoShop } from "../../shop/index.js";
import { fullTrace } from "../compose/run-trace.js";
import { CommandFailure, EXIT_BAD_USAGE } from "../exit.js";
import { makeFolder, writeTextFile } from "../files.js";
import { print, toJsonText } from "../output.js";
import { systemClock } from "../system.js";
import { readOperationsJson } from "./inspector.js";
import { prepareShop } from "./seed.js";
import { Stage, type Thread } from "./stage.js";
import { STORIES, type Story } from "./stories/index.js";
import { startWorld, type World, type WorldOptions } from "./world.js";

/** Timing under which a story can be watched and yet ends within a minute. */
export const STORY_TIMING = {
  PROVIDER_TIMEOUT_MS: "2500",
  RECONCILE_EVERY_MS: "500",
  RECONCILE_BASE_MS: "400",
  RECONCILE_MAX_MS: "2000",
  LEASE_MS: "6000",
  PLANNER: "scripted",
  LOG_LEVEL: "info",
} as const;

/** An open outcome stays in view for some seconds. */
const WATCH_TIMING = { RECONCILE_BASE_MS: "5000", RECONCILE_MAX_MS: "5000" } as const;
/** Between what people do, when somebody watches. */
const PACE_MS = 3_000;
const LOOK_MS = 250;

export interface PlayOptions {
  name: string;
  /** Of the page on which it can be watched; left out: any free one. */
  slackPort?: number;
  /** In slow motion, from when a page is open; at its end the page stays until `stopped`. */
  watch?: boolean;
  /** Ends the story early and cleans up. */
  stopped?: AbortSignal;
  outDir: string;
  dataDir: string;
  /** A server to use instead of the embedded one. */
  databaseServerUrl?: string;
  /** Of the product's database on that server; the sandbox's own is named after it. */
  databaseName?: string;
  redisUrl?: string;
  transport?: "socket" | "http";
  /** Hears what happens, line by line. Default: stdout. */
  tell?: (line: string) => void;
}

/** The story of this name. @throws a sentence that lists the names */
export function findStory(name: string): Story {
  const story = STORIES.find((one) => one.name === name);
  if (story === undefined) {
    throw new CommandFailure(
      `There is no story "${name}". There are: ${STORIES.map((one) => one.name).join(", ")}.`,
      EXIT_BAD_USAGE,
    );
  }
  return story;
}

/** Plays the story; returns what was wrong at its end, one sentence each (empty: all right). */
export async function playStory(options: PlayOptions): Promise<readonly string[]> {
  const story = findStory(options.name);
  makeFolder(options.outDir);
  let db: OpenDb | null = null;
  const world = await startWorld({
    ...worldOptions(options, story),
    operations: () => (db === null ? Promise.resolve([]) : readOperationsJson(db)),
  });
  let stage: Stage | null = null;
  try {
    db = openDb({ url: world.databaseUrl, applicationName: "countersign-story", poolSize: 4 });
    await prepareShop(db, world.shop);
    stage = new Stage({
      world,
      db,
      logFile: path.join(options.outDir, "product.log"),
      ...(story.env === undefined ? {} : { extraEnv: story.env }),
      ...(options.tell === undefined ? {} : { tell: options.tell }),
      ...(options.stopped === undefined ? {} : { stopped: options.stopped }),
      ...(options.watch === true ? { pace: () => look(PACE_MS, options.stopped) } : {}),
    });
    const tell = options.tell ?? print;
    tell(`${story.name}: ${story.shows}`);
    if (options.watch === true) tell(`Watch it on ${world.slack.url}/archives/C_TICK?as=U_AGENT`);
    await stage.open();
    await stage.start();
    if (options.watch === true) await firstLook(world, tell, options.stopped);
    const thread = await story.play(stage);
    await stage.settled(thread, story.expected.runState);
    stage.assertFaultsFired();
    const wrong = await judge(story, stage, thread, options.outDir);
    if (options.watch === true) await lastLook(world, thread, tell, options.stopped);
    return wrong;
  } finally {
    stage?.calm();
    await stage?.stop();
    await db?.close();
    await world.stop();
  }
}

/** Waits for somebody to open the page. */
async function firstLook(world: World, tell: (line: string) => void, stopped?: AbortSignal): Promise<void> {
  if (world.slack.control.watchers() > 0) return;
  tell("It begins when the page is open.");
  while (world.slack.control.watchers() === 0 && stopped?.aborted !== true) await look(LOOK_MS, stopped);
}

/** Keeps everything up until it is stopped. */
async function lastLook(
  world: World,
  thread: Thread,
  tell: (line: string) => void,
  stopped?: AbortSignal,
): Promise<void> {
  const message = `p${thread.ts.replace(".", "")}?thread_ts=${thread.ts}`;
  tell(`The end. The thread: ${world.slack.url}/archives/${thread.channel}/${message}&as=${thread.filer}`);
  tell("The page stays until Ctrl-C.");
  while (stopped !== undefined && !stopped.aborted) await look(LOOK_MS, stopped);
}

/** A pause that a stop cuts short. */
async function look(ms: number, stopped?: AbortSignal): Promise<void> {
  await pause(ms, undefined, stopped === undefined ? {} : { signal: stopped }).catch((error: unknown) => {
    if (stopped?.aborted !== true) throw error;
  });
}

function worldOptions(options: PlayOptions, story: Story): WorldOptions {
  return {
    dataDir: options.dataDir,
    slackPort: options.slackPort ?? 0,
    paymentsPort: 0,
    postgresPort: 0,
    productPort: 0,
    transport: options.transport ?? "socket",
    policyFile: path.resolve(story.policy ?? "policies/default.yaml"),
    shop: demoShop({ today: systemClock.now() }),
    extraEnv: options.watch === true ? { ...STORY_TIMING, ...WATCH_TIMING } : STORY_TIMING,
    keepWorkspace: false,
    ...(options.databaseServerUrl === undefined ? {} : { databaseServerUrl: options.databaseServerUrl }),
    ...(options.databaseName === undefined ? {} : { databaseName: options.databaseName }),
    ...(options.redisUrl === undefined ? {} : { redisUrl: options.redisUrl }),
  };
}

async function judge(story: Story, stage: Stage, thread: Thread, outDir: string): Promise<string[]> {
  const run = await stage.runIn(thread, story.expected.runState);
  if (!isRunId(run.id)) throw new Error(`${run.id} is no run`);
  await sayRefusals(stage, run.id);
  const last = await stage.count("at the end");
  const operations = await stage.operations();
  const trace = await fullTrace(stage.db, run.id);
  writeTextFile(path.join(outDir, "trace.json"), `${toJsonText(trace)}\n`);

  const effects = await stage.world.payments.control.effects();
  const report = {
    scenario: story.name,
    operations: await Promise.all(
      operations.map(async (operation) => ({
        operationId: operation.id,
        finalStatus: operation.status,
        attempts: operation.attempts,
        committedEffects: effects.filter((effect) => effect.operationId === operation.id).length,
        eventTypes: await stage.eventTypes(operation.id),
      })),
    ),
    committed: last.provider.committed,
    duplicates: last.provider.duplicates,
    phases: stage.phases,
  };
  const [only] = report.operations;
  writeTextFile(
    path.join(outDir, "effect-report.json"),
    `${toJsonText({
      ...report,
      ...(report.operations.length === 1 && only !== undefined ? only : {}),
    })}\n`,
  );
  return differences(story, {
    statuses: operations.map((operation) => operation.status),
    committed: last.provider.committed,
    amounts: last.provider.amounts,
    duplicates: last.provider.duplicates,
    verifiedSuccess: trace?.verified_success ?? null,
  });
}

/** What the agent asked for and was refused before there was an operation, in the sentence that it was told. */
async function sayRefusals(stage: Stage, runId: RunId): Promise<void> {
  const view = await viewRun(stage.db, runId);
  for (const { name, decision, operationId, result } of view?.calls ?? []) {
    if (decision === "refused" && operationId === null && result !== null)
      stage.say(`${name} is refused: ${result}`);
  }
}

function differences(
  story: Story,
  seen: {
    statuses: string[];
    committed: number;
    amounts: Record<string, number>;
    duplicates: number;
    verifiedSuccess: boolean | null;
  },
): string[] {
  const { expected } = story;
  const wrong: string[] = [];
  const compare = (what: string, is: unknown, should: unknown): void => {
    if (JSON.stringify(is) !== JSON.stringify(should)) {
      wrong.push(`${what}: expected ${JSON.stringify(should)}, found ${JSON.stringify(is)}`);
    }
  };
  compare("operations in the ledger", seen.statuses, expected.statuses);
  compare("effects at the provider", seen.committed, expected.committed);
  compare("amounts at the provider", seen.amounts, expected.amounts);
  compare("duplicates at the provider", seen.duplicates, 0);
  compare("verified_success", seen.verifiedSuccess, expected.verifiedSuccess);
  return wrong;
}
