/** Proposals that wait for a second person: how they end without one. */
import type { Tx } from "../db/connect.js";
import { CountersignError } from "../domain/errors.js";
import type { LedgerCtx } from "./context.js";
import { recordProposalEnded } from "./decision-events.js";
import { sealResolution } from "./decision-seals.js";
import { lockOperation } from "./endings.js";
import { closeResolution, getResolution, staleProposal, staleProposals } from "./resolution-rows.js";
import type { Resolution } from "./types.js";

/** Ends an open proposal and shows it. The operation's row is locked. What is carried out is sealed as two people's decision. */
export async function endProposal(
  tx: Tx,
  ctx: Pick<LedgerCtx, "notices" | "seals">,
  proposal: Resolution,
  end: Omit<Parameters<typeof closeResolution>[2], "seal">,
): Promise<Resolution> {
  const { state, second, operationVersion = proposal.operationVersion } = end;
  const seal =
    state === "applied"
      ? sealResolution(ctx.seals, { ...proposal, state, operationVersion, secondBy: second?.by ?? null })
      : null;
  const closed = await closeResolution(tx, proposal.id, { ...end, seal });
  if (closed === null) {
    throw new CountersignError("lost_lock", `resolution ${proposal.id} moved under its lock`);
  }
  await recordProposalEnded(tx, closed);
  await ctx.notices.touch(tx, { kind: "resolution", id: proposal.id });
  await ctx.notices.touch(tx, { kind: "quarantine", id: proposal.operationId });
  return closed;
}

/** Ends the proposal if it no longer stands, and says so in the ops channel. null: it stands. The operation's row is locked. */
export async function endIfStale(
  tx: Tx,
  ctx: Pick<LedgerCtx, "notices" | "seals">,
  proposal: Resolution,
): Promise<Resolution | null> {
  const how = await staleProposal(tx, proposal.id);
  if (how === null) return null;
  const ended = await endProposal(tx, ctx, proposal, { state: how, second: null });
  await ctx.notices.ops(tx, {
    key: `proposal:${proposal.id}:${how}`,
    message: {
      type: "proposal_ended",
      operationId: proposal.operationId,
      verb: proposal.verb,
      by: proposal.by,
      how,
    },
  });
  return ended;
}

/** Ends up to `limit` proposals whose time is over or whose operation has moved. Returns how many. */
export async function endStaleProposals(ctx: LedgerCtx, options: { limit: number }): Promise<number> {
  let ended = 0;
  for (const stale of await staleProposals(ctx.db, options.limit)) {
    const done = await ctx.db.tx(async (tx) => {
      await lockOperation(tx, stale.operation_id);
      const proposal = await getResolution(tx, stale.id);
      return proposal?.state === "proposed" && (await endIfStale(tx, ctx, proposal)) !== null;
    });
    if (done) ended += 1;
  }
  return ended;
}
