/** Approval cards and clicks on them in a world with the real Bolt app. */
import { afterEach } from "vitest";
import type { TicketId } from "../../../src/domain/ids.js";
import type { MessageView } from "../../../src/sandbox/slack/index.js";
import { withDatabase } from "../../support/database.js";
import { waitFor } from "../../support/wait.js";
import { type Held, type HeldOptions, hold } from "./held.js";
import { answers, readable } from "./see.js";
import { loadShop } from "./shop.js";
import { startWorld, type World, type WorldOptions } from "./world.js";

/** A database, a world for each test, and what its tests do there. Call once, at the top of a file. */
export function withCards() {
  const database = withDatabase();
  let world: World | undefined;

  afterEach(async () => {
    await world?.stop();
    world = undefined;
  });

  async function start(options: Partial<WorldOptions> = {}): Promise<World> {
    await loadShop(database.db);
    world = await startWorld({ db: database.db, mode: "http", ...options });
    return world;
  }

  const handledClicks = async (): Promise<number> =>
    (
      await database.db.sql(
        undefined,
        "SELECT 1 FROM slack_inbox WHERE kind = 'action' AND processed_at IS NOT NULL",
      )
    ).length;

  const cardIn = (w: World, as = "U_SUP1"): Promise<MessageView> =>
    waitFor(() => w.sandbox.control.messages(as, "C_APPR").find((one) => readable(one).includes("Amount")));
  /** True once the answer to its post is recorded: until then any timestamp in its channel may be its own. */
  const whereItStands = async ({ ts }: MessageView): Promise<boolean> =>
    (await database.db.sql(undefined, "SELECT 1 FROM slack_cards WHERE message_ts = $1", [ts])).length === 1;
  const click = async (w: World, as: string, card: MessageView, label: string) =>
    w.sandbox.control.click({ as, at: { channel: card.channel, ts: card.ts }, label });
  const votes = (): Promise<{ user_id: string; verdict: string }[]> =>
    database.db.sql(undefined, "SELECT user_id, verdict FROM votes ORDER BY at");
  const says = (w: World, as: string, text: string, channel = "C_APPR") =>
    waitFor(() => answers(w.sandbox, as, channel).find((one) => one.includes(text)), {
      what: `"${text}" to ${as}`,
    });

  /** A ticket of U_AGENT with a thread, and an approval that stands in it and in the approvals channel. */
  async function inThread(w: World, options: HeldOptions = {}): Promise<{ held: Held; ts: string }> {
    const posted = await w.sandbox.control.post({
      as: "U_AGENT",
      channel: "C_TICK",
      text: "refund ORD-10042",
    });
    if (!posted.ok) throw new Error(posted.message);
    const [ticket] = await waitFor(async () => {
      const rows = await database.db.sql<{ id: TicketId }>(
        undefined,
        "SELECT id FROM tickets WHERE message_ts = $1",
        [posted.ts],
      );
      return rows.length > 0 ? rows : null;
    });
    return { held: await hold(w, { ticketId: ticket?.id ?? null, ...options }), ts: posted.ts };
  }

  return { database, start, handledClicks, cardIn, whereItStands, click, votes, says, inThread };
}

export const buttonsOf = (card: MessageView): string[] =>
  card.blocks.flatMap((block) =>
    block.type === "actions"
      ? (block["elements"] as { text: { text: string } }[]).map(({ text }) => text.text)
      : [],
  );
