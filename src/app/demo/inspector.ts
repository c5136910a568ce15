/** The ledger as the page's inspector shows it: the same fields as `ops show --json`, and who of on-call has settled it. */
import type { Db } from "../../db/connect.js";
import type { OperationId } from "../../domain/ids.js";
import type { Json } from "../../domain/json.js";
import { listOperations } from "../../ledger/index.js";
import { operationJson } from "../commands/ops.js";
import { toJsonText } from "../output.js";

const SHOWN = 50;

/** The newest operations as plain JSON. */
export async function readOperationsJson(db: Db): Promise<Json> {
  const { rows } = await listOperations(db, { limit: SHOWN });
  const settled = await settledBy(
    db,
    rows.filter(({ resolvedByPerson }) => resolvedByPerson).map(({ id }) => id),
  );
  return JSON.parse(
    toJsonText(rows.map((row) => ({ ...operationJson(row), settledBy: settled.get(row.id) ?? [] }))),
  );
}

/** $1 operations. Who confirmed or rejected each, the newest decision. */
const SETTLED_BY = `
SELECT DISTINCT ON (operation_id) operation_id AS id, array_remove(ARRAY[by, second_by], NULL) AS by
FROM resolutions WHERE operation_id = ANY ($1) AND state = 'applied' AND verb IN ('confirm', 'reject')
ORDER BY operation_id, operation_version DESC`;

async function settledBy(
  db: Db,
  ids: readonly OperationId[],
): Promise<ReadonlyMap<OperationId, readonly string[]>> {
  if (ids.length === 0) return new Map();
  const rows = await db.sql<{ id: OperationId; by: string[] }>("demo_settled_by", SETTLED_BY, [ids]);
  return new Map(rows.map(({ id, by }) => [id, by]));
}
