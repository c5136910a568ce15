/**
 * `countersign faults`: refunds under faults, through the product and through three plainer ways to do it, counted at the
 * provider. Everything in this process, on databases of its own that are thrown away.
 */
import { matrixReport, openWorld, reportTables, runMatrix } from "../../evaluation/index.js";
import { CommandFailure, EXIT_BAD_USAGE, EXIT_CHECK_FAILED } from "../exit.js";
import { complain, print, printJson, table } from "../output.js";
import { systemClock, systemIds } from "../system.js";
import { withThrowAwayDatabases } from "./throw-away.js";

const DEFAULT_EPISODES = 600;
const SAY_EVERY = 100;
const quiet = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };

export async function faults(options: { episodes?: number; seed?: number; json?: boolean }): Promise<void> {
  const episodes = options.episodes ?? DEFAULT_EPISODES;
  const seed = options.seed ?? 1;
  if (episodes < 1) throw new CommandFailure("--episodes must be at least 1.", EXIT_BAD_USAGE);
  const report = await withThrowAwayDatabases(async ({ ledgerUrl, providerUrl }) => {
    const world = await openWorld({
      ports: { ids: systemIds, clock: systemClock, log: quiet },
      ledgerUrl,
      providerUrl,
    });
    try {
      const run = await runMatrix(world, {
        episodes,
        seed,
        onEpisode: (done, of) => {
          if (done % SAY_EVERY === 0) complain(`${done} of ${of} scenarios played`);
        },
      });
      return matrixReport(run);
    } finally {
      await world.close();
    }
  });
  if (options.json === true) {
    printJson(report);
  } else {
    const { arms, cells } = reportTables(report);
    print(table(cells));
    print("");
    print(table(arms));
    print("");
    for (const { mode, contract, crash, problem } of report.violations) {
      print(`WRONG  ${mode} at ${contract}, crash ${crash}: ${problem}`);
    }
    for (const problem of report.audit) print(`WRONG  audit chain: ${problem}`);
    print(
      report.right
        ? `Seed ${seed}: nothing wrong with ours in ${report.arms.ours.episodes} episodes whose fault really fired.`
        : `Seed ${seed}: ${report.violations.length + report.audit.length} findings.`,
    );
  }
  if (!report.right) throw new CommandFailure("The fault matrix found something wrong.", EXIT_CHECK_FAILED);
}
