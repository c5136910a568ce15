/** Which switch holds an operation back now, as its row says. */
import type { Frozen } from "../domain/frozen.js";

/** Columns of `frozenJoin`. */
export interface FrozenRow {
  readonly frozen_kind: Frozen["kind"] | null;
  readonly frozen_at: Date | null;
  readonly frozen_by: string | null;
  readonly frozen_reason: string | null;
}

/** SQL: the columns from which `frozenOf` reads. */
export const FROZEN_COLUMNS =
  "f.kind AS frozen_kind, f.at AS frozen_at, f.by AS frozen_by, f.reason AS frozen_reason";

/** SQL: joins to operation `o` the switch of its kind, or of every kind, that was turned first. */
export const FROZEN_JOIN = `LEFT JOIN LATERAL (
    SELECT kind, at, by, reason FROM freeze_switches WHERE frozen AND kind IN ('all', o.kind) ORDER BY at, kind LIMIT 1) f ON true`;

/** null: nothing holds it back. */
export const frozenOf = (row: FrozenRow): Frozen | null =>
  row.frozen_kind === null
    ? null
    : { kind: row.frozen_kind, since: row.frozen_at, by: row.frozen_by, reason: row.frozen_reason };
