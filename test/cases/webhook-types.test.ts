/** Signed webhooks whose fields have other types than Stripe's: stored and judged, or of no use; never an error of ours. */
import fc from "fast-check";
import { beforeEach, expect, it } from "vitest";
import { systemClock } from "../../src/app/system.js";
import { signatureHeader } from "../../src/sandbox/payments/index.js";
import { WEBHOOK_SECRET, withPaymentsSandbox } from "../payments/support.js";
import { withDatabase } from "../support/database.js";
import { type CaseWorld, withCaseWorld } from "./case-world.js";

const database = withDatabase();
const build = withCaseWorld(withPaymentsSandbox());
let w: CaseWorld;

type Payload = { [key: string]: fc.JsonValue };
const event = (n: number): Payload => ({
  id: `evt_${n}`,
  object: "event",
  type: "refund.updated",
  created: 1_796_000_040,
  data: {
    object: {
      id: "re_9",
      object: "refund",
      amount: 2_000,
      currency: "gbp",
      payment_intent: "pi_ORD-1",
      status: "succeeded",
      metadata: { operation_id: "op_01a200000000000000000000000000ff", operation_key: "k" },
    },
  },
});

const pathsOf = (value: unknown, at: readonly string[] = []): string[][] =>
  typeof value !== "object" || value === null
    ? []
    : Object.entries(value).flatMap(([key, member]) => [[...at, key], ...pathsOf(member, [...at, key])]);

const wrong = fc.oneof(
  fc.constantFrom<fc.JsonValue>(
    null,
    true,
    0,
    "",
    [],
    {},
    { toString: 1 },
    { id: {} },
    "\u0000",
    "\ud800",
    "x".repeat(9_000),
  ),
  fc.jsonValue({ maxDepth: 2 }),
);

beforeEach(async () => {
  w = await build(database.db);
  await w.order({ ref: "ORD-1", captured: 18_000 });
});

const heard = (payload: fc.JsonValue): Promise<number> => {
  const body = Buffer.from(JSON.stringify(payload));
  const now = Math.floor(systemClock.now().getTime() / 1000);
  return w.hear(w.worker("app"), body, signatureHeader(body.toString("utf8"), WEBHOOK_SECRET, now));
};

it("one that names what no provider can have is judged once, and moves nothing", async () => {
  const ctx = w.worker("w");
  const id = await w.prepared("ORD-1", 2_000n);
  expect(await w.work(ctx, id)).toMatchObject({ status: "CONFIRMED" });
  const payload = event(1);
  const { object } = payload["data"] as { object: Payload };
  object["id"] = "re_9/../../charges";
  (object["metadata"] as Payload)["operation_id"] = id;
  expect(await heard(payload)).toBe(200);
  expect(
    await w.db.sql(
      undefined,
      "SELECT failures, processed_at IS NOT NULL AS judged FROM provider_webhooks WHERE event_id = 'evt_1'",
    ),
  ).toEqual([{ failures: 0, judged: true }]);
  expect(await w.now(id)).toMatchObject({ status: "CONFIRMED" });
  expect(await w.balance("ORD-1")).toMatchObject({ reserved: 0, refunded: 2_000 });
  expect(await w.control.effects()).toHaveLength(1);
  await w.intact();
});

it("whatever a field of it holds, a webhook is answered", { timeout: 120_000 }, async () => {
  let n = 0;
  await fc.assert(
    fc.asyncProperty(fc.constantFrom(...pathsOf(event(0))), wrong, async (path, value) => {
      n += 1;
      const payload = event(n);
      let at = payload;
      for (const key of path.slice(0, -1)) at = at[key] as Payload;
      at[path.at(-1) ?? ""] = value;
      expect(await heard(payload)).toBe(200);
    }),
    { numRuns: 200 },
  );
  await fc.assert(
    fc.asyncProperty(fc.jsonValue({ maxDepth: 3 }), async (value) => {
      expect(await heard(value)).toBe(200);
    }),
    { numRuns: 50 },
  );
  expect(await w.balance("ORD-1")).toMatchObject({ reserved: 0, refunded: 0 });
  await w.intact();
});
