/** One kill: the process dies at one named place of one story, is started again, and the story must end as if nothing had been. */
import { expect } from "vitest";
import type { FailpointName } from "../../../src/domain/failpoints.js";
import type { FaultSpec } from "../../../src/sandbox/payments/index.js";
import type { Databases } from "./databases.js";
import { type House, inHouse } from "./house.js";
import { seeThrough } from "./people.js";

const REFUND = "Tom Whitfield's jacket arrived torn, order ORD-10042. Please refund the £180.00.";
const CANCEL = "Please cancel order A-4471.";
const REFUND_TOLD = /^Refunded £180\.00 GBP on order ORD-10042 to .*Reference re_\w+\.$/;
const CANCEL_TOLD = /^Order A-4471 of .* is cancelled\./;

interface Scene {
  ticket: string;
  fault?: FaultSpec;
}

/** Places that the plain held refund does not pass. */
const SCENES: Partial<Record<FailpointName, Scene>> = {
  "dispatch.after_local": { ticket: CANCEL },
  "reconcile.after_take": { ticket: REFUND, fault: { kind: "commit_then_drop" } },
  "reconcile.after_probe": { ticket: REFUND, fault: { kind: "commit_then_drop" } },
  "reconcile.after_settle": { ticket: REFUND, fault: { kind: "commit_then_drop" } },
  "reconcile.after_resend_claimed": { ticket: REFUND, fault: { kind: "drop_before_commit" } },
};

/** `pass`: at which passing of the place the process dies; reads come before writes. */
export async function killAt(databases: Databases, name: FailpointName, pass = 1): Promise<void> {
  const scene = SCENES[name] ?? { ticket: REFUND };
  await inHouse(databases, {}, async (house) => {
    const { stage } = house;
    if (scene.fault !== undefined) stage.fault(scene.fault);
    await stage.start({ COUNTERSIGN_FAILPOINTS: `${name}=kill@${pass}` });
    const thread = await stage.file("U_AGENT", scene.ticket);
    const told = scene.ticket === CANCEL ? CANCEL_TOLD : REFUND_TOLD;
    const outcomes = (): string[] =>
      stage
        .threadMessages(thread)
        .map((message) => message.text)
        .filter((text) => told.test(text));
    const ended = async (): Promise<boolean> => {
      const [run] = await house.db.sql<{ state: string }>(
        "test.run",
        `SELECT r.state FROM runs r JOIN tickets t ON t.id = r.ticket_id WHERE t.message_ts = $1
          ORDER BY r.created_at DESC, r.id DESC LIMIT 1`,
        [thread.ts],
      );
      return run?.state === "resolved" && outcomes().length > 0;
    };
    const { deaths } = await seeThrough(stage, thread, ended);
    if (deaths === 0) {
      // The last places lie behind what the thread shows.
      await stage.productEnded();
      await stage.start({ COUNTERSIGN_FAILPOINTS: "" });
    } else expect(deaths, `${name} fired once`).toBe(1);
    stage.assertFaultsFired();
    await quiet(house);

    const operations = await stage.operations();
    expect(operations.map((operation) => operation.status)).toEqual(["CONFIRMED"]);
    const effects = await house.world.payments.control.effects();
    if (scene.ticket === CANCEL) {
      expect(effects).toEqual([]);
      const [order] = await house.db.sql<{ status: string }>(
        "test.order",
        "SELECT status FROM orders WHERE ref = 'A-4471'",
      );
      expect(order?.status).toBe("cancelled");
    } else {
      expect(effects.map((effect) => [effect.operationId, effect.amount])).toEqual([
        [operations[0]?.id, 18_000],
      ]);
      const keys = new Set(
        (await house.world.payments.control.requests({ method: "POST" })).map((sent) => sent.idempotencyKey),
      );
      expect(keys.size, "every request carries one key").toBe(1);
      const [payment] = await house.db.sql<{ reserved: bigint; refunded: bigint }>(
        "test.payment",
        "SELECT p.reserved, p.refunded FROM payments p JOIN orders o ON o.id = p.order_id WHERE o.ref = 'ORD-10042'",
      );
      expect(payment).toMatchObject({ reserved: 0n, refunded: 18_000n });
    }
    await house.assertAuditIntact();
    expect(outcomes(), "the thread tells the outcome once").toHaveLength(1);
  });
}

/** Waits until nobody has anything left to do or to say: no row is due and every post has left. */
async function quiet({ stage, db }: House): Promise<void> {
  await stage.until("every row to be at rest", async () => {
    const [left] = await db.sql<{ n: bigint }>(
      "test.left",
      `SELECT (SELECT count(*) FROM slack_outbox WHERE due_at IS NOT NULL)
            + (SELECT count(*) FROM slack_inbox WHERE due_at IS NOT NULL)
            + (SELECT count(*) FROM slack_cards WHERE due_at IS NOT NULL AND kind <> 'home')
            + (SELECT count(*) FROM runs WHERE due_at IS NOT NULL)
            + (SELECT count(*) FROM operations WHERE due_at IS NOT NULL AND status <> 'QUARANTINED') AS n`,
    );
    return left?.n === 0n;
  });
}
