/**
 * Two processes of the product, app and worker each, on one database, one workspace and one provider: clicks at the same moment
 * reach different processes, and wake-ups are taken by either.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Thread } from "../../src/app/demo/stage.js";
import { buttonLabels } from "../../src/app/demo/stage.js";
import { withDatabases } from "./support/databases.js";
import { type House, openHouse } from "./support/house.js";
import { NOTHING_COUNTED, withManyOrders } from "./support/many-orders.js";

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

interface Operation {
  id: string;
  status: string;
  amountMinor: bigint;
  approvalId: string | null;
}

const operationsOf = (order: string): Promise<Operation[]> =>
  house.db.sql<Operation>(
    "test.operations_of",
    `SELECT id, status, amount_minor AS "amountMinor", approval_id AS "approvalId" FROM operations
      WHERE order_ref = $1 ORDER BY created_at, id`,
    [order],
  );

/** A refund of an order, filed, confirmed and held. */
async function held(order: string, pounds: string): Promise<Thread> {
  const { stage } = house;
  const thread = await stage.file(
    "U_AGENT",
    `The jacket of order ${order} is torn. Please refund £${pounds}.`,
  );
  await stage.confirmBinding(thread);
  await stage.runIn(thread, "awaiting_approval");
  return thread;
}

const takeOrder = (): string => {
  nextOrder += 1;
  return `ORD-${nextOrder - 1}`;
};

async function cardIn(thread: Thread): Promise<{ channel: string; ts: string }> {
  const { channel, ts } = await house.stage.messageWith(thread, "Approve");
  return { channel, ts };
}

const runEnded = (thread: Thread): Promise<unknown> => house.stage.runIn(thread, "resolved", "escalated");

/** What the provider has really made of this order's payment. */
const committed = async (order: string): Promise<number[]> =>
  (await house.world.payments.control.effects({ paymentIntent: `pi_many_${order.slice(4)}` })).map(
    (effect) => effect.amount,
  );

/** Every message that showed this order's approval has lost its buttons. */
async function cardsAreClosed(order: string): Promise<string[]> {
  const { stage, world } = house;
  return stage.until(`the cards of ${order} to be closed`, async () => {
    const cards = [
      ...world.slack.control.messages("U_SUP1", "C_APPR").filter((message) => message.text.includes(order)),
    ];
    return cards.length > 0 &&
      cards.every((message) => buttonLabels(message).every((label) => !/^(Approve|Deny)/.test(label)))
      ? cards.map((message) => message.text)
      : null;
  });
}

describe("S-SL-2: Approve pressed by two people and several times at once, in two processes", () => {
  it("is one vote, one dispatch, one refund; every further click is told who decided", {
    timeout: 120_000,
  }, async () => {
    const { stage, world, db } = house;
    const order = takeOrder();
    const thread = await held(order, "100.00");
    const at = await cardIn(thread);
    const clicks = ["U_SUP1", "U_SUP2", "U_SUP1", "U_SUP2", "U_SUP1", "U_SUP1", "U_SUP1"];
    const answers = await Promise.all(
      clicks.map((as) => world.slack.control.click({ as, at, label: "Approve" })),
    );
    expect(
      answers.every((answer) => answer.ok),
      JSON.stringify(answers),
    ).toBe(true);
    await stage.runIn(thread, "resolved");
    const [operation] = await operationsOf(order);
    const votes = await db.sql("test.votes", "SELECT id FROM votes WHERE approval_id = $1", [
      operation?.approvalId,
    ]);
    expect(votes).toHaveLength(1);
    expect(await committed(order)).toEqual([10_000]);
    await stage.until("six clicks to be told how it stands", async () => {
      const told = ["U_SUP1", "U_SUP2"].flatMap((who) =>
        world.slack.control
          .messages(who, thread.channel, { threadTs: thread.ts, ephemeral: true })
          .filter((message) => message.ephemeral && /<@U_SUP[12]>|already/i.test(message.text)),
      );
      return told.length >= clicks.length - 1;
    });
    await cardsAreClosed(order);
  });
});

describe("S-AP-3: Approve and Deny in the same millisecond", () => {
  it("is one decision each time, and what was denied is never sent", { timeout: 300_000 }, async () => {
    const { stage, world, db } = house;
    const seen: string[] = [];
    for (let round = 0; round < 4; round += 1) {
      const order = takeOrder();
      const thread = await held(order, "100.00");
      const at = await cardIn(thread);
      await world.slack.control.click({ as: "U_SUP2", at, label: "Deny" });
      const form = await stage.until("the form of U_SUP2", async () =>
        world.slack.control.modals("U_SUP2").at(-1),
      );
      const [approve, deny] = await Promise.all([
        world.slack.control.click({ as: "U_SUP1", at, label: "Approve" }),
        world.slack.control.submitView({ as: "U_SUP2", viewId: form.id, values: { Note: "Normal wear." } }),
      ]);
      expect(approve.ok).toBe(true);
      await runEnded(thread);
      if (!deny.ok) await world.slack.control.closeView({ as: "U_SUP2", viewId: form.id, all: true });
      const [operation, ...more] = await operationsOf(order);
      expect(more).toEqual([]);
      expect(["DENIED", "CONFIRMED"]).toContain(operation?.status);
      expect(await committed(order)).toEqual(operation?.status === "CONFIRMED" ? [10_000] : []);
      const decisions = await db.sql<{ state: string }>(
        "test.decisions",
        "SELECT state FROM approvals WHERE operation_id = $1",
        [operation?.id],
      );
      expect(decisions).toHaveLength(1);
      seen.push(operation?.status ?? "");
      await cardsAreClosed(order);
    }
    expect(seen).toHaveLength(4);
  });
});

describe("S-PAY-6: two partial refunds that together exceed the payment, approved within a moment", () => {
  it("confirms exactly one; the other is told what is left", { timeout: 300_000 }, async () => {
    const { world, db } = house;
    for (let round = 0; round < 3; round += 1) {
      const order = takeOrder();
      const sixty = await held(order, "60.00");
      const seventy = await held(order, "70.00");
      const [first, second] = [await cardIn(sixty), await cardIn(seventy)];
      await Promise.all([
        world.slack.control.click({ as: "U_SUP1", at: first, label: "Approve" }),
        world.slack.control.click({ as: "U_SUP2", at: second, label: "Approve" }),
      ]);
      await Promise.all([runEnded(sixty), runEnded(seventy)]);
      const operations = await operationsOf(order);
      expect(operations.filter(({ status }) => status === "CONFIRMED")).toHaveLength(1);
      expect(operations.filter(({ status }) => status === "VOIDED")).toHaveLength(operations.length - 1);
      const made = await committed(order);
      expect(made).toHaveLength(1);
      const [payment] = await db.sql<{ reserved: bigint; refunded: bigint }>(
        "test.payment_of",
        "SELECT p.reserved, p.refunded FROM payments p JOIN orders o ON o.id = p.order_id WHERE o.ref = $1",
        [order],
      );
      expect(payment).toMatchObject({ reserved: 0n, refunded: BigInt(made[0] ?? 0) });
      const loser = made[0] === 6_000 ? seventy : sixty;
      const left = made[0] === 6_000 ? "£40.00" : "£30.00";
      await house.stage.until(`the thread to say that only ${left} is left`, async () =>
        house.stage.threadMessages(loser).some((message) => JSON.stringify(message).includes(`nly ${left}`)),
      );
    }
  });
});

describe("at the end of the day", () => {
  it("the chain of events is intact and the provider made no refund twice", async () => {
    await house.assertAuditIntact();
    expect((await house.world.payments.control.counts()).duplicates).toBe(0);
  });
});
