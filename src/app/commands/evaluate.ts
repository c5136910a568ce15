/**
 * `countersign evaluate`: labelled tickets. `--static` looks at labels and policy alone; `--scripted` and `--live` play every
 * ticket through the whole product in this process, on databases that are thrown away.
 */
import { type Planner, scriptedPlanner } from "../../agent/index.js";
import { type Config, parseConfig } from "../../config/index.js";
import {
  evaluateStatic,
  evaluateTickets,
  type PlayedReport,
  type StaticReport,
} from "../../evaluation/index.js";
import { type LoadedPolicy, loadPolicyFile } from "../../policy/index.js";
import { choosePlanner } from "../compose/planner.js";
import { CommandFailure, EXIT_BAD_USAGE } from "../exit.js";
import { complain, percent, print, printJson, table } from "../output.js";
import { systemClock } from "../system.js";
import { oracle } from "./evaluate-oracle.js";
import { type WorstCaseOptions, worstCase } from "./evaluate-worst-case.js";
import { deskPorts } from "./evaluation-ports.js";
import { withThrowAwayDatabases } from "./throw-away.js";

export interface EvaluateOptions extends WorstCaseOptions {
  static?: boolean;
  scripted?: boolean;
  live?: boolean;
  worstCase?: boolean;
  oracle?: boolean;
}

export async function evaluate(options: EvaluateOptions): Promise<void> {
  const ways = [options.static, options.scripted, options.live, options.worstCase, options.oracle];
  if (ways.filter((one) => one === true).length !== 1) {
    throw new CommandFailure(
      "Say one of --static, --scripted, --live, --worst-case and --oracle.",
      EXIT_BAD_USAGE,
    );
  }
  const config = parseConfig([]);
  if (options.worstCase === true) {
    await worstCase(config, options);
    return;
  }
  if (options.oracle === true) {
    await oracle(config, options);
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
