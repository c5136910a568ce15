/** Events and waiters of an operation, for people to read. */
import type { SqlRunner } from "../db/connect.js";
import { utcMicros } from "../db/connect.js";
import type { OperationId, RunId, TicketId } from "../domain/ids.js";
import type { Json, JsonObject } from "../domain/json.js";
import type { OperationStatus } from "../domain/operation.js";
import { contentOf, objectOr } from "./audit-check.js";
import { hiddenHash, reveal } from "./subjects.js";
import type { OperationEvent, StoryEvent, Waiter } from "./types.js";

interface Row {
  id: bigint;
  operation_id: OperationId;
  seq: number;
  at_text: string;
  type: string;
  from_status: OperationStatus | null;
  to_status: OperationStatus | null;
  actor: string;
  attempt: number | null;
  body: string;
  prev_hash: string;
  hash: string;
}

/** $1 operation. */
const EVENTS = `
SELECT id, operation_id, seq, ${utcMicros("at")} AS at_text, type, from_status, to_status, actor, attempt, body, prev_hash, hash
FROM operation_events WHERE operation_id = $1 ORDER BY seq`;

/** What stands where a person or a text was erased. */
export const ERASED = "erased";

/** All events of an operation, first to last; people and their texts by name, or `erased`. */
export async function eventsOf(on: SqlRunner, id: OperationId): Promise<OperationEvent[]> {
  return toEvents(on, await on.sql<Row>("ledger.events", EVENTS, [id]));
}

/** $1 operation. What the log tells of requests for a second person about it, each in a chain of its own. */
const PROPOSALS = `
SELECT e.id, r.operation_id, e.seq, ${utcMicros("e.at")} AS at_text, e.type, e.from_status, e.to_status, e.actor, e.attempt, e.body,
       e.prev_hash, e.hash
FROM resolutions r JOIN operation_events e ON e.subject = 'resolution:' || r.id
WHERE r.operation_id = $1 ORDER BY e.id`;

/**
 * Its events and, where they fall, the requests for a second person with how they ended. What was applied is an event of the operation
 * itself, which names both people.
 */
export async function storyOf(on: SqlRunner, id: OperationId): Promise<StoryEvent[]> {
  const own = await eventsOf(on, id);
  const asked = await toEvents(on, await on.sql<Row>("ledger.proposals_told", PROPOSALS, [id]));
  const beside = asked
    .filter(({ data }) => data["state"] !== "applied")
    .map((event) => ({ ...event, seq: null }));
  // Sorting keeps what is of one moment as it comes: the chain's own order first.
  return [...own, ...beside].sort((one, other) => Date.parse(one.at) - Date.parse(other.at));
}

async function toEvents(on: SqlRunner, rows: readonly Row[]): Promise<OperationEvent[]> {
  const events = rows.map((row) => ({ row, data: dataOf(row.body) }));
  const hashes = new Set<string>();
  for (const { row, data } of events) {
    collectHashes(row.actor, hashes);
    collectHashes(data, hashes);
  }
  const values = await reveal(on, [...hashes]);
  return events.map(({ row, data }) => ({
    id: row.id,
    operationId: row.operation_id,
    seq: row.seq,
    at: row.at_text,
    type: row.type,
    from: row.from_status,
    to: row.to_status,
    actor: String(named(row.actor, values)),
    attempt: row.attempt,
    data: named(data, values) as JsonObject,
    prevHash: row.prev_hash,
    hash: row.hash,
  }));
}

/** Of one that somebody made unreadable nothing is shown; the verifier names it. */
const dataOf = (body: string): JsonObject => objectOr(contentOf(body)["data"]);

function collectHashes(value: Json, into: Set<string>): void {
  if (typeof value === "string") {
    const hash = hiddenHash(value);
    if (hash !== null) into.add(hash);
  } else if (value !== null && typeof value === "object") {
    for (const member of Object.values(value)) collectHashes(member, into);
  }
}

function named(value: Json, values: ReadonlyMap<string, string>): Json {
  if (typeof value === "string") {
    const hash = hiddenHash(value);
    return hash === null ? value : (values.get(hash) ?? ERASED);
  }
  if (Array.isArray(value)) return value.map((member) => named(member, values));
  if (value === null || typeof value !== "object") return value;
  return Object.fromEntries(Object.entries(value).map(([key, member]) => [key, named(member, values)]));
}

/** $1 operation. */
const WAITERS = `
SELECT run_id, ticket_id, filer, joined_at FROM operation_waiters WHERE operation_id = $1 ORDER BY joined_at, run_id`;

/** Runs that wait beside the owner, oldest first. */
export async function waitersOf(on: SqlRunner, id: OperationId): Promise<Waiter[]> {
  const rows = await on.sql<{ run_id: RunId; ticket_id: TicketId; filer: string; joined_at: Date }>(
    "ledger.waiters",
    WAITERS,
    [id],
  );
  return rows.map((row) => ({
    runId: row.run_id,
    ticketId: row.ticket_id,
    filer: row.filer,
    joinedAt: row.joined_at,
  }));
}
