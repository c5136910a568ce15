/** A retry that people authorised: sent once, unless the provider shows by now what they had not seen. */
import { probe, sendClaimed } from "../dispatch/index.js";
import type { Evidence } from "../domain/evidence.js";
import type { OperationId } from "../domain/ids.js";
import type { Operation } from "../domain/operation.js";
import { appliedRetry, freezeStates, getOperation, sendAuthorised } from "../ledger/index.js";
import type { ReconcileCtx } from "./context.js";
import { reconcileOne } from "./one.js";

/** What nobody can know otherwise than by sending. */
const LEAVES_IT_OPEN: ReadonlySet<Evidence["says"]> = new Set(["absent", "unknown"]);

/**
 * Sends it, or lets a reconciler settle it by what the provider shows now: between their word and the sending may lie an outage of ours or
 * a freeze. false: nobody authorised it as it stands, or it may not be sent now.
 */
export async function sendIfAuthorised(ctx: ReconcileCtx, id: OperationId): Promise<boolean> {
  const operation = await getOperation(ctx.db, id);
  if (operation?.status !== "QUARANTINED" || (await appliedRetry(ctx.db, id)) === null) return false;
  if (await isFrozen(ctx, operation)) return false;
  const { evidence } = await probe(ctx, operation);
  if (!LEAVES_IT_OPEN.has(evidence.says)) return (await reconcileOne(ctx, id, "evidence")) !== null;
  const claimed = await sendAuthorised(ctx, { operationId: id, worker: ctx.worker });
  if (claimed.claimed) {
    await sendClaimed(ctx, claimed);
    return true;
  }
  // Too late for it: it is parked anew, and its card comes again without that word.
  if (claimed.why === "key_expired") return (await reconcileOne(ctx, id, "evidence")) !== null;
  return false;
}

async function isFrozen(ctx: ReconcileCtx, { kind }: Operation): Promise<boolean> {
  const switches = await freezeStates(ctx.db);
  return switches.some((one) => one.frozen && (one.kind === "all" || one.kind === kind));
}
