/** What a decision writes. Every function expects the approval (and its siblings) locked and read by its caller. */
import type { Tx } from "../db/connect.js";
import type { Approval, ApprovalEndCode } from "../domain/approval.js";
import { formatMoney } from "../domain/money.js";
import * as ledger from "../ledger/index.js";
import { voteFacts } from "./audit.js";
import type { ApprovalsContext } from "./context.js";
import { getApproval } from "./rows.js";
import { sealOfVote } from "./seals.js";
import { move, moveUntold, tellTurn } from "./transition.js";
import type { DecideClick, ReadPeople } from "./types.js";

/** A person who decides, as they were read for this click. */
export interface Voter {
  readonly userId: string;
  readonly person: string;
  readonly note: string | null;
  /** Which list or group gave each of their roles. */
  readonly roleEvidence: Readonly<Record<string, string>>;
  readonly readAt: Date;
  readonly cardVersion: number | null;
  readonly seen: DecideClick["seen"] | null;
}

export type RecordContext = Pick<ApprovalsContext, "ids" | "notices" | "hooks" | "wake" | "ledger">;

/** Whatever kept a turn from being released with its last vote: nothing was written, and the vote goes alone. */
export class NotAtOnce extends Error {}

/**
 * Stores a yes; `completes` says that it was the last one needed. `waitsFor`: undecided siblings of the turn. `decides`: everybody whose
 * yes the turn needs, as read just now, where this vote leaves nobody of it undecided.
 */
export async function vote(
  tx: Tx,
  ctx: RecordContext,
  approval: Approval,
  voter: Voter,
  { completes, decides }: { readonly completes: boolean; readonly decides: ReadPeople | null },
): Promise<{ approval: Approval; waitsFor: number }> {
  // Its row is asked for first; the log is told while everything else is asked for.
  const stored = storeVote(tx, ctx, approval, voter, "approve");
  const { releaseDecided } = ctx.hooks;
  const { runId, turnId } = approval;
  if (decides !== null && releaseDecided !== undefined && runId !== null && turnId !== null) {
    const [, released] = await Promise.all([
      moveUntold(tx, approval, { to: "APPROVED" }),
      releaseDecided(tx, { runId, turnId, people: decides }).catch((cause: unknown) => {
        throw new NotAtOnce("a turn could not be released with its last vote", { cause });
      }),
      stored,
    ]);
    let waitsFor = 0;
    if (!released) {
      await ctx.notices.touch(tx, { kind: "approval", id: approval.id });
      // A sibling that no longer held is asked about again.
      waitsFor = await tellTurn(tx, ctx, approval);
    }
    // Released by now, or dead because it no longer held: whoever clicked is told which.
    return { approval: (await getApproval(tx, approval.id)) ?? approval, waitsFor };
  }
  if (completes) {
    const [after, waitsFor] = await Promise.all([
      move(tx, ctx, approval, { to: "APPROVED" }),
      tellTurn(tx, ctx, approval),
      stored,
    ]);
    return { approval: after, waitsFor };
  }
  const [after] = await Promise.all([
    getApproval(tx, approval.id),
    ctx.notices.touch(tx, { kind: "approval", id: approval.id }),
    stored,
  ]);
  return { approval: after ?? approval, waitsFor: 0 };
}

/** Stores a no and ends the operation. null: the operation has left; nothing was written. */
export async function deny(
  tx: Tx,
  ctx: RecordContext,
  approval: Approval,
  voter: Voter,
  how: {
    code: Extract<ApprovalEndCode, "denied" | "denied_late" | "undone">;
    suggestedMinor: bigint | null;
  },
): Promise<Approval | null> {
  const detail = denialSentence(approval, voter.note, how);
  const ending = await ledger.deny(tx, ctx.ledger, {
    operationId: approval.operationId,
    actor: `slack:${voter.userId}`,
    code: how.code,
    detail,
    // The votes that this no overrules; the no itself is the event's actor.
    approval: { approvalId: approval.id, votes: voteFacts(approval) },
  });
  if (!ending.moved) return null;
  await storeVote(tx, ctx, approval, voter, "deny");
  const after = await move(tx, ctx, approval, {
    to: "DENIED",
    endCode: how.code,
    endDetail: detail,
    denyNote: voter.note,
    suggestedMinor: how.suggestedMinor,
  });
  await tellTurn(tx, ctx, after);
  return after;
}

/** What the agent and the thread are told of a no; who said it stands on the card. */
function denialSentence(
  approval: Approval,
  note: string | null,
  how: { code: string; suggestedMinor: bigint | null },
): string {
  const { currency } = approval.binding;
  const said =
    how.code === "undone"
      ? "A person took the approval back before anything was carried out."
      : "A person denied this.";
  return [
    said,
    ...(note === null ? [] : [`Their note: "${note}"${/[.!?…]$/u.test(note) ? "" : "."}`]),
    ...(how.suggestedMinor === null
      ? []
      : [`They suggest ${formatMoney({ amountMinor: how.suggestedMinor, currency })} instead.`]),
  ].join(" ");
}

/** The deadline is past and nobody decided: EXPIRED, which is not a no. */
export async function expireNow(tx: Tx, ctx: RecordContext, approval: Approval): Promise<Approval> {
  const detail = `Nobody decided in time; ${approval.votes.length} of ${approval.approversNeeded} approvals were given.`;
  const ending = await ledger.expire(tx, ctx.ledger, {
    operationId: approval.operationId,
    actor: "system:approvals",
    code: "expired",
    detail,
    approval: { approvalId: approval.id, votes: voteFacts(approval) },
  });
  const after = ending.moved
    ? await move(tx, ctx, approval, { to: "EXPIRED", endCode: "expired", endDetail: detail })
    : await move(tx, ctx, approval, {
        to: "VOIDED",
        endCode: "superseded",
        endDetail: "Its operation ended otherwise.",
      });
  await tellTurn(tx, ctx, after);
  return after;
}

async function storeVote(
  tx: Tx,
  ctx: Pick<ApprovalsContext, "ids" | "ledger">,
  approval: Approval,
  voter: Voter,
  verdict: "approve" | "deny",
): Promise<void> {
  const cardVersion = voter.cardVersion ?? approval.cardVersion;
  const given = { userId: voter.userId, person: voter.person, role: approval.role, cardVersion };
  tx.later("approvals.vote", VOTE, [
    ctx.ids.next("vote_"),
    approval.id,
    voter.person,
    voter.userId,
    verdict,
    voter.note,
    approval.role,
    JSON.stringify({ by: voter.roleEvidence[approval.role] ?? null, readAt: voter.readAt.toISOString() }),
    cardVersion,
    voter.seen === null || voter.seen === undefined ? null : JSON.stringify(voter.seen),
    verdict === "approve" ? sealOfVote(ctx.ledger.seals, approval, given) : null,
  ]);
  await ledger.recordVote(tx, {
    approvalId: approval.id,
    userId: voter.userId,
    verdict,
    role: approval.role,
    cardVersion,
  });
}

// $1 id, $2 approval, $3 person, $4 user id, $5 verdict, $6 note, $7 role, $8 evidence, $9 card version, $10 where it was, $11 seal.
// One vote a person: a later no replaces their yes, a later yes replaces nothing.
const VOTE = `
INSERT INTO votes (id, approval_id, person, user_id, verdict, note, role, role_evidence, card_version, seen, seal)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8::jsonb, $9, $10::jsonb, $11)
ON CONFLICT (approval_id, person) DO UPDATE SET user_id = EXCLUDED.user_id, verdict = EXCLUDED.verdict, note = EXCLUDED.note,
  role_evidence = EXCLUDED.role_evidence, card_version = EXCLUDED.card_version, seen = EXCLUDED.seen, seal = EXCLUDED.seal, at = countersign_now()
WHERE votes.verdict = 'approve' AND EXCLUDED.verdict = 'deny'`;
