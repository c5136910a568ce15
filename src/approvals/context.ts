/** What the room needs from outside: a named subset of the program's ports. */
import type { Db, Tx } from "../db/connect.js";
import type { OperationId, RunId, TurnId } from "../domain/ids.js";
import type { Policy } from "../domain/policy/policy.js";
import type { Clock, Ids } from "../domain/ports/clock.js";
import type { Directory } from "../domain/ports/directory.js";
import type { Judge } from "../domain/ports/judge.js";
import type { Logger } from "../domain/ports/logger.js";
import type { Notices } from "../domain/ports/notices.js";
import type { Wake } from "../domain/ports/wake.js";
import type { LedgerCtx } from "../ledger/index.js";
import type { DecidedTurn } from "./types.js";

/** Calls into rooms that this one must not know, made inside the transaction of the change; composed by `app`. */
export interface ApprovalsHooks {
  /** Every call of the held turn is decided: make its run due now (the wake-up after commit may be lost). */
  onTurnDecided(tx: Tx, turn: { runId: RunId; turnId: TurnId }): Promise<void>;
  /**
   * Releases the turn with the vote that decided it, in its transaction and under its locks. It wakes
   * the run after commit. False: not released, and nothing of the run was written. Whatever it throws, the vote is stored without it. Left out: as if it said false.
   */
  releaseDecided?(tx: Tx, turn: DecidedTurn): Promise<boolean>;
  /**
   * After the commit of a decision that did not release its turn: goes on with the turn here and now, and wakes its run. Left out, or lost with the process:
   * whoever is woken goes on.
   */
  afterTurnDecided?(turn: DecidedTurn): void;
  /**
   * `from` was voided by drift after its turn was released, and `to` asks for the same again under a new card: calls that
   * wait for `from` now wait for `to`, and their turn is held again.
   */
  onSuccessor(tx: Tx, change: { from: OperationId; to: OperationId }): Promise<void>;
}

export interface ApprovalsContext {
  readonly db: Db;
  readonly ids: Ids;
  readonly clock: Clock;
  readonly wake: Wake;
  readonly notices: Notices<Tx>;
  readonly directory: Directory;
  readonly judge: Judge<Tx>;
  readonly ledger: LedgerCtx;
  /** The policy in force, read on the caller's transaction. */
  readonly activePolicy: (on: Db | Tx) => Promise<Policy>;
  readonly hooks: ApprovalsHooks;
  readonly log: Logger;
}
