import {
  assertSchemaCompatibility,
  createPostgresBackend,
  DEFAULT_SCHEMA,
  LATEST_SCHEMA_VERSION,
  type PgPool,
  Queue,
  runMigrations,
  SchemaMigrationRequiredError,
  Worker,
} from "bullmq";
import pg from "pg";
import { within } from "./bounded.js";
import { LANE_NAMES, type Lane } from "./catalogue.js";
import {
  type LaneQueue,
  oneQueueALane,
  type QueueStore,
  queueName,
  type StoreOptions,
  workerSettings,
} from "./store.js";

const PRODUCER_CONNECTIONS = 4;
/** Beside the one LISTEN connection of each lane. */
const WORKER_CONNECTIONS = 6;
const CONNECT_WITHIN_MS = 5_000;
const STATEMENT_WITHIN_MS = 15_000;
/** A pool waits for connections in use; those that hang end with the process. */
const END_WITHIN_MS = 3_000;

/**
 * BullMQ on PostgreSQL.
 *
 * Its objects remember a failed first connection for ever, so none is made before its tables are known to be there, and one that
 * fails while it is being made is thrown away. It is handed pools: building its own needs CommonJS.
 */
export function postgresStore(options: StoreOptions): QueueStore {
  const producers = openPool(options, PRODUCER_CONNECTIONS);
  const workers = openPool(options, WORKER_CONNECTIONS + LANE_NAMES.length);
  let migrated: Promise<void> | undefined;
  const migrateOnce = (): Promise<void> => {
    migrated ??= migrate(producers).catch((error: unknown) => {
      migrated = undefined;
      throw error;
    });
    return migrated;
  };
  const makeQueue = async (lane: Lane): Promise<LaneQueue> => {
    await migrateOnce();
    const queue = new Queue(queueName(lane), { connection: asBullPool(producers) }, createPostgresBackend);
    queue.on("error", options.onError);
    await queue.waitUntilReady();
    return queue;
  };
  return {
    kind: "postgres",
    queue: oneQueueALane(makeQueue),
    worker: async (lane, process, concurrency) => {
      await migrateOnce();
      const worker = new Worker(
        queueName(lane),
        process,
        { connection: asBullPool(workers), autorun: false, ...workerSettings(options.lockMs, concurrency) },
        createPostgresBackend,
      );
      worker.on("error", options.onError);
      try {
        await worker.waitUntilReady();
      } catch (error) {
        await worker.close().catch(() => undefined);
        throw error;
      }
      return worker;
    },
    ping: async () => {
      await producers.query("SELECT 1");
    },
    close: async () => {
      await within(END_WITHIN_MS, Promise.allSettled([producers.end(), workers.end()])).catch(
        () => undefined,
      );
    },
  };
}

/** Makes or updates BullMQ's own schema; several processes may do so at once (it holds an advisory lock). */
export async function migrateQueueTables(databaseUrl: string): Promise<void> {
  const pool = openPool({ databaseUrl, onError: () => {} }, 1);
  try {
    await migrate(pool);
  } finally {
    await pool.end();
  }
}

async function migrate(pool: pg.Pool): Promise<void> {
  const client = await pool.connect();
  try {
    // Only where something is missing: it alters tables each time, which a role without that right may not.
    if ((await schemaVersion(client)) < LATEST_SCHEMA_VERSION) await runMigrations(client, DEFAULT_SCHEMA);
    client.release();
  } catch (error) {
    client.release(true);
    throw error;
  }
}

/** 0: there are no tables yet. */
async function schemaVersion(client: pg.PoolClient): Promise<number> {
  try {
    return await assertSchemaCompatibility(client, DEFAULT_SCHEMA);
  } catch (error) {
    if (error instanceof SchemaMigrationRequiredError) return 0;
    throw error;
  }
}

/** BullMQ describes the part of pg that it uses; the real pool has it, but with mutable arrays in its signatures. */
const asBullPool = (pool: pg.Pool): PgPool => pool as unknown as PgPool;

function openPool(options: Pick<StoreOptions, "databaseUrl" | "onError">, max: number): pg.Pool {
  const pool = new pg.Pool({
    connectionString: options.databaseUrl,
    max,
    application_name: "countersign-queue",
    // BullMQ names its tables without a schema.
    options: `-c search_path=${DEFAULT_SCHEMA}`,
    connectionTimeoutMillis: CONNECT_WITHIN_MS,
    statement_timeout: STATEMENT_WITHIN_MS,
    keepAlive: true,
  });
  pool.setMaxListeners(100); // each queue and worker listens
  pool.on("error", options.onError);
  pool.on("connect", (client) => client.on("error", () => {}));
  return pool;
}
