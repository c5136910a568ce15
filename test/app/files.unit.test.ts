/** Files that a command is told to use: one sentence and exit code 2, whatever is wrong with them. */
import { mkdtempSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { check } from "../../src/app/commands/policy.js";
import { importFile } from "../../src/app/commands/shop.js";
import { CommandFailure } from "../../src/app/exit.js";
import { makeFolder, readTextFile, writeTextFile } from "../../src/app/files.js";

const home = mkdtempSync(path.join(tmpdir(), "countersign-files-"));
const file = path.join(home, "there.json");
afterAll(() => rmSync(home, { recursive: true, force: true }));

test("what is written can be read", () => {
  writeTextFile(file, "{}\n");
  expect(readTextFile(file)).toBe("{}\n");
  makeFolder(path.join(home, "a", "b"));
  writeTextFile(path.join(home, "a", "b", "x"), "y");
  expect(readFileSync(path.join(home, "a", "b", "x"), "utf8")).toBe("y");
});

describe("a file that cannot be used", () => {
  const nowhere = path.join(home, "nodir", "x.json");
  const inside = path.join(file, "x.json");
  const dangling = path.join(home, "dangling");
  symlinkSync(path.join(home, "nowhere"), dangling);
  const cases: [what: string, work: () => unknown, sentence: string][] = [
    [
      "written where no folder is",
      () => writeTextFile(nowhere, ""),
      `${nowhere} cannot be written: there is no such file or folder.`,
    ],
    [
      "written over a folder",
      () => writeTextFile(home, ""),
      `${home} cannot be written: that is a folder, not a file.`,
    ],
    [
      "a folder under a file",
      () => makeFolder(inside),
      `${inside} cannot be made: a part of that path is a file, not a folder.`,
    ],
    [
      "a folder where a link leads nowhere",
      () => makeFolder(dangling),
      `${dangling} cannot be made: a part of that path is a link that leads nowhere.`,
    ],
    [
      "a folder under a link that leads nowhere",
      () => makeFolder(path.join(dangling, "x")),
      `${path.join(dangling, "x")} cannot be made: a part of that path is a link that leads nowhere.`,
    ],
    [
      "a shop file that is not there",
      () => importFile(nowhere),
      `${nowhere} cannot be read: there is no such file or folder.`,
    ],
    [
      "a shop file that is a folder",
      () => importFile(home),
      `${home} cannot be read: that is a folder, not a file.`,
    ],
    ["a policy that is a folder", () => check(home), `${home}: cannot be read: that is a folder, not a file`],
    [
      "a policy that is not there",
      () => check(nowhere),
      `${nowhere}: there is no such file; name the policy file in POLICY_FILE`,
    ],
  ];
  test.each(cases)("%s", async (_what, work, sentence) => {
    const failure = await Promise.resolve()
      .then(work)
      .catch((error: unknown) => error);
    if (!(failure instanceof CommandFailure)) throw new Error(`not a sentence: ${String(failure)}`);
    expect([failure.message, failure.exitCode]).toEqual([sentence, 2]);
  });
});
