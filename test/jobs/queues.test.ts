import { createPostgresBackend, Queue } from "bullmq";
import { Redis } from "ioredis";
import pg from "pg";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { WakeKind } from "../../src/domain/ports/wake.js";
import { type Handlers, migrateQueueTables, openQueues, type Queues } from "../../src/jobs/index.js";
import { NO_TRACER } from "../../src/telemetry/index.js";
import { withDatabase } from "../support/database.js";
import { startProxy, type TcpProxy } from "../support/proxy.js";
import { redisUrl } from "../support/redis.js";
import { deferred, waitFor } from "../support/wait.js";

const db = withDatabase({ reset: "never" });
const redis = redisUrl();

interface Line {
  readonly level: string;
  readonly fields: Record<string, unknown>;
  readonly message: string;
}

/** One process with its queue, as `app` composes it, and everything that it did. */
interface Process {
  readonly queues: Queues;
  readonly handled: string[];
  readonly lines: Line[];
  readonly lost: string[];
}

const STORES = [
  { store: "postgres" as const, available: true },
  { store: "redis" as const, available: redis !== undefined },
];

describe.each(STORES)("wake-ups on $store", ({ store, available }) => {
  if (!available) {
    it.skip("REDIS_URL is not set", () => {});
    return;
  }
  let proxy: TcpProxy;
  const processes: Process[] = [];

  beforeEach(async () => {
    if (store === "redis") await withRedis((client) => client.flushdb());
    else await db.db.pool.query("DROP SCHEMA IF EXISTS bullmq CASCADE");
    proxy = await startProxy(store === "redis" ? (redis ?? "") : db.url);
  });

  afterEach(async () => {
    await Promise.all(processes.splice(0).map((one) => one.queues.close(2_000)));
    await proxy.stop();
  });

  const withRedis = async <T>(use: (client: Redis) => Promise<T>): Promise<T> => {
    const client = new Redis(redis ?? "");
    try {
      return await use(client);
    } finally {
      client.disconnect();
    }
  };

  const start = (handle?: (kind: WakeKind, id: string) => Promise<void>, concurrency = 4): Process => {
    const lines: Line[] = [];
    const lost: string[] = [];
    const handled: string[] = [];
    const line = (level: string) => (fields: object, message: string) =>
      void lines.push({ level, fields: fields as Record<string, unknown>, message });
    const queues = openQueues({
      redisUrl: store === "redis" ? proxy.through(redis ?? "") : null,
      databaseUrl: store === "redis" ? db.url : proxy.through(db.url),
      lockMs: 5_000,
      log: { debug: line("debug"), info: line("info"), warn: line("warn"), error: line("error") },
      metrics: { jobDone: () => {}, wakeLost: (kind) => void lost.push(kind) },
      tracer: NO_TRACER,
      ticks: () => performance.now(),
    });
    const one = (kind: WakeKind) => async (id: string) => {
      handled.push(`${kind}:${id}`);
      await handle?.(kind, id);
    };
    const handlers: Handlers = {
      run: one("run"),
      operation: one("operation"),
      inbox: one("inbox"),
      outbox: one("outbox"),
      card: one("card"),
      webhook: one("webhook"),
      approval: one("approval"),
    };
    queues.work(handlers, concurrency);
    const process = { queues, handled, lines, lost };
    processes.push(process);
    return process;
  };

  /** Wakes again and again, as the sweeper does, until the handler has seen it. */
  const sweepUntilHandled = (process: Process, kind: WakeKind, id: string): Promise<unknown> =>
    waitFor(
      async () => {
        await process.queues.wake(kind, id);
        return process.handled.includes(`${kind}:${id}`);
      },
      { everyMs: 200, timeoutMs: 45_000, what: `${kind}:${id} to be handled` },
    );

  /** A wake-up that the store was too slow for is lost and counted as such, on a machine that stands still: it is asked for again. */
  const queued = async (process: Process, kind: WakeKind, id: string): Promise<void> => {
    await waitFor(
      async () => {
        const before = process.lost.length;
        await process.queues.wake(kind, id);
        return process.lost.length === before;
      },
      { everyMs: 200, what: `${kind}:${id} to be queued` },
    );
  };

  it("every kind reaches its handler with its id", async () => {
    const a = start();
    await sweepUntilHandled(a, "run", "run_0");
    for (const kind of ["run", "operation", "inbox", "outbox", "card", "webhook", "approval"] as const) {
      await queued(a, kind, `${kind}_1`);
      await waitFor(() => a.handled.includes(`${kind}:${kind}_1`));
    }
  });

  it("a second wake-up for a row is never swallowed: not while the first is worked on, not after it", async () => {
    const gate = deferred<void>();
    const a = start((_kind, id) => (id === "op_held" ? gate.promise : Promise.resolve()));
    await sweepUntilHandled(a, "operation", "op_warm");
    const seen = () => a.handled.filter((one) => one === "operation:op_held").length;
    // One that counted as lost may have been queued all the same: no fewer than were asked for is what is promised.
    await queued(a, "operation", "op_held");
    await waitFor(() => seen() >= 1);
    await queued(a, "operation", "op_held");
    await waitFor(() => seen() >= 2, { what: "the wake-up that came while the first was active" });
    gate.resolve();
    await queued(a, "operation", "op_held");
    await waitFor(() => seen() >= 3, { what: "the wake-up that came after the end" });
  });

  it("two processes share the work and each wake-up is handled once", async () => {
    const a = start();
    const b = start();
    await sweepUntilHandled(a, "operation", "op_warm").catch(() => {});
    const ids = Array.from({ length: 60 }, (_, index) => `op_${index}`);
    await Promise.all(ids.map((id) => queued(a, "operation", id)));
    const all = () => [...a.handled, ...b.handled].filter((one) => /op_\d+$/.test(one));
    await waitFor(() => new Set(all()).size >= ids.length);
    // As often as it was queued: only what counted as lost may have been queued as well.
    expect([...new Set(all())].sort()).toEqual(ids.map((id) => `operation:${id}`).sort());
    expect(all().length).toBeLessThanOrEqual(ids.length + a.lost.length);
  });

  it("with the store away, wake-ups return within a second or so, also a hundred together, and it is said once", async () => {
    const a = start();
    await sweepUntilHandled(a, "run", "run_before");
    await proxy.cut();
    const began = performance.now();
    await Promise.all(Array.from({ length: 100 }, (_, index) => a.queues.wake("run", `run_${index}`)));
    await a.queues.wake("run", "run_one_more");
    expect(performance.now() - began).toBeLessThan(4_000);
    expect(a.lost.length).toBeGreaterThanOrEqual(100);
    expect(await a.queues.health()).toMatchObject({ ok: false, store });
    expect(await a.queues.depth()).toBeNull();
    await proxy.mend();
    await sweepUntilHandled(a, "run", "run_after");
    expect(await a.queues.health()).toMatchObject({ ok: true, store });
    expect(a.lines.filter((line) => line.message.includes("queue is away"))).toHaveLength(1);
    expect(a.lines.filter((line) => line.message.includes("queue is back"))).toHaveLength(1);
  });

  it("told to stop by somebody else, it says so: what waits is found as soon as it goes on", async () => {
    const a = start();
    await sweepUntilHandled(a, "run", "run_before");
    const { queue, close } = await foreignQueue();
    await queue.pause();
    expect(await a.queues.health()).toMatchObject({
      ok: false,
      detail: expect.stringContaining("countersign-runs"),
    });
    await queue.resume();
    await close();
    expect(await a.queues.health()).toMatchObject({ ok: true });
    await sweepUntilHandled(a, "run", "run_after");
  });

  it("a store that swallows packets blocks nobody for more than about a second", async () => {
    const a = start();
    await sweepUntilHandled(a, "run", "run_before");
    proxy.stall();
    const began = performance.now();
    await a.queues.wake("run", "run_1");
    await a.queues.wake("run", "run_2");
    expect(performance.now() - began).toBeLessThan(4_000);
    await proxy.cut();
    await proxy.mend();
    await sweepUntilHandled(a, "run", "run_after");
  });

  it("started while the store is away, it works as soon as it is there", async () => {
    await proxy.cut();
    const a = start();
    await a.queues.wake("inbox", "inb_lost");
    expect(a.lost).toEqual(["inbox"]);
    await proxy.mend();
    await sweepUntilHandled(a, "inbox", "inb_found");
  });

  it("an outage while jobs are active loses nothing: they end, and later wake-ups are handled", async () => {
    const gate = deferred<void>();
    const ended: string[] = [];
    const a = start(async (_kind, id) => {
      if (!id.startsWith("op_active")) return;
      await gate.promise;
      ended.push(id);
    });
    await sweepUntilHandled(a, "operation", "op_warm");
    await sweepUntilHandled(a, "operation", "op_active_1");
    await sweepUntilHandled(a, "operation", "op_active_2");
    await proxy.cut();
    gate.resolve();
    await waitFor(() => new Set(ended).size === 2);
    await proxy.mend();
    await sweepUntilHandled(a, "operation", "op_after_1");
    await sweepUntilHandled(a, "operation", "op_active_1");
    await waitFor(
      async () => Object.values((await a.queues.depth()) ?? { x: 1 }).every((waiting) => waiting === 0),
      {
        timeoutMs: 45_000,
        what: "the queue to drain",
      },
    );
  });

  it("an emptied store loses nothing that is woken again, whatever was waiting or active", async () => {
    const gate = deferred<void>();
    const a = start((_kind, id) => (id === "op_active" ? gate.promise : Promise.resolve()), 1);
    await sweepUntilHandled(a, "operation", "op_warm");
    // A wake-up that the store was too slow for is lost, and a sweeper's business.
    await sweepUntilHandled(a, "operation", "op_active");
    await a.queues.wake("operation", "op_waiting");
    if (store === "redis") await withRedis((client) => client.flushdb());
    else await db.db.pool.query("TRUNCATE bullmq.job CASCADE");
    gate.resolve();
    await sweepUntilHandled(a, "operation", "op_waiting");
    await sweepUntilHandled(a, "operation", "op_later");
  });

  it("a job that is not one of ours is logged once with its id and dropped; the next one is handled", async () => {
    const a = start();
    await sweepUntilHandled(a, "run", "run_warm");
    const planted = async (name: string, data: object): Promise<string> => {
      const plant = await foreignQueue();
      try {
        const job = await plant.queue.add(name, data);
        return job.id ?? "";
      } finally {
        await plant.close();
      }
    };
    const unknown = await planted("teleport", { id: "x_1" });
    const malformed = await planted("run", { id: 7, amountMinor: 5 });
    await sweepUntilHandled(a, "run", "run_next");
    const dropped = () => a.lines.filter((line) => line.message.includes("not one of ours"));
    await waitFor(() => dropped().length === 2);
    expect(dropped().map((line) => line.fields["jobId"])).toEqual([unknown, malformed]);
    expect(a.handled.every((one) => one.startsWith("run:run_"))).toBe(true);
  });

  it("a handler that throws is logged with its id, tried once, and stops nothing", async () => {
    const a = start((_kind, id) =>
      id === "run_bad" ? Promise.reject(new Error("planted")) : Promise.resolve(),
    );
    await sweepUntilHandled(a, "run", "run_warm");
    await queued(a, "run", "run_bad");
    await waitFor(() => a.lines.some((line) => line.level === "error" && line.fields["id"] === "run_bad"));
    await queued(a, "run", "run_good");
    await waitFor(() => a.handled.includes("run:run_good"));
    expect(a.handled.filter((one) => one === "run:run_bad").length).toBeLessThanOrEqual(1 + a.lost.length);
  });

  it("close lets what runs end, and does not wait for ever for what hangs", async () => {
    const slow = deferred<void>();
    const a = start((_kind, id) => (id === "run_slow" ? slow.promise : Promise.resolve()));
    await sweepUntilHandled(a, "run", "run_warm");
    await queued(a, "run", "run_slow");
    await waitFor(() => a.handled.includes("run:run_slow"));
    let closed = false;
    const closing = a.queues.close(30_000).then(() => {
      closed = true;
    });
    await a.queues.wake("run", "run_too_late");
    expect(closed).toBe(false);
    slow.resolve();
    await closing;
    expect(a.handled).not.toContain("run:run_too_late");

    const hung = deferred<void>();
    const b = start((_kind, id) => (id === "run_hung" ? hung.promise : Promise.resolve()));
    await sweepUntilHandled(b, "run", "run_warm2");
    await queued(b, "run", "run_hung");
    await waitFor(() => b.handled.includes("run:run_hung"));
    const began = performance.now();
    await b.queues.close(500);
    expect(performance.now() - began).toBeLessThan(10_000);
    expect(b.lines.some((line) => line.message.includes("still running"))).toBe(true);
    hung.resolve();
  });

  /** A producer that is not ours, on the same queue. */
  const foreignQueue = async (): Promise<{
    queue: Pick<Queue, "add" | "pause" | "resume">;
    close(): Promise<void>;
  }> => {
    if (store === "redis") {
      const client = new Redis(redis ?? "", { maxRetriesPerRequest: null });
      const queue = new Queue("countersign-runs", { connection: client });
      return {
        queue,
        close: async () => {
          await queue.close();
          client.disconnect();
        },
      };
    }
    const pool = new pg.Pool({ connectionString: db.url, options: "-c search_path=bullmq" });
    const queue = new Queue("countersign-runs", { connection: pool as never }, createPostgresBackend);
    return {
      queue: queue as unknown as Pick<Queue, "add" | "pause" | "resume">,
      close: async () => {
        await queue.close();
        await pool.end();
      },
    };
  };
});

describe("on PostgreSQL", () => {
  it("a lost notification costs about a second, not for ever", async () => {
    await migrateQueueTables(db.url);
    const handled: string[] = [];
    const quiet = () => {};
    const queues = openQueues({
      redisUrl: null,
      databaseUrl: db.url,
      lockMs: 5_000,
      log: { debug: quiet, info: quiet, warn: quiet, error: quiet },
      metrics: { jobDone: quiet, wakeLost: quiet },
      tracer: NO_TRACER,
      ticks: () => performance.now(),
    });
    const note = async (id: string) => void handled.push(id);
    queues.work(
      { run: note, operation: note, inbox: note, outbox: note, card: note, webhook: note, approval: note },
      1,
    );
    try {
      await waitFor(async () => {
        await queues.wake("run", "run_warm");
        return handled.length > 0;
      });
      // A session in which pg_notify is a function of ours that does nothing.
      await db.db.pool.query(
        `CREATE SCHEMA quiet; CREATE FUNCTION quiet.pg_notify(text, text) RETURNS void LANGUAGE sql AS 'SELECT'`,
      );
      const pool = new pg.Pool({
        connectionString: db.url,
        options: "-c search_path=quiet,bullmq,pg_catalog",
      });
      const silent = new Queue("countersign-runs", { connection: pool as never }, createPostgresBackend);
      const began = performance.now();
      await silent.add("run", { id: "run_unannounced" });
      await waitFor(() => handled.includes("run_unannounced"));
      expect(performance.now() - began).toBeLessThan(6_000);
      await silent.close();
      await pool.end();
    } finally {
      await queues.close(2_000);
    }
  });
});
