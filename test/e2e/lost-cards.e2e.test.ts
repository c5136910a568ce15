/** Cards whose rows somebody deleted: they come again, and a button of the one before counts as often as the new one's: once together. */
import { describe, expect, it } from "vitest";
import { buttonLabels } from "../../src/app/demo/stage.js";
import { heldRefund } from "../../src/app/demo/stories/refunds.js";
import type { MessageView } from "../../src/sandbox/slack/control-types.js";
import { withDatabases } from "./support/databases.js";
import { type House, inHouse } from "./support/house.js";

const databases = withDatabases();

const asking = (house: House): MessageView[] =>
  house.world.slack.control
    .messages("U_SUP1", "C_APPR")
    .filter((message) => buttonLabels(message).some((label) => label.startsWith("Approve")));

describe("an approval whose cards were deleted in the database", () => {
  it(
    "is shown again to whoever may decide it; Approve on the old card and on the new one is one refund",
    () =>
      inHouse(databases, {}, async (house) => {
        const { stage, world, db } = house;
        await stage.start();
        const thread = await heldRefund(stage);
        const [old] = await stage.until("the card in the channel", async () => {
          const cards = asking(house);
          return cards.length === 1 && cards;
        });
        await stage.messageWith(thread, "Approve");
        await db.pool.query("DELETE FROM slack_cards WHERE kind = 'approval'");
        const cards = await stage.until("the card to come again", async () => {
          const now = asking(house);
          return now.length === 2 && now;
        });
        const anew = cards.find(({ ts }) => ts !== old?.ts);
        const press = (card: MessageView | undefined, as: string) =>
          world.slack.control.click({ as, at: { channel: "C_APPR", ts: card?.ts ?? "" }, label: "Approve" });
        await Promise.all([press(old, "U_SUP1"), press(anew, "U_SUP2")]);
        await stage.operationIn("CONFIRMED");
        await stage.runIn(thread, "resolved");
        await press(old, "U_SUP1");
        await world.payments.control.settle();
        expect((await world.payments.control.effects()).map(({ amount }) => amount)).toEqual([18_000]);
        expect(await db.sql("test.votes", "SELECT 1 FROM votes")).toHaveLength(1);
        await house.assertAuditIntact();
      }),
    240_000,
  );

  it(
    "before they were posted: they are posted",
    () =>
      inHouse(databases, {}, async (house) => {
        const { stage, db } = house;
        await stage.start();
        await db.pool.query(
          `CREATE FUNCTION lose_card() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$;
         CREATE TRIGGER lose_card BEFORE INSERT ON slack_cards FOR EACH ROW WHEN (NEW.kind = 'approval') EXECUTE FUNCTION lose_card()`,
        );
        const thread = await stage.file(
          "U_AGENT",
          "Tom Whitfield's jacket arrived torn, order ORD-10042. Please refund the £180.00.",
        );
        await stage.confirmBinding(thread);
        await stage.runIn(thread, "awaiting_approval");
        await db.pool.query("DROP TRIGGER lose_card ON slack_cards");
        await stage.approve("U_SUP1", thread);
        await stage.operationIn("CONFIRMED");
        expect((await house.world.payments.control.effects()).map(({ amount }) => amount)).toEqual([18_000]);
      }),
    240_000,
  );
});
