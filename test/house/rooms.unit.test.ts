/** The directions of the rooms, proven by planted trespassers: a gate that never says no proves nothing. */
import { spawnSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ROOT } from "./source.js";

const PLANTED: Readonly<Record<string, string>> = {
  "src/domain/pure.ts": "export const one = 1;",
  "src/domain/reads-a-file.ts": 'export { readFileSync } from "node:fs";',
  "src/domain/looks-up.ts": 'export { db } from "../db/db.js";',
  "src/db/db.ts": "export const db = 1;",
  "src/dispatch/types-only.ts": 'import type { db } from "../db/db.js"; export type Db = typeof db;',
  "src/ledger/pays.ts": 'import type Stripe from "stripe"; export type S = Stripe;',
  "src/runs/queues.ts": 'export { Queue } from "bullmq";',
  "src/ops/imports-app.ts": 'export { app } from "../app/app.js";',
  "src/app/app.ts": "export const app = 1;",
  "src/shop/a.ts": 'import type { B } from "./b.js"; export type A = B;',
  "src/shop/b.ts": 'import type { A } from "./a.js"; export type B = A;',
  "src/attic/stray.ts": 'export { one } from "../domain/pure.js";',
  "src/ledger/fine.ts": 'export { one } from "../domain/pure.js"; export { db } from "../db/db.js";',
};

let folder = "";
let broken: readonly string[] = [];

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "countersign-rooms-"));
  for (const [path, text] of Object.entries(PLANTED)) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), text);
  }
  for (const file of [".dependency-cruiser.cjs", "tsconfig.json", "package.json"])
    cpSync(join(ROOT, file), join(folder, file));
  symlinkSync(join(ROOT, "node_modules"), join(folder, "node_modules"));
  const command = join(ROOT, "node_modules/dependency-cruiser/bin/dependency-cruise.mjs");
  const run = spawnSync(process.execPath, [command, "src", "--config", "--output-type", "json"], {
    cwd: folder,
    encoding: "utf8",
    maxBuffer: 64 * 1024 * 1024,
  });
  const result = JSON.parse(run.stdout) as {
    summary: { violations: { rule: { name: string }; from: string }[] };
  };
  broken = result.summary.violations.map((one) => `${one.rule.name} ${one.from}`);
});

afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe("the directions of the rooms", () => {
  it.each([
    "domain-is-pure src/domain/reads-a-file.ts",
    "room-domain src/domain/looks-up.ts",
    "room-dispatch src/dispatch/types-only.ts",
    "package-stripe src/ledger/pays.ts",
    "package-bullmq src/runs/queues.ts",
    "room-ops src/ops/imports-app.ts",
    "no-circular src/shop/a.ts",
    "known-rooms-only src/attic/stray.ts",
  ])("%s is refused", (offence) => {
    expect(broken).toContain(offence);
  });

  it("what the table allows is not refused", () => {
    expect(broken.filter((one) => one.endsWith("fine.ts"))).toEqual([]);
  });
});
