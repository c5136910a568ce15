/** The ledger's benchmark measures what it says: every arm carries its operations out, and every read finds its rows. */
import { describe, expect, test } from "vitest";
import { withThrowAwayDatabases } from "../../src/app/commands/throw-away.js";
import { systemClock, systemIds } from "../../src/app/system.js";
import { runLists } from "../../src/evaluation/bench/ledger/lists.js";
import { ledgerBenchReport } from "../../src/evaluation/bench/ledger/report.js";
import { runLedgerBench } from "../../src/evaluation/bench/ledger/run.js";

const quiet = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };
const ports = { ids: systemIds, clock: systemClock, log: quiet };

describe("the ledger's benchmark", () => {
  test("replays exactly the product's statements: each arm ends with every operation confirmed once and the money right", {
    timeout: 240_000,
  }, async () => {
    const bench = await withThrowAwayDatabases((databases) =>
      runLedgerBench(ports, databases, { seconds: 0.1, rounds: 1, lanes: 2 }),
    );
    expect(bench.wrong).toEqual([]);
    // BEGIN travels with the first statement, and the totals are locked with the statement that reads them. Which runs
    // that are over show the operation is asked together with the settle.
    expect(bench.roundTrips).toEqual({ none: 6, totals: 6 });
    const { arms, ratios, leftOut, notes } = ledgerBenchReport(bench);
    const left = leftOut.map(({ arm }) => arm);
    expect(arms).toHaveLength(
      11 - (left.includes("pgbench") ? 2 : 0) - (left.includes("durable execution") ? 1 : 0),
    );
    for (const { arm, perSecond, walBytes } of arms) {
      expect(perSecond, arm).toBeGreaterThan(0);
      // Whoever commits writes the server's log.
      expect(walBytes, arm).toBeGreaterThan(100);
    }
    const compared = !left.includes("durable execution");
    expect(notes.length > 0).toBe(compared && ratios.some(({ met }) => !met));
    for (const { ratio, goal, met } of ratios) expect(met).toBe(ratio >= goal);
  });

  test("finds what is there with every scan and list, at every size", { timeout: 120_000 }, async () => {
    const lists = await withThrowAwayDatabases(({ ledgerUrl }) =>
      runLists(ports, ledgerUrl, { rows: [300, 700] }),
    );
    expect(lists.wrong).toEqual([]);
    expect(lists.reads.size).toBe(12);
    for (const [what, costs] of lists.reads) {
      expect(
        costs.map(({ size }) => size),
        what,
      ).toEqual([300, 700]);
      for (const { buffers } of costs) expect(buffers, what).toBeGreaterThan(0);
    }
  });
});
