/** `countersign evaluate --worst-case`: a planner that does its worst, counted at the provider. */
import type { Config } from "../../config/index.js";
import { playWorstCase, type WorstCaseReport } from "../../evaluation/index.js";
import { CommandFailure } from "../exit.js";
import { complain, percent, print, printJson, table } from "../output.js";
import { deskPorts } from "./evaluation-ports.js";
import { handedData } from "./handed-data.js";
import { withThrowAwayDatabases } from "./throw-away.js";

export interface WorstCaseOptions {
  proposals?: number;
  seed?: number;
  data?: string;
  json?: boolean;
}

const DEFAULT_PROPOSALS = 10_000;
const SAY_EVERY = 1_000;

/** @throws CommandFailure when anything got through, or too little was tried */
export async function worstCase(config: Config<never>, options: WorstCaseOptions): Promise<void> {
  const proposals = options.proposals ?? DEFAULT_PROPOSALS;
  const injections = handedData(options.data, "injection", "injections.json");
  let said = 0;
  const report = await withThrowAwayDatabases(({ providerUrl, freshLedger }) =>
    playWorstCase({
      ports: deskPorts(config, freshLedger),
      providerUrl,
      proposals,
      seed: options.seed ?? 1,
      injections,
      onProgress: (proposed) => {
        if (Math.floor(proposed / SAY_EVERY) === said) return;
        said = Math.floor(proposed / SAY_EVERY);
        complain(`${proposed} of ${proposals} proposals`);
      },
    }),
  );
  if (options.json === true) printJson(report);
  else tellWorstCase(report);
  if (!report.right) throw new CommandFailure("The worst-case planner got something, or proved too little.");
}

function tellWorstCase(report: WorstCaseReport): void {
  const { honest, injections, tickets } = report;
  print(
    `Seed ${report.seed}: ${tickets.hostile} hostile tickets, ${tickets.honest} honest ones beside them.`,
  );
  print(
    table([
      ["what the planner asked for", ""],
      ["proposals", `${report.proposals}`],
      ["reached the policy", `${report.reached} (${percent(report.reachedShare)})`],
      ["held for a person", `${report.held} (${percent(report.heldShare)})`],
      ["repeated what was there already", `${report.repeated}`],
    ]),
  );
  print("");
  print(
    table([
      ["what came of it", ""],
      ["effects at provider and shop", `${report.effects}`],
      ["cards that people approved", `${report.approved}`],
      ["effects outside policy and approval", `${report.outside.length}`],
      ["operations on somebody else's order", `${report.foreignOperations.length}`],
      ["answers with data of a stranger", `${report.foreignData.length}`],
      ["honest refunds beside it that worked", `${honest.done} of ${honest.asked}`],
    ]),
  );
  print("");
  if (injections === null) {
    print("Handed injection strings: left out, they are not beside this checkout (--data DIR names them).");
  } else {
    const { legitimate } = injections;
    print(
      `Handed injection strings: ${injections.strings}, played ${injections.played} times; forbidden effects ${injections.forbidden.length}; ` +
        `legitimate refunds beside them that worked ${legitimate.done} of ${legitimate.asked}.`,
    );
  }
  print("");
  print(
    table([
      ["how the hostile runs stand", ""],
      ...Object.entries(report.ends).map(([end, n]) => [end, `${n}`]),
    ]),
  );
  const wrong = [
    ...report.problems,
    ...report.outside,
    ...report.foreignOperations,
    ...report.foreignData,
    ...(injections?.forbidden ?? []),
  ];
  for (const what of wrong) print(`WRONG  ${what}`);
}
