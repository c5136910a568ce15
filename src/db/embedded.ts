/**
 * A private PostgreSQL from npm-shipped binaries, for the demo and the tests: no database on the machine, no download.
 *
 * Invariants
 *  1. The server never outlives the process that started it, however that process ends (see embedded-keeper.mjs); should the
 *     keeper be killed as well, the next start finds the orphan and stops it first.
 *  2. Two processes never share a data directory: the second is refused with the first one's process id.
 *  3. A half-made data directory is never used: initdb works under another name, and the rename is the commit.
 *  4. It listens on 127.0.0.1 only, with a password that only this user can read (`auth: 'trust'` for tests).
 */
import { type ChildProcess, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { existsSync, lstatSync, mkdirSync, readFileSync, readlinkSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { dirname, join, resolve } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import pg from "pg";
import { folderReason } from "../domain/text/file-reason.js";
import { EmbeddedError } from "./embedded-error.js";
import {
  checkExisting,
  initialise,
  locateBinaries,
  reachableDataDir,
  serverUser,
} from "./embedded-install.js";
import { type Owner, releasePrevious, writeOwner } from "./embedded-owner.js";

export interface EmbeddedOptions {
  /** Default `.countersign/postgres` under the working directory. Made when missing. */
  readonly dataDir?: string;
  /** 0 (default) takes a free port. */
  readonly port?: number;
  /** Named in the error when `port` is taken. */
  readonly portVariable?: string;
  /** Made when missing. Default `countersign`. */
  readonly database?: string;
  /** `scram` (default) with a generated password, or `trust` for throw-away servers of tests. */
  readonly auth?: "scram" | "trust";
  /** Gives durability up for speed; only for tests. Default false. */
  readonly unsafeFast?: boolean;
  /** Default 200. */
  readonly maxConnections?: number;
}

export interface EmbeddedPostgres {
  readonly port: number;
  readonly dataDir: string;
  /** Process id of the server, for messages and crash tests. */
  readonly pid: number;
  /** Connection string of `database` (default: the one named at start). */
  url(database?: string): string;
  /** Stops the server and waits until it has ended. Safe to call twice. */
  stop(): Promise<void>;
}

const SUPERUSER = "postgres";
/** How often a port that looked free may turn out taken, when the choice was ours. */
const PORT_TRIES = 5;

const KEEPER = fileURLToPath(new URL("./embedded-keeper.mjs", import.meta.url));

/** Starts (and at first makes) the server at `dataDir`. Throws `EmbeddedError` with a sentence for the user. */
export async function startEmbedded(options: EmbeddedOptions = {}): Promise<EmbeddedPostgres> {
  const binaries = locateBinaries();
  const wanted = resolve(options.dataDir ?? join(".countersign", "postgres"));
  try {
    mkdirSync(dirname(wanted), { recursive: true });
  } catch (error) {
    throw new EmbeddedError(`${dirname(wanted)} cannot be made: ${folderReason(error)}`, error);
  }
  const user = serverUser(wanted);
  const dataDir = reachableDataDir(wanted, user);
  checkExisting(binaries, dataDir);
  await releasePrevious(dataDir);

  const auth = options.auth ?? "scram";
  const password = auth === "scram" ? readPassword(`${wanted}.password`, existsSync(dataDir)) : undefined;
  await initialise(binaries, dataDir, user, { password, sync: options.unsafeFast !== true });

  const server = await launch(options, dataDir, async (port) => {
    const child = spawnKeeper({
      postgres: binaries.postgres,
      pgCtl: binaries.pgCtl,
      dataDir,
      args: serverArguments(port, options),
      logFile: `${wanted}.log`,
      env: { PATH: "/usr/bin:/bin", LC_ALL: "C", TZ: "UTC" },
      ...(user === undefined ? {} : user),
    });
    return { child, answer: await firstAnswer(child) };
  });

  const url = (database: string): string =>
    password === undefined
      ? `postgresql://${SUPERUSER}@127.0.0.1:${server.port}/${database}`
      : `postgresql://${SUPERUSER}:${password}@127.0.0.1:${server.port}/${database}`;
  const database = options.database ?? "countersign";
  let stopped: Promise<void> | undefined;
  const stop = (): Promise<void> => {
    stopped ??= stopKeeper(server.child);
    return stopped;
  };
  try {
    writeOwner(dataDir, server.owner);
    await ensureDatabase(url("postgres"), database);
  } catch (error) {
    await stop();
    throw error;
  }
  return { port: server.port, dataDir, pid: server.owner.server, url: (name) => url(name ?? database), stop };
}

type Answer =
  | { readonly ready: true; readonly pid: number }
  | { readonly ready: false; readonly log: string };

interface Running {
  readonly port: number;
  readonly child: ChildProcess;
  readonly owner: Owner;
}

async function launch(
  options: EmbeddedOptions,
  dataDir: string,
  start: (port: number) => Promise<{ child: ChildProcess; answer: Answer }>,
): Promise<Running> {
  const fixed = options.port !== undefined && options.port !== 0 ? options.port : undefined;
  for (let tried = 1; ; tried += 1) {
    const port = fixed ?? (await freePort());
    const { child, answer } = await start(port);
    if (answer.ready) {
      if (child.pid === undefined)
        throw new EmbeddedError("the keeper of the embedded PostgreSQL has no process id");
      return { port, child, owner: { program: process.pid, keeper: child.pid, server: answer.pid } };
    }
    const portTaken = answer.log.includes("Address already in use");
    if (portTaken && fixed !== undefined) {
      const variable = options.portVariable;
      throw new EmbeddedError(
        `port ${fixed} for the embedded PostgreSQL is already taken${variable === undefined ? "" : `; set ${variable} to another port`}`,
      );
    }
    if (portTaken && tried < PORT_TRIES) continue;
    throw new EmbeddedError(
      `the embedded PostgreSQL in ${dataDir} did not start:\n${answer.log.trim() || "it ended without a word"}`,
    );
  }
}

function serverArguments(port: number, options: EmbeddedOptions): string[] {
  const settings: Record<string, string> = {
    port: String(port),
    listen_addresses: "127.0.0.1",
    unix_socket_directories: "",
    max_connections: String(options.maxConnections ?? 200),
    timezone: "UTC",
    log_timezone: "UTC",
    lc_messages: "C",
  };
  if (options.unsafeFast === true) {
    Object.assign(settings, {
      fsync: "off",
      synchronous_commit: "off",
      full_page_writes: "off",
      autovacuum: "off",
      // Tests provoke deadlocks on purpose; the default waits a second before it looks for one.
      deadlock_timeout: "100ms",
    });
  }
  return Object.entries(settings).flatMap(([name, value]) => ["-c", `${name}=${value}`]);
}

function spawnKeeper(spec: object): ChildProcess {
  const child = spawn(process.execPath, [KEEPER, JSON.stringify(spec)], {
    stdio: ["pipe", "pipe", "ignore"],
    detached: true,
    env: {},
  });
  child.stdin?.on("error", () => {});
  return child;
}

function firstAnswer(child: ChildProcess): Promise<Answer> {
  return new Promise((done, fail) => {
    const { stdout } = child;
    if (stdout === null) {
      fail(new EmbeddedError("the keeper of the embedded PostgreSQL has no output"));
      return;
    }
    const lines = createInterface({ input: stdout });
    lines.once("line", (line) => {
      lines.close();
      // From here on nothing of the keeper holds the program's event loop open.
      child.unref();
      unref(child.stdin);
      unref(child.stdout);
      done(JSON.parse(line) as Answer);
    });
    child.once("error", (error) =>
      fail(new EmbeddedError("the embedded PostgreSQL could not be started", error)),
    );
    child.once("exit", () => done({ ready: false, log: "its keeper ended early" }));
  });
}

function unref(stream: unknown): void {
  const socket = stream as { unref?: () => void } | null;
  socket?.unref?.();
}

async function stopKeeper(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  child.ref();
  const ended = new Promise<void>((done) => child.once("exit", () => done()));
  child.stdin?.end();
  await ended;
}

/** The password lives beside the data directory and is made with it. */
function readPassword(file: string, dataExists: boolean): string {
  if (existsSync(file)) return readFileSync(file, "utf8").trim();
  if (dataExists) {
    throw new EmbeddedError(
      `${file} is missing; restore it, or remove the data directory beside it to begin anew`,
    );
  }
  const password = randomBytes(24).toString("base64url");
  writeFileSync(file, `${password}\n`, { mode: 0o600 });
  return password;
}

async function ensureDatabase(adminUrl: string, name: string): Promise<void> {
  const client = new pg.Client({ connectionString: adminUrl });
  await client.connect();
  try {
    const found = await client.query("SELECT 1 FROM pg_database WHERE datname = $1", [name]);
    if (found.rowCount === 0) await client.query(`CREATE DATABASE ${pg.escapeIdentifier(name)}`);
  } finally {
    await client.end();
  }
}

function freePort(): Promise<number> {
  return new Promise((done, fail) => {
    const probe = createServer();
    probe.once("error", fail);
    probe.listen(0, "127.0.0.1", () => {
      const address = probe.address();
      const port = typeof address === "object" && address !== null ? address.port : 0;
      probe.close(() => done(port));
    });
  });
}

/** Removes a data directory that is not in use, with what stands beside it. For tests. */
export function removeDataDir(dataDir: string): void {
  const linked = lstatSync(dataDir, { throwIfNoEntry: false })?.isSymbolicLink() === true;
  if (linked) rmSync(resolve(dirname(dataDir), readlinkSync(dataDir)), { recursive: true, force: true });
  for (const path of [dataDir, `${dataDir}.log`, `${dataDir}.password`]) {
    rmSync(path, { recursive: true, force: true });
  }
}
