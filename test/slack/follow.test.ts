/** Cards that follow what they show. */
import { expect, test } from "vitest";
import { systemIds } from "../../src/app/system.js";
import { createNotices } from "../../src/slack/index.js";
import { withDatabase } from "../support/database.js";
import { CHANNELS } from "./support/world.js";

const database = withDatabase();

test("a quarantine's card and its run's follow in one transaction, whichever is told first", async () => {
  const woken: string[] = [];
  const notices = createNotices({
    ids: systemIds,
    wake: async (_kind, id) => void woken.push(id),
    config: { channels: CHANNELS },
  });
  const { db } = database;
  for (const [id, kind, subject] of [
    ["card_q", "quarantine", "op_1"],
    ["card_r", "run", "run_1"],
  ]) {
    await db.sql(
      undefined,
      "INSERT INTO slack_cards (id, kind, subject_id, slot, channel_id) VALUES ($1, $2, $3, 'thread', 'C_TICK')",
      [id, kind, subject],
    );
  }
  await db.tx(async (tx) => {
    await notices.follow(tx, { kind: "quarantine", id: "op_1" });
    await notices.follow(tx, { kind: "run", id: "run_1" });
    await notices.follow(tx, { kind: "quarantine", id: "op_1" });
  });
  const cards = await db.sql<{ id: string; wanted: bigint }>(
    undefined,
    "SELECT id, wanted_version AS wanted FROM slack_cards ORDER BY id",
  );
  const [quarantine, run] = cards.map(({ wanted }) => Number(wanted));
  expect([quarantine, run]).toEqual([3, 2]);
  expect([...new Set(woken)].sort()).toEqual(["card_q", "card_r"]);
});
