import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, it } from "vitest";
import { openLog } from "../../src/app/demo/log-file.js";

const folder = mkdtempSync(join(tmpdir(), "countersign-log-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

it("the log goes on over a restart, and the last two files are what is kept", () => {
  const file = join(folder, "countersign.log");
  openLog(file, 10)("first\n");
  const again = openLog(file, 10);
  again("one\n");
  expect(readFileSync(file, "utf8")).toBe("first\none\n");
  again("second\n");
  again("third\n");
  expect(readFileSync(file, "utf8")).toBe("third\n");
  expect(readFileSync(`${file}.1`, "utf8")).toBe("second\n");
});
