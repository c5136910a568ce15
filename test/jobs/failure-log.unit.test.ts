import { expect, it } from "vitest";
import type { WakeJob } from "../../src/jobs/catalogue.js";
import { failureLog } from "../../src/jobs/failure-log.js";

const listen = () => {
  const lines: unknown[] = [];
  const said = (fields: object) => void lines.push(fields);
  return { lines, failures: failureLog({ debug: said, info: said, warn: said, error: said }) };
};
const run = (id: string): WakeJob => ({ kind: "run", id });
const away = () => Object.assign(new Error("connect ECONNREFUSED"), { code: "ECONNREFUSED" });

it("hundreds of jobs that fail alike while the database is away are a handful of lines, and one when it is back", () => {
  const { lines, failures } = listen();
  for (let n = 1; n <= 500; n += 1) failures.failed(run(`run_${n}`), away());
  expect(lines.map((line) => (line as { failures: number }).failures)).toEqual([
    1, 2, 4, 8, 16, 32, 64, 100, 128, 200, 256, 300, 400, 500,
  ]);
  failures.ended("run");
  expect(lines.at(-1)).toEqual({ kind: "run", failures: 500 });
});

it("a row that fails for a reason of its own is said each time, whatever else fails or works", () => {
  const { lines, failures } = listen();
  for (let n = 1; n <= 5; n += 1) {
    failures.failed(run("run_poison"), new Error("planted"));
    failures.ended("run");
  }
  failures.failed({ kind: "outbox", id: "box_1" }, away());
  failures.failed(run("run_1"), away());
  failures.failed(run("run_2"), new Error("another"));
  expect(lines).toHaveLength(8);
});
