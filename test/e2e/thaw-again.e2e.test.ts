/** A command of on-call whose process dies, and that is taken again when the switch has been turned by somebody else since. */
import { describe, expect, it } from "vitest";
import { withManyOrders } from "../../src/app/demo/many-orders.js";
import { withDatabases } from "./support/databases.js";
import { type House, inHouse } from "./support/house.js";
import { onCall } from "./support/on-call.js";
import { committed, held, operationsOf } from "./support/races.js";

const databases = withDatabases();
const LONG_MS = 240_000;

const frozen = async (house: House): Promise<boolean> =>
  (await house.db.sql("test.frozen", "SELECT 1 FROM freeze_switches WHERE kind = 'refund' AND frozen"))
    .length === 1;
const type = (house: House, as: string, text: string) =>
  house.world.slack.control.command({ as, channel: "C_OPS", command: "/ops", text });

/** Every arrival was worked off. */
const heard = (house: House) =>
  house.stage.until(
    "no arrival to be left",
    async () =>
      (await house.db.sql("test.left", "SELECT 1 FROM slack_inbox WHERE processed_at IS NULL")).length === 0,
  );

/** The process dies after it has carried the thaw out, and before it has noted that it did. */
async function thawAndDie(house: House): Promise<void> {
  const { stage } = house;
  await stage.stop();
  await stage.start({ COUNTERSIGN_FAILPOINTS: "slack.after_handled=kill@1" });
  await type(house, "U_ONC2", "thaw refund");
  await stage.productEnded();
}

/** What people approved while it is frozen stays where it is, and is sent once after a thaw that somebody typed for it. */
async function staysUntilThawed(house: House, thread: Awaited<ReturnType<typeof held>>): Promise<void> {
  const { stage } = house;
  await heard(house);
  expect(await frozen(house)).toBe(true);
  await stage.approve("U_SUP1", thread);
  await stage.until("the approved operation to wait", async () =>
    (await operationsOf(house, "ORD-7001")).some(({ status }) => status === "PREPARED"),
  );
  await heard(house);
  expect(await committed(house, "ORD-7001")).toEqual([]);
  await onCall(house).ops("U_ONC2", "thaw refund");
  await stage.runIn(thread, "resolved");
  expect(await committed(house, "ORD-7001")).toEqual([10_000]);
  await house.assertAuditIntact();
}

describe("/ops thaw whose process is killed before it is done with it", () => {
  it(
    "carried out, and frozen anew since: taken again, it does not lift the later freeze",
    {
      timeout: LONG_MS,
    },
    () =>
      inHouse(databases, { changeShop: (shop) => withManyOrders(shop, 1, 10_000) }, async (house) => {
        const { stage } = house;
        await stage.start();
        const thread = await held(house, "ORD-7001", "100.00");
        await onCall(house).ops("U_ONC1", "freeze refund it smells");
        await heard(house);
        await thawAndDie(house);
        expect(await frozen(house)).toBe(false);
        await house.another();
        await type(house, "U_ONC1", "freeze refund it smells worse");
        await stage.until("it to be frozen again", () => frozen(house));
        await staysUntilThawed(house, thread);
      }),
  );

  it(
    "typed when nothing was frozen, and frozen since: taken again, it does not lift that freeze",
    {
      timeout: LONG_MS,
    },
    () =>
      inHouse(databases, { changeShop: (shop) => withManyOrders(shop, 1, 10_000) }, async (house) => {
        const { stage } = house;
        await stage.start();
        const thread = await held(house, "ORD-7001", "100.00");
        await heard(house);
        await thawAndDie(house);
        await house.another();
        await type(house, "U_ONC1", "freeze refund it smells");
        await stage.until("it to be frozen", () => frozen(house));
        await staysUntilThawed(house, thread);
      }),
  );
});
