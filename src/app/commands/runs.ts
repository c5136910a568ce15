import type { Db } from "../../db/connect.js";
import type { RunId } from "../../domain/ids.js";
import { cutText } from "../../domain/text/cut.js";
import { utcSecond } from "../../domain/text/utc-time.js";
import { type AskedFor, askedBy, findRuns, listRuns, viewRun } from "../../runs/index.js";
import { fullTrace } from "../compose/run-trace.js";
import { CommandFailure } from "../exit.js";
import { writeTextFile } from "../files.js";
import { print, printJson, table, toJsonText } from "../output.js";
import { needIdLike } from "./id-like.js";
import { withDb } from "./open.js";
import { subjectOf } from "./show-text.js";

/** `countersign runs list` */
export async function list(options: { cursor?: string; json?: boolean }): Promise<void> {
  await withDb(async (db) => {
    const page = await listRuns(db, { cursor: options.cursor ?? null, limit: 50 });
    if (options.json === true) {
      printJson({
        runs: page.runs.map(({ run, excerpt, filer }) => ({
          id: run.id,
          state: run.state,
          ticketId: run.ticketId,
          steps: run.stepsUsed,
          verified_success: run.ending?.verifiedSuccess ?? null,
          excerpt,
          filer,
          createdAt: run.createdAt,
        })),
        next: page.next,
      });
      return;
    }
    if (page.runs.length === 0) {
      print("No runs yet.");
      return;
    }
    const asked = await askedBy(
      db,
      page.runs.map(({ run }) => run.id),
    );
    print(
      table([
        ["run", "state", "ticket", "filed by", "steps", "started", "asked for"],
        ...page.runs.map(({ run, filer, excerpt }) => [
          run.id,
          run.state,
          run.ticketId,
          filer,
          String(run.stepsUsed),
          utcSecond(run.createdAt),
          askedText(asked.get(run.id) ?? []) ||
            `“${cutText(excerpt.replace(/[\s\p{C}]+/gu, " ").trim(), 60)}”`,
        ]),
      ]),
    );
    if (page.next !== null) print(`More: countersign runs list --cursor ${page.next}`);
  });
}

/** "refund £180.00 GBP on ORD-10042: CONFIRMED" of each; empty: it asked for nothing. */
const askedText = (asked: readonly AskedFor[]): string =>
  asked.map((one) => `${subjectOf(one)}: ${one.status}`).join("; ");

/** `countersign runs show ID` */
export async function show(id: string, options: { json?: boolean }): Promise<void> {
  await withDb(async (db) => {
    const runId = await findRun(db, id);
    const trace = await fullTrace(db, runId);
    const view = await viewRun(db, runId);
    if (trace === null || view === null) throw new CommandFailure(`There is no run ${id}.`);
    if (options.json === true) {
      const { run: _run, ...rest } = trace;
      printJson({
        id: view.run.id,
        state: view.run.state,
        ticketId: view.ticket.id,
        steps: view.run.stepsUsed,
        verified_success: trace.verified_success,
        trace: rest,
      });
      return;
    }
    print(`${view.run.id}  ${view.run.state}  ticket ${view.ticket.ref ?? view.ticket.id}`);
    if (view.run.ending !== null) print(view.run.ending.detail);
    for (const [index, call] of view.calls.entries()) {
      print(
        `  ${index + 1}. ${call.name}  ${call.decision ?? ""}  ${call.state}${call.replayed ? "  replayed" : ""}`,
      );
      if (call.result !== null) print(`     ${call.result}`);
    }
    print(
      `verified success: ${trace.verified_success === null ? "not yet" : trace.verified_success ? "yes" : "no"}`,
    );
  });
}

/** `countersign trace RUN --out FILE` */
export async function trace(id: string, options: { out: string }): Promise<void> {
  await withDb(async (db) => {
    const runId = await findRun(db, id);
    const document = await fullTrace(db, runId);
    writeTextFile(options.out, `${toJsonText(document)}\n`);
    print(`Wrote ${options.out}.`);
  });
}

async function findRun(db: Db, text: string): Promise<RunId> {
  needIdLike(text, "run_", "run");
  const found = await findRuns(db, text);
  const [only] = found;
  if (only === undefined) throw new CommandFailure(`There is no run ${text}.`);
  if (found.length > 1) {
    throw new CommandFailure(
      `${text} is the beginning of several runs:\n${found.map((run) => `  ${run.id}`).join("\n")}`,
    );
  }
  return only.id;
}
