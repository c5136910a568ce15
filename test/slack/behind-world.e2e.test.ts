/** The world moves while a card waits: the card says so before the click, and no longer once it is as it was. */
import { describe, expect, test } from "vitest";
import { followWorld } from "../../src/slack/outbox/behind-world.js";
import { waitFor } from "../support/wait.js";
import { withCards } from "./support/cards.js";
import { hold, moveApproval } from "./support/held.js";
import { calls, readable } from "./support/see.js";
import type { World } from "./support/world.js";

const { database, start, cardIn, whereItStands } = withCards();
const CHANGED = "Changed since this card was made";

const card = (w: World) =>
  readable(w.sandbox.control.messages("U_SUP1", "C_APPR")[0] ?? { text: "", blocks: [] });
const edits = (w: World): number => calls(w.sandbox, "chat.update").length;
const moved = (sql: string) => database.db.sql(undefined, sql);
const quiet = (): Promise<unknown> =>
  waitFor(
    async () =>
      (
        await database.db.sql(
          undefined,
          "SELECT 1 FROM slack_cards WHERE due_at IS NOT NULL AND kind IN ('approval', 'incident')",
        )
      ).length === 0,
    { what: "cards at rest" },
  );
/** What the worker's timer does, until nothing is behind any more; bounded. */
async function followed(w: World): Promise<number> {
  const waked = await followWorld(w.ctx);
  await quiet();
  return waked;
}
async function waiting(): Promise<World> {
  const w = await start();
  await hold(w);
  const shown = await cardIn(w);
  await waitFor(() => whereItStands(shown));
  await quiet();
  for (const statement of [
    "UPDATE slack_cards SET shown_at = shown_at - interval '1 hour' WHERE kind = 'approval'",
    "UPDATE orders SET updated_at = updated_at - interval '1 day'",
    "UPDATE payments SET updated_at = updated_at - interval '1 day'",
  ])
    await moved(statement);
  return w;
}

describe("a card that waits", () => {
  test.each([
    [
      "its order's status",
      "UPDATE orders SET status = 'returned', updated_at = countersign_now() WHERE ref = 'ORD-10042'",
      "UPDATE orders SET status = 'delivered', updated_at = countersign_now() WHERE ref = 'ORD-10042'",
      "Order status: delivered → returned",
    ],
    [
      "its balance",
      "UPDATE payments SET refunded_elsewhere = 5000, updated_at = countersign_now() WHERE payment_intent = 'pi_ORD-10042'",
      "UPDATE payments SET refunded_elsewhere = 0, updated_at = countersign_now() WHERE payment_intent = 'pi_ORD-10042'",
      "Left to refund before this: £180.00 GBP → £130.00 GBP",
    ],
  ])("says that %s has changed, and no longer when it is as it was", async (_what, change, back, said) => {
    const w = await waiting();
    expect(await followed(w)).toBe(0);
    await moved(change);
    expect(await followed(w)).toBe(1);
    expect(card(w)).toContain(said);
    expect(card(w)).toContain(CHANGED);
    expect(edits(w)).toBe(1);
    await moved(back);
    expect(await followed(w)).toBe(1);
    expect(card(w)).not.toContain(CHANGED);
    expect(edits(w)).toBe(2);
  });

  test("costs Slack nothing where what was written is what it shows, and a decided one is left alone", async () => {
    const w = await waiting();
    await moved("UPDATE orders SET updated_at = countersign_now()");
    expect(await followed(w)).toBe(1);
    expect(edits(w)).toBe(0);
    const held = await hold(w, { orderRef: "ORD-10042", amountMinor: 100n });
    await moveApproval(w, held, "DENIED");
    await quiet();
    const before = edits(w);
    await moved("UPDATE slack_cards SET shown_at = shown_at - interval '1 hour'");
    await moved("UPDATE payments SET updated_at = countersign_now()");
    expect(await followed(w)).toBe(1);
    expect(edits(w)).toBe(before);
  });

  test("is looked at in its turn, though the shop writes everything again before all have been", async () => {
    const w = await start();
    for (let n = 0; n < 22; n += 1) await hold(w, { expiresIn: 86_400 + n * 60, amountMinor: 100n });
    const shown = "SELECT 1 FROM slack_cards WHERE kind = 'approval' AND message_ts IS NOT NULL";
    await waitFor(async () => (await database.db.sql(undefined, shown)).length === 22, { timeoutMs: 60_000 });
    await quiet();
    await moved("UPDATE slack_cards SET shown_at = shown_at - interval '1 hour' WHERE kind = 'approval'");
    const long =
      "SELECT 1 FROM slack_cards WHERE kind = 'approval' AND shown_at < now() - interval '30 minutes'";
    for (const left of [2, 0]) {
      await moved("UPDATE orders SET updated_at = countersign_now()");
      expect(await followed(w)).toBe(20);
      expect(await database.db.sql(undefined, long)).toHaveLength(left);
    }
  }, 90_000);
});

test("the card of an open finding about money follows what is left of its payment, and rests once it is closed", async () => {
  const w = await start();
  const id = "inc_0192d3a4b5c6d7e8f90a1b2c3d4e5f60";
  await database.db.tx(async (tx) => {
    await tx.sql(
      undefined,
      `INSERT INTO incidents (id, kind, dedupe_key, payment_id, detail) SELECT $1, 'refunded_elsewhere', $1, id, '{}'
       FROM payments WHERE payment_intent = 'pi_ORD-10042'`,
      [id],
    );
    await w.notices.touch(tx, { kind: "incident", id });
  });
  const found = () => readable(w.sandbox.control.messages("U_ONC1", "C_OPS")[0] ?? { text: "", blocks: [] });
  await waitFor(() => found().includes("£180.00 GBP, as of"));
  await quiet();
  await moved("UPDATE slack_cards SET shown_at = shown_at - interval '1 hour'");
  await moved("UPDATE payments SET updated_at = updated_at - interval '1 day'");
  expect(await followed(w)).toBe(0);
  // As a refund of ours does that is set aside.
  const spend = (minor: number) =>
    moved(
      `UPDATE payments SET reserved = ${minor}, updated_at = countersign_now() WHERE payment_intent = 'pi_ORD-10042'`,
    );
  await spend(2_000);
  expect(await followed(w)).toBe(1);
  await waitFor(() => found().includes("£160.00 GBP, as of"));
  await moved("UPDATE incidents SET status = 'closed', closed_by = 'U_ONC1', closed_at = countersign_now()");
  await spend(3_000);
  expect(await followed(w)).toBe(0);
});
