/** Rows of cards and posts that somebody deleted or put off by hand: what waits for a person is shown to them all the same. */
import { afterEach, beforeEach, expect, test } from "vitest";
import { openIncident } from "../../src/ledger/index.js";
import { makeForgottenPostsDue, showUnshown } from "../../src/slack/index.js";
import { withDatabase } from "../support/database.js";
import { hold } from "./support/held.js";
import { readable } from "./support/see.js";
import { loadShop } from "./support/shop.js";
import { startWorld, type World } from "./support/world.js";

const database = withDatabase();
let w: World;

beforeEach(async () => {
  await loadShop(database.db);
  w = await startWorld({ db: database.db, mode: "http", still: true, sandbox: { clock: { scale: 100 } } });
});
afterEach(() => w.stop());

const texts = (channel: string): string[] =>
  w.sandbox.control.messages("U_ONC1", channel).map((message) => readable(message));
const settle = async (): Promise<void> => {
  for (let pass = 0; pass < 6; pass += 1) await w.drain();
};
const sql = (text: string) => database.db.sql(undefined, text);

test("an approval's card that was put off before it was posted is posted, and one that is shown is left alone", async () => {
  await hold(w);
  await sql("UPDATE slack_cards SET due_at = NULL");
  await settle();
  expect(texts("C_APPR")).toEqual([]);
  expect(await makeForgottenPostsDue(w.ctx)).toBeGreaterThan(0);
  await settle();
  expect(texts("C_APPR")).toHaveLength(1);
  expect(await makeForgottenPostsDue(w.ctx)).toBe(0);
  expect(await showUnshown(w.ctx, w.notices, 10)).toBe(0);
});

test("an incident's card comes again when its row is gone, once", async () => {
  await database.db.tx((tx) =>
    openIncident(
      tx,
      { ids: w.ctx.ids, notices: w.notices },
      { kind: "orphan_effect", dedupeKey: "x", operationId: null, paymentId: null, detail: {} },
    ),
  );
  await settle();
  const before = texts("C_OPS").length;
  await sql("DELETE FROM slack_cards");
  expect(await showUnshown(w.ctx, w.notices, 10)).toBe(1);
  expect(await showUnshown(w.ctx, w.notices, 10)).toBe(0);
  await settle();
  expect(texts("C_OPS")).toHaveLength(before + 1);
});

test("a post that was put off for ever holds up the later ones of its ticket no longer than until somebody looks", async () => {
  const ops = (key: string) =>
    database.db.tx((tx) =>
      w.notices.ops(tx, {
        key,
        message: { type: "thaw_request_ended", kind: "all", by: "U_ONC1", refusedBy: null },
      }),
    );
  await ops("one");
  await sql("UPDATE slack_outbox SET due_at = NULL");
  await settle();
  expect(texts("C_OPS")).toEqual([]);
  expect(await makeForgottenPostsDue(w.ctx)).toBe(1);
  await settle();
  expect(texts("C_OPS")).toHaveLength(1);
});
