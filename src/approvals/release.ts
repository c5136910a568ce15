/**
 * Turn release: when the last call of a held turn is decided, everything approved (and everything that only waited for its
 * siblings) is prepared together, once.
 *
 * 1. Nothing of a turn is prepared while one of its approvals is undecided.
 * 2. World, policy and voters are compared with each binding in the transaction that prepares; voters are read before it and
 *    are at most 5 s old when they are judged.
 * 3. Drift kills that approval alone: its siblings' decisions stand, and wait for the new card.
 * 4. Locks: approvals, operations, orders, payments, totals' scopes; each kind in the order of its ids.
 * 5. What the caller writes about the release is written in that same transaction, last.
 * 6. It may be called any number of times, by any number of workers, and after any crash: what was prepared stays so.
 */
import type { Tx } from "../db/connect.js";
import type { Approval, Change } from "../domain/approval.js";
import { changesText } from "../domain/approval-words.js";
import { operationKey } from "../domain/identity.js";
import type { ApprovalId, OperationId, RunId, TurnId } from "../domain/ids.js";
import type { Policy } from "../domain/policy/policy.js";
import * as ledger from "../ledger/index.js";
import { voteFacts } from "./audit.js";
import { changesToJson } from "./binding-json.js";
import { comparePolicy, compareWorldAndVoters } from "./compare.js";
import type { ApprovalsContext } from "./context.js";
import { rearm, tellThread } from "./rearm.js";
import { expireNow } from "./record.js";
import { request } from "./request.js";
import { lockTurn, readTurn } from "./rows.js";
import { move, moveUnread } from "./transition.js";
import { CLICK_READING_MAX_AGE_MS, RELEASE_TRIES } from "./tunables.js";
import type { ReadPeople, ReleaseOutcome, TurnCall } from "./types.js";
import { readPeople, unsealedYes, yesVoters } from "./voters.js";
import { lockWorld } from "./world.js";

export interface HeldTurn {
  readonly runId: RunId;
  readonly turnId: TurnId;
  /** Every write call of the turn, in its order. */
  readonly calls: readonly TurnCall<ledger.Proposal>[];
}

/** A held turn that is known, or one that is read in the transaction that releases it; null: there is nothing to release. */
export type AskedTurn =
  | HeldTurn
  | { readonly turnId: TurnId; readonly read: (tx: Tx) => Promise<HeldTurn | null> };

/** Younger than it may be when it is judged: what is left is spent waiting for locks. */
const ASK_MAX_AGE_MS = CLICK_READING_MAX_AGE_MS / 2;

/** Votes or readings changed between reading people and holding the locks. */
class ReadAgain extends Error {}

/** Whether enough votes count cannot be known now; its message says why. */
class VotersUnreadable extends Error {}

export interface ReleaseMore {
  /** Read just now: tried before anybody is read again. */
  readonly people?: ReadPeople | null;
  /** The transaction to join. Nobody is read in it: without everybody in `people`, and lately, it throws. */
  readonly join?: Tx;
  /** What the caller writes about a released turn; runs again when the transaction does. Rows of runs come last. */
  readonly onReleased?: (tx: Tx, calls: readonly ledger.PerCall[]) => Promise<void>;
}

/** Releases a turn whose approvals are decided; says what it still waits for otherwise. */
export async function releaseTurn(
  ctx: ApprovalsContext,
  turn: AskedTurn,
  { people = null, join, onReleased = async () => {} }: ReleaseMore = {},
): Promise<ReleaseOutcome<ledger.PerCall>> {
  const release = async (tx: Tx, voters: ReadPeople): Promise<ReleaseOutcome<ledger.PerCall>> => {
    const outcome = await releaseIn(tx, ctx, turn, voters);
    if (outcome.outcome !== "released") return outcome;
    // The approvals' rows are asked for first: those of runs come last.
    await Promise.all([outcome.mark(), onReleased(tx, outcome.calls)]);
    return { outcome: "released", calls: outcome.calls };
  };
  if (join !== undefined && people !== null) return release(join, people);
  for (let tries = 1; tries <= RELEASE_TRIES; tries += 1) {
    const voters = tries === 1 && people !== null ? people : await readVotersOf(ctx, turn);
    try {
      return await ctx.db.tx((tx) => release(tx, voters));
    } catch (error) {
      if (error instanceof VotersUnreadable) return { outcome: "voters_unreadable", reason: error.message };
      if (!(error instanceof ReadAgain)) throw error;
    }
  }
  return { outcome: "voters_unreadable", reason: "people could not be read in time" };
}

async function readVotersOf(ctx: ApprovalsContext, turn: Pick<HeldTurn, "turnId">): Promise<ReadPeople> {
  const before = await readTurn(ctx.db, turn.turnId);
  const complete = before.filter((approval) => approval.state === "APPROVED");
  const readAt = ctx.clock.now().getTime();
  return { readAt, readings: await readPeople(ctx.directory, complete.flatMap(yesVoters), ASK_MAX_AGE_MS) };
}

type Unreleased = Exclude<ReleaseOutcome<ledger.PerCall>, { outcome: "released" }>;
/** `mark` writes the approvals' own rows. */
interface Released {
  readonly outcome: "released";
  readonly calls: readonly ledger.PerCall[];
  readonly mark: () => Promise<void>;
}

async function releaseIn(
  tx: Tx,
  ctx: ApprovalsContext,
  asked: AskedTurn,
  people: ReadPeople,
): Promise<Released | Unreleased> {
  const [locked, policy, known] = await Promise.all([
    lockTurn(tx, asked.turnId),
    ctx.activePolicy(tx),
    "read" in asked ? asked.read(tx) : asked,
  ]);
  if (known === null) return { outcome: "still_held", waiting: [], rearmed: [] };
  const approvals = await expireOverdue(tx, ctx, locked);
  const turn = withOperations(known, approvals);
  const undecided = idsOf(approvals, "PENDING");
  if (undecided.length > 0) return { outcome: "still_held", waiting: undecided, rearmed: [] };

  const complete = approvals.filter((approval) => approval.state === "APPROVED");
  if (complete.some((approval) => yesVoters(approval).some((id) => !people.readings.has(id)))) {
    throw new ReadAgain();
  }
  lockWorld(tx, operationIds(turn), orderRefs(turn));
  // Asked for together: what the ledger locks first, the comparison has locked; what it writes first waits for the comparison.
  const comparing = compareAll(tx, ctx, complete, { policy, people });
  const [, outcome] = await Promise.all([comparing, prepareAll(tx, ctx, turn, approvals, comparing)]);
  for (const approval of complete) await tellUnsealed(tx, ctx, approval);
  if (outcome.outcome === "released") await tellLeftOut(tx, ctx, turn, complete);
  return outcome;
}

/** On-call hears of what people approved and no call of its turn names any more: with the turn gone on, nobody would send it or ask again. */
async function tellLeftOut(
  tx: Tx,
  ctx: ApprovalsContext,
  turn: HeldTurn,
  complete: readonly Approval[],
): Promise<void> {
  const named = new Set(operationIds(turn));
  for (const approval of complete) {
    if (named.has(approval.operationId)) continue;
    const problem = "it was approved, and the call that had asked for it is about something else";
    await tellChanged(tx, ctx, approval, `${approval.id}:left_out`, problem);
  }
}

/** On-call hears of votes that count for nothing because nobody sealed them, once for each approval. */
async function tellUnsealed(tx: Tx, ctx: ApprovalsContext, approval: Approval): Promise<void> {
  if (unsealedYes(approval, ctx.ledger.seals).length === 0) return;
  await tellChanged(tx, ctx, approval, approval.id, ledger.UNSEALED_VOTE);
}

/** A finding about rows that somebody changed, once under its name. */
const tellChanged = (
  tx: Tx,
  ctx: ApprovalsContext,
  { operationId }: Approval,
  name: string,
  problem: string,
): Promise<unknown> =>
  ledger.openIncident(tx, ctx.ledger, {
    kind: "row_changed",
    dedupeKey: `row_changed:${name}`,
    operationId,
    paymentId: null,
    detail: { problems: [problem] },
  });

/** A call that was ready at first and held at an earlier release has an operation by now, which its caller may not know. */
function withOperations(turn: HeldTurn, approvals: readonly Approval[]): HeldTurn {
  // What the filer's confirmation let go is proposed anew: its old operation is not the call's any more.
  const current = approvals.filter(({ endCode }) => endCode !== "binding_confirmed");
  const byKey = new Map(current.map(({ binding, operationId }) => [operationKey(binding), operationId]));
  const calls = turn.calls.map((call) => {
    const operationId = "proposal" in call ? byKey.get(operationKey(call.proposal.intent)) : undefined;
    return operationId === undefined ? call : { callId: call.callId, operationId };
  });
  return { ...turn, calls };
}

/** The deadline holds here too, sweep or no sweep. A decided approval no longer expires. */
async function expireOverdue(
  tx: Tx,
  ctx: ApprovalsContext,
  approvals: readonly Approval[],
): Promise<readonly Approval[]> {
  if (!approvals.some((approval) => approval.state === "PENDING")) return approvals;
  const [row] = await tx.sql<{ now: Date }>("approvals.now", "SELECT countersign_now() AS now");
  const now = row?.now ?? new Date(0);
  const after: Approval[] = [];
  for (const approval of approvals) {
    const overdue = approval.state === "PENDING" && now >= approval.expiresAt;
    after.push(overdue ? await expireNow(tx, ctx, approval) : approval);
  }
  return after;
}

/** What differs from each complete approval's binding. */
type Compared = ReadonlyMap<ApprovalId, readonly Change[]>;

/**
 * World and voters of every complete approval, before anything is reserved here. What a sibling set aside before the card was
 * made is part of what the card showed, so nothing of the turn is left out of the balance. @throws where nothing may be prepared on it
 */
async function compareAll(
  tx: Tx,
  ctx: ApprovalsContext,
  complete: readonly Approval[],
  { policy, people }: { readonly policy: Policy; readonly people: ReadPeople },
): Promise<Compared> {
  const present = { policy, readings: people.readings, together: [] };
  const each = await Promise.all(
    complete.map(async (approval) => ({
      ...(await compareWorldAndVoters(tx, ctx, approval, present)),
      id: approval.id,
    })),
  );
  // Looked at after the wait for the locks and after they were judged.
  if (
    complete.length > 0 &&
    ctx.clock.now().getTime() - people.readAt > CLICK_READING_MAX_AGE_MS - ASK_MAX_AGE_MS
  ) {
    throw new ReadAgain();
  }
  const unreadable = each.find((one) => one.unreadable !== null)?.unreadable ?? null;
  if (unreadable !== null) throw new VotersUnreadable(unreadable);
  return new Map(each.map(({ id, changes }) => [id, changes]));
}

/**
 * Asks the ledger to prepare the turn. Where it finds drift, those approvals die and it prepares nothing; if none of them
 * asks again, what is left is prepared in another pass. Each such pass ends an approval, so it ends.
 */
async function prepareAll(
  tx: Tx,
  ctx: ApprovalsContext,
  turn: HeldTurn,
  locked: readonly Approval[],
  comparing: Promise<Compared>,
): Promise<Released | Unreleased> {
  const rearmed: ApprovalId[] = [];
  let approvals = locked;
  const released = (calls: readonly ledger.PerCall[]): Released => {
    const known = approvals;
    return { outcome: "released", calls, mark: () => markReleased(tx, ctx, known, calls) };
  };
  for (let pass = 0; pass <= turn.calls.length; pass += 1) {
    const found = new Map<OperationId, readonly Change[]>();
    const calls = await ledger.prepareTurn(tx, ctx.ledger, {
      calls: entriesOf(turn, approvals, comparing, found),
      judge: ctx.judge,
      onHold: async (on, held) => {
        const armed = await request(on, ctx, {
          operation: held.operation,
          judgement: held.judgement,
          runId: turn.runId,
          turnId: turn.turnId,
          ticketId: held.operation.ticketId,
        });
        rearmed.push(armed.id);
      },
    });
    await bury(tx, ctx, { approvals, calls, worldChanges: await comparing, found, rearmed });
    const drifted = calls.some((call) => call.outcome === "drifted");
    const held = calls.some((call) => call.outcome === "held");
    if (!drifted && !held && rearmed.length === 0) {
      return released(calls);
    }
    approvals = await readTurn(tx, turn.turnId);
    const waiting = idsOf(approvals, "PENDING");
    if (waiting.length > 0 || held) return { outcome: "still_held", waiting, rearmed };
    if (!drifted) {
      return released(calls);
    }
  }
  throw new Error(`turn ${turn.turnId} finds new drift in every pass`);
}

function entriesOf(
  turn: HeldTurn,
  approvals: readonly Approval[],
  comparing: Promise<Compared>,
  found: Map<OperationId, readonly Change[]>,
): readonly ledger.TurnEntry[] {
  const entries: ledger.TurnEntry[] = [];
  for (const call of turn.calls) {
    if ("proposal" in call) {
      entries.push(call);
      continue;
    }
    const { callId, operationId } = call;
    const approval = approvals.find((each) => each.operationId === operationId && each.state === "APPROVED");
    entries.push(
      approval === undefined
        ? { callId, operationId, approval: null, bindingConfirmed: true }
        : {
            callId,
            operationId,
            bindingConfirmed: !approval.binding.bindingUnconfirmed,
            approval: {
              approvalId: approval.id,
              approvedBy: yesVoters(approval),
              votes: voteFacts(approval),
              accepts: async (_tx, { judgement }) => {
                const changes = [
                  ...((await comparing).get(approval.id) ?? []),
                  ...comparePolicy(approval, judgement, siblingEnded(approvals, operationId)),
                ];
                if (changes.length === 0) return { holds: true };
                found.set(operationId, changes);
                return { holds: false, changes: changesToJson(changes) };
              },
            },
          },
    );
  }
  return entries;
}

/** Another call of this turn was counted when this one was judged, and does not go ahead. */
function siblingEnded(approvals: readonly Approval[], operationId: OperationId): boolean {
  const open = new Set(approvals.filter((each) => OPEN.has(each.state)).map((each) => each.operationId));
  return approvals.some((each) => each.operationId !== operationId && !open.has(each.operationId));
}

const OPEN: ReadonlySet<string> = new Set(["PENDING", "APPROVED", "RELEASED"]);

interface Answered {
  readonly approvals: readonly Approval[];
  readonly calls: readonly ledger.PerCall[];
  /** What differed before the ledger was asked, and what it was told differs. */
  readonly worldChanges: Compared;
  readonly found: ReadonlyMap<OperationId, readonly Change[]>;
  readonly rearmed: ApprovalId[];
}

/** Approvals whose binding does not hold die, and so do those whose operation the ledger had to end. */
async function bury(tx: Tx, ctx: ApprovalsContext, answered: Answered): Promise<void> {
  const { approvals, calls, worldChanges, found, rearmed } = answered;
  const dead = new Set<ApprovalId>();
  for (const call of calls) {
    if (call.outcome !== "drifted" && call.outcome !== "ended") continue;
    const { operation } = call;
    const approval = approvals.find(
      (each) => each.operationId === operation.id && each.state === "APPROVED" && !dead.has(each.id),
    );
    if (approval === undefined) continue;
    dead.add(approval.id);
    if (call.outcome === "ended") {
      const why = operation.result?.detail ?? "";
      // What the ledger says of too little being left names the figure that the change would name again.
      const changes = (worldChanges.get(approval.id) ?? []).filter(
        ({ what }) => what !== "refundable" || operation.result?.code !== "insufficient",
      );
      const endDetail = [changesText(changes), why].join(" ").trim();
      await move(tx, ctx, approval, { to: "VOIDED", endCode: "drift", endDetail });
      await tellThread(tx, ctx, approval, null);
      continue;
    }
    const changes = found.get(operation.id) ?? [];
    const next = await rearm(tx, ctx, { approval, operation, judgement: call.judgement, changes });
    if (next !== null) rearmed.push(next.id);
  }
}

async function markReleased(
  tx: Tx,
  ctx: ApprovalsContext,
  approvals: readonly Approval[],
  calls: readonly ledger.PerCall[],
): Promise<void> {
  const prepared = calls.flatMap((call) => (call.outcome === "prepared" ? [call.operation.id] : []));
  await Promise.all(
    approvals
      .filter(({ state, operationId }) => state === "APPROVED" && prepared.includes(operationId))
      .map((approval) => moveUnread(tx, ctx, approval, { to: "RELEASED", releasedWith: prepared })),
  );
}

const idsOf = (approvals: readonly Approval[], state: Approval["state"]): ApprovalId[] =>
  approvals.filter((approval) => approval.state === state).map((approval) => approval.id);

const operationIds = (turn: HeldTurn): OperationId[] =>
  turn.calls.flatMap((call) => ("operationId" in call ? [call.operationId] : []));

const orderRefs = (turn: HeldTurn): string[] =>
  turn.calls.flatMap((call) =>
    "proposal" in call && call.proposal.intent.orderRef !== null ? [call.proposal.intent.orderRef] : [],
  );
