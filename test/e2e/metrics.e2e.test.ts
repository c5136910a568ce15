/** What `/metrics` shows after things that authority forbids were tried, and whether every documented metric is really emitted. */
import { readFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { withManyOrders } from "../../src/app/demo/many-orders.js";
import { heldRefund } from "../../src/app/demo/stories/refunds.js";
import { withDatabases } from "./support/databases.js";
import { type House, openHouse } from "./support/house.js";
import { count, documentedMetrics, scrape } from "./support/metrics.js";
import { NOTHING_COUNTED } from "./support/nothing-counted.js";

const databases = withDatabases();
const LONG_MS = 120_000;
let house: House;
let base = "";

beforeAll(async () => {
  house = await openHouse(databases, {
    transport: "http",
    policy: { text: NOTHING_COUNTED },
    changeShop: (shop) => withManyOrders(shop, 1, 500_000),
  });
  await house.stage.start();
  base = `http://127.0.0.1:${house.world.productPort}`;
});
afterAll(() => house.close());

/** Waits until the counter of this sample has grown by one since `before`. */
const grows = async (sample: string, before: number): Promise<void> => {
  await house.stage.until(`${sample} to grow`, async () => (await count(base, sample)) > before);
  expect(await count(base, sample)).toBe(before + 1);
};

async function counted(sample: string, attempt: () => Promise<unknown>): Promise<void> {
  const before = await count(base, sample);
  await attempt();
  await grows(sample, before);
}

const forbidden = (what: string): string => `countersign_forbidden_attempts_total{what="${what}"}`;

const post = async (path: string, headers: Record<string, string>): Promise<number> =>
  (
    await fetch(`${base}${path}`, {
      method: "POST",
      headers: { "content-type": "application/json", ...headers },
      body: JSON.stringify({ type: "event_callback", id: "evt_1", object: "event" }),
    })
  ).status;

describe("attempts that authority forbids are counted, once each", () => {
  it("a forged request to Slack's path and a forged webhook", { timeout: LONG_MS }, async () => {
    await counted(forbidden("request"), async () => {
      const now = String(Math.floor(Date.now() / 1000));
      expect(
        await post("/slack/events", { "x-slack-request-timestamp": now, "x-slack-signature": "v0=00" }),
      ).toBe(401);
    });
    await counted(forbidden("request"), async () => {
      expect(
        await post("/slack/events", { "x-slack-request-timestamp": "1", "x-slack-signature": "v0=00" }),
      ).toBe(401);
    });
    await counted(forbidden("webhook"), async () => {
      expect(await post("/webhooks/stripe", { "stripe-signature": "t=1,v1=00" })).toBe(400);
    });
  });

  it("/ops by somebody who is not on call, with good words and with bad ones", {
    timeout: LONG_MS,
  }, async () => {
    await house.world.slack.control.setMember("C_OPS", "U_SUP1", true);
    const ask = (text: string) =>
      house.world.slack.control.command({ as: "U_SUP1", channel: "C_OPS", command: "/ops", text });
    await counted(forbidden("ops"), () => ask("list"));
    await counted(forbidden("ops"), () => ask("lsit"));
    await counted(forbidden("freeze"), () => ask("freeze"));
  });

  it("a click by the wrong person; the right one's is not counted", { timeout: LONG_MS }, async () => {
    const { stage } = house;
    const thread = await heldRefund(stage);
    await counted(forbidden("click"), () => stage.press("U_AGENT", thread, "Approve"));
    await stage.approve("U_SUP1", thread);
    await stage.runIn(thread, "resolved");
    expect(await count(base, forbidden("click"))).toBe(1);
  });

  it("another customer's order, and an amount that the policy never allows", {
    timeout: LONG_MS,
  }, async () => {
    const { stage } = house;
    const before = await count(base, forbidden("scope"));
    const other = await stage.file("U_AGENT", "This is for alice@shop.example: please cancel order B-9001.");
    await stage.chooseCustomer(other, "alice@shop.example");
    await stage.runIn(other, "escalated");
    expect(await count(base, forbidden("scope"))).toBeGreaterThan(before);
    const refusedBefore = await count(base, forbidden("policy"));
    const huge = await stage.file("U_AGENT", "Order ORD-7001 came broken. Please refund the £5,000.00.");
    await stage.confirmBinding(huge);
    await stage.runIn(huge, "escalated");
    expect(await count(base, forbidden("policy"))).toBeGreaterThan(refusedBefore);
    expect((await stage.operations()).filter((operation) => operation.amountMinor === 500_000n)).toEqual([]);
  });
});

describe("the comparison of the books is counted", () => {
  it("read, and unread while the provider's list cannot be had", { timeout: LONG_MS }, async () => {
    const books = (outcome: string): string => `countersign_books_compared_total{outcome="${outcome}"}`;
    const { stage, world } = house;
    await stage.until("a list that was read", async () => (await count(base, books("read"))) > 0);
    expect(await count(base, books("unread"))).toBe(0);
    const fault = world.payments.control.arm({ kind: "read_down", times: null });
    await stage.until("a list that was not", async () => (await count(base, books("unread"))) > 0);
    world.payments.control.disarm(fault);
  });
});

describe("Slack asking for patience is counted by method, whoever had called", () => {
  it("the directory, a form, Home", { timeout: LONG_MS }, async () => {
    const { control } = house.world.slack;
    const limited = (method: string): string => `countersign_slack_rate_limited_total{method="${method}"}`;
    const arm = (method: string): void =>
      void control.addApiFault({ method, kind: "ratelimited", retryAfterSeconds: 1, times: 1 });
    arm("views.publish");
    await counted(limited("views.publish"), () => control.openHome({ as: "U_AGENT" }));
    arm("views.open");
    await counted(limited("views.open"), () =>
      control.command({ as: "U_AGENT", channel: "C_TICK", command: "/ticket", text: "" }),
    );
    arm("users.info");
    // Nobody has asked about them yet, so nothing is remembered of them.
    await counted(limited("users.info"), () =>
      control.post({ as: "U_FIN1", channel: "C_TICK", text: "When is the warehouse open?" }),
    );
  });
});

describe("everything in docs/metrics.md is emitted", () => {
  it("an incident that is found is counted by kind", { timeout: LONG_MS }, () =>
    counted('countersign_incidents_total{kind="refunded_elsewhere"}', () =>
      house.world.payments.control.dashboardRefund({ paymentIntent: "pi_many_7001", amount: 100 }),
    ),
  );

  it("each name has a sample; only a lost wake-up needs a queue that is away", {
    timeout: LONG_MS,
  }, async () => {
    house.world.slack.control.addApiFault({
      method: "chat.postMessage",
      kind: "ratelimited",
      retryAfterSeconds: 1,
      times: 1,
    });
    // Something open, so that the gauges with labels have something to say.
    const waiting = await house.stage.file(
      "U_AGENT",
      "Order ORD-1001 came broken. Please refund the $79.00.",
    );
    await house.stage.confirmBinding(waiting);
    await house.stage.runIn(waiting, "awaiting_approval");
    const documented = documentedMetrics(readFileSync("docs/metrics.md", "utf8"));
    expect(documented.length).toBeGreaterThan(25);
    const silent = async (): Promise<string[]> => {
      const text = await scrape(base);
      return documented.filter((name) => !new RegExp(`^${name}(?:_count)?[{ ]`, "m").test(text));
    };
    await expect.poll(silent, { timeout: 60_000, interval: 500 }).toEqual(["countersign_wakeups_lost_total"]);
  });

  it("the start line names the roles once", () => {
    const line = house
      .log()
      .split("\n")
      .find((one) => one.includes('"started"'));
    expect(line?.match(/"roles":/g)).toHaveLength(1);
    expect(line).toContain('"roles":"app,worker"');
  });
});
