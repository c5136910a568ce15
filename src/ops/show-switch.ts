/** Cards of what a freeze switch holds back say so, and say it no longer after the thaw. */

import { failpoint } from "../domain/failpoints.js";
import * as ledger from "../ledger/index.js";
import type { OpsContext } from "./context.js";
import type { FreezeState } from "./types.js";

type ShowContext = Pick<OpsContext, "db" | "ledger" | "log">;

/**
 * Call after the switch has turned, which waits for no card and holds none that a claim waits for. What cannot be written is logged:
 * the switch has turned, a click is answered by it, and `showSwitches` goes on with the cards.
 */
export async function showSwitch(
  ctx: ShowContext,
  state: Pick<FreezeState, "kind" | "version">,
): Promise<void> {
  await failpoint("ops.after_switch_turned");
  try {
    await ctx.db.tx((tx) => ctx.ledger.notices.switchTurned(tx, state.kind));
    await ledger.switchShown(ctx.db, state);
  } catch (error) {
    ctx.log.error({ kind: state.kind, err: error }, "the switch has turned, but not every card says so yet");
  }
}

/** Shows the switches whose turn nobody has shown: the process that turned them died, or could not write. */
export async function showSwitches(ctx: ShowContext): Promise<void> {
  for (const state of await ledger.switchesNotShown(ctx.db)) await showSwitch(ctx, state);
}
