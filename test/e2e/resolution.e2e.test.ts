/** S-OP-1 over Slack: on-call asks to send again what the provider has long done. */
import { describe, expect, it } from "vitest";
import { heldRefund } from "../../src/app/demo/stories/refunds.js";
import { withDatabases } from "./support/databases.js";
import { type House, inHouse } from "./support/house.js";

const databases = withDatabases();
const LONG_MS = 180_000;
/** The reconciler looks so late that the person is first. */
const SLOW = { RECONCILE_BASE_MS: "600000", RECONCILE_MAX_MS: "600000", RECONCILE_EVERY_MS: "600000" };
const FORM = { Reason: "Stuck for an hour.", Evidence: "ticket 4711" };

async function unknownRefund(house: House) {
  const { stage } = house;
  // Webhooks would settle it before anybody can ask.
  house.world.payments.control.setWebhook(null);
  const thread = await heldRefund(stage);
  stage.fault({ kind: "commit_then_drop" });
  await stage.approve("U_SUP1", thread);
  const operation = await stage.operationIn("OUTCOME_UNKNOWN");
  return { thread, operation };
}

async function ops(house: House, as: string, text: string): Promise<void> {
  const asked = await house.world.slack.control.command({ as, channel: "C_OPS", command: "/ops", text });
  if (!asked.ok) throw new Error(asked.message);
}

const posts = async (house: House): Promise<number> =>
  (await house.world.payments.control.requests({ method: "POST" })).length;

describe("S-OP-1: stuck, so somebody wants to send it again", () => {
  it(
    "retry asks the provider first, finds the refund, sends nothing, and the evidence confirms it",
    { timeout: LONG_MS },
    () =>
      inHouse(databases, { env: SLOW }, async (house) => {
        const { stage } = house;
        await stage.start();
        const { thread, operation } = await unknownRefund(house);
        await ops(house, "U_ONC1", `retry ${operation.id}`);
        await stage.submitForm("U_ONC1", FORM);
        await stage.operationIn("CONFIRMED");
        await stage.runIn(thread, "resolved");
        expect(await posts(house)).toBe(1);
        expect((await house.world.payments.control.effects()).map(({ amount }) => amount)).toEqual([18_000]);
        await house.assertAuditIntact();
      }),
  );

  it("while the provider cannot be asked nothing is confirmed or refunded twice", { timeout: LONG_MS }, () =>
    inHouse(databases, { env: SLOW }, async (house) => {
      const { stage } = house;
      await stage.start();
      const { thread, operation } = await unknownRefund(house);
      const down = stage.fault({ kind: "read_down", how: "500", times: null });
      await ops(house, "U_ONC1", `retry ${operation.id}`);
      await expect(stage.submitForm("U_ONC1", FORM)).rejects.toThrow(
        /: The provider could not be asked: it answered with HTTP 500\. Not done: what was sent may still take effect/,
      );
      expect(house.world.payments.control.fired(down)).toBeGreaterThan(0);
      house.world.payments.control.disarm(down);
      await ops(house, "U_ONC2", `retry ${operation.id}`);
      await stage.submitForm("U_ONC2", FORM);
      await stage.operationIn("CONFIRMED");
      await stage.runIn(thread, "resolved");
      expect((await house.world.payments.control.effects()).map(({ amount }) => amount)).toEqual([18_000]);
      const sent = await house.world.payments.control.requests({ method: "POST" });
      expect(new Set(sent.map(({ idempotencyKey }) => idempotencyKey)).size).toBe(1);
      await house.assertAuditIntact();
    }),
  );

  it("two of on-call at the same moment: one resolution, one effect", { timeout: LONG_MS }, () =>
    inHouse(databases, { env: SLOW }, async (house) => {
      const { stage, world, db } = house;
      await stage.start();
      const { thread, operation } = await unknownRefund(house);
      await ops(house, "U_ONC1", `confirm ${operation.id}`);
      await ops(house, "U_ONC2", `retry ${operation.id}`);
      const [first, second] = [
        await stage.until("a form", async () => world.slack.control.modals("U_ONC1").at(-1)),
        await stage.until("a form", async () => world.slack.control.modals("U_ONC2").at(-1)),
      ];
      await Promise.all([
        world.slack.control.submitView({ as: "U_ONC1", viewId: first.id, values: FORM }),
        world.slack.control.submitView({ as: "U_ONC2", viewId: second.id, values: FORM }),
      ]);
      await stage.operationIn("CONFIRMED");
      await stage.runIn(thread, "resolved");
      expect(await posts(house)).toBe(1);
      const confirmed = await db.sql(
        "test.confirmed",
        "SELECT seq FROM operation_events WHERE operation_id = $1 AND to_status = 'CONFIRMED' AND from_status <> to_status",
        [operation.id],
      );
      expect(confirmed).toHaveLength(1);
      await house.assertAuditIntact();
    }),
  );
});
