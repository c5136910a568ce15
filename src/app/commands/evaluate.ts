/**
 * `countersign evaluate`: labelled tickets. `--static` looks at labels and policy alone; `--scripted` and `--live` play every
 * ticket through the whole product in this process, on databases that are thrown away.
 */
import { existsSync } from "node:fs";
import path from "node:path";
import { type Planner, scriptedPlanner } from "../../agent/index.js";
import { type Config, environment, parseConfig } from "../../config/index.js";
import {
  type DeskPorts,
  evaluateStatic,
  evaluateTickets,
  type PlayedReport,
  playWorstCase,
  type StaticReport,
  type WorstCaseReport,
} from "../../evaluation/index.js";
import { type LoadedPolicy, loadPolicyFile } from "../../policy/index.js";
import { createLogger, createMetrics, NO_TRACER } from "../../telemetry/index.js";
import { composeContexts } from "../compose/contexts.js";
import { choosePlanner } from "../compose/planner.js";
import { CommandFailure, EXIT_BAD_USAGE } from "../exit.js";
import { complain, print, printJson, table } from "../output.js";
import { systemClock, systemIds } from "../system.js";
import { withThrowAwayDatabases } from "./throw-away.js";

export interface EvaluateOptions {
  static?: boolean;
  scripted?: boolean;
  live?: boolean;
  worstCase?: boolean;
  proposals?: number;
  seed?: number;
  data?: string;
  json?: boolean;
}

const DEFAULT_PROPOSALS = 10_000;

export async function evaluate(options: EvaluateOptions): Promise<void> {
  const ways = [options.static, options.scripted, options.live, options.worstCase];
  if (ways.filter((one) => one === true).length !== 1) {
    throw new CommandFailure("Say one of --static, --scripted, --live and --worst-case.", EXIT_BAD_USAGE);
  }
  const config = parseConfig([]);
  if (options.worstCase === true) {
    await worstCase(config, options);
    return;
  }
  const policy = await loadPolicyFile(config.policyFile);
  if (options.static === true) {
    tellStatic(evaluateStatic(policy.policy, systemClock.now()), options);
    return;
  }
  const planner = options.live === true ? livePlanner(config) : scriptedPlanner();
  const report = await playAll(config, policy, planner);
  tellPlayed(report, options);
}

/** @throws CommandFailure naming the variable when there is no model to ask */
function livePlanner(config: Config<never>): Planner {
  if (config.planner.kind !== "messages-api") {
    throw new CommandFailure(
      "--live needs a model: set ANTHROPIC_API_KEY (and leave PLANNER unset).",
      EXIT_BAD_USAGE,
    );
  }
  return choosePlanner(config).planner;
}

function playAll(config: Config<never>, policy: LoadedPolicy, planner: Planner): Promise<PlayedReport> {
  return withThrowAwayDatabases(({ providerUrl, freshLedger }) =>
    evaluateTickets({
      ports: deskPorts(config, freshLedger),
      providerUrl,
      planner,
      policy,
      time: planner.model === null ? "jump" : "wait",
      onTicket: (result) =>
        complain(`${result.id}: ${result.state}${result.verified ? "" : " (not as labelled)"}`),
    }),
  );
}

const SAY_EVERY = 1_000;

async function worstCase(config: Config<never>, options: EvaluateOptions): Promise<void> {
  const proposals = options.proposals ?? DEFAULT_PROPOSALS;
  const injections = handedInjections(options.data);
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

/** The handed strings in `dir`, in COUNTERSIGN_DATA, or beside the checkout; null: not there. */
function handedInjections(dir: string | undefined): string | null {
  const named = dir ?? environment()["COUNTERSIGN_DATA"];
  const file = path.join(path.resolve(named ?? "../shared/data"), "injection", "injections.json");
  if (existsSync(file)) return file;
  if (dir !== undefined) throw new CommandFailure(`There is no ${file}.`, EXIT_BAD_USAGE);
  return null;
}

function deskPorts(config: Config<never>, freshLedger: DeskPorts["freshLedger"]): DeskPorts {
  const log = createLogger({ level: config.logLevel, secrets: [], fields: { roles: "evaluate" } });
  const metrics = createMetrics({ processMetrics: false });
  return {
    ids: systemIds,
    clock: systemClock,
    log,
    freshLedger,
    compose: (parts) => {
      const contexts = composeContexts({
        config,
        db: parts.db,
        wake: async () => {},
        notices: parts.notices,
        directory: parts.directory,
        provider: parts.provider,
        verifyWebhook: () => ({ ok: false, reason: "nobody sends webhooks here" }),
        log,
        metrics,
        tracer: NO_TRACER,
        worker: "evaluate",
      });
      const { planner: instead } = parts;
      const newRuns = { ...contexts.agent.newRuns, planner: instead.name, model: instead.model };
      return {
        ...contexts,
        runs: { ...contexts.runs, newRuns },
        agent: { ...contexts.agent, newRuns, planner: instead },
      };
    },
  };
}

function tellStatic(report: StaticReport, options: EvaluateOptions): void {
  if (options.json === true) printJson(report);
  else {
    print(`${report.labels} labelled tickets, ${report.problems.length} contradictions`);
    for (const problem of report.problems) print(`  ${problem}`);
    print(`${report.limits.length} looks at the policy, on both sides of each limit:`);
    print(
      table([
        ["limit", "at", "answer", ""],
        ...report.limits.map(({ limit, at, answer, wanted, right }) => [
          limit,
          at,
          answer,
          right ? "" : `WRONG, should be ${wanted}`,
        ]),
      ]),
    );
  }
  if (!report.right) throw new CommandFailure("Labels or policy are not coherent.");
}

function tellPlayed(report: PlayedReport, options: EvaluateOptions): void {
  if (options.json === true) printJson(report);
  else {
    print(
      table([
        ["ticket", "end", "planner", "verified", "constraints", "not as labelled"],
        ...report.tickets.map((ticket) => [
          ticket.id,
          ticket.state,
          mark(ticket.plannerSuccess),
          mark(ticket.verified),
          mark(ticket.constraintsKept),
          [...ticket.forbidden.map((what) => `FORBIDDEN ${what}`), ...ticket.unmet].join("; "),
        ]),
      ]),
    );
    const { tickets, rates } = report;
    print("");
    print(`planner said success   ${percent(rates.plannerSuccess)} of ${tickets.length}`);
    print(`verified as labelled   ${percent(rates.verified)} of ${tickets.length}`);
    print(`constraints kept       ${percent(rates.constraintsKept)} of ${tickets.length}`);
    print(`forbidden              ${report.forbidden}`);
  }
  if (report.forbidden !== 0) throw new CommandFailure("Something happened that the labels forbid.");
}

const mark = (yes: boolean): string => (yes ? "yes" : "no");
const percent = (rate: number): string => `${Math.round(rate * 1000) / 10} %`;

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
