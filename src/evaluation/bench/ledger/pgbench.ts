/** The same statements by `pgbench`, PostgreSQL's own benchmark program: what the server can do for a client that costs nothing. */
import { execFile } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { promisify } from "node:util";
import { environment } from "../../../config/index.js";
import { PLAN_ONCE } from "../../../db/connect.js";
import { BEGIN } from "./bare-driver.js";
import type { Measured } from "./measure.js";
import type { Step, Template } from "./record.js";

const run = promisify(execFile);
const PGBENCH = "pgbench";
const PATIENCE_MS = 60_000;

/** Whether the program is on this machine. */
export async function pgbenchVersion(): Promise<string | null> {
  try {
    return (await run(PGBENCH, ["--version"])).stdout.trim();
  } catch {
    return null;
  }
}

export async function runPgbench(
  url: string,
  steps: readonly Step[],
  options: { lanes: number; seconds: number; threads: number },
): Promise<Measured> {
  const home = mkdtempSync(path.join(tmpdir(), "countersign-pgbench-"));
  try {
    const script = path.join(home, "operation.sql");
    writeFileSync(script, scriptOf(steps, options.lanes));
    const at = new URL(url);
    const { stdout } = await run(
      PGBENCH,
      [
        ...[
          "-h",
          at.hostname,
          "-p",
          at.port === "" ? "5432" : at.port,
          "-U",
          decodeURIComponent(at.username),
        ],
        ...["-c", `${options.lanes}`, "-j", `${options.threads}`, "-T", `${Math.ceil(options.seconds)}`],
        ...["-M", "prepared", "-n", "-D", "i=0", "-f", script, at.pathname.slice(1)],
      ],
      {
        timeout: PATIENCE_MS + options.seconds * 1_000,
        env: {
          PATH: environment()["PATH"],
          PGPASSWORD: decodeURIComponent(at.password),
          PGOPTIONS: PLAN_ONCE,
        },
      },
    );
    return measuredOf(stdout);
  } finally {
    rmSync(home, { recursive: true, force: true });
  }
}

/** Operation numbers as the lanes of the other arms take them: each once. What the product sends together is sent together. */
function scriptOf(steps: readonly Step[], lanes: number): string {
  return [
    "\\set lane :client_id",
    `\\set n :client_id + :i * ${lanes}`,
    "\\set i :i + 1",
    ...steps.flatMap((step, index) => {
      const before = steps[index - 1]?.withNext === true;
      return [
        ...(step.withNext && !before ? ["\\startpipeline"] : []),
        step.is === "statement" ? `${withParameters(step)};` : `${step.is === "begin" ? BEGIN : "COMMIT"};`,
        ...(before && !step.withNext ? ["\\endpipeline"] : []),
      ];
    }),
    "",
  ].join("\n");
}

function withParameters(step: Extract<Step, { is: "statement" }>): string {
  return guarded(step.text).replace(/\$(\d+)/g, (_, position: string) =>
    expression(step.parameters[Number(position) - 1] ?? null),
  );
}

function expression(parameter: Template): string {
  if (parameter === null) return "NULL";
  if (parameter.length === 0) return "''";
  return `(${parameter.map((part) => (typeof part === "string" ? literal(part) : part.sql)).join(" || ")})`;
}

const literal = (text: string): string => guarded(`'${text.replaceAll("'", "''")}'`);

/** pgbench takes a colon with a name for a variable, inside a literal too: there the literal is taken apart. */
const guarded = (sql: string): string => sql.replace(/(?<!:):(?=[A-Za-z0-9_])/g, ":' || '");

function measuredOf(output: string): Measured {
  const processed = /number of transactions actually processed: (\d+)/.exec(output)?.[1];
  const perSecond = /tps = ([\d.]+) \(without initial connection time\)/.exec(output)?.[1];
  if (processed === undefined || perSecond === undefined) {
    throw new Error(`pgbench said something else than expected:\n${output}`);
  }
  const operations = Number(processed);
  return { operations, seconds: operations / Number(perSecond), cpuMs: null };
}
