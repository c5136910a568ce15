/** Webhooks on the endpoint's wire: what comes from the provider and is of no use here is no forgery. */
import { afterEach, beforeEach, expect, it } from "vitest";
import { routes } from "../../src/app/compose/routes.js";
import { type HealthServer, startHealthServer } from "../../src/app/health-server.js";
import { systemClock } from "../../src/app/system.js";
import { signatureHeader } from "../../src/sandbox/payments/index.js";
import { createMetrics } from "../../src/telemetry/index.js";
import { WEBHOOK_SECRET, withPaymentsSandbox } from "../payments/support.js";
import { withDatabase } from "../support/database.js";
import { type CaseWorld, withCaseWorld } from "./case-world.js";

const database = withDatabase();
const build = withCaseWorld(withPaymentsSandbox());

let w: CaseWorld;
let server: HealthServer;
beforeEach(async () => {
  w = await build(database.db);
  await w.order({ ref: "ORD-1", captured: 18_000 });
  const parts = {
    dispatch: w.worker("web"),
    metrics: createMetrics({ processMetrics: false }),
    readiness: { check: async () => [] },
  };
  server = await startHealthServer(0, routes(parts), parts.dispatch.log);
});
afterEach(() => server.close());

const url = (path: string): string => `http://127.0.0.1:${server.port}${path}`;
async function post(body: string, secret: string): Promise<number> {
  const at = Math.floor(systemClock.now().getTime() / 1000);
  const headers = { "stripe-signature": signatureHeader(body, secret, at) };
  return (await fetch(url("/webhooks/stripe"), { method: "POST", headers, body })).status;
}
async function counted(): Promise<{ unused: number; forged: number }> {
  const text = await (await fetch(url("/metrics"))).text();
  const of = (name: string): number =>
    Number(
      text
        .split("\n")
        .find((line) => line.startsWith(`${name} `))
        ?.slice(name.length) ?? 0,
    );
  return {
    unused: of("countersign_webhooks_unused_total"),
    forged: of('countersign_forbidden_attempts_total{what="webhook"}'),
  };
}

it.each([
  [
    "a thin event",
    {
      id: "evt_1",
      object: "v2.core.event",
      type: "v2.core.account.updated",
      related_object: { id: "acct_1", type: "v2.core.account" },
    },
  ],
  ["an event without an object", { id: "evt_1", object: "event", type: "refund.updated", data: {} }],
  ["no event", [1, 2]],
])("%s: acknowledged with a good signature, forged with another, and nothing moves", async (_what, event) => {
  const before = await w.balance("ORD-1");
  const body = JSON.stringify(event);
  expect(await post(body, WEBHOOK_SECRET)).toBe(200);
  expect(await counted()).toEqual({ unused: 1, forged: 0 });
  expect(await post(body, "whsec_other")).toBe(400);
  expect(await counted()).toEqual({ unused: 1, forged: 1 });
  expect(await w.db.sql(undefined, "SELECT 1 FROM provider_webhooks")).toEqual([]);
  expect(await w.balance("ORD-1")).toEqual(before);
});

it("an event of a type that nobody knows is kept, judged once, and moves nothing", async () => {
  const event = {
    id: "evt_1",
    object: "event",
    type: "new.kind",
    data: { object: { id: "new_1", object: "new" } },
  };
  expect(await post(JSON.stringify(event), WEBHOOK_SECRET)).toBe(200);
  expect(await counted()).toEqual({ unused: 0, forged: 0 });
  expect(await w.balance("ORD-1")).toMatchObject({ reserved: 0, refunded: 0 });
});
