/** A run with its steps, and the operations that its steps name. */
import type { SqlRunner } from "../../db/connect.js";
import type { RunId } from "../../domain/ids.js";
import { type RunView, viewRun } from "../../runs/index.js";
import type { RunCardView } from "../cards/run-card.js";
import { readOperations } from "./operation.js";

export async function readRunView(db: SqlRunner, id: RunId): Promise<RunCardView | null> {
  const view = await viewRun(db, id);
  return view === null ? null : withOperations(db, view);
}

async function withOperations(db: SqlRunner, view: RunView): Promise<RunCardView> {
  const ids = view.calls.flatMap((call) => (call.operationId === null ? [] : [call.operationId]));
  return { view, operations: await readOperations(db, ids) };
}
