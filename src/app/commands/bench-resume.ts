/** `countersign bench resume`: from a click to the resumed run, beside the bare queue; then workers that are killed. */
import { randomInt } from "node:crypto";
import { setTimeout as pause } from "node:timers/promises";
import {
  type Clicked,
  type HeldRun,
  heldRuns,
  leftOver,
  listenForReleases,
  measureResume,
  type Releases,
  type ResumeReport,
} from "../../evaluation/index.js";
import { openQueues } from "../../jobs/index.js";
import { createTracer } from "../../telemetry/index.js";
import { CommandFailure, EXIT_BAD_USAGE } from "../exit.js";
import { complain, print, printJson, table } from "../output.js";
import { systemClock } from "../system.js";
import { milliseconds } from "./bench-slack.js";
import { type BenchWorld, withBenchWorld } from "./bench-world.js";

export interface BenchResumeOptions {
  readonly runs?: number;
  readonly kills?: number;
  readonly rows?: number;
  readonly json?: boolean;
}

const DEFAULTS = { runs: 100, kills: 20, rows: 1_000_000 } as const;
const PENDING_APPROVALS = 1_000;
/** What a dead worker held is free again soon; the order between them is production's. */
const TIMING = {
  PROVIDER_TIMEOUT_MS: "2000",
  RECONCILE_EVERY_MS: "500",
  RECONCILE_BASE_MS: "300",
  RECONCILE_MAX_MS: "2000",
  LEASE_MS: "4000",
} as const;
/** Clicks of a process that has just started, beside those that are counted. */
const FIRST_CLICKS = 20;
const CLICK_AGAIN_MS = 4_000;
const CLICKS_AT_MOST = 15;
const GOAL_RATIO = 1;
const GOAL_TAIL = 3;
const quiet = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };

interface Outcome {
  readonly machine: string;
  readonly resume: ResumeReport;
  readonly kills: { readonly killed: number; readonly refunds: number; readonly wrong: readonly string[] };
}

export async function benchResume(options: BenchResumeOptions): Promise<void> {
  const { runs, kills, rows } = { ...DEFAULTS, ...options };
  if (runs < 1 || kills < 0 || rows < 0) {
    throw new CommandFailure("--runs must be positive, --kills and --rows not negative.", EXIT_BAD_USAGE);
  }
  const {
    machine,
    resume,
    kills: killed,
  }: Outcome = await withBenchWorld(
    {
      transport: "http",
      orders: FIRST_CLICKS + runs + kills,
      rows,
      pendingApprovals: PENDING_APPROVALS,
      timing: TIMING,
    },
    async (bench) => {
      await bench.product("app");
      const resumed = await resumeAll(bench, runs);
      return {
        machine: bench.machine,
        resume: resumed,
        kills: await killWorkers(bench, FIRST_CLICKS + runs, kills),
      };
    },
  );
  if (options.json === true) printJson({ machine, runs, rows, resume, kills: killed });
  else {
    print(machine);
    print(`${rows} operations and ${PENDING_APPROVALS} pending approvals in the tables`);
    print("");
    print(
      table([
        ["", "measured", "p50 ms", "p90 ms", "p99 ms", "max ms"],
        ["click to acknowledgement", String(resume.acknowledged.count), ...milliseconds(resume.acknowledged)],
        ["click to resumed run", String(resume.resumed.count), ...milliseconds(resume.resumed)],
        ...spreadRow("  the first clicks, not counted", resume.first),
        ...spreadRow("  Slack was asked who clicked", resume.resumedAsking),
        ...spreadRow("  it was known, at most 2.5 s old", resume.resumedKnowing),
        ["recorded arrival to vote", String(resume.judged.count), ...milliseconds(resume.judged)],
        ["vote to released turn", String(resume.released.count), ...milliseconds(resume.released)],
        ["vote to claimed by a worker", String(resume.claimed.count), ...milliseconds(resume.claimed)],
        ["bare queue's pick-up", String(resume.bare.count), ...milliseconds(resume.bare)],
        ["one commit", String(resume.commit.count), ...milliseconds(resume.commit)],
      ]),
    );
    print("");
    print(
      `from the click, p50 / (2 × bare + commit): ${resume.ratio.toFixed(2)} (goal: at most ${GOAL_RATIO}); from the vote: ${resume.ratioFromVote.toFixed(2)}`,
    );
    print(
      `from the click, p99 / p50: ${resume.tail.toFixed(2)} (goal: at most ${GOAL_TAIL}); with the first clicks: ${resume.tailFromStart.toFixed(2)}; of the bare pick-up in the same minutes: ${resume.bareTail.toFixed(2)}`,
    );
    print(
      `workers killed: ${killed.killed}; refunds at the provider for ${kills} approvals: ${killed.refunds}; ${killed.wrong.length === 0 ? "nothing stuck" : killed.wrong.join("; ")}`,
    );
  }
  // What is slow is printed; what is stuck, lost or doubled is wrong.
  if (killed.wrong.length > 0) throw new CommandFailure(killed.wrong.join("\n"));
}

/** Held runs are made while a worker of their own works; then one click after the other. */
async function resumeAll(bench: BenchWorld, runs: number): Promise<ResumeReport> {
  const worker = await bench.product("worker");
  complain(`${FIRST_CLICKS + runs} tickets are filed and held`);
  const held = await makeHeld(bench, 0, FIRST_CLICKS + runs);
  const bare = await bareQueue(bench.besideUrl, bench.besideRedisUrl);
  const releases = await listenForReleases(bench.world.databaseUrl);
  try {
    complain("one click after the other");
    return await measureResume(
      {
        db: bench.db,
        click: (run) => approveAndTime(bench, releases, run),
        barePickUpMs: bare.pickUpMs,
        commitMs: async () => {
          const began = performance.now();
          await bench.db.pool.query("UPDATE bench_commit SET n = n + 1");
          return performance.now() - began;
        },
        until: (what, look, everyMs) => bench.until(what, look, undefined, everyMs),
        askedSince: askedSince(bench),
      },
      held,
      FIRST_CLICKS,
    );
  } finally {
    await releases.close();
    await bare.close();
    await worker.stop();
  }
}

const ABOUT_PEOPLE: ReadonlySet<string> = new Set(["users.info", "usergroups.users.list"]);

/** Counts the workspace's answers about people since the last call, by its own journal. */
function askedSince({ world }: BenchWorld): () => number {
  let seen = 0;
  return () => {
    const entries = world.slack.control.journal(seen, Number.MAX_SAFE_INTEGER);
    seen = entries.at(-1)?.seq ?? seen;
    return entries.filter((entry) => entry.kind === "api" && ABOUT_PEOPLE.has(entry.method)).length;
  };
}

/** No row where nothing was measured. */
const spreadRow = (what: string, spread: ResumeReport["resumedAsking"]): string[][] =>
  spread === null ? [] : [[what, String(spread.count), ...milliseconds(spread)]];

/** Refunds that wait for an approval, orders `first` and on. */
async function makeHeld(bench: BenchWorld, first: number, count: number): Promise<HeldRun[]> {
  await bench.db.pool.query("CREATE TABLE IF NOT EXISTS bench_commit (n int)");
  await bench.db.pool.query(
    "INSERT INTO bench_commit SELECT 0 WHERE NOT EXISTS (SELECT 1 FROM bench_commit)",
  );
  const before = new Set((await heldRuns(bench.db)).map(({ operationId }) => operationId));
  const fresh = async (): Promise<HeldRun[]> =>
    (await heldRuns(bench.db)).filter(({ operationId }) => !before.has(operationId));
  for (let n = first; n < first + count; n += 1) await bench.fileHeld(n);
  await bench.until(`${count} runs to be held`, async () => (await fresh()).length >= count, 600_000);
  return fresh();
}

/** A click that Slack's limits keep from being judged is told so, and a person clicks again; so does this. */
async function approveUntil<T>(
  bench: BenchWorld,
  run: HeldRun,
  came: (clicked: Omit<Clicked, "resumedAt">) => Promise<T | null>,
): Promise<T> {
  for (let tries = 1; tries <= CLICKS_AT_MOST; tries += 1) {
    const at = performance.now();
    if (!(await clickApprove(bench, run))) {
      complain("a click was not acknowledged within Slack's three seconds; clicked again");
      continue;
    }
    const found = await came({ at, acknowledgedAt: performance.now() });
    if (found !== null) return found;
    complain("a click was acknowledged and came to nothing; clicked again");
  }
  throw new Error(`nothing came of any click on ${run.approvalId}`);
}

const approveAndTime = (bench: BenchWorld, releases: Releases, run: HeldRun): Promise<Clicked> =>
  approveUntil(bench, run, async (clicked) => {
    const resumedAt = await releases.heardOf(run.turnId, CLICK_AGAIN_MS);
    return resumedAt === null ? null : { ...clicked, resumedAt };
  });

const approve = (bench: BenchWorld, run: HeldRun): Promise<true> =>
  approveUntil(bench, run, async () => {
    const voted = async (): Promise<boolean> =>
      (await bench.db.sql("bench.vote", "SELECT 1 FROM votes WHERE approval_id = $1", [run.approvalId]))
        .length > 0;
    return bench.until("the vote", voted, CLICK_AGAIN_MS).then(
      () => true as const,
      () => null,
    );
  });

async function clickApprove(bench: BenchWorld, { approvalId, cardVersion }: HeldRun): Promise<boolean> {
  const { acked } = await bench.world.slack.control.injectInteraction({
    type: "block_actions",
    user: { id: "U_SUP1" },
    // In App Home, which shows every approval at once; cards are posted at Slack's pace, one a second.
    container: { type: "view", view_id: "V_HOME" },
    view: { id: "V_HOME", type: "home" },
    actions: [
      {
        type: "button",
        action_id: "approval.approve",
        block_id: "decide",
        value: `${approvalId}.${cardVersion}`,
      },
    ],
  });
  return acked;
}

/** The same queue on the same store with nothing of ours behind it, on a database of its own on the same server. */
async function bareQueue(
  databaseUrl: string,
  redisUrl: string | null,
): Promise<{ pickUpMs(): Promise<number>; close(): Promise<void> }> {
  const waiting = new Map<string, () => void>();
  const queues = openQueues({
    redisUrl,
    databaseUrl,
    lockMs: 30_000,
    log: quiet,
    metrics: { jobDone: () => {}, wakeLost: () => {} },
    tracer: createTracer({
      endpoint: null,
      serviceName: "bench",
      instance: "bench",
      clock: systemClock,
      log: quiet,
    }),
    ticks: () => performance.now(),
  });
  const picked = async (id: string): Promise<void> => waiting.get(id)?.();
  queues.work(
    {
      run: picked,
      operation: picked,
      webhook: picked,
      approval: picked,
      inbox: picked,
      outbox: picked,
      card: picked,
    },
    12,
  );
  let sent = 0;
  const pickUpMs = async (): Promise<number> => {
    sent += 1;
    const id = `bare_${sent}`;
    const began = performance.now();
    const taken = new Promise<void>((resolve) => waiting.set(id, resolve));
    await queues.wake("run", id);
    await taken;
    return performance.now() - began;
  };
  await pickUpMs(); // the first one makes the tables
  return { pickUpMs, close: () => queues.close() };
}

/** Each refund is approved while a worker runs that is killed at a random moment; the next worker goes on. */
async function killWorkers(bench: BenchWorld, first: number, kills: number): Promise<Outcome["kills"]> {
  if (kills === 0) return { killed: 0, refunds: 0, wrong: [] };
  let worker = await bench.product("worker");
  const held = await makeHeld(bench, first, kills);
  const before = (await bench.world.payments.control.effects()).length;
  for (const [index, run] of held.entries()) {
    await approve(bench, run);
    await pause(randomInt(0, 150));
    await worker.kill();
    complain(`killed ${index + 1} of ${kills}`);
    worker = await bench.product("worker");
  }
  const operations = held.map(({ operationId }) => operationId);
  const deadline = 180_000;
  await bench
    .until(
      "everything to be settled",
      async () => (await leftOver(bench.db, operations)).length === 0,
      deadline,
    )
    .catch(() => undefined);
  const stuck = await leftOver(bench.db, operations);
  const refunds = (await bench.world.payments.control.effects()).length - before;
  return {
    killed: held.length,
    refunds,
    wrong: [
      ...stuck,
      ...(refunds === held.length ? [] : [`${refunds} refunds for ${held.length} approvals`]),
    ],
  };
}
