/** The build that a start loads: made as a script too, once for one state of the sources, and the same program as they are. */
import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync, statSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { beforeAll, describe, expect, it } from "vitest";

const build = (): string => execFileSync(process.execPath, ["bin/build.mjs"], { encoding: "utf8" }).trim();
const BUILD_MS = 60_000;

describe("bin/build.mjs", () => {
  let made = "";
  beforeAll(() => {
    made = build();
  }, BUILD_MS);

  it("says which file it made, and makes it once", { timeout: BUILD_MS }, () => {
    const before = statSync(made);
    expect(build()).toBe(made);
    expect(statSync(made).mtimeMs).toBe(before.mtimeMs);
  });

  it("leaves each file its own place: what lies beside a source is found", () => {
    const folder = dirname(made);
    const texts = readdirSync(folder)
      .filter((name) => name.endsWith(".js"))
      .map((name) => readFileSync(join(folder, name), "utf8"));
    expect(texts.filter((text) => text.includes("import.meta.url"))).toEqual([]);
    const migrate = pathToFileURL(resolve("src/db/migrate.ts")).href;
    expect(texts.filter((text) => text.includes(JSON.stringify(migrate)))).toHaveLength(1);
  });

  it("loads a command's packages with the command only", () => {
    expect(readFileSync(made, "utf8")).not.toMatch(
      /from "(?:@slack\/bolt|stripe|bullmq|@anthropic-ai\/sdk)"/,
    );
  });
});
