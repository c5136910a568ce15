/** `policy check` and `policy explain`: what a file says, and what the gate would answer now. Read-only. */
import type { Db, SqlRunner } from "../db/connect.js";
import { CountersignError } from "../domain/errors.js";
import type { JsonObject } from "../domain/json.js";
import { amountToJson } from "../domain/money.js";
import type { Intent, OperationKind } from "../domain/operation.js";
import { noticePath, policyNotices } from "../domain/policy/notices.js";
import type { Judgement, JudgeSubject } from "../domain/ports/judge.js";
import { type ActivePolicy, activePolicy } from "./active-policy.js";
import { gatherFacts } from "./gather-facts.js";
import { judgementOf } from "./judge.js";
import { loadPolicyFile } from "./policy-file-watch.js";
import { PolicyFileError } from "./policy-text.js";

export interface PolicyFileNotice {
  /** From 1: of the innermost part of the place that is in the file; null: the file is empty of keys. */
  readonly line: number | null;
  readonly text: string;
}

export type PolicyCheck =
  | { readonly ok: true; readonly hash: string; readonly notices: readonly PolicyFileNotice[] }
  | { readonly ok: false; readonly error: PolicyFileError };

/** Validates a file. `notices` are what a valid file probably did not mean. */
export async function checkPolicyFile(file: string): Promise<PolicyCheck> {
  try {
    const { policy, hash, placeOf } = await loadPolicyFile(file);
    const notices = policyNotices(policy)
      .map((text) => ({ line: placeOf(noticePath(text)).line, text }))
      .sort((a, b) => (a.line ?? 0) - (b.line ?? 0));
    return { ok: true, hash, notices };
  } catch (error) {
    if (error instanceof PolicyFileError) return { ok: false, error };
    throw error;
  }
}

export interface ExplainRequest {
  readonly kind: OperationKind;
  /** Exact reference of the order, or of the subscription for `cancel_subscription`. */
  readonly ref: string;
  /** Minor units of the order's currency; 0n for kinds that move no money. */
  readonly amountMinor: bigint;
  readonly occurrence?: number;
  readonly itemRefs?: readonly string[];
  /** Slack user ids that would count as filer. */
  readonly filers?: readonly string[];
  /** Default true: as if the filer had confirmed whom the ticket is about. */
  readonly bindingConfirmed?: boolean;
  /** Default: the policy in force. */
  readonly policy?: ActivePolicy;
}

export interface Explanation {
  readonly subject: JudgeSubject;
  readonly judgement: Judgement;
}

/**
 * What the gate would answer now, and every rule that spoke. Reads without locks: another operation may come between this and
 * a real one. Throws `CountersignError('not_found')` for an unknown reference.
 */
export async function explainDecision(db: Db, request: ExplainRequest): Promise<Explanation> {
  const active = request.policy ?? (await activePolicy(db));
  const subject = await subjectOf(db, request);
  const { facts } = await gatherFacts(db, subject, active.policy.kinds[request.kind]);
  return { subject, judgement: judgementOf(subject, facts, active) };
}

/** The explanation as one JSON document; amounts are integers in minor units. */
export function explanationJson({ subject, judgement }: Explanation): JsonObject {
  const { intent } = subject;
  const { approval } = judgement;
  return {
    kind: intent.kind,
    customer: intent.customerRef,
    order: intent.orderRef,
    subscription: intent.subscriptionRef,
    amount: amountToJson(intent.amountMinor),
    currency: intent.currency,
    occurrence: intent.occurrence,
    answer: judgement.answer,
    rules: judgement.rules.map(({ rule, verdict, sentence }) => ({ rule, verdict, sentence })),
    approval:
      approval === null
        ? null
        : {
            role: approval.role,
            approvers: approval.approvers,
            line: approval.line,
            confirmAmount: approval.confirmAmount,
            selfApproval: approval.selfApproval,
            expireAfterMinutes: approval.expireAfterMinutes,
          },
    coolingOffMinutes: judgement.notBeforeMinutes ?? 0,
    policyHash: judgement.policyHash,
  };
}

interface TargetRow {
  customer_id: string;
  customer_ref: string;
  order_id: string | null;
  payment_id: string | null;
  subscription_id: string | null;
  currency: string;
}

async function subjectOf(db: SqlRunner, request: ExplainRequest): Promise<JudgeSubject> {
  const isSubscription = request.kind === "cancel_subscription";
  const [row] = await db.sql<TargetRow>(
    isSubscription ? "policy.explain-subscription" : "policy.explain-order",
    isSubscription ? SUBSCRIPTION_TARGET : ORDER_TARGET,
    [request.ref],
  );
  if (row === undefined) {
    const what = isSubscription ? "subscription" : "order";
    throw new CountersignError("not_found", `There is no ${what} ${request.ref}.`);
  }
  const intent: Intent = {
    kind: request.kind,
    customerRef: row.customer_ref,
    orderRef: isSubscription ? null : request.ref,
    subscriptionRef: isSubscription ? request.ref : null,
    amountMinor: request.amountMinor,
    currency: row.currency,
    atPeriodEnd: isSubscription ? true : null,
    occurrence: request.occurrence ?? 1,
  };
  return {
    intent,
    refundScope: request.kind === "refund" ? "amount" : null,
    itemRefs: request.itemRefs ?? [],
    filers: request.filers ?? [],
    bindingConfirmed: request.bindingConfirmed ?? true,
    customerId: row.customer_id,
    orderId: row.order_id,
    paymentId: row.payment_id,
    subscriptionId: row.subscription_id,
    operationId: null,
    predecessorId: null,
  };
}

const ORDER_TARGET = `
  SELECT o.customer_id, c.ref AS customer_ref, o.id AS order_id, p.id AS payment_id, NULL AS subscription_id,
         COALESCE(p.currency, o.currency) AS currency
  FROM orders o JOIN customers c ON c.id = o.customer_id LEFT JOIN payments p ON p.order_id = o.id WHERE o.ref = $1`;
const SUBSCRIPTION_TARGET = `
  SELECT s.customer_id, c.ref AS customer_ref, NULL AS order_id, NULL AS payment_id, s.id AS subscription_id, '' AS currency
  FROM subscriptions s JOIN customers c ON c.id = s.customer_id WHERE s.ref = $1`;
