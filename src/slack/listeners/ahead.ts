/** Who must be read for a click is read while the click is being recorded: neither waits for the other. */
import type { PersonAhead } from "../../approvals/index.js";
import { ACTIONS } from "../actions.js";
import type { Arrival } from "../inbox/arrival.js";
import type { SlackContext } from "../types.js";
import { clickOf } from "./payload.js";

/** Clicks whose use case reads the person, whatever else it finds. */
const READ_AT_ONCE: ReadonlySet<string> = new Set([ACTIONS.approve, ACTIONS.deny, ACTIONS.undo]);

/** Begins to read; null where the handler asks for nobody, or not first. */
export function readAheadOf(ctx: Pick<SlackContext, "useCases">, arrival: Arrival): PersonAhead | null {
  const click = arrival.kind === "action" ? clickOf(arrival.stored) : null;
  return click !== null && READ_AT_ONCE.has(click.actionId) ? ctx.useCases.readAhead(click.userId) : null;
}
