/**
 * Two processes of the product, app and worker each, on one database, one workspace and one provider: clicks at the same moment
 * reach different processes, and wake-ups are taken by either. A few rounds of each race; `npm run test:kills` plays fifty.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { withManyOrders } from "../../src/app/demo/many-orders.js";
import type { MessageView } from "../../src/sandbox/slack/control-types.js";
import { withDatabases } from "./support/databases.js";
import { type House, openHouse, telling } from "./support/house.js";
import { NOTHING_COUNTED } from "./support/nothing-counted.js";
import {
  cardsAreClosed,
  committed,
  held,
  operationsOf,
  raceTimes,
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

describe("S-SL-2: Approve pressed several times, by two people at once, and on a card that is old on the screen", () => {
  it.each([
    ["five times by one person", ["U_SUP1", "U_SUP1", "U_SUP1", "U_SUP1", "U_SUP1"]],
    ["by two people in the same millisecond", ["U_SUP1", "U_SUP2"]],
  ] as const)(
    "%s: one vote, one dispatch, one refund; every further click is told who decided and when",
    async (_how, clicks) => {
      const { stage, world, db } = house;
      const order = takeOrder();
      const thread = await held(house, order, "100.00");
      const card = await stage.messageWith(thread, "Approve");
      const at = { channel: card.channel, ts: card.ts };
      const answers = await Promise.all(
        clicks.map((as) => world.slack.control.click({ as, at, label: "Approve" })),
      );
      expect(
        answers.every((answer) => answer.ok),
        JSON.stringify(answers),
      ).toBe(true);
      await stage.runIn(thread, "resolved");
      // Three seconds later somebody whose Slack still shows the buttons: the payload of the card as it was.
      await world.slack.control.injectInteraction({
        type: "block_actions",
        api_app_id: "A_CS",
        team: { id: "T_HOME", domain: "northwind" },
        user: { id: "U_SUP2", team_id: "T_HOME" },
        channel: { id: card.channel },
        container: { type: "message", channel_id: card.channel, message_ts: card.ts, thread_ts: thread.ts },
        message: { ts: card.ts, thread_ts: thread.ts },
        actions: [
          {
            type: "button",
            action_id: "approval.approve",
            block_id: "decide",
            value: approveValue(card),
            action_ts: "1796000103.000100",
          },
        ],
      });
      const [operation] = await operationsOf(house, order);
      const votes = await db.sql<{ user_id: string }>(
        "test.votes",
        "SELECT user_id FROM votes WHERE approval_id = $1",
        [operation?.approvalId],
      );
      expect(votes).toHaveLength(1);
      const already = `Already approved by <@${votes[0]?.user_id ?? "?"}>, <!date^`;
      await stage.until("every further click to be told who decided and when", async () => {
        const told = ["U_SUP1", "U_SUP2"].flatMap((who) =>
          world.slack.control
            .messages(who, thread.channel, { threadTs: thread.ts, ephemeral: true })
            .filter((message) => message.ephemeral && message.text.startsWith(already)),
        );
        return told.length === clicks.length;
      });
      const events = await db.sql(
        "test.sent",
        "SELECT 1 FROM operation_events WHERE operation_id = $1 AND to_status = 'DISPATCHED'",
        [operation?.id],
      );
      expect(events).toHaveLength(1);
      expect(await committed(house, order)).toEqual([10_000]);
      const texts = await cardsAreClosed(house, order);
      expect(new Set(texts).size).toBe(1);
    },
    120_000,
  );
});

/** What the card's Approve carries. */
function approveValue(card: MessageView): string {
  const value = JSON.stringify(card.blocks).match(/"apr_[0-9a-f]{32}\.\d+"/)?.[0];
  if (value === undefined) throw new Error("the card has no button");
  return value.slice(1, -1);
}

describe("S-AP-3: Approve and Deny in the same millisecond", () => {
  it("is one decision each time, and what was denied is never sent", { timeout: 300_000 }, async () => {
    await telling(house, () => raceTimes(house, 3, takeOrder));
  });
});

describe("S-PAY-6: two partial refunds that together exceed the payment, approved within a moment", () => {
  it("confirms exactly one; the other is told what is left", { timeout: 300_000 }, async () => {
    await telling(house, async () => {
      for (let round = 0; round < 3; round += 1) await twoRefundsOfOne(house, takeOrder());
    });
  });
});

describe("at the end of the day", () => {
  it("the chain of events is intact and the provider made no refund twice", async () => {
    await house.assertAuditIntact();
    expect((await house.world.payments.control.counts()).duplicates).toBe(0);
  });
});
