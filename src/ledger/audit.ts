/**
 * Verifying and exporting the audit log: everything is recomputed from what the database gives back, and the first broken link is
 * named.
 */
import type { Db, SqlRunner } from "../db/connect.js";
import { utcMicros } from "../db/connect.js";
import type { OperationId } from "../domain/ids.js";
import type { Json } from "../domain/json.js";
import type { Seals } from "../domain/seals.js";
import { blockHash, blocksAfter, contentHashOf, eventHashes } from "./audit-blocks.js";
import { type AuditedEvent, type AuditedOperation, checkOperation, dataIn } from "./audit-check.js";
import { checkSeals } from "./audit-seals.js";
import { checkSubjects } from "./audit-subjects.js";
import { checkSums } from "./audit-sums.js";
import { type OperationRow, operationColumns, toOperation } from "./rows.js";
import type { AuditReport, BrokenLink, OperationAudit } from "./types.js";

const OPERATIONS_AT_A_TIME = 200;
const EVENTS_AT_A_TIME = 2_000;
const BLOCKS_AT_A_TIME = 200;
const WHOLE_TABLE_MS = 30 * 60_000;
/** Findings that are kept; more would not be read. */
const MAX_BROKEN = 100;

/** The least bigint: the first block answers for everything before its end. */
const BELOW_EVERY_EVENT = -(2n ** 63n);

/**
 * Recomputes every hash, and what each row says about itself and about money. The seals of decisions are looked at where there is a
 * secret to do it with.
 */
export async function verifyAudit(db: Db, seals: Seals | null = null): Promise<AuditReport> {
  const broken: BrokenLink[] = [];
  const rows = await checkOperations(db, broken);
  const whole = unhurried(db);
  await checkStrays(whole, broken);
  const subjectEvents = await checkSubjects(whole, broken);
  await checkSums(whole, broken, MAX_BROKEN);
  const decisionSeals = seals === null ? null : await checkSeals(whole, seals, broken, MAX_BROKEN);
  const blocks = await checkBlocks(db, broken);
  broken.sort(byPlaceInLog);
  return {
    intact: broken.length === 0,
    ...rows,
    subjectEvents,
    ...blocks,
    decisionSeals,
    broken: broken.slice(0, MAX_BROKEN),
  };
}

/** What looks at every row in one statement may take as long as there are rows: no statement of the product's own may. */
const unhurried = (db: Db): SqlRunner => ({
  sql: (name, text, params) =>
    db.tx(async (tx) => {
      await tx.sql(undefined, `SET LOCAL statement_timeout = ${WHOLE_TABLE_MS}`);
      return tx.sql(name, text, params);
    }),
});

/** Events in the order of their ids, then rows, then blocks. */
function byPlaceInLog(a: BrokenLink, b: BrokenLink): number {
  const rank = { event: 0, operation: 1, subject: 2, payment: 3, total: 4, policy: 5, block: 6 } as const;
  if (a.what !== b.what) return rank[a.what] - rank[b.what];
  if (a.what === "event" || a.what === "block") return Number(BigInt(a.where) - BigInt(b.where));
  return a.where < b.where ? -1 : 1;
}

interface JoinedRow extends OperationRow {
  event_count: number;
  head_hash: string;
  reserved_minor: bigint;
  first_claimed_text: string | null;
  policy_told: string | null;
  policy_seq: number | null;
  policies_told: boolean;
  seal: string | null;
  event_id: bigint | null;
  seq: number;
  at_text: string;
  type: string;
  from_status: string | null;
  to_status: string | null;
  actor: string;
  attempt: number | null;
  body: string;
  prev_hash: string;
  hash: string;
}

/** One statement, so that an operation and its events are of one moment. */
const withEvents = (operations: string): string => `
SELECT ${operationColumns("o")}, o.event_count, o.head_hash, o.reserved_minor, o.seal, ${utcMicros("o.first_claimed_at")} AS first_claimed_text, p.policy_told,
       p.policy_seq, EXISTS (SELECT 1 FROM operation_events x WHERE x.subject = 'policy') AS policies_told,
       e.id AS event_id, e.seq, ${utcMicros("e.at")} AS at_text, e.type,
       e.from_status, e.to_status, e.actor, e.attempt, e.body, e.prev_hash, e.hash
FROM (${operations}) o
LEFT JOIN LATERAL (
  SELECT p.body AS policy_told, p.seq AS policy_seq FROM operation_events p
  WHERE p.subject = 'policy' AND p.id < (
    SELECT d.id FROM operation_events d WHERE d.operation_id = o.id AND d.type IN ('prepare', 'hold', 'release') ORDER BY d.seq DESC LIMIT 1)
  ORDER BY p.seq DESC LIMIT 1
) p ON true
LEFT JOIN operation_events e ON e.operation_id = o.id
ORDER BY o.id, e.seq`;

/** $1 last id seen, $2 operations. */
const OPERATIONS_WITH_EVENTS = withEvents("SELECT * FROM operations WHERE id > $1 ORDER BY id LIMIT $2::int");

/** $1 operation. */
const ONE_WITH_EVENTS = withEvents("SELECT * FROM operations WHERE id = $1");

/** $1 operation. Blocks that hold events of it, oldest first, with how many of them. */
const BLOCKS_OF = `
SELECT b.seq, b.hash, b.sealed_at, count(*)::int AS events
FROM operation_events e JOIN audit_blocks b ON e.id BETWEEN b.first_event AND b.last_event
WHERE e.operation_id = $1 GROUP BY b.seq ORDER BY b.seq`;

/** One operation with its events; null: there is none. */
export async function auditedOperation(on: SqlRunner, id: OperationId): Promise<AuditedOperation | null> {
  const rows = await on.sql<JoinedRow>("ledger.audit_operation", ONE_WITH_EVENTS, [id]);
  const [first] = rows;
  return first === undefined ? null : auditedOf(first, rows);
}

/** Recomputes the chain of one operation and its row, and says which blocks seal it. null: there is none. */
export async function auditOperation(db: Db, id: OperationId): Promise<OperationAudit | null> {
  const audited = await auditedOperation(db, id);
  if (audited === null) return null;
  const blocks = await db.sql<{ seq: bigint; hash: string; sealed_at: Date; events: number }>(
    "ledger.audit_blocks_of",
    BLOCKS_OF,
    [id],
  );
  const sealed = blocks.reduce((sum, { events }) => sum + events, 0);
  return {
    broken: checkOperation(audited),
    events: audited.events.length,
    headHash: audited.headHash,
    blocks: blocks.map(({ seq, hash, sealed_at }) => ({ seq, hash, sealedAt: sealed_at })),
    unsealed: audited.events.length - sealed,
  };
}

function auditedOf(first: JoinedRow, rows: readonly JoinedRow[]): AuditedOperation {
  return {
    operation: toOperation(first),
    eventCount: first.event_count,
    headHash: first.head_hash,
    reservedMinor: first.reserved_minor,
    firstClaimedAt: first.first_claimed_text,
    policyTold: first.policy_told === null ? null : policyIn(first.policy_told),
    policyEvent:
      first.policy_told === null || first.policy_seq === null
        ? null
        : { body: first.policy_told, seq: first.policy_seq },
    policiesTold: first.policies_told,
    seal: first.seal,
    events: rows.flatMap((row) => (row.event_id === null ? [] : [toEvent(row, row.event_id)])),
  };
}

/** What cannot be read names none: the policies' own chain is broken there. */
function policyIn(body: string): string | null {
  const policy = dataIn(body)["policy"];
  return typeof policy === "string" ? policy : null;
}

async function checkOperations(
  db: Db,
  broken: BrokenLink[],
): Promise<{ events: number; operations: number }> {
  const count = { events: 0, operations: 0 };
  for (let after = ""; ; ) {
    const rows = await db.sql<JoinedRow>("ledger.audit_operations", OPERATIONS_WITH_EVENTS, [
      after,
      OPERATIONS_AT_A_TIME,
    ]);
    for (const group of byOperation(rows)) {
      const [first] = group;
      if (first === undefined) continue;
      after = first.id;
      const audited = auditedOf(first, group);
      count.operations += 1;
      count.events += audited.events.length;
      broken.push(...checkOperation(audited));
    }
    if (rows.length === 0) return count;
  }
}

function byOperation(rows: readonly JoinedRow[]): JoinedRow[][] {
  const groups: JoinedRow[][] = [];
  for (const row of rows) {
    const group = groups.at(-1);
    if (group?.[0]?.id === row.id) group.push(row);
    else groups.push([row]);
  }
  return groups;
}

const toEvent = (row: JoinedRow, id: bigint): AuditedEvent => ({
  id,
  seq: row.seq,
  at: row.at_text,
  type: row.type,
  from: row.from_status,
  to: row.to_status,
  actor: row.actor,
  attempt: row.attempt,
  body: row.body,
  prevHash: row.prev_hash,
  hash: row.hash,
});

/** Events whose operation is gone. */
async function checkStrays(db: SqlRunner, broken: BrokenLink[]): Promise<void> {
  const rows = await db.sql<{ id: bigint; seq: number }>(
    "ledger.audit_strays",
    `SELECT e.id, e.seq FROM operation_events e
     WHERE e.operation_id IS NOT NULL AND NOT EXISTS (SELECT 1 FROM operations o WHERE o.id = e.operation_id) ORDER BY e.id LIMIT $1::int`,
    [MAX_BROKEN],
  );
  for (const { id, seq } of rows) {
    broken.push({
      what: "event",
      where: String(id),
      operationId: null,
      seq,
      problem: "its operation is gone",
    });
  }
}

async function checkBlocks(db: Db, broken: BrokenLink[]): Promise<{ blocks: number; sealedEvents: number }> {
  const count = { blocks: 0, sealedEvents: 0 };
  let previous = { seq: 0n, lastEvent: BELOW_EVERY_EVENT, hash: "" };
  for (;;) {
    const blocks = await blocksAfter(db, previous.seq, BLOCKS_AT_A_TIME);
    if (blocks.length === 0) return count;
    for (const block of blocks) {
      const problem = (text: string): void => {
        broken.push({ what: "block", where: String(block.seq), operationId: null, seq: null, problem: text });
      };
      if (block.seq !== previous.seq + 1n) problem(`block ${previous.seq + 1n} is missing`);
      if (block.prevHash !== previous.hash) problem("it does not follow its predecessor");
      if (blockHash(block) !== block.hash) problem("its hash does not recompute");
      // One more than it may hold, so that an event that was slipped in shows.
      const limit = block.eventCount + 1;
      const events = await eventHashes(db, { after: previous.lastEvent, upTo: block.lastEvent, limit });
      if (events.length !== block.eventCount) problem("events were added or removed after it was sealed");
      else if (contentHashOf(events) !== block.contentHash)
        problem("its events were changed after it was sealed");
      count.blocks += 1;
      count.sealedEvents += block.eventCount;
      previous = block;
    }
  }
}

interface ExportRow {
  id: bigint;
  body: string;
  prev_hash: string;
  hash: string;
}

/** $1 last id seen, $2 rows. */
const EXPORT = `
SELECT id, body, prev_hash, hash FROM operation_events WHERE id > $1::bigint ORDER BY id LIMIT $2::int`;

/**
 * The log as JSON Lines, oldest first, blocks at the end. `hash` is SHA-256 over `prevHash`, a line feed and the canonical JSON of
 * `event`; people stand in it as salted hashes.
 */
export async function* exportAudit(db: Db): AsyncGenerator<string> {
  for (let after = 0n; ; ) {
    const rows = await db.sql<ExportRow>("ledger.export", EXPORT, [after, EVENTS_AT_A_TIME]);
    for (const row of rows) {
      yield line({
        id: Number(row.id),
        event: eventIn(row.body),
        prevHash: row.prev_hash,
        hash: row.hash,
      });
      after = row.id;
    }
    if (rows.length === 0) break;
  }
  for (let after = 0n; ; ) {
    const blocks = await blocksAfter(db, after, BLOCKS_AT_A_TIME);
    for (const block of blocks) {
      yield line({
        block: Number(block.seq),
        firstEvent: Number(block.firstEvent),
        lastEvent: Number(block.lastEvent),
        eventCount: block.eventCount,
        contentHash: block.contentHash,
        prevHash: block.prevHash,
        hash: block.hash,
      });
      after = block.seq;
    }
    if (blocks.length === 0) return;
  }
}

/** One that somebody made unreadable is exported as the text that it is: the hash beside it says of what. */
function eventIn(body: string): Json {
  try {
    return JSON.parse(body) as Json;
  } catch {
    return body;
  }
}

const line = (value: { [key: string]: Json }): string => JSON.stringify(value);
