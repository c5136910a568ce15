/**
 * The composition root: every room's context from one database, one queue, one Slack and one provider. Nothing else of the
 * program builds a context; nobody imports this but the commands.
 */
import type { AgentCtx } from "../../agent/index.js";
import type { ApprovalsContext } from "../../approvals/index.js";
import type { Config } from "../../config/index.js";
import type { Db, Tx } from "../../db/connect.js";
import type { DispatchCtx } from "../../dispatch/index.js";
import type { Operation } from "../../domain/operation.js";
import type { Directory } from "../../domain/ports/directory.js";
import type { Notices } from "../../domain/ports/notices.js";
import type { PaymentProvider, VerifyWebhook } from "../../domain/ports/payment-provider.js";
import type { Wake } from "../../domain/ports/wake.js";
import type { Seals } from "../../domain/seals.js";
import { activePolicy, makeJudge } from "../../policy/index.js";
import type { ReconcileCtx } from "../../reconcile/index.js";
import { followSuccessor, type RunsCtx, wakeRun } from "../../runs/index.js";
import { cancelOrder } from "../../shop/index.js";
import type { Metrics, RootLogger, Tracer } from "../../telemetry/index.js";
import { systemClock, systemIds } from "../system.js";
import { turnGate } from "./gate.js";
import { ledgerContext, MAX_ATTEMPTS } from "./ledger.js";
import { measuredLedger, measuredPlanner, measuredProvider } from "./measured.js";
import { choosePlanner, newRunSettings } from "./planner.js";
import { policyHelp } from "./policy-help.js";
import { identify, shopReads } from "./shop-reads.js";

/** A filer who is asked to confirm the customer answers within this, or a supervisor is asked. */
const CONFIRM_GRACE_MS = 2_500;
const RECONCILE_CONCURRENCY = 8;
export const ORPHAN_WINDOW_MS = 48 * 3_600_000;
const ORPHAN_LAG_MS = 10 * 60_000;

export interface Parts {
  config: Pick<Config, "timing" | "budgets" | "planner">;
  db: Db;
  wake: Wake;
  notices: Notices<Tx>;
  directory: Directory;
  provider: PaymentProvider;
  verifyWebhook: VerifyWebhook;
  log: RootLogger;
  metrics: Metrics;
  tracer: Tracer;
  seals: Seals;
  /** Names this process in leases. */
  worker: string;
}

export interface Contexts {
  runs: RunsCtx;
  approvals: ApprovalsContext;
  dispatch: DispatchCtx;
  reconcile: ReconcileCtx;
  agent: AgentCtx;
}

export function composeContexts(parts: Parts): Contexts {
  const { db, wake, notices, config, log } = parts;
  const chosen = choosePlanner(config);
  const planner = {
    ...chosen,
    planner: measuredPlanner(chosen.planner, chosen.settings, parts.metrics, parts.tracer),
  };
  const ledger = measuredLedger(
    ledgerContext({ db, notices, wake, timing: config.timing, seals: parts.seals }),
    parts.metrics,
  );
  const runs: RunsCtx = {
    db,
    ids: systemIds,
    notices,
    wake,
    identify,
    newRuns: newRunSettings(config),
  };
  const approvals: ApprovalsContext = {
    db,
    ids: systemIds,
    clock: systemClock,
    wake,
    notices,
    directory: parts.directory,
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
    log,
  };
  const dispatch: DispatchCtx = {
    ...ledger,
    approvals,
    provider: measuredProvider(parts.provider, parts.metrics, parts.tracer),
    verifyWebhook: parts.verifyWebhook,
    localEffect,
    log,
    worker: parts.worker,
  };
  return {
    runs,
    approvals,
    dispatch,
    reconcile: {
      ...dispatch,
      reconcile: {
        maxAttempts: MAX_ATTEMPTS,
        concurrency: RECONCILE_CONCURRENCY,
        orphanWindowMs: ORPHAN_WINDOW_MS,
        orphanLagMs: ORPHAN_LAG_MS,
      },
    },
    agent: {
      ...runs,
      planner: planner.planner,
      settings: planner.settings,
      gate: turnGate(dispatch),
      shop: shopReads,
      log,
      forbidden: (what) => parts.metrics.forbidden(what),
      worker: parts.worker,
      leaseMs: config.timing.leaseMs,
      confirmGraceMs: CONFIRM_GRACE_MS,
      policyHelp: () => policyHelp(db),
    },
  };
}

/** The only effect in our own database: cancelling an order, from a status that the policy in force allows. */
async function localEffect(
  tx: Tx,
  operation: Operation,
): Promise<{ ok: true; ref: string } | { ok: false; code: string; detail: string }> {
  if (operation.kind !== "cancel_order" || operation.orderRef === null) {
    return {
      ok: false,
      code: "no_local_effect",
      detail: `${operation.kind} is no effect of our own database`,
    };
  }
  const { policy } = await activePolicy(tx);
  const statuses = policy.kinds.cancel_order?.orderStatuses;
  return cancelOrder({
    orderRef: operation.orderRef,
    ...(statuses == null ? {} : { from: statuses }),
  })(tx);
}
