/**
 * What the agent needs of the rooms it drives, as functions that `app` composes. Shapes only: the meaning of each answer is
 * the ledger's and the approvals' own.
 */
import type { AskedTurn, ReadPeople, ReleaseOutcome } from "../approvals/index.js";
import type { CallId, OperationId, RunId, TicketId, TurnId } from "../domain/ids.js";
import type { Actor, Operation, OperationKind } from "../domain/operation.js";
import type { Db, Tx } from "../domain/ports/database.js";
import type { Logger } from "../domain/ports/logger.js";
import type { Claim, Proposal } from "../ledger/index.js";
import type { RunsCtx } from "../runs/index.js";
import type { Planner, PlannerSettings } from "./planner.js";

/** What became of one write of a turn, as far as the agent needs it. */
export type PerCall =
  /** Reserved and committed; may be dispatched. With a claim it is for who prepared it to send, and for nobody else. */
  | { callId: CallId; outcome: "prepared"; operation: Operation; claim: Claim | null }
  | { callId: CallId; outcome: "held"; operation: Operation }
  /** Allowed, but a sibling is held: nothing reserved yet. */
  | { callId: CallId; outcome: "ready" }
  /** The same intent exists and may have, or had, an effect: this run waits with it, or its stored result is told. */
  | { callId: CallId; outcome: "same"; operation: Operation }
  /** Denied (or refused by the provider) before in this ticket. */
  | { callId: CallId; outcome: "denied_before"; operation: Operation }
  | { callId: CallId; outcome: "refused"; code: string; sentence: string }
  | { callId: CallId; outcome: "insufficient"; leftMinor: bigint; currency: string }
  | { callId: CallId; outcome: "conflict"; sentence: string }
  /** Held before and ended without an effect (denied, expired, voided) while its turn waited. */
  | { callId: CallId; outcome: "ended"; operation: Operation };

export type TurnRelease = ReleaseOutcome<PerCall>;

export type { Proposal } from "../ledger/index.js";

/** The gate between a turn and its effects. */
export interface TurnGate {
  /**
   * `ledger.prepareTurn` with the judge, and `approvals.request` for what is held. One transaction, the caller's. `sendNext`:
   * what needs nobody's approval is claimed in it too, for the caller to `send` as soon as it has committed.
   */
  prepare(
    tx: Tx,
    turn: {
      runId: RunId;
      turnId: TurnId;
      ticketId: TicketId;
      proposals: readonly Proposal[];
      sendNext: boolean;
    },
  ): Promise<readonly PerCall[]>;
  /** `approvals.releaseTurn`: idempotent, so that it may be repeated after a crash. `calls` are all writes of the turn in its order. */
  release(
    turn: AskedTurn,
    more: {
      /** Who was read just now. */
      people?: ReadPeople | null;
      /** The transaction to join: that of the vote. */
      join?: Tx;
      /** The agent's own rows about the release, in its transaction and last in it. */
      onReleased: (tx: Tx, calls: readonly PerCall[]) => Promise<void>;
    },
  ): Promise<TurnRelease>;
  /**
   * `approvals.bindingWasConfirmed`: what the turn held only because nobody had confirmed the customer is voided, and returned
   * so that it is proposed again. One transaction, the caller's.
   */
  reconsider(tx: Tx, turn: { turnId: TurnId }): Promise<readonly OperationId[]>;
  /** `dispatch.drive`: claim, send, settle. Returns the operation as it then stands; never throws for an outcome. */
  drive(operationId: OperationId): Promise<Operation>;
  /** `dispatch.sendClaimed`: the same for what was claimed with its turn. */
  send(claim: Claim): Promise<Operation>;
  operation(db: Db | Tx, operationId: OperationId): Promise<Operation | null>;
  /** Operations that may have, or had, an effect on this order, oldest first. */
  liveOn(db: Db | Tx, target: { kind: OperationKind; orderRef: string }): Promise<readonly Operation[]>;
  /** The run ends early: what was never sent goes to the oldest waiter or is voided; what was sent goes on. */
  abandon(tx: Tx, run: { runId: RunId; actor: Actor }): Promise<void>;
}

export interface OrderFacts {
  ref: string;
  customerRef: string;
  status: string;
  currency: string;
  placedAt: Date;
  deliveredAt: Date | null;
  cancelledAt: Date | null;
  shippingMinor: bigint;
  items: readonly { ref: string; sku: string; name: string; quantity: number; unitMinor: bigint }[];
  payment: {
    paymentIntent: string;
    captured: bigint;
    reserved: bigint;
    refunded: bigint;
    refundedElsewhere: bigint;
    /** The provider shows a refund in this currency, which cannot be counted in the order's. */
    otherCurrency: string | null;
    /** What is left; negative after a correction below what was spent. */
    refundable: bigint;
  } | null;
  shipments: readonly { carrier: string; tracking: string; status: string; updatedAt: Date }[];
}

export interface SubscriptionFacts {
  ref: string;
  customerRef: string;
  plan: string;
  status: string;
  providerRef: string;
  currentPeriodEnd: Date | null;
  cancelAtPeriodEnd: boolean;
}

export interface CustomerFacts {
  id: string;
  ref: string;
  name: string;
  email: string;
}

/** The shop, read only. */
export interface ShopReads {
  order(db: Db | Tx, ref: string): Promise<OrderFacts | null>;
  subscription(db: Db | Tx, ref: string): Promise<SubscriptionFacts | null>;
  customer(db: Db | Tx, customerId: string): Promise<CustomerFacts | null>;
  /** Part of a name, an e-mail or a reference; best first. */
  searchCustomers(db: Db | Tx, query: string, limit: number): Promise<readonly CustomerFacts[]>;
  ordersOf(
    db: Db | Tx,
    customerId: string,
    limit: number,
  ): Promise<readonly { ref: string; status: string; placedAt: Date }[]>;
  subscriptionsOf(db: Db | Tx, customerId: string): Promise<readonly SubscriptionFacts[]>;
  searchHelp(
    db: Db | Tx,
    question: string,
    limit: number,
  ): Promise<readonly { slug: string; title: string; body: string }[]>;
}

export interface AgentCtx extends RunsCtx {
  planner: Planner;
  settings: PlannerSettings;
  gate: TurnGate;
  shop: ShopReads;
  log: Logger;
  /** The model asked for what authority forbids: another customer's order or subscription, or what the policy refuses. */
  forbidden(what: "scope" | "policy"): void;
  /** Names this process in leases. */
  worker: string;
  leaseMs: number;
  /**
   * How long a run that was bound by its text waits for its filer's confirmation before it asks a supervisor instead,
   * milliseconds.
   */
  confirmGraceMs: number;
  /** The limits of the active policy as plain sentences, shown to the model as help. Nothing depends on them. */
  policyHelp(): Promise<string>;
}
