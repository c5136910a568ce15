import { type ChildProcess, spawn } from "node:child_process";
import { chmodSync, chownSync, existsSync, mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import pg from "pg";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type EmbeddedPostgres, removeDataDir, startEmbedded } from "../../src/db/embedded.js";
import { waitFor } from "../support/wait.js";

const PROGRAM = fileURLToPath(new URL("embedded.process.ts", import.meta.url));
const NOBODY = 65_534;
const isRoot = process.getuid?.() === 0;

let home = "";
let dataDir = "";
const children: ChildProcess[] = [];
const servers: EmbeddedPostgres[] = [];

beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), "countersign-embedded-"));
  chmodSync(home, 0o755);
  dataDir = join(home, "postgres");
});

afterEach(async () => {
  for (const child of children.splice(0)) child.kill("SIGKILL");
  await Promise.all(servers.splice(0).map((server) => server.stop()));
  await waitFor(() => !existsSync(join(dataDir, "postmaster.pid")), { what: "the server to be gone" }).catch(
    () => {},
  );
  removeDataDir(dataDir);
});

const start = async (options: Parameters<typeof startEmbedded>[0] = {}): Promise<EmbeddedPostgres> => {
  const server = await startEmbedded({ dataDir, unsafeFast: true, ...options });
  servers.push(server);
  return server;
};

interface Program {
  readonly child: ChildProcess;
  readonly url: string;
  readonly server: number;
}

const startProgram = async (as: { uid?: number; gid?: number } = {}): Promise<Program> => {
  const child = spawn(process.execPath, ["--import", "tsx", PROGRAM, dataDir], {
    stdio: ["pipe", "pipe", "inherit"],
    ...as,
  });
  children.push(child);
  const { stdout } = child;
  if (stdout === null) throw new Error("no output");
  const line = await new Promise<string>((done, fail) => {
    createInterface({ input: stdout }).once("line", done);
    child.once("exit", (code) => fail(new Error(`the program ended with ${code}`)));
  });
  const { url, pid } = JSON.parse(line) as { url: string; pid: number };
  return { child, url, server: pid };
};

/** Not counting what has ended and only waits to be reaped. */
const alive = (pid: number): boolean => {
  try {
    process.kill(pid, 0);
    if (process.platform !== "linux") return true;
    return !/\) Z /.test(readFileSync(`/proc/${pid}/stat`, "utf8"));
  } catch {
    return false;
  }
};

const query = async (url: string, text: string): Promise<unknown[]> => {
  const client = new pg.Client({ connectionString: url });
  client.on("error", () => {});
  await client.connect();
  try {
    return (await client.query(text)).rows as unknown[];
  } finally {
    await client.end();
  }
};

const keeperOf = (): number =>
  (JSON.parse(readFileSync(join(dataDir, "countersign.owner.json"), "utf8")) as { keeper: number }).keeper;

describe("the embedded server", () => {
  it("starts on a free port in UTF-8, keeps its data over a restart, and asks for its password", async () => {
    const first = await start();
    expect(await query(first.url(), "SHOW server_encoding")).toEqual([{ server_encoding: "UTF8" }]);
    expect(await query(first.url(), "SELECT upper('é') AS up")).toEqual([{ up: "É" }]);
    await query(first.url(), "CREATE TABLE kept (id int)");
    const without = new URL(first.url());
    without.password = "wrong";
    await expect(query(without.toString(), "SELECT 1")).rejects.toMatchObject({ code: "28P01" });
    await first.stop();
    expect(alive(first.pid)).toBe(false);
    const second = await start();
    expect(await query(second.url(), "SELECT to_regclass('kept') IS NOT NULL AS kept")).toEqual([
      { kept: true },
    ]);
  });

  it("a taken port is an error that names the variable to set", async () => {
    const squatter = createServer();
    await new Promise<void>((done) => squatter.listen(0, "127.0.0.1", done));
    const address = squatter.address();
    const port = typeof address === "object" && address !== null ? address.port : 0;
    try {
      await expect(start({ port, portVariable: "COUNTERSIGN_POSTGRES_PORT" })).rejects.toThrow(
        new RegExp(`port ${port} .* set COUNTERSIGN_POSTGRES_PORT`),
      );
    } finally {
      squatter.close();
    }
  });

  it("a folder that is something else is refused, not overwritten", async () => {
    const file = join(home, "note.txt");
    writeFileSync(file, "mine");
    await expect(startEmbedded({ dataDir: home })).rejects.toThrow(/not a PostgreSQL data directory/);
    expect(readFileSync(file, "utf8")).toBe("mine");
  });
});

describe("its program is killed", () => {
  it("the server ends with it, and the next start carries on with what was committed", async () => {
    const program = await startProgram();
    await query(program.url, "CREATE TABLE kept (id int)");
    program.child.kill("SIGKILL");
    await waitFor(() => !alive(program.server), { what: "the server to follow its program" });
    const next = await start();
    expect(await query(next.url(), "SELECT to_regclass('kept') IS NOT NULL AS kept")).toEqual([
      { kept: true },
    ]);
  });

  it("together with its keeper: the orphan is found and stopped by the next start", async () => {
    const program = await startProgram();
    await query(program.url, "CREATE TABLE kept (id int)");
    process.kill(keeperOf(), "SIGKILL");
    program.child.kill("SIGKILL");
    await waitFor(() => !alive(program.child.pid ?? 0));
    expect(alive(program.server)).toBe(true);
    const next = await start();
    expect(alive(program.server)).toBe(false);
    expect(await query(next.url(), "SELECT to_regclass('kept') IS NOT NULL AS kept")).toEqual([
      { kept: true },
    ]);
  });

  it("at once followed by a new start, which waits for the old server instead of failing", async () => {
    const program = await startProgram();
    program.child.kill("SIGKILL");
    const next = await start();
    expect(next.pid).not.toBe(program.server);
    expect(await query(next.url(), "SELECT 1 AS one")).toEqual([{ one: 1 }]);
  });

  it("and the server too: a postmaster.pid whose number now belongs to somebody else does not stop the next start", async () => {
    const first = await start();
    await first.stop();
    // What a hard kill and a restarted container leave: the file, naming a process that is alive and not PostgreSQL.
    writeFileSync(join(dataDir, "postmaster.pid"), `${process.pid}\n${dataDir}\n0\n5432\n\n127.0.0.1\n`);
    const next = await start();
    expect(await query(next.url(), "SELECT 1 AS one")).toEqual([{ one: 1 }]);
  });
});

describe("two programs", () => {
  it("the second on the same folder is refused with the first one's process id, and the first is not disturbed", async () => {
    const program = await startProgram();
    await expect(startEmbedded({ dataDir })).rejects.toThrow(`in use by process ${program.child.pid}`);
    expect(await query(program.url, "SELECT 1 AS one")).toEqual([{ one: 1 }]);
  });
});

describe.skipIf(!isRoot)("users", () => {
  it("started by root, the server runs as somebody else", async () => {
    const server = await start();
    const status = readFileSync(`/proc/${server.pid}/status`, "utf8");
    expect(/^Uid:\s+(\d+)/m.exec(status)?.[1]).not.toBe("0");
  });

  it("under a folder that only root can enter, data and link are both usable, over a restart", async () => {
    chmodSync(home, 0o700);
    const first = await start();
    await query(first.url(), "CREATE TABLE kept (id int)");
    await first.stop();
    const second = await start();
    expect(await query(second.url(), "SELECT to_regclass('kept') IS NOT NULL AS kept")).toEqual([
      { kept: true },
    ]);
  });

  it("an ordinary user starts it as itself", async () => {
    chownSync(home, NOBODY, NOBODY);
    const program = await startProgram({ uid: NOBODY, gid: NOBODY });
    expect(await query(program.url, "SELECT 1 AS one")).toEqual([{ one: 1 }]);
    const status = readFileSync(`/proc/${program.server}/status`, "utf8");
    expect(/^Uid:\s+(\d+)/m.exec(status)?.[1]).toBe(String(NOBODY));
  });
});
