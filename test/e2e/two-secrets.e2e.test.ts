/** Processes of the product that were given different seal secrets by mistake: on-call hears of it, and nothing is sent by the other's word. */
import { expect, it } from "vitest";
import { heldRefund } from "../../src/app/demo/stories/refunds.js";
import { readable } from "../slack/support/see.js";
import { withDatabases } from "./support/databases.js";
import { inHouse } from "./support/house.js";
import { onCall } from "./support/on-call.js";

const databases = withDatabases();
const OTHER = { SEAL_SECRET: "x".repeat(40) };

it(
  "started in turns they tell the policy once each and on-call once; what one approved is not sent by the other",
  () =>
    inHouse(databases, {}, async (house) => {
      const { stage, world, db } = house;
      const told = async () =>
        (await db.sql("test.told", "SELECT 1 FROM operation_events WHERE type = 'policy_activated'")).length;
      await stage.start();
      for (let round = 0; round < 2; round += 1) await (await house.another({ env: OTHER })).stop();
      await stage.stop();
      await stage.start();
      expect(await told()).toBe(2);
      const card = await onCall(house).card("SEAL_SECRET");
      expect(readable(card)).toContain("What is decided under it is not sent here.");
      const found = () => db.sql("test.found", "SELECT kind FROM incidents WHERE operation_id IS NULL");
      expect(await found()).toEqual([{ kind: "row_changed" }]);

      const thread = await heldRefund(stage);
      await stage.messageWith(thread, "Approve");
      await stage.stop();
      await house.another({ roles: "app", port: world.productPort });
      await world.slack.control.click({
        as: "U_SUP1",
        at: await stage.messageWith(thread, "Approve"),
        label: "Approve",
      });
      await stage.until(
        "the vote",
        async () => (await db.sql("test.votes", "SELECT 1 FROM votes")).length === 1,
      );
      await house.another({ roles: "worker", env: OTHER });
      await stage.until(
        "on-call to hear of what is not the other's word",
        async () =>
          (await db.sql("test.changed", "SELECT 1 FROM incidents WHERE operation_id IS NOT NULL")).length > 0,
      );
      expect(await world.payments.control.effects()).toEqual([]);
      expect(await found()).toHaveLength(1);
    }),
  240_000,
);
