import { spawn, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, inject } from "vitest";
import { freePort } from "../../src/app/demo/ports.js";

/**
 * A Redis database of this worker alone (its number is the worker's), so that a test may empty it; undefined when the run has no
 * REDIS_URL: such suites say `describe.skipIf(redisUrl() === undefined)`.
 */
export function redisUrl(): string | undefined {
  const { redisUrl: base } = inject("server");
  if (base === undefined) return undefined;
  const url = new URL(base);
  url.pathname = `/${1 + (Number(process.env["VITEST_POOL_ID"] ?? "1") % 15)}`;
  return url.toString();
}

const WITHIN_MS = 10_000;

export interface OwnRedis {
  /** Valid inside tests and hooks. */
  readonly url: string;
  /** A redis-server is on this machine; without one the suite is skipped and says so. */
  readonly there: boolean;
}

/** A redis-server of this file alone, ended with it. Call at the top of the file. */
export function withOwnRedis(): OwnRedis {
  const there = spawnSync("redis-server", ["--version"]).status === 0;
  let url = "";
  let stop = async (): Promise<void> => {};
  beforeAll(async () => {
    if (!there) {
      process.stderr.write("SKIPPED: the outages of Redis need redis-server on the PATH\n");
      return;
    }
    const port = await freePort();
    const dir = mkdtempSync(join(tmpdir(), "countersign-redis-"));
    const child = spawn(
      "redis-server",
      ["--port", String(port), "--save", "", "--bind", "127.0.0.1", "--dir", dir],
      {
        stdio: ["ignore", "pipe", "ignore"],
      },
    );
    const ended = new Promise<void>((resolve) => child.once("exit", () => resolve()));
    stop = async () => {
      child.kill("SIGTERM");
      await ended;
      rmSync(dir, { recursive: true, force: true });
    };
    await new Promise<void>((resolve, reject) => {
      const timer = setTimeout(() => reject(new Error("redis-server did not come up")), WITHIN_MS);
      child.stdout.on("data", (text: Buffer) => {
        if (!text.toString().includes("Ready to accept connections")) return;
        clearTimeout(timer);
        resolve();
      });
    });
    url = `redis://127.0.0.1:${port}/0`;
  });
  afterAll(() => stop());
  return {
    there,
    get url() {
      return url;
    },
  };
}
