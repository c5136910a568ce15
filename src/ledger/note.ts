/** Events that change no status: they take a version and a place in the chain, and leave the row's course as it is. */
import type { SqlRunner } from "../db/connect.js";
import type { OperationId, RunId, TicketId } from "../domain/ids.js";
import type { Operation, OperationStatus } from "../domain/operation.js";
import { eventBody, eventHash, INSERT_EVENT } from "./event-sql.js";
import { canonicalData } from "./json.js";
import { type OperationRow, operationColumns, toOperation } from "./rows.js";
import { runOne, statement } from "./statement.js";

export type NoteType =
  | "join"
  | "handover"
  | "late_answer"
  | "lease_taken_over"
  | "authorise"
  | "approval_voided";

export interface NoteRequest {
  readonly id: OperationId;
  readonly status: OperationStatus;
  readonly version: bigint;
  readonly note: NoteType;
  readonly actor: string;
  readonly data: object;
  readonly attemptNumber?: number;
  /** Everybody who counts as filer from now on. */
  readonly filers?: readonly string[];
  readonly owner?: { readonly runId: RunId; readonly ticketId: TicketId };
  /** Somebody should look now. Only for rows that a machine looks at. */
  readonly dueNow?: boolean;
  /** Takes the lease of a holder whose time is over. */
  readonly lease?: { readonly ms: number; readonly holder: string };
}

interface NoteParameters {
  id: string;
  from: string;
  to: string;
  version: bigint;
  event: string;
  actor: string;
  data: string;
  attempt: number | null;
  filers: readonly string[] | null;
  owner_run: string | null;
  owner_ticket: string | null;
  due_now: boolean;
  lease_ms: number | null;
  holder: string | null;
}

/** Parameters as in `ledger.move`; a lease is taken only from a holder whose time is over. One row, or none when the race is lost. */
const NOTE = statement<NoteParameters>(
  "ledger.note",
  `
WITH g AS (
  SELECT o.id, o.event_count, o.head_hash, o.lease_until, o.lease_token + (:lease_ms::int IS NOT NULL)::int AS new_token
  FROM operations o
  WHERE o.id = :id AND o.status = :from AND o.version = :version::bigint
  FOR NO KEY UPDATE
), m AS MATERIALIZED (
  SELECT g.*, countersign_now() AS at_now FROM g
), e AS MATERIALIZED (
  SELECT m.*, :attempt::int AS event_attempt, b.body, ${eventHash("m.head_hash", "b.body")} AS hash
  FROM m CROSS JOIN LATERAL (SELECT ${eventBody({ attempt: ":attempt::int", token: "m.new_token" })} AS body) b
  WHERE :lease_ms::int IS NULL OR m.lease_until IS NULL OR m.lease_until <= m.at_now
), wrote AS (
  UPDATE operations o
  SET version = o.version + 1, event_count = e.event_count + 1, head_hash = e.hash, updated_at = e.at_now,
      filers = COALESCE(:filers::text[], o.filers),
      owner_run_id = COALESCE(:owner_run, o.owner_run_id),
      ticket_id = COALESCE(:owner_ticket, o.ticket_id),
      lease_token = e.new_token,
      lease_until = COALESCE(e.at_now + :lease_ms::int * interval '1 millisecond', o.lease_until),
      lease_holder = COALESCE(:holder, o.lease_holder),
      due_at = CASE WHEN :lease_ms::int IS NOT NULL THEN e.at_now + :lease_ms::int * interval '1 millisecond'
        WHEN :due_now::boolean THEN e.at_now ELSE o.due_at END
  FROM e
  WHERE o.id = :id AND o.id = e.id
  RETURNING ${operationColumns("o")}
), event AS (${INSERT_EVENT}
)
SELECT * FROM wrote`,
);

/** Writes the event under the same conditions as a transition. null: the row moved, or its lease is not over. */
export async function note(on: SqlRunner, request: NoteRequest): Promise<Operation | null> {
  const row = await runOne<OperationRow, NoteParameters>(on, NOTE, {
    id: request.id,
    from: request.status,
    to: request.status,
    version: request.version,
    event: request.note,
    actor: request.actor,
    data: canonicalData(request.data),
    attempt: request.attemptNumber ?? null,
    filers: request.filers ?? null,
    owner_run: request.owner?.runId ?? null,
    owner_ticket: request.owner?.ticketId ?? null,
    due_now: request.dueNow ?? false,
    lease_ms: request.lease?.ms ?? null,
    holder: request.lease?.holder ?? null,
  });
  return row === null ? null : toOperation(row);
}
