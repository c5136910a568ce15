import { Queue, Worker } from "bullmq";
import { Redis } from "ioredis";
import type { Lane } from "./catalogue.js";
import {
  type LaneQueue,
  oneQueueALane,
  type QueueStore,
  queueName,
  type StoreOptions,
  workerSettings,
} from "./store.js";

const RECONNECT_MAX_MS = 2_000;
/** Redis keeps a stream of events for each queue that nobody here reads. */
const EVENTS_KEPT = 100;

/**
 * BullMQ on Redis. Connections come back by themselves; but a queue remembers a failed first question for ever, so none is made
 * before its connection is there, and one that fails while it is being made is thrown away.
 */
export function redisStore(options: StoreOptions, url: string): QueueStore {
  const retryStrategy = (times: number): number => Math.min(times * 100, RECONNECT_MAX_MS);
  // Producers fail at once while Redis is away; workers wait for it.
  const producer = new Redis(url, { enableOfflineQueue: false, maxRetriesPerRequest: 1, retryStrategy });
  const consumer = new Redis(url, { maxRetriesPerRequest: null, retryStrategy });
  for (const client of [producer, consumer]) {
    client.on("error", options.onError);
    client.setMaxListeners(100); // each queue and worker listens
  }
  const makeQueue = async (lane: Lane): Promise<LaneQueue> => {
    await ready(producer);
    const queue = new Queue(queueName(lane), {
      connection: producer,
      streams: { events: { maxLen: EVENTS_KEPT } },
    });
    queue.on("error", options.onError);
    await queue.waitUntilReady();
    return queue;
  };
  return {
    kind: "redis",
    queue: oneQueueALane(makeQueue),
    worker: async (lane, process, concurrency) => {
      const worker = new Worker(queueName(lane), process, {
        connection: consumer,
        autorun: false,
        ...workerSettings(options.lockMs, concurrency),
      });
      worker.on("error", options.onError);
      return worker;
    },
    ping: async () => {
      await producer.ping();
    },
    close: async () => {
      producer.disconnect();
      consumer.disconnect();
    },
  };
}

/** Resolves when commands can be sent. Waits without end: the caller knows how long it can. */
function ready(client: Redis): Promise<void> {
  if (client.status === "ready") return Promise.resolve();
  return new Promise((done) => client.once("ready", () => done()));
}
