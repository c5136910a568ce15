/**
 * An operation that is confirmed on a person's word alone, held against the provider. Their reference is no known effect: it is one where
 * the provider, asked for it, shows this operation's own, or one without a mark that is what was asked for and nobody else's.
 */
import { BAD_REFERENCE, isDead, type ProviderEffect } from "../domain/evidence.js";
import type { Operation } from "../domain/operation.js";
import {
  besideWordText,
  contradict,
  noteBesideWord,
  operationByProviderRef,
  wordOf,
} from "../ledger/index.js";
import type { DispatchCtx } from "./context.js";
import { reportDuplicate } from "./duplicate.js";
import { effectEvidence } from "./effect-evidence.js";

export type Given =
  | { readonly is: "unread"; readonly reason: string }
  /** There is no such thing, or it is not this operation's. */
  | { readonly is: "nothing" | "anothers" }
  /** It is this operation's, alive or not. */
  | { readonly is: "own"; readonly effect: ProviderEffect };

/** What the provider says of the reference that a person gave. */
export async function seeGiven(ctx: DispatchCtx, operation: Operation): Promise<Given> {
  const ref = operation.providerRef ?? "";
  const reading = await ctx.provider.read(ref, { timeoutMs: ctx.timing.providerTimeoutMs });
  if (reading.read === "failed") {
    return reading.reason === BAD_REFERENCE ? { is: "nothing" } : { is: "unread", reason: reading.reason };
  }
  const effect = reading.effects.find((one) => one.ref === ref);
  if (effect === undefined) return { is: "nothing" };
  if (effect.operationId === operation.id) return { is: "own", effect };
  if (effect.operationId !== null || !isAsAsked(operation, effect)) return { is: "anothers" };
  const owner = await operationByProviderRef(ctx.db, ref);
  return owner === null || owner.id === operation.id ? { is: "own", effect } : { is: "anothers" };
}

const isAsAsked = (operation: Operation, effect: ProviderEffect): boolean =>
  effect.kind === "refund" &&
  effect.target === operation.paymentIntent &&
  effect.amountMinor === operation.amountMinor &&
  effect.currency.toUpperCase() === operation.currency.toUpperCase();

/**
 * `effect` carries the operation's id, is alive, and is not what the person named. Where that is an effect too, there are two; else the
 * case is open again, and a reconciler settles it by what the provider shows. `unread`: nobody can say yet.
 */
export async function judgeBesideWord(
  ctx: DispatchCtx,
  operation: Operation,
  effect: ProviderEffect,
  source: "webhook" | "sweep",
): Promise<"duplicate" | "reopened" | "unread"> {
  const given = await seeGiven(ctx, operation);
  if (given.is === "unread") return "unread";
  if (given.is === "own" && !isDead(given.effect)) {
    await ctx.db.tx((tx) => reportDuplicate(tx, ctx, operation, effect));
    return "duplicate";
  }
  const { moved, operation: parked } = await contradict(ctx, {
    operationId: operation.id,
    actor: source === "webhook" ? "system:webhook" : "system:reconcile",
    evidence: effectEvidence(operation.id, effect, source),
    detail: besideWordText(effect),
    word: await wordOf(ctx.db, operation.id),
  });
  if (moved) await ctx.db.tx((tx) => noteBesideWord(tx, ctx, parked, effect, source));
  return "reopened";
}
