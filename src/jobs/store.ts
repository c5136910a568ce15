/** Where BullMQ keeps its jobs. One shape above this file, two implementations beside it. */
import type { JobsOptions, Processor } from "bullmq";
import type { Lane } from "./catalogue.js";

/** What is used of a queue, whichever store it is on. */
export interface LaneQueue {
  add(name: string, data: object, options: JobsOptions): Promise<unknown>;
  getWaitingCount(): Promise<number>;
  /** Told to stop by somebody with access to the store; nothing of ours does that. */
  isPaused(): Promise<boolean>;
}

/** What is used of a worker. */
export interface LaneWorker {
  /** Works until closed; rejects when it had to give up, and a new worker is then needed. */
  run(): Promise<void>;
  /** Takes nothing new and waits for what runs. */
  close(): Promise<void>;
}

export interface QueueStore {
  readonly kind: "redis" | "postgres";
  /** The producer's side of a lane. @throws while the store is away; ask again later */
  queue(lane: Lane): Promise<LaneQueue>;
  /** A worker that is ready to run. @throws while the store is away; ask again later */
  worker(lane: Lane, process: Processor, concurrency: number): Promise<LaneWorker>;
  /** @throws when there is no sign of life */
  ping(): Promise<void>;
  /** Ends every connection, also those on which something still waits. */
  close(): Promise<void>;
}

export interface StoreOptions {
  /** null: PostgreSQL. */
  readonly redisUrl: string | null;
  readonly databaseUrl: string;
  /** Job locks live this long without a renewal; a stalled job is given to somebody else, which our leases make harmless. */
  readonly lockMs: number;
  /** Told of errors on connections and in BullMQ's loops; both come back by themselves. */
  readonly onError: (error: Error) => void;
}

/** Of every queue's name. */
export const queueName = (lane: Lane): string => `countersign-${lane}`;

/** Settings of every worker, both stores. */
export const workerSettings = (lockMs: number, concurrency: number) => ({
  concurrency,
  lockDuration: lockMs,
  // Looking for stalled jobs is cheap; the sweeper would find their rows anyway.
  stalledInterval: lockMs,
  maxStalledCount: 10,
  // Seconds that an idle worker sleeps before it looks by itself: bounds what a lost notification costs.
  drainDelay: 1,
  // After a failed fetch (store away). BullMQ's default is 15 s.
  runRetryDelay: 1_000,
});

/**
 * One queue a lane, made when it is first asked for. BullMQ's objects remember a failed first connection for ever: one whose making
 * failed is forgotten, and made anew for the next who asks.
 */
export function oneQueueALane(make: (lane: Lane) => Promise<LaneQueue>): QueueStore["queue"] {
  const made = new Map<Lane, Promise<LaneQueue>>();
  return (lane) => {
    const known = made.get(lane);
    if (known !== undefined) return known;
    const queue = make(lane).catch((error: unknown) => {
      made.delete(lane);
      throw error;
    });
    made.set(lane, queue);
    return queue;
  };
}
