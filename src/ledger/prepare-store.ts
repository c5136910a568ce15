/** Writing what a turn decided: new rows, releases of approved ones, and the end of those that no longer fit. */
import type { Tx } from "../db/connect.js";
import { CountersignError } from "../domain/errors.js";
import type { JsonObject } from "../domain/json.js";
import type { Operation } from "../domain/operation.js";
import type { Judgement } from "../domain/ports/judge.js";
import type { RequestMaterial } from "../domain/ports/payment-provider.js";
import type { Seals } from "../domain/seals.js";
import { type Candidate, paymentOf, type Site } from "./candidate.js";
import type { LedgerCtx } from "./context.js";
import { sealAnswer } from "./decision-seals.js";
import { endWithoutEffect } from "./endings.js";
import { type FirstClaim, type Inserted, insertOperation, type NewOperation } from "./insert.js";
import { toJsonObject } from "./json.js";
import { move } from "./transition.js";
import { TurnRace } from "./turn-race.js";
import type { ClaimAtOnce } from "./types.js";

const MS_PER_MINUTE = 60_000;

export interface StoredCase {
  readonly candidate: Candidate;
  readonly site: Site;
  readonly scopes: readonly string[];
}

/** Inserts a proposal's operation, or releases a held one. The locks are held: a lost race means the same key came from elsewhere. */
export async function store(
  tx: Tx,
  ctx: LedgerCtx,
  one: StoredCase,
  judgement: Judgement,
  status: "PREPARED" | "AWAITING_APPROVAL",
  more: { readonly claim?: ClaimAtOnce | undefined; readonly audit?: JsonObject | null } = {},
): Promise<Inserted> {
  const { claim, audit = null } = more;
  const notBeforeMs =
    judgement.notBeforeMinutes === null ? null : Math.ceil(judgement.notBeforeMinutes * MS_PER_MINUTE);
  const dueMs = status === "PREPARED" ? (notBeforeMs ?? ctx.timing.prepareGraceMs) : null;
  const { candidate, site, scopes } = one;
  const { source, intent } = candidate;
  if (source.kind === "held") {
    const held = { operation: source.operation, source, judgement, audit, scopes, notBeforeMs, dueMs };
    return { operation: await release(tx, ctx.seals, held), claim: null };
  }
  const { proposal } = source;
  const payment = paymentOf(candidate, site);
  const id = ctx.ids.next("op_");
  const claimed =
    claim !== undefined && notBeforeMs === null && !ctx.contracts[intent.kind].local
      ? firstClaim(ctx, claim, { id, key: candidate.key, ...intent, ...proposal.landing })
      : null;
  const operation: NewOperation = {
    id,
    status,
    intent,
    contractVersion: ctx.contracts[intent.kind].version,
    customerId: site.customerId,
    orderId: site.order?.id ?? null,
    paymentId: payment?.id ?? null,
    paymentIntent: proposal.landing.paymentIntent,
    subscriptionId: site.subscription?.id ?? null,
    providerSubscription: proposal.landing.providerSubscription,
    itemRefs: proposal.itemRefs,
    refundScope: proposal.refundScope,
    reason: proposal.reason,
    policyHash: judgement.policyHash,
    decision: decisionJson(judgement),
    answerHash: judgement.answerHash,
    predecessorId: source.predecessorId,
    runId: proposal.runId,
    ticketId: proposal.ticketId,
    ticketTextHash: proposal.ticketTextHash ?? null,
    filers: proposal.filers,
    scopes,
    actor: `run:${proposal.runId}`,
    notBeforeMs: status === "PREPARED" ? notBeforeMs : null,
    dueMs,
  };
  const made = await insertOperation(tx, ctx.seals, operation, claimed);
  if (made === null) throw new TurnRace();
  return made;
}

const firstClaim = (ctx: LedgerCtx, claim: ClaimAtOnce, material: RequestMaterial): FirstClaim => ({
  worker: claim.worker,
  leaseMs: ctx.timing.leaseMs,
  timeoutMs: ctx.timing.providerTimeoutMs,
  attemptId: ctx.ids.next("att_"),
  request: claim.buildRequest(material),
});

async function release(
  tx: Tx,
  seals: Seals,
  parts: {
    operation: Operation;
    source: Extract<Candidate["source"], { kind: "held" }>;
    judgement: Judgement;
    /** What the log is told of the approval. */
    audit: JsonObject | null;
    scopes: readonly string[];
    notBeforeMs: number | null;
    dueMs: number | null;
  },
): Promise<Operation> {
  const { operation, source, judgement, audit } = parts;
  if (audit === null)
    throw new CountersignError("no_audit", `operation ${operation.id} has no approval to tell of`);
  const { approvalId, approvedBy } = source.approval;
  const { policyHash } = judgement;
  const { id, fingerprint } = operation;
  const released = await move(tx, {
    id: operation.id,
    from: "AWAITING_APPROVAL",
    version: operation.version,
    token: null,
    event: "release",
    actor: "system:approvals",
    data: {
      ...audit,
      policyHash: judgement.policyHash,
      answerHash: judgement.answerHash,
      rules: toJsonObject({ rules: judgement.rules })["rules"] ?? null,
      notBeforeMinutes: judgement.notBeforeMinutes,
    },
    checkBalance: true,
    patch: {
      approval: { id: approvalId, by: approvedBy },
      decision: {
        policyHash,
        json: decisionJson(judgement),
        seal: sealAnswer(seals, { id, fingerprint, policyHash, approvalId }),
      },
      scopes: parts.scopes,
      ...(parts.notBeforeMs === null ? {} : { notBeforeMs: parts.notBeforeMs }),
      ...(parts.dueMs === null ? {} : { dueMs: parts.dueMs }),
    },
  });
  if (released === null) {
    throw new CountersignError("lost_lock", `operation ${operation.id} moved although its row is locked`);
  }
  return released;
}

/** What the policy answered and why, as it is stored with the operation. */
const decisionJson = (judgement: Judgement): JsonObject =>
  toJsonObject({
    answer: judgement.answer,
    rules: judgement.rules,
    approval: judgement.approval,
    confirmAmount: judgement.confirmAmount,
    notBeforeMinutes: judgement.notBeforeMinutes,
    policyHash: judgement.policyHash,
    answerHash: judgement.answerHash,
  });

export async function voidHeld(
  tx: Tx,
  ctx: LedgerCtx,
  held: Extract<Candidate["source"], { kind: "held" }>,
  reason: { code: string; sentence: string },
): Promise<Operation> {
  const ended = await endWithoutEffect(tx, ctx, "void", {
    operationId: held.operation.id,
    actor: "system:ledger",
    code: reason.code,
    detail: reason.sentence,
    approval: { approvalId: held.approval.approvalId, votes: held.approval.votes ?? [] },
  });
  if (!ended.moved) {
    throw new CountersignError(
      "lost_lock",
      `operation ${held.operation.id} moved although its row is locked`,
    );
  }
  return ended.operation;
}
