/**
 * The one clock of the product, read in SQL. Leases, due times and windows are compared by the database with
 * `countersign_now()`; nothing else tells the time. The offset is zero in production and is moved only by demo and tests.
 */
import type { SqlRunner } from "./connect.js";

/** The product's time, cut to milliseconds. */
export async function dbNow(db: SqlRunner): Promise<Date> {
  const [row] = await db.sql<{ now: Date }>("clock.now", "SELECT countersign_now() AS now");
  if (row === undefined) throw new Error("the database did not tell the time");
  return row.now;
}

/** Moves the product's time to `offsetMs` (integer milliseconds) from the machine's, for everybody on this database. */
export async function setClockOffset(db: SqlRunner, offsetMs: number): Promise<void> {
  await db.sql("clock.set", "UPDATE clock_offset SET offset_ms = $1", [offsetMs]);
}

/** The offset in force, in milliseconds. A production start refuses anything but zero. */
export async function clockOffset(db: SqlRunner): Promise<number> {
  const [row] = await db.sql<{ offset_ms: bigint }>("clock.offset", "SELECT offset_ms FROM clock_offset");
  return Number(row?.offset_ms ?? 0n);
}
