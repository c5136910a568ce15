/**
 * `countersign bench ledger`: how fast and how cheap the ledger is beside the bare driver, PostgreSQL's own benchmark and a library
 * for durable execution, and what scans and lists cost as the history grows. On databases of its own that are thrown away.
 */
import {
  type LedgerBenchReport,
  type ListsReport,
  ledgerBenchReport,
  listsReport,
  runLedgerBench,
  runLists,
} from "../../evaluation/index.js";
import { CommandFailure, EXIT_BAD_USAGE } from "../exit.js";
import { complain, print, printJson, table } from "../output.js";
import { systemClock, systemIds } from "../system.js";
import { withThrowAwayDatabases } from "./throw-away.js";

export interface LedgerBenchCommand {
  readonly seconds?: number;
  readonly rounds?: number;
  readonly lanes?: number;
  readonly rows?: readonly number[];
  readonly only?: "speed" | "lists";
  readonly json?: boolean;
}

const DEFAULTS = { seconds: 2, rounds: 3, lanes: 8, rows: [10_000, 100_000, 1_000_000] } as const;
const MAX_ROWS = 10_000_000;
const quiet = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };

export async function benchLedger(options: LedgerBenchCommand): Promise<void> {
  const { seconds, rounds, lanes, rows } = { ...DEFAULTS, ...options };
  if (
    seconds <= 0 ||
    rounds < 1 ||
    lanes < 1 ||
    rows.length === 0 ||
    rows.some((n) => n < 1 || n > MAX_ROWS)
  ) {
    throw new CommandFailure("--seconds, --rounds, --lanes and --rows must be positive.", EXIT_BAD_USAGE);
  }
  const ports = { ids: systemIds, clock: systemClock, log: quiet };
  const speed =
    options.only === "lists"
      ? null
      : await withThrowAwayDatabases(
          async (databases) =>
            ledgerBenchReport(
              await runLedgerBench(ports, databases, {
                seconds,
                rounds,
                lanes,
                onArm: (arm, round) =>
                  complain(round === 0 ? `warming up: ${arm}` : `round ${round} of ${rounds}: ${arm}`),
              }),
            ),
          { durable: true },
        );
  const lists =
    options.only === "speed"
      ? null
      : await withThrowAwayDatabases(
          async ({ ledgerUrl }) =>
            listsReport(
              await runLists(ports, ledgerUrl, {
                rows: [...rows].sort((a, b) => a - b),
                onSize: (size) => complain(`lists at ${size} operations`),
              }),
            ),
          { durable: true },
        );
  const wrong = [...(speed?.wrong ?? []), ...(lists?.wrong ?? [])];
  if (options.json === true) {
    printJson({ machine: speed?.machine ?? lists?.machine, lanes, seconds, speed, lists, wrong });
  } else {
    if (speed !== null) printSpeed(speed, { lanes, seconds, rounds });
    if (lists !== null) printLists(lists);
    for (const problem of wrong) print(`WRONG  ${problem}`);
  }
  if (wrong.length > 0) throw new CommandFailure("The benchmark found something wrong.");
}

function printSpeed(
  report: LedgerBenchReport,
  how: { lanes: number; seconds: number; rounds: number },
): void {
  print(report.machine);
  print(
    `${how.lanes} lanes, ${how.seconds} s an arm, median of ${how.rounds} rounds; compare only within this run.`,
  );
  print(
    `One operation is ${report.roundTrips.none} round trips without totals, ${report.roundTrips.totals} with the default policy's.`,
  );
  print("");
  print(
    table([
      ["arm", "operations/s", "rounds", "CPU ms/operation: client", "server", "log kB/operation"],
      ...report.arms.map((arm) => [
        arm.arm,
        arm.perSecond.toFixed(0),
        arm.rounds.map((round) => round.toFixed(0)).join(" "),
        arm.clientCpuMs === null ? "-" : arm.clientCpuMs.toFixed(2),
        arm.serverCpuMs === null ? "-" : arm.serverCpuMs.toFixed(2),
        (arm.walBytes / 1_000).toFixed(1),
      ]),
    ]),
  );
  print("");
  print(
    table([
      ["ratio", "is", "goal", ""],
      ...report.ratios.map(({ what, ratio, goal, met }) => [
        what,
        ratio.toFixed(2),
        `${goal}`,
        met ? "met" : "MISSED",
      ]),
    ]),
  );
  for (const note of report.notes) print(note);
  for (const { arm, why } of report.leftOut) print(`Left out: ${arm} (${why}).`);
  print("");
}

function printLists(report: ListsReport): void {
  print(
    table([
      [
        "what",
        ...report.sizes.map((size) => `${size} ms`),
        ...report.sizes.map((size) => `${size} buffers`),
        "growth",
      ],
      ...report.reads.map((read) => [
        read.what,
        ...read.at.map(({ ms }) => ms.toFixed(2)),
        ...read.at.map(({ buffers }) => `${buffers}`),
        `${read.growth.toFixed(2)}${read.met === false ? " MISSED" : ""}`,
      ]),
    ]),
  );
  print(
    `Growth: buffers at the largest size over buffers at the smallest; the goal of scans and lists is at most ${report.goal}.`,
  );
}
