/**
 * A desk for one ticket: the whole product in this process on a database of its own, the payments sandbox behind the real client,
 * people who file, confirm and decide. Only Slack is missing: what it would show stays in the rows.
 */

import { type AgentCtx, driveRun, type Planner } from "../../agent/index.js";
import { type ApprovalsContext, decide, listPending } from "../../approvals/index.js";
import { clockOffset, setClockOffset } from "../../db/clock.js";
import { openDb } from "../../db/connect.js";
import { drive } from "../../dispatch/index.js";
import type { OperationId, RunId } from "../../domain/ids.js";
import type { Clock, Ids } from "../../domain/ports/clock.js";
import type { Db, Tx } from "../../domain/ports/database.js";
import type { Directory } from "../../domain/ports/directory.js";
import type { Logger } from "../../domain/ports/logger.js";
import type { Notices } from "../../domain/ports/notices.js";
import type { PaymentProvider } from "../../domain/ports/payment-provider.js";
import { isRunEnd, type RunState } from "../../domain/run.js";
import { activatePolicy, type LoadedPolicy } from "../../policy/index.js";
import { type ReconcileCtx, reconcileDue } from "../../reconcile/index.js";
import { confirmBinding, fileTicket, type RunsCtx, type RunView, viewRun } from "../../runs/index.js";
import { importShop } from "../../shop/index.js";
import { APPROVERS, evaluationPeople } from "../people.js";
import { silent } from "../silent.js";

/** What the command or the test hands in. */
export interface DeskPorts {
  readonly ids: Ids;
  readonly clock: Clock;
  readonly log: Logger;
  /** A migrated database without content, for one ticket. */
  freshLedger(): Promise<{ readonly url: string; release(): Promise<void> }>;
  /** The program's own composition. */
  compose(parts: {
    db: Db;
    notices: Notices<Tx>;
    directory: Directory;
    provider: PaymentProvider;
    planner: Planner;
  }): { runs: RunsCtx; agent: AgentCtx; approvals: ApprovalsContext; reconcile: ReconcileCtx };
}

export interface DeskOptions {
  readonly ports: DeskPorts;
  readonly provider: PaymentProvider;
  readonly planner: Planner;
  readonly policy: LoadedPolicy;
  /** Shop files, imported one after the other. */
  readonly shop: readonly object[];
  /** `jump`: time moves on to whatever is due next. `wait`: real time passes, as a service at the other end needs. */
  readonly time: "jump" | "wait";
  /** Who hears what people would be shown; nobody, if not given. */
  readonly notices?: Notices<Tx>;
}

export interface Asked {
  readonly text: string;
  readonly filer: string;
  /** Reference of the customer that the filer chose. */
  readonly customer?: string;
  readonly confirm: boolean;
  readonly decide: "approve" | "deny" | "nothing";
}

export interface Desk {
  readonly db: Db;
  readonly runs: RunsCtx;
  readonly agent: AgentCtx;
  readonly approvals: ApprovalsContext;
  readonly reconcile: ReconcileCtx;
  /** Files the ticket and works until its run has ended or waits for somebody who does not come. null: it started none. */
  handle(asked: Asked): Promise<RunView | null>;
  close(): Promise<void>;
}

const MAX_ROUNDS = 200;
const WAIT_STEP_MS = 200;
const LIMIT = 50;
/** A run that waits for people longer than this waits for somebody who does not come. */
const PATIENCE_MS = 60_000;

export async function openDesk(options: DeskOptions): Promise<Desk> {
  const { ports } = options;
  const ledger = await ports.freshLedger();
  const db = openDb({ url: ledger.url, applicationName: "countersign-evaluate", poolSize: 6 });
  await activatePolicy(db, options.policy);
  for (const content of options.shop) {
    await importShop({ db, ids: ports.ids, onBelowReserved: async () => {} }, { content });
  }
  const composed = ports.compose({
    db,
    notices: options.notices ?? silent,
    directory: evaluationPeople(ports.clock),
    provider: options.provider,
    planner: options.planner,
  });
  return {
    db,
    ...composed,
    handle: async (asked) => {
      const runId = await file(composed.runs, asked);
      if (runId === null) return null;
      await work({ ...composed, db, options, decide: asked.decide }, runId);
      return viewRun(db, runId);
    },
    close: async () => {
      await db.close();
      await ledger.release();
    },
  };
}

async function file(ctx: RunsCtx, asked: Asked): Promise<RunId | null> {
  const customerId = asked.customer === undefined ? null : await customerIdOf(ctx.db, asked.customer);
  const filed = await fileTicket(ctx, {
    source: "cli",
    dedupeKey: ctx.ids.next("evaluation_"),
    filer: asked.filer,
    text: asked.text,
    customerId,
  });
  if (filed.outcome === "asked" || filed.run === null) return null;
  if (asked.confirm && filed.ticket.binding === "unconfirmed") {
    await confirmBinding(ctx, { ticketId: filed.ticket.id, by: asked.filer });
  }
  return filed.run.id;
}

export async function customerIdOf(db: Db, ref: string): Promise<string> {
  const [row] = await db.sql<{ id: string }>(
    "evaluation.customer",
    "SELECT id FROM customers WHERE ref = $1",
    [ref],
  );
  if (row === undefined) throw new Error(`there is no customer ${ref}`);
  return row.id;
}

interface Working {
  readonly db: Db;
  readonly agent: AgentCtx;
  readonly approvals: ApprovalsContext;
  readonly reconcile: ReconcileCtx;
  readonly options: DeskOptions;
  readonly decide: Asked["decide"];
}

/** What queue, sweeper and people do between them, until nothing more comes by itself. */
async function work(working: Working, runId: RunId): Promise<void> {
  const { db } = working;
  for (let round = 0; round < MAX_ROUNDS; round += 1) {
    await driveRun(working.agent, runId);
    for (const id of await preparedAndDue(db)) await drive(working.reconcile, id);
    await reconcileDue(working.reconcile, { limit: LIMIT });
    const view = await viewRun(db, runId);
    if (view === null || isRunEnd(view.run.state)) return;
    if ((await decideAll(working)) > 0) continue;
    const dueInMs = await nextDueMs(db);
    if (dueInMs === null || (waitsForPeople(view.run.state) && dueInMs > PATIENCE_MS)) return;
    if (dueInMs > 0) await passTime(working, dueInMs);
  }
  throw new Error(`the run ${runId} came neither to its end nor to a wait`);
}

const waitsForPeople = (state: RunState): boolean =>
  state === "awaiting_approval" || state === "awaiting_binding";

/** $1 rows. What a lost wake-up would have driven. */
const PREPARED =
  "SELECT id FROM operations WHERE status = 'PREPARED' AND due_at <= countersign_now() LIMIT $1";

export const preparedAndDue = async (db: Db): Promise<OperationId[]> =>
  (await db.sql<{ id: OperationId }>("evaluation.prepared", PREPARED, [LIMIT])).map(({ id }) => id);

/** Milliseconds until a run or an operation is due; null: nothing is. Cards in quarantine are for people. */
async function nextDueMs(db: Db): Promise<number | null> {
  const [row] = await db.sql<{ ms: number | null }>(
    "evaluation.next_due",
    `SELECT CEIL(EXTRACT(EPOCH FROM (min(due_at) - countersign_now())) * 1000)::int AS ms FROM (
       SELECT due_at FROM runs WHERE due_at IS NOT NULL
       UNION ALL SELECT due_at FROM operations WHERE due_at IS NOT NULL AND status <> 'QUARANTINED') d`,
  );
  return row?.ms ?? null;
}

async function passTime({ db, options }: Working, ms: number): Promise<void> {
  if (options.time === "jump") {
    await setClockOffset(db, (await clockOffset(db)) + ms);
    return;
  }
  await new Promise((resolve) => setTimeout(resolve, Math.min(ms, WAIT_STEP_MS)));
}

/** Everybody who may decide does so, on every card that waits. Returns how many decisions counted. */
export async function decideAll(working: Pick<Working, "db" | "approvals" | "decide">): Promise<number> {
  if (working.decide === "nothing") return 0;
  let counted = 0;
  for (const { approval } of (await listPending(working.db, { limit: LIMIT })).approvals) {
    for (const userId of APPROVERS) {
      const answer = await decide(working.approvals, {
        approvalId: approval.id,
        cardVersion: approval.cardVersion,
        userId,
        verdict: working.decide === "approve" ? "approve" : "deny",
        ...(working.decide === "deny" ? { note: "Not this one." } : {}),
      });
      if (answer.outcome === "recorded" || answer.outcome === "approved" || answer.outcome === "denied") {
        counted += 1;
      }
      if (answer.outcome === "approved" || answer.outcome === "denied") break;
    }
  }
  return counted;
}
