/** What the room needs from outside: a named subset of the program's ports. */
import type { Db, Tx } from "../db/connect.js";
import type { RunId, TurnId } from "../domain/ids.js";
import type { Clock, Ids } from "../domain/ports/clock.js";
import type { Directory } from "../domain/ports/directory.js";
import type { Notices } from "../domain/ports/notices.js";
import type { Wake } from "../domain/ports/wake.js";

/** Calls into rooms that this one must not know, made inside the transaction of the change; composed by `app`. */
export interface ApprovalsHooks {
  /** Every call of the held turn is decided: make its run due now (the wake-up after commit may be lost). */
  onTurnDecided(tx: Tx, turn: { runId: RunId; turnId: TurnId }): Promise<void>;
}

export interface ApprovalsContext {
  db: Db;
  ids: Ids;
  clock: Clock;
  wake: Wake;
  notices: Notices<Tx>;
  directory: Directory;
  hooks: ApprovalsHooks;
}
