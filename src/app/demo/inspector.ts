/** The ledger as the page's inspector shows it: the same fields as `ops show --json`. */
import type { Db } from "../../db/connect.js";
import type { Json } from "../../domain/json.js";
import { listOperations } from "../../ledger/index.js";
import { operationJson } from "../commands/ops.js";
import { toJsonText } from "../output.js";

const SHOWN = 50;

/** The newest operations as plain JSON. */
export async function readOperationsJson(db: Db): Promise<Json> {
  const { rows } = await listOperations(db, { limit: SHOWN });
  return JSON.parse(toJsonText(rows.map(operationJson)));
}
