/** Lists of pending approvals by keyset: most urgent first. Costs what is pending, not what is stored. */
import { type SqlRunner, utcMicros } from "../db/connect.js";
import type { Approval } from "../domain/approval.js";
import { mayVote, missingVotes } from "../domain/approval-click.js";
import { decodeCursor, encodeCursor } from "../domain/cursor.js";
import type { Policy } from "../domain/policy/policy.js";
import type { PersonReading } from "../domain/ports/directory.js";
import type { ApprovalsContext } from "./context.js";
import { APPROVAL_COLUMNS, type ApprovalRow, approvalFromRow } from "./rows.js";
import { CLICK_READING_MAX_AGE_MS, LIST_LIMIT } from "./tunables.js";
import type { ListedApproval } from "./types.js";

export interface ApprovalPage {
  readonly approvals: readonly ListedApproval[];
  /** Opaque; hand it back for the next page. null: no more. */
  readonly next: string | null;
}

export type PendingFor =
  | ({ readonly ok: true } & ApprovalPage)
  /** Who asks cannot be read, or may decide nothing by their account alone. */
  | { readonly ok: false; readonly reason: string };

interface Page {
  readonly limit?: number;
  readonly cursor?: string | null;
}

/** Everything that waits for somebody, soonest deadline first. Overdue rows are not listed, swept or not. */
export async function listPending(on: SqlRunner, page: Page = {}): Promise<ApprovalPage> {
  const limit = page.limit ?? LIST_LIMIT;
  const rows = await pendingAfter(on, { after: page.cursor ?? null, limit: limit + 1, roles: null });
  return pageOf(rows, limit);
}

/**
 * What this person may decide now, soonest deadline first; the same rules as at a click, which asks them again. A page may
 * be short although `next` is not null.
 */
export async function pendingFor(
  ctx: Pick<ApprovalsContext, "db" | "directory" | "activePolicy">,
  who: { readonly userId: string; readonly maxAgeMs?: number } & Page,
): Promise<PendingFor> {
  const { userId, maxAgeMs = CLICK_READING_MAX_AGE_MS } = who;
  const reading = await ctx.directory.person(userId, { maxAgeMs });
  if (!reading.ok) return { ok: false, reason: reading.reason };
  const policy = await ctx.activePolicy(ctx.db);
  const limit = who.limit ?? LIST_LIMIT;
  const { roles, personKey } = reading.person;
  const found: Row[] = [];
  let after = who.cursor ?? null;
  for (;;) {
    const rows = await pendingAfter(ctx.db, { after, limit: limit + 1, roles: [...roles] });
    found.push(...rows.filter((row) => isFor(row, reading, personKey, policy)));
    after = rows.length > limit ? cursorOf(rows.at(-1)) : null;
    if (after === null || found.length > limit) return { ok: true, ...pageOf(found, limit) };
  }
}

function isFor(row: Row, reading: PersonReading, personKey: string, policy: Policy): boolean {
  const { approval, filers } = row;
  if (approval === null) return false;
  if (approval.votes.some((vote) => vote.person === personKey)) return false;
  return mayVote({ approval, filers, reading, policy }, []).may;
}

interface Row {
  readonly id: string;
  /** null: somebody changed what it asks for into what cannot be read. It is left out, and hides no other. */
  readonly approval: Approval | null;
  readonly filers: readonly string[];
  readonly expiresAtText: string;
}

function pageOf(rows: readonly Row[], limit: number): ApprovalPage {
  const shown = rows.slice(0, limit);
  return {
    approvals: shown.flatMap(({ approval }) =>
      approval === null ? [] : [{ approval, missing: missingVotes(approval) }],
    ),
    next: rows.length > limit ? cursorOf(shown.at(-1)) : null,
  };
}

const cursorOf = (row: Row | undefined): string | null =>
  row === undefined ? null : encodeCursor({ at: row.expiresAtText, id: row.id });

async function pendingAfter(
  on: SqlRunner,
  page: { after: string | null; limit: number; roles: string[] | null },
): Promise<Row[]> {
  const after = decodeCursor(page.after);
  const rows = await on.sql<ApprovalRow & { filers: string[]; expires_at_text: string }>(
    "approvals.pending",
    PENDING,
    [after?.at ?? null, after?.id ?? null, page.roles, page.limit],
  );
  return rows.map((row) => ({
    id: row.id,
    approval: readable(row),
    filers: row.filers,
    expiresAtText: row.expires_at_text,
  }));
}

function readable(row: ApprovalRow): Approval | null {
  try {
    return approvalFromRow(row);
  } catch {
    return null;
  }
}

// $1 deadline and $2 id of the row before the page, or null; $3 roles or null for all; $4 rows.
const PENDING = `
SELECT ${APPROVAL_COLUMNS}, o.filers, ${utcMicros("a.expires_at")} AS expires_at_text
FROM approvals a JOIN operations o ON o.id = a.operation_id
WHERE a.state = 'PENDING' AND a.expires_at > countersign_now()
  AND (a.expires_at, a.id) > (coalesce($1::timestamptz, '-infinity'), coalesce($2::text, ''))
  AND ($3::text[] IS NULL OR a.role = ANY ($3::text[]))
ORDER BY a.expires_at, a.id LIMIT $4`;
