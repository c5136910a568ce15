/** The command line: reads words, loads the command's own file, ends with its exit code. */
import { Command, CommanderError, InvalidArgumentError, Option } from "commander";
import { ConfigError } from "../config/index.js";
import { CountersignError } from "../domain/errors.js";
import { fileReason } from "../domain/text/file-reason.js";
import type { LedgerBenchCommand } from "./commands/bench.js";
import type { BenchResumeOptions } from "./commands/bench-resume.js";
import type { BenchSlackOptions } from "./commands/bench-slack.js";
import type { EvaluateOptions } from "./commands/evaluate.js";
import type { FaultsOptions } from "./commands/faults.js";
import { CommandFailure, EXIT_BAD_USAGE, EXIT_CHECK_FAILED } from "./exit.js";
import { complain } from "./output.js";
import { refusedDatabase } from "./refused-database.js";

const program = new Command("countersign")
  .description("Resolves support tickets by acting, and never moves money twice or without authority.")
  .exitOverride()
  .showHelpAfterError("(countersign --help lists the commands)");

const json = (): Option => new Option("--json", "one JSON document on stdout and nothing else");

program
  .command("start")
  .description("run the product; needs the variables of the README")
  .option("--roles <list>", "app, worker or both", "app,worker")
  .addOption(
    new Option(
      "--end-with-parent",
      "of the demo: end when the program that started this one does",
    ).hideHelp(),
  )
  .action(async (options: { roles: string; endWithParent?: boolean }) =>
    (await import("./commands/start.js")).start(options),
  );

program
  .command("migrate")
  .description("bring the database's schema up to date, offline")
  .option("--app-role <name>", "make or update the role that the product runs under; it cannot alter events")
  .action(async (options: { appRole?: string }) => (await import("./commands/database.js")).migrate(options));

program
  .command("seed")
  .description("load the demo shop and its tickets")
  .action(async () => (await import("./commands/database.js")).seed());

const shop = program.command("shop").description("customers, orders, subscriptions, help articles");
shop
  .command("import <file>")
  .description("upsert everything in the file, all or nothing")
  .action(async (file: string) => (await import("./commands/shop.js")).importFile(file));
shop
  .command("show <reference>")
  .description("one order with its payment's balance")
  .addOption(json())
  .action(async (reference: string, options: { json?: boolean }) =>
    (await import("./commands/shop.js")).show(reference, options),
  );

const ops = program.command("ops").description("a read-only look at the ledger");
ops
  .command("list [status]")
  .description("operations, the newest first: what, how much, for which order, in which state")
  .option("--status <status>", "only operations in this state, as the bare word does")
  .option("--cursor <cursor>", "the next page, as the last answer named it")
  .addOption(json())
  .action(async (word: string | undefined, options: { status?: string; cursor?: string; json?: boolean }) =>
    (await import("./commands/ops.js")).list(word === undefined ? options : { ...options, word }),
  );
ops
  .command("show <id>")
  .description("one operation: amount, state, approval, attempts, provider's reference")
  .addOption(json())
  .action(async (id: string, options: { json?: boolean }) =>
    (await import("./commands/ops.js")).show(id, options),
  );
ops
  .command("events <id>")
  .description("everything that has happened to one operation, in its order")
  .addOption(json())
  .action(async (id: string, options: { json?: boolean }) =>
    (await import("./commands/ops.js")).events(id, options),
  );
ops
  .command("health")
  .description(
    "database, queue, Slack, payments, and what is open, due and frozen; fails when a part is not well",
  )
  .addOption(json())
  .action(async (options: { json?: boolean }) => (await import("./commands/health.js")).health(options));
ops
  .command("incidents")
  .description("findings that nobody has closed")
  .option("--cursor <cursor>", "the next page, as the last answer named it")
  .addOption(json())
  .action(async (options: { cursor?: string; json?: boolean }) =>
    (await import("./commands/ops.js")).incidents(options),
  );

program
  .command("run <ticket>")
  .description("drive one seeded ticket (TCK-2001 …) from the shell")
  .action(async (ticket: string) => (await import("./commands/run-ticket.js")).runTicket(ticket));

const runs = program.command("runs").description("what the agent did");
runs
  .command("list", { isDefault: true })
  .description("runs, the newest first, with their tickets and states")
  .option("--cursor <cursor>", "the next page, as the last answer named it")
  .addOption(json())
  .action(async (options: { cursor?: string; json?: boolean }) =>
    (await import("./commands/runs.js")).list(options),
  );
runs
  .command("show <id>")
  .description("one run: how it stands, its tool calls and what came of each")
  .addOption(json())
  .action(async (id: string, options: { json?: boolean }) =>
    (await import("./commands/runs.js")).show(id, options),
  );
program
  .command("trace <run>")
  .description("every step of a run, as JSON")
  .requiredOption("--out <file>", "where to write it")
  .action(async (run: string, options: { out: string }) =>
    (await import("./commands/runs.js")).trace(run, options),
  );

program
  .command("approvals")
  .description("what waits for whom")
  .command("list", { isDefault: true })
  .description("approvals that are open: for whom, how much, until when")
  .addOption(json())
  .action(async (options: { json?: boolean }) => (await import("./commands/approvals.js")).list(options));

const policy = program.command("policy").description("the file that says what the agent may do alone");
policy
  .command("check <file>")
  .description("validate a policy file: every problem with its line, and what it probably did not mean")
  .action(async (file: string) => (await import("./commands/policy.js")).check(file));
policy
  .command("explain")
  .description("what the gate would answer now, and each rule that spoke")
  .requiredOption("--kind <kind>", "refund, cancel_order or cancel_subscription")
  .requiredOption("--order <reference>", "order or subscription")
  .option("--amount <minor>", "minor units, a whole number", wholeNumber)
  .addOption(json())
  .action(async (options: { kind: string; order: string; amount?: bigint; json?: boolean }) =>
    (await import("./commands/policy.js")).explain(options),
  );

const audit = program.command("audit").description("the hash chain of everything that happened");
audit
  .command("export")
  .description("every event as JSON Lines on stdout")
  .action(async () => (await import("./commands/audit.js")).exportLog());
audit
  .command("explain <id>")
  .description(
    "one operation, from its ticket's text to the provider's reference, and the links that carry it",
  )
  .addOption(json())
  .action(async (id: string, options: { json?: boolean }) =>
    (await import("./commands/audit-explain.js")).explain(id, options),
  );
audit
  .command("verify")
  .description("check the chain; name the first broken link, if there is one")
  .action(async () => (await import("./commands/audit.js")).verify());

program
  .command("evaluate")
  .description("labelled tickets: three rates, and what was forbidden")
  .option("--static", "labels and policy alone; no key, no database")
  .option("--scripted", "every ticket through the product, with the scripted planner")
  .option("--live", "every ticket through the product, with the model; needs ANTHROPIC_API_KEY")
  .option("--worst-case", "a planner that does its worst, counted at the provider")
  .option("--proposals <n>", "with --worst-case: at least so many tool calls", count)
  .option("--seed <n>", "with --worst-case: the same seed asks for the same", count)
  .option("--oracle", "a retail shop's tasks with known effects, replayed to the cent")
  .option("--data <dir>", "folder of the handed data: injection/, tau/")
  .addOption(json())
  .action(async (options: EvaluateOptions) => (await import("./commands/evaluate.js")).evaluate(options));

program
  .command("faults")
  .description("refunds under faults, through the product and through plainer ways, counted at the provider")
  .option("--episodes <n>", "scenarios, each played by every arm", count)
  .option("--seed <n>", "the same seed plays the same scenarios, in however many worlds", count)
  .option("--worlds <n>", "processes that share them; by the machine's cores when left out", count)
  .addOption(json())
  .action(async (options: FaultsOptions) => (await import("./commands/faults.js")).faults(options));
program
  .command("faults-world", { hidden: true })
  .action(async () => (await import("./commands/faults-world.js")).world());

const bench = program.command("bench").description("the benchmarks, as ratios");
bench
  .command("ledger")
  .description(
    "operations per second beside pgbench, the bare driver and durable execution; scans and lists by size",
  )
  .option("--seconds <n>", "for each arm in each round", positive)
  .option("--rounds <n>", "rounds, arms interleaved", count)
  .option("--lanes <n>", "operations under way at a time", count)
  .option("--rows <list>", "sizes of the history, as 10000,100000,1000000", sizes)
  .option("--only <part>", "speed or lists", part)
  .addOption(json())
  .action(async (options: LedgerBenchCommand) => (await import("./commands/bench.js")).benchLedger(options));
bench
  .command("slack")
  .description("events at an even pace over HTTP and Socket Mode, each timed until it is acknowledged")
  .option("--rate <n>", "events a second", count)
  .option("--seconds <n>", "how long", count)
  .option("--rows <n>", "operations of history in the tables", count)
  .addOption(new Option("--transport <way>", "the way in").choices(["http", "socket", "both"]))
  .addOption(json())
  .action(async (options: BenchSlackOptions) =>
    (await import("./commands/bench-slack.js")).benchSlack(options),
  );
bench
  .command("resume")
  .description("from a click to the resumed run beside the bare queue; then workers that are killed")
  .option("--runs <n>", "clicks", count)
  .option("--kills <n>", "workers that are killed", count)
  .option("--rows <n>", "operations of history in the tables", count)
  .addOption(json())
  .action(async (options: BenchResumeOptions) =>
    (await import("./commands/bench-resume.js")).benchResume(options),
  );

program
  .command("demo")
  .description("everything on this machine, without an account anywhere")
  .option("--story <name>", "play one story without a hand on the keyboard")
  .option("--out <dir>", "where the story writes trace.json and effect-report.json", ".countersign/story")
  .option("--watch", "play the story in slow motion once a page is open, and keep the page at its end")
  .action(async (options: { story?: string; out: string; watch?: boolean }) =>
    (await import("./commands/demo.js")).demo(options),
  );

function wholeNumber(text: string): bigint {
  if (!/^\d{1,15}$/.test(text))
    throw new CommandFailure("--amount is whole minor units, like 1800 for £18.00.", EXIT_BAD_USAGE);
  return BigInt(text);
}

function count(text: string): number {
  if (!/^\d{1,9}$/.test(text)) throw new InvalidArgumentError("must be a whole number.");
  return Number(text);
}

function positive(text: string): number {
  const value = Number(text);
  if (!/^\d{1,4}(\.\d{1,3})?$/.test(text) || value <= 0)
    throw new InvalidArgumentError("must be a positive number.");
  return value;
}

function sizes(text: string): number[] {
  return text.split(",").map(count);
}

function part(text: string): "speed" | "lists" {
  if (text !== "speed" && text !== "lists") throw new InvalidArgumentError("must be speed or lists.");
  return text;
}

// A reader that has seen enough (`… | head`) closes the pipe: that is no failure.
process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  if (error.code === "EPIPE") process.exit(0);
  complain(`The output cannot be written: ${fileReason(error)}.`);
  process.exit(EXIT_CHECK_FAILED);
});

/** Errors of what the command was told: a page that is none, a POLICY_FILE that cannot be used. */
const BAD_USAGE: ReadonlySet<string> = new Set(["bad_cursor", "bad_policy_file"]);

process.exitCode = await main();

async function main(): Promise<number> {
  try {
    await program.parseAsync(process.argv);
    return typeof process.exitCode === "number" ? process.exitCode : 0;
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : EXIT_BAD_USAGE;
    if (error instanceof ConfigError) {
      complain(error.message);
      return EXIT_BAD_USAGE;
    }
    const refused = refusedDatabase(error);
    if (refused !== null) {
      complain(refused);
      return EXIT_BAD_USAGE;
    }
    if (error instanceof CommandFailure) {
      complain(error.message);
      return error.exitCode;
    }
    if (error instanceof CountersignError) {
      complain(error.message);
      return BAD_USAGE.has(error.code) ? EXIT_BAD_USAGE : EXIT_CHECK_FAILED;
    }
    complain(error instanceof Error ? (error.stack ?? error.message) : String(error));
    return EXIT_CHECK_FAILED;
  }
}
