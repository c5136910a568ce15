/**
 * The races of two people against two processes of the whole product, fifty times each (S-AP-3, S-PAY-6). `npm test` plays a few
 * rounds; COUNTERSIGN_RACE_ROUNDS sets another number here. Slack's requests reach the two in turn.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { withManyOrders } from "../../src/app/demo/many-orders.js";
import { freePort } from "../../src/app/demo/ports.js";
import { type Balancer, startBalancer } from "../e2e/support/balancer.js";
import { withDatabases } from "../e2e/support/databases.js";
import { type House, openHouse, telling } from "../e2e/support/house.js";
import { NOTHING_COUNTED } from "../e2e/support/nothing-counted.js";
import { raceTimes, twoRefundsOfOne } from "../e2e/support/races.js";

const ROUNDS = Number(process.env["COUNTERSIGN_RACE_ROUNDS"] ?? "50");
const ROUND_MS = 120_000;
const databases = withDatabases();
let house: House;
let balancer: Balancer;
let nextOrder = 7001;

const takeOrder = (): string => {
  nextOrder += 1;
  return `ORD-${nextOrder - 1}`;
};

beforeAll(async () => {
  house = await openHouse(databases, {
    transport: "http",
    policy: { text: NOTHING_COUNTED },
    changeShop: (shop) => withManyOrders(shop, 3 * ROUNDS, 10_000),
  });
  const port = await freePort();
  await Promise.all([house.stage.start(), house.another({ port })]);
  balancer = await startBalancer([house.world.productPort, port]);
  const url = `http://127.0.0.1:${balancer.port}/slack/events`;
  expect(await house.world.slack.control.verifyRequestUrl(url)).toBe(true);
});
afterAll(async () => {
  await balancer.stop();
  await house.close();
});

describe("fifty times, in two processes", () => {
  it("S-AP-3: one decision, one end, one story", { timeout: ROUNDS * ROUND_MS }, async () => {
    await telling(house, () => raceTimes(house, ROUNDS, takeOrder));
  });

  it("S-PAY-6: exactly one of £60 and £70 out of £100", { timeout: ROUNDS * ROUND_MS }, async () => {
    await telling(house, async () => {
      for (let round = 0; round < ROUNDS; round += 1) await twoRefundsOfOne(house, takeOrder());
    });
    const { duplicates } = await house.world.payments.control.counts();
    expect(duplicates).toBe(0);
    await house.assertAuditIntact();
    expect(Math.min(...balancer.passed()), "requests that reached each process").toBeGreaterThan(ROUNDS);
  });
});
