// Bundles src/app/cli.ts, so that a start does not translate some 300 files again: one build for each state of the sources, made by
// the first start that misses it and kept in .countersign/build. Packages are not bundled. It is the same program as the sources: each
// file keeps its own import.meta.url, and what a command does not need is not loaded.
// Run as a script (for images), or call `built(root)`.

import { createHash } from "node:crypto";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

const here = fileURLToPath(import.meta.url);
/** A process that runs loads parts of its build later: builds are kept this long after another one took their place. */
const KEPT_MS = 24 * 3_600_000;
/** Of each file of a build; beside it when another build took its place. */
const SUMS = "sums.json";
const REPLACED = "replaced";

/**
 * The file to import, built if need be.
 * @param {string} root the folder of package.json
 */
export async function built(root) {
  const home = join(root, ".countersign", "build");
  const target = join(home, stateOf(root));
  if (!isWhole(target)) await build(root, home, target);
  else if (existsSync(join(target, REPLACED))) rmSync(join(target, REPLACED), { force: true });
  return join(target, "cli.js");
}

/** Every file is there as it was made: one that was cut, or never reached the disk, must not pass for a program that does nothing. */
function isWhole(folder) {
  if (!existsSync(folder)) return false;
  try {
    const sums = JSON.parse(readFileSync(join(folder, SUMS), "utf8"));
    return (
      Object.hasOwn(sums, "cli.js") &&
      Object.entries(sums).every(([name, sum]) => sumOf(join(folder, name)) === sum)
    );
  } catch (error) {
    // Made by another user who alone may read it: the caller has another way.
    if (error?.code === "EACCES") throw error;
    return false;
  }
}

const sumOf = (path) => createHash("sha256").update(readFileSync(path)).digest("hex");

/** Of what is in the files, not of their times: an image keeps those only roughly. */
function stateOf(root) {
  const hash = createHash("sha256").update(`${root}\n${process.version}\n`);
  const add = (path) => hash.update(`${path}\n`).update(readFileSync(path)).update("\n");
  const walk = (folder) => {
    for (const entry of readdirSync(folder, { withFileTypes: true }).sort(byName)) {
      const path = join(folder, entry.name);
      if (entry.isDirectory()) walk(path);
      else if (entry.name.endsWith(".ts")) add(path);
    }
  };
  walk(join(root, "src"));
  for (const name of ["package.json", "tsconfig.json", join("bin", "build.mjs")]) add(join(root, name));
  return hash.digest("hex").slice(0, 16);
}

const byName = (one, other) => (one.name < other.name ? -1 : 1);

async function build(root, home, target) {
  const esbuild = await import("esbuild");
  mkdirSync(home, { recursive: true });
  const out = mkdtempSync(join(home, ".making-"));
  try {
    await esbuild.build({
      entryPoints: [join(root, "src", "app", "cli.ts")],
      absWorkingDir: root,
      outdir: out,
      bundle: true,
      splitting: true,
      packages: "external",
      format: "esm",
      platform: "node",
      target: "node20",
      sourcemap: "linked",
      sourcesContent: false,
      keepNames: true,
      logLevel: "warning",
      plugins: [{ name: "own-url", setup: (on) => on.onLoad({ filter: /\.ts$/ }, ownUrl) }],
    });
    const sums = Object.fromEntries(
      readdirSync(out)
        .filter((name) => name.endsWith(".js"))
        .map((name) => [name, sumOf(join(out, name))]),
    );
    writeFileSync(join(out, SUMS), JSON.stringify(sums));
    // Other users of the machine run it too.
    chmodSync(out, 0o755);
    if (existsSync(target) && !isWhole(target)) rmSync(target, { recursive: true, force: true });
    renameSync(out, target);
  } catch (error) {
    rmSync(out, { recursive: true, force: true });
    // Another process was faster.
    if (!isWhole(target)) throw error;
  }
  for (const name of readdirSync(home)) sweep(join(home, name), target);
}

/** Removes what another build has replaced for long enough, or what was never finished. */
function sweep(path, target) {
  if (path === target) return;
  try {
    const mark = join(path, REPLACED);
    const since = existsSync(mark) ? mark : path.includes(".making-") ? path : undefined;
    if (since === undefined) writeFileSync(mark, "");
    else if (Date.now() - statSync(since).mtimeMs > KEPT_MS) rmSync(path, { recursive: true, force: true });
  } catch {
    // Another process sweeps as well, or it is another user's: it only takes room, and the next build looks again.
  }
}

/** Files that lie beside a source are found from where that source is. */
function ownUrl({ path }) {
  const text = readFileSync(path, "utf8");
  if (!text.includes("import.meta")) return undefined;
  return {
    loader: "ts",
    contents: text.replaceAll("import.meta.url", JSON.stringify(pathToFileURL(path).href)),
  };
}

if (process.argv[1] === here) process.stdout.write(`${await built(join(here, "..", ".."))}\n`);
