/** A card's turn to be posted or edited: a short wait in place, a longer one as a time on its row. */
import { setTimeout as delay } from "node:timers/promises";
import type { SlackSendContext } from "../types.js";
import { WAIT_IN_PLACE_MS } from "./backoff.js";
import type { CardRow } from "./card-row.js";
import { closedFor, takeTurn } from "./pace.js";

interface TurnWanted {
  readonly key: string;
  readonly intervalMs: number;
  readonly urgent: boolean;
}

type TurnRow = Pick<CardRow, "id" | "paced" | "wanted_version" | "lease_token">;

/** True: the call may leave now. False: the card comes back by itself, with its turn kept. */
export async function waitForTurn(ctx: SlackSendContext, row: TurnRow, turn: TurnWanted): Promise<boolean> {
  const waitMs = row.paced ? await closedFor(ctx.db, turn.key) : (await takeTurn(ctx.db, turn)).waitMs;
  if (waitMs <= 0) return true;
  if (waitMs <= WAIT_IN_PLACE_MS) {
    await delay(waitMs);
    if (!(await touchedSince(ctx, row))) return true;
    // Its turn is kept; what it was going to show is old by now.
    await comeBack(ctx, row, 0);
    await ctx.wake("card", row.id);
    return false;
  }
  await comeBack(ctx, row, waitMs);
  return false;
}

async function touchedSince(ctx: SlackSendContext, row: TurnRow): Promise<boolean> {
  const touched = await ctx.db.sql(
    "slack.card.touched",
    "SELECT 1 FROM slack_cards WHERE id = $1 AND wanted_version > $2",
    [row.id, row.wanted_version],
  );
  return touched.length > 0;
}

async function comeBack(ctx: SlackSendContext, row: TurnRow, afterMs: number): Promise<void> {
  await ctx.db.sql(
    "slack.card.turn",
    `UPDATE slack_cards SET paced = true, lease_until = NULL, due_at = countersign_now() + make_interval(secs => $3 / 1000.0)
      WHERE id = $1 AND lease_token = $2`,
    [row.id, row.lease_token, afterMs],
  );
}
