/**
 * The product as a process of its own: started, killed and started again as an operator's machine would do it.
 * Only processes that were started here are ever ended.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { request } from "undici";
import { openLog } from "./log-file.js";

const COMMAND = fileURLToPath(new URL("../../../bin/countersign.js", import.meta.url));
const READY_WITHIN_MS = 90_000;
const STOP_WITHIN_MS = 40_000;
const LOOK_EVERY_MS = 100;

export interface ProductOptions {
  /** The whole environment of the process, besides PATH and HOME. */
  env: Readonly<Record<string, string>>;
  roles?: string;
  port: number;
  /** Logs are appended here; left out: they go to this process's stderr. */
  logFile?: string;
}

export interface Product {
  readonly pid: number;
  /** True while the process lives. */
  running(): boolean;
  /** Ends it at once, as a crash would. Resolves when it is gone. */
  kill(): Promise<void>;
  /** Sends a signal without waiting (SIGSTOP, SIGCONT). */
  signal(signal: NodeJS.Signals): void;
  /** Asks it to stop and waits; kills it if it does not within its bound. */
  stop(): Promise<void>;
  /** Resolves when the process has ended, with its exit code (null after a signal). */
  readonly ended: Promise<number | null>;
}

/** Starts `countersign start` and waits until it says that it is ready. @throws when it ends or stays silent instead */
export async function startProduct(options: ProductOptions): Promise<Product> {
  const product = launchProduct(options);
  await untilReady(product, options.port);
  return product;
}

/** Starts `countersign start` without waiting. */
export function launchProduct(options: ProductOptions): Product {
  const log = options.logFile === undefined ? null : openLog(options.logFile);
  const child = spawn(
    process.execPath,
    // However this process ends, the product ends with it: `ipc` tells it.
    [
      COMMAND,
      "start",
      "--end-with-parent",
      ...(options.roles === undefined ? [] : ["--roles", options.roles]),
    ],
    { env: { ...options.env, PORT: String(options.port) }, stdio: ["ignore", "ignore", "pipe", "ipc"] },
  );
  const tail: string[] = [];
  child.stderr?.setEncoding("utf8");
  child.stderr?.on("data", (text: string) => {
    tail.push(text);
    if (tail.length > 40) tail.shift();
    if (log === null) process.stderr.write(text);
    else log(text);
  });
  const ended = new Promise<number | null>((resolve) => {
    child.once("exit", (code) => {
      resolve(code);
    });
  });
  return {
    get pid(): number {
      return childPid(child);
    },
    running: () => child.exitCode === null && child.signalCode === null,
    kill: async () => {
      child.kill("SIGKILL");
      await ended;
    },
    signal: (signal) => {
      child.kill(signal);
    },
    stop: async () => {
      if (child.exitCode !== null || child.signalCode !== null) return;
      child.kill("SIGTERM");
      const late = new AbortController();
      await Promise.race([
        ended,
        pause(STOP_WITHIN_MS, undefined, { signal: late.signal }).then(
          () => child.kill("SIGKILL"),
          () => undefined,
        ),
      ]);
      late.abort();
      await ended;
    },
    ended,
  };
}

function childPid(child: ChildProcess): number {
  if (child.pid === undefined) throw new Error("the product's process could not be started");
  return child.pid;
}

/** Resolves when the product says that it is ready. @throws when it ends or stays silent instead */
export async function untilReady(product: Product, port: number): Promise<void> {
  let over = false;
  void product.ended.then(() => {
    over = true;
  });
  for (let waited = 0; waited < READY_WITHIN_MS; waited += LOOK_EVERY_MS) {
    if (over) throw new Error("the product ended while it was starting; its log says why");
    if (await answersReady(port)) return;
    await pause(LOOK_EVERY_MS);
  }
  await product.kill();
  throw new Error(`the product was not ready within ${READY_WITHIN_MS / 1000} s`);
}

async function answersReady(port: number): Promise<boolean> {
  try {
    const answer = await request(`http://127.0.0.1:${port}/readyz`, {
      headersTimeout: 2000,
      bodyTimeout: 2000,
    });
    await answer.body.dump();
    return answer.statusCode === 200;
  } catch {
    // Nobody listens yet.
    return false;
  }
}
