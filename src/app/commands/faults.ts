/**
 * `countersign faults`: refunds under faults, through the product and through three plainer ways to do it, counted at the
 * provider. Several worlds at a time, each a process with databases of its own that are thrown away.
 */
import { availableParallelism } from "node:os";
import { counted } from "../../domain/text/counted.js";
import {
  excusedLines,
  type MatrixReport,
  matrixReport,
  mergeRuns,
  reportTables,
} from "../../evaluation/index.js";
import { CommandFailure, EXIT_BAD_USAGE, EXIT_CHECK_FAILED } from "../exit.js";
import { complain, print, printJson, table } from "../output.js";
import { playInProcess } from "./faults-world.js";
import { withThrowAwayDatabases } from "./throw-away.js";

const DEFAULT_EPISODES = 600;
/** Often enough that nobody wonders whether it hangs, and no more than this many lines. */
const SAY_TIMES = 20;
/** A world waits about as long as it works. */
const WORLDS_A_CORE = 2;
/** Each holds up to 18 connections; a server of default settings has a hundred. */
const MAX_WORLDS = 5;
/** Below this a world's start costs more than its share. */
const MIN_SHARE = 30;

/** Before the table, because its words are short. */
const READING = [
  "A row is what goes wrong (fault) at a provider and what that provider promises: a fault of none is the undisturbed run, a",
  "provider of none promises neither keys nor a list. 2 dup /5: of five episodes two paid twice; 0/5: none of five did harm.",
  "Where the provider promises nothing, what nobody can know ends with a person.",
  "",
].join("\n");

export interface FaultsOptions {
  readonly episodes?: number;
  readonly seed?: number;
  readonly worlds?: number;
  readonly json?: boolean;
}

export async function faults(options: FaultsOptions): Promise<void> {
  const episodes = options.episodes ?? DEFAULT_EPISODES;
  const seed = options.seed ?? 1;
  if (episodes < 1) throw new CommandFailure("--episodes must be at least 1.", EXIT_BAD_USAGE);
  const worlds = options.worlds ?? worldsFor(episodes);
  if (worlds < 1) throw new CommandFailure("--worlds must be at least 1.", EXIT_BAD_USAGE);
  const report = await play({ episodes, seed, worlds });
  if (options.json === true) printJson(report);
  else printReport(report);
  if (!report.right) throw new CommandFailure("The fault matrix found something wrong.", EXIT_CHECK_FAILED);
}

const worldsFor = (episodes: number): number =>
  Math.max(1, Math.min(MAX_WORLDS, WORLDS_A_CORE * availableParallelism(), Math.floor(episodes / MIN_SHARE)));

function play(plan: { episodes: number; seed: number; worlds: number }): Promise<MatrixReport> {
  return withThrowAwayDatabases(async ({ freshLedger, freshProvider }) => {
    const { episodes, seed, worlds } = plan;
    complain(
      `Making databases for ${counted(worlds, "world")}, then playing ${counted(episodes, "scenario")}.`,
    );
    const sayEvery = Math.ceil(episodes / SAY_TIMES);
    let played = 0;
    const onPlayed = (): void => {
      played += 1;
      if (played % sayEvery === 0) complain(`${played} of ${episodes} scenarios played`);
    };
    const places: { ledgerUrl: string; providerUrl: string }[] = [];
    // One after the other: a database that is being copied may have no other user.
    for (let index = 0; index < worlds; index += 1) {
      places.push({ ledgerUrl: (await freshLedger()).url, providerUrl: (await freshProvider()).url });
    }
    const runs = await Promise.all(
      places.map((place, index) =>
        playInProcess({ ...place, episodes, seed, share: { index, of: worlds } }, onPlayed),
      ),
    );
    return matrixReport(mergeRuns(runs));
  });
}

function printReport(report: MatrixReport): void {
  const { arms, cells } = reportTables(report);
  print(READING);
  print(table(cells));
  print("");
  print(table(arms));
  print("");
  for (const line of excusedLines(report)) print(line);
  for (const { mode, contract, crash, problem } of report.violations) {
    print(`WRONG  ${mode} at ${contract}, crash ${crash}: ${problem}`);
  }
  for (const problem of report.audit) print(`WRONG  audit chain: ${problem}`);
  const { cells: all, played, fired, neverFired } = report.coverage;
  print(
    `Cells of fault, provider and crash point: ${all}; played ${played}; fault and crash happened in ${fired}.`,
  );
  if (neverFired.length > 0) print(`Never happened: ${neverFired.join(", ")}.`);
  print(
    report.right
      ? `Seed ${report.seed}: nothing ${excusedLines(report).length === 0 ? "" : "else "}wrong with ours in ${report.arms.ours.episodes} episodes whose fault really fired.`
      : `Seed ${report.seed}: ${report.violations.length + report.audit.length} findings.`,
  );
}
