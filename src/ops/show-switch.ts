/** Cards of what a freeze switch holds back say so, and say it no longer after the thaw. */
import type { OpsContext } from "./context.js";
import type { FreezeKind } from "./types.js";

/**
 * Call after the switch has turned, which waits for no card and holds none that a claim waits for. What cannot be written is logged:
 * the switch has turned, a click is answered by it, and the cards converge with the next change.
 */
export async function showSwitch(
  ctx: Pick<OpsContext, "db" | "ledger" | "log">,
  kind: FreezeKind,
): Promise<void> {
  try {
    await ctx.db.tx((tx) => ctx.ledger.notices.switchTurned(tx, kind));
  } catch (error) {
    ctx.log.error({ kind, err: error }, "the switch has turned, but not every card says so yet");
  }
}
