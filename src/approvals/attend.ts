/**
 * Looking after pending approvals: whether anybody could decide, reminders, escalation, the deadline.
 *
 * 1. `due_at` is when somebody must look again; decided approvals have none, so nobody is reminded of them.
 * 2. Missed reminders are not made up for one by one: after a pause the present one is sent.
 * 3. The deadline holds at the click and at the release as well; the sweep only makes it visible.
 */
import type { Tx } from "../db/connect.js";
import type { Approval } from "../domain/approval.js";
import { missingVotes } from "../domain/approval-click.js";
import type { ApprovalId } from "../domain/ids.js";
import { canBeDecided } from "../domain/policy/people.js";
import { ONCALL_ROLE, type Policy } from "../domain/policy/policy.js";
import type { Person } from "../domain/ports/directory.js";
import type { ApprovalsContext } from "./context.js";
import { expireNow } from "./record.js";
import { getApproval, lockWithSiblings } from "./rows.js";
import {
  ATTEND_RETRY_MS,
  GATE_MEMBERS_READ,
  GATE_READING_MAX_AGE_MS,
  GATE_RECHECK_MS,
  GATE_RETRY_MS,
} from "./tunables.js";

// $1 rows. Pending, and nobody would look before it is too late: nothing of ours takes that away or puts it off beyond the deadline.
const FORGOTTEN = `
UPDATE approvals a SET due_at = countersign_now()
FROM (SELECT f.id FROM approvals f WHERE f.state = 'PENDING' AND (f.due_at IS NULL OR f.due_at > f.expires_at) LIMIT $1::int) x
WHERE a.id = x.id RETURNING a.id`;

/** Attends to up to `limit` approvals that are due, oldest first. Returns how many were looked at. */
export async function attendDue(ctx: ApprovalsContext, options: { limit: number }): Promise<number> {
  const forgotten = await ctx.db.sql<{ id: ApprovalId }>("approvals.forgotten", FORGOTTEN, [options.limit]);
  if (forgotten.length > 0)
    ctx.log.error(
      { approvals: forgotten.map(({ id }) => id) },
      "when these approvals are due was changed in the database; they are looked at now",
    );
  const due = await ctx.db.sql<{ id: ApprovalId }>(
    "approvals.due",
    `SELECT id FROM approvals WHERE due_at IS NOT NULL AND due_at <= countersign_now() ORDER BY due_at, id LIMIT $1`,
    [options.limit],
  );
  for (const { id } of due) {
    try {
      await attendOne(ctx, id);
    } catch (error) {
      ctx.log.error(
        { approvalId: id, err: error },
        "an approval could not be attended to; it is left for later",
      );
      await ctx.db.sql("approvals.postpone", POSTPONE, [id, ATTEND_RETRY_MS]);
    }
  }
  return due.length;
}

// $1 id, $2 milliseconds.
const POSTPONE = `UPDATE approvals SET due_at = countersign_now() + make_interval(secs => $2::float8 / 1000)
WHERE id = $1 AND due_at IS NOT NULL`;

/** Does what is due for one approval, and says when to look again. Harmless for one that is decided or unknown. */
export async function attendOne(ctx: ApprovalsContext, id: ApprovalId): Promise<void> {
  const seen = await getApproval(ctx.db, id);
  if (seen === null || seen.state !== "PENDING") return;
  const policy = await ctx.activePolicy(ctx.db);
  const filers = await askedBy(ctx, seen);
  const known = seen.gate?.satisfiable === true && filers.length === seen.binding.filers.length;
  const gate = known ? seen.gate : await lookAtGate(ctx, seen, { policy, filers });
  await ctx.db.tx(async (tx) => {
    const approval = (await lockWithSiblings(tx, id)).find((candidate) => candidate.id === id);
    if (approval?.state !== "PENDING") return;
    const now = await timeOf(tx);
    if (now >= approval.expiresAt) {
      await expireNow(tx, ctx, approval);
      return;
    }
    if (gate !== null && gate.satisfiable !== approval.gate?.satisfiable) {
      await recordGate(tx, ctx, approval, gate);
    }
    const number = await remindIfDue(tx, ctx, approval, policy, now);
    const next = nextLook(approval, policy, { number, gate, now });
    await tx.sql(
      "approvals.attended",
      "UPDATE approvals SET due_at = $2, reminders_sent = $3 WHERE id = $1",
      [id, next, number],
    );
  });
}

async function timeOf(tx: Tx): Promise<Date> {
  const [row] = await tx.sql<{ now: Date }>("approvals.now", "SELECT countersign_now() AS now");
  if (row === undefined) throw new Error("the database did not tell the time");
  return row.now;
}

/** Whoever asked for it: when it was held, and since. */
async function askedBy(ctx: Pick<ApprovalsContext, "db">, approval: Approval): Promise<readonly string[]> {
  const [row] = await ctx.db.sql<{ filers: string[] }>(
    "approvals.asked_by",
    "SELECT filers FROM operations WHERE id = $1",
    [approval.operationId],
  );
  return [...new Set([...approval.binding.filers, ...(row?.filers ?? [])])];
}

type Gate = NonNullable<Approval["gate"]>;

/** Whether enough people could decide this now; null: the directory cannot say. */
async function lookAtGate(
  ctx: Pick<ApprovalsContext, "directory">,
  approval: Approval,
  { policy, filers }: { readonly policy: Policy; readonly filers: readonly string[] },
): Promise<Gate | null> {
  const members = await ctx.directory.members(approval.role, { maxAgeMs: GATE_READING_MAX_AGE_MS });
  if (!members.ok) return null;
  const { binding } = approval;
  const decision = {
    need: { ...binding.policy, selfApproval: binding.policy.selfApproval && policy.approvals.selfApproval },
    amountMinor: binding.amountMinor,
    currency: binding.currency,
    filers,
    voters: approval.votes.map((vote) => vote.person),
  };
  const people: Person[] = [];
  let everybodyRead = members.userIds.length <= GATE_MEMBERS_READ;
  for (const userId of members.userIds.slice(0, GATE_MEMBERS_READ)) {
    const reading = await ctx.directory.person(userId, { maxAgeMs: GATE_READING_MAX_AGE_MS });
    if (reading.ok) people.push(reading.person);
    else everybodyRead = false;
    if (canBeDecided(people, decision, missingVotes(approval), policy).possible) return { satisfiable: true };
  }
  const verdict = canBeDecided(people, decision, missingVotes(approval), policy);
  if (verdict.possible) return { satisfiable: true };
  return everybodyRead ? { satisfiable: false, sentence: verdict.sentence } : null;
}

async function recordGate(
  tx: Tx,
  ctx: Pick<ApprovalsContext, "notices">,
  approval: Approval,
  gate: Gate,
): Promise<void> {
  const { id, role, ticketId } = approval;
  await tx.sql(
    "approvals.gate",
    "UPDATE approvals SET gate = $2::jsonb, updated_at = countersign_now() WHERE id = $1",
    [id, JSON.stringify(gate)],
  );
  await ctx.notices.touch(tx, { kind: "approval", id });
  if (gate.satisfiable) return;
  const { sentence } = gate;
  const key = `gate_unsatisfiable:${id}`;
  await ctx.notices.approvers(tx, {
    approvalId: id,
    key,
    message: { type: "gate_unsatisfiable", role, sentence },
  });
  if (ticketId === null) return;
  await ctx.notices.thread(tx, {
    ticketId,
    key,
    message: { type: "gate_unsatisfiable", approvalId: id, role, sentence },
  });
}

/** Sends the reminder that is due, if one is. Returns how many are behind us now. */
async function remindIfDue(
  tx: Tx,
  ctx: Pick<ApprovalsContext, "notices">,
  approval: Approval,
  policy: Policy,
  now: Date,
): Promise<number> {
  const { id, role } = approval;
  const number = reminderTimes(approval, policy).filter((time) => time <= now).length;
  if (number <= approval.remindersSent) return approval.remindersSent;
  const escalatedTo = escalationOf(role, policy, number);
  await ctx.notices.approvers(tx, {
    approvalId: id,
    key: `reminder:${id}:${number}`,
    message: { type: "approval_reminder", number, role, escalatedTo },
  });
  if (escalatedTo === ONCALL_ROLE) await ctx.notices.repost(tx, { kind: "escalation", id });
  return number;
}

function reminderTimes(approval: Approval, policy: Policy): Date[] {
  return policy.approvals.remindAfterMinutes
    .map((minutes) => new Date(approval.createdAt.getTime() + minutes * 60_000))
    .filter((time) => time < approval.expiresAt);
}

/** The role that the n-th reminder turns to beside the approvers' own: the next of the policy's list, at last its last. */
function escalationOf(role: string, policy: Policy, number: number): string | null {
  const others = policy.approvals.escalateTo.filter((other) => other !== role);
  return others[Math.min(number, others.length) - 1] ?? null;
}

function nextLook(
  approval: Approval,
  policy: Policy,
  seen: { number: number; gate: Gate | null; now: Date },
): Date {
  const reminder = reminderTimes(approval, policy)[seen.number];
  const again = seen.gate === null ? GATE_RETRY_MS : seen.gate.satisfiable ? null : GATE_RECHECK_MS;
  const times = [
    approval.expiresAt.getTime(),
    ...(reminder === undefined ? [] : [reminder.getTime()]),
    ...(again === null ? [] : [seen.now.getTime() + again]),
  ];
  return new Date(Math.min(...times));
}
