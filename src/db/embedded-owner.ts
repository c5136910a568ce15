/**
 * Who runs the server in a data directory, and what to do about a server that nobody owns any more.
 *
 * The owner file names three processes: the program, its keeper, the server. Only when program and keeper are both gone is a
 * running server an orphan, and is stopped; a live owner is never disturbed.
 */
import { existsSync, readFileSync, readlinkSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { EmbeddedError } from "./embedded-error.js";

export interface Owner {
  readonly program: number;
  readonly keeper: number;
  readonly server: number;
}

const OWNER_FILE = "countersign.owner.json";
/** A keeper whose program is gone is stopping its server: wait for that long before calling it stuck. */
const STOPPING_MS = 30_000;
/** A program that was told to end a moment ago may still be there: wait for that long before calling the folder taken. */
const LEAVING_MS = 1_500;
const POLL_MS = 50;

export function writeOwner(dataDir: string, owner: Owner): void {
  writeFileSync(join(dataDir, OWNER_FILE), JSON.stringify(owner));
}

/** Makes the data directory free for a new server, or throws with the process id of its living owner. */
export async function releasePrevious(dataDir: string): Promise<void> {
  const pidFile = join(dataDir, "postmaster.pid");
  if (!existsSync(pidFile)) return;
  const owner = readOwner(dataDir);
  const server = Number(readFileSync(pidFile, "utf8").split("\n")[0]);
  if (!isServerOf(server, dataDir)) {
    // Left behind by a kill or a reboot. The number may meanwhile belong to somebody else (process ids start small in a new
    // container), in which case PostgreSQL itself would refuse to start.
    rmSync(pidFile, { force: true });
    return;
  }
  for (let waited = 0; owner !== undefined && isHeld(owner); waited += POLL_MS) {
    if (waited >= LEAVING_MS) {
      throw new EmbeddedError(
        `${dataDir} is in use by process ${owner.program}; end it first, or choose another data directory`,
      );
    }
    await delay(POLL_MS);
  }
  if (owner === undefined || !isAlive(owner.keeper)) signal(server, "SIGINT");
  const patience = STOPPING_MS / POLL_MS;
  for (let waited = 0; waited < patience; waited += 1) {
    if (!isServerOf(server, dataDir)) return;
    if (waited === patience / 2) signal(server, "SIGQUIT");
    await delay(POLL_MS);
  }
  throw new EmbeddedError(
    `a PostgreSQL server (process ${server}) still runs in ${dataDir} and does not stop; end it`,
  );
}

function readOwner(dataDir: string): Owner | undefined {
  try {
    const value: unknown = JSON.parse(readFileSync(join(dataDir, OWNER_FILE), "utf8"));
    if (typeof value !== "object" || value === null) return undefined;
    const { program, keeper, server } = value as Partial<Owner>;
    return typeof program === "number" && typeof keeper === "number" && typeof server === "number"
      ? { program, keeper, server }
      : undefined;
  } catch {
    return undefined;
  }
}

/** PostgreSQL's working directory is its data directory; where /proc is missing, being alive has to do. */
function isServerOf(pid: number, dataDir: string): boolean {
  if (!Number.isSafeInteger(pid) || pid <= 1 || !isAlive(pid)) return false;
  if (process.platform !== "linux") return true;
  try {
    return readlinkSync(`/proc/${pid}/cwd`) === realpathSync(dataDir);
  } catch {
    return false; // ended meanwhile, or another user's process: ours run as this user, or are visible to root
  }
}

/** A program and its keeper both live, and it is not we who start again. */
function isHeld(owner: Owner): boolean {
  return owner.program !== process.pid && isAlive(owner.program) && isAlive(owner.keeper);
}

/** A process that has ended but that nobody has reaped (pid 1 of many containers does not) is not alive. */
function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
  if (process.platform !== "linux") return true;
  try {
    // "PID (name) STATE …"; the name may hold blanks and brackets.
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    return stat.charAt(stat.lastIndexOf(")") + 2) !== "Z";
  } catch {
    return false;
  }
}

function signal(pid: number, name: "SIGINT" | "SIGQUIT"): void {
  try {
    process.kill(pid, name);
  } catch {
    // it has ended meanwhile
  }
}
