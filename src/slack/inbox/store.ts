/**
 * The inbox table. A row is written before its arrival is acknowledged; from then on it is ours to finish, in this process or
 * in any other.
 */

import type { Db } from "../../db/connect.js";
import type { JsonObject } from "../../domain/json.js";
import { cutText } from "../../domain/text/cut.js";
import type { SlackConfig } from "../settings.js";
import type { InboxKind } from "./arrival.js";
import { isAsItCame, sealOf } from "./seal.js";

export interface InboxRow {
  readonly id: string;
  readonly kind: InboxKind;
  readonly body: JsonObject;
  readonly failures: number;
  readonly receivedAt: Date;
  /** Fencing token of the lease that we hold. */
  readonly token: bigint;
}

export type Stored =
  /** Ours: for interactions the lease is taken with the row, because the same process goes on with it at once. */
  | { readonly outcome: "new"; readonly row: InboxRow }
  | {
      readonly outcome: "duplicate";
      readonly id: string;
      readonly done: boolean;
      /** Of the first; null: it has gone meanwhile. */
      readonly receivedAt: Date | null;
    };

/** How long a process that died delays what it worked on; one that lives renews (see `keep.ts`). */
export const INBOX_LEASE_MS = 6_000;

/**
 * For the connections that arrivals are stored on; together less than the time after which an arrival is answered with "not
 * recorded". The database itself then gives such a row up, whatever has become of this process meanwhile, and nobody who was
 * answered is still waited for.
 */
export const STORE_WITHIN = { connectTimeoutMs: 1_200, statementTimeoutMs: 700 } as const;

interface Insert {
  readonly id: string;
  readonly key: string;
  readonly kind: InboxKind;
  readonly body: JsonObject;
  readonly retryNum: number | null;
  /** Take the lease with the row. */
  readonly leased: boolean;
}

const INSERT = `
  INSERT INTO slack_inbox (id, dedupe_key, kind, body, retry_num, seal, due_at, lease_token, lease_until)
  SELECT $1, $2, $3, $4::jsonb, $5, $8,
         n + make_interval(secs => CASE WHEN $6 THEN $7 / 1000.0 ELSE 0 END),
         CASE WHEN $6 THEN 1 ELSE 0 END,
         CASE WHEN $6 THEN n + make_interval(secs => $7 / 1000.0) END
    FROM (SELECT countersign_now() AS n) AS clock
  ON CONFLICT (dedupe_key) DO NOTHING
  RETURNING received_at`;

export async function storeArrival(
  ctx: { readonly db: Db; readonly config: Pick<SlackConfig, "botToken"> },
  insert: Insert,
): Promise<Stored> {
  const { id } = insert;
  const [row] = await ctx.db.sql<{ received_at: Date }>("slack.inbox.insert", INSERT, [
    id,
    insert.key,
    insert.kind,
    JSON.stringify(insert.body),
    insert.retryNum,
    insert.leased,
    INBOX_LEASE_MS,
    sealOf(ctx.config, insert),
  ]);
  if (row !== undefined) {
    const { kind, body } = insert;
    return { outcome: "new", row: { id, kind, body, failures: 0, receivedAt: row.received_at, token: 1n } };
  }
  const [known] = await ctx.db.sql<{ id: string; done: boolean; received_at: Date }>(
    "slack.inbox.known",
    "SELECT id, processed_at IS NOT NULL AS done, received_at FROM slack_inbox WHERE dedupe_key = $1",
    [insert.key],
  );
  return {
    outcome: "duplicate",
    id: known?.id ?? id,
    done: known?.done ?? true,
    receivedAt: known?.received_at ?? null,
  };
}

const WITHDRAW = `
  WITH gone AS (
    DELETE FROM slack_inbox WHERE id = ANY($1) AND processed_at IS NULL AND lease_token <= 1 RETURNING id
  )
  SELECT i.id, EXISTS (SELECT 1 FROM gone g WHERE g.id = i.id) AS gone FROM slack_inbox i WHERE i.id = ANY($1)`;

/**
 * Takes rows back whose arrivals were answered with "not recorded", because the database had been too slow or was lost. `elsewhere`:
 * somebody works on it, or has.
 */
export async function withdraw(
  ctx: { db: Db },
  ids: readonly string[],
): Promise<{ gone: readonly string[]; elsewhere: readonly string[] }> {
  const rows = await ctx.db.sql<{ id: string; gone: boolean }>("slack.inbox.withdraw", WITHDRAW, [ids]);
  const those = (gone: boolean): string[] => rows.filter((row) => row.gone === gone).map(({ id }) => id);
  return { gone: those(true), elsewhere: those(false) };
}

const CLAIM = `
  UPDATE slack_inbox
     SET lease_token = lease_token + 1,
         lease_until = countersign_now() + make_interval(secs => $2 / 1000.0),
         due_at = countersign_now() + make_interval(secs => $2 / 1000.0)
   WHERE id = $1 AND processed_at IS NULL AND (lease_until IS NULL OR lease_until < countersign_now())
  RETURNING dedupe_key, kind, body, failures, received_at, lease_token, seal`;

/**
 * Takes the lease of an unfinished row; null when there is nothing to do (done, leased by another, unknown). `asItCame`: it is what
 * came over Slack's wire, and not somebody's who can write the table.
 */
export async function claimArrival(
  ctx: { readonly db: Db; readonly config: Pick<SlackConfig, "botToken"> },
  id: string,
): Promise<{ readonly row: InboxRow; readonly asItCame: boolean } | null> {
  const [row] = await ctx.db.sql<{
    dedupe_key: string;
    kind: InboxKind;
    body: JsonObject;
    failures: number;
    received_at: Date;
    lease_token: bigint;
    seal: string | null;
  }>("slack.inbox.claim", CLAIM, [id, INBOX_LEASE_MS]);
  if (row === undefined) return null;
  const { dedupe_key: key, kind, body, failures, received_at, lease_token, seal } = row;
  return {
    row: { id, kind, body, failures, receivedAt: received_at, token: lease_token },
    asItCame: isAsItCame(ctx.config, { id, key, kind, body, seal }),
  };
}

/** Holds the row for another lease. False: it is done, given back, or another's. */
export async function renewArrival(ctx: { db: Db }, row: Pick<InboxRow, "id" | "token">): Promise<boolean> {
  const kept = await ctx.db.sql(
    "slack.inbox.renew",
    `UPDATE slack_inbox
        SET lease_until = countersign_now() + make_interval(secs => $3 / 1000.0),
            due_at = countersign_now() + make_interval(secs => $3 / 1000.0)
      WHERE id = $1 AND lease_token = $2 AND processed_at IS NULL AND lease_until IS NOT NULL RETURNING id`,
    [row.id, row.token, INBOX_LEASE_MS],
  );
  return kept.length === 1;
}

/** True when the row was ours to finish. */
export async function finishArrival(ctx: { db: Db }, row: InboxRow, note: string | null): Promise<boolean> {
  const done = await ctx.db.sql(
    "slack.inbox.finish",
    `UPDATE slack_inbox SET processed_at = countersign_now(), due_at = NULL, lease_until = NULL, last_error = $3
      WHERE id = $1 AND lease_token = $2 AND processed_at IS NULL RETURNING id`,
    [row.id, row.token, note],
  );
  return done.length === 1;
}

/** Gives the row back for a later try after `delayMs`. */
export async function postponeArrival(
  ctx: { db: Db },
  row: InboxRow,
  delayMs: number,
  error: string,
): Promise<void> {
  await ctx.db.sql(
    "slack.inbox.postpone",
    `UPDATE slack_inbox SET failures = failures + 1, last_error = $4, lease_until = NULL,
            due_at = countersign_now() + make_interval(secs => $3 / 1000.0)
      WHERE id = $1 AND lease_token = $2 AND processed_at IS NULL`,
    [row.id, row.token, delayMs, cutText(error, 500)],
  );
}

/** Unfinished rows that are due, oldest first; for the sweeper. */
export async function dueArrivals(ctx: { db: Db }, limit: number): Promise<readonly string[]> {
  const found = await ctx.db.sql<{ id: string }>(
    "slack.inbox.due",
    `SELECT id FROM slack_inbox WHERE due_at IS NOT NULL AND due_at <= countersign_now()
      ORDER BY due_at, id LIMIT $1`,
    [limit],
  );
  return found.map(({ id }) => id);
}
