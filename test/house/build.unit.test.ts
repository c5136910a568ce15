/** The build that a start loads: made as a script too, once for one state of the sources, and the same program as they are. */
import { execFileSync, spawnSync } from "node:child_process";
import {
  copyFileSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
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

  it("is made anew when a file of it was cut or is gone, and whoever uses the machine may read it", {
    timeout: BUILD_MS,
  }, async () => {
    const root = mkdtempSync(join(tmpdir(), "countersign-build-"));
    try {
      mkdirSync(join(root, "src", "app"), { recursive: true });
      mkdirSync(join(root, "bin"));
      writeFileSync(join(root, "src", "app", "cli.ts"), 'export const said: string = "whole";\n');
      writeFileSync(join(root, "package.json"), '{ "type": "module" }');
      for (const name of ["tsconfig.json", join("bin", "build.mjs")]) copyFileSync(name, join(root, name));
      const { built } = (await import(pathToFileURL(resolve("bin/build.mjs")).href)) as {
        built: (root: string) => Promise<string>;
      };
      const file = await built(root);
      const whole = readFileSync(file, "utf8");
      expect(whole).toContain("whole");
      expect(statSync(dirname(file)).mode & 0o055).toBe(0o055);
      for (const tear of [() => truncateSync(file, 3), () => truncateSync(file, 0), () => rmSync(file)]) {
        tear();
        expect(await built(root)).toBe(file);
        expect(readFileSync(file, "utf8")).toBe(whole);
      }
    } finally {
      rmSync(root, { recursive: true, force: true });
    }
  });

  it("loads a command's packages with the command only", () => {
    expect(readFileSync(made, "utf8")).not.toMatch(
      /from "(?:@slack\/bolt|stripe|bullmq|@anthropic-ai\/sdk)"/,
    );
  });
});

describe("bin/countersign.js", () => {
  const PLACES: [what: string, make: (place: string) => void][] = [
    ["a file", (place) => writeFileSync(place, "")],
    ["a link that leads nowhere", (place) => symlinkSync(join(tmpdir(), "countersign-nowhere"), place)],
    ["a link to itself", (place) => symlinkSync(place, place)],
  ];
  it.each(PLACES)(
    "starts from the sources where .countersign is %s",
    { timeout: BUILD_MS },
    (_what, make) => {
      const root = mkdtempSync(join(tmpdir(), "countersign-start-"));
      try {
        for (const name of ["bin", "scripts"]) cpSync(name, join(root, name), { recursive: true });
        mkdirSync(join(root, "src", "app"), { recursive: true });
        writeFileSync(
          join(root, "src", "app", "cli.ts"),
          'console.log("from the sources" satisfies string);\n',
        );
        writeFileSync(join(root, "package.json"), '{ "type": "module" }');
        writeFileSync(join(root, "tsconfig.json"), "{}");
        symlinkSync(resolve("node_modules"), join(root, "node_modules"));
        // What is generated is there already.
        mkdirSync(join(root, "prisma"));
        cpSync("prisma/schema.prisma", join(root, "prisma", "schema.prisma"));
        mkdirSync(join(root, "src", "db", "generated"), { recursive: true });
        copyFileSync("src/db/generated/.schema-hash", join(root, "src/db/generated/.schema-hash"));
        make(join(root, ".countersign"));
        const run = spawnSync(process.execPath, ["bin/countersign.js"], { cwd: root, encoding: "utf8" });
        expect(run.stderr).toBe("");
        expect(run.stdout).toBe("from the sources\n");
      } finally {
        rmSync(root, { recursive: true, force: true });
      }
    },
  );
});
