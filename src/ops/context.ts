/** What the room needs from outside. */

import type { Evidence } from "../domain/evidence.js";
import type { OperationId } from "../domain/ids.js";
import type { Operation } from "../domain/operation.js";
import type { Policy } from "../domain/policy/policy.js";
import type { Db, Tx } from "../domain/ports/database.js";
import type { Directory } from "../domain/ports/directory.js";
import type { Logger } from "../domain/ports/logger.js";
import type { Notices } from "../domain/ports/notices.js";
import type { LedgerCtx } from "../ledger/index.js";
import type { HealthPart } from "./types.js";

export interface OpsContext {
  readonly db: Db;
  readonly ledger: LedgerCtx;
  readonly directory: Directory;
  readonly notices: Notices<Tx>;
  readonly activePolicy: (on: Db | Tx) => Promise<Policy>;
  readonly log: Logger;
  /** Attempts after which an open outcome is no longer sent again. */
  readonly maxAttempts: number;
  /** Asks the provider about one operation. Changes no status; failing is the evidence `unknown`. */
  readonly probe: (operation: Operation) => Promise<Evidence>;
  /** As `probe`, and writes nothing: of what is settled, looking must move nothing. */
  readonly read: (operation: Operation) => Promise<Evidence>;
  /** Lets a reconciler look at the operation at once; null: somebody else is looking. */
  readonly reconcile: (operationId: OperationId) => Promise<Operation | null>;
  /** Whether the parts that only the process knows (queue, Slack, payments) answer. */
  readonly healthParts: () => Promise<readonly HealthPart[]>;
}

/** What looking at one operation takes. */
export interface LookContext {
  readonly db: Db;
  readonly ledger: Pick<LedgerCtx, "timing" | "contracts">;
  readonly maxAttempts: number;
}
