/** Operations in whatever state a test begins with, brought there by the ledger's own functions on real rows. */
import type { Db } from "../../src/db/connect.js";
import type { AttemptOutcome, Evidence, ProviderEffect } from "../../src/domain/evidence.js";
import type { Operation, OperationStatus } from "../../src/domain/operation.js";
import type { StoredRequest } from "../../src/domain/ports/payment-provider.js";
import type { Move } from "../../src/domain/recovery.js";
import * as ledger from "../../src/ledger/index.js";
import { makeJudge } from "../../src/policy/index.js";
import { load, oneOrder } from "../shop/shop-context.js";
import {
  effectFor,
  type LedgerWorld,
  ledgerWorld,
  OPEN_POLICY,
  putRun,
  refund,
  usePolicy,
} from "../support/ledger-world.js";

export const REQUEST: StoredRequest = {
  endpoint: "refunds.create",
  target: null,
  params: { payment_intent: "pi_1", amount: 2000 },
};

/** Everything is held for a supervisor. */
export const HOLDING_POLICY = OPEN_POLICY.replace("auto: { GBP: 100000, USD: 100000 }", "auto: false");

/** A shop with one delivered order of £100.00 and a policy that lets everything pass. */
export async function openShop(
  db: Db,
  options: { policy?: string; timing?: Partial<ledger.LedgerTiming>; content?: unknown } = {},
): Promise<LedgerWorld> {
  await load(db, options.content ?? oneOrder());
  await usePolicy(db, options.policy ?? OPEN_POLICY);
  return ledgerWorld(db, options.timing ?? {});
}

/** Decides one turn. What is held gets no approval row: that is another room's. */
export async function prepare(
  ctx: LedgerWorld,
  ...proposals: readonly ledger.Proposal[]
): Promise<ledger.PerCall[]> {
  return ctx.db.tx((tx) =>
    ledger.prepareTurn(tx, ctx, {
      calls: proposals.map((proposal) => ({ callId: proposal.callId, proposal })),
      judge: makeJudge(),
      onHold: async () => {},
    }),
  );
}

/** A prepared refund of its own run and ticket. */
export async function prepared(ctx: LedgerWorld, amountMinor = 2000n): Promise<Operation> {
  const [call] = await prepare(ctx, refund(await putRun(ctx.db), amountMinor));
  if (call?.outcome !== "prepared") throw new Error(`not prepared but ${call?.outcome}`);
  return call.operation;
}

/** A held refund; the active policy is the one that holds. */
export async function held(ctx: LedgerWorld, amountMinor = 2000n): Promise<Operation> {
  const [call] = await prepare(ctx, refund(await putRun(ctx.db), amountMinor));
  if (call?.outcome !== "held") throw new Error(`not held but ${call?.outcome}`);
  return call.operation;
}

export async function claimed(
  ctx: LedgerWorld,
  operation: Operation,
  options: { worker?: string; leaseMs?: number } = {},
): Promise<ledger.Claim> {
  const claim = await ledger.claim(ctx, {
    operation,
    worker: options.worker ?? "w1",
    request: REQUEST,
    ...(options.leaseMs === undefined ? {} : { leaseMs: options.leaseMs }),
  });
  if (!claim.claimed) throw new Error(`not claimed: ${claim.why}`);
  return claim;
}

export const outcomes = {
  committed: (operation: Operation, changes: Partial<ProviderEffect> = {}): AttemptOutcome => ({
    verdict: "committed",
    effect: effectFor(operation, changes),
    requestId: "req_1",
    replayed: false,
  }),
  unknown: (): AttemptOutcome => ({
    verdict: "unknown",
    code: "timeout",
    detail: "No answer came in time.",
    httpStatus: null,
  }),
  rejected: (code = "charge_disputed"): AttemptOutcome => ({
    verdict: "rejected",
    code,
    detail: "The payment is disputed.",
    httpStatus: 400,
  }),
  notExecuted: (retryAfterMs: number | null = null): AttemptOutcome => ({
    verdict: "not_executed",
    code: "rate_limit",
    detail: "Too busy.",
    retryAfterMs,
  }),
} as const;

export function settle(
  ctx: LedgerWorld,
  claim: ledger.Claim,
  outcome: AttemptOutcome,
): Promise<ledger.SettleResult> {
  return ledger.settle(ctx, {
    operationId: claim.operation.id,
    leaseToken: claim.leaseToken,
    attempt: claim.attempt,
    outcome,
    operation: claim.operation,
  });
}

/** Takes an open outcome, whatever its due time. */
export async function taken(ctx: LedgerWorld, operation: Operation, worker = "r1"): Promise<ledger.Taken> {
  const take = await ledger.takeForReconcile(ctx, {
    operationId: operation.id,
    worker,
    because: "evidence",
  });
  if (take === null) throw new Error(`${operation.id} could not be taken`);
  return take;
}

export const decide = (
  ctx: LedgerWorld,
  take: ledger.Taken,
  move: Exclude<Move, { do: "send_again" }>,
  evidence: Evidence = { says: "absent" },
): Promise<ledger.Reconciled> =>
  ledger.settleReconcile(ctx, {
    operationId: take.operation.id,
    leaseToken: take.leaseToken,
    evidence,
    move,
  });

/** Quarantined after its sender's lease ran out; then that sender says that nothing was executed. */
export async function parkedUnsent(ctx: LedgerWorld): Promise<Operation> {
  const claim = await claimed(ctx, await prepared(ctx), { leaseMs: 0 });
  const parked = await decide(ctx, await taken(ctx, claim.operation), {
    do: "quarantine",
    reason: "unattributed_effect",
    detail: "re_s",
  });
  if (parked.operation?.status !== "QUARANTINED") throw new Error("not parked");
  return (await settle(ctx, claim, outcomes.notExecuted())).operation;
}

/** A refund in this state, by the shortest legal path. Ends without effect come from a held one. */
export async function inState(ctx: LedgerWorld, status: OperationStatus): Promise<Operation> {
  switch (status) {
    case "AWAITING_APPROVAL": {
      await usePolicy(ctx.db, HOLDING_POLICY);
      const operation = await held(ctx);
      await usePolicy(ctx.db, OPEN_POLICY);
      return operation;
    }
    case "PREPARED":
      return prepared(ctx);
    case "DISPATCHED":
      return (await claimed(ctx, await prepared(ctx))).operation;
    case "CONFIRMED":
    case "OUTCOME_UNKNOWN":
    case "REJECTED": {
      const claim = await claimed(ctx, await prepared(ctx));
      const outcome =
        status === "CONFIRMED"
          ? outcomes.committed(claim.operation)
          : status === "REJECTED"
            ? outcomes.rejected()
            : outcomes.unknown();
      return (await settle(ctx, claim, outcome)).operation;
    }
    case "RECONCILING":
      return (await taken(ctx, await inState(ctx, "OUTCOME_UNKNOWN"))).operation;
    case "QUARANTINED": {
      const take = await taken(ctx, await inState(ctx, "OUTCOME_UNKNOWN"));
      const done = await decide(ctx, take, {
        do: "quarantine",
        reason: "unknown_too_long",
        detail: "nothing is listed",
      });
      if (done.operation === null) throw new Error("gone");
      return done.operation;
    }
    case "DENIED":
    case "EXPIRED":
    case "VOIDED": {
      const operation = await inState(ctx, "AWAITING_APPROVAL");
      const end = { DENIED: ledger.deny, EXPIRED: ledger.expire, VOIDED: ledger.voidOperation }[status];
      const ended = await ctx.db.tx((tx) =>
        end(tx, ctx, { operationId: operation.id, actor: "slack:U_SUP1", code: "test", detail: "a test" }),
      );
      if (!ended.moved) throw new Error(`not ${status}`);
      return ended.operation;
    }
    case "REVERSED": {
      const operation = await inState(ctx, "CONFIRMED");
      const reversed = await ledger.reverse(ctx, {
        operationId: operation.id,
        actor: "system:webhook",
        code: "declined",
        detail: "The bank sent it back.",
        evidence: evidenceOf(operation, "failed"),
      });
      if (!reversed.moved) throw new Error("not reversed");
      return reversed.operation;
    }
  }
}

/** A fact about the operation's effect, as a webhook brings it. */
export const evidenceOf = (operation: Operation, status: string): ledger.NewEvidence => ({
  operationId: operation.id,
  source: "webhook",
  providerRef: operation.providerRef,
  dedupeKey: `effect:${operation.providerRef ?? operation.id}:${status}:${operation.amountMinor}`,
  payload: { status },
});

export async function reread(db: Db, operation: Operation): Promise<Operation> {
  const now = await ledger.getOperation(db, operation.id);
  if (now === null) throw new Error(`${operation.id} is gone`);
  return now;
}

export interface Money {
  captured: bigint;
  reserved: bigint;
  refunded: bigint;
  elsewhere: bigint;
  counted: bigint;
}

/** The one payment's figures, and what the totals count under the whole shop. */
export async function moneyOf(db: Db): Promise<Money> {
  const [row] = await db.sql<Money>(
    undefined,
    `SELECT captured, reserved, refunded, refunded_elsewhere AS elsewhere,
            (SELECT COALESCE(sum(amount_minor), 0)::bigint FROM total_entries WHERE scope = 'shop') AS counted
     FROM payments WHERE payment_intent = 'pi_1'`,
  );
  if (row === undefined) throw new Error("no payment");
  return row;
}

/** Moves the product's clock forward, for everybody on this database. */
export async function passTime(db: Db, ms: number): Promise<void> {
  await db.sql(undefined, "UPDATE clock_offset SET offset_ms = offset_ms + $1::bigint", [ms]);
}

/** Everything recomputes: chains, rows, money. */
export async function intact(db: Db): Promise<readonly ledger.BrokenLink[]> {
  return (await ledger.verifyAudit(db)).broken;
}
