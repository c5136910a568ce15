/**
 * The failure cases of Slack and of approvals against the whole product: one process over HTTP with signatures, the real ledger and
 * the payments sandbox behind it. The Slack room's own tests play more variants; here the money is counted.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { withManyOrders } from "../../src/app/demo/many-orders.js";
import { buttonLabels, type Thread } from "../../src/app/demo/stage.js";
import type { Json, MessageView } from "../../src/sandbox/slack/control-types.js";
import type { ShopFile } from "../../src/shop/index.js";
import { sendSigned } from "../slack/support/signed.js";
import { withDatabases } from "./support/databases.js";
import { type House, openHouse } from "./support/house.js";
import { NOTHING_COUNTED } from "./support/nothing-counted.js";

const databases = withDatabases();
const LONG_MS = 180_000;
const HOSTILE = "ORD-7012";
let house: House;

/** Sixty lines, and a customer whose name would ping somebody. */
function withHostileOrder(shop: ShopFile): ShopFile {
  return {
    ...shop,
    customers: shop.customers.map((one) => (one.ref === "CUS-7012" ? { ...one, name: "<@U_SUP1>" } : one)),
    orders: shop.orders.map((order) => {
      const [item] = order.items;
      if (order.ref !== HOSTILE || item === undefined) return order;
      const items = Array.from({ length: 60 }, (_, n) => ({
        ...item,
        ref: `${HOSTILE}-${n + 1}`,
        unitAmount: 300,
      }));
      return { ...order, items };
    }),
  };
}

beforeAll(async () => {
  house = await openHouse(databases, {
    transport: "http",
    policy: { text: NOTHING_COUNTED },
    changeShop: (shop) => withHostileOrder(withManyOrders(shop, 12)),
  });
  await house.stage.start();
});
afterAll(() => house.close());

const readable = (message: MessageView): string => `${message.text}\n${JSON.stringify(message.blocks)}`;

const ticketsOf = (ts: string): Promise<{ id: string; text: string; filers: string[] }[]> =>
  house.db.sql("test.tickets", "SELECT id, text, filers FROM tickets WHERE message_ts = $1", [ts]);

const count = async (table: "tickets" | "runs"): Promise<number> =>
  Number(
    (await house.db.sql<{ n: bigint }>(`test.count_${table}`, `SELECT count(*) AS n FROM ${table}`))[0]?.n ??
      0n,
  );

const operationOf = async (
  order: string,
): Promise<{ id: string; status: string; filers: string[] } | undefined> =>
  (
    await house.db.sql<{ id: string; status: string; filers: string[] }>(
      "test.operation",
      "SELECT id, status, filers FROM operations WHERE order_ref = $1 ORDER BY created_at DESC, id DESC LIMIT 1",
      [order],
    )
  )[0];

const effectsOf = async (order: string): Promise<number[]> =>
  (await house.world.payments.control.effects({ paymentIntent: `pi_many_${order.slice(4)}` })).map(
    ({ amount }) => amount,
  );

/** What only this person was told in the channel, threads included. */
const toldPrivately = (who: string, thread: { channel: string; ts: string }): string[] =>
  house.world.slack.control
    .messages(who, thread.channel, { threadTs: thread.ts, ephemeral: true })
    .filter((message) => message.ephemeral)
    .map(readable);

async function arrivalsWorkedOff(): Promise<void> {
  await house.stage.until("every arrival to be worked off", async () => {
    const [left] = await house.db.sql<{ n: bigint }>(
      "test.arrivals",
      "SELECT count(*) AS n FROM slack_inbox WHERE processed_at IS NULL",
    );
    return left?.n === 0n;
  });
}

const messageEvent = (ts: string, more: Record<string, Json> = {}): Record<string, Json> => ({
  type: "message",
  channel: "C_TICK",
  channel_type: "channel",
  user: "U_AGENT",
  ts,
  event_ts: ts,
  text: "ORD-1001 came broken, $20 back please",
  ...more,
});

async function held(order: string, by = "U_AGENT"): Promise<Thread> {
  const { stage } = house;
  const thread = await stage.file(by, `The jacket of order ${order} is torn. Please refund £180.00.`);
  await stage.confirmBinding(thread);
  await stage.runIn(thread, "awaiting_approval");
  return thread;
}

describe("S-SL-1: the same event again", () => {
  it("four deliveries are one ticket, one run, one greeting, one refund", { timeout: LONG_MS }, async () => {
    const { stage, world } = house;
    const { slack } = world;
    slack.control.addDeliveryFault({ kind: "duplicate", times: 3, type: "message" });
    const thread = await stage.file("U_AGENT", "Order ORD-7001: refund £20.00 please.");
    await stage.confirmBinding(thread);
    await stage.runIn(thread, "resolved");
    slack.control.clearFaults();
    await arrivalsWorkedOff();
    expect(await ticketsOf(thread.ts)).toHaveLength(1);
    expect(await effectsOf("ORD-7001")).toEqual([2_000]);
    const greetings = stage
      .threadMessages(thread)
      .filter((message) => /About Customer 7001/.test(message.text));
    expect(greetings).toHaveLength(1);
  });

  it("an event that only ever comes as a retry is a ticket like any other", {
    timeout: LONG_MS,
  }, async () => {
    const { stage, world } = house;
    const ts = "1796300000.000100";
    const body = JSON.stringify({
      type: "event_callback",
      team_id: "T_HOME",
      api_app_id: "A_CS",
      event_id: "Ev_ONLY_RETRY",
      event_time: 1_796_300_000,
      authorizations: [{ team_id: "T_HOME", user_id: "U_CS", is_bot: true }],
      event: messageEvent(ts, { text: "Order ORD-7010: refund £20.00 please." }),
    });
    const answer = await sendSigned(
      { sandbox: world.slack, slack: { port: world.productPort } },
      { body, headers: { "x-slack-retry-num": "2", "x-slack-retry-reason": "connection_failed" } },
    );
    expect(answer.status).toBe(200);
    await stage.until("the ticket", async () => (await ticketsOf(ts)).length === 1);
    await stage.until("its run", async () => {
      const found = await house.db.sql(
        "test.run_of",
        "SELECT 1 FROM runs r JOIN tickets t ON t.id = r.ticket_id WHERE t.message_ts = $1",
        [ts],
      );
      return found.length === 1;
    });
  });
});

describe("S-SL-3: the bot does not answer itself, nor edits, nor other apps", () => {
  it("starts no ticket and no run, and says nothing", { timeout: LONG_MS }, async () => {
    const { world, stage } = house;
    await arrivalsWorkedOff();
    const before = [await count("tickets"), await count("runs")];
    const said = world.slack.control.messages("U_SUP1", "C_TICK").length;
    const noise: Record<string, Json>[] = [
      messageEvent("1796100001.000100", {
        user: "U_CS",
        bot_id: "B_CS",
        text: "Order ORD-1001: refund $20.00",
      }),
      messageEvent("1796100002.000100", {
        subtype: "message_changed",
        hidden: true,
        message: {
          ts: "1796100001.000100",
          bot_id: "B_CS",
          app_id: "A_CS",
          text: "ORD-1001",
          attachments: [{ from_url: "https://x.example" }],
        },
        previous_message: { ts: "1796100001.000100", text: "ORD-1001" },
      }),
      messageEvent("1796100003.000100", {
        subtype: "message_changed",
        message: {
          ts: "1796100000.000100",
          user: "U_AGENT",
          text: "ORD-1001 refund $20.00",
          attachments: [{ from_url: "https://x.example" }],
        },
        previous_message: { ts: "1796100000.000100", user: "U_AGENT", text: "ORD-1001 refund $20.00" },
      }),
      messageEvent("1796100004.000100", { subtype: "message_deleted", deleted_ts: "1796100000.000100" }),
      messageEvent("1796100005.000100", {
        subtype: "bot_message",
        bot_id: "B_OTHER",
        text: "refund ORD-1001",
      }),
    ];
    for (const event of noise) expect((await world.slack.control.injectEvent(event)).acked).toBe(true);
    await arrivalsWorkedOff();
    expect([await count("tickets"), await count("runs")]).toEqual(before);
    expect(world.slack.control.messages("U_SUP1", "C_TICK")).toHaveLength(said);
    expect(stage.running).toBe(true);
  });
});

describe("S-SL-4: long and hostile text", () => {
  it("the card is posted within Slack's limits, pings nobody, links nowhere, and its refund is made", {
    timeout: LONG_MS,
  }, async () => {
    const { stage, world } = house;
    const hostile = "<!channel> &amp; <https://pay.example|refund policy> *_~` ".repeat(170);
    const thread = await stage.file(
      "U_AGENT",
      `Order ${HOSTILE}: refund £180.00. ${hostile}`.slice(0, 9_000),
    );
    await stage.confirmBinding(thread);
    await stage.runIn(thread, "awaiting_approval");
    const card = await stage.messageWith(thread, "Approve");
    const twin = await stage.until("the card in the approvals channel", async () =>
      world.slack.control.messages("U_SUP1", "C_APPR").find((message) => readable(message).includes(HOSTILE)),
    );
    for (const message of [card, twin]) {
      expect(message.blocks.length).toBeLessThanOrEqual(50);
      expect(message.mentionsMe, "the name of the customer pings nobody").toBe(false);
      expect(readable(message)).toContain("£180.00 GBP");
      expect(readable(message)).toContain(HOSTILE);
      expect(buttonLabels(message).some((label) => label.startsWith("Deny"))).toBe(true);
      expect(message.text).not.toMatch(/<!channel>|<https:|<@U_SUP1>/);
      const written = message.blocks.flatMap(mrkdwnIn).join("\n");
      expect(written).not.toMatch(/<!channel>|<https:|<@U_SUP1>/);
    }
    await stage.approve("U_SUP1", thread);
    await stage.runIn(thread, "resolved");
    expect(await effectsOf(HOSTILE)).toEqual([18_000]);
  });
});

/** Every text that Slack would interpret. */
function mrkdwnIn(value: Json | undefined): string[] {
  if (Array.isArray(value)) return value.flatMap(mrkdwnIn);
  if (value === null || typeof value !== "object") return [];
  const own = value["type"] === "mrkdwn" && typeof value["text"] === "string" ? [value["text"]] : [];
  return [...own, ...Object.values(value).flatMap((one) => (typeof one === "object" ? mrkdwnIn(one) : []))];
}

describe("S-SL-5: screenshots and broadcasts", () => {
  it("a screenshot with a text is a ticket, one without is asked about, a broadcast reply starts nothing", {
    timeout: LONG_MS,
  }, async () => {
    const { stage, world } = house;
    const { control } = world.slack;
    const files = [{ name: "broken.png", mimetype: "image/png", size: 20_480 }];
    const shown = await control.post({
      as: "U_AGENT",
      channel: "C_TICK",
      text: "ORD-7002 arrived like this",
      files,
    });
    if (!shown.ok) throw new Error(shown.message);
    await stage.until("a ticket with its text", async () =>
      (await ticketsOf(shown.ts))[0]?.text.includes("ORD-7002"),
    );
    const blank = await control.post({ as: "U_AGENT", channel: "C_TICK", text: "", files });
    if (!blank.ok) throw new Error(blank.message);
    await stage.until("the thread to ask what is wanted", async () =>
      stage.threadMessages(blank).some((message) => /What should be done\?/.test(readable(message))),
    );
    await arrivalsWorkedOff();
    const before = await count("tickets");
    await control.post({
      as: "U_AGENT",
      channel: "C_TICK",
      text: "Order ORD-7003: refund £20.00",
      threadTs: shown.ts,
      broadcast: true,
    });
    await control.idle();
    await arrivalsWorkedOff();
    expect(await count("tickets")).toBe(before);
    expect(await effectsOf("ORD-7003")).toEqual([]);
  });
});

describe("S-SL-6: what Slack does to text", () => {
  it("addresses and references are found as they were typed; /ops reads curly quotes and odd blanks", {
    timeout: LONG_MS,
  }, async () => {
    const { stage, world } = house;
    const thread = await held("ORD-7004");
    const operation = await operationOf("ORD-7004");
    const text =
      "refund £20.00 <mailto:c7005@shop.example|c7005@shop.example> order <tel:7005|ORD-7005> R&amp;D jacket";
    const ts = "1796200000.000300";
    await world.slack.control.injectEvent(messageEvent(ts, { text }));
    await stage.until("the ticket", async () => (await ticketsOf(ts)).length === 1);
    expect((await ticketsOf(ts))[0]?.text).toBe("refund £20.00 c7005@shop.example order ORD-7005 R&D jacket");
    const asked = await world.slack.control.command({
      as: "U_ONC1",
      channel: "C_OPS",
      command: "/ops",
      text: `show\u00a0\u201c${operation?.id ?? ""}\u201d`,
    });
    expect(asked.ok).toBe(true);
    await stage.until("/ops show to answer", async () =>
      world.slack.control
        .messages("U_ONC1", "C_OPS", { ephemeral: true })
        .some((message) => message.ephemeral && readable(message).includes("ORD-7004")),
    );
    await stage.deny("U_SUP1", thread, "Only a look.");
    await stage.runIn(thread, "escalated");
  });
});

describe("S-SL-7: Slack refuses updates for a while", () => {
  it("money does not wait for Slack, and the decision reaches every card", { timeout: LONG_MS }, async () => {
    const { stage, world } = house;
    const thread = await held("ORD-7006");
    await stage.messageWith(thread, "Approve");
    world.slack.control.addApiFault({
      method: "chat.update",
      kind: "ratelimited",
      times: 4,
      retryAfterSeconds: 3,
    });
    world.slack.control.addApiFault({
      method: "chat.update",
      kind: "error",
      error: "ratelimited",
      times: 2,
      skip: 4,
    });
    await stage.approve("U_SUP1", thread);
    await stage.until("the refund", async () => (await effectsOf("ORD-7006")).length === 1);
    await stage.until("every card to tell the decision", async () => {
      const cards = [
        ...stage.threadMessages(thread).filter((message) => /^Refund.*Approved by/.test(message.text)),
        ...world.slack.control
          .messages("U_SUP1", "C_APPR")
          .filter((message) => message.text.includes("ORD-7006")),
      ];
      return (
        cards.length >= 2 &&
        cards.every(
          (message) =>
            /Approved by <@U_SUP1>/.test(message.text) &&
            !buttonLabels(message).some((label) => label.startsWith("Approve")),
        )
      );
    });
    world.slack.control.clearFaults();
    expect(await effectsOf("ORD-7006")).toEqual([18_000]);
  });
});

describe("S-AP-1: approved for a packed order that has left", () => {
  it("nothing is done, the approval is void, and the thread says what changed", {
    timeout: LONG_MS,
  }, async () => {
    const { stage } = house;
    const thread = await stage.file("U_AGENT", "Please cancel order A-4471.");
    await stage.confirmBinding(thread);
    await stage.runIn(thread, "awaiting_approval");
    await stage.messageWith(thread, "Approve");
    await stage.importShop((shop) => ({
      ...shop,
      orders: shop.orders.map((order) =>
        order.ref === "A-4471" ? { ...order, status: "dispatched" as const } : order,
      ),
    }));
    await stage.approve("U_SUP1", thread);
    await stage.runIn(thread, "escalated");
    const operation = await operationOf("A-4471");
    expect(operation?.status).toBe("VOIDED");
    const [order] = await house.db.sql<{ status: string }>(
      "test.status",
      "SELECT status FROM orders WHERE ref = 'A-4471'",
    );
    expect(order?.status).toBe("dispatched");
    await stage.until("a card that says what changed", async () =>
      stage
        .threadMessages(thread)
        .some((message) => /packed/.test(readable(message)) && /dispatched/.test(readable(message))),
    );
    const approvals = await house.db.sql<{ state: string }>(
      "test.approvals",
      "SELECT state FROM approvals WHERE operation_id = $1",
      [operation?.id],
    );
    expect(approvals.map(({ state }) => state)).toEqual(["VOIDED"]);
  });
});

describe("S-AP-2: one's own request", () => {
  const refused = async (thread: Thread, order: string): Promise<void> => {
    const { stage } = house;
    await stage.press("U_SUP1", thread, "Approve");
    await stage.until("U_SUP1 to be told that it is their own request", async () =>
      toldPrivately("U_SUP1", thread).some((text) => text.includes("You asked for this yourself")),
    );
    const operation = await operationOf(order);
    expect(operation?.status).toBe("AWAITING_APPROVAL");
    expect(operation?.filers).toContain("U_SUP1");
    expect(await effectsOf(order)).toEqual([]);
    await stage.approve("U_SUP2", thread);
    await stage.runIn(thread, "resolved");
    expect(await effectsOf(order)).toEqual([18_000]);
  };

  it("filed as a message: refused to the filer, open to the other supervisor", {
    timeout: LONG_MS,
  }, async () => {
    await refused(await held("ORD-7007", "U_SUP1"), "ORD-7007");
  });

  it("filed by /ticket: the same", { timeout: LONG_MS }, async () => {
    const { stage, world } = house;
    const command = { as: "U_SUP1", channel: "C_TICK", command: "/ticket", text: "" };
    expect(await world.slack.control.command(command)).toEqual({ ok: true });
    await stage.submitForm("U_SUP1", {
      text: "The jacket is torn. Please refund £180.00 of ORD-7008.",
      reference: "ORD-7008",
    });
    const root = await stage.until("the ticket's message", async () =>
      world.slack.control
        .messages("U_SUP1", "C_TICK")
        .find((message) => readable(message).includes("ORD-7008")),
    );
    const thread = { channel: "C_TICK", ts: root.ts, filer: "U_SUP1" };
    await stage.runIn(thread, "awaiting_approval");
    await refused(thread, "ORD-7008");
  });

  it("by the shortcut on somebody else's ticket: whoever ran it counts as filer too", {
    timeout: LONG_MS,
  }, async () => {
    const { stage, world, db } = house;
    const thread = await stage.file(
      "U_AGENT",
      "The jacket of order ORD-7009 is torn. Please refund £180.00.",
    );
    await stage.until("the ticket", async () => (await ticketsOf(thread.ts)).length === 1);
    const used = await world.slack.control.shortcut({
      as: "U_SUP1",
      callbackId: "resolve_with_countersign",
      message: { channel: thread.channel, ts: thread.ts },
    });
    expect(used).toEqual({ ok: true });
    await stage.until("both to be filers", async () =>
      (await ticketsOf(thread.ts))[0]?.filers.includes("U_SUP1"),
    );
    await stage.confirmBinding(thread);
    await stage.runIn(thread, "awaiting_approval");
    expect(
      (await db.sql("test.one", "SELECT id FROM tickets WHERE message_ts = $1", [thread.ts])).length,
    ).toBe(1);
    await refused(thread, "ORD-7009");
  });
});

describe("after all of it", () => {
  it("the chain of events is intact and nothing was paid twice", async () => {
    await house.assertAuditIntact();
    expect((await house.world.payments.control.counts()).duplicates).toBe(0);
  });
});
