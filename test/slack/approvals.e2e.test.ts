/** Approval cards, in channels and in App Home, through the real Bolt app. */
import { describe, expect, test } from "vitest";
import type { MessageView } from "../../src/sandbox/slack/index.js";
import { waitFor } from "../support/wait.js";
import { buttonsOf, withCards } from "./support/cards.js";
import { hold, moveApproval, moveOperation } from "./support/held.js";
import { calls, readable } from "./support/see.js";

const { database, start, cardIn, click, votes, inThread } = withCards();

describe("a card", () => {
  test("says what, how much, for whom, why, who asked and until when, with its two buttons", async () => {
    const w = await start();
    await hold(w, { reason: "The jacket arrived torn." });
    const card = await cardIn(w);
    const text = readable(card);
    for (const part of [
      "£180.00 GBP",
      "ORD-10042 (delivered)",
      "Tom Whitfield (CUS-7)",
      "<@U_AGENT>",
      "Expires",
      "nobody is asked",
      "unverified",
      "The jacket arrived torn.",
    ]) {
      expect(text).toContain(part);
    }
    expect(buttonsOf(card).slice(0, 2)).toEqual(["Approve £180.00 GBP", "Deny"]);
    expect(card.text).toMatch(/Refund of £180\.00 GBP on order ORD-10042/);
    expect(card.mentionsMe).toBe(false);
  });

  test("stands in the thread and in the approvals channel, and both end with the same text and no buttons", async () => {
    const w = await start();
    const { held, ts } = await inThread(w);
    const card = await cardIn(w);
    await click(w, "U_SUP1", card, "Approve");
    await waitFor(async () => (await votes()).length === 1);
    await moveApproval(w, held, "RELEASED");
    await moveOperation(w, held, ["PREPARED", "DISPATCHED", "CONFIRMED"]);
    const final = await waitFor(() => {
      const found = w.sandbox.control
        .messages("U_SUP1", "C_APPR")
        .concat(w.sandbox.control.messages("U_SUP1", "C_TICK", { threadTs: ts }))
        .filter((one) => /£180\.00 GBP[\s\S]*Refunded\./u.test(readable(one)));
      return found.length === 2 ? found : null;
    });
    expect(readable(final[0] as MessageView)).toBe(readable(final[1] as MessageView));
    expect(final.map(buttonsOf)).toEqual([[], []]);
    expect(readable(final[0] as MessageView)).toContain("*Approved* by <@U_SUP1> (supervisor)");
    expect(final[0]?.text).toContain("Approved by <@U_SUP1>");
  });

  test("with nine thousand hostile characters and sixty items is posted at the first try", async () => {
    const w = await start();
    const reason = "```<!channel> &amp; <https://pay.example|refund policy> *_~` ".repeat(150);
    const itemRefs = Array.from({ length: 60 }, (_unused, n) => `ORD-10042-${n}`);
    await hold(w, { customerName: "<@U_SUP1>", reason, itemRefs });
    const card = await cardIn(w);
    expect(
      calls(w.sandbox, "chat.postMessage").filter(({ args }) => args["channel"] === "C_APPR"),
    ).toHaveLength(1);
    expect(card.mentionsMe).toBe(false);
    expect(JSON.stringify(card.blocks)).not.toMatch(/<!channel|<@U_SUP1|<https/);
    expect(readable(card)).toContain("<@U_SUP1> (CUS-7)");
    expect(buttonsOf(card)).toEqual(["Approve £180.00 GBP", "Deny", "Full text"]);
    await click(w, "U_SUP1", card, "Full text");
    const modal = await waitFor(() => w.sandbox.control.modals("U_SUP1")[0]);
    expect(readable({ text: "", blocks: modal.blocks }).replaceAll("\n", "").length).toBeGreaterThan(8_000);
  });

  test.each(["invalid_blocks", "msg_blocks_too_long"])(
    "that Slack refuses with %s is posted plainly, with the same buttons",
    async (error) => {
      const w = await start();
      w.sandbox.control.addApiFault({ method: "chat.postMessage", kind: "error", error, times: 1 });
      await hold(w);
      const card = await waitFor(() => w.sandbox.control.messages("U_SUP1", "C_APPR")[0]);
      expect(buttonsOf(card)).toEqual(["Approve £180.00 GBP", "Deny", "Full text"]);
      expect(readable(card)).toContain("Amount: £180.00 GBP");
      expect(readable(card)).toContain("Customer: Tom Whitfield (CUS-7)");
    },
  );

  test("whose answer was lost is found again and not posted twice (B9)", async () => {
    const w = await start();
    w.sandbox.control.addApiFault({ method: "chat.postMessage", kind: "accept_then_drop", times: 1 });
    await hold(w);
    await waitFor(async () => {
      const rows = await database.db.sql<{ n: bigint }>(
        undefined,
        "SELECT count(*) AS n FROM slack_cards WHERE slot = 'approvals' AND message_ts IS NOT NULL",
      );
      return rows[0]?.n === 1n;
    });
    expect(w.sandbox.control.messages("U_SUP1", "C_APPR")).toHaveLength(1);
  });

  test("that somebody deletes is posted anew with how it stands by then", async () => {
    const w = await start();
    const held = await hold(w);
    const card = await cardIn(w);
    await w.sandbox.control.removeMessage("C_APPR", card.ts);
    await moveApproval(w, held, "EXPIRED");
    const again = await waitFor(() =>
      w.sandbox.control.messages("U_SUP1", "C_APPR").find((one) => readable(one).includes("Expired: refund")),
    );
    expect(again.ts).not.toBe(card.ts);
    expect(buttonsOf(again)).toEqual([]);
  });

  test("of an archived approvals channel goes to the ops channel, which hears why", async () => {
    const w = await start();
    await w.sandbox.control.archiveChannel("C_APPR", true);
    await hold(w);
    const moved = await waitFor(() =>
      w.sandbox.control.messages("U_ONC1", "C_OPS").find((one) => readable(one).includes("£180.00 GBP")),
    );
    expect(buttonsOf(moved).slice(0, 2)).toEqual(["Approve £180.00 GBP", "Deny"]);
    await waitFor(() =>
      w.sandbox.control
        .messages("U_ONC1", "C_OPS")
        .some((one) => readable(one).includes("cannot post in C_APPR (is_archived)")),
    );
  });

  test("is not shown in a channel that another company reads", async () => {
    const w = await start();
    await w.sandbox.control.shareChannel("C_TICK", true);
    const { ts } = await inThread(w);
    await cardIn(w);
    const hint = await waitFor(() =>
      w.sandbox.control
        .messages("U_AGENT", "C_TICK", { threadTs: ts })
        .find((one) => readable(one).includes("shared with another company")),
    );
    expect(JSON.stringify(hint)).not.toMatch(/180|Whitfield|ORD-10042/);
    expect(buttonsOf(hint)).toEqual([]);
  });
});

describe("Home", () => {
  test("lists what I may decide with its own buttons, and answers there", async () => {
    const w = await start();
    await hold(w);
    await hold(w, { orderRef: "ORD-8", amountMinor: 5_000n });
    await cardIn(w);
    await w.sandbox.control.openHome({ as: "U_SUP1" });
    const home = await waitFor(() => {
      const view = w.sandbox.control.home("U_SUP1");
      return view.published ? view : null;
    });
    const text = readable({ text: "", blocks: home.blocks });
    expect(text).toContain("Approve £180.00 GBP");
    expect(text).toContain("Approve £50.00 GBP");
    const clicked = await w.sandbox.control.click({
      as: "U_SUP1",
      at: { viewId: home.viewId ?? "" },
      label: "Approve £180.00",
    });
    expect(clicked).toMatchObject({ ok: true });
    const after = await waitFor(() => {
      const view = readable({ text: "", blocks: w.sandbox.control.home("U_SUP1").blocks });
      return view.includes("Approved: Refund of £180.00") ? view : null;
    });
    expect(after).not.toContain("Approve £180.00 GBP");
    expect(await votes()).toMatchObject([{ user_id: "U_SUP1", verdict: "approve" }]);
  });

  test("of somebody who may decide nothing says so", async () => {
    const w = await start();
    await hold(w);
    await w.sandbox.control.openHome({ as: "U_AGENT2" });
    const home = await waitFor(() => {
      const view = w.sandbox.control.home("U_AGENT2");
      return view.published ? view : null;
    });
    expect(readable({ text: "", blocks: home.blocks })).toContain("Nothing waits for you.");
  });
});
