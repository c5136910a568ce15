/** Ends that turn out wrong: taken back by the provider, or contradicted by evidence. Money is counted again. */
import type { Tx } from "../db/connect.js";
import { differsFromAsked, isOnAnother, placed } from "../domain/as-asked.js";
import { differsWords } from "../domain/effect-words.js";
import { CountersignError } from "../domain/errors.js";
import type { ProviderEffect } from "../domain/evidence.js";
import type { OperationId } from "../domain/ids.js";
import { isConfirmedOnWord } from "../domain/named-evidence.js";
import type { Actor, Operation } from "../domain/operation.js";
import { MADE_DIFFERENTLY } from "../domain/resolving.js";
import { announce } from "./announce.js";
import { noteBesideWord } from "./beside-word.js";
import type { LedgerCtx } from "./context.js";
import { recountElsewhere } from "./elsewhere.js";
import { lockOperation } from "./endings.js";
import { recordEvidence } from "./evidence.js";
import { openIncident } from "./incidents.js";
import { reportDifference } from "./made-otherwise.js";
import { actorName } from "./subjects.js";
import { move } from "./transition.js";
import type { Moved, NewEvidence } from "./types.js";

export interface Contradiction {
  readonly operationId: OperationId;
  readonly actor: Actor;
  readonly evidence: NewEvidence;
  /** A sentence for the people who look at it. */
  readonly detail: string;
  /** What the provider shows, where it shows something. */
  readonly effect?: ProviderEffect;
  /** The person's decision that it contradicts, and what they named: then only an end that still rests on that is opened again. */
  readonly word?: {
    readonly decision: string | null;
    readonly named: string | null;
    /** By what a reconciler settles it at once. */
    readonly shown: ProviderEffect;
  };
}

/** The provider took it back: CONFIRMED → REVERSED; the money counts as not refunded, and may be refunded as a further occurrence. */
export async function reverse(ctx: LedgerCtx, request: Contradiction & { code: string }): Promise<Moved> {
  return ctx.db.tx<Moved>(async (tx) => {
    const operation = await lockOperation(tx, request.operationId);
    if (operation?.status !== "CONFIRMED") return { moved: false, operation };
    await recordEvidence(tx, ctx, request.evidence);
    const reversed = await move(tx, {
      id: operation.id,
      from: "CONFIRMED",
      version: operation.version,
      token: null,
      event: "reverse",
      actor: await actorName(tx, request.actor),
      data: { code: request.code, detail: request.detail, evidence: request.evidence.payload },
      patch: {
        result: {
          code: request.code,
          detail: request.detail,
          ...(operation.providerRef === null ? {} : { providerRef: operation.providerRef }),
        },
      },
    });
    if (reversed === null) throw lostLock(operation);
    await recountElsewhere(tx, ctx, reversed);
    await openIncident(tx, ctx, {
      kind: "reversed",
      dedupeKey: `reversed:${operation.id}`,
      operationId: operation.id,
      paymentId: null,
      detail: { code: request.code, detail: request.detail, ref: operation.providerRef },
    });
    await announce(tx, ctx, { operation: reversed, from: "CONFIRMED" });
    return { moved: true, operation: reversed };
  });
}

/** This effect was known when a person closed the operation as not carried out as asked: it is no news. */
export const wasClosedKnowing = ({ status, result }: Operation, ref: string | null): boolean =>
  status === "REJECTED" && result?.code === MADE_DIFFERENTLY && result.providerRef === ref;

const restsOn = (operation: Operation, named: string | null): boolean =>
  isConfirmedOnWord(operation) && operation.providerRef === named;

/**
 * Evidence contradicts an end: CONFIRMED or REJECTED → QUARANTINED, with an incident. Not by an effect on another payment: that one was not
 * carried out stays true, and what was made instead is a finding of its own.
 */
export async function contradict(ctx: LedgerCtx, request: Contradiction): Promise<Moved> {
  return ctx.db.tx<Moved>(async (tx) => {
    const operation = await lockOperation(tx, request.operationId);
    if (operation === null || (operation.status !== "CONFIRMED" && operation.status !== "REJECTED")) {
      return { moved: false, operation };
    }
    if (wasClosedKnowing(operation, request.evidence.providerRef)) return { moved: false, operation };
    if (request.word !== undefined && !restsOn(operation, request.word.named))
      return { moved: false, operation };
    await recordEvidence(tx, ctx, request.evidence);
    const { effect } = request;
    if (effect !== undefined && staysRejected(operation, effect)) {
      await reportDifference(tx, ctx, operation, effect);
      await recountElsewhere(tx, ctx, operation, [effect]);
      return { moved: false, operation };
    }
    const reopened = await quarantineEnd(tx, ctx, operation, {
      actor: request.actor,
      data: { evidence: request.evidence.payload },
      detail: request.detail,
      word: request.word?.decision ?? null,
      ...(effect === undefined ? {} : { effect }),
    });
    const shown = request.word?.shown ?? null;
    if (shown !== null) await noteBesideWord(tx, ctx, reopened, shown, request.evidence.source);
    return { moved: true, operation: reopened };
  });
}

/** What the provider made on another payment is nothing of what was asked for. */
export const staysRejected = (operation: Operation, effect: ProviderEffect): boolean =>
  operation.status === "REJECTED" && isOnAnother(operation, effect);

/**
 * Reopens an ended operation for a person, because of evidence: an incident says so. Where what turned up is not what was asked for, it is
 * parked as that, and a finding of its own.
 */
export async function quarantineEnd(
  tx: Tx,
  ctx: LedgerCtx,
  operation: Operation,
  why: { actor: Actor; data: object; detail: string; word?: string | null; effect?: ProviderEffect },
): Promise<Operation> {
  const { effect } = why;
  const differs = effect === undefined ? [] : differsFromAsked(operation, placed(operation, effect));
  const reopened = await parkEnd(tx, ctx, operation, {
    actor: await actorName(tx, why.actor),
    data: { ...why.data, detail: why.detail },
    ...(effect === undefined ? {} : { effect }),
    quarantineReason:
      effect === undefined || differs.length === 0
        ? `evidence_contradicts: ${why.detail}`
        : `postcondition_failed: ${differsWords(effect, differs)}`,
  });
  if (effect !== undefined && differs.length > 0) await reportDifference(tx, ctx, reopened, effect);
  await openIncident(tx, ctx, {
    kind: "contradiction",
    dedupeKey: `contradiction:${operation.id}:${reopened.version}`,
    operationId: operation.id,
    paymentId: null,
    detail: {
      was: operation.status,
      detail: why.detail,
      ...(typeof why.word === "string" ? { resolution: why.word } : {}),
    },
  });
  return reopened;
}

/**
 * CONFIRMED or REJECTED → QUARANTINED, until a person or new evidence settles it anew. What it may have spent is reserved again
 * even where that breaks the plan: then an incident says so. `actor` as events name it.
 */
export async function parkEnd(
  tx: Tx,
  ctx: LedgerCtx,
  operation: Operation,
  why: { actor: string; data: object; quarantineReason: string; effect?: ProviderEffect },
): Promise<Operation> {
  const parked = await move(tx, {
    id: operation.id,
    from: operation.status,
    version: operation.version,
    token: null,
    event: "quarantine",
    actor: why.actor,
    data: { ...why.data, was: operation.status },
    patch: {
      quarantineReason: why.quarantineReason,
      dueMs: ctx.timing.quarantineRepostMs,
      fence: true,
      // What settles it next need not be a person.
      resolvedByPerson: false,
    },
  });
  if (parked === null) throw lostLock(operation);
  await recountElsewhere(tx, ctx, parked, why.effect === undefined ? [] : [placed(parked, why.effect)]);
  await noteOverdrawn(tx, ctx, parked);
  await announce(tx, ctx, { operation: parked, from: operation.status });
  return parked;
}

/** $1 operation. One row when its payment's plan no longer holds. Minor units. */
const OVERDRAWN = `
SELECT p.id, p.captured, p.reserved, p.refunded, p.refunded_elsewhere FROM payments p JOIN operations o ON o.payment_id = p.id
WHERE o.id = $1 AND p.reserved + p.refunded + p.refunded_elsewhere > p.captured`;

async function noteOverdrawn(tx: Tx, ctx: LedgerCtx, { id, version }: Operation): Promise<void> {
  const [row] = await tx.sql<{
    id: string;
    captured: bigint;
    reserved: bigint;
    refunded: bigint;
    refunded_elsewhere: bigint;
  }>("ledger.overdrawn", OVERDRAWN, [id]);
  if (row === undefined) return;
  await openIncident(tx, ctx, {
    kind: "overdrawn",
    dedupeKey: `overdrawn:${id}:${version}`,
    operationId: id,
    paymentId: row.id,
    detail: {
      captured: Number(row.captured),
      reserved: Number(row.reserved),
      refunded: Number(row.refunded),
      refundedElsewhere: Number(row.refunded_elsewhere),
    },
  });
}

const lostLock = (operation: Operation): CountersignError =>
  new CountersignError("lost_lock", `operation ${operation.id} moved under its lock`);
