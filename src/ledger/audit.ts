/**
 * The audit chain: verify, export, seal, erase.
 *
 * 1. Every event is hashed over its canonical body and its operation's previous hash; the operation's row keeps count and head,
 *    so a missing last event shows.
 * 2. Hashes are recomputed from what the database gives back: the body is text, its time has microseconds.
 * 3. Blocks chain the events of all operations below the oldest transaction that was running when they were sealed.
 */
import type { Db } from "../db/connect.js";
import { sha256Hex } from "../domain/canonical.js";
import type { OperationId } from "../domain/ids.js";
import type { JsonObject } from "../domain/json.js";
import { isStatus } from "./rows.js";
import type { AuditReport, BrokenLink, OperationEvent } from "./types.js";

interface EventRow {
  id: bigint;
  operation_id: OperationId;
  seq: number;
  at: string;
  type: string;
  from_status: string | null;
  to_status: string | null;
  actor: string;
  attempt: number | null;
  body: string;
  prev_hash: string;
  hash: string;
}

const EVENT_COLUMNS = `id, operation_id, seq, to_char(at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') AS at, type,
  from_status, to_status, actor, attempt, body, prev_hash, hash`;
const BATCH = 1_000;
const MAX_BROKEN = 100;
const BLOCK_SIZE = 1_000;

/** Events of one operation in their order. */
export async function eventsOf(db: Pick<Db, "sql">, id: OperationId): Promise<OperationEvent[]> {
  const rows = await db.sql<EventRow>(
    "ledger.events",
    `SELECT ${EVENT_COLUMNS} FROM operation_events WHERE operation_id = $1 ORDER BY seq`,
    [id],
  );
  return rows.map(toEvent);
}

function toEvent(row: EventRow): OperationEvent {
  return {
    id: row.id,
    operationId: row.operation_id,
    seq: row.seq,
    at: row.at,
    type: row.type,
    from: row.from_status !== null && isStatus(row.from_status) ? row.from_status : null,
    to: row.to_status !== null && isStatus(row.to_status) ? row.to_status : null,
    actor: row.actor,
    attempt: row.attempt,
    data: bodyOf(row).data ?? {},
    prevHash: row.prev_hash,
    hash: row.hash,
  };
}

interface Body {
  actor?: string;
  at?: string;
  attempt?: number | null;
  data?: JsonObject;
  from?: string | null;
  operation?: string;
  seq?: number;
  to?: string | null;
  type?: string;
}

function bodyOf(row: Pick<EventRow, "body">): Body {
  try {
    const body: unknown = JSON.parse(row.body);
    return typeof body === "object" && body !== null ? (body as Body) : {};
  } catch {
    // Somebody has written into it: the hash says so as well.
    return {};
  }
}

/** Recomputes every hash from what the database gives back. */
export async function verifyAudit(db: Db): Promise<AuditReport> {
  const broken: BrokenLink[] = [];
  const chains = new Map<string, { seq: number; hash: string }>();
  let events = 0;
  for await (const row of allEvents(db)) {
    events += 1;
    const chain = chains.get(row.operation_id) ?? { seq: 0, hash: "" };
    for (const problem of eventProblems(row, chain)) {
      broken.push({
        what: "event",
        where: String(row.id),
        operationId: row.operation_id,
        seq: row.seq,
        problem,
      });
    }
    chains.set(row.operation_id, { seq: row.seq, hash: row.hash });
  }
  const operations = await verifyHeads(db, chains, broken);
  const blocks = await verifyBlocks(db, broken);
  return {
    intact: broken.length === 0,
    events,
    operations,
    ...blocks,
    broken: broken.slice(0, MAX_BROKEN),
  };
}

function eventProblems(row: EventRow, before: { seq: number; hash: string }): string[] {
  const problems: string[] = [];
  if (row.seq !== before.seq + 1) {
    problems.push(`event ${before.seq + 1} is missing or out of place; found ${row.seq}`);
  }
  if (row.prev_hash !== before.hash) problems.push("its predecessor's hash is not the one it names");
  if (sha256Hex(`${row.prev_hash}\n${row.body}`) !== row.hash)
    problems.push("its content does not give its hash");
  const body = bodyOf(row);
  const told: [string, unknown, unknown][] = [
    ["operation", body.operation, row.operation_id],
    ["seq", body.seq, row.seq],
    ["at", body.at, row.at],
    ["type", body.type, row.type],
    ["from", body.from, row.from_status],
    ["to", body.to, row.to_status],
    ["actor", body.actor, row.actor],
    ["attempt", body.attempt, row.attempt],
  ];
  for (const [name, inside, beside] of told) {
    if (inside !== beside) problems.push(`its column "${name}" differs from its content`);
  }
  return problems;
}

async function* allEvents(db: Db): AsyncGenerator<EventRow> {
  let after = 0n;
  for (;;) {
    const rows = await db.sql<EventRow>(
      "ledger.all_events",
      `SELECT ${EVENT_COLUMNS} FROM operation_events WHERE id > $1 ORDER BY id LIMIT $2`,
      [after, BATCH],
    );
    yield* rows;
    const last = rows.at(-1);
    if (last === undefined) return;
    after = last.id;
  }
}

async function verifyHeads(
  db: Db,
  chains: ReadonlyMap<string, { seq: number; hash: string }>,
  broken: BrokenLink[],
): Promise<number> {
  let after = "";
  let count = 0;
  for (;;) {
    const rows = await db.sql<{
      id: OperationId;
      event_count: number;
      head_hash: string;
      status: string;
      last_to: string | null;
    }>(
      "ledger.heads",
      `SELECT o.id, o.event_count, o.head_hash, o.status,
              (SELECT e.to_status FROM operation_events e WHERE e.operation_id = o.id ORDER BY e.seq DESC LIMIT 1) AS last_to
         FROM operations o WHERE o.id > $1 ORDER BY o.id LIMIT $2`,
      [after, BATCH],
    );
    for (const row of rows) {
      count += 1;
      const chain = chains.get(row.id) ?? { seq: 0, hash: "" };
      const add = (problem: string): void => {
        broken.push({ what: "operation", where: row.id, operationId: row.id, seq: null, problem });
      };
      if (chain.seq !== row.event_count) add(`it has ${row.event_count} events, the log holds ${chain.seq}`);
      else if (chain.hash !== row.head_hash) add("its head is not the hash of its last event");
      if (row.last_to !== null && row.last_to !== row.status) {
        add(`its status is ${row.status}, its last event says ${row.last_to}`);
      }
    }
    const last = rows.at(-1);
    if (last === undefined) return count;
    after = last.id;
  }
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

const BLOCK_COLUMNS = "seq, first_event, last_event, event_count, content_hash, prev_hash, hash";

async function verifyBlocks(db: Db, broken: BrokenLink[]): Promise<{ blocks: number; sealedEvents: number }> {
  const blocks = await db.sql<BlockRow>(
    "ledger.blocks",
    `SELECT ${BLOCK_COLUMNS} FROM audit_blocks ORDER BY seq`,
    [],
  );
  let before: { seq: bigint; hash: string; last: bigint } = { seq: 0n, hash: "", last: 0n };
  let sealedEvents = 0;
  for (const block of blocks) {
    const add = (problem: string): void => {
      broken.push({ what: "block", where: String(block.seq), operationId: null, seq: null, problem });
    };
    if (block.seq !== before.seq + 1n || block.prev_hash !== before.hash)
      add("it does not follow its predecessor");
    const content = await contentOf(db, before.last, block.last_event);
    if (content.count !== block.event_count || content.hash !== block.content_hash) {
      add("the events in it are not those that were sealed");
    }
    if (blockHash(block) !== block.hash) add("its content does not give its hash");
    sealedEvents += block.event_count;
    before = { seq: block.seq, hash: block.hash, last: block.last_event };
  }
  return { blocks: blocks.length, sealedEvents };
}

const blockHash = (block: Omit<BlockRow, "hash">): string =>
  sha256Hex(
    [
      block.seq,
      block.first_event,
      block.last_event,
      block.event_count,
      block.content_hash,
      block.prev_hash,
    ].join("\n"),
  );

async function contentOf(
  db: Pick<Db, "sql">,
  after: bigint,
  last: bigint,
): Promise<{ count: number; hash: string; first: bigint }> {
  const rows = await db.sql<{ id: bigint; hash: string }>(
    "ledger.block_content",
    "SELECT id, hash FROM operation_events WHERE id > $1 AND id <= $2 ORDER BY id",
    [after, last],
  );
  return {
    count: rows.length,
    hash: sha256Hex(rows.map((row) => `${row.id} ${row.hash}`).join("\n")),
    first: rows.at(0)?.id ?? 0n,
  };
}

/** Seals events that no running transaction can still precede. Returns how many. */
export async function sealBlocks(db: Db): Promise<number> {
  return db.tx(async (tx) => {
    // Sealers queue; writers of events hold this lock shared, so that ids below the newest are all visible here.
    await tx.sql("ledger.seal_lock", "LOCK TABLE audit_blocks IN SHARE ROW EXCLUSIVE MODE");
    await tx.sql("ledger.seal_events", "LOCK TABLE operation_events IN SHARE MODE");
    const [head] = await tx.sql<BlockRow>(
      "ledger.block_head",
      `SELECT ${BLOCK_COLUMNS} FROM audit_blocks ORDER BY seq DESC LIMIT 1`,
    );
    const after = head?.last_event ?? 0n;
    const [edge] = await tx.sql<{ last: bigint | null; n: bigint }>(
      "ledger.seal_edge",
      `SELECT max(id) AS last, count(*) AS n FROM (
         SELECT id FROM operation_events WHERE id > $1 ORDER BY id LIMIT $2) e`,
      [after, BLOCK_SIZE],
    );
    if (edge?.last == null) return 0;
    const content = await contentOf(tx, after, edge.last);
    const block = {
      seq: (head?.seq ?? 0n) + 1n,
      first_event: content.first,
      last_event: edge.last,
      event_count: content.count,
      content_hash: content.hash,
      prev_hash: head?.hash ?? "",
    };
    await tx.sql(
      "ledger.seal",
      `INSERT INTO audit_blocks (seq, first_event, last_event, event_count, content_hash, prev_hash, hash)
       VALUES ($1, $2, $3, $4, $5, $6, $7)`,
      [
        block.seq,
        block.first_event,
        block.last_event,
        block.event_count,
        block.content_hash,
        block.prev_hash,
        blockHash(block),
      ],
    );
    return content.count;
  });
}

/** The log as JSON Lines, oldest first, blocks at the end. */
export async function* exportAudit(db: Db): AsyncGenerator<string> {
  for await (const row of allEvents(db)) {
    yield JSON.stringify({
      record: "event",
      id: Number(row.id),
      operation: row.operation_id,
      seq: row.seq,
      body: row.body,
      prevHash: row.prev_hash,
      hash: row.hash,
    });
  }
  const blocks = await db.sql<BlockRow>(
    "ledger.blocks",
    `SELECT ${BLOCK_COLUMNS} FROM audit_blocks ORDER BY seq`,
    [],
  );
  for (const block of blocks) {
    yield JSON.stringify({
      record: "block",
      seq: Number(block.seq),
      firstEvent: Number(block.first_event),
      lastEvent: Number(block.last_event),
      eventCount: block.event_count,
      contentHash: block.content_hash,
      prevHash: block.prev_hash,
      hash: block.hash,
    });
  }
}

/** Erases a person (or a text) from the audit log's subjects; the chain still verifies. */
export async function eraseSubject(db: Db, value: string): Promise<number> {
  const rows = await db.sql("ledger.erase", "DELETE FROM audit_subjects WHERE value = $1 RETURNING hash", [
    value,
  ]);
  return rows.length;
}
