/** Several workers at one desk, and people who look at what waits for them, until nothing more comes by itself. */
import { driveRun } from "../agent/index.js";
import { attendDue } from "../approvals/index.js";
import { drive } from "../dispatch/index.js";
import { reconcileDue } from "../reconcile/index.js";
import { dueRuns } from "../runs/index.js";
import { type Desk, preparedAndDue } from "./tickets/desk.js";

const WORKERS = 4;
const LIMIT = 100;
/** A town that is not at rest after so many looks never will be. */
const MAX_LOOKS = 1_000;

/** @param lookAtCards returns how many clicks counted */
export async function workUntilRest(desk: Desk, lookAtCards: () => Promise<number>): Promise<void> {
  const { db } = desk;
  for (let look = 0; look < MAX_LOOKS; look += 1) {
    const due = await dueRuns(db, LIMIT);
    await atOnce(due, (runId) => driveRun(desk.agent, runId));
    const prepared = await preparedAndDue(db);
    await atOnce(prepared, (id) => drive(desk.reconcile, id));
    await reconcileDue(desk.reconcile, { limit: LIMIT });
    await attendDue(desk.approvals, { limit: LIMIT });
    const clicks = await lookAtCards();
    if (due.length + prepared.length + clicks === 0) return;
  }
  throw new Error("the work does not come to rest");
}

async function atOnce<T>(items: readonly T[], act: (item: T) => Promise<unknown>): Promise<void> {
  const left = [...items];
  const worker = async (): Promise<void> => {
    for (let item = left.shift(); item !== undefined; item = left.shift()) await act(item);
  };
  await Promise.all(Array.from({ length: WORKERS }, worker));
}
