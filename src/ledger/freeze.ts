/**
 * The freeze switches. Claims and resends lock theirs in share mode; freezing updates it and so waits for them: once it has
 * committed, nothing new leaves.
 */
import type { SqlRunner } from "../db/connect.js";
import type { LedgerCtx } from "./context.js";
import type { FreezeKind, FreezeSwitch } from "./types.js";

interface Row {
  kind: FreezeKind;
  frozen: boolean;
  by: string | null;
  reason: string | null;
  at: Date | null;
  thaw_asked_by: string | null;
  version: bigint;
}

const COLUMNS = "kind, frozen, by, reason, at, thaw_asked_by, version";

/** $1 kind, $2 who, $3 why. No row: it was frozen already. */
const FREEZE = `
UPDATE freeze_switches
SET frozen = true, by = $2, reason = $3, at = countersign_now(), thaw_asked_by = NULL, version = version + 1
WHERE kind = $1 AND NOT frozen
RETURNING ${COLUMNS}`;

/** After this resolves, nothing new of the kind (or of any kind, for `all`) is claimed or sent again. */
export async function freeze(
  ctx: LedgerCtx,
  request: { kind: FreezeKind; by: string; reason: string },
): Promise<{ state: FreezeSwitch; already: boolean }> {
  return ctx.db.tx(async (tx) => {
    const [row] = await tx.sql<Row>("ledger.freeze", FREEZE, [request.kind, request.by, request.reason]);
    if (row === undefined) return { state: await stateOf(tx, request.kind), already: true };
    await ctx.notices.touch(tx, { kind: "thaw", id: request.kind });
    await ctx.notices.ops(tx, {
      key: `freeze:${row.kind}:${row.version}`,
      message: { type: "frozen", kind: row.kind, by: request.by, reason: request.reason },
    });
    return { state: toSwitch(row), already: false };
  });
}

/** $1 kind, $2 who. */
const ASK = `
UPDATE freeze_switches SET thaw_asked_by = $2, version = version + 1 WHERE kind = $1 AND frozen RETURNING ${COLUMNS}`;

/** Records who asks for a thaw that another person must agree to; null takes the request back. */
export async function askThaw(
  ctx: LedgerCtx,
  request: { kind: FreezeKind; by: string | null },
): Promise<FreezeSwitch> {
  return ctx.db.tx(async (tx) => {
    const [row] = await tx.sql<Row>("ledger.ask_thaw", ASK, [request.kind, request.by]);
    if (row === undefined) return stateOf(tx, request.kind);
    await ctx.notices.touch(tx, { kind: "thaw", id: request.kind });
    return toSwitch(row);
  });
}

/** $1 kind. No row: it was not frozen. */
const THAW = `
UPDATE freeze_switches SET frozen = false, thaw_asked_by = NULL, version = version + 1
WHERE kind = $1 AND frozen
RETURNING ${COLUMNS}`;

/** Thaws; `changed` false: it was not frozen. What waited is looked at again within seconds. */
export async function thaw(
  ctx: LedgerCtx,
  request: { kind: FreezeKind; by: string },
): Promise<{ state: FreezeSwitch; changed: boolean }> {
  return ctx.db.tx(async (tx) => {
    const [row] = await tx.sql<Row>("ledger.thaw", THAW, [request.kind]);
    if (row === undefined) return { state: await stateOf(tx, request.kind), changed: false };
    await ctx.notices.touch(tx, { kind: "thaw", id: request.kind });
    await ctx.notices.ops(tx, {
      key: `thaw:${row.kind}:${row.version}`,
      message: { type: "thawed", kind: row.kind, by: request.by },
    });
    return { state: toSwitch(row), changed: true };
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

async function stateOf(on: SqlRunner, kind: FreezeKind): Promise<FreezeSwitch> {
  const found = (await freezeStates(on)).find((state) => state.kind === kind);
  return found ?? { kind, frozen: false, by: null, reason: null, at: null, thawAskedBy: null };
}

const toSwitch = (row: Row): FreezeSwitch => ({
  kind: row.kind,
  frozen: row.frozen,
  by: row.by,
  reason: row.reason,
  at: row.at,
  thawAskedBy: row.thaw_asked_by,
});
