// Bundles src/app/cli.ts, so that a start does not translate some 300 files again: one build for each state of the sources, made by
// the first start that misses it and kept in .countersign/build. Packages are not bundled. It is the same program as the sources: each
// file keeps its own import.meta.url, and what a command does not need is not loaded.
// Run as a script (for images), or call `built(root)`.

import { createHash } from "node:crypto";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
} from "node:fs";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

const here = fileURLToPath(import.meta.url);
/** A process that runs loads parts of its build later: builds are kept this long after another one took their place. */
const KEPT_MS = 24 * 3_600_000;

/**
 * The file to import, built if need be.
 * @param {string} root the folder of package.json
 */
export async function built(root) {
  const home = join(root, ".countersign", "build");
  const target = join(home, stateOf(root));
  if (!existsSync(target)) await build(root, home, target);
  return join(target, "cli.js");
}

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
    renameSync(out, target);
  } catch (error) {
    rmSync(out, { recursive: true, force: true });
    // Another process was faster.
    if (!existsSync(target)) throw error;
  }
  for (const name of readdirSync(home)) {
    const path = join(home, name);
    if (path !== target && Date.now() - statSync(path).mtimeMs > KEPT_MS)
      rmSync(path, { recursive: true, force: true });
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
