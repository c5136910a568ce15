/** Jobs: wake-ups on BullMQ (Redis or PostgreSQL), and timers. Nothing here knows what a row means. */
export type { Lane } from "./catalogue.js";
export { migrateQueueTables } from "./postgres-store.js";
export { type Handlers, type JobsMetrics, openQueues, type QueueHealth, type Queues } from "./queues.js";
export { type Schedule, type Schedules, startSchedules } from "./schedules.js";
