/**
 * The loop with its real neighbours: ledger, policy, approvals, dispatch and reconcile on a real database, the official payments
 * client against the payments sandbox, the demo shop. Played are only people (the directory's port), what people would be shown,
 * and the queue (a pump over due rows).
 */
import type { AgentCtx, DriveOutcome, Planner, PlannerSettings } from "../../../src/agent/index.js";
import { driveRun, messagesApiPlanner } from "../../../src/agent/index.js";
import { turnGate } from "../../../src/app/compose/gate.js";
import { ledgerContext } from "../../../src/app/compose/ledger.js";
import { identify, shopReads } from "../../../src/app/compose/shop-reads.js";
import { systemClock, systemIds } from "../../../src/app/system.js";
import {
  type ApprovalsContext,
  attendDue,
  type DecideClick,
  type DecideOutcome,
  decide,
  listPending,
} from "../../../src/approvals/index.js";
import type { Db, Tx } from "../../../src/db/connect.js";
import type { DispatchCtx } from "../../../src/dispatch/index.js";
import { drive as driveOperation } from "../../../src/dispatch/index.js";
import type { Approval } from "../../../src/domain/approval.js";
import type { RunId } from "../../../src/domain/ids.js";
import type { Operation } from "../../../src/domain/operation.js";
import type { CardSubject, Notices, ThreadMessage } from "../../../src/domain/ports/notices.js";
import { listOperations } from "../../../src/ledger/index.js";
import { createPayments, type Payments } from "../../../src/payments/index.js";
import { activatePolicy, activePolicy, makeJudge, readPolicyText } from "../../../src/policy/index.js";
import { type ReconcileCtx, reconcileDue } from "../../../src/reconcile/index.js";
import {
  confirmBinding,
  dueRuns,
  type FiledTicket,
  type FileTicket,
  fileTicket,
  followSuccessor,
  type Run,
  type RunsCtx,
  type RunView,
  viewRun,
  wakeRun,
} from "../../../src/runs/index.js";
import type { PaymentsControl } from "../../../src/sandbox/payments/index.js";
import { cancelOrder, demoShop, importShop, type ShopFile } from "../../../src/shop/index.js";
import { People } from "../../approvals/harness.js";
import { SEALS } from "../../support/ledger-world.js";
import type { MessagesStub } from "../../support/messages-stub.js";
import { waitFor } from "../../support/wait.js";

export const POLICY = `
version: 1
kinds:
  refund:
    orderStatuses: [delivered, cancelled]
    windowDays: 365
    auto:  { GBP: 5000, USD: 5000, JPY: 20000 }
    never: { GBP: 300000, USD: 300000, JPY: 300000 }
    approval:
      - { upTo: { GBP: 50000, USD: 50000 }, role: supervisor, approvers: 1 }
      - { upTo: { GBP: 300000, USD: 300000 }, role: finance, approvers: 1 }
    totals: []
    coolingOffMinutes: {}
  cancel_order: { orderStatuses: [placed, packed], auto: true, approval: [{ role: supervisor, approvers: 1 }] }
  cancel_subscription: { auto: true, approval: [{ role: supervisor, approvers: 1 }] }
approvals: { selfApproval: false, expireAfterMinutes: 1440, remindAfterMinutes: [30, 240], escalateTo: [finance, oncall] }
roles:
  supervisor: { users: [U_SUP1, U_SUP2], limit: { GBP: 50000, USD: 50000 } }
  finance: { users: [U_FIN1, U_FIN2] }
  oncall: { users: [U_ONC1, U_ONC2] }
`;

/** The only key that the payments sandbox of the tests accepts. */
const SECRET_KEY = "sk_test_sandbox";

export const SETTINGS: PlannerSettings = {
  maxOutputTokens: 1024,
  largerOutputTokens: 4096,
  callDeadlineMs: 20_000,
  dailyMaxMicroUsd: null,
  price: { inputMicroUsd: 3_000_000n, outputMicroUsd: 15_000_000n },
  retryBaseMs: 5,
  retryMaxMs: 20,
  maxFailures: 4,
};

export interface WorldOptions {
  db: Db;
  control: PaymentsControl;
  paymentsUrl: string;
  planner: Planner;
  settings?: Partial<PlannerSettings>;
  policy?: string;
  budgets?: Partial<RunsCtx["newRuns"]["budgets"]>;
  leaseMs?: number;
  confirmGraceMs?: number;
  forbidden?: (what: "scope" | "policy") => void;
  worker?: string;
}

export interface AgentWorld {
  db: Db;
  ctx: AgentCtx;
  approvals: ApprovalsContext;
  dispatch: DispatchCtx;
  people: People;
  posts: { ticketId: string; key: string; message: ThreadMessage }[];
  touched: CardSubject[];
  logs: { level: string; fields: object; message: string }[];
  file(
    text: string,
    more?: Partial<FileTicket>,
  ): Promise<Extract<FiledTicket, { outcome: "filed" }> & { run: Run }>;
  /** Files, and confirms the customer as the filer. */
  fileConfirmed(text: string): Promise<{ runId: RunId; ticketId: FiledTicket["ticket"]["id"] }>;
  /** Drives whatever is due, runs, operations and approvals, until nothing is. */
  pump(): Promise<void>;
  drive(runId: RunId): Promise<DriveOutcome>;
  view(runId: RunId): Promise<RunView>;
  operations(): Promise<readonly Operation[]>;
  pending(): Promise<readonly Approval[]>;
  click(
    userId: string,
    approval: Approval,
    verdict?: "approve" | "deny",
    more?: Partial<DecideClick>,
  ): Promise<DecideOutcome>;
  says(type: ThreadMessage["type"]): ThreadMessage[];
  close(): Promise<void>;
}

let filed = 0;

/** The world on a database that holds the demo shop. */
export async function agentWorld(options: WorldOptions): Promise<AgentWorld> {
  const { db } = options;
  const people = new People();
  const posts: AgentWorld["posts"] = [];
  const touched: CardSubject[] = [];
  const logs: AgentWorld["logs"] = [];
  const log = recorder(logs);
  const notices = record(posts, touched);
  const payments = createPayments({ secretKey: SECRET_KEY, apiUrl: options.paymentsUrl, clock: systemClock });
  await activatePolicy(db, readPolicyText(options.policy ?? POLICY, "policy.yaml"));
  const { approvals, reconcile } = neighbours(options, { people, notices, log, payments });
  const planner = options.planner;
  const ctx: AgentCtx = {
    db,
    ids: systemIds,
    notices,
    wake: async () => {},
    identify,
    newRuns: {
      planner: planner.name,
      model: planner.model,
      budgets: { maxSteps: 12, maxCostMicroUsd: null, deadlineMs: 600_000, ...options.budgets },
    },
    planner,
    settings: { ...SETTINGS, ...options.settings },
    gate: turnGate(reconcile),
    shop: shopReads,
    log,
    forbidden: options.forbidden ?? (() => {}),
    worker: options.worker ?? "test-worker",
    leaseMs: options.leaseMs ?? 30_000,
    confirmGraceMs: options.confirmGraceMs ?? 0,
    policyHelp: async () => "Refunds up to £50.00 need no approval.",
  };
  const file: AgentWorld["file"] = async (text, more) => {
    filed += 1;
    const answer = await fileTicket(ctx, {
      source: "message",
      dedupeKey: `message:C_TICK:${filed}`,
      channelId: "C_TICK",
      messageTs: `1796000000.${String(filed).padStart(6, "0")}`,
      filer: "U_AGENT",
      text,
      ...more,
    });
    if (answer.outcome !== "filed" || answer.run === null) throw new Error(`filed as ${answer.outcome}`);
    return { ...answer, run: answer.run };
  };
  const world: AgentWorld = {
    db,
    ctx,
    approvals,
    dispatch: reconcile,
    people,
    posts,
    touched,
    logs,
    file,
    fileConfirmed: async (text) => {
      const { run, ticket } = await file(text);
      const bound = await confirmBinding(ctx, { ticketId: ticket.id, by: "U_AGENT" });
      if (bound.outcome !== "bound") throw new Error(`binding: ${bound.outcome}`);
      return { runId: run.id, ticketId: ticket.id };
    },
    pump: () => pump(world, reconcile),
    drive: (runId) => driveRun(ctx, runId),
    view: async (runId) => {
      const view = await viewRun(db, runId);
      if (view === null) throw new Error(`no run ${runId}`);
      return view;
    },
    operations: async () => [...(await listOperations(db, { limit: 200 })).rows].reverse(),
    pending: async () => (await listPending(db, {})).approvals.map((listed) => listed.approval),
    click: (userId, approval, verdict, more) =>
      decide(approvals, {
        approvalId: approval.id,
        cardVersion: approval.cardVersion,
        userId,
        verdict: verdict ?? "approve",
        ...more,
      }),
    says: (type) => posts.map((post) => post.message).filter((message) => message.type === type),
    close: () => payments.close(),
  };
  return world;
}

function neighbours(
  options: WorldOptions,
  parts: { people: People; notices: Notices<Tx>; log: AgentCtx["log"]; payments: Payments },
): { approvals: ApprovalsContext; reconcile: ReconcileCtx } {
  const { db } = options;
  const ledger = ledgerContext({
    db,
    notices: parts.notices,
    wake: async () => {},
    timing: {
      providerTimeoutMs: 2_000,
      providerKeyTtlMs: 86_400_000,
      reconcileEveryMs: 50,
      reconcileBaseMs: 5,
      reconcileMaxMs: 20,
      quarantineAfterMs: 3_600_000,
      quarantineRepostMs: 3_600_000,
      leaseMs: 10_000,
    },
    seals: SEALS,
  });
  const approvals: ApprovalsContext = {
    db,
    ids: systemIds,
    clock: systemClock,
    wake: async () => {},
    notices: parts.notices,
    directory: parts.people,
    judge: makeJudge(),
    ledger,
    activePolicy: async (on) => (await activePolicy(on)).policy,
    hooks: {
      onTurnDecided: async (tx, { runId }) => {
        wakeRun(tx, runId);
      },
      onSuccessor: async (tx, change) => {
        await followSuccessor(tx, change);
      },
    },
    log: parts.log,
  };
  const reconcile: ReconcileCtx = {
    ...ledger,
    approvals,
    provider: parts.payments,
    verifyWebhook: () => ({ ok: false, reason: "no webhooks here" }) as never,
    localEffect: async (tx, operation) =>
      operation.orderRef === null
        ? { ok: false, code: "no_order", detail: "There is no order." }
        : cancelOrder({ orderRef: operation.orderRef })(tx),
    log: parts.log,
    worker: options.worker ?? "test-worker",
    reconcile: { maxAttempts: 8, concurrency: 4, orphanWindowMs: 3_600_000, orphanLagMs: 60_000 },
  };
  return { approvals, reconcile };
}

/** What the queue and its schedules would do, until nothing is due. Bounded: a world that never rests is a finding. */
async function pump(world: AgentWorld, reconcile: ReconcileCtx): Promise<void> {
  let quiet = 0;
  await waitFor(
    async () => {
      const runs = await dueRuns(world.db, 50);
      for (const runId of runs) await world.drive(runId);
      const prepared = await world.db.sql<{ id: Operation["id"] }>(
        undefined,
        "SELECT id FROM operations WHERE status = 'PREPARED' AND due_at <= countersign_now()",
      );
      for (const { id } of prepared) await driveOperation(world.dispatch, id);
      await reconcileDue(reconcile, { limit: 50 });
      await attendDue(world.approvals, { limit: 50 });
      const [open] = await world.db.sql<{ n: bigint }>(
        undefined,
        `SELECT (SELECT count(*) FROM runs WHERE state IN ('queued','running'))
              + (SELECT count(*) FROM operations WHERE status IN ('PREPARED','OUTCOME_UNKNOWN','RECONCILING','DISPATCHED')) AS n`,
      );
      quiet = runs.length === 0 && (open?.n ?? 0n) === 0n ? quiet + 1 : 0;
      return quiet >= 2;
    },
    { what: "everything that is due to be done", timeoutMs: 45_000 },
  );
}

function record(posts: AgentWorld["posts"], touched: CardSubject[]): Notices<Tx> {
  const keys = new Set<string>();
  return {
    touch: async (tx, subject) => tx.afterCommit(() => void touched.push(subject)),
    follow: async () => {},
    repost: async (tx, subject) => tx.afterCommit(() => void touched.push(subject)),
    switchTurned: async () => {},
    thread: async (tx, post) =>
      tx.afterCommit(() => {
        if (!keys.has(post.key)) posts.push(post);
        keys.add(post.key);
      }),
    ops: async () => {},
    approvers: async () => {},
  };
}

function recorder(logs: AgentWorld["logs"]): AgentCtx["log"] {
  const at = (level: string) => (fields: object, message: string) =>
    void logs.push({ level, fields, message });
  return { debug: at("debug"), info: at("info"), warn: at("warn"), error: at("error") };
}

/** The demo shop in the database, and its payments at the provider. */
export async function stockShop(db: Db, control: PaymentsControl): Promise<ShopFile> {
  const shop = demoShop({ today: systemClock.now() });
  await importShop({ db, ids: systemIds, onBelowReserved: async () => {} }, { content: shop });
  for (const { payment, currency } of shop.orders) {
    if (payment == null) continue;
    await control.seedPayment({ paymentIntent: payment.paymentIntent, amount: payment.captured, currency });
  }
  for (const { providerRef } of shop.subscriptions) await control.seedSubscription({ id: providerRef });
  return shop;
}

/** The real planner on the stand-in. */
export const stubPlanner = (stub: MessagesStub): Planner =>
  messagesApiPlanner({ apiKey: "sk-test", baseUrl: stub.url, model: "claude-sonnet-5-5", idleMs: 10_000 });
