/**
 * One global chain over the events: blocks of them, each sealed once no running transaction can still add an event before its end.
 *
 * An event's id is drawn by a transaction that has its transaction id already (it has locked the operation's row). So once every
 * transaction that was running when the highest visible id was read has ended, no id up to it can appear any more.
 */
import { setTimeout as delay } from "node:timers/promises";
import type { Db, SqlRunner, Tx } from "../db/connect.js";
import { canonicalHash, sha256Hex } from "../domain/canonical.js";

export interface Block {
  readonly seq: bigint;
  readonly firstEvent: bigint;
  readonly lastEvent: bigint;
  readonly eventCount: number;
  readonly contentHash: string;
  readonly prevHash: string;
  readonly hash: string;
}

/** Events of one block at most: bounds what a verifier holds at a time. */
const BLOCK_EVENTS = 1_000;
/** How long a sealer waits for running transactions, in milliseconds; the next one tries again. */
const PATIENCE_MS = 2_000;
const POLL_MS = 20;
/** Serialises sealers of one database. */
const SEALER_LOCK = 7_205_759;

/** Highest id that is visible, and the transactions that may still precede it. */
const HORIZON = `
SELECT COALESCE(max(id), 0) AS last, pg_snapshot_xmax(pg_current_snapshot())::text AS horizon FROM operation_events`;

/** Seals events that no running transaction can still precede. Returns how many. */
export async function sealBlocks(db: Db, options: { patienceMs?: number } = {}): Promise<number> {
  const [mark] = await db.sql<{ last: bigint; horizon: string }>("ledger.seal_horizon", HORIZON);
  if (mark === undefined || mark.last === 0n) return 0;
  if (!(await ended(db, mark.horizon, options.patienceMs ?? PATIENCE_MS))) return 0;
  return db.tx((tx) => sealUpTo(tx, mark.last));
}

async function ended(db: Db, horizon: string, patienceMs: number): Promise<boolean> {
  for (let waitedMs = 0; ; waitedMs += POLL_MS) {
    const [row] = await db.sql<{ passed: boolean }>(
      "ledger.seal_passed",
      "SELECT pg_snapshot_xmin(pg_current_snapshot()) >= $1::text::xid8 AS passed",
      [horizon],
    );
    if (row?.passed === true) return true;
    if (waitedMs >= patienceMs) return false;
    await delay(POLL_MS);
  }
}

async function sealUpTo(tx: Tx, last: bigint): Promise<number> {
  await tx.sql("ledger.seal_lock", "SELECT pg_advisory_xact_lock($1::bigint)", [SEALER_LOCK]);
  let previous = await lastBlock(tx);
  let sealed = 0;
  for (;;) {
    const events = await eventHashes(tx, {
      after: previous?.lastEvent ?? 0n,
      upTo: last,
      limit: BLOCK_EVENTS,
    });
    if (events.length === 0) return sealed;
    previous = await insertBlock(tx, events, previous);
    sealed += events.length;
  }
}

/**
 * $1 event. The newest blocks back to the one that holds it: one of them that does not hold as many events as were sealed. What is not
 * sealed yet is in none.
 */
const SHORT_SINCE = `
WITH RECURSIVE back AS (
  (SELECT seq, first_event, last_event, event_count FROM audit_blocks ORDER BY seq DESC LIMIT 1)
  UNION ALL
  SELECT p.seq, p.first_event, p.last_event, p.event_count
  FROM back b JOIN audit_blocks p ON p.seq = b.seq - 1 WHERE b.first_event > $1::bigint
)
SELECT b.seq FROM back b
WHERE b.last_event >= $1::bigint
  AND b.event_count <> (SELECT count(*) FROM operation_events e WHERE e.id BETWEEN b.first_event AND b.last_event)
LIMIT 1`;

/** Whether events were taken out of the log, or slipped into it, since this one was sealed. */
export async function isShortSince(on: SqlRunner, event: bigint): Promise<boolean> {
  return (await on.sql("ledger.short_since", SHORT_SINCE, [event])).length > 0;
}

interface EventHash {
  readonly id: bigint;
  readonly hash: string;
}

/** $1 after, $2 up to and including, $3 rows. */
const EVENT_HASHES = `
SELECT id, hash FROM operation_events WHERE id > $1::bigint AND id <= $2::bigint ORDER BY id LIMIT $3::int`;

export const eventHashes = (
  on: SqlRunner,
  range: { after: bigint; upTo: bigint; limit: number },
): Promise<EventHash[]> =>
  on.sql<EventHash>("ledger.event_hashes", EVENT_HASHES, [range.after, range.upTo, range.limit]);

/** What a block says about its events: every id with its hash, in the order of ids. */
export const contentHashOf = (events: readonly EventHash[]): string =>
  sha256Hex(events.map(({ id, hash }) => `${id}:${hash}\n`).join(""));

/** A block's own hash. */
export const blockHash = (block: Omit<Block, "hash">): string =>
  canonicalHash({
    seq: block.seq,
    first: block.firstEvent,
    last: block.lastEvent,
    count: block.eventCount,
    content: block.contentHash,
    prev: block.prevHash,
  });

async function insertBlock(tx: Tx, events: readonly EventHash[], previous: Block | null): Promise<Block> {
  const first = events[0];
  const last = events.at(-1);
  if (first === undefined || last === undefined) throw new Error("a block needs events");
  const block = {
    seq: (previous?.seq ?? 0n) + 1n,
    firstEvent: first.id,
    lastEvent: last.id,
    eventCount: events.length,
    contentHash: contentHashOf(events),
    prevHash: previous?.hash ?? "",
  };
  const hash = blockHash(block);
  await tx.sql(
    "ledger.insert_block",
    `INSERT INTO audit_blocks (seq, first_event, last_event, event_count, content_hash, prev_hash, hash)
     VALUES ($1::bigint, $2::bigint, $3::bigint, $4::int, $5, $6, $7)`,
    [block.seq, block.firstEvent, block.lastEvent, block.eventCount, block.contentHash, block.prevHash, hash],
  );
  return { ...block, hash };
}

interface BlockRow {
  seq: bigint;
  first_event: bigint;
  last_event: bigint;
  event_count: number;
  content_hash: string;
  prev_hash: string;
  hash: string;
}

const COLUMNS = "seq, first_event, last_event, event_count, content_hash, prev_hash, hash";

async function lastBlock(on: SqlRunner): Promise<Block | null> {
  const [row] = await on.sql<BlockRow>(
    "ledger.last_block",
    `SELECT ${COLUMNS} FROM audit_blocks ORDER BY seq DESC LIMIT 1`,
  );
  return row === undefined ? null : toBlock(row);
}

/** Blocks after a number, in order. */
export async function blocksAfter(on: SqlRunner, seq: bigint, limit: number): Promise<Block[]> {
  const rows = await on.sql<BlockRow>(
    "ledger.blocks_after",
    `SELECT ${COLUMNS} FROM audit_blocks WHERE seq > $1::bigint ORDER BY seq LIMIT $2::int`,
    [seq, limit],
  );
  return rows.map(toBlock);
}

const toBlock = (row: BlockRow): Block => ({
  seq: row.seq,
  firstEvent: row.first_event,
  lastEvent: row.last_event,
  eventCount: row.event_count,
  contentHash: row.content_hash,
  prevHash: row.prev_hash,
  hash: row.hash,
});
