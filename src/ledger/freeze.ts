/**
 * The freeze switches. Claims and resends lock theirs in share mode; freezing updates it and so waits for them: once it has
 * committed, nothing new leaves.
 */
import type { SqlRunner, Tx } from "../db/connect.js";
import { OPERATION_KINDS } from "../domain/operation.js";
import type { LedgerCtx } from "./context.js";
import { openIncident } from "./incidents.js";
import { actorOf, recordSubjectEvent } from "./subject-events.js";
import { textName } from "./subjects.js";
import type { FreezeKind, FreezeSwitch } from "./types.js";

interface Row {
  kind: FreezeKind;
  frozen: boolean;
  by: string | null;
  reason: string | null;
  at: Date | null;
  thaw_asked_by: string | null;
  thaw_expires_at: Date | null;
  version: bigint;
}

const COLUMNS = "kind, frozen, by, reason, at, thaw_asked_by, thaw_expires_at, version";
const NOBODY_ASKS = "thaw_asked_by = NULL, thaw_expires_at = NULL, version = version + 1";

/** SQL: how the log last tells switch `k` to have been turned, and by whom; no row: it was never turned. */
const TOLD = `
    SELECT e.type = 'freeze' AS frozen, e.actor FROM operation_events e
    WHERE e.subject = 'freeze:' || k.kind AND e.type IN ('freeze', 'thaw') ORDER BY e.seq DESC LIMIT 1`;

/**
 * SQL: the switches of all kinds and of kind `kind`, and whether each holds back. One that was frozen and that the log tells of nobody
 * thawing is frozen, whatever its row says; so is one whose row is gone. `lock`: how the rows are locked.
 */
export const switchesOf = (kind: string, lock = ""): string => `
  SELECT COALESCE(s.frozen, true) OR COALESCE(told.frozen, false) AS frozen
  FROM (VALUES ('all'), (${kind}::text)) k (kind)
  LEFT JOIN (SELECT kind, frozen FROM freeze_switches WHERE kind IN ('all', ${kind}) ${lock}) s ON s.kind = k.kind
  LEFT JOIN LATERAL (${TOLD}) told ON true`;

/** SQL: in the transaction that turns a switch; `switchShown` takes it back. */
const TURNED = "cards_behind = true";

/** Of a row of `operations`: a freeze keeps it where it is, so that nobody is late with it, however long it is due. SQL condition. */
export const KEPT_BY_FREEZE = `(operations.status IN ('PREPARED', 'QUARANTINED') AND EXISTS (
  SELECT 1 FROM freeze_switches f WHERE f.frozen AND f.kind IN ('all', operations.kind)))`;

/** $1 kind, $2 who, $3 why. No row: it was frozen already. */
const FREEZE = `
UPDATE freeze_switches SET frozen = true, by = $2, reason = $3, at = countersign_now(), ${TURNED}, ${NOBODY_ASKS}
WHERE kind = $1 AND NOT frozen
RETURNING ${COLUMNS}`;

/** $1 kind. Whoever turns the switch waits for this. */
const LOCK = "SELECT 1 FROM freeze_switches WHERE kind = $1 FOR UPDATE";

/**
 * $1 kind, $2 command. A statement of its own, so that it sees what was committed while the lock was waited for. Read as the text that it
 * is: an event that somebody made unreadable keeps nobody from freezing.
 */
const USED = `
SELECT 1 FROM operation_events e
WHERE e.subject = 'freeze:' || $1::text AND strpos(e.body, '"command":' || to_json($2::text)::text) > 0`;

/** Locks the switch. Whether the log tells of this command already: one that is taken a second time, after a crash, turns no switch a second time. */
async function isUsed(tx: Tx, kind: FreezeKind, command: string | undefined): Promise<boolean> {
  await tx.sql("ledger.lock_switch", LOCK, [kind]);
  if (command === undefined) return false;
  return (await tx.sql("ledger.used_command", USED, [kind, command])).length > 0;
}

/** Of a person's command, so that the log knows it again. */
const dataOfCommand = (command: string | undefined): object => (command === undefined ? {} : { command });

/**
 * After this resolves, nothing new of the kind (or of any kind, for `all`) is claimed or sent again. `tripped`: no person did it, so
 * it is a finding, too, for a person to look at. `used`: that command had been carried out before, and changes nothing now.
 */
export async function freeze(
  ctx: LedgerCtx,
  request: { kind: FreezeKind; by: string; reason: string; tripped?: boolean; command?: string },
): Promise<{ state: FreezeSwitch; already: boolean; used: boolean }> {
  return ctx.db.tx(async (tx) => {
    if (await isUsed(tx, request.kind, request.command))
      return { state: await stateOf(tx, request.kind), already: true, used: true };
    const [row] = await tx.sql<Row>("ledger.freeze", FREEZE, [request.kind, request.by, request.reason]);
    if (row === undefined) return { state: await stateOf(tx, request.kind), already: true, used: false };
    const reason = await textName(tx, request.reason);
    await tell(tx, row.kind, "freeze", request.by, { reason, ...dataOfCommand(request.command) });
    await ctx.notices.touch(tx, { kind: "thaw", id: request.kind });
    await ctx.notices.ops(tx, {
      key: `freeze:${row.kind}:${row.version}`,
      message: { type: "frozen", kind: row.kind, by: request.by, reason: request.reason },
    });
    if (request.tripped === true) {
      await openIncident(tx, ctx, {
        kind: "freeze_tripped",
        dedupeKey: `trip:${row.kind}:${row.at?.toISOString() ?? ""}`,
        operationId: null,
        paymentId: null,
        detail: { kind: row.kind, reason: request.reason },
      });
    }
    return { state: toSwitch(row), already: false, used: false };
  });
}

/** $1 kind, $2 who, $3 milliseconds that another person has. */
const ASK = `
UPDATE freeze_switches
SET thaw_asked_by = $2, thaw_expires_at = countersign_now() + $3::float8 * interval '1 millisecond', version = version + 1
WHERE kind = $1 AND frozen RETURNING ${COLUMNS}`;

/** A thaw that somebody typed: of the freeze that they can have meant. */
export interface ThawTyped {
  readonly kind: FreezeKind;
  readonly by: string;
  readonly command?: string;
  /** When it was typed. A freeze of later is not the one that was meant, however late the command is carried out. */
  readonly typedAt?: Date;
  /** Of the switch as it was looked at. */
  readonly version?: number;
}

/**
 * Why nothing was changed. `used`: that command had been carried out before; `frozen_since`: after it was typed; `moved`: the switch has
 * moved since it was looked at.
 */
export type ThawKept = "used" | "frozen_since" | "moved";

/** The switch is locked. null: nothing stands against it. */
async function keptFrom(tx: Tx, typed: ThawTyped): Promise<{ state: FreezeSwitch; kept: ThawKept | null }> {
  const used = await isUsed(tx, typed.kind, typed.command);
  const state = await stateOf(tx, typed.kind);
  const { typedAt, version } = typed;
  if (used) return { state, kept: "used" };
  if (state.frozen && typedAt !== undefined && state.at !== null && state.at > typedAt)
    return { state, kept: "frozen_since" };
  return { state, kept: version !== undefined && version !== state.version ? "moved" : null };
}

/** Records who asks for a thaw that another person must agree to, within a time. */
export async function askThaw(
  ctx: LedgerCtx,
  request: ThawTyped & { withinMs: number },
): Promise<{ state: FreezeSwitch; kept: ThawKept | null }> {
  return ctx.db.tx(async (tx) => {
    const found = await keptFrom(tx, request);
    if (found.kept !== null) return found;
    const [row] = await tx.sql<Row>("ledger.ask_thaw", ASK, [request.kind, request.by, request.withinMs]);
    if (row === undefined) return found;
    await tell(tx, row.kind, "thaw_asked", request.by, dataOfCommand(request.command));
    // A question is asked where people look, below everything since; its end is written where it was asked.
    await ctx.notices.repost(tx, { kind: "thaw", id: request.kind });
    return { state: toSwitch(row), kept: null };
  });
}

/** SQL: the switch $1 stands as the card of version $2 showed it, and its request for a thaw is still open. */
const STILL_ASKED = `kind = $1 AND frozen AND version = $2::bigint AND thaw_asked_by IS NOT NULL
  AND (thaw_expires_at IS NULL OR thaw_expires_at > countersign_now())`;

/** $1 kind. No row: it was not frozen. */
const THAW = `UPDATE freeze_switches SET frozen = false, ${TURNED}, ${NOBODY_ASKS} WHERE kind = $1 AND frozen RETURNING ${COLUMNS}`;

/** $1 kind, $2 version. */
const ASKED = `SELECT ${COLUMNS} FROM freeze_switches WHERE ${STILL_ASKED} FOR UPDATE`;

/** Thaws; `changed` false: it was not frozen, or something stands against it. What waited is looked at again within seconds. */
export async function thaw(
  ctx: LedgerCtx,
  request: ThawTyped,
): Promise<{ state: FreezeSwitch; changed: boolean; kept: ThawKept | null }> {
  return ctx.db.tx(async (tx) => {
    const { state, kept } = await keptFrom(tx, request);
    if (kept !== null) return { state, changed: false, kept };
    const rows = await tx.sql<Row>("ledger.thaw", THAW, [request.kind]);
    return { ...(await thawed(tx, ctx, { ...request, askedBy: null }, rows[0])), kept: null };
  });
}

/** Another person agrees to the thaw that the card of this version asks for; `changed` false: that request no longer stands. */
export async function agreeThaw(
  ctx: LedgerCtx,
  request: { kind: FreezeKind; by: string; version: number },
): Promise<{ state: FreezeSwitch; changed: boolean }> {
  return ctx.db.tx(async (tx) => {
    const [asked] = await tx.sql<Row>("ledger.asked_thaw", ASKED, [request.kind, request.version]);
    if (asked === undefined) return { state: await stateOf(tx, request.kind), changed: false };
    const rows = await tx.sql<Row>("ledger.thaw", THAW, [request.kind]);
    return thawed(tx, ctx, { ...request, askedBy: asked.thaw_asked_by }, rows[0]);
  });
}

/** $1 kind. Open findings that tell of the switch as turned off. */
const TRIPPED_BY = `
SELECT id FROM incidents WHERE status = 'open' AND kind = 'freeze_tripped' AND detail ->> 'kind' = $1`;

async function thawed(
  tx: Tx,
  ctx: LedgerCtx,
  request: { kind: FreezeKind; by: string; askedBy: string | null; command?: string },
  row: Row | undefined,
): Promise<{ state: FreezeSwitch; changed: boolean }> {
  if (row === undefined) return { state: await stateOf(tx, request.kind), changed: false };
  await tell(tx, row.kind, "thaw", request.by, dataOfCommand(request.command));
  await ctx.notices.touch(tx, { kind: "thaw", id: request.kind });
  const tripped = await tx.sql<{ id: string }>("ledger.tripped_by", TRIPPED_BY, [row.kind]);
  for (const { id } of tripped) await ctx.notices.touch(tx, { kind: "incident", id });
  const stillFrozen = (await freezeStates(tx)).filter(({ frozen }) => frozen).map(({ kind }) => kind);
  await ctx.notices.ops(tx, {
    key: `thaw:${row.kind}:${row.version}`,
    message: { type: "thawed", kind: row.kind, by: request.by, askedBy: request.askedBy, stillFrozen },
  });
  return { state: toSwitch(row), changed: true };
}

/** Another person does not agree: it stays frozen and the request is over; `changed` false: that request no longer stands. */
export async function refuseThaw(
  ctx: LedgerCtx,
  request: { kind: FreezeKind; by: string; version: number },
): Promise<{ state: FreezeSwitch; changed: boolean }> {
  return ctx.db.tx(async (tx) => {
    const [asked] = await tx.sql<Row>("ledger.asked_thaw", ASKED, [request.kind, request.version]);
    if (asked === undefined) return { state: await stateOf(tx, request.kind), changed: false };
    return { state: await endRequest(tx, ctx, asked, request.by), changed: true };
  });
}

const RUN_OUT = `
SELECT ${COLUMNS} FROM freeze_switches WHERE thaw_asked_by IS NOT NULL AND thaw_expires_at <= countersign_now()
FOR UPDATE SKIP LOCKED`;

/** Ends requests for a thaw that nobody answered in time. Returns how many. */
export async function endStaleThaws(ctx: LedgerCtx): Promise<number> {
  return ctx.db.tx(async (tx) => {
    const rows = await tx.sql<Row>("ledger.thaws_run_out", RUN_OUT);
    for (const row of rows) await endRequest(tx, ctx, row, null);
    return rows.length;
  });
}

/** The row is locked. */
async function endRequest(
  tx: Tx,
  ctx: LedgerCtx,
  asked: Row,
  refusedBy: string | null,
): Promise<FreezeSwitch> {
  const [row] = await tx.sql<Row>(
    "ledger.end_thaw_request",
    `UPDATE freeze_switches SET ${NOBODY_ASKS} WHERE kind = $1 RETURNING ${COLUMNS}`,
    [asked.kind],
  );
  await tell(tx, asked.kind, "thaw_request_ended", refusedBy ?? "system:ledger");
  await ctx.notices.touch(tx, { kind: "thaw", id: asked.kind });
  await ctx.notices.ops(tx, {
    key: `thaw_request:${asked.kind}:${asked.version}`,
    message: { type: "thaw_request_ended", kind: asked.kind, by: asked.thaw_asked_by ?? "", refusedBy },
  });
  return toSwitch(row ?? asked);
}

/** In the audit log, in the transaction of the change. */
const tell = (
  tx: Tx,
  kind: FreezeKind,
  type: "freeze" | "thaw_asked" | "thaw_request_ended" | "thaw",
  by: string,
  data: object = {},
): Promise<void> => recordSubjectEvent(tx, { subject: `freeze:${kind}`, type, actor: actorOf(by), data });

/** SQL: who froze it by the log, as a row names them; null: that was erased. */
const BY_TOLD = `CASE WHEN told.actor LIKE 'person:%'
  THEN (SELECT regexp_replace(a.value, '^slack:', '') FROM audit_subjects a WHERE a.hash = substr(told.actor, 8)) ELSE told.actor END`;

/** Who froze it by the log stands in the row again, too, unless that was erased: whoever thaws is told apart from that person. */
const SET_BACK = `
UPDATE freeze_switches f SET frozen = true, by = COALESCE(s.by, f.by), ${TURNED}, ${NOBODY_ASKS}
FROM (SELECT k.kind, ${BY_TOLD} AS by FROM freeze_switches k CROSS JOIN LATERAL (${TOLD}) told WHERE NOT k.frozen AND told.frozen) s
WHERE f.kind = s.kind AND NOT f.frozen
RETURNING f.kind, f.version`;

/** $1 kinds of all switches. A version that no card of the row before can have shown. */
const PUT_BACK = `
INSERT INTO freeze_switches (kind, frozen, by, at, cards_behind, version)
SELECT k.kind, COALESCE(told.frozen, false), CASE WHEN told.frozen THEN ${BY_TOLD} END,
  CASE WHEN told.frozen THEN countersign_now() END, true, (extract(epoch FROM countersign_now()) * 1000)::bigint
FROM unnest($1::text[]) AS k (kind) LEFT JOIN LATERAL (${TOLD}) told ON true
WHERE NOT EXISTS (SELECT 1 FROM freeze_switches f WHERE f.kind = k.kind)
ON CONFLICT (kind) DO NOTHING
RETURNING kind, version`;
const ALL_KINDS: readonly FreezeKind[] = ["all", ...OPERATION_KINDS];

/**
 * Switches that were frozen and whose row was lifted by nobody's thaw, and those whose row is gone, are set back as the log tells it, so
 * that everything shown is what holds anyway; on-call hears of each. Returns how many.
 */
export async function setLiftedBack(ctx: LedgerCtx): Promise<number> {
  return ctx.db.tx(async (tx) => {
    const lifted = await tx.sql<Turned>("ledger.set_lifted_back", SET_BACK);
    const gone = await tx.sql<Turned>("ledger.put_switch_back", PUT_BACK, [ALL_KINDS]);
    for (const one of lifted)
      await tellChanged(tx, ctx, one, "the freeze was lifted in the database, and nobody had thawed it");
    for (const one of gone)
      await tellChanged(
        tx,
        ctx,
        one,
        "the switch was deleted in the database, and stands again as the log tells it",
      );
    return lifted.length + gone.length;
  });
}

type Turned = Pick<Row, "kind" | "version">;

async function tellChanged(
  tx: Tx,
  ctx: LedgerCtx,
  { kind, version }: Turned,
  problem: string,
): Promise<void> {
  await ctx.notices.touch(tx, { kind: "thaw", id: kind });
  await openIncident(tx, ctx, {
    kind: "row_changed",
    dedupeKey: `row_changed:freeze:${kind}:${version}`,
    operationId: null,
    paymentId: null,
    detail: { kind, problems: [problem] },
  });
}

/** All switches, `all` first. */
export async function freezeStates(on: SqlRunner): Promise<FreezeSwitch[]> {
  const rows = await on.sql<Row>(
    "ledger.freeze_states",
    `SELECT ${COLUMNS} FROM freeze_switches ORDER BY kind <> 'all', kind`,
  );
  return rows.map(toSwitch);
}

/** Switches that have turned while the cards of what they hold back may still say what was before. */
export async function switchesNotShown(on: SqlRunner): Promise<FreezeSwitch[]> {
  const rows = await on.sql<Row>(
    "ledger.switches_not_shown",
    `SELECT ${COLUMNS} FROM freeze_switches WHERE cards_behind ORDER BY kind`,
  );
  return rows.map(toSwitch);
}

/** Every card of what it holds back is on its way to saying how the switch stands. Turned again since: not yet. */
export async function switchShown(
  on: SqlRunner,
  turned: Pick<FreezeSwitch, "kind" | "version">,
): Promise<void> {
  await on.sql(
    "ledger.switch_shown",
    "UPDATE freeze_switches SET cards_behind = false WHERE kind = $1 AND version = $2::bigint AND cards_behind",
    [turned.kind, turned.version],
  );
}

async function stateOf(on: SqlRunner, kind: FreezeKind): Promise<FreezeSwitch> {
  const found = (await freezeStates(on)).find((state) => state.kind === kind);
  if (found === undefined) throw new Error(`there is no freeze switch for ${kind}`);
  return found;
}

const toSwitch = (row: Row): FreezeSwitch => ({
  kind: row.kind,
  frozen: row.frozen,
  by: row.by,
  reason: row.reason,
  at: row.at,
  thawAskedBy: row.thaw_asked_by,
  thawExpiresAt: row.thaw_expires_at,
  version: Number(row.version),
});
