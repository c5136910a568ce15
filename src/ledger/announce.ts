/** Making people see where an operation stands, in the transaction of the change; and waking who waits, after it. */
import type { Tx } from "../db/connect.js";
import type { RunId, TicketId } from "../domain/ids.js";
import type { Operation, OperationStatus } from "../domain/operation.js";
import type { LedgerCtx } from "./context.js";
import { closeSettledWord } from "./settled-word.js";
import { touchBeside } from "./told-beside.js";
import type { Party } from "./transition.js";

/** $1 operation. Read after the row's lock is held: who joined before is seen. */
const WAITERS = `
SELECT run_id AS "runId", ticket_id AS "ticketId" FROM operation_waiters WHERE operation_id = $1 ORDER BY joined_at, run_id`;

/** Ends that an approval's own card in the owner's thread tells already. */
const TOLD_BY_CARD: ReadonlySet<OperationStatus> = new Set(["DENIED", "EXPIRED", "VOIDED"]);

/**
 * Call after a transition. Ends are told in the threads of everybody who waits; an open outcome is told once; cards are
 * rendered anew; the runs that wait become due, and are woken after commit. Who waits, and whose card shows it, is read here unless
 * that is known.
 */
export async function announce(
  tx: Tx,
  ctx: LedgerCtx,
  change: {
    operation: Operation;
    from: OperationStatus;
    waiters?: readonly Party[];
    shownBy?: readonly RunId[];
  },
): Promise<void> {
  const { operation, from } = change;
  const waiters = change.waiters ?? (await tx.sql<Party>("ledger.parties", WAITERS, [operation.id]));
  if (operation.approvalId !== null) {
    await ctx.notices.touch(tx, { kind: "approval", id: operation.approvalId });
  }
  if (operation.status === "QUARANTINED" && from !== "QUARANTINED") {
    await ctx.notices.repost(tx, { kind: "quarantine", id: operation.id });
  } else if (from === "QUARANTINED") {
    await ctx.notices.touch(tx, { kind: "quarantine", id: operation.id });
  } else if (mayHaveBeenParked(operation, from)) {
    await ctx.notices.follow(tx, { kind: "quarantine", id: operation.id });
  }
  await touchBeside(tx, ctx, change);
  // What was opened again is settled by the reconciler, by a person, or by an answer to one more attempt.
  if (from !== "DISPATCHED" || operation.attempts > 1) await closeSettledWord(tx, ctx, operation);
  const tickets = threadsFor(operation, from, waiters);
  const message = messageFor(operation, from);
  if (message !== null) {
    for (const ticketId of tickets) await ctx.notices.thread(tx, { ticketId, ...message });
  }
  if (!settles(operation, from)) return;
  const shownBy = change.shownBy ?? (await askShownBy(tx, ctx, operation, from));
  for (const id of shownBy) await ctx.notices.follow(tx, { kind: "run", id });
  await ctx.hooks.onSettled(tx, operation);
  for (const run of runsOf(operation, waiters)) tx.afterCommit(() => void ctx.wake("run", run));
}

/**
 * The card of a run tells each step as it stands, also when the run is long over. A run that waits for a first answer is woken and
 * shows it by itself; one that has ended is woken for nothing.
 */
export const askShownBy = (
  tx: Tx,
  ctx: Pick<LedgerCtx, "hooks">,
  operation: Operation,
  from: OperationStatus,
): Promise<readonly RunId[]> => ctx.hooks.runsShowing(tx, operation, from === "DISPATCHED" ? "ended" : "all");

/** Its card in the ops channel goes on with it to the end: what was parked was sent again since, looked at again, or had ended. */
const mayHaveBeenParked = ({ attempts }: Operation, from: OperationStatus): boolean =>
  attempts > 1 || from === "RECONCILING" || from === "CONFIRMED" || from === "REJECTED";

function threadsFor(
  operation: Operation,
  from: OperationStatus,
  waiters: readonly Party[],
): readonly TicketId[] {
  const owner = operation.ticketId;
  // The row names its approval only once that has let it go; what waited for one has its card as well.
  const hasCard = from === "AWAITING_APPROVAL" || operation.approvalId !== null;
  const others = new Set(waiters.map(({ ticketId }) => ticketId));
  const tellOwner = owner !== null && !(TOLD_BY_CARD.has(operation.status) && hasCard);
  if (owner !== null) others.delete(owner);
  return tellOwner ? [owner, ...others] : [...others];
}

function messageFor(
  operation: Operation,
  from: OperationStatus,
): { key: string; message: Parameters<LedgerCtx["notices"]["thread"]>[1]["message"] } | null {
  const operationId = operation.id;
  switch (operation.status) {
    case "AWAITING_APPROVAL":
    case "PREPARED":
    case "DISPATCHED":
    case "RECONCILING":
      return null;
    case "OUTCOME_UNKNOWN":
      // Once for an operation, however often it is looked at.
      return {
        key: `operation:${operationId}:checking`,
        message: { type: "operation_being_checked", operationId },
      };
    case "QUARANTINED":
      // A person's word about what is parked parks it no second time.
      if (from === "QUARANTINED") return null;
      // Once, however often reconciling gives up; anew when what had ended is open again.
      return {
        key: `operation:${operationId}:quarantined${from === "RECONCILING" ? "" : `:${operation.version}`}`,
        message: {
          type: "operation_outcome",
          operationId,
          ...(from === "CONFIRMED" || from === "REJECTED" ? { was: from } : {}),
        },
      };
    default:
      return {
        key: `operation:${operationId}:${operation.status}:${operation.version}`,
        message: { type: "operation_outcome", operationId },
      };
  }
}

/** The runs that wait have something new to look at. */
const settles = (operation: Operation, from: OperationStatus): boolean =>
  operation.status !== "RECONCILING" &&
  operation.status !== "DISPATCHED" &&
  !(operation.status === "OUTCOME_UNKNOWN" && from === "RECONCILING");

function runsOf(operation: Operation, waiters: readonly Party[]): readonly RunId[] {
  const runs = new Set(waiters.map(({ runId }) => runId));
  if (operation.ownerRunId !== null) runs.add(operation.ownerRunId);
  return [...runs];
}
