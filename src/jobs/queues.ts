/**
 * Wake-ups through BullMQ.
 *
 * 1. `wake` never throws and never blocks for long, not even together: while the queue is away it gives up at once, and looks
 *    again only every second. A wake-up that cannot be queued is lost, and the sweeper finds its row.
 * 2. No job has an id of our making and none is kept, so a second wake-up for a row is never swallowed by a first one.
 * 3. A job is tried once. What must be tried again is due again, in its row.
 * 4. The store may be away when the program starts, and may go and come back: workers are made as soon as it answers.
 */
import type { Job } from "bullmq";
import type { Logger } from "../domain/ports/logger.js";
import type { Wake, WakeKind } from "../domain/ports/wake.js";
import { cutText } from "../domain/text/cut.js";
import { type Tracer, withCorrelation } from "../telemetry/index.js";
import { within } from "./bounded.js";
import { JOB_OPTIONS, LANE_NAMES, type Lane, laneOf, readJob, type WakeJob } from "./catalogue.js";
import { type FailureLog, failureLog } from "./failure-log.js";
import { postgresStore } from "./postgres-store.js";
import { redisStore } from "./redis-store.js";
import { type LaneWorker, type QueueStore, queueName, type StoreOptions } from "./store.js";

export type Handlers = { readonly [K in WakeKind]: (id: string) => Promise<void> };

export interface JobsMetrics {
  jobDone(kind: string, outcome: "ok" | "failed", ms: number): void;
  wakeLost(kind: string): void;
}

export interface QueuesOptions extends Omit<StoreOptions, "onError"> {
  readonly log: Logger;
  readonly metrics: JobsMetrics;
  /** Each job is a span. */
  readonly tracer: Tracer;
  /** Milliseconds of a steady clock, for durations. */
  readonly ticks: () => number;
}

export interface QueueHealth {
  readonly ok: boolean;
  readonly store: "redis" | "postgres";
  /** A sentence for on-call. */
  readonly detail: string;
}

export interface Queues {
  readonly wake: Wake;
  /** Starts to work. `concurrency` is for each lane. */
  work(handlers: Handlers, concurrency: number): void;
  health(): Promise<QueueHealth>;
  /** Jobs that wait, by lane; null when the store does not answer. */
  depth(): Promise<Readonly<Record<Lane, number>> | null>;
  /** Takes nothing new, lets what runs end for at most `withinMs` (default 10 s), closes every connection. */
  close(withinMs?: number): Promise<void>;
}

/** How long a wake-up may take to be queued before it counts as lost. */
const WAKE_WITHIN_MS = 1_000;
const PING_WITHIN_MS = 1_500;
/** After a failure, how long wake-ups are dropped at once before the store is asked again. */
const LOOK_AGAIN_MS = 1_000;
/** Errors of BullMQ's loops are repeated every second while the store is away; one line in this time is enough. */
const ERROR_LINE_MS = 30_000;
const CLOSE_WITHIN_MS = 10_000;
/** Whoever can write to the store gives a job any name. */
const NAME_MAX_CHARS = 100;

/** Opens the store of the configuration. Never throws for a store that is away. */
export function openQueues(options: QueuesOptions): Queues {
  const { log, metrics } = options;
  const watch = storeWatch(options);
  const failures = failureLog(options.log);
  const store = openStore({ ...options, onError: watch.error });
  watch.name(store.kind);
  const closing = new AbortController();
  const workers: Promise<void>[] = [];
  const live = new Set<LaneWorker>();

  const wake: Wake = async (kind, id) => {
    if (closing.signal.aborted || watch.isAway()) {
      metrics.wakeLost(kind);
      return;
    }
    try {
      await within(WAKE_WITHIN_MS, addJob(store, kind, id));
      watch.answered();
    } catch (error) {
      metrics.wakeLost(kind);
      watch.failed(error);
    }
  };

  /** A lane's worker, made again when it could not be made or gave up, until the end. */
  const keepWorking = async (
    lane: Lane,
    process: (job: Job) => Promise<void>,
    concurrency: number,
  ): Promise<void> => {
    while (!closing.signal.aborted) {
      try {
        const worker = await store.worker(lane, process, concurrency);
        live.add(worker);
        try {
          if (!closing.signal.aborted) await worker.run();
        } finally {
          await worker.close();
          live.delete(worker);
        }
      } catch (error) {
        watch.error(error instanceof Error ? error : new Error(String(error)));
      }
      await pause(LOOK_AGAIN_MS, closing.signal);
    }
  };

  return {
    wake,
    work: (handlers, concurrency) => {
      for (const lane of LANE_NAMES) {
        workers.push(
          keepWorking(lane, (job) => workOn(options, handlers, { lane, job, failures }), concurrency),
        );
      }
    },
    health: async () => {
      try {
        await within(PING_WITHIN_MS, store.ping());
        const stopped = await within(PING_WITHIN_MS, stoppedLanes(store));
        if (stopped.length === 0)
          return { ok: true, store: store.kind, detail: `The queue (${store.kind}) answers.` };
        const detail = `The queue (${store.kind}) was told to stop for ${stopped.join(", ")}: nothing of that moves until it is resumed there. Nothing is lost.`;
        return { ok: false, store: store.kind, detail };
      } catch {
        const detail = `The queue (${store.kind}) is away. Nothing is lost: rows stay due and go on when it is back.`;
        return { ok: false, store: store.kind, detail };
      }
    },
    depth: async () => {
      try {
        return await within(PING_WITHIN_MS, depths(store));
      } catch {
        return null;
      }
    },
    close: async (withinMs = CLOSE_WITHIN_MS) => {
      closing.abort();
      const closed = Promise.allSettled([...[...live].map((worker) => worker.close()), ...workers]);
      await within(withinMs, closed).catch(() => {
        log.warn(
          { withinMs },
          "jobs were still running at the end; their leases expire and others take them over",
        );
      });
      await store.close();
    },
  };
}

function openStore(options: StoreOptions): QueueStore {
  return options.redisUrl === null ? postgresStore(options) : redisStore(options, options.redisUrl);
}

async function addJob(store: QueueStore, kind: WakeKind, id: string): Promise<void> {
  const queue = await store.queue(laneOf(kind));
  await queue.add(kind, { id }, { ...JOB_OPTIONS });
}

/** By their queues' names, as whoever resumes them must name them. */
async function stoppedLanes(store: QueueStore): Promise<readonly string[]> {
  const stopped = await Promise.all(LANE_NAMES.map(async (lane) => (await store.queue(lane)).isPaused()));
  return LANE_NAMES.filter((_lane, at) => stopped[at] === true).map(queueName);
}

async function depths(store: QueueStore): Promise<Record<Lane, number>> {
  const depth: Record<Lane, number> = { runs: 0, effects: 0, arrivals: 0, posts: 0 };
  await Promise.all(
    LANE_NAMES.map(async (lane) => {
      depth[lane] = await (await store.queue(lane)).getWaitingCount();
    }),
  );
  return depth;
}

/** One job, start to end. Never throws: a failure is logged, and the row stays due. */
async function workOn(
  options: QueuesOptions,
  handlers: Handlers,
  { lane, job, failures }: { readonly lane: Lane; readonly job: Job; readonly failures: FailureLog },
): Promise<void> {
  const { log, metrics, ticks, tracer } = options;
  const wanted = readJob(job.name, job.data);
  if (wanted === null) {
    const jobName = cutText(job.name, NAME_MAX_CHARS);
    log.warn({ jobId: job.id ?? null, jobName, lane }, "a job that is not one of ours was dropped");
    return;
  }
  const began = ticks();
  await withCorrelation(about(wanted), async () => {
    try {
      await tracer.span(`job ${wanted.kind}`, {}, () => handlers[wanted.kind](wanted.id));
      metrics.jobDone(wanted.kind, "ok", ticks() - began);
      failures.ended(wanted.kind);
    } catch (error) {
      metrics.jobDone(wanted.kind, "failed", ticks() - began);
      failures.failed(wanted, error);
    }
  });
}

function about({ kind, id }: WakeJob): Parameters<typeof withCorrelation>[0] {
  switch (kind) {
    case "run":
      return { job: kind, runId: id };
    case "operation":
      return { job: kind, operationId: id };
    case "approval":
      return { job: kind, approvalId: id };
    case "inbox":
      return { job: kind, slackEvent: id };
    case "outbox":
    case "card":
    case "webhook":
      return { job: kind };
  }
}

/** Knows whether the store answers, and says so once when that changes. */
function storeWatch({ log, ticks }: Pick<QueuesOptions, "log" | "ticks">) {
  let store = "";
  let awaySince: number | undefined;
  let askAgainAt = 0;
  let lastLineAt = Number.NEGATIVE_INFINITY;
  return {
    name: (kind: string): void => {
      store = kind;
    },
    /** True while there is no point in asking. */
    isAway: (): boolean => awaySince !== undefined && ticks() < askAgainAt,
    failed: (error: unknown): void => {
      askAgainAt = ticks() + LOOK_AGAIN_MS;
      if (awaySince !== undefined) return;
      awaySince = ticks();
      log.warn({ err: error, store }, "the queue is away; wake-ups are lost, the sweeper finds their rows");
    },
    answered: (): void => {
      if (awaySince === undefined) return;
      log.info({ store, awayMs: Math.round(ticks() - awaySince) }, "the queue is back");
      awaySince = undefined;
    },
    error: (error: Error): void => {
      if (ticks() - lastLineAt < ERROR_LINE_MS) return;
      lastLineAt = ticks();
      log.warn({ err: error, store }, "the queue reports an error; it goes on by itself");
    },
  };
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((done) => {
    if (signal.aborted) {
      done();
      return;
    }
    const end = (): void => {
      clearTimeout(timer);
      signal.removeEventListener("abort", end);
      done();
    };
    const timer = setTimeout(end, ms);
    signal.addEventListener("abort", end);
  });
}
