/** The use cases that Slack's listeners call, bound to their contexts. */
import { askFurther } from "../../agent/index.js";
import { decide, lookBeforeDeny, pendingFor, readAhead, undo } from "../../approvals/index.js";
import { probe, readProvider } from "../../dispatch/index.js";
import type { PaymentProvider } from "../../domain/ports/payment-provider.js";
import { type HealthPart, type OpsContext, opsUseCases } from "../../ops/index.js";
import { reconcileOne } from "../../reconcile/index.js";
import {
  changeBinding,
  confirmBinding,
  fileTicket,
  requestCancel,
  setTicketThread,
  threadReply,
} from "../../runs/index.js";
import type { SlackUseCases } from "../../slack/index.js";
import { addCorrelation } from "../../telemetry/index.js";
import { systemClock } from "../system.js";
import { releasingAtOnce } from "./at-once.js";
import { type Contexts, ORPHAN_WINDOW_MS } from "./contexts.js";
import { providerParts } from "./health-parts.js";

export interface ProcessParts {
  payments: PaymentProvider;
  readiness: () => Promise<readonly { part: string; ok: boolean; detail: string }[]>;
  /** Whether the policy of this process's file is in force. */
  policy: () => Promise<{ readonly ok: boolean; readonly detail: string }>;
}

export function useCases(contexts: Contexts, parts: ProcessParts): SlackUseCases {
  const { runs, approvals, agent } = contexts;
  return {
    fileTicket: async (filing) => {
      const filed = await fileTicket(runs, filing);
      addCorrelation({ ticketId: filed.ticket.id });
      return filed;
    },
    setTicketThread: (thread) => runs.db.tx((tx) => setTicketThread(tx, thread)),
    threadReply: (reply) => threadReply(runs, reply),
    requestCancel: (request) => requestCancel(runs, request),
    confirmBinding: (request) => confirmBinding(runs, request),
    changeBinding: (request) => changeBinding(runs, request),
    findCustomers: (text) => runs.identify(runs.db, text),
    furtherRefund: (request) => askFurther(agent, request),
    readAhead: (userId) => readAhead(approvals, userId),
    decide: releasingAtOnce(contexts, decide),
    undo: releasingAtOnce(contexts, undo),
    lookBeforeDeny: (click) => lookBeforeDeny(approvals, click),
    pendingFor: (who) => pendingFor(approvals, who),
    ops: opsUseCases(opsContext(contexts, parts)),
  };
}

/** What on-call's use cases need. */
export function opsContext({ approvals, dispatch, reconcile }: Contexts, parts: ProcessParts): OpsContext {
  return {
    db: dispatch.db,
    ledger: dispatch,
    directory: approvals.directory,
    notices: dispatch.notices,
    activePolicy: approvals.activePolicy,
    log: dispatch.log,
    maxAttempts: reconcile.reconcile.maxAttempts,
    probe: async (operation) => (await probe(dispatch, operation)).evidence,
    read: async (operation) => (await readProvider(dispatch, operation)).evidence,
    reconcile: (operationId) => reconcileOne(reconcile, operationId, "evidence"),
    healthParts: () => healthParts(parts),
  };
}

async function healthParts(parts: ProcessParts): Promise<readonly HealthPart[]> {
  const [own, policy, provider] = await Promise.all([
    parts.readiness(),
    parts.policy(),
    providerParts(parts.payments, LOOK),
  ]);
  return [
    // The database is looked at by the use case itself.
    ...own
      .filter(({ part }) => part !== "database")
      .map(({ part, ok, detail }) => ({ name: part, ok, sentence: detail })),
    { name: "policy", ok: policy.ok, sentence: policy.detail },
    ...provider,
  ];
}

const LOOK = { clock: systemClock, windowMs: ORPHAN_WINDOW_MS };
