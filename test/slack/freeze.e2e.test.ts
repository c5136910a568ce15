/** What people read in Slack while sending is frozen, and that an open App Home follows what happens. */
import { afterEach, describe, expect, test } from "vitest";
import type { MessageView } from "../../src/sandbox/slack/index.js";
import { ACTIONS } from "../../src/slack/actions.js";
import { SWITCH_AT_ONCE, SWITCH_INTERVAL_MS } from "../../src/slack/limits.js";
import { withDatabase } from "../support/database.js";
import { waitFor } from "../support/wait.js";
import { hold, moveApproval, moveOperation } from "./support/held.js";
import { quarantined } from "./support/quarantined.js";
import { answers, calls, readable } from "./support/see.js";
import { loadShop } from "./support/shop.js";
import { startWorld, type World, type WorldOptions } from "./support/world.js";

const database = withDatabase();
let world: World | undefined;

afterEach(async () => {
  await world?.stop();
  world = undefined;
});

async function start(options: Partial<WorldOptions> = {}): Promise<World> {
  await loadShop(database.db);
  world = await startWorld({ db: database.db, mode: "http", ...options });
  return world;
}

const opsMessages = (w: World): MessageView[] => w.sandbox.control.messages("U_ONC1", "C_OPS");
const cards = (w: World): MessageView[] =>
  w.sandbox.control.messages("U_SUP1", "C_APPR").filter((one) => readable(one).includes("Amount"));
const cardWith = (w: World, text: string): Promise<MessageView> =>
  waitFor(() => cards(w).find((one) => readable(one).includes(text)), { what: `a card with "${text}"` });
const ops = async (w: World, as: string, text: string): Promise<void> => {
  expect(await w.sandbox.control.command({ as, channel: "C_OPS", command: "/ops", text })).toMatchObject({
    ok: true,
  });
};
const homeOf = (w: World, as: string): string =>
  readable({ text: "", blocks: w.sandbox.control.home(as).blocks });
/** Homes that stand are looked at again at once instead of in three seconds. */
const hurry = () =>
  database.db.sql(
    undefined,
    "UPDATE slack_cards SET due_at = countersign_now() WHERE kind = 'home' AND due_at IS NOT NULL AND shown_hash IS NOT NULL",
  );
const homeWith = (w: World, as: string, text: string): Promise<string> =>
  waitFor(
    async () => {
      if (homeOf(w, as).includes(text)) return homeOf(w, as);
      await hurry();
      return null;
    },
    { what: `"${text}" in the Home of ${as}` },
  );

describe("a freeze", () => {
  test("stands on a card that waits and in Home, is told to whoever approves, and is gone after the thaw", async () => {
    const w = await start();
    const held = await hold(w);
    await cardWith(w, "£180.00 GBP");
    await w.sandbox.control.openHome({ as: "U_SUP1" });
    await homeWith(w, "U_SUP1", "£180.00 GBP");

    await ops(w, "U_ONC1", "freeze refund the provider answers oddly");
    const frozen = await cardWith(w, "Refunds are frozen");
    expect(readable(frozen)).toMatch(
      /\*Refunds are frozen\* since <!date[^>]*> by <@U_ONC1>: the provider answers oddly\. An approval is recorded as your vote; nothing is sent until on-call thaws\./u,
    );
    expect(frozen.text).toMatch(
      /^Approval needed: .* Refunds are frozen since .* UTC by <@U_ONC1>: the provider answers oddly\. Nothing is sent/u,
    );
    const home = await homeWith(w, "U_SUP1", "Refunds are frozen");
    expect(home.indexOf("Refunds are frozen")).toBeLessThan(home.indexOf("Approvals for you"));

    expect(
      await w.sandbox.control.click({
        as: "U_SUP1",
        at: { channel: frozen.channel, ts: frozen.ts },
        label: "Approve",
      }),
    ).toMatchObject({ ok: true });
    await waitFor(() =>
      answers(w.sandbox, "U_SUP1", "C_APPR").find((one) =>
        /Not sent\. \*Refunds are frozen\* since <!date[^>]*> by <@U_ONC1>: the provider answers oddly\. Nothing is sent/u.test(
          one,
        ),
      ),
    );
    const approved = await cardWith(w, "Not sent: sending is frozen until on-call turns it on again.");
    expect(readable(approved)).toMatch(
      /\*Refunds are frozen\* since <!date[^>]*> by <@U_ONC1>: the provider answers oddly\. Nothing is sent/u,
    );
    expect(cards(w).map(readable).join()).not.toContain("An approval is recorded as your vote");
    const waits = await hold(w, { orderRef: "ORD-10042", amountMinor: 7_000n });
    await cardWith(w, "An approval is recorded as your vote");

    await w.ctx.useCases.ops.thaw({ userId: "U_ONC2", kind: "refund" });
    await waitFor(() => cards(w).length === 2 && cards(w).every((one) => !/frozen/u.test(readable(one))), {
      what: "cards without a word of the freeze",
    });
    await waitFor(async () => {
      await hurry();
      return !/frozen/u.test(homeOf(w, "U_SUP1"));
    });
    const [{ n } = { n: 0 }] = await database.db.sql<{ n: number }>(
      undefined,
      "SELECT count(*)::int AS n FROM operations WHERE id IN ($1, $2) AND status = 'AWAITING_APPROVAL'",
      [held.operationId, waits.operationId],
    );
    expect(n).toBe(2);
  });

  test("stands on the card of what is parked, which offers no retry until the thaw", async () => {
    const w = await start();
    await quarantined(w);
    const parked = (text: string): Promise<MessageView> =>
      waitFor(() =>
        opsMessages(w).find((one) => {
          const read = readable(one);
          return read.includes("a person must decide") && read.includes(text);
        }),
      );
    await parked("Authorise retry");
    await ops(w, "U_ONC1", "freeze refund the provider answers oddly");
    const frozen = await parked("Refunds are frozen");
    expect(readable(frozen)).toMatch(
      /\*Refunds are frozen\* since <!date[^>]*> by <@U_ONC1>: the provider answers oddly\. Nothing is sent until on-call thaws\. \*Authorise retry\* is possible after that\./u,
    );
    expect(JSON.stringify(frozen.blocks)).not.toContain(ACTIONS.resolveRetry);
    await w.ctx.useCases.ops.thaw({ userId: "U_ONC2", kind: "refund" });
    await waitFor(async () => {
      const { blocks } = await parked("Authorise retry");
      const said = JSON.stringify(blocks);
      return !said.includes("frozen") && said.includes(ACTIONS.resolveRetry);
    });
  });

  test("reaches every card however many there are, few at once, the others in turn; what is decided is left alone", async () => {
    const w = await start({ still: true });
    const many = SWITCH_AT_ONCE + 5;
    const held = [];
    for (let n = 0; n < many; n += 1) held.push(await hold(w, { amountMinor: 100n, expiresIn: 600 + n }));
    const denied = await hold(w);
    await moveApproval(w, denied, "DENIED");
    await moveOperation(w, denied, ["DENIED"]);
    await database.db.sql(undefined, "UPDATE slack_cards SET due_at = NULL, shown_version = wanted_version");
    await w.db.tx((tx) => w.notices.switchTurned(tx, "cancel_order"));
    const due = (): Promise<{ subject: string; late: number }[]> =>
      database.db.sql(
        undefined,
        `SELECT subject_id AS subject, round(extract(epoch FROM due_at - updated_at) * 1000)::int AS late FROM slack_cards
          WHERE kind = 'approval' AND wanted_version > shown_version AND due_at IS NOT NULL ORDER BY due_at, subject_id`,
      );
    expect(await due()).toEqual([]);
    await w.db.tx((tx) => w.notices.switchTurned(tx, "refund"));
    const turned = await due();
    expect(turned.map(({ subject }) => subject).sort()).toEqual(held.map((one) => one.approvalId).sort());
    expect(turned.map(({ late }) => late)).toEqual(
      Array.from({ length: many }, (_unused, n) => Math.max(0, n + 1 - SWITCH_AT_ONCE) * SWITCH_INTERVAL_MS),
    );
    // The last to expire come last.
    expect(turned.slice(SWITCH_AT_ONCE).map(({ subject }) => subject)).toEqual(
      held.slice(SWITCH_AT_ONCE).map((one) => one.approvalId),
    );
    await w.db.tx((tx) => w.notices.switchTurned(tx, "all"));
    expect(await due()).toHaveLength(many);
  });
});

describe("an open App Home", () => {
  const published = (w: World): number => calls(w.sandbox, "views.publish").length;

  test("shows a new approval and its end by itself, and is left alone while nothing changes", async () => {
    const w = await start();
    await w.sandbox.control.openHome({ as: "U_SUP1" });
    await homeWith(w, "U_SUP1", "Nothing waits for you.");
    const held = await hold(w);
    await homeWith(w, "U_SUP1", "£180.00 GBP");
    await moveApproval(w, held, "EXPIRED");
    await homeWith(w, "U_SUP1", "Nothing waits for you.");
    expect(published(w)).toBe(3);
    const lookedAt = async (): Promise<bigint> =>
      (
        await database.db.sql<{ token: bigint }>(
          undefined,
          "SELECT lease_token AS token FROM slack_cards WHERE kind = 'home'",
        )
      )[0]?.token ?? 0n;
    const before = await lookedAt();
    await database.db.sql(undefined, "UPDATE slack_cards SET due_at = countersign_now() WHERE kind = 'home'");
    await waitFor(async () => (await lookedAt()) > before);
    await waitFor(async () => {
      const [row] = await database.db.sql<{ idle: boolean }>(
        undefined,
        "SELECT lease_until IS NULL AS idle FROM slack_cards WHERE kind = 'home'",
      );
      return row?.idle === true;
    });
    expect(published(w)).toBe(3);
  });

  test("is no longer looked at half an hour after its person last used it", async () => {
    const w = await start();
    await w.sandbox.control.openHome({ as: "U_SUP1" });
    await homeWith(w, "U_SUP1", "Nothing waits for you.");
    await database.db.sql(
      undefined,
      "UPDATE slack_cards SET updated_at = updated_at - interval '31 minutes', due_at = countersign_now() WHERE kind = 'home'",
    );
    await waitFor(async () => {
      const [row] = await database.db.sql<{ left: boolean }>(
        undefined,
        "SELECT due_at IS NULL AS \"left\" FROM slack_cards WHERE kind = 'home'",
      );
      return row?.left === true;
    });
  });

  test("keeps the answer to a click on top although the list below it has changed", async () => {
    const w = await start();
    await hold(w);
    await w.sandbox.control.openHome({ as: "U_SUP1" });
    await homeWith(w, "U_SUP1", "£180.00 GBP");
    const { viewId } = w.sandbox.control.home("U_SUP1");
    await w.sandbox.control.click({ as: "U_SUP1", at: { viewId: viewId ?? "" }, label: "Approve" });
    await waitFor(() => homeOf(w, "U_SUP1").includes("Approved: Refund of £180.00 GBP on order ORD-10042."));
    const [row] = await database.db.sql<{ waits: number }>(
      undefined,
      "SELECT round(extract(epoch FROM due_at - updated_at))::int AS waits FROM slack_cards WHERE kind = 'home'",
    );
    expect(row?.waits).toBe(30);
  });

  test("that Slack asks to wait with is published when it may be", async () => {
    const w = await start();
    await w.sandbox.control.openHome({ as: "U_SUP1" });
    await homeWith(w, "U_SUP1", "Nothing waits for you.");
    w.sandbox.control.addApiFault({
      method: "views.publish",
      kind: "ratelimited",
      retryAfterSeconds: 1,
      times: 1,
    });
    await hold(w);
    await homeWith(w, "U_SUP1", "£180.00 GBP");
    expect(published(w)).toBe(3);
  });
});
