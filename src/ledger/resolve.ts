/**
 * A person's evidenced decision about an open outcome, by one or two people.
 *
 * The caller has authenticated the person, looked at their role and asked the provider. Here, under the row's lock: the version
 * that was looked at, what is safe (`judgeResolving`), who filed it, and that one decision wins.
 */
import type { Tx } from "../db/connect.js";
import { differsFromAsked, isOnAnother } from "../domain/as-asked.js";
import { sha256Hex } from "../domain/canonical.js";
import { effectWords } from "../domain/effect-words.js";
import { CountersignError } from "../domain/errors.js";
import { effectsOf, type ProviderEffect } from "../domain/evidence.js";
import type { OperationId } from "../domain/ids.js";
import {
  confirmedCode,
  type Named,
  namedEffect,
  rejectedCode,
  rejectionRemark,
} from "../domain/named-evidence.js";
import type { Operation, OperationEventType } from "../domain/operation.js";
import { judgeResolving, MADE_DIFFERENTLY, type Resolving } from "../domain/resolving.js";
import { answerKind, answersAs } from "../domain/same-answer.js";
import { announce } from "./announce.js";
import { anothersEffect } from "./anothers-effect.js";
import { attemptFacts } from "./attempts.js";
import { sendTerms } from "./claim.js";
import type { LedgerCtx } from "./context.js";
import { proposalIsTold, recordProposed } from "./decision-events.js";
import { recountElsewhere } from "./elsewhere.js";
import { lockOperation } from "./endings.js";
import { openIncident } from "./incidents.js";
import { toJsonObject } from "./json.js";
import { isKnownOtherwise } from "./known-otherwise.js";
import { note } from "./note.js";
import { endIfStale, endProposal } from "./proposals.js";
import {
  answerShown,
  getResolution,
  insertResolution,
  madeOf,
  movedSince,
  openResolutionOf,
  showAnew,
} from "./resolution-rows.js";
import { actorName, textName } from "./subjects.js";
import { move, type Patch } from "./transition.js";
import type { Resolution, ResolveRequest, ResolveResult, SecondRequest, SecondResult } from "./types.js";

/** One person's decision. See the room's index. */
export async function resolve(ctx: LedgerCtx, request: ResolveRequest): Promise<ResolveResult> {
  return ctx.db.tx((tx) => propose(tx, ctx, request));
}

/** The second person's answer to an open proposal. */
export async function secondResolve(ctx: LedgerCtx, request: SecondRequest): Promise<SecondResult> {
  const proposal = await getResolution(ctx.db, request.resolutionId);
  if (proposal === null) return { outcome: "overtaken", by: null, operation: null };
  return ctx.db.tx((tx) => second(tx, ctx, request, proposal));
}

async function propose(tx: Tx, ctx: LedgerCtx, request: ResolveRequest): Promise<ResolveResult> {
  const operation = await lockOperation(tx, request.operationId);
  if (operation === null) return { outcome: "overtaken", by: null, operation: null };
  const open = await openResolutionOf(tx, operation.id);
  if (open !== null && (await endIfStale(tx, ctx, open)) === null) {
    return { outcome: "overtaken", by: open.by, operation };
  }
  const made = await madeOf(tx, request);
  if (made !== null) return { outcome: "repeated", resolution: made, operation };
  if (await movedSince(tx, operation.id, request.expectedVersion)) {
    return { outcome: "overtaken", by: null, operation };
  }
  if (operation.filers.includes(request.by)) {
    return { outcome: "not_safe", code: "filed_it_themselves", operation };
  }
  const safe = await judge(tx, ctx, operation, request);
  if (!safe.possible) return refusal(safe, operation);

  const terms = {
    id: ctx.ids.next("res_"),
    operationId: operation.id,
    verb: request.verb,
    by: request.by,
    reason: request.reason,
    evidenceRef: request.evidenceRef,
    probe: toJsonObject(request.probe),
  } as const;
  if (request.needsSecond || safe.people === 2) {
    const resolution = await insertResolution(tx, ctx.seals, {
      ...terms,
      state: "proposed",
      operationVersion: operation.version,
      expiresInMs: request.secondWithinMs,
    });
    await recordProposed(tx, resolution);
    await ctx.notices.touch(tx, { kind: "resolution", id: resolution.id });
    await ctx.notices.touch(tx, { kind: "quarantine", id: operation.id });
    return { outcome: "needs_second", resolution };
  }
  const applied = await apply(tx, ctx, operation, {
    ...request,
    resolutionId: terms.id,
    secondBy: null,
    // Two people are asked for by what is known (`safe`), or by a rule alone (`needsSecond`).
    proven: safe.people === 1,
  });
  const resolution = await insertResolution(tx, ctx.seals, {
    ...terms,
    state: "applied",
    operationVersion: applied.version,
    expiresInMs: null,
  });
  return { outcome: "applied", resolution, operation: applied };
}

async function second(
  tx: Tx,
  ctx: LedgerCtx,
  request: SecondRequest,
  proposal: Resolution,
): Promise<SecondResult> {
  const operation = await lockOperation(tx, proposal.operationId);
  if (operation === null) return { outcome: "overtaken", by: null, operation: null };
  const now = await getResolution(tx, proposal.id);
  if (now?.state !== "proposed" || now.verb === "reopen") {
    return { outcome: "overtaken", by: now?.secondBy ?? null, operation };
  }
  const stale = await endIfStale(tx, ctx, now);
  if (stale !== null) {
    return stale.state === "expired"
      ? { outcome: "expired", resolution: stale }
      : { outcome: "overtaken", by: null, operation };
  }
  const { verb } = now;
  if (request.by === proposal.by) return { outcome: "not_safe", code: "same_person", operation };
  if (operation.filers.includes(request.by)) {
    return { outcome: "not_safe", code: "filed_it_themselves", operation };
  }
  const { by, verdict, note: text } = request;
  const secondPerson = { by, verdict, note: text };
  if (verdict === "disagree") {
    const resolution = await endProposal(tx, ctx, proposal, { state: "disagreed", second: secondPerson });
    return { outcome: "disagreed", resolution };
  }
  if (!(await proposalIsTold(tx, ctx.seals, now))) return untold(tx, ctx, operation, now, request);
  const { evidenceRef } = proposal;
  const safe = await judge(tx, ctx, operation, { verb, evidenceRef, probe: request.probe });
  if (!safe.possible) {
    const shown = toJsonObject(request.probe);
    const why = {
      code: safe.code,
      shown,
      ...("other" in safe ? { other: safe.other } : {}),
    };
    await endProposal(tx, ctx, proposal, { state: "refused", second: secondPerson, refusal: why });
    return refusal(safe, operation);
  }
  const anew = await askAnew(tx, ctx, now, request);
  if (anew !== null) return { outcome: "shown_anew", resolution: anew };
  const applied = await apply(tx, ctx, operation, {
    verb,
    by: proposal.by,
    reason: proposal.reason,
    evidenceRef,
    probe: request.probe,
    resolutionId: proposal.id,
    secondBy: request.by,
    proven: safe.people === 1,
  });
  const resolution = await endProposal(tx, ctx, proposal, {
    state: "applied",
    second: secondPerson,
    operationVersion: applied.version,
    agreedOn: toJsonObject(request.probe),
  });
  return { outcome: "applied", resolution, operation: applied };
}

/**
 * A person agrees to what the card said. Where the provider answers otherwise than that, the card says so first, and who agrees then has
 * read it; an answer that says the same as the verb counts by itself. null: it is what the card said. The operation's row is locked.
 */
async function askAnew(
  tx: Tx,
  ctx: LedgerCtx,
  proposal: Resolution,
  { probe, seen = 0 }: SecondRequest,
): Promise<Resolution | null> {
  if (proposal.verb === "reopen" || answersAs(proposal.verb, probe)) return null;
  const { shown, times } = answerShown(proposal);
  const answer = toJsonObject(probe);
  if (answerKind(shown) === answerKind(answer)) return seen === times ? null : proposal;
  const anew = await showAnew(tx, proposal.id, { shown: answer, times: times + 1 });
  if (anew === null)
    throw new CountersignError("lost_lock", `resolution ${proposal.id} moved under its lock`);
  await ctx.notices.touch(tx, { kind: "resolution", id: proposal.id });
  await ctx.notices.touch(tx, { kind: "quarantine", id: proposal.operationId });
  return anew;
}

/** What nobody proposed is agreed to by nobody: on-call hears of it, and asks anew. */
async function untold(
  tx: Tx,
  ctx: LedgerCtx,
  operation: Operation,
  proposal: Resolution,
  { by, verdict, note: text, probe }: SecondRequest,
): Promise<SecondResult> {
  await openIncident(tx, ctx, {
    kind: "row_changed",
    dedupeKey: `row_changed:${proposal.id}`,
    operationId: operation.id,
    paymentId: null,
    detail: { problems: ["the log does not tell that a person asked for what a second one was to agree to"] },
  });
  await endProposal(tx, ctx, proposal, {
    state: "refused",
    second: { by, verdict, note: text },
    refusal: { code: "not_asked", shown: toJsonObject(probe) },
  });
  return { outcome: "not_safe", code: "not_asked", operation };
}

/** $1 operation. */
const CLOCKS = "SELECT countersign_now() AS now, last_send_ended_at FROM operations WHERE id = $1";

async function judge(
  tx: Tx,
  ctx: LedgerCtx,
  operation: Operation,
  { verb, evidenceRef, probe }: Pick<ResolveRequest, "verb" | "evidenceRef" | "probe">,
): Promise<{ possible: true; people: 1 | 2 } | Refusal> {
  const [clocks] = await tx.sql<{ now: Date; last_send_ended_at: Date | null }>(
    "ledger.resolving_clocks",
    CLOCKS,
    [operation.id],
  );
  if (clocks === undefined) return { possible: false, code: "wrong_state" };
  const judged = judgeResolving({
    verb,
    status: operation.status,
    contract: ctx.contracts[operation.kind],
    probe,
    attempts: await attemptFacts(tx, operation.id),
    now: clocks.now,
    firstClaimedAt: operation.firstClaimedAt,
    lastSendEndedAt: clocks.last_send_ended_at,
    ...sendTerms(ctx, operation),
  });
  if (!judged.possible || verb !== "confirm") return judged;
  const named = namedEffect(probe, evidenceRef);
  if (named === null) return { possible: false, code: "names_none_shown" };
  if (
    operation.kind === "refund" &&
    named.effect !== null &&
    differsFromAsked(operation, named.effect).length > 0
  )
    return { possible: false, code: "named_differs" };
  const other = await anothersEffect(tx, operation, named.ref);
  if (other !== null) return { possible: false, code: "anothers_effect", other };
  // What its payment's list does not show now may be known all the same.
  const seen = operation.kind !== "refund" || named.effect !== null;
  return !seen && (await isKnownOtherwise(tx, operation, named.ref))
    ? { possible: false, code: "named_differs" }
    : judged;
}

type Refusal =
  | Extract<Resolving, { possible: false }>
  | { readonly possible: false; readonly code: "names_none_shown" | "named_differs" }
  | { readonly possible: false; readonly code: "anothers_effect"; readonly other: OperationId };

const refusal = (safe: Refusal, operation: Operation): Extract<ResolveResult, { outcome: "not_safe" }> => ({
  outcome: "not_safe",
  code: safe.code,
  operation,
  ...("other" in safe ? { other: safe.other } : {}),
});

type Decision = Pick<ResolveRequest, "verb" | "by" | "reason" | "evidenceRef" | "probe"> & {
  readonly resolutionId: string;
  readonly secondBy: string | null;
  /** No attempt can have an effect any more. */
  readonly proven: boolean;
};

/** Takes the token from whoever reconciles, and writes what was decided. */
async function apply(tx: Tx, ctx: LedgerCtx, operation: Operation, decision: Decision): Promise<Operation> {
  const actor = await actorName(tx, `slack:${decision.by}`);
  const named = decision.verb === "confirm" ? namedEffect(decision.probe, decision.evidenceRef) : null;
  const remark =
    decision.verb === "reject" && decision.probe.says !== "committed"
      ? rejectionRemark(rejectedCode(decision.probe, decision.proven))
      : (named?.remark ?? null);
  const data = {
    resolution: decision.resolutionId,
    verb: decision.verb,
    reason: await textName(tx, decision.reason),
    evidence: { reference: await textName(tx, decision.evidenceRef), probe: toJsonObject(decision.probe) },
    second: decision.secondBy === null ? null : await actorName(tx, `slack:${decision.secondBy}`),
    ...(remark === null ? {} : { detail: remark }),
  };
  const step = async (from: Operation, event: OperationEventType, patch: Patch): Promise<Operation> => {
    // What a person names as the effect may be anything they wrote: its hash binds the row without keeping the text.
    const hash = patch.providerRef === undefined ? {} : { refHash: sha256Hex(patch.providerRef) };
    const moved = await move(tx, {
      id: from.id,
      from: from.status,
      version: from.version,
      token: null,
      event,
      actor,
      data: { ...data, ...hash },
      patch: { ...patch, fence: true },
    });
    if (moved === null) throw new CountersignError("lost_lock", `operation ${from.id} moved under its lock`);
    return moved;
  };
  const reachable =
    operation.status === "OUTCOME_UNKNOWN" ? await step(operation, "reconcile", {}) : operation;
  const decided = await decide(tx, ctx, { operation: reachable, decision, named, step, actor, data });
  await recountElsewhere(tx, ctx, decided, effectsOf(decision.probe));
  await ctx.notices.ops(tx, {
    key: `resolution:${decision.resolutionId}`,
    message: {
      type: "resolved",
      operationId: operation.id,
      verb: decision.verb,
      by: decision.by,
      second: decision.secondBy,
      reason: decision.reason,
      evidence: decision.evidenceRef,
    },
  });
  await announce(tx, ctx, { operation: decided, from: operation.status });
  if (decision.verb === "retry") tx.afterCommit(() => void ctx.wake("operation", operation.id));
  return decided;
}

async function decide(
  tx: Tx,
  ctx: LedgerCtx,
  parts: {
    operation: Operation;
    decision: Decision;
    /** Of a confirmation: the effect that it means, as it was judged. */
    named: Named | null;
    step: (from: Operation, event: OperationEventType, patch: Patch) => Promise<Operation>;
    actor: string;
    data: object;
  },
): Promise<Operation> {
  const { operation, decision, named, step } = parts;
  switch (decision.verb) {
    case "confirm": {
      if (named === null) throw new Error(`operation ${operation.id}: nothing was named as its effect`);
      const { ref, remark } = named;
      return step(operation, "settle_confirmed", {
        providerRef: ref,
        resolvedByPerson: true,
        result: {
          code: confirmedCode(decision.probe),
          detail: `Confirmed by on-call: ${ref}.${remark === null ? "" : ` ${remark}`}`,
          providerRef: ref,
        },
      });
    }
    case "reject":
      return decision.probe.says === "committed"
        ? madeDifferently(operation, decision.probe.effect, step)
        : step(operation, "settle_rejected", {
            resolvedByPerson: true,
            result: {
              code: rejectedCode(decision.probe, decision.proven),
              detail: "Closed by on-call as not executed.",
            },
          });
    case "retry": {
      const parked =
        operation.status === "QUARANTINED"
          ? operation
          : await step(operation, "quarantine", {
              quarantineReason: "retry_authorised: a person authorised sending it again",
              dueMs: ctx.timing.quarantineRepostMs,
            });
      const authorised = await note(tx, {
        id: parked.id,
        status: "QUARANTINED",
        version: parked.version,
        note: "authorise",
        actor: parts.actor,
        data: parts.data,
        dueNow: true,
      });
      if (authorised === null)
        throw new CountersignError("lost_lock", `operation ${parked.id} moved under its lock`);
      return authorised;
    }
    default:
      return decision.verb satisfies never;
  }
}

/**
 * What was asked for did not happen, and something else did: its money is no operation's and counts as refunded elsewhere.
 * The reference stays in the result, so that the same effect is no news later.
 */
async function madeDifferently(
  operation: Operation,
  effect: ProviderEffect,
  step: (from: Operation, event: OperationEventType, patch: Patch) => Promise<Operation>,
): Promise<Operation> {
  const where = isOnAnother(operation, effect) ? ` on another payment (${effect.target})` : "";
  return step(operation, "settle_rejected", {
    resolvedByPerson: true,
    result: {
      code: MADE_DIFFERENTLY,
      detail: `Not carried out as asked: the provider made ${effectWords(effect)}${where} instead. Closed by on-call.`,
      providerRef: effect.ref,
    },
  });
}
