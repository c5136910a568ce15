/** What a ticket's thread says, and when: each thing once, true at every time, and an answer to whoever writes after the end. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { withManyOrders } from "../../src/app/demo/many-orders.js";
import { buttonLabels, type Thread } from "../../src/app/demo/stage.js";
import type { MessageView } from "../../src/sandbox/slack/control-types.js";
import { withDatabases } from "./support/databases.js";
import { type House, openHouse } from "./support/house.js";
import { NOTHING_COUNTED } from "./support/nothing-counted.js";

const databases = withDatabases();
const LONG_MS = 180_000;
let house: House;

beforeAll(async () => {
  house = await openHouse(databases, {
    policy: { text: NOTHING_COUNTED },
    changeShop: (shop) => withManyOrders(shop, 8),
  });
  await house.stage.start();
});
afterAll(() => house.close());

const blocksOf = (message: MessageView): string => JSON.stringify(message.blocks);
const shown = (thread: Thread): MessageView[] => house.stage.threadMessages(thread);
const times = (text: string, part: RegExp): number => [...text.matchAll(new RegExp(part, "giu"))].length;

/** Ephemeral answers in the thread, as this person sees them. */
const toldPrivately = (who: string, thread: Thread): string[] =>
  house.world.slack.control
    .messages(who, thread.channel, { threadTs: thread.ts, ephemeral: true })
    .filter((message) => message.ephemeral)
    .map(({ text }) => text);

const ended = (who: string, thread: Thread): string[] =>
  toldPrivately(who, thread).filter((text) => text.startsWith("The work on this ticket is over"));

async function rows(table: "runs" | "operations"): Promise<number> {
  const [row] = await house.db.sql<{ n: bigint }>(`test.${table}`, `SELECT count(*) AS n FROM ${table}`);
  return Number(row?.n);
}

describe("a card that was made before the customer was confirmed", () => {
  it("says once how it was and once how it is, before and after the filer confirms", {
    timeout: LONG_MS,
  }, async () => {
    const { stage } = house;
    const thread = await stage.file(
      "U_AGENT",
      "The jacket of order ORD-7001 is torn. Please refund £180.00.",
    );
    await stage.runIn(thread, "awaiting_approval");
    const before = blocksOf(await stage.messageWith(thread, "Approve"));
    expect(times(before, /Nobody has confirmed the customer/)).toBe(1);
    expect(times(before, /when this was judged/)).toBe(0);
    expect(times(before, /Approving confirms the customer for this operation alone/)).toBe(1);
    expect(times(before, /confirmed by the filer after this card was made/)).toBe(0);
    await stage.confirmBinding(thread);
    await stage.until("the card to say that the customer is confirmed", async () => {
      const card = shown(thread).find((message) =>
        buttonLabels(message).some((label) => label.startsWith("Approve")),
      );
      const text = card === undefined ? "" : blocksOf(card);
      return (
        times(text, /confirmed by the filer after this card was made/) === 1 &&
        times(text, /Approving confirms/) === 0 &&
        times(text, /Nobody has confirmed|not confirmed/) === 0
      );
    });
    await stage.deny("U_SUP1", thread, "Only looked at.");
    await stage.runIn(thread, "escalated");
  });
});

describe("two tickets that ask for the same", () => {
  it("the second one's thread says which ticket asked first, and leads there", {
    timeout: LONG_MS,
  }, async () => {
    const { stage } = house;
    const first = await stage.file("U_AGENT", "Order ORD-7006 arrived torn, refund £180.00 please.");
    await stage.confirmBinding(first);
    await stage.runIn(first, "awaiting_approval");
    const second = await stage.file("U_AGENT2", "Please refund £180.00 of order ORD-7006.");
    await stage.confirmBinding(second);
    await stage.runIn(second, "awaiting_approval");
    const link = `/archives/${first.channel}/p${first.ts.replace(".", "")}|another ticket>`;
    const leads = (thread: Thread, words: string) => () =>
      Promise.resolve(shown(thread).some((message) => blocksOf(message).includes(`${link}${words}`)));
    await stage.until(
      "the second ticket's run to name the first",
      leads(second, " asked for the same first"),
    );
    expect(shown(first).some((message) => blocksOf(message).includes("another ticket>"))).toBe(false);
    await stage.approve("U_SUP1", first);
    await stage.runIn(second, "resolved");
    await stage.until("its end to name it", leads(second, " asked for the same before"));
    expect(shown(first).some((message) => blocksOf(message).includes("another ticket>"))).toBe(false);
    expect(
      (await house.world.payments.control.effects()).filter(({ amount }) => amount === 18_000),
    ).toHaveLength(1);
  });
});

describe("a card that the filer's word made needless", () => {
  it("says in both places what was done in its place, and follows it", { timeout: LONG_MS }, async () => {
    const { stage, world } = house;
    const before = await world.payments.control.counts();
    const thread = await stage.file("U_AGENT", "Order ORD-7008: refund £20.00 please.");
    await stage.runIn(thread, "awaiting_approval");
    await stage.messageWith(thread, "Approve");
    await stage.confirmBinding(thread);
    await stage.runIn(thread, "resolved");
    const sentence =
      "It was asked for anew as the refund of £20.00 GBP on order ORD-7008, which the policy allows without an approver. Refunded. Reference re_";
    await stage.until("both cards to say what came of it", async () => {
      const inChannel = world.slack.control.messages("U_SUP1", "C_APPR");
      const saying = [...shown(thread), ...inChannel].filter((message) =>
        blocksOf(message).includes(sentence),
      );
      return saying.length === 2 && saying.every((message) => blocksOf(message).includes("<@U_AGENT>"));
    });
    const after = await world.payments.control.counts();
    expect(after.committed - before.committed).toBe(1);
    await world.slack.control.openHome({ as: "U_AGENT" });
    await stage.until("the filer's Home to say what was done, with the money", async () =>
      JSON.stringify(world.slack.control.home("U_AGENT").blocks).includes(
        "Refund of £20.00 GBP on order ORD-7008: done",
      ),
    );
  });
});

describe("the end of an approved refund", () => {
  it("is told by one message; the card says what came of it without saying it all again", {
    timeout: LONG_MS,
  }, async () => {
    const { stage } = house;
    const thread = await stage.file(
      "U_AGENT",
      "The jacket of order ORD-7002 is torn. Please refund £180.00.",
    );
    await stage.confirmBinding(thread);
    await stage.runIn(thread, "awaiting_approval");
    await stage.approve("U_SUP1", thread);
    await stage.runIn(thread, "resolved");
    const card = await stage.until("the final card", async () =>
      shown(thread).find((message) => /Refunded\. Reference re_/.test(blocksOf(message))),
    );
    expect(blocksOf(card)).toContain("*Approved* by <@U_SUP1>");
    await stage.until("the thread to be quiet", async () => {
      const texts = shown(thread).map(({ text }) => text);
      const all = texts.join("\n");
      return texts.includes("Finished.") && /Refunded £/.test(all) && /Scripted planner says/.test(all);
    });
    const all = shown(thread).map(blocksOf).join("\n");
    expect(times(all, /Refunded £180\.00 GBP on order ORD-7002/)).toBe(1);
    expect(times(all, /Scripted planner says, unverified/)).toBe(1);
    expect(times(all, /\bFinished\b/)).toBe(1);
    for (const message of shown(thread)) {
      expect(buttonLabels(message).filter((label) => !/^Details/.test(label))).toEqual([]);
    }
  });

  it("after it, a reply is answered once with the end and the way on, and starts nothing", {
    timeout: LONG_MS,
  }, async () => {
    const { stage, world } = house;
    const thread = await stage.file("U_AGENT", "Order ORD-7003: refund £20.00 please.");
    await stage.confirmBinding(thread);
    await stage.runIn(thread, "resolved");
    const before = [await rows("runs"), await rows("operations")];
    world.slack.control.addDeliveryFault({ kind: "duplicate", times: 1, type: "message" });
    const { channel, ts: threadTs } = thread;
    await world.slack.control.post({ as: "U_AGENT", channel, threadTs, text: "And £20.00 more please." });
    await stage.until("an answer", async () => ended("U_AGENT", thread).length > 0);
    await world.slack.control.idle();
    expect(ended("U_AGENT", thread)).toEqual([
      expect.stringMatching(
        /^The work on this ticket is over \(finished\), so your message changes nothing\. For anything else, write a new message in <#C_TICK> or use \/ticket\.$/,
      ),
    ]);
    await world.slack.control.post({ as: "U_SUP1", channel, threadTs, text: "Well done." });
    await world.slack.control.post({ as: "U_AGENT", channel, threadTs, text: "Thanks." });
    await stage.until("an answer to the second message", async () => ended("U_AGENT", thread).length === 2);
    expect(toldPrivately("U_SUP1", thread)).toEqual([]);
    expect([await rows("runs"), await rows("operations")]).toEqual(before);
  });
});

describe("a ticket that ended unconfirmed", () => {
  it("has no Confirm and Change any more, and an old click is told so", { timeout: LONG_MS }, async () => {
    const { stage, world } = house;
    const thread = await stage.file(
      "U_AGENT",
      "The jacket of order ORD-7004 is torn. Please refund £180.00.",
    );
    await stage.runIn(thread, "awaiting_approval");
    const asked = await stage.messageWith(thread, "Confirm");
    const buttons = (asked.blocks.flatMap((block) => (block.type === "actions" ? block["elements"] : [])) ??
      []) as {
      action_id: string;
      value: string;
    }[];
    await stage.deny("U_SUP1", thread, "Normal wear.");
    await stage.runIn(thread, "escalated");
    await stage.until("the buttons to go", async () => {
      const now = shown(thread).find(({ ts }) => ts === asked.ts);
      return (
        now !== undefined && buttonLabels(now).length === 0 && /Nobody confirmed this/.test(blocksOf(now))
      );
    });
    for (const { action_id, value } of buttons) {
      await world.slack.control.injectInteraction({
        type: "block_actions",
        api_app_id: "A_CS",
        team: { id: "T_HOME", domain: "northwind" },
        user: { id: "U_AGENT", team_id: "T_HOME" },
        channel: { id: thread.channel },
        container: {
          type: "message",
          channel_id: thread.channel,
          message_ts: asked.ts,
          thread_ts: thread.ts,
        },
        message: { ts: asked.ts, thread_ts: thread.ts },
        actions: [
          {
            type: "button",
            action_id,
            value,
            block_id: "binding",
            action_ts: `1796000100.${action_id.length}`,
          },
        ],
      });
    }
    await stage.until("both clicks to be answered", async () => {
      return ended("U_AGENT", thread).length === 2;
    });
    const [ticket] = await house.db.sql<{ binding: string }>(
      "test.ticket",
      "SELECT binding FROM tickets WHERE message_ts = $1",
      [thread.ts],
    );
    expect(ticket?.binding).toBe("unconfirmed");
    expect(world.slack.control.modals("U_AGENT")).toEqual([]);
  });
});

describe("after This is a further refund", () => {
  it("the new run's card is born with what it waits for, not with what it was", {
    timeout: LONG_MS,
  }, async () => {
    const { stage } = house;
    for (const end of ["first", "again"]) {
      const thread = await stage.file("U_AGENT", "Order ORD-7005: refund £20.00 please.");
      await stage.confirmBinding(thread);
      await stage.runIn(thread, "resolved");
      if (end === "first") continue;
      await stage.messageWith(thread, "This is a further");
      const known = new Set(shown(thread).map(({ ts }) => ts));
      await stage.press("U_AGENT", thread, "This is a further");
      await stage.messageWith(thread, "Approve");
      const card = await stage.until("the new run's card", async () =>
        shown(thread).find((message) => !known.has(message.ts) && buttonLabels(message).includes("Stop")),
      );
      // Not "Queued", which it was when its turn to be posted was taken.
      expect(card.text).toMatch(/^Waiting /);
    }
  });
});
