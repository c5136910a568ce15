/**
 * The freeze switches. Claims and resends hold their row FOR SHARE; freezing updates it and so waits for them: after the
 * acknowledgement nothing new leaves.
 */
import type { Db, Tx } from "../db/connect.js";
import type { LedgerCtx } from "./context.js";
import type { FreezeKind, FreezeSwitch } from "./types.js";

const COLUMNS = `kind, frozen, by, reason, at, thaw_asked_by AS "thawAskedBy"`;

/** After this resolves, nothing new of the kind is claimed or sent again. */
export async function freeze(
  ctx: LedgerCtx,
  request: { kind: FreezeKind; by: string; reason: string },
): Promise<{ state: FreezeSwitch; already: boolean }> {
  return ctx.db.tx(async (tx) => {
    const [changed] = await tx.sql<FreezeSwitch>(
      "ledger.freeze",
      `UPDATE freeze_switches SET frozen = true, by = $2, reason = $3, at = countersign_now(), thaw_asked_by = NULL,
              version = version + 1
        WHERE kind = $1 AND NOT frozen RETURNING ${COLUMNS}`,
      [request.kind, request.by, request.reason],
    );
    if (changed !== undefined) {
      await ctx.notices.ops(tx, {
        key: `frozen:${request.kind}:${changed.at?.toISOString() ?? ""}`,
        message: { type: "frozen", kind: request.kind, by: request.by, reason: request.reason },
      });
      return { state: changed, already: false };
    }
    return { state: await switchOf(tx, request.kind), already: true };
  });
}

/** Records who asks for a thaw that another person must agree to. */
export async function askThaw(
  ctx: LedgerCtx,
  request: { kind: FreezeKind; by: string },
): Promise<FreezeSwitch> {
  return ctx.db.tx(async (tx) => {
    await tx.sql(
      "ledger.ask_thaw",
      "UPDATE freeze_switches SET thaw_asked_by = $2, version = version + 1 WHERE kind = $1 AND frozen",
      [request.kind, request.by],
    );
    await ctx.notices.touch(tx, { kind: "thaw", id: request.kind });
    return switchOf(tx, request.kind);
  });
}

/** Thaws; `changed` false: it was not frozen. Wakes what waited. */
export async function thaw(
  ctx: LedgerCtx,
  request: { kind: FreezeKind; by: string },
): Promise<{ state: FreezeSwitch; changed: boolean }> {
  return ctx.db.tx(async (tx) => {
    const [changed] = await tx.sql<FreezeSwitch>(
      "ledger.thaw",
      `UPDATE freeze_switches SET frozen = false, at = countersign_now(), version = version + 1
        WHERE kind = $1 AND frozen RETURNING ${COLUMNS}`,
      [request.kind],
    );
    if (changed === undefined) return { state: await switchOf(tx, request.kind), changed: false };
    await ctx.notices.touch(tx, { kind: "thaw", id: request.kind });
    await ctx.notices.ops(tx, {
      key: `thawed:${request.kind}:${changed.at?.toISOString() ?? ""}`,
      message: { type: "thawed", kind: request.kind, by: request.by },
    });
    // What waited is due now; the sweeper wakes it.
    await tx.sql(
      "ledger.thaw_due",
      `UPDATE operations SET due_at = countersign_now()
        WHERE status IN ('PREPARED', 'OUTCOME_UNKNOWN') AND due_at IS NOT NULL AND ($1 = 'all' OR kind = $1)
          AND (not_before IS NULL OR not_before <= countersign_now())`,
      [request.kind],
    );
    return { state: changed, changed: true };
  });
}

export async function freezeStates(db: Db | Tx): Promise<FreezeSwitch[]> {
  return db.sql<FreezeSwitch>("ledger.freezes", `SELECT ${COLUMNS} FROM freeze_switches ORDER BY kind`, []);
}

async function switchOf(tx: Tx, kind: FreezeKind): Promise<FreezeSwitch> {
  const [row] = await tx.sql<FreezeSwitch>(
    "ledger.freeze_one",
    `SELECT ${COLUMNS} FROM freeze_switches WHERE kind = $1`,
    [kind],
  );
  if (row === undefined) throw new Error(`there is no freeze switch "${kind}"`);
  return row;
}
