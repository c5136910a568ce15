/** Approvals where another company reads, or may read for all that Slack says: never their facts, always another way to decide. */
import { afterEach, describe, expect, test } from "vitest";
import type { MessageView } from "../../src/sandbox/slack/index.js";
import { withDatabase } from "../support/database.js";
import { waitFor } from "../support/wait.js";
import { hold } from "./support/held.js";
import { calls, readable } from "./support/see.js";
import { loadShop } from "./support/shop.js";
import { startWorld, type World } from "./support/world.js";

const database = withDatabase();
let world: World | undefined;

afterEach(async () => {
  await world?.stop();
  world = undefined;
});

async function start(): Promise<World> {
  await loadShop(database.db);
  world = await startWorld({ db: database.db, mode: "http", sandbox: { rateLimits: false } });
  return world;
}

const inChannel = (w: World, as: string, channel: string, part: string): Promise<MessageView> =>
  waitFor(() => w.sandbox.control.messages(as, channel).find((one) => readable(one).includes(part)), {
    what: `"${part}" in ${channel}`,
  });

/** Everything that the app ever wrote into a channel, posts and edits, as it went over the wire. */
const written = (w: World, channel: string): string =>
  JSON.stringify(
    ["chat.postMessage", "chat.update", "chat.postEphemeral"]
      .flatMap((method) => calls(w.sandbox, method))
      .filter(({ args }) => args["channel"] === channel)
      .map(({ args }) => [args["text"], args["blocks"]]),
  );
const FACTS = /180|Whitfield|ORD-10042|U_AGENT/;

async function approveAtHome(w: World, as: string): Promise<void> {
  await w.sandbox.control.openHome({ as });
  const home = await waitFor(() => {
    const view = w.sandbox.control.home(as);
    return view.published && JSON.stringify(view.blocks).includes("Approve £180.00") ? view : null;
  });
  await w.sandbox.control.click({ as, at: { viewId: home.viewId ?? "" }, label: "Approve £180.00" });
  await waitFor(async () => {
    const [row] = await database.db.sql<{ state: string }>(undefined, "SELECT state FROM approvals");
    return row?.state === "APPROVED";
  });
}

const eventsHandled = async (): Promise<number> =>
  (
    await database.db.sql(
      undefined,
      "SELECT 1 FROM slack_inbox WHERE kind = 'event' AND processed_at IS NOT NULL",
    )
  ).length;

describe("a channel that Slack does not let us examine", () => {
  test.each(["missing_scope", "access_denied", "channel_not_found"])(
    "with %s: a line without facts there, the approval in Home, and on-call is told once what to mend",
    async (error) => {
      const w = await start();
      const fault = w.sandbox.control.addApiFault({
        method: "conversations.info",
        kind: "error",
        error,
        times: 1_000,
      });
      const held = await hold(w);
      const line = await inChannel(w, "U_SUP1", "C_APPR", "An approval is needed");
      expect(readable(line)).toContain("Slack does not say whether this channel is shared");
      expect(readable(line)).toContain("the app's Home tab");
      const told = await inChannel(w, "U_ONC1", "C_OPS", "Slack does not say whether C_APPR is shared");
      expect(readable(told)).toContain(`(${error})`);
      if (error === "missing_scope") expect(readable(told)).toContain("channels:read and groups:read");
      expect(written(w, "C_APPR")).not.toMatch(FACTS);
      expect(written(w, "C_OPS")).not.toMatch(FACTS);
      await hold(w, { orderRef: "ORD-8", amountMinor: 5_000n });
      await waitFor(() => w.sandbox.control.messages("U_SUP1", "C_APPR").length === 2);
      const tellings = w.sandbox.control
        .messages("U_ONC1", "C_OPS")
        .filter((one) => readable(one).includes("C_APPR is shared"));
      expect(tellings).toHaveLength(1);
      // Mended: the card itself comes in the place of the line.
      w.sandbox.control.clearFaults(fault);
      await w.sandbox.control.shareChannel("C_APPR", true);
      await w.sandbox.control.shareChannel("C_APPR", false);
      await waitFor(async () => (await eventsHandled()) === 2, { what: "both events to be handled" });
      await database.db.tx((tx) => w.notices.touch(tx, { kind: "approval", id: held.approvalId }));
      const card = await inChannel(w, "U_SUP1", "C_APPR", "£180.00 GBP");
      expect(card.ts).toBe(line.ts);
    },
  );

  test("the approval can be decided in Home meanwhile, and stays due to be shown", async () => {
    const w = await start();
    w.sandbox.control.addApiFault({
      method: "conversations.info",
      kind: "error",
      error: "missing_scope",
      times: 1_000,
    });
    await hold(w);
    await inChannel(w, "U_SUP1", "C_APPR", "An approval is needed");
    await waitFor(async () => {
      const [card] = await database.db.sql<{ again: boolean }>(
        undefined,
        "SELECT due_at > countersign_now() AS again FROM slack_cards WHERE kind = 'approval' AND slot = 'approvals'",
      );
      return card?.again === true;
    });
    await approveAtHome(w, "U_SUP1");
    expect(written(w, "C_APPR")).not.toMatch(FACTS);
  });

  test("while Slack gives no answer nothing at all is posted there", async () => {
    const w = await start();
    w.sandbox.control.addApiFault({ method: "conversations.info", kind: "http", status: 503, times: 3 });
    await hold(w);
    await waitFor(() => calls(w.sandbox, "conversations.info").length >= 1);
    expect(w.sandbox.control.messages("U_SUP1", "C_APPR")).toEqual([]);
    await database.db.sql(undefined, "UPDATE slack_cards SET due_at = countersign_now()");
    w.sandbox.control.clearFaults();
    await database.db.sql(undefined, "UPDATE slack_cards SET due_at = countersign_now()");
    await inChannel(w, "U_SUP1", "C_APPR", "£180.00 GBP");
  });
});

describe("an approvals channel that another company reads", () => {
  test("shows a line without facts; the card stands in the ops channel and can be decided there", async () => {
    const w = await start();
    await w.sandbox.control.shareChannel("C_APPR", true);
    await w.sandbox.control.setMember("C_OPS", "U_SUP1", true);
    await hold(w);
    await inChannel(w, "U_SUP1", "C_APPR", "this channel is shared with another company");
    const card = await inChannel(w, "U_SUP1", "C_OPS", "£180.00 GBP");
    await w.sandbox.control.click({ as: "U_SUP1", at: { channel: "C_OPS", ts: card.ts }, label: "Approve" });
    await waitFor(async () => {
      const [row] = await database.db.sql<{ state: string }>(undefined, "SELECT state FROM approvals");
      return row?.state === "APPROVED";
    });
    expect(written(w, "C_APPR")).not.toMatch(FACTS);
  });
});
