/** `countersign evaluate --oracle`: tasks of a retail shop whose right effects are known to the cent. */
import type { Config } from "../../config/index.js";
import { type OracleReport, replayOracle } from "../../evaluation/index.js";
import { CommandFailure, EXIT_BAD_USAGE } from "../exit.js";
import { complain, print, printJson, table } from "../output.js";
import { deskPorts } from "./evaluation-ports.js";
import { handedData } from "./handed-data.js";
import { withThrowAwayDatabases } from "./throw-away.js";

/** @throws CommandFailure when anything differs from the file, or the data is not there */
export async function oracle(
  config: Config<never>,
  options: { data?: string; json?: boolean },
): Promise<void> {
  const dir = handedData(options.data, "tau");
  if (dir === null) {
    throw new CommandFailure(
      "The retail tasks are not beside this checkout: name their folder with --data DIR (it holds tau/tasks.json).",
      EXIT_BAD_USAGE,
    );
  }
  const report = await withThrowAwayDatabases(({ providerUrl, freshLedger }) =>
    replayOracle({
      ports: deskPorts(config, freshLedger),
      providerUrl,
      dir,
      every: 1,
      onProgress: (done) => complain(done),
    }),
  );
  if (options.json === true) printJson(report);
  else tell(report);
  if (!report.right) throw new CommandFailure("The replay differs from the file.");
}

function tell({ tasks, effects, refundedCents, wrong, mustNot }: OracleReport): void {
  print(
    table([
      ["what must happen", ""],
      ["tasks", `${tasks}`],
      ["effects of the file, each made once and to the cent", `${effects - wrong.length} of ${effects}`],
      ["refunded", `${(refundedCents / 100).toFixed(2)} USD`],
    ]),
  );
  print("");
  print(
    table([
      ["what must not happen", ""],
      ["writes proposed", `${mustNot.proposed}`],
      ["refused", `${mustNot.refused}`],
      ["held", `${mustNot.held}`],
      ["answered with what was done before", `${mustNot.repeated}`],
      ["requests at the provider, changed orders", `${mustNot.happened.length}`],
    ]),
  );
  for (const what of [...wrong, ...mustNot.happened]) print(`WRONG  ${what}`);
}
