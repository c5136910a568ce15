/** What a wake-up leads to, and the sweeper that finds the rows whose wake-up was lost. */
import { driveRun } from "../../agent/index.js";
import { attendDue, attendOne } from "../../approvals/index.js";
import type { Db } from "../../db/connect.js";
import { drive, dueWebhooks, processWebhook } from "../../dispatch/index.js";
import { isApprovalId, isOperationId, isRunId, type OperationId } from "../../domain/ids.js";
import type { WakeKind } from "../../domain/ports/wake.js";
import type { Handlers, Schedule } from "../../jobs/index.js";
import {
  dueOperations,
  endStaleProposals,
  endStaleThaws,
  getOperation,
  sealBlocks,
  setLiftedBack,
  tellUnknownPolicy,
} from "../../ledger/index.js";
import { checkTrips, type OpsContext, showSwitches } from "../../ops/index.js";
import {
  reconcileDue,
  reconcileOne,
  remindForgotten,
  repostQuarantined,
  sendIfAuthorised,
  sweepOrphans,
} from "../../reconcile/index.js";
import { dueRuns, makeForgottenRunsDue } from "../../runs/index.js";
import {
  dueArrivals,
  dueCards,
  dueOutbox,
  followWorld,
  makeForgottenPostsDue,
  processInbox,
  pruneSlack,
  refreshHomes,
  renderCard,
  type SlackContext,
  sendOutbox,
  showUnshown,
} from "../../slack/index.js";
import type { Metrics } from "../../telemetry/index.js";
import { tellChainHead } from "./chain-head.js";
import type { Contexts } from "./contexts.js";

const SWEEP_EVERY_MS = 1_000;
const ATTEND_EVERY_MS = 2_000;
const SEAL_EVERY_MS = 30_000;
const PRUNE_EVERY_MS = 3_600_000;
const TRIPS_EVERY_MS = 5_000;
const SECOND_PERSON_EVERY_MS = 5_000;
/** The books are compared once in so many passes of the reconciler: every five minutes at its usual pace. */
const RECONCILE_PASSES_PER_SWEEP = 20;
const HOMES_EVERY_MS = 1_500;
/** A card that waits shows within about this time that its order or balance has changed. */
const WORLD_EVERY_MS = 5_000;
const CHAIN_HEAD_EVERY_MS = 600_000;
/** Rows of one kind that one pass of the sweeper wakes. */
const SWEEP_LIMIT = 200;
const RECONCILE_LIMIT = 200;
/** A row that was woken is not woken again by this process before this long: its job may still wait. */
const WOKEN_MS = 3_000;

export interface HandlerParts {
  contexts: Contexts;
  ops: OpsContext;
  metrics: Metrics;
  slack: SlackContext;
  ticks: () => number;
}

/** One function for each kind of wake-up. Ids that name nothing are left alone. */
export function handlers({ contexts, slack, metrics }: HandlerParts): Handlers {
  return {
    run: async (id) => {
      if (!isRunId(id)) return;
      const driven = await driveRun(contexts.agent, id);
      if (driven.outcome === "ended") metrics.runEnded(driven.state);
    },
    operation: async (id) => {
      if (isOperationId(id)) await lookAt(contexts, id);
    },
    webhook: (id) => processWebhook(contexts.dispatch, id),
    approval: async (id) => {
      if (isApprovalId(id)) await attendOne(contexts.approvals, id);
    },
    inbox: (id) => processInbox(slack, id),
    outbox: (id) => sendOutbox(slack, id),
    card: (id) => renderCard(slack, id),
  };
}

/** Whatever an operation needs now, by its state. */
async function lookAt(contexts: Contexts, id: OperationId): Promise<void> {
  const { dispatch, reconcile } = contexts;
  const operation = await getOperation(dispatch.db, id);
  if (operation === null) {
    dispatch.log.warn({ operation: id }, "a wake-up names an operation that does not exist");
    return;
  }
  switch (operation.status) {
    case "PREPARED":
      await drive(dispatch, id);
      return;
    case "DISPATCHED":
    case "OUTCOME_UNKNOWN":
    case "RECONCILING":
      await reconcileOne(reconcile, id, "due");
      return;
    case "QUARANTINED": {
      if (await sendIfAuthorised(reconcile, id)) return;
      if ((await reconcileOne(reconcile, id, "due")) === null) await repostQuarantined(reconcile, id);
      return;
    }
    case "AWAITING_APPROVAL":
    case "CONFIRMED":
    case "REJECTED":
    case "DENIED":
    case "EXPIRED":
    case "VOIDED":
    case "REVERSED":
      return;
  }
}

/** The worker's timers. */
export function schedules(parts: HandlerParts, reconcileEveryMs: number): Schedule[] {
  const { contexts, slack } = parts;
  const { db } = contexts.dispatch;
  const sweep = sweeper(parts);
  return [
    {
      name: "sweep",
      everyMs: SWEEP_EVERY_MS,
      pass: async () => {
        await sweep("run", await dueRuns(db, SWEEP_LIMIT));
        await sweep("operation", await preparedAndDue(db));
        await sweep("webhook", await dueWebhooks(db, { limit: SWEEP_LIMIT }));
        await sweep("inbox", await dueArrivals(slack, SWEEP_LIMIT));
        await sweep("outbox", await dueOutbox(slack, SWEEP_LIMIT));
        await sweep("card", await dueCards(slack, SWEEP_LIMIT));
      },
    },
    {
      name: "reconcile",
      everyMs: reconcileEveryMs,
      pass: async () => {
        await remindForgotten(contexts.reconcile, { limit: SWEEP_LIMIT });
        const runs = await makeForgottenRunsDue(db, SWEEP_LIMIT);
        if (runs.length > 0)
          contexts.dispatch.log.error(
            { runs },
            "when these runs are due was taken away in the database; they are due now",
          );
        await reconcileDue(contexts.reconcile, { limit: RECONCILE_LIMIT });
      },
    },
    {
      name: "approvals",
      everyMs: ATTEND_EVERY_MS,
      pass: async () => {
        await attendDue(contexts.approvals, { limit: SWEEP_LIMIT });
      },
    },
    {
      name: "trips",
      everyMs: TRIPS_EVERY_MS,
      pass: async () => {
        await setLiftedBack(contexts.dispatch);
        await checkTrips(parts.ops);
        await showSwitches(parts.ops);
        await tellUnknownPolicy(contexts.dispatch);
      },
    },
    {
      name: "second person",
      everyMs: SECOND_PERSON_EVERY_MS,
      pass: async () => {
        await endStaleProposals(contexts.dispatch, { limit: SWEEP_LIMIT });
        await endStaleThaws(contexts.dispatch);
      },
    },
    {
      name: "orphans",
      everyMs: reconcileEveryMs * RECONCILE_PASSES_PER_SWEEP,
      pass: async () => {
        const { read, broken } = await sweepOrphans(contexts.reconcile);
        parts.metrics.booksCompared(read && broken === 0 ? "read" : "unread");
      },
    },
    {
      name: "homes",
      everyMs: HOMES_EVERY_MS,
      pass: async () => {
        await refreshHomes(slack);
      },
    },
    {
      name: "cards' world",
      everyMs: WORLD_EVERY_MS,
      pass: async () => {
        await followWorld(slack);
        await showUnshown(slack, contexts.dispatch.notices, SWEEP_LIMIT);
      },
    },
    {
      name: "chain head",
      everyMs: CHAIN_HEAD_EVERY_MS,
      pass: async () => {
        await tellChainHead(contexts.dispatch);
      },
    },
    {
      name: "prune",
      everyMs: PRUNE_EVERY_MS,
      pass: async () => {
        while ((await pruneSlack(slack)) > 0);
        await makeForgottenPostsDue(slack);
      },
    },
    {
      name: "seal",
      everyMs: SEAL_EVERY_MS,
      pass: async () => {
        await sealBlocks(db);
      },
    },
  ];
}

async function preparedAndDue(db: Db): Promise<readonly string[]> {
  return (await dueOperations(db, { limit: SWEEP_LIMIT })).map((due) => due.id);
}

/** Wakes rows, each at most once in a while. */
function sweeper({
  contexts,
  ticks,
}: HandlerParts): (kind: WakeKind, ids: readonly string[]) => Promise<void> {
  const woken = new Map<string, number>();
  return async (kind, ids) => {
    const now = ticks();
    for (const [key, at] of woken) if (now - at > WOKEN_MS) woken.delete(key);
    for (const id of ids) {
      const key = `${kind}:${id}`;
      if (woken.has(key)) continue;
      woken.set(key, now);
      await contexts.dispatch.wake(kind, id);
    }
  };
}
