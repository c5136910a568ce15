/** A ledger on a test's database: real policy, shop and statements; notices and wake-ups are collected instead of sent. */
import { systemIds } from "../../src/app/system.js";
import type { Db, Tx } from "../../src/db/connect.js";
import { contractBook } from "../../src/domain/contracts.js";
import type { ProviderEffect } from "../../src/domain/evidence.js";
import type { CallId, RunId, TicketId } from "../../src/domain/ids.js";
import type { Operation } from "../../src/domain/operation.js";
import type { Notices } from "../../src/domain/ports/notices.js";
import { sealsWith } from "../../src/domain/seals.js";
import type { LedgerCtx, LedgerTiming, Proposal } from "../../src/ledger/index.js";
import { activatePolicy, readPolicyText } from "../../src/policy/index.js";
import { runsShowing } from "../../src/runs/index.js";

/** What decisions are sealed with in tests. */
export const SEALS = sealsWith({ secret: "the secret of the tests", policiesTold: false });

export interface LedgerWorld extends LedgerCtx {
  readonly notes: string[];
}

const TIMING: LedgerTiming = {
  leaseMs: 30_000,
  providerTimeoutMs: 1_000,
  sendMarginMs: 100,
  reconcileBaseMs: 1,
  reconcileMaxMs: 5,
  quarantineAfterMs: 3_600_000,
  quarantineRepostMs: 3_600_000,
  prepareGraceMs: 1_000,
};

/** A context whose notices are written down as `kind:id`. */
export function ledgerWorld(db: Db, timing: Partial<LedgerTiming> = {}): LedgerWorld {
  const notes: string[] = [];
  const notices: Notices<Tx> = {
    touch: async (_tx, subject) => {
      notes.push(`touch ${subject.kind}`);
    },
    follow: async (_tx, subject) => {
      notes.push(`follow ${subject.kind}`);
    },
    repost: async (_tx, subject) => {
      notes.push(`repost ${subject.kind}`);
    },
    switchTurned: async (_tx, kind) => {
      notes.push(`switch ${kind}`);
    },
    thread: async (_tx, { message }) => {
      notes.push(`thread ${message.type}`);
    },
    ops: async (_tx, { message }) => {
      notes.push(`ops ${message.type}`);
    },
    approvers: async (_tx, { message }) => {
      notes.push(`approvers ${message.type}`);
    },
  };
  return {
    db,
    ids: systemIds,
    wake: async () => {},
    notices,
    contracts: contractBook({ keyTtlMs: 86_400_000 }),
    timing: { ...TIMING, ...timing },
    hooks: { onSettled: async () => {}, runsShowing },
    seals: SEALS,
    notes,
  };
}

/** Makes this policy text the active one. */
export async function usePolicy(db: Db, text: string): Promise<void> {
  await activatePolicy(db, readPolicyText(text, "test.yaml"));
}

/** Everything under £1,000.00 is allowed, nothing is counted. */
export const OPEN_POLICY = `
version: 1
kinds:
  refund:
    orderStatuses: [delivered]
    windowDays: 3000
    auto: { GBP: 100000, USD: 100000 }
    never: { GBP: 200000, USD: 200000 }
    approval: [{ role: supervisor, approvers: 1 }]
    totals: []
    coolingOffMinutes: {}
  cancel_order: { orderStatuses: [placed, packed], auto: true, approval: [{ role: supervisor, approvers: 1 }] }
  cancel_subscription: { auto: true, approval: [{ role: supervisor, approvers: 1 }] }
roles:
  supervisor: { users: [U_SUP1] }
  oncall: { users: [U_ONC1] }
`;

/** A ticket with a queued run. */
export async function putRun(db: Db, filer = "U_AGENT"): Promise<{ runId: RunId; ticketId: TicketId }> {
  const ticketId = systemIds.next("tkt_");
  const runId = systemIds.next("run_");
  await db.sql(
    undefined,
    `INSERT INTO tickets (id, source, filer, filers, text, text_hash, dedupe_key) VALUES ($1, 'cli', $2, $3, 'text', 'hash', $1)`,
    [ticketId, filer, [filer]],
  );
  await db.sql(
    undefined,
    "INSERT INTO runs (id, ticket_id, state, planner, steps_max, deadline_ms) VALUES ($1, $2, 'waiting', 'scripted', 12, 60000)",
    [runId, ticketId],
  );
  return { runId, ticketId };
}

/** A refund of `amountMinor` on ORD-1 of CUS-1. */
export function refund(
  owner: { runId: RunId; ticketId: TicketId },
  amountMinor: bigint,
  changes: Partial<Proposal["intent"]> = {},
): Proposal {
  return {
    callId: systemIds.next("call_") as CallId,
    intent: {
      kind: "refund",
      customerRef: "CUS-1",
      orderRef: "ORD-1",
      subscriptionRef: null,
      amountMinor,
      currency: "GBP",
      atPeriodEnd: null,
      occurrence: 1,
      ...changes,
    },
    landing: { paymentIntent: "pi_1", providerSubscription: null },
    itemRefs: [],
    refundScope: "amount",
    reason: "it arrived broken",
    ...owner,
    filers: ["U_AGENT"],
    bindingConfirmed: true,
  };
}

/** The effect that the provider would show for an operation. */
export const effectFor = (operation: Operation, changes: Partial<ProviderEffect> = {}): ProviderEffect => ({
  ref: `re_${operation.id.slice(3, 13)}`,
  kind: "refund",
  target: operation.paymentIntent ?? "",
  amountMinor: operation.amountMinor,
  currency: operation.currency,
  status: "succeeded",
  pendingReason: null,
  failureReason: null,
  operationId: operation.id,
  createdAt: new Date("2026-11-10T10:00:00Z"),
  ...changes,
});

/** A refund on `pi_1` that the provider lists and nobody here asked for. */
export const foreignRefund = (
  amountMinor: bigint,
  ref: string,
  changes: Partial<ProviderEffect> = {},
): ProviderEffect => ({
  ref,
  kind: "refund",
  target: "pi_1",
  amountMinor,
  currency: "GBP",
  status: "succeeded",
  pendingReason: null,
  failureReason: null,
  operationId: null,
  createdAt: new Date("2026-11-10T10:00:00Z"),
  ...changes,
});
