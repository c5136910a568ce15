import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { systemClock, systemIds } from "../../src/app/system.js";
import { allCells, cellsOutOfReach, runMatrix } from "../../src/evaluation/faults/matrix.js";
import { matrixReport } from "../../src/evaluation/faults/report.js";
import { openWorld, type World } from "../../src/evaluation/faults/world.js";
import { withDatabase } from "../support/database.js";

// Ledger and provider share the test's database here, each in its own schema.
const database = withDatabase({ reset: "never" });
const quiet = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };
/** A share of the matrix; all of it by `countersign faults`. */
const SCENARIOS = 60;

let world: World;
beforeAll(async () => {
  world = await openWorld({
    ports: { ids: systemIds, clock: systemClock, log: quiet },
    ledgerUrl: database.url,
    providerUrl: database.url,
  });
});
afterAll(() => world.close());

describe("the fault matrix", () => {
  test("under faults and crashes nothing is refunded twice, lost, falsely claimed or left without a person", {
    timeout: 600_000,
  }, async () => {
    const report = matrixReport(await runMatrix(world, { episodes: SCENARIOS, seed: 20_261_129 }));
    expect(report.violations).toEqual([]);
    expect(report.audit).toEqual([]);
    expect(report.arms.ours.episodes).toBeGreaterThan(SCENARIOS / 2);
    expect(report.arms["naive-retry"].duplicates, "the faults do harm where nobody guards").toBeGreaterThan(
      0,
    );
  });

  test("what nobody authorised is sent by the plain ways and never by ours", {
    timeout: 120_000,
  }, async () => {
    const report = matrixReport(
      await runMatrix(world, {
        episodes: 12,
        seed: 7,
        only: ({ mode, crash }) =>
          (mode === "denied" || mode === "undecided") &&
          (crash === "none" || crash === "prepare.after_commit"),
      }),
    );
    expect(report.violations).toEqual([]);
    expect(report.arms.ours).toMatchObject({ episodes: 12, unauthorised: 0, stuck: 0 });
    const { "naive-retry": naive, "new-key-per-attempt": newKey, "verify-then-retry": verify } = report.arms;
    expect(naive).toMatchObject({ episodes: 12, unauthorised: 12 });
    expect(newKey).toMatchObject({ episodes: 12, unauthorised: 12 });
    // It sends nothing where it cannot read first.
    expect(verify.unauthorised).toBeGreaterThan(0);
  });

  test("what is not in the plan cannot happen: the worker never comes by those crash points", {
    timeout: 600_000,
  }, async () => {
    const cells = cellsOutOfReach();
    expect(cells.length).toBeGreaterThan(0);
    const report = matrixReport(
      await runMatrix(world, { episodes: cells.length, seed: 20_261_130, cells, arms: ["ours"] }),
    );
    expect(report.arms.ours).toMatchObject({ episodes: 0, notFired: cells.length });
  });

  test("the plan has cells of every fault, so that none is skipped by a typing mistake", () => {
    const cells = allCells();
    expect(cells.length).toBeGreaterThan(1_000);
    expect(new Set(cells.map((cell) => cell.mode)).size).toBe(32);
  });
});
