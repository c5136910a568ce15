/** What the room needs from outside: a named subset of the program's ports. */
import type { Db, Tx } from "../db/connect.js";
import type { ContractBook } from "../domain/contracts.js";
import type { RunId } from "../domain/ids.js";
import type { Operation } from "../domain/operation.js";
import type { Ids } from "../domain/ports/clock.js";
import type { Notices } from "../domain/ports/notices.js";
import type { Wake } from "../domain/ports/wake.js";
import type { Seals } from "../domain/seals.js";
import type { IncidentKind } from "./types.js";

/** Times in milliseconds. */
export interface LedgerTiming {
  /** Life of a claim's or a reconciler's lease. */
  readonly leaseMs: number;
  /** For one request, headers and body together. */
  readonly providerTimeoutMs: number;
  /** Added to the timeout before a key's end of life: clocks and buffers. */
  readonly sendMarginMs: number;
  /** First step and cap of the backoff between looks at an open outcome. */
  readonly reconcileBaseMs: number;
  readonly reconcileMaxMs: number;
  /** An outcome that is open for this long goes to a person. */
  readonly quarantineAfterMs: number;
  readonly quarantineRepostMs: number;
  /** A prepared operation that nobody drives is due again after this long (a lost wake-up). */
  readonly prepareGraceMs: number;
}

/** Calls into rooms that this one must not know, made inside the transaction of the change; composed by `app`. */
export interface LedgerHooks {
  /** The operation reached an end, became unknown or went to a person: make the runs that wait for it due now. */
  onSettled(tx: Tx, operation: Operation): Promise<void>;
  /** Runs whose card shows the operation, as its owner or by a call of theirs, in the order of their ids. */
  runsShowing(
    tx: Tx,
    operation: Pick<Operation, "id" | "ownerRunId">,
    which: "all" | "ended",
  ): Promise<readonly RunId[]>;
  /** An incident was opened for the first time; told after its commit. */
  onIncident?(kind: IncidentKind): void;
}

export interface LedgerCtx {
  readonly db: Db;
  readonly ids: Ids;
  readonly wake: Wake;
  readonly notices: Notices<Tx>;
  readonly contracts: ContractBook;
  readonly timing: LedgerTiming;
  readonly hooks: LedgerHooks;
  /** Of the decisions that money leaves by. */
  readonly seals: Seals;
}
