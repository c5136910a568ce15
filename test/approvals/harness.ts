/**
 * Approvals on a real database: shop by import, policy by its room, turns prepared by the ledger. Only what lies outside the
 * program is played: people (the directory's port), wake-ups and notices (recorded).
 */

import { systemClock, systemIds } from "../../src/app/system.js";
import {
  type ApprovalsContext,
  type DecideClick,
  type DecideOutcome,
  decide,
  type HeldTurn,
  releaseTurn,
  request,
} from "../../src/approvals/index.js";
import type { Db, Tx } from "../../src/db/connect.js";
import type { Approval } from "../../src/domain/approval.js";
import { contractBook } from "../../src/domain/contracts.js";
import type { ApprovalId, CallId, OperationId, RunId, TicketId, TurnId } from "../../src/domain/ids.js";
import type { Operation } from "../../src/domain/operation.js";
import type { Person, PersonReading } from "../../src/domain/ports/directory.js";
import type {
  ApproversMessage,
  CardSubject,
  OpsMessage,
  ThreadMessage,
} from "../../src/domain/ports/notices.js";
import type { Seals } from "../../src/domain/seals.js";
import * as ledger from "../../src/ledger/index.js";
import { activatePolicy, activePolicy, makeJudge, readPolicyText } from "../../src/policy/index.js";
import { followSuccessor, runsShowing } from "../../src/runs/index.js";
import { importShop } from "../../src/shop/index.js";
import { SEALS } from "../support/ledger-world.js";

export const POLICY = `
version: 1
kinds:
  refund:
    orderStatuses: [delivered, cancelled]
    windowDays: 3650
    auto:  { GBP: 5000, USD: 5000 }
    never: { GBP: 200000, USD: 200000 }
    approval:
      - { upTo: { GBP: 50000, USD: 50000 }, role: supervisor, approvers: 1 }
      - { upTo: { GBP: 200000, USD: 200000 }, role: finance, approvers: 2 }
    confirmAmountAbove: { GBP: 100000 }
    totals: []
  cancel_order: { orderStatuses: [placed, packed], auto: false, approval: [{ role: supervisor, approvers: 1 }] }
  cancel_subscription: { auto: false, approval: [{ role: supervisor, approvers: 1 }] }
approvals: { selfApproval: false, expireAfterMinutes: 1440, remindAfterMinutes: [30, 240], escalateTo: [finance, oncall] }
roles:
  supervisor: { users: [U_SUP1, U_SUP2], limit: { GBP: 50000, USD: 50000 } }
  finance: { users: [U_FIN1, U_FIN2] }
  oncall: { users: [U_ONC1, U_ONC2] }
`;

/** People as Slack would describe them now; tests change them between card, click and dispatch. */
export class People {
  readonly all = new Map<string, Partial<Person> & { roles: string[] }>([
    ["U_AGENT", { roles: [] }],
    ["U_OTHER", { roles: [] }],
    ["U_SUP1", { roles: ["supervisor"] }],
    ["U_SUP2", { roles: ["supervisor"] }],
    ["U_FIN1", { roles: ["finance"] }],
    ["U_FIN2", { roles: ["finance"] }],
    ["U_ONC1", { roles: ["oncall"] }],
    ["U_ONC2", { roles: ["oncall"] }],
  ]);
  /** Slack does not answer. */
  away = false;
  reads = 0;
  /** Called before each reading is answered: where a test changes the world in between. */
  beforeAnswer: ((userId: string) => Promise<void>) | null = null;

  async person(userId: string): Promise<PersonReading> {
    this.reads += 1;
    await this.beforeAnswer?.(userId);
    const known = this.all.get(userId);
    if (this.away || known === undefined) return { ok: false, reason: "Slack did not answer" };
    return {
      ok: true,
      person: {
        userId,
        ids: [userId],
        personKey: `person:${userId}`,
        teamId: "T_HOME",
        displayName: userId,
        standing: "member",
        rolesUnreadable: [],
        roleEvidence: Object.fromEntries(known.roles.map((role) => [role, "list"])),
        fetchedAt: systemClock.now(),
        ...known,
      },
    };
  }

  async members(role: string): Promise<{ ok: true; userIds: string[] } | { ok: false; reason: string }> {
    if (this.away) return { ok: false, reason: "Slack did not answer" };
    return {
      ok: true,
      userIds: [...this.all].filter(([, { roles }]) => roles.includes(role)).map(([id]) => id),
    };
  }
}

/** What people would have been shown. */
export class Shown {
  readonly touched: CardSubject[] = [];
  /** Cards that are rendered again where they are there. */
  readonly followed: CardSubject[] = [];
  /** Switches whose turning the cards were told of. */
  readonly switched: string[] = [];
  readonly thread: { ticketId: string; key: string; message: ThreadMessage }[] = [];
  readonly ops: { key: string; message: OpsMessage }[] = [];
  readonly approvers: { approvalId: string; key: string; message: ApproversMessage }[] = [];
  readonly woken: { kind: string; id: string }[] = [];
  readonly decidedTurns: TurnId[] = [];
  readonly successors: { from: OperationId; to: OperationId }[] = [];
}

export interface Write {
  readonly order: string;
  readonly amount: bigint;
  readonly kind?: "refund" | "cancel_order";
}

export interface Held {
  readonly runId: RunId;
  readonly turnId: TurnId;
  readonly ticketId: TicketId;
  readonly calls: readonly { callId: CallId; operationId?: OperationId; proposal?: ledger.Proposal }[];
  readonly approvals: readonly Approval[];
  readonly outcomes: readonly ledger.PerCall[];
}

export interface Harness {
  readonly db: Db;
  readonly ctx: ApprovalsContext;
  readonly people: People;
  readonly shown: Shown;
  policy(text: string): Promise<void>;
  /** Imports one order, or changes it as the shop would. */
  order(order: OrderSpec): Promise<void>;
  /** A ticket with a run, bound to the customer and confirmed unless said otherwise. */
  ticket(spec?: {
    customer?: string;
    filers?: readonly string[];
    confirmed?: boolean;
  }): Promise<{ runId: RunId; ticketId: TicketId }>;
  /** Prepares one turn of these writes, as the loop would. */
  turn(run: { runId: RunId; ticketId: TicketId }, writes: readonly Write[]): Promise<Held>;
  click(
    userId: string,
    approval: Approval | ApprovalId,
    verdict?: "approve" | "deny",
    more?: Partial<DecideClick>,
  ): Promise<DecideOutcome>;
  release(held: Held): ReturnType<typeof releaseTurn>;
  /** A context of a second process on the same database. */
  elsewhere(db: Db): ApprovalsContext;
}

export interface OrderSpec {
  readonly ref: string;
  readonly customer?: string;
  readonly status?: string;
  readonly currency?: string;
  readonly captured: number;
  readonly paymentIntent?: string;
}

const MINUTE_MS = 60_000;

/** `seals`: of a process that has a secret of its own. */
export async function harness(db: Db, seals: Seals = SEALS): Promise<Harness> {
  const people = new People();
  const shown = new Shown();
  const contextOn = (on: Db): ApprovalsContext => context(on, people, shown, seals);
  const ctx = contextOn(db);
  const world: Harness = {
    db,
    ctx,
    people,
    shown,
    policy: async (text) => {
      await activatePolicy(db, readPolicyText(text, "policy.yaml"));
    },
    order: (spec) => importOrder(db, spec),
    ticket: (spec) => fileTicket(db, spec ?? {}),
    turn: (run, writes) => prepare(ctx, run, writes),
    click: (userId, approval, verdict, more) => {
      const known = typeof approval === "string" ? null : approval;
      return decide(ctx, {
        approvalId: known?.id ?? (approval as ApprovalId),
        cardVersion: known?.cardVersion ?? 1,
        userId,
        verdict: verdict ?? "approve",
        ...more,
      });
    },
    release: (held) => releaseTurn(ctx, { runId: held.runId, turnId: held.turnId, calls: turnCalls(held) }),
    elsewhere: contextOn,
  };
  await world.policy(POLICY);
  return world;
}

export function turnCalls(held: Held): HeldTurn["calls"] {
  return held.calls.map(({ callId, operationId, proposal }) => {
    if (operationId !== undefined) return { callId, operationId };
    if (proposal === undefined) throw new Error("a call has neither operation nor proposal");
    return { callId, proposal };
  });
}

function context(db: Db, people: People, shown: Shown, seals: Seals): ApprovalsContext {
  const record =
    <T>(list: T[]) =>
    async (tx: Tx, item: T): Promise<void> => {
      tx.afterCommit(() => void list.push(item));
    };
  const notices = {
    touch: record(shown.touched),
    follow: record(shown.followed),
    repost: record(shown.touched),
    switchTurned: record<string>(shown.switched),
    thread: record(shown.thread),
    ops: record(shown.ops),
    approvers: record(shown.approvers),
  };
  const wake = async (kind: string, id: string): Promise<void> => {
    shown.woken.push({ kind, id });
  };
  return {
    db,
    ids: systemIds,
    clock: systemClock,
    wake,
    notices,
    directory: people,
    judge: makeJudge(),
    activePolicy: async (on) => (await activePolicy(on)).policy,
    hooks: {
      onTurnDecided: async (tx, { turnId }) => tx.afterCommit(() => void shown.decidedTurns.push(turnId)),
      onSuccessor: async (tx, change) => {
        await followSuccessor(tx, change);
        tx.afterCommit(() => void shown.successors.push(change));
      },
    },
    log: { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} },
    ledger: {
      db,
      ids: systemIds,
      wake,
      notices,
      contracts: contractBook({ keyTtlMs: 24 * 60 * MINUTE_MS }),
      timing: {
        leaseMs: 30_000,
        providerTimeoutMs: 10_000,
        sendMarginMs: 2_000,
        reconcileBaseMs: 2_000,
        reconcileMaxMs: 15 * MINUTE_MS,
        quarantineAfterMs: 60 * MINUTE_MS,
        quarantineRepostMs: 60 * MINUTE_MS,
        prepareGraceMs: 2_000,
      },
      hooks: { onSettled: async () => {}, runsShowing },
      seals,
    },
  };
}

async function importOrder(db: Db, spec: OrderSpec): Promise<void> {
  const customer = spec.customer ?? "CUS-7";
  const now = systemClock.now().toISOString();
  const status = spec.status ?? "delivered";
  await importShop(
    { db, ids: systemIds, onBelowReserved: async () => {} },
    {
      content: {
        customers: [
          { ref: customer, name: `Name of ${customer}`, email: `${customer.toLowerCase()}@shop.example` },
        ],
        orders: [
          {
            ref: spec.ref,
            customer,
            status,
            currency: spec.currency ?? "GBP",
            placedAt: now,
            ...(status === "delivered" ? { deliveredAt: now } : {}),
            items: [
              { ref: `${spec.ref}-1`, sku: "SKU", name: "Thing", quantity: 1, unitAmount: spec.captured },
            ],
            payment: { paymentIntent: spec.paymentIntent ?? `pi_${spec.ref}`, captured: spec.captured },
          },
        ],
      },
    },
  );
}

async function fileTicket(
  db: Db,
  spec: { customer?: string; filers?: readonly string[]; confirmed?: boolean },
): Promise<{ runId: RunId; ticketId: TicketId }> {
  const ticketId = systemIds.next("tkt_");
  const runId = systemIds.next("run_");
  const filers = [...(spec.filers ?? ["U_AGENT"])];
  await db.sql(
    undefined,
    `INSERT INTO tickets (id, source, filer, filers, text, text_hash, customer_id, binding, dedupe_key)
     SELECT $1, 'seed', $2, $3, 'please', 'hash', c.id, $4, $1 FROM customers c WHERE c.ref = $5`,
    [
      ticketId,
      filers[0],
      filers,
      spec.confirmed === false ? "unconfirmed" : "confirmed",
      spec.customer ?? "CUS-7",
    ],
  );
  await db.sql(
    undefined,
    `INSERT INTO runs (id, ticket_id, state, planner, steps_max, deadline_ms) VALUES ($1, $2, 'running', 'scripted', 12, 600000)`,
    [runId, ticketId],
  );
  return { runId, ticketId };
}

async function prepare(
  ctx: ApprovalsContext,
  run: { runId: RunId; ticketId: TicketId },
  writes: readonly Write[],
): Promise<Held> {
  const { runId, ticketId } = run;
  const turnId = systemIds.next("turn_") as TurnId;
  const [ticket] = await ctx.db.sql<{ filers: string[]; customer: string; binding: string }>(
    undefined,
    `SELECT t.filers, c.ref AS customer, t.binding FROM tickets t JOIN customers c ON c.id = t.customer_id WHERE t.id = $1`,
    [ticketId],
  );
  if (ticket === undefined) throw new Error("no ticket");
  await ctx.db.sql(
    undefined,
    `INSERT INTO turns (id, run_id, seq, state, content)
     SELECT $1, $2, coalesce(max(seq), 0) + 1, 'recorded', '[]' FROM turns WHERE run_id = $2`,
    [turnId, runId],
  );
  const proposals = await Promise.all(
    writes.map((write) => proposalOf(ctx.db, write, { ...run, ...ticket })),
  );
  for (const [position, { callId }] of proposals.entries()) {
    await ctx.db.sql(
      undefined,
      `INSERT INTO tool_calls (id, run_id, turn_id, position, tool_use_id, name, input, state)
       VALUES ($1, $2, $3, $4, $1, 'issue_refund', '{}', 'proposed')`,
      [callId, runId, turnId, position],
    );
  }
  const approvals: Approval[] = [];
  const outcomes = await ctx.db.tx((tx) => {
    approvals.length = 0;
    return ledger.prepareTurn(tx, ctx.ledger, {
      calls: proposals.map((proposal) => ({ callId: proposal.callId, proposal })),
      judge: ctx.judge,
      onHold: async (on, held) => {
        approvals.push(
          await request(on, ctx, {
            operation: held.operation,
            judgement: held.judgement,
            runId,
            turnId,
            ticketId,
          }),
        );
      },
    });
  });
  const calls = outcomes.map((outcome) => {
    const proposal = proposals.find((each) => each.callId === outcome.callId);
    const operation: Operation | null = "operation" in outcome ? outcome.operation : null;
    return operation === null || outcome.outcome === "ready"
      ? { callId: outcome.callId, ...(proposal === undefined ? {} : { proposal }) }
      : { callId: outcome.callId, operationId: operation.id };
  });
  for (const call of calls) {
    await ctx.db.sql(undefined, "UPDATE tool_calls SET operation_id = $2, state = 'held' WHERE id = $1", [
      call.callId,
      "operationId" in call ? call.operationId : null,
    ]);
  }
  return { runId, turnId, ticketId, calls, approvals, outcomes };
}

async function proposalOf(
  db: Db,
  write: Write,
  of: { runId: RunId; ticketId: TicketId; filers: string[]; customer: string; binding: string },
): Promise<ledger.Proposal> {
  const [order] = await db.sql<{ currency: string; intent: string | null }>(
    undefined,
    `SELECT o.currency, p.payment_intent AS intent FROM orders o LEFT JOIN payments p ON p.order_id = o.id WHERE o.ref = $1`,
    [write.order],
  );
  if (order === undefined) throw new Error(`no order ${write.order}`);
  const kind = write.kind ?? "refund";
  return {
    callId: systemIds.next("call_") as CallId,
    intent: {
      kind,
      customerRef: of.customer,
      orderRef: write.order,
      subscriptionRef: null,
      amountMinor: write.amount,
      currency: order.currency,
      atPeriodEnd: null,
      occurrence: 1,
    },
    landing: { paymentIntent: kind === "refund" ? order.intent : null, providerSubscription: null },
    itemRefs: [],
    refundScope: kind === "refund" ? "amount" : null,
    reason: "",
    runId: of.runId,
    ticketId: of.ticketId,
    filers: of.filers,
    bindingConfirmed: of.binding === "confirmed",
  };
}
