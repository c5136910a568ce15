/**
 * Cards that wait for a decision follow the order, payment or subscription that they show; those of open findings about money follow
 * what is left of its payment.
 */
import type { SlackSendContext } from "../types.js";
import { TOLD_WITH_BALANCE } from "../views/ops.js";

/** At most so many cards a pass: a shop import may touch everything, and what did not change costs no call to Slack. */
const PASS_MAX = 20;
/** What was written shortly before a card was shown may have been committed after it was read. */
const COMMIT_LAG_SECONDS = 10;

// $1 cards, $2 seconds. Costs what waits for a decision and what is found and open. What was looked at longest ago goes first, so that each has its turn however
// often everything is written; what is due anyway is left alone.
const BEHIND = `
WITH shown AS (
  SELECT c.id, c.shown_at FROM approvals a JOIN operations o ON o.id = a.operation_id
    JOIN slack_cards c ON c.kind = 'approval' AND c.subject_id = a.id AND c.state = 'live' AND c.due_at IS NULL
    LEFT JOIN orders r ON r.id = o.order_id
    LEFT JOIN payments p ON p.order_id = o.order_id
    LEFT JOIN subscriptions s ON s.id = o.subscription_id
   WHERE a.state = 'PENDING' AND greatest(r.updated_at, p.updated_at, s.updated_at) > c.shown_at - make_interval(secs => $2)
  UNION ALL
  SELECT c.id, c.shown_at FROM incidents i JOIN payments p
      ON p.id = coalesce(i.payment_id, (SELECT id FROM payments WHERE payment_intent = i.detail ->> 'payment'))
    JOIN slack_cards c ON c.kind = 'incident' AND c.subject_id = i.id AND c.state = 'live' AND c.due_at IS NULL
   WHERE i.status = 'open' AND i.kind IN (${TOLD_WITH_BALANCE.map((kind) => `'${kind}'`).join(", ")})
     AND p.updated_at > c.shown_at - make_interval(secs => $2)),
behind AS (SELECT id FROM shown ORDER BY shown_at, id LIMIT $1)
UPDATE slack_cards c SET wanted_version = c.wanted_version + 1, updated_at = countersign_now(), due_at = countersign_now()
  FROM behind WHERE c.id = behind.id AND c.due_at IS NULL
RETURNING c.id`;

/** Lets those cards be rendered anew whose world was written since they were shown. Returns how many. */
export async function followWorld(ctx: Pick<SlackSendContext, "db" | "wake">): Promise<number> {
  const rows = await ctx.db.sql<{ id: string }>("slack.card.behind_world", BEHIND, [
    PASS_MAX,
    COMMIT_LAG_SECONDS,
  ]);
  for (const { id } of rows) await ctx.wake("card", id);
  return rows.length;
}
