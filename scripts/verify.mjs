// `npm run verify`: every gate in one command, each with a floor, because a gate that looked at nothing reports success.
// `npm run verify -- NAME …` runs only the named ones.

import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, sep } from "node:path";
import { fileURLToPath } from "node:url";
import { ensureGenerated } from "./ensure-generated.mjs";

const root = dirname(dirname(fileURLToPath(import.meta.url)));

/** Tests that a whole run must at least have executed; raised as the suite grows, never lowered. */
const TEST_FLOOR = 2600;

const generated = `src${sep}db${sep}generated${sep}`;
const sources = filesUnder("src", ".ts").filter((file) => !file.startsWith(generated));
const tests = filesUnder("test", ".ts");
const testFiles = tests.filter((file) => file.endsWith(".test.ts"));

const GATES = {
  typecheck() {
    // The page is plain modules for the browser: its types stand in comments, under a configuration of its own.
    const page = filesUnder(join("src", "sandbox", "page"), ".js");
    const results = [
      [".", sources.length + tests.length],
      [join("src", "sandbox", "page"), page.length],
    ].map(([project, expected]) => ({
      ...run(bin("typescript", "tsc"), ["-p", project, "--listFiles"]),
      project,
      expected,
    }));
    const own = results.flatMap(({ output, project }) =>
      output.split("\n").filter(
        (line) =>
          line.startsWith(root) &&
          !line.includes("node_modules") &&
          !line.includes(generated) &&
          // What the page's types come from was counted with the rest.
          (project === "." || line.endsWith(".js")),
      ),
    );
    const expected = results.reduce((sum, result) => sum + result.expected, 0);
    const errors = results.flatMap(({ output }) =>
      output.split("\n").filter((line) => /error TS\d+/.test(line)),
    );
    return report(
      results.every(({ ok }) => ok),
      own.length,
      expected,
      "files",
      errors.join("\n"),
    );
  },

  lint() {
    const { ok, output } = run(bin("@biomejs/biome", "biome"), ["check", ".", "--colors=off"]);
    const checked = Number(/Checked (\d+) files?/.exec(output)?.[1] ?? 0);
    return report(ok, checked, sources.length + tests.length, "files", output);
  },

  rooms() {
    const { output } = run(bin("dependency-cruiser", "depcruise"), [
      "src",
      "--config",
      "--output-type",
      "json",
    ]);
    const result = JSON.parse(output.slice(output.indexOf("{")));
    const cruised = new Set(result.modules.map((module) => module.source));
    const missed = sources.filter((file) => !cruised.has(file.split(sep).join("/")));
    const broken = result.summary.violations.map((v) => `${v.rule.name}: ${v.from} → ${v.to}`);
    const looked = sources.length - missed.length;
    return report(broken.length === 0, looked, sources.length, "modules", broken.join("\n"));
  },

  unused() {
    const { ok, output } = run(bin("knip", "knip"), [
      "--no-progress",
      "--reporter",
      "symbols",
      "--reporter",
      "./scripts/knip-counters.mjs",
    ]);
    const looked = Number(/knip looked at (\d+) files/.exec(output)?.[1] ?? 0);
    return report(ok, looked, sources.length + tests.length, "files", output);
  },

  tests() {
    const folder = mkdtempSync(join(tmpdir(), "countersign-verify-"));
    const file = join(folder, "vitest.json");
    try {
      const args = ["run", "--reporter=default", "--reporter=json", `--outputFile.json=${file}`];
      const { ok } = run(bin("vitest", "vitest"), args, "inherit");
      if (!existsSync(file)) return { ok: false, text: "the test runner left no report" };
      const result = JSON.parse(readFileSync(file, "utf8"));
      const ran = result.numPassedTests + result.numFailedTests;
      const missing = testFiles.length - new Set(result.testResults.map((one) => one.name)).size;
      if (missing > 0) return { ok: false, text: `${missing} test files were not run` };
      return report(ok && result.numFailedTests === 0, ran, TEST_FLOOR, "tests", "");
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  },
};

ensureGenerated(root);
const wanted = process.argv.slice(2);
const unknown = wanted.filter((name) => !(name in GATES));
if (unknown.length > 0) {
  process.stderr.write(`unknown gate ${unknown.join(", ")}; there are ${Object.keys(GATES).join(", ")}\n`);
  process.exit(2);
}
let failed = 0;
for (const [name, gate] of Object.entries(GATES)) {
  if (wanted.length > 0 && !wanted.includes(name)) continue;
  const { ok, text } = gate();
  process.stdout.write(`verify ${name}: ${ok ? "ok" : "FAILED"}, ${text}\n`);
  if (!ok) failed += 1;
}
process.exit(failed === 0 ? 0 : 1);

function report(ok, seen, floor, unit, details) {
  if (seen < floor) return { ok: false, text: `looked at ${seen} ${unit}, expected at least ${floor}` };
  return { ok, text: ok ? `${seen} ${unit}` : `${seen} ${unit}\n${details}` };
}

function run(command, args, output = "pipe") {
  const done = spawnSync(process.execPath, [command, ...args], {
    cwd: root,
    encoding: "utf8",
    maxBuffer: 256 * 1024 * 1024,
    stdio: ["ignore", output, output],
  });
  return { ok: done.status === 0, output: `${done.stdout ?? ""}${done.stderr ?? ""}` };
}

/** The script behind a package's command, so that no shell and no PATH is involved. */
function bin(name, command) {
  const folder = join(root, "node_modules", name);
  const { bin: commands } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
  return join(folder, typeof commands === "string" ? commands : commands[command]);
}

function filesUnder(folder, ending) {
  return readdirSync(join(root, folder), { recursive: true })
    .map((name) => join(folder, String(name)))
    .filter((name) => name.endsWith(ending) && !name.endsWith(".d.ts"));
}
