import { Queue, Worker } from "bullmq";
import { Redis } from "ioredis";
import type { Lane } from "./catalogue.js";
import { type LaneQueue, type QueueStore, queueName, type StoreOptions, workerSettings } from "./store.js";

const RECONNECT_MAX_MS = 2_000;
/** Redis keeps a stream of events for each queue that nobody here reads. */
const EVENTS_KEPT = 100;

/** BullMQ on Redis. Connections come back by themselves, so nothing here is ever opened twice. */
export function redisStore(options: StoreOptions, url: string): QueueStore {
  const retryStrategy = (times: number): number => Math.min(times * 100, RECONNECT_MAX_MS);
  // Producers fail at once while Redis is away; workers wait for it.
  const producer = new Redis(url, { enableOfflineQueue: false, maxRetriesPerRequest: 1, retryStrategy });
  const consumer = new Redis(url, { maxRetriesPerRequest: null, retryStrategy });
  for (const client of [producer, consumer]) {
    client.on("error", options.onError);
    client.setMaxListeners(100); // each queue and worker listens
  }
  const queues = new Map<Lane, LaneQueue>();
  return {
    kind: "redis",
    queue: async (lane) => {
      let queue = queues.get(lane);
      if (queue === undefined) {
        const made = new Queue(queueName(lane), {
          connection: producer,
          skipWaitingForReady: true,
          streams: { events: { maxLen: EVENTS_KEPT } },
        });
        made.on("error", options.onError);
        queue = made;
        queues.set(lane, queue);
      }
      return queue;
    },
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
