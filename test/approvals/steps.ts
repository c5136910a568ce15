/** Small questions and changes that the tests of this room share. */
import { getApproval, readTurn } from "../../src/approvals/index.js";
import { setClockOffset } from "../../src/db/clock.js";
import type { Db } from "../../src/db/connect.js";
import type { Approval } from "../../src/domain/approval.js";
import type { ApprovalId, OperationId } from "../../src/domain/ids.js";
import { waitFor } from "../support/wait.js";
import type { Held } from "./harness.js";

export const onlyApproval = (held: Held): Approval => approvalAt(held, 0);

export function approvalAt(held: Held, index: number): Approval {
  const approval = held.approvals[index];
  if (approval === undefined) throw new Error(`the turn has no approval ${index}`);
  return approval;
}

export function operationAt(held: Held, index: number): OperationId {
  const id = held.calls[index]?.operationId;
  if (id === undefined) throw new Error(`call ${index} has no operation`);
  return id;
}

/** Newest approval of each call's operation. */
export async function current(db: Db, held: Held): Promise<readonly Approval[]> {
  const all = await readTurn(db, held.turnId);
  return held.calls.flatMap(
    ({ operationId }) => all.findLast((each) => each.operationId === operationId) ?? [],
  );
}

export async function approvalNow(db: Db, id: ApprovalId): Promise<Approval> {
  const approval = await getApproval(db, id);
  if (approval === null) throw new Error(`no approval ${id}`);
  return approval;
}

export async function statusOf(db: Db, id: OperationId): Promise<string> {
  const [row] = await db.sql<{ status: string }>(undefined, "SELECT status FROM operations WHERE id = $1", [
    id,
  ]);
  return row?.status ?? "none";
}

export interface Balance {
  captured: number;
  reserved: number;
  refunded: number;
}

export async function balanceOf(db: Db, orderRef: string): Promise<Balance> {
  const [row] = await db.sql<Balance>(
    undefined,
    `SELECT p.captured::int, p.reserved::int, p.refunded::int FROM payments p JOIN orders o ON o.id = p.order_id WHERE o.ref = $1`,
    [orderRef],
  );
  if (row === undefined) throw new Error(`no payment of ${orderRef}`);
  return row;
}

export async function eventTypes(db: Db, id: OperationId): Promise<readonly string[]> {
  const rows = await db.sql<{ type: string }>(
    undefined,
    "SELECT type FROM operation_events WHERE operation_id = $1 ORDER BY seq",
    [id],
  );
  return rows.map((row) => row.type);
}

/** Moves the database's time; leases, deadlines and cooling-off are judged by it. */
export async function moveClock(db: Db, minutes: number): Promise<void> {
  await setClockOffset(db, minutes * 60_000);
}

/**
 * Holds an approval's row until `contenders` connections wait for it, then lets all go at once: a race that really races.
 * Each contender must use a connection of its own.
 */
export async function barrier<T>(
  db: Db,
  id: ApprovalId,
  contenders: readonly (() => Promise<T>)[],
): Promise<readonly T[]> {
  const started: Promise<T>[] = [];
  await db.tx(
    async (tx) => {
      await tx.sql(undefined, "SELECT 1 FROM approvals WHERE id = $1 FOR UPDATE", [id]);
      started.push(...contenders.map((contend) => contend()));
      await waitFor(
        async () => {
          const [row] = await db.sql<{ waiting: number }>(
            undefined,
            `SELECT count(*)::int AS waiting FROM pg_stat_activity
             WHERE datname = current_database() AND wait_event_type = 'Lock'`,
          );
          return (row?.waiting ?? 0) >= contenders.length;
        },
        { what: `${contenders.length} sessions that wait for the approval` },
      );
    },
    { retries: 0 },
  );
  return Promise.all(started);
}
