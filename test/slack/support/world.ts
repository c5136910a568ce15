/**
 * The Slack room with its neighbours, real Bolt, a real database and the Slack sandbox on real sockets. What is due is worked off by
 * a pump instead of a queue.
 */
import { readFileSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { parse } from "yaml";
import { systemClock, systemIds } from "../../../src/app/system.js";
import {
  type ApprovalsContext,
  type DecideOutcome,
  decide,
  lookBeforeDeny,
  pendingFor,
  readAhead,
  undo,
} from "../../../src/approvals/index.js";
import type { Db, Tx } from "../../../src/db/connect.js";
import { contractBook } from "../../../src/domain/contracts.js";
import type { Evidence } from "../../../src/domain/evidence.js";
import type { Policy } from "../../../src/domain/policy/policy.js";
import type { Directory } from "../../../src/domain/ports/directory.js";
import type { Logger } from "../../../src/domain/ports/logger.js";
import type { Notices } from "../../../src/domain/ports/notices.js";
import type { Wake } from "../../../src/domain/ports/wake.js";
import { getOperation, type LedgerCtx } from "../../../src/ledger/index.js";
import { type OpsUseCases, opsUseCases } from "../../../src/ops/index.js";
import {
  type BindingCandidate,
  changeBinding,
  confirmBinding,
  fileTicket,
  type RunsCtx,
  requestCancel,
  runsShowing,
  setTicketThread,
  threadReply,
} from "../../../src/runs/index.js";
import {
  type ApiFault,
  type SlackSandbox,
  type SlackSandboxOptions,
  startSlackSandbox,
} from "../../../src/sandbox/slack/index.js";
import { bindingFromText } from "../../../src/shop/index.js";
import {
  createDirectory,
  createNotices,
  createSlackWeb,
  dueArrivals,
  dueCards,
  dueOutbox,
  processInbox,
  refreshHomes,
  renderCard,
  SILENT_METRICS,
  type SlackConfig,
  type SlackContext,
  type SlackHandle,
  type SlackUseCases,
  type SlackWeb,
  type StartOptions,
  sendOutbox,
  startSlack,
} from "../../../src/slack/index.js";
import { CONTRACT_FILE, policyOf } from "../../domain/policy/contract-policy.js";
import { SEALS } from "../../support/ledger-world.js";
import { rawStates } from "./see.js";

/** The one that is pasted into Slack. */
const MANIFEST: unknown = parse(readFileSync("manifest.yml", "utf8"));

export const CHANNELS = { tickets: "C_TICK", approvals: "C_APPR", ops: "C_OPS" } as const;

export interface WorldOptions {
  readonly db: Db;
  /** On which arrivals are stored. Default: `db`. */
  readonly arrivals?: Db;
  readonly mode: "socket" | "http";
  readonly sandbox?: Partial<SlackSandboxOptions>;
  readonly start?: Partial<StartOptions>;
  readonly ops?: Partial<OpsUseCases>;
  /** What the provider says when it is asked before a resolution. */
  readonly probe?: () => Evidence;
  readonly useCases?: Partial<SlackUseCases>;
  /** Stands around every decision. */
  readonly aroundDecide?: (decide: () => Promise<DecideOutcome>) => Promise<DecideOutcome>;
  readonly config?: Partial<SlackConfig>;
  /** Switched on before the app starts. */
  readonly faults?: readonly ApiFault[];
  /** No pump: the test works rows off by itself. */
  readonly still?: boolean;
}

export interface World {
  readonly db: Db;
  readonly sandbox: SlackSandbox;
  readonly slack: SlackHandle;
  readonly ctx: SlackContext;
  readonly runs: RunsCtx;
  readonly notices: Notices<Tx>;
  readonly directory: Directory;
  readonly web: SlackWeb;
  readonly logs: { level: string; fields: object; message: string }[];
  policy: Policy;
  /** Works off everything that is due now, once. */
  drain(): Promise<void>;
  stop(): Promise<void>;
}

export async function startWorld(options: WorldOptions): Promise<World> {
  const { db, mode } = options;
  const sandbox = await startSlackSandbox({
    port: 0,
    mode,
    seed: "test",
    manifest: MANIFEST,
    rateLimits: true,
    ...options.sandbox,
  });
  const logs: World["logs"] = [];
  const log = recorder(logs);
  const config: SlackConfig = {
    botToken: sandbox.botToken,
    apiUrl: sandbox.apiUrl,
    channels: CHANNELS,
    port: 0,
    transport:
      mode === "http" ? { mode, signingSecret: sandbox.signingSecret } : { mode, appToken: sandbox.appToken },
    ...options.config,
  };
  for (const fault of options.faults ?? []) sandbox.control.addApiFault(fault);
  const world = { policy: policyOf(CONTRACT_FILE) };
  const policy = async (): Promise<Policy> => world.policy;
  const web = createSlackWeb(config, log, SILENT_METRICS);
  const common = { db, ids: systemIds, clock: systemClock, log };
  const directory = createDirectory({ ...common, web, policy });
  const work: Record<string, (id: string) => Promise<void>> = {};
  const wake: Wake = async (kind, id) => {
    if (options.still !== true) void work[kind]?.(id).catch(() => {});
  };
  const notices = createNotices({ ids: systemIds, wake, config });
  const runs = runsContext(db, notices, wake);
  const useCases = composeUseCases({ db, runs, notices, directory, policy, wake, log }, options);
  const ctx: SlackContext = {
    ...common,
    arrivals: options.arrivals ?? db,
    wake,
    web,
    directory,
    metrics: SILENT_METRICS,
    config,
    policy,
    useCases,
  };
  work["inbox"] = (id) => processInbox(ctx, id);
  work["outbox"] = (id) => sendOutbox(ctx, id);
  work["card"] = (id) => renderCard(ctx, id);
  const slack = await startSlack(ctx, { routes: {}, ...options.start }).catch(async (error: unknown) => {
    await web.close();
    await sandbox.stop();
    throw error;
  });
  if (mode === "http") {
    sandbox.control.settings({ requestUrl: `http://127.0.0.1:${slack.port}/slack/events` });
    if (!(await sandbox.control.verifyRequestUrl())) throw new Error("the request url was not verified");
  }
  const drain = (): Promise<void> => drainOnce(ctx);
  const pump = options.still === true ? null : startPump(drain);
  return Object.assign(world, {
    db,
    sandbox,
    slack,
    ctx,
    runs,
    notices,
    directory,
    web,
    logs,
    drain,
    stop: async () => {
      await slack.stop();
      await pump?.();
      await web.close();
      const raw = rawStates(sandbox);
      await sandbox.stop();
      // Whatever a test is about: people read words, CONTRACT §4.
      if (raw.length > 0) throw new Error(`states as the database spells them: ${raw.join(" | ")}`);
    },
  });
}

async function drainOnce(ctx: SlackContext): Promise<void> {
  await Promise.all((await dueArrivals(ctx, 100)).map((id) => processInbox(ctx, id)));
  await Promise.all((await dueOutbox(ctx, 100)).map((id) => sendOutbox(ctx, id)));
  await Promise.all((await dueCards(ctx, 100)).map((id) => renderCard(ctx, id)));
  await refreshHomes(ctx);
}

/** The sweeper of these tests. Returns what ends it. */
function startPump(drain: () => Promise<void>): () => Promise<void> {
  const stopping = new AbortController();
  const running = (async () => {
    while (!stopping.signal.aborted) {
      await drain().catch(() => {});
      await delay(25, undefined, { signal: stopping.signal }).catch(() => {});
    }
  })();
  return async () => {
    stopping.abort();
    await running;
  };
}

function recorder(logs: World["logs"]): Logger {
  const at = (level: string) => (fields: object, message: string) => {
    logs.push({ level, fields, message });
    if (process.env["SLACK_TEST_LOG"] === "1" && level !== "debug") {
      process.stderr.write(`${level} ${message} ${JSON.stringify(fields)}\n`);
    }
  };
  return { debug: at("debug"), info: at("info"), warn: at("warn"), error: at("error") };
}

function runsContext(db: Db, notices: Notices<Tx>, wake: Wake): RunsCtx {
  return {
    db,
    ids: systemIds,
    notices,
    wake,
    identify: async (on, text) => candidatesOf(await bindingFromText(on, text)),
    newRuns: {
      planner: "scripted",
      model: null,
      budgets: { maxSteps: 12, maxCostMicroUsd: null, deadlineMs: 600_000 },
    },
  };
}

function candidatesOf(found: Awaited<ReturnType<typeof bindingFromText>>): BindingCandidate[] {
  const named = found.found === "one" ? [found.named] : found.found === "several" ? found.candidates : [];
  return named.map(({ customer, by }) => ({
    customerId: customer.id,
    customerRef: customer.ref,
    name: customer.name,
    via: by.map((text) => ({ kind: text.includes("@") ? ("email" as const) : ("order" as const), text })),
  }));
}

interface Neighbours {
  readonly db: Db;
  readonly runs: RunsCtx;
  readonly notices: Notices<Tx>;
  readonly directory: Directory;
  readonly policy: () => Promise<Policy>;
  readonly wake: Wake;
  readonly log: Logger;
}

function composeUseCases(n: Neighbours, options: WorldOptions): SlackUseCases {
  const ledger = ledgerContext(n);
  const approvals = approvalsContext(n, ledger);
  return {
    fileTicket: (filing) => fileTicket(n.runs, filing),
    setTicketThread: (thread) => n.db.tx((tx) => setTicketThread(tx, thread)),
    threadReply: (reply) => threadReply(n.runs, reply),
    requestCancel: (request) => requestCancel(n.runs, request),
    confirmBinding: (request) => confirmBinding(n.runs, request),
    changeBinding: (request) => changeBinding(n.runs, request),
    findCustomers: (text) => n.runs.identify(n.db, text),
    furtherRefund: async () => ({ outcome: "refused", sentence: "There is nothing to repeat here." }),
    readAhead: (userId) => readAhead(approvals, userId),
    decide: (click) => options.aroundDecide?.(() => decide(approvals, click)) ?? decide(approvals, click),
    undo: (click) => undo(approvals, click),
    lookBeforeDeny: (click) => lookBeforeDeny(approvals, click),
    pendingFor: (who) => pendingFor(approvals, who),
    ops: {
      ...opsUseCases({
        db: n.db,
        ledger,
        directory: n.directory,
        notices: n.notices,
        activePolicy: n.policy,
        log: n.log,
        maxAttempts: 5,
        probe: async () => options.probe?.() ?? { says: "unknown", reason: "nobody was asked" },
        read: async () => options.probe?.() ?? { says: "unknown", reason: "nobody was asked" },
        reconcile: (id) => getOperation(n.db, id),
        healthParts: async () => [{ name: "Slack", ok: true, sentence: "connected" }],
      }),
      ...options.ops,
    },
    ...options.useCases,
  };
}

const notJudged = async (): Promise<never> => {
  throw new Error("nothing is judged at a click");
};

function ledgerContext(n: Neighbours): LedgerCtx {
  return {
    db: n.db,
    ids: systemIds,
    wake: n.wake,
    notices: n.notices,
    contracts: contractBook({ keyTtlMs: 86_400_000 }),
    timing: {
      leaseMs: 30_000,
      providerTimeoutMs: 10_000,
      sendMarginMs: 1_000,
      reconcileBaseMs: 2_000,
      reconcileMaxMs: 900_000,
      quarantineAfterMs: 3_600_000,
      quarantineRepostMs: 3_600_000,
      prepareGraceMs: 30_000,
    },
    hooks: { onSettled: async () => {}, runsShowing },
    seals: SEALS,
  };
}

function approvalsContext(n: Neighbours, ledger: LedgerCtx): ApprovalsContext {
  return {
    db: n.db,
    ids: systemIds,
    clock: systemClock,
    wake: n.wake,
    notices: n.notices,
    directory: n.directory,
    judge: { plan: notJudged, judge: notJudged },
    ledger,
    activePolicy: n.policy,
    hooks: { onTurnDecided: async () => {}, onSuccessor: async () => {} },
    log: n.log,
  };
}
