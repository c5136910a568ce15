/** A person's end turns out to be a wrong click: it is parked for a person again, with a record of its own. */
import type { Tx } from "../db/connect.js";
import type { LedgerCtx } from "./context.js";
import { parkEnd } from "./contradiction.js";
import { lockOperation } from "./endings.js";
import { insertResolution, madeOf, movedSince } from "./resolution-rows.js";
import { actorName, textName } from "./subjects.js";
import type { ReopenRequest, ReopenResult } from "./types.js";

/**
 * CONFIRMED or REJECTED by a person → QUARANTINED. The caller has authenticated the person and looked at their role. Ends that
 * evidence settled are not a person's to open.
 */
export async function reopen(ctx: LedgerCtx, request: ReopenRequest): Promise<ReopenResult> {
  return ctx.db.tx((tx) => reopenIn(tx, ctx, request));
}

async function reopenIn(tx: Tx, ctx: LedgerCtx, request: ReopenRequest): Promise<ReopenResult> {
  const operation = await lockOperation(tx, request.operationId);
  if (operation === null || (await movedSince(tx, operation.id, request.expectedVersion))) {
    return { outcome: "overtaken", operation };
  }
  if ((await madeOf(tx, { ...request, verb: "reopen" })) !== null)
    return { outcome: "not_safe", code: "repeated", operation };
  const ended = operation.status === "CONFIRMED" || operation.status === "REJECTED";
  if (!ended || !operation.resolvedByPerson) return { outcome: "not_safe", code: "wrong_state", operation };
  if (operation.filers.includes(request.by)) {
    return { outcome: "not_safe", code: "filed_it_themselves", operation };
  }
  const id = ctx.ids.next("res_");
  const reopened = await parkEnd(tx, ctx, operation, {
    actor: await actorName(tx, `slack:${request.by}`),
    data: {
      resolution: id,
      verb: "reopen",
      reason: await textName(tx, request.reason),
      evidence: { reference: await textName(tx, request.evidenceRef) },
    },
    quarantineReason: `opened_again: It had been settled as ${operation.status === "CONFIRMED" ? "done" : "not carried out"}.`,
  });
  const resolution = await insertResolution(tx, ctx.seals, {
    id,
    operationId: operation.id,
    verb: "reopen",
    state: "applied",
    operationVersion: reopened.version,
    by: request.by,
    reason: request.reason,
    evidenceRef: request.evidenceRef,
    probe: {},
    expiresInMs: null,
  });
  await ctx.notices.ops(tx, {
    key: `resolution:${id}`,
    message: {
      type: "resolved",
      operationId: operation.id,
      verb: "reopen",
      by: request.by,
      reason: request.reason,
      evidence: request.evidenceRef,
    },
  });
  return { outcome: "reopened", resolution, operation: reopened };
}
