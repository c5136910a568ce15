/**
 * An operation that is confirmed on a person's word alone, held against the provider. Their reference is no known effect: it is one where
 * the provider, asked for it, shows this operation's own, or one without a mark that is what was asked for and nobody else's.
 */
import { differsFromAsked, placed } from "../domain/as-asked.js";
import { differsWords } from "../domain/effect-words.js";
import { BAD_REFERENCE, isDead, type ProviderEffect } from "../domain/evidence.js";
import { judgeEffect } from "../domain/judge-listing.js";
import type { Operation } from "../domain/operation.js";
import {
  besideWordText,
  contradict,
  listingContext,
  operationByProviderRef,
  wordOf,
} from "../ledger/index.js";
import type { DispatchCtx } from "./context.js";
import { reportDuplicate } from "./duplicate.js";
import { effectEvidence } from "./effect-evidence.js";

export type Given =
  | { readonly is: "unread"; readonly reason: string }
  /** There is no such thing, it is not this operation's, or it was known as made elsewhere before this was sent. */
  | { readonly is: "nothing" | "anothers" | "older" }
  /** It is this operation's, alive or not; `differs`: it carries the id, and is not what was asked for. */
  | { readonly is: "own" | "differs"; readonly effect: ProviderEffect };

/** What the provider says of the reference that a person gave. */
export async function seeGiven(ctx: DispatchCtx, operation: Operation): Promise<Given> {
  const ref = operation.providerRef ?? "";
  const reading = await ctx.provider.read(ref, { timeoutMs: ctx.timing.providerTimeoutMs });
  if (reading.read === "failed") {
    return reading.reason === BAD_REFERENCE ? { is: "nothing" } : { is: "unread", reason: reading.reason };
  }
  const effect = reading.effects.find((one) => one.ref === ref);
  if (effect === undefined) return { is: "nothing" };
  if (effect.operationId === operation.id) {
    return {
      is: differsFromAsked(operation, placed(operation, effect)).length === 0 ? "own" : "differs",
      effect,
    };
  }
  if (effect.operationId !== null || differsFromAsked(operation, effect).length > 0)
    return { is: "anothers" };
  const owner = await operationByProviderRef(ctx.db, ref);
  if (owner !== null && owner.id !== operation.id) return { is: "anothers" };
  const { seenBefore } = await listingContext(ctx.db, operation, [ref]);
  return seenBefore.has(ref) ? { is: "older" } : { is: "own", effect };
}

/**
 * `effect` is what the person named, carries the operation's id and is alive. Where it is not what was asked for, or not done yet, it
 * confirms nothing: the case is open again. Whether it is.
 */
export async function judgeNamed(
  ctx: DispatchCtx,
  operation: Operation,
  effect: ProviderEffect,
  source: "webhook" | "sweep",
): Promise<boolean> {
  const said = judgeEffect(operation, placed(operation, effect), { known: new Map() });
  if (said.says === "committed" && said.postcondition === "holds") return false;
  const otherwise =
    said.says === "committed" ? differsWords(effect, said.differs) : `${effect.ref} is ${effect.status}.`;
  return openAgain(ctx, operation, effect, {
    source,
    detail: `Confirmed on a person's word, but the provider shows it otherwise: ${otherwise}`,
  });
}

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
  await openAgain(ctx, operation, effect, { source, detail: besideWordText(effect) });
  return "reopened";
}

async function openAgain(
  ctx: DispatchCtx,
  operation: Operation,
  effect: ProviderEffect,
  { source, detail }: { source: "webhook" | "sweep"; detail: string },
): Promise<boolean> {
  const { moved } = await contradict(ctx, {
    operationId: operation.id,
    actor: source === "webhook" ? "system:webhook" : "system:reconcile",
    evidence: effectEvidence(operation.id, effect, source),
    detail,
    effect,
    word: { decision: await wordOf(ctx.db, operation.id), named: operation.providerRef, shown: effect },
  });
  return moved;
}
