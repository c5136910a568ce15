/**
 * Webhooks: evidence and a wake-up. Stored before they are acknowledged; the object is read again and judged, so neither order
 * nor repetition matters.
 */

import { BAD_REFERENCE, isDead, type ProviderEffect } from "../domain/evidence.js";
import { failpoint } from "../domain/failpoints.js";
import { isOperationId, type OperationId } from "../domain/ids.js";
import { isConfirmedOnWord } from "../domain/named-evidence.js";
import type { Operation, OperationStatus } from "../domain/operation.js";
import type { Db } from "../domain/ports/database.js";
import type { ProviderEvent } from "../domain/ports/payment-provider.js";
import {
  contradict,
  getOperation,
  openIncident,
  operationByProviderRef,
  recordEvidence,
} from "../ledger/index.js";
import { maybeAliveAgain, reportAliveAgain } from "./alive-again.js";
import type { DispatchCtx } from "./context.js";
import { reportDuplicate } from "./duplicate.js";
import { effectEvidence } from "./effect-evidence.js";
import { judgeBesideWord, judgeNamed } from "./on-word.js";
import { refreshBalance } from "./probe.js";
import { readStored, storedEvent } from "./stored-event.js";
import { takeBack } from "./taken-back.js";

export type StoredWebhook =
  | { readonly stored: true; readonly eventId: string; readonly first: boolean }
  /** `unused`: it comes from the provider, and is of a form that we have no use for; `forged`: it may be anybody's. */
  | { readonly stored: false; readonly why: "unused" | "forged"; readonly reason: string };

/** A webhook that failed is looked at again after this many milliseconds, doubled each time up to the cap. */
const RETRY_BASE_MS = 2_000;
const RETRY_MAX_MS = 600_000;
/** Nobody else looks at a webhook for this long while it is being judged. */
const HANDLING_MS = 60_000;

/** Checks the signature over the raw body and stores the event once. Nothing of a bad one, or of one that we cannot use, is kept. */
export async function storeWebhook(
  ctx: DispatchCtx,
  rawBody: Buffer,
  signature: string | undefined,
  now: Date,
): Promise<StoredWebhook> {
  const reading = ctx.verifyWebhook(rawBody, signature, now);
  if (!reading.ok) {
    const unused = reading.reason === "unreadable";
    if (unused) ctx.log.info({ bytes: rawBody.length }, "a webhook of a form that we have no use for");
    return { stored: false, why: unused ? "unused" : "forged", reason: reading.reason };
  }
  const { event } = reading;
  const inserted = await ctx.db.sql<{ event_id: string }>(
    "dispatch_store_webhook",
    `INSERT INTO provider_webhooks (event_id, type, object_id, payload) VALUES ($1, $2, $3, $4)
     ON CONFLICT (event_id) DO NOTHING RETURNING event_id`,
    [event.id, event.type, event.objectId, JSON.stringify(storedEvent(event))],
  );
  await failpoint("dispatch.after_webhook_stored");
  if (inserted.length > 0) await ctx.wake("webhook", event.id);
  return { stored: true, eventId: event.id, first: inserted.length > 0 };
}

/** Stored webhooks that nobody has judged yet, oldest first. */
export async function dueWebhooks(db: Db, options: { limit: number }): Promise<readonly string[]> {
  const rows = await db.sql<{ event_id: string }>(
    "dispatch_due_webhooks",
    `SELECT event_id FROM provider_webhooks WHERE due_at IS NOT NULL AND due_at <= countersign_now()
      ORDER BY due_at, event_id LIMIT $1`,
    [options.limit],
  );
  return rows.map((row) => row.event_id);
}

/** Judges a stored webhook. Does nothing when it is done already or somebody else has it. */
export async function processWebhook(ctx: DispatchCtx, eventId: string): Promise<void> {
  const [row] = await ctx.db.sql<{ payload: unknown; failures: number }>(
    "dispatch_take_webhook",
    `UPDATE provider_webhooks SET due_at = countersign_now() + make_interval(secs => $2 / 1000.0)
      WHERE event_id = $1 AND processed_at IS NULL AND due_at <= countersign_now()
      RETURNING payload, failures`,
    [eventId, HANDLING_MS],
  );
  if (row === undefined) return;
  await failpoint("dispatch.before_webhook_judged");
  try {
    if ((await judge(ctx, readStored(row.payload))) === "early") {
      await again(ctx, eventId, row.failures);
      return;
    }
  } catch (error) {
    await again(ctx, eventId, row.failures);
    ctx.log.error({ err: error, webhook: eventId }, "a webhook could not be judged; it is tried again");
    return;
  }
  await ctx.db.sql(
    "dispatch_webhook_done",
    "UPDATE provider_webhooks SET processed_at = countersign_now(), due_at = NULL WHERE event_id = $1",
    [eventId],
  );
}

async function again(ctx: DispatchCtx, eventId: string, failures: number): Promise<void> {
  const delayMs = Math.min(RETRY_MAX_MS, RETRY_BASE_MS * 2 ** Math.min(failures, 20));
  await ctx.db.sql(
    "dispatch_webhook_failed",
    `UPDATE provider_webhooks SET failures = failures + 1, due_at = countersign_now() + make_interval(secs => $2 / 1000.0)
      WHERE event_id = $1`,
    [eventId, delayMs],
  );
}

/** Whoever is at work on these may be about to write what they read before the news. */
const UNDER_WAY: ReadonlySet<OperationStatus> = new Set(["DISPATCHED", "OUTCOME_UNKNOWN", "RECONCILING"]);

/**
 * `early`: it tells of a failure while the operation is under way. What is known is written; but somebody who read a success before
 * may write it after, so it is judged once more when the operation has settled.
 */
async function judge(ctx: DispatchCtx, event: ProviderEvent): Promise<"judged" | "early"> {
  const operation = await operationOf(ctx, event);
  const effect =
    operation === null || event.objectId === null
      ? null
      : await judgeFor(ctx, event, event.objectId, operation);
  await refreshBalance(ctx, { paymentIntent: event.paymentIntent, providerSubscription: null });
  const early = operation !== null && effect !== null && isDead(effect) && UNDER_WAY.has(operation.status);
  return early ? "early" : "judged";
}

async function operationOf(ctx: DispatchCtx, event: ProviderEvent): Promise<Operation | null> {
  const named: OperationId | null =
    event.operationId !== null && isOperationId(event.operationId) ? event.operationId : null;
  const byMetadata = named === null ? null : await getOperation(ctx.db, named);
  if (byMetadata !== null) return byMetadata;
  return event.objectId === null ? null : operationByProviderRef(ctx.db, event.objectId);
}

async function judgeFor(
  ctx: DispatchCtx,
  event: ProviderEvent,
  objectId: string,
  operation: Operation,
): Promise<ProviderEffect | null> {
  if (!event.type.startsWith("refund.") && event.type !== "charge.refund.updated") return null;
  const listing = await ctx.provider.read(objectId, { timeoutMs: ctx.timing.providerTimeoutMs });
  if (listing.read === "failed" && listing.reason === BAD_REFERENCE) {
    // However often it is asked for: what has such a name cannot be there.
    ctx.log.warn(
      { webhook: event.id, operation: operation.id },
      "a webhook names what cannot be of the provider",
    );
    return null;
  }
  if (listing.read === "failed")
    throw new Error(`the object of the webhook could not be read: ${listing.reason}`);
  const effect = listing.effects.at(0);
  if (effect?.operationId === null && (await tookBackUnmarked(ctx, operation, effect))) return effect;
  if (effect === undefined || !isOf(operation, effect)) {
    ctx.log.warn(
      { webhook: event.id, operation: operation.id },
      "the provider does not show what the webhook speaks of",
    );
    return null;
  }
  const seen = effectEvidence(operation.id, effect, "webhook");
  const evidence = {
    ...seen,
    payload: {
      ...seen.payload,
      pendingReason: effect.pendingReason,
      webhook: event.id,
      type: event.type,
    },
  };
  const dead = isDead(effect);
  switch (operation.status) {
    case "CONFIRMED":
      if (dead && effect.ref === operation.providerRef) {
        await takeBack(ctx, operation, effect, { actor: "system:webhook", evidence });
        return effect;
      }
      if (!dead && effect.ref !== operation.providerRef) await second(ctx, operation, effect);
      if (!dead && effect.ref === operation.providerRef && isConfirmedOnWord(operation))
        await judgeNamed(ctx, operation, effect, "webhook");
      break;
    case "REJECTED":
      if (!dead) {
        await contradict(ctx, {
          operationId: operation.id,
          actor: "system:webhook",
          evidence,
          detail: `Counted as rejected, but the provider shows ${effect.ref} as ${effect.status}.`,
          effect,
        });
        return effect;
      }
      break;
    case "DENIED":
    case "EXPIRED":
    case "VOIDED":
    case "AWAITING_APPROVAL":
      if (!dead) await ctx.db.tx((tx) => orphan(tx, ctx, operation, effect));
      break;
    case "REVERSED":
      if (maybeAliveAgain(operation, effect)) await reportAliveAgain(ctx, operation, effect, "webhook");
      break;
    case "PREPARED":
    case "DISPATCHED":
    case "OUTCOME_UNKNOWN":
    case "RECONCILING":
    case "QUARANTINED":
      break;
  }
  await ctx.db.tx((tx) => recordEvidence(tx, ctx, evidence));
  await ctx.wake("operation", operation.id);
  return effect;
}

/** It carries the operation's id, or none and is the one by which the provider itself confirmed it. */
const isOf = (operation: Operation, effect: ProviderEffect): boolean =>
  effect.operationId === operation.id ||
  (effect.operationId === null &&
    operation.status === "CONFIRMED" &&
    effect.ref === operation.providerRef &&
    // What a person named stays a stranger: nothing but its end is written down as the operation's.
    !operation.resolvedByPerson);

/** A refund that carries no id confirmed it, because a person named it, and it has come to nothing. */
const tookBackUnmarked = (ctx: DispatchCtx, operation: Operation, effect: ProviderEffect): Promise<boolean> =>
  takeBack(ctx, operation, effect, {
    actor: "system:webhook",
    evidence: effectEvidence(operation.id, effect, "webhook"),
  });

/** Beside the effect by which it is confirmed, or beside what a person named as that. */
async function second(ctx: DispatchCtx, operation: Operation, effect: ProviderEffect): Promise<void> {
  if (!isConfirmedOnWord(operation)) {
    await ctx.db.tx((tx) => reportDuplicate(tx, ctx, operation, effect));
    return;
  }
  if ((await judgeBesideWord(ctx, operation, effect, "webhook")) === "unread")
    throw new Error("what a person named as the effect could not be read");
}

function orphan(
  tx: Parameters<typeof openIncident>[0],
  ctx: DispatchCtx,
  operation: Operation,
  effect: ProviderEffect,
): Promise<{ id: string; first: boolean }> {
  return openIncident(tx, ctx, {
    kind: "orphan_effect",
    dedupeKey: `orphan:${effect.ref}`,
    operationId: operation.id,
    paymentId: null,
    detail: {
      effect: effect.ref,
      operationStatus: operation.status,
      amount: Number(effect.amountMinor),
      currency: effect.currency,
    },
  });
}
