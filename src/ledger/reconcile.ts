/**
 * Turning unknown into known: finding what is due, taking a reconciler's lease, writing what it found.
 *
 * 1. An expired lease alone never sends anything: a DISPATCHED row whose lease is over becomes OUTCOME_UNKNOWN first.
 * 2. Any number of reconcilers may work at once: rows that one is taking are skipped by the others.
 * 3. The scan costs what is due, not what is stored.
 */
import type { Db, SqlRunner, Tx } from "../db/connect.js";
import { backoffMs } from "../domain/backoff.js";
import { effectWords } from "../domain/effect-words.js";
import { CountersignError } from "../domain/errors.js";
import { effectsOf, type ProviderEffect } from "../domain/evidence.js";
import type { OperationId } from "../domain/ids.js";
import type { Operation } from "../domain/operation.js";
import type { Move } from "../domain/recovery.js";
import { announce } from "./announce.js";
import { attemptsToldOf } from "./attempts.js";
import type { LedgerCtx } from "./context.js";
import { recountElsewhere } from "./elsewhere.js";
import { endedBefore } from "./ended-before.js";
import { cameAfter, newsPauseMs, newsSinceTaken } from "./evidence.js";
import { openIncident } from "./incidents.js";
import { toJsonObject } from "./json.js";
import { reportDifference } from "./made-otherwise.js";
import { note } from "./note.js";
import { seenEffect } from "./outcome.js";
import { whyNotOwn } from "./own-effect.js";
import { retryIsAuthorised } from "./resolution-rows.js";
import { isStatus, type OperationRow, operationColumns, toOperation } from "./rows.js";
import { confirmedPatch } from "./settle.js";
import { type MoveRequest, move } from "./transition.js";
import type { DueOperation, Reconciled, SettleReconcile, Taken } from "./types.js";

interface DueRow {
  id: OperationId;
  status: string;
  due_at: Date;
  quarantine: DueOperation["quarantine"];
}

/** SQL: evidence about operation `id` came after `since`. */
const newsOf = (id: string, since: string): string =>
  `EXISTS (SELECT 1 FROM provider_evidence e WHERE e.operation_id = ${id} AND ${cameAfter(since)})`;

/** $1 rows. Oldest first, by the partial index over due rows. */
const DUE = `
SELECT d.id, d.status, d.due_at,
  CASE WHEN d.status <> 'QUARANTINED' THEN NULL
    WHEN ${newsOf("d.id", "d.updated_at")} THEN 'evidence'
    WHEN ${retryIsAuthorised("d.id")} THEN 'authorised'
    ELSE 'repost' END AS quarantine
FROM (
  SELECT o.id, o.status, o.due_at, o.updated_at FROM operations o
  WHERE o.due_at IS NOT NULL AND o.due_at <= countersign_now()
  ORDER BY o.due_at, o.id LIMIT $1::int
) d
ORDER BY d.due_at, d.id`;

/** Rows that are due now, oldest first; takes nothing. */
export async function dueOperations(db: Db, options: { limit: number }): Promise<DueOperation[]> {
  const rows = await db.sql<DueRow>("ledger.due", DUE, [options.limit]);
  return rows.flatMap(({ id, status, due_at, quarantine }) =>
    isStatus(status) ? [{ id, status, dueAt: due_at, quarantine }] : [],
  );
}

interface TakeRow extends OperationRow {
  now: Date;
  due: boolean;
  lease_over: boolean;
  news: boolean;
}

const TAKE_COLUMNS = `${operationColumns("o")}, n.now, COALESCE(o.due_at <= n.now, false) AS due,
  COALESCE(o.lease_until <= n.now, true) AS lease_over,
  o.status = 'QUARANTINED' AND ${newsOf("o.id", "o.updated_at")} AS news`;

/** $1 operation. */
const LOCK_ONE = `
SELECT ${TAKE_COLUMNS} FROM operations o, LATERAL (SELECT countersign_now() AS now) n
WHERE o.id = $1 FOR NO KEY UPDATE OF o`;

/** $1 rows. Rows that another reconciler holds locked are skipped. */
const LOCK_DUE = `
SELECT ${TAKE_COLUMNS} FROM operations o, LATERAL (SELECT countersign_now() AS now) n
WHERE o.due_at IS NOT NULL AND o.due_at <= n.now AND o.status IN ('DISPATCHED', 'OUTCOME_UNKNOWN', 'RECONCILING')
ORDER BY o.due_at, o.id LIMIT $1::int
FOR NO KEY UPDATE OF o SKIP LOCKED`;

interface Wanted {
  readonly worker: string;
  readonly because: "due" | "evidence";
}

/**
 * Takes a reconciler's lease. `due`: an unknown outcome or an expired lease whose time has come, or a quarantined operation about
 * which evidence came. `evidence`: somebody knows of news; an unknown outcome is taken before its time, and a quarantined one in
 * any case. null: somebody else has it, or there is nothing to take.
 */
export async function takeForReconcile(
  ctx: LedgerCtx,
  request: Wanted & { operationId: OperationId },
): Promise<Taken | null> {
  return ctx.db.tx(async (tx) => {
    const [row] = await tx.sql<TakeRow>("ledger.lock_to_take", LOCK_ONE, [request.operationId]);
    return row === undefined ? null : take(tx, ctx, row, request);
  });
}

/** Takes up to `limit` due rows that no other reconciler is taking. */
export async function takeDue(ctx: LedgerCtx, request: { worker: string; limit: number }): Promise<Taken[]> {
  return ctx.db.tx(async (tx) => {
    const rows = await tx.sql<TakeRow>("ledger.lock_due", LOCK_DUE, [request.limit]);
    const taken: Taken[] = [];
    for (const row of rows) {
      const one = await take(tx, ctx, row, { worker: request.worker, because: "due" });
      if (one !== null) taken.push(one);
    }
    return taken;
  });
}

/**
 * $1 milliseconds beyond which nothing of ours puts off a look, $2 rows. What a machine should look at and nobody would, because when it is
 * due was taken away or put off by hand; what waits for its time to undo may wait that much longer. Both readings by an index that holds
 * little or nothing.
 */
const FORGOTTEN = `
UPDATE operations o SET due_at = countersign_now()
FROM (
  (SELECT n.id, true AS gone FROM operations n
   WHERE n.due_at IS NULL AND n.status IN ('PREPARED', 'DISPATCHED', 'OUTCOME_UNKNOWN', 'RECONCILING', 'QUARANTINED') LIMIT $2::int)
  UNION ALL
  (SELECT f.id, false FROM operations f
   WHERE f.due_at IS NOT NULL AND f.due_at > countersign_now() + $1::bigint * interval '1 millisecond'
     AND f.status IN ('PREPARED', 'DISPATCHED', 'OUTCOME_UNKNOWN', 'RECONCILING', 'QUARANTINED')
     AND NOT (f.status = 'PREPARED' AND COALESCE(f.due_at <= f.not_before + $1::bigint * interval '1 millisecond', false)) LIMIT $2::int)
) x
WHERE o.id = x.id RETURNING o.id, x.gone`;

/** Added to the longest time after which anything is looked at again. */
const FORGOTTEN_MARGIN_MS = 3_600_000;

/** `gone`: it was due at no time; else later than anything of ours, as after a shorter setting, or by hand. */
export interface Forgotten {
  readonly id: OperationId;
  readonly gone: boolean;
}

/** Makes such operations due now, and returns them. */
export async function makeForgottenDue(
  on: SqlRunner,
  { timing }: Pick<LedgerCtx, "timing">,
  options: { limit: number },
): Promise<Forgotten[]> {
  const longestMs = Math.max(
    timing.quarantineRepostMs,
    timing.reconcileMaxMs,
    timing.leaseMs,
    UNTAKEN_REST_MS,
  );
  return on.sql<Forgotten & Record<string, unknown>>("ledger.forgotten", FORGOTTEN, [
    longestMs + FORGOTTEN_MARGIN_MS,
    options.limit,
  ]);
}

/** $1 rows. What `takeDue` would take. */
const DUE_TO_TAKE = `
SELECT o.id FROM operations o
WHERE o.due_at IS NOT NULL AND o.due_at <= countersign_now() AND o.status IN ('DISPATCHED', 'OUTCOME_UNKNOWN', 'RECONCILING')
ORDER BY o.due_at, o.id LIMIT $1::int`;

/** What is due to be taken, for taking it one by one. */
export async function dueToTake(on: SqlRunner, options: { limit: number }): Promise<OperationId[]> {
  const rows = await on.sql<{ id: OperationId }>("ledger.due_to_take", DUE_TO_TAKE, [options.limit]);
  return rows.map(({ id }) => id);
}

/** What cannot be taken as its row stands is looked at again after this long, in milliseconds, so that others have their turn. */
const UNTAKEN_REST_MS = 60_000;

/** Lets one rest that cannot be taken. No event; the row's course does not change. */
export const restUntaken = (on: SqlRunner, id: OperationId): Promise<unknown> =>
  on.sql(
    "ledger.rest_untaken",
    `UPDATE operations SET due_at = countersign_now() + $2::bigint * interval '1 millisecond'
     WHERE id = $1 AND due_at <= countersign_now() AND status IN ('DISPATCHED', 'OUTCOME_UNKNOWN', 'RECONCILING')`,
    [id, UNTAKEN_REST_MS],
  );

async function take(tx: Tx, ctx: LedgerCtx, row: TakeRow, wanted: Wanted): Promise<Taken | null> {
  const operation = toOperation(row);
  switch (operation.status) {
    case "DISPATCHED": {
      if (!row.lease_over) return null;
      return lease(tx, ctx, await expireLease(tx, ctx, operation), wanted);
    }
    case "OUTCOME_UNKNOWN":
      if (wanted.because === "due" && !row.due) return null;
      return lease(tx, ctx, operation, wanted);
    case "RECONCILING":
      if (!row.lease_over) return null;
      return takeOver(tx, ctx, operation, wanted);
    case "QUARANTINED":
      if (wanted.because !== "evidence" && !(row.news && row.due)) return null;
      return lease(tx, ctx, operation, wanted);
    default:
      return null;
  }
}

/** The sender is gone: what it sent may have committed. Its attempt stays open. */
async function expireLease(tx: Tx, ctx: LedgerCtx, operation: Operation): Promise<Operation> {
  const expired = await move(tx, {
    id: operation.id,
    from: "DISPATCHED",
    version: operation.version,
    token: operation.leaseToken,
    event: "settle_unknown",
    actor: "system:reconcile",
    data: { code: "lease_expired" },
    attemptNumber: operation.attempts,
    patch: { dueMs: 0, fence: true, sendEnded: "with_lease" },
  });
  if (expired === null) throw lostLock(operation);
  await announce(tx, ctx, { operation: expired, from: "DISPATCHED" });
  return expired;
}

async function lease(tx: Tx, ctx: LedgerCtx, operation: Operation, wanted: Wanted): Promise<Taken> {
  const { leaseMs } = ctx.timing;
  const leased = await move(tx, {
    id: operation.id,
    from: operation.status,
    version: operation.version,
    token: null,
    event: "reconcile",
    actor: "system:reconcile",
    data: { worker: wanted.worker, because: wanted.because },
    patch: { lease: { ms: leaseMs, holder: wanted.worker }, dueMs: leaseMs, probed: true },
  });
  if (leased === null) throw lostLock(operation);
  if (operation.status === "QUARANTINED") await announce(tx, ctx, { operation: leased, from: "QUARANTINED" });
  return taken(tx, leased);
}

async function takeOver(tx: Tx, ctx: LedgerCtx, operation: Operation, wanted: Wanted): Promise<Taken | null> {
  const leased = await note(tx, {
    id: operation.id,
    status: operation.status,
    version: operation.version,
    note: "lease_taken_over",
    actor: "system:reconcile",
    data: { worker: wanted.worker },
    lease: { ms: ctx.timing.leaseMs, holder: wanted.worker },
  });
  return leased === null ? null : taken(tx, leased);
}

/** $1 operation. */
const CLOCKS = `
SELECT countersign_now() AS now, last_send_ended_at, lease_until, ${endedBefore("$1")} AS ended_before FROM operations WHERE id = $1`;

async function taken(tx: Tx, operation: Operation): Promise<Taken> {
  const [clocks] = await tx.sql<{
    now: Date;
    last_send_ended_at: Date | null;
    lease_until: Date;
    ended_before: boolean;
  }>("ledger.clocks", CLOCKS, [operation.id]);
  if (clocks === undefined) throw lostLock(operation);
  return {
    operation,
    leaseToken: operation.leaseToken,
    attempts: await attemptsToldOf(tx, operation.id),
    now: clocks.now,
    lastSendEndedAt: clocks.last_send_ended_at,
    leaseUntil: clocks.lease_until,
    endedBefore: clocks.ended_before,
  };
}

/** $1 operation. */
const LOCK_WITH_PROBES = `
SELECT ${operationColumns("o")}, o.probes, countersign_now() AS now, ${endedBefore("o.id")} AS ended_before
FROM operations o WHERE o.id = $1 FOR NO KEY UPDATE`;

interface ToSettle extends OperationRow {
  probes: number;
  now: Date;
  ended_before: boolean;
}

/** Writes what a reconciler found, under its token. */
export async function settleReconcile(ctx: LedgerCtx, request: SettleReconcile): Promise<Reconciled> {
  return ctx.db.tx<Reconciled>(async (tx) => {
    const [row] = await tx.sql<ToSettle>("ledger.lock_to_settle", LOCK_WITH_PROBES, [request.operationId]);
    if (row === undefined) return { settled: false, why: "not_found", operation: null };
    const operation = toOperation(row);
    if (operation.status !== "RECONCILING" || operation.leaseToken !== request.leaseToken) {
      return { settled: false, why: "fenced", operation };
    }
    const decided = await unlessNews(tx, operation, request, mustEnd(ctx, operation, row));
    const again = "look" in decided.move && decided.move.look === "now";
    const lookMs = again ? await newsPauseMs(tx, ctx, operation.id) : nextLookMs(ctx, row.probes);
    const moved = await move(tx, reconciledMove(ctx, operation, decided, lookMs));
    if (moved === null) throw lostLock(operation);
    if (moved.status === "REJECTED" || moved.status === "QUARANTINED") {
      await recountElsewhere(tx, ctx, moved, effectsOf(request.evidence));
    }
    await announce(tx, ctx, { operation: moved, from: "RECONCILING" });
    if (request.evidence.says === "duplicate") {
      await reportDuplicate(tx, ctx, moved, request.evidence.effects);
    }
    const { evidence } = request;
    if (
      evidence.says === "committed" &&
      evidence.postcondition === "fails" &&
      moved.status === "QUARANTINED"
    ) {
      await reportDifference(tx, ctx, moved, evidence.effect);
    }
    if (again || moved.status === "PREPARED") tx.afterCommit(() => void ctx.wake("operation", moved.id));
    return { settled: true, operation: moved };
  });
}

/** What cannot be settled now goes to a person: its time is over, or it had ended before and was with one. */
const mustEnd = (
  ctx: LedgerCtx,
  { unknownSince }: Operation,
  { now, ended_before: ended }: ToSettle,
): boolean => ended || now.getTime() - (unknownSince ?? now).getTime() >= ctx.timing.quarantineAfterMs;

/**
 * What was read as done and has been reported as failed since is read again: the list was older than the news. Where the provider goes on
 * to show it so (`mustEnd`), a person decides. And whatever else was decided is decided anew where something was recorded since the
 * operation was taken: a webhook, or the answer of a lost lease.
 */
async function unlessNews(
  tx: Tx,
  operation: Operation,
  request: SettleReconcile,
  mustEnd: boolean,
): Promise<SettleReconcile> {
  if (request.move.do !== "confirm") {
    return (await newsSinceTaken(tx, operation.id)) ? { ...request, move: READ_AGAIN } : request;
  }
  if (operation.kind !== "refund") return request;
  const { effect } = request.move;
  const known = await whyNotOwn(tx, operation.id, effect.ref);
  if (known === null) return request;
  return mustEnd
    ? { ...request, move: { do: "quarantine", reason: "shown_otherwise", detail: shownNow(effect, known) } }
    : { ...request, move: { do: "later", why: `${effect.ref} is not what the list showed any more` } };
}

const shownNow = (effect: ProviderEffect, known: "failed" | "anothers"): string =>
  known === "failed"
    ? `${effectWords(effect)} is ${effect.status}, and the provider had told that it failed`
    : `${effectWords(effect)} carries its id, and was known as made elsewhere or for another operation`;

const READ_AGAIN = { do: "later", why: "something was told while it was looked at", look: "now" } as const;

async function reportDuplicate(
  tx: Tx,
  ctx: LedgerCtx,
  operation: Operation,
  effects: readonly ProviderEffect[],
): Promise<void> {
  const refs = effects.map(({ ref }) => ref).sort();
  await openIncident(tx, ctx, {
    kind: "duplicate_effect",
    dedupeKey: `duplicate:${operation.id}:${refs.join(":")}`,
    operationId: operation.id,
    paymentId: null,
    detail: { effects: effects.map((effect) => toJsonObject(effect)) },
  });
}

function reconciledMove(
  ctx: LedgerCtx,
  operation: Operation,
  request: SettleReconcile,
  lookMs: number,
): MoveRequest {
  const base = {
    id: operation.id,
    from: "RECONCILING",
    version: operation.version,
    token: request.leaseToken,
    actor: "system:reconcile",
    data: { evidence: toJsonObject(request.evidence), move: toJsonObject(request.move) },
  } as const;
  const { move: decided, evidence } = request;
  const effect = "effect" in evidence ? evidence.effect : null;
  const seen = seenEffect(ctx.ids, operation.id, "probe", effect);
  switch (decided.do) {
    case "confirm":
      return { ...base, event: "settle_confirmed", patch: { ...seen, ...confirmedPatch(decided.effect) } };
    case "reject":
      return {
        ...base,
        event: "settle_rejected",
        patch: { ...seen, result: { code: decided.code, detail: decided.detail } },
      };
    case "prepare_again":
      return { ...base, event: "not_executed", patch: { ...seen, dueMs: ctx.timing.prepareGraceMs } };
    case "later":
      return {
        ...base,
        event: "settle_unknown",
        patch: { ...seen, dueMs: lookMs },
      };
    case "quarantine":
      return {
        ...base,
        event: "quarantine",
        patch: { ...seen, quarantineReason: quarantineText(decided), dueMs: ctx.timing.quarantineRepostMs },
      };
    default:
      return decided satisfies never;
  }
}

const quarantineText = (decided: Extract<Move, { do: "quarantine" }>): string =>
  `${decided.reason}: ${decided.detail}`;

/** `probes` counts this look: the first "later" waits for one base step. */
const nextLookMs = (ctx: LedgerCtx, probes: number): number =>
  backoffMs({
    baseMs: ctx.timing.reconcileBaseMs,
    maxMs: ctx.timing.reconcileMaxMs,
    tries: Math.max(0, probes - 1),
    random: ctx.ids.random(),
  });

/** Whether a person is to be asked again about a quarantined operation. */
export const repostIsDue = async (on: SqlRunner, id: OperationId): Promise<boolean> =>
  (
    await on.sql(
      "ledger.repost_is_due",
      `SELECT 1 FROM operations
       WHERE id = $1 AND status = 'QUARANTINED' AND due_at <= countersign_now() AND NOT ${retryIsAuthorised("operations.id")}`,
      [id],
    )
  ).length > 0;

/** $1 operation, $2 milliseconds. The card was posted again; the row's course does not change. */
const REST_QUARANTINED = `
UPDATE operations SET due_at = countersign_now() + $2::bigint * interval '1 millisecond'
WHERE id = $1 AND status = 'QUARANTINED' AND due_at <= countersign_now() AND NOT ${retryIsAuthorised("operations.id")}
RETURNING id`;

/** Claims one re-posting of a quarantine card: true once for each time it is due, whoever asks. Joins the caller's transaction. */
export async function restQuarantined(tx: Tx, ctx: LedgerCtx, id: OperationId): Promise<boolean> {
  const rows = await tx.sql("ledger.rest_quarantined", REST_QUARANTINED, [id, ctx.timing.quarantineRepostMs]);
  return rows.length > 0;
}

const lostLock = (operation: Operation): CountersignError =>
  new CountersignError("lost_lock", `operation ${operation.id} moved under its lock`);
