/**
 * Two processes of the product, app and worker each, on one database, one workspace and one provider: clicks at the same moment
 * reach different processes, and wake-ups are taken by either. A few rounds of each race; `npm run test:kills` plays fifty.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { withDatabases } from "./support/databases.js";
import { type House, openHouse } from "./support/house.js";
import { NOTHING_COUNTED, withManyOrders } from "./support/many-orders.js";
import {
  approveAgainstDeny,
  cardIn,
  cardsAreClosed,
  committed,
  held,
  operationsOf,
  twoRefundsOfOne,
} from "./support/races.js";

const databases = withDatabases();
let house: House;
let nextOrder = 7001;

beforeAll(async () => {
  house = await openHouse(databases, {
    policy: { text: NOTHING_COUNTED },
    changeShop: (shop) => withManyOrders(shop, 20, 10_000),
  });
  await Promise.all([house.stage.start(), house.another()]);
});
afterAll(() => house.close());

const takeOrder = (): string => {
  nextOrder += 1;
  return `ORD-${nextOrder - 1}`;
};

describe("S-SL-1 in Socket Mode: the same envelope again, to either process", () => {
  it("is one ticket, one run, one greeting and one refund", { timeout: 120_000 }, async () => {
    const { stage, world, db } = house;
    const order = takeOrder();
    world.slack.control.addDeliveryFault({ kind: "duplicate", times: 3, type: "message" });
    const thread = await stage.file("U_AGENT", `Order ${order}: refund £20.00 please.`);
    await stage.confirmBinding(thread);
    await stage.runIn(thread, "resolved");
    world.slack.control.clearFaults();
    const rows = await db.sql(
      "test.of_one",
      "SELECT r.id FROM tickets t JOIN runs r ON r.ticket_id = t.id WHERE t.message_ts = $1",
      [thread.ts],
    );
    expect(rows).toHaveLength(1);
    expect(await committed(house, order)).toEqual([2_000]);
    expect(stage.threadMessages(thread).filter(({ text }) => text.startsWith("About Customer"))).toHaveLength(
      1,
    );
  });
});

describe("S-SL-2: Approve pressed by two people and several times at once, in two processes", () => {
  it("is one vote, one dispatch, one refund; every further click is told who decided", {
    timeout: 120_000,
  }, async () => {
    const { stage, world, db } = house;
    const order = takeOrder();
    const thread = await held(house, order, "100.00");
    const at = await cardIn(house, thread);
    const clicks = ["U_SUP1", "U_SUP2", "U_SUP1", "U_SUP2", "U_SUP1", "U_SUP1", "U_SUP1"];
    const answers = await Promise.all(
      clicks.map((as) => world.slack.control.click({ as, at, label: "Approve" })),
    );
    expect(
      answers.every((answer) => answer.ok),
      JSON.stringify(answers),
    ).toBe(true);
    await stage.runIn(thread, "resolved");
    const [operation] = await operationsOf(house, order);
    const votes = await db.sql("test.votes", "SELECT id FROM votes WHERE approval_id = $1", [
      operation?.approvalId,
    ]);
    expect(votes).toHaveLength(1);
    expect(await committed(house, order)).toEqual([10_000]);
    await stage.until("six clicks to be told how it stands", async () => {
      const told = ["U_SUP1", "U_SUP2"].flatMap((who) =>
        world.slack.control
          .messages(who, thread.channel, { threadTs: thread.ts, ephemeral: true })
          .filter((message) => message.ephemeral && /<@U_SUP[12]>|already/i.test(message.text)),
      );
      return told.length >= clicks.length - 1;
    });
    await cardsAreClosed(house, order);
  });
});

describe("S-AP-3: Approve and Deny in the same millisecond", () => {
  it("is one decision each time, and what was denied is never sent", { timeout: 300_000 }, async () => {
    for (let round = 0; round < 3; round += 1) await approveAgainstDeny(house, takeOrder());
  });
});

describe("S-PAY-6: two partial refunds that together exceed the payment, approved within a moment", () => {
  it("confirms exactly one; the other is told what is left", { timeout: 300_000 }, async () => {
    for (let round = 0; round < 3; round += 1) await twoRefundsOfOne(house, takeOrder());
  });
});

describe("at the end of the day", () => {
  it("the chain of events is intact and the provider made no refund twice", async () => {
    await house.assertAuditIntact();
    expect((await house.world.payments.control.counts()).duplicates).toBe(0);
  });
});
