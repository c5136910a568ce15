/**
 * A click on Approve, Deny or Undo, answered in one transaction.
 *
 * 1. The person is read before the transaction and is at most 5 s old when the vote is written; unreadable is refused.
 * 2. Under the locks of the approval and its siblings everything is compared again: state, card, deadline by the database's
 *    time, who, what was typed. Exactly one of several clicks decides; each of the others hears what happened.
 * 3. A vote prepares nothing. A no ends the operation at once, also after a complete approval, unless it has left.
 */

import { CommitUnknownError, type SqlRunner, type Tx } from "../db/connect.js";
import { isRetryable } from "../db/sqlstate.js";
import type { Approval } from "../domain/approval.js";
import { type Click, type ClickDecision, decideClick } from "../domain/approval-click.js";
import { assertNever } from "../domain/assert-never.js";
import type { Frozen } from "../domain/frozen.js";
import { isApprovalId } from "../domain/ids.js";
import type { OperationStatus } from "../domain/operation.js";
import type { PersonReading } from "../domain/ports/directory.js";
import { cutText } from "../domain/text/cut.js";
import { FROZEN_COLUMNS, FROZEN_JOIN, type FrozenRow, frozenOf } from "../ledger/index.js";
import type { ApprovalsContext } from "./context.js";
import { deny, expireNow, NotAtOnce, type Voter, vote } from "./record.js";
import { getApproval, lockWithSiblings } from "./rows.js";
import { decisionOf, standingOf, successorOf } from "./standing.js";
import { CLICK_READING_MAX_AGE_MS, NOTE_MAX_CHARS, RELEASE_TRIES } from "./tunables.js";
import type { DecideClick, DecideOutcome, MayDeny, PersonAhead, ReadPeople, UndoClick } from "./types.js";
import { yesVoters } from "./voters.js";

/**
 * Decides one click. Never throws for what a person, Slack or another click did. What the database undid by itself, or may have stored
 * without saying so, is `try_again`; one that is away throws, and the arrival is processed again.
 */
export async function decide(ctx: ApprovalsContext, click: DecideClick): Promise<DecideOutcome> {
  return decided(await answer(ctx, { ...click, undo: false }));
}

/** Begins to read who clicked, as a decision on the click asks for them. */
export function readAhead(ctx: Pick<ApprovalsContext, "clock" | "directory">, userId: string): PersonAhead {
  const readAt = ctx.clock.now().getTime();
  const reading = ctx.directory.person(userId, { maxAgeMs: ASK_MAX_AGE_MS });
  // Whoever decides hears of a failure; if nobody does, nobody needs to.
  reading.catch(() => undefined);
  return { userId, readAt, reading };
}

/** The visible Undo: a no without a note, while the approved operation has not left. Same people as for a vote. */
export async function undo(ctx: ApprovalsContext, click: UndoClick): Promise<DecideOutcome> {
  return decided(await answer(ctx, { ...click, verdict: "deny", cardVersion: null, undo: true }));
}

function decided(outcome: Answer): DecideOutcome {
  if (outcome.outcome === "may_deny") throw new Error("a click was only looked at");
  return outcome;
}

/**
 * What a no of this person would come to, before the form that asks for its note: `may_deny`, or the answer that it would get.
 * Stores no vote; a deadline that is past ends the approval here as at any click.
 */
export async function lookBeforeDeny(
  ctx: ApprovalsContext,
  click: Pick<DecideClick, "approvalId" | "cardVersion" | "userId" | "ahead">,
): Promise<DecideOutcome | MayDeny> {
  return answer(ctx, { ...click, verdict: "deny", undo: false, look: true });
}

type AnyClick = Omit<DecideClick, "cardVersion"> & {
  cardVersion: number | null;
  undo: boolean;
  look?: true;
};
type Answer = DecideOutcome | MayDeny;

/** The reading asked for is younger than it may be at the vote: what is left is spent waiting for locks. */
const ASK_MAX_AGE_MS = CLICK_READING_MAX_AGE_MS / 2;

class ReadingTooOld extends Error {}

async function answer(ctx: ApprovalsContext, click: AnyClick): Promise<Answer> {
  const { approvalId } = click;
  if (!isApprovalId(approvalId)) return { outcome: "not_found" };
  let atOnce = true;
  // A COMMIT whose answer is lost may have stored the vote: the same click once more finds it, or stores it now.
  let inDoubt = false;
  for (let tries = 1; tries <= RELEASE_TRIES; tries += 1) {
    const begun = tries === 1 && click.ahead?.userId === click.userId ? click.ahead : null;
    const { readAt, reading: asked } = begun ?? readAhead(ctx, click.userId);
    const reading = await asked;
    try {
      const people = { readings: new Map([[click.userId, reading]]), readAt };
      return await ctx.db.tx((tx) =>
        answerIn(tx, withPeople(ctx, people), { ...click, approvalId }, reading, { people, atOnce }),
      );
    } catch (error) {
      if (error instanceof ReadingTooOld) continue;
      if (error instanceof NotAtOnce) {
        ctx.log.info(
          { approvalId, err: error.cause },
          "a decided turn could not be released with its last vote",
        );
        atOnce = false;
        continue;
      }
      if (error instanceof CommitUnknownError) {
        inDoubt = true;
        continue;
      }
      if (inDoubt) return NOT_KNOWN;
      if (isRetryable(error)) return TRY_AGAIN;
      throw error;
    }
  }
  return inDoubt ? NOT_KNOWN : TRY_AGAIN;
}

/** Whoever goes on with the turn at once need not read again who was read for this click. */
function withPeople(ctx: ApprovalsContext, people: ReadPeople): ApprovalsContext {
  const { afterTurnDecided } = ctx.hooks;
  if (afterTurnDecided === undefined) return ctx;
  return {
    ...ctx,
    hooks: { ...ctx.hooks, afterTurnDecided: (turn) => afterTurnDecided({ ...turn, people }) },
  };
}

const TRY_AGAIN: DecideOutcome = {
  outcome: "try_again",
  sentence: "This could not be recorded just now, and nothing was sent. Please click again.",
};

const NOT_KNOWN: DecideOutcome = {
  outcome: "try_again",
  sentence:
    "It is not known yet whether this was recorded. The card shows it if it was; click again only if it does not. One person's vote counts once.",
};

async function answerIn(
  tx: Tx,
  ctx: ApprovalsContext,
  click: AnyClick & { approvalId: Approval["id"] },
  reading: PersonReading,
  { people, atOnce }: { readonly people: ReadPeople; readonly atOnce: boolean },
): Promise<Answer> {
  const [locked, present, policy] = await Promise.all([
    lockWithSiblings(tx, click.approvalId),
    readPresent(tx, click.approvalId),
    ctx.activePolicy(tx),
  ]);
  const approval = locked.find((candidate) => candidate.id === click.approvalId);
  if (approval === undefined) return { outcome: "not_found" };
  if (present === null) throw new Error(`operation ${approval.operationId} is gone`);
  if (ctx.clock.now().getTime() - people.readAt > CLICK_READING_MAX_AGE_MS - ASK_MAX_AGE_MS)
    throw new ReadingTooOld();

  const asked: Click = {
    cardVersion: click.cardVersion ?? approval.cardVersion,
    verdict: click.verdict,
    repeatedAmount: click.repeatedAmount ?? null,
    suggestedMinor: click.suggestedMinor ?? null,
  };
  const decision =
    click.undo && approval.state === "PENDING"
      ? ({ act: "none", because: "stale_card" } as const)
      : decideClick(asked, { approval, reading, policy, ...present });
  const voter = reading.ok ? voterOf(reading, click) : null;
  const decides =
    atOnce && decision.act === "vote" && decision.completes && isLast(locked, click) ? people : null;
  return carryOut(tx, ctx, { approval, decision, voter, click, frozen: present.frozen, decides });
}

/** With this vote every call of the turn is decided, and nobody else has voted in it. */
const isLast = (siblings: readonly Approval[], click: AnyClick): boolean =>
  siblings.every(
    (each) =>
      (each.id === click.approvalId || each.state !== "PENDING") &&
      yesVoters(each).every((userId) => userId === click.userId),
  );

interface Present {
  readonly operationStatus: OperationStatus;
  readonly filers: readonly string[];
  readonly now: Date;
  /** What keeps its kind from being sent. */
  readonly frozen: Frozen | null;
}

/** Asked for after the approval's lock: an operation that awaits its approval cannot move without it. */
async function readPresent(tx: Tx, id: Approval["id"]): Promise<Present | null> {
  const [row] = await tx.sql<FrozenRow & { status: OperationStatus; filers: string[]; now: Date }>(
    "approvals.present",
    `SELECT o.status, o.filers, countersign_now() AS now, ${FROZEN_COLUMNS}
     FROM operations o ${FROZEN_JOIN} WHERE o.id = (SELECT operation_id FROM approvals WHERE id = $1)`,
    [id],
  );
  if (row === undefined) return null;
  return { operationStatus: row.status, filers: row.filers, now: row.now, frozen: frozenOf(row) };
}

interface Decided {
  readonly approval: Approval;
  readonly decision: ClickDecision;
  readonly voter: Voter | null;
  readonly click: AnyClick;
  readonly frozen: Frozen | null;
  /** The turn may be released with this vote: whose yes it needs. */
  readonly decides: ReadPeople | null;
}

async function carryOut(tx: Tx, ctx: ApprovalsContext, decided: Decided): Promise<Answer> {
  const { approval, decision, voter, click, frozen, decides } = decided;
  switch (decision.act) {
    case "vote": {
      const { approval: after, waitsFor } = await vote(tx, ctx, approval, known(voter), {
        completes: decision.completes,
        decides,
      });
      return decision.completes
        ? {
            outcome: "approved",
            approval: after,
            waitsFor,
            frozen,
            successorId: await successorIn(tx, after),
          }
        : { outcome: "recorded", approval: after, missing: decision.missing, frozen };
    }
    case "deny": {
      if (click.look === true) return { outcome: "may_deny", approval };
      const denied = await deny(tx, ctx, approval, known(voter), {
        code: click.undo ? "undone" : decision.late ? "denied_late" : "denied",
        suggestedMinor: click.suggestedMinor ?? null,
      });
      return denied === null
        ? sent(tx, approval)
        : {
            outcome: "denied",
            approval: denied,
            late: decision.late,
            attempts: decision.late ? (await standingOf(tx, denied)).attempts : 0,
          };
    }
    case "expire":
      return ended(tx, await expireNow(tx, ctx, approval));
    case "none":
      return refuse(tx, decided, decision);
    default:
      return assertNever(decision, "decision on a click");
  }
}

/** What asks again after this one died with its own last vote. */
const successorIn = (tx: Tx, after: Approval): Promise<Approval["id"] | null> | null =>
  after.state === "VOIDED" ? successorOf(tx, after.id) : null;

/** A complete approval as it stands after whatever its vote began: released, dead, or waiting for a sibling that is asked about again. */
export async function asItStands(on: SqlRunner, outcome: DecideOutcome): Promise<DecideOutcome> {
  if (outcome.outcome !== "approved") return outcome;
  const approval = (await getApproval(on, outcome.approval.id)) ?? outcome.approval;
  const [{ waitsFor }, successorId] = await Promise.all([
    standingOf(on, approval),
    successorOf(on, approval.id),
  ]);
  return { ...outcome, approval, waitsFor, successorId };
}

async function refuse(
  tx: Tx,
  { approval, click }: Decided,
  decision: Extract<ClickDecision, { act: "none" }>,
): Promise<DecideOutcome> {
  switch (decision.because) {
    case "ended":
      return ended(tx, approval);
    case "already_sent":
      return sent(tx, approval);
    case "stale_card":
      return { outcome: "stale_card", approval };
    case "repeat_amount":
      return { outcome: "repeat_amount", approval, typed: click.repeatedAmount ?? null };
    case "already_voted":
      return { outcome: "already_voted", approval, at: decision.at, missing: decision.missing };
    case "refused":
      return { outcome: "refused", reason: decision.reason, sentence: decision.sentence, approval };
    case "bad_suggestion":
      return { outcome: "bad_suggestion", approval, sentence: decision.sentence };
    default:
      return assertNever(decision, "refusal of a click");
  }
}

async function ended(tx: Tx, approval: Approval): Promise<DecideOutcome> {
  return {
    outcome: "ended",
    approval,
    decision: decisionOf(approval),
    standing: await standingOf(tx, approval),
    successorId: await successorOf(tx, approval.id),
  };
}

async function sent(tx: Tx, approval: Approval): Promise<DecideOutcome> {
  const now = (await getApproval(tx, approval.id)) ?? approval;
  return {
    outcome: "already_sent",
    approval: now,
    decision: decisionOf(now),
    standing: await standingOf(tx, now),
  };
}

function voterOf(reading: Extract<PersonReading, { ok: true }>, click: AnyClick): Voter {
  const { person } = reading;
  const note = cutText((click.note ?? "").trim(), NOTE_MAX_CHARS);
  return {
    userId: click.userId,
    person: person.personKey,
    note: note === "" ? null : note,
    roleEvidence: person.roleEvidence,
    readAt: person.fetchedAt,
    cardVersion: click.cardVersion,
    seen: click.seen ?? null,
  };
}

function known(voter: Voter | null): Voter {
  if (voter === null) throw new Error("a click was accepted from somebody who could not be read");
  return voter;
}
