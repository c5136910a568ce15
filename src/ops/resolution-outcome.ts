/** What became of a person's decision, and when the provider's own evidence decides instead. */
import { assertNever } from "../domain/assert-never.js";
import type { Evidence } from "../domain/evidence.js";
import { amountToJson } from "../domain/money.js";
import { type Operation, stateWords } from "../domain/operation.js";
import * as ledger from "../ledger/index.js";
import type { OpsContext } from "./context.js";
import { isResolvable } from "./explain.js";
import { CARRIED_OUT_BEFORE } from "./form-text.js";
import { anothersSentence, NAME_ONE, notSafeSentence } from "./not-safe.js";
import { probeView, resolutionView } from "./resolution-view.js";
import type { ResolveOutcome, ResolveVerb } from "./types.js";

/**
 * Where the provider answers the question by itself and not as the verb would, a reconciler settles it by that evidence.
 * null: the verb goes on.
 */
export async function settledByEvidence(
  ctx: OpsContext,
  operation: Operation,
  verb: ResolveVerb,
  evidence: Evidence,
): Promise<ResolveOutcome | null> {
  const probe = probeView(evidence);
  if (evidence.says === "pending") {
    return { outcome: "not_safe", operation, probe, sentence: `${probe.sentence} Its end is awaited.` };
  }
  if (evidence.says !== "committed" && evidence.says !== "failed_at_provider") return null;
  const committed = evidence.says === "committed";
  if (committed && evidence.postcondition !== "holds") return null;
  if (verb === (committed ? "confirm" : "reject")) return null;
  await noteEvidence(ctx, operation, evidence);
  const now = (await ctx.reconcile(operation.id)) ?? (await ledger.getOperation(ctx.db, operation.id));
  if (now === null) throw new Error(`operation ${operation.id} is gone`);
  const expected = committed ? "CONFIRMED" : "REJECTED";
  if (now.status === expected) {
    return {
      outcome: "settled_by_evidence",
      operation: now,
      probe,
      sentence: `${probe.sentence} It was settled by that.`,
    };
  }
  return { outcome: "not_safe", operation: now, probe, sentence: `${probe.sentence} So this was not done.` };
}

/** What was just read is news to a quarantined operation: with it a reconciler may take it out of quarantine. */
async function noteEvidence(
  ctx: OpsContext,
  operation: Operation,
  evidence: Extract<Evidence, { effect: unknown }>,
): Promise<void> {
  const { ref, status, amountMinor, currency } = evidence.effect;
  await ctx.db.tx((tx) =>
    ledger.recordEvidence(tx, ctx.ledger, {
      operationId: operation.id,
      source: "probe",
      providerRef: ref,
      dedupeKey: `asked:${operation.id}:${operation.version}:${ref}:${status}`,
      payload: { says: evidence.says, ref, status, amount: amountToJson(amountMinor), currency },
    }),
  );
}

/** The ledger's answer as a person is told it. */
export async function told(
  ctx: OpsContext,
  result: ledger.ResolveResult,
  before: Operation,
  evidence: Evidence,
): Promise<ResolveOutcome> {
  const probe = probeView(evidence);
  switch (result.outcome) {
    case "applied":
      if (result.resolution.verb === "retry") await ctx.ledger.wake("operation", result.operation.id);
      return {
        outcome: "resolved",
        resolution: resolutionView(result.resolution),
        operation: result.operation,
        probe,
      };
    case "needs_second":
      return {
        outcome: "needs_second",
        resolution: resolutionView(result.resolution),
        probe,
        sentence: "Nothing was done yet: a second on-call person must agree.",
      };
    case "not_safe":
      if (result.code === "names_none_shown")
        return { outcome: "invalid", field: "evidence", sentence: `${probe.sentence} ${NAME_ONE}` };
      if (result.code === "named_differs")
        return {
          outcome: "invalid",
          field: "evidence",
          sentence: `${probe.sentence} ${notSafeSentence(result.code)}`,
        };
      if (result.code === "anothers_effect")
        return { outcome: "invalid", field: "evidence", sentence: anothersSentence(result.other) };
      return {
        outcome: "not_safe",
        operation: result.operation,
        probe,
        sentence: `${probe.sentence} ${notSafeSentence(result.code)}`,
      };
    case "repeated":
      return {
        outcome: "overtaken",
        operation: result.operation,
        by: result.resolution.by,
        at: result.resolution.createdAt,
        sentence: CARRIED_OUT_BEFORE,
      };
    case "overtaken": {
      const operation = result.operation ?? before;
      if (result.by !== null && isResolvable(operation.status)) {
        const sentence =
          "It was asked for already, and waits for a second person's answer on the card. Nothing was changed by you.";
        return { outcome: "not_safe", operation, probe, sentence };
      }
      return {
        outcome: "overtaken",
        operation,
        by: result.by,
        at: operation.updatedAt,
        sentence: `It is ${stateWords(operation.status)} by now. Nothing was changed by you.`,
      };
    }
    default:
      return assertNever(result);
  }
}

/** Why there is nothing to resolve. */
export function notResolvable(operation: Operation): string {
  switch (operation.status) {
    case "AWAITING_APPROVAL":
      return "It waits for an approval: approve or deny it there.";
    case "PREPARED":
      return "Nothing was sent yet, so there is nothing to resolve.";
    case "DISPATCHED":
      return "It is being sent right now. Look again in a moment.";
    default:
      return `It is ${stateWords(operation.status)}, so there is nothing to resolve.`;
  }
}
