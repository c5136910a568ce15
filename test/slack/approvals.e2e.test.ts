/** Approval cards and clicks on them, through the real Bolt app. */
import { afterEach, describe, expect, test } from "vitest";
import type { TicketId } from "../../src/domain/ids.js";
import type { MessageView } from "../../src/sandbox/slack/index.js";
import { withDatabase } from "../support/database.js";
import { waitFor } from "../support/wait.js";
import { type Held, type HeldOptions, hold, moveApproval, moveOperation } from "./support/held.js";
import { answers, calls, readable } from "./support/see.js";
import { loadShop } from "./support/shop.js";
import { interactionForm, sendSigned } from "./support/signed.js";
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

const handledClicks = async (): Promise<number> =>
  (
    await database.db.sql(
      undefined,
      "SELECT 1 FROM slack_inbox WHERE kind = 'action' AND processed_at IS NOT NULL",
    )
  ).length;

const cardIn = (w: World, as = "U_SUP1"): Promise<MessageView> =>
  waitFor(() => w.sandbox.control.messages(as, "C_APPR").find((one) => readable(one).includes("Amount")));
/** True once the answer to its post is recorded: until then any timestamp in its channel may be its own. */
const whereItStands = async ({ ts }: MessageView): Promise<boolean> =>
  (await database.db.sql(undefined, "SELECT 1 FROM slack_cards WHERE message_ts = $1", [ts])).length === 1;
const click = async (w: World, as: string, card: MessageView, label: string) =>
  w.sandbox.control.click({ as, at: { channel: card.channel, ts: card.ts }, label });
const votes = (): Promise<{ user_id: string; verdict: string }[]> =>
  database.db.sql(undefined, "SELECT user_id, verdict FROM votes ORDER BY at");
const says = (w: World, as: string, text: string, channel = "C_APPR") =>
  waitFor(() => answers(w.sandbox, as, channel).find((one) => one.includes(text)), {
    what: `"${text}" to ${as}`,
  });
const buttonsOf = (card: MessageView): string[] =>
  card.blocks.flatMap((block) =>
    block.type === "actions"
      ? (block["elements"] as { text: { text: string } }[]).map(({ text }) => text.text)
      : [],
  );

/** A ticket of U_AGENT with a thread, and an approval that stands in it and in the approvals channel. */
async function inThread(w: World, options: HeldOptions = {}): Promise<{ held: Held; ts: string }> {
  const posted = await w.sandbox.control.post({ as: "U_AGENT", channel: "C_TICK", text: "refund ORD-10042" });
  if (!posted.ok) throw new Error(posted.message);
  const [ticket] = await waitFor(async () => {
    const rows = await database.db.sql<{ id: TicketId }>(
      undefined,
      "SELECT id FROM tickets WHERE message_ts = $1",
      [posted.ts],
    );
    return rows.length > 0 ? rows : null;
  });
  return { held: await hold(w, { ticketId: ticket?.id ?? null, ...options }), ts: posted.ts };
}

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
        .filter((one) => readable(one).includes("Refunded £180.00 GBP"));
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

describe("a click", () => {
  test("delivered five times at once and by two people is one decision, and everybody hears who and when", async () => {
    const w = await start();
    await hold(w);
    const card = await cardIn(w);
    await Promise.all([
      ...Array.from({ length: 5 }, () => click(w, "U_SUP1", card, "Approve")),
      click(w, "U_SUP2", card, "Approve"),
    ]);
    await waitFor(() => answers(w.sandbox, "U_SUP1", "C_APPR").length === 5);
    expect(await votes()).toHaveLength(1);
    const [winner] = await votes();
    const loser = winner?.user_id === "U_SUP1" ? "U_SUP2" : "U_SUP1";
    await says(w, loser, `Already approved by <@${winner?.user_id ?? ""}>, <!date^`);
  });

  test("on a card that Slack has not updated yet is told how things stand", async () => {
    const w = await start();
    await hold(w);
    const card = await cardIn(w);
    w.sandbox.control.addApiFault({
      method: "chat.update",
      kind: "ratelimited",
      retryAfterSeconds: 30,
      times: 100,
    });
    await click(w, "U_SUP1", card, "Approve");
    await says(w, "U_SUP1", "Approved: Refund of £180.00 GBP on order ORD-10042.");
    await click(w, "U_SUP2", card, "Approve");
    await says(w, "U_SUP2", "Already approved by <@U_SUP1>");
    expect(await votes()).toHaveLength(1);
  });

  const forbidden: [string, string, HeldOptions][] = [
    ["U_AGENT2", "in the role supervisor", {}],
    ["U_GUEST", "Guests cannot", {}],
    ["U_SUP1", "You asked for this yourself", { filers: ["U_SUP1"] }],
    ["U_SUP1", "limit", { amountMinor: 60_000n }],
    ["U_SUP1", "in the role finance", { role: "finance" }],
  ];
  test.each(forbidden)(
    "by %s is answered with the reason (%s) and the state, and changes nothing",
    async (user, why, options) => {
      const w = await start();
      await w.sandbox.control.setMember("C_APPR", user, true);
      await hold(w, options);
      const card = await cardIn(w, user);
      await click(w, user, card, "Approve");
      const answer = await says(w, user, why);
      expect(answer).toContain("It still waits for one person in the role");
      await click(w, user, card, "Deny");
      await waitFor(() => answers(w.sandbox, user, "C_APPR").filter((one) => one.includes(why)).length === 2);
      expect(w.sandbox.control.modals(user)).toEqual([]);
      expect(await votes()).toEqual([]);
    },
  );

  test("by a member of another company is refused", async () => {
    const w = await start();
    await hold(w);
    const card = await cardIn(w);
    await w.sandbox.control.shareChannel("C_APPR", true);
    await w.sandbox.control.setMember("C_APPR", "U_EXT", true);
    expect(await click(w, "U_EXT", card, "Approve")).toMatchObject({ ok: true });
    await says(w, "U_EXT", "Members of another workspace cannot do this");
    expect(await votes()).toEqual([]);
  });

  test("of an installation for a whole organisation, without a team in the payload, counts", async () => {
    const w = await start({ sandbox: { settings: { orgInstall: true } } });
    await hold(w);
    await click(w, "U_SUP1", await cardIn(w), "Approve");
    await says(w, "U_SUP1", "Approved:");
  });

  test("by somebody who just lost the role is refused; one who just got it may", async () => {
    const w = await start();
    w.policy = {
      ...w.policy,
      roles: { ...w.policy.roles, supervisor: { usergroups: ["S_SUP"], users: [], limit: { GBP: 50_000n } } },
    };
    await hold(w);
    const card = await cardIn(w);
    await w.sandbox.control.setUserGroup("S_SUP", { users: ["U_AGENT2"] });
    await click(w, "U_SUP1", card, "Approve");
    await says(w, "U_SUP1", "you are not in it");
    await w.sandbox.control.setMember("C_APPR", "U_AGENT2", true);
    await click(w, "U_AGENT2", card, "Approve");
    await says(w, "U_AGENT2", "Approved:");
  });

  test("while Slack does not say who is in the role is refused, and says so", async () => {
    const w = await start();
    w.policy = {
      ...w.policy,
      roles: { ...w.policy.roles, supervisor: { usergroups: ["S_SUP"], users: [], limit: { GBP: 50_000n } } },
    };
    await hold(w);
    const card = await cardIn(w);
    w.sandbox.control.addApiFault({
      method: "usergroups.users.list",
      kind: "error",
      error: "internal_error",
      times: 10,
    });
    await click(w, "U_SUP1", card, "Approve");
    await says(w, "U_SUP1", "Slack could not be asked just now whether you are in the role supervisor");
    expect(await votes()).toEqual([]);
  });

  test("after the deadline is refused at the click itself: expired, not denied", async () => {
    const w = await start();
    await hold(w, { expiresIn: 1 });
    const card = await cardIn(w);
    await waitFor(
      async () =>
        (await database.db.sql(undefined, "SELECT 1 FROM approvals WHERE expires_at < countersign_now()"))
          .length === 1,
    );
    await click(w, "U_SUP1", card, "Approve").catch(() => undefined);
    expect(await votes()).toEqual([]);
  });

  test.each([
    ["in a channel where it does not stand", { channel: "C_GENERAL" }],
    ["under a timestamp that is not its own", { ts: "1.000001" }],
  ])("on a copy of the card %s is refused", async (_name, elsewhere) => {
    const w = await start();
    const held = await hold(w);
    const card = await cardIn(w);
    await waitFor(() => whereItStands(card), { what: "the card's own timestamp to be known" });
    const place = { channel: card.channel, ts: card.ts, ...elsewhere };
    const asPosted = {
      type: "block_actions",
      api_app_id: "A_CS",
      team: { id: "T_HOME", domain: "northwind" },
      user: { id: "U_SUP1", team_id: "T_HOME" },
      channel: { id: place.channel },
      container: { type: "message", channel_id: place.channel, message_ts: place.ts },
      message: { ts: place.ts },
      trigger_id: w.sandbox.control.issueTrigger("U_SUP1"),
      actions: [
        {
          type: "button",
          action_id: "approval.approve",
          block_id: "b",
          value: `${held.approvalId}.1`,
          action_ts: "2.1",
        },
      ],
    };
    await sendSigned(w, interactionForm(asPosted));
    await waitFor(async () => (await handledClicks()) === 1, { what: "the click to be handled" });
    expect(await votes()).toEqual([]);
    await click(w, "U_SUP1", card, "Approve");
    await waitFor(async () => (await votes()).length === 1);
  });

  test("on a button that no card has any more is told so", async () => {
    const w = await start();
    const held = await hold(w);
    const card = await cardIn(w);
    await database.db.sql(
      undefined,
      "UPDATE approvals SET card_version = 2, version = version + 1 WHERE id = $1",
      [held.approvalId],
    );
    await click(w, "U_SUP1", card, "Approve");
    await says(w, "U_SUP1", "This is an older card");
    expect(await votes()).toEqual([]);
  });
});

describe("Deny", () => {
  const deny = async (w: World, as: string, card: MessageView, values: Record<string, string>) => {
    await click(w, as, card, "Deny");
    const modal = await waitFor(() => w.sandbox.control.modals(as)[0]);
    return w.sandbox.control.submitView({ as, viewId: modal.id, values });
  };

  test("opens a form; the note and a smaller amount stand on every card, and the operation is denied", async () => {
    const w = await start();
    const { held, ts } = await inThread(w);
    const card = await cardIn(w);
    expect(
      await deny(w, "U_SUP1", card, { note: "<!here> ask *once* more", smaller: "£120.50" }),
    ).toMatchObject({ ok: true });
    await says(w, "U_SUP1", "Denied: Refund of £180.00 GBP on order ORD-10042. Nothing is sent.");
    const final = await waitFor(() => {
      const found = w.sandbox.control
        .messages("U_SUP1", "C_APPR")
        .concat(w.sandbox.control.messages("U_SUP1", "C_TICK", { threadTs: ts }))
        .filter((one) => readable(one).includes("*Denied* by <@U_SUP1>"));
      return found.length === 2 ? found : null;
    });
    expect(readable(final[0] as MessageView)).toBe(readable(final[1] as MessageView));
    expect(readable(final[0] as MessageView)).toContain("<!here> ask *once* more");
    expect(readable(final[0] as MessageView)).toContain("Suggested instead: £120.50 GBP");
    expect(final.some((one) => one.mentionsMe)).toBe(false);
    expect(final.flatMap(buttonsOf)).toEqual([]);
    expect(
      await database.db.sql(
        undefined,
        "SELECT o.status, a.state, a.suggested_minor FROM approvals a JOIN operations o ON o.id = a.operation_id WHERE a.id = $1",
        [held.approvalId],
      ),
    ).toEqual([{ status: "DENIED", state: "DENIED", suggested_minor: 12_050n }]);
  });

  test("without a note, or with an amount that is none, keeps the form open", async () => {
    const w = await start();
    await hold(w);
    const card = await cardIn(w);
    expect(await deny(w, "U_SUP1", card, { note: "\u200b " })).toMatchObject({ ok: false });
    const modal = w.sandbox.control.modals("U_SUP1")[0];
    const submit = (smaller: string) =>
      w.sandbox.control.submitView({
        as: "U_SUP1",
        viewId: modal?.id ?? "",
        values: { note: "too much", smaller },
      });
    for (const amount of ["a bit", "1e3", "-5", "12.505", "180.00", "200", "0"]) {
      expect(await submit(amount)).toMatchObject({
        ok: false,
        error: "view_errors",
        errors: { smaller: expect.any(String) },
      });
    }
    expect(await votes()).toEqual([]);
    expect(await submit("179.99")).toMatchObject({ ok: true });
  });

  test("after somebody else decided is told so, in the form that was open and at the button", async () => {
    const w = await start();
    await hold(w);
    const card = await cardIn(w);
    await click(w, "U_SUP2", card, "Deny");
    const modal = await waitFor(() => w.sandbox.control.modals("U_SUP2")[0]);
    expect(await deny(w, "U_SUP1", card, { note: "no" })).toMatchObject({ ok: true });
    const late = await w.sandbox.control.submitView({
      as: "U_SUP2",
      viewId: modal.id,
      values: { note: "me too" },
    });
    expect(late).toMatchObject({
      ok: false,
      error: "view_errors",
      errors: { note: expect.stringMatching(/^Already denied by sam, /) },
    });
  });

  test("wins over a complete approval that has not been sent, and says that it did", async () => {
    const w = await start();
    await hold(w);
    const card = await cardIn(w);
    await click(w, "U_SUP1", card, "Approve");
    await waitFor(() =>
      w.sandbox.control.messages("U_SUP1", "C_APPR").every((one) => buttonsOf(one).length === 0),
    );
    await w.sandbox.control.openHome({ as: "U_SUP2" });
    const home = await waitFor(() => {
      const view = w.sandbox.control.home("U_SUP2");
      return view.published ? view : null;
    });
    await w.sandbox.control.click({
      as: "U_SUP2",
      at: { viewId: home.viewId ?? "" },
      label: "Deny after all",
    });
    const modal = await waitFor(() => w.sandbox.control.modals("U_SUP2")[0]);
    expect(
      await w.sandbox.control.submitView({ as: "U_SUP2", viewId: modal.id, values: { note: "wait" } }),
    ).toMatchObject({ ok: true });
    await waitFor(() =>
      readable({ text: "", blocks: w.sandbox.control.home("U_SUP2").blocks }).includes("Denied in time"),
    );
  });

  test("and Approve at the same moment, twenty times, are one decision each, told alike to both", async () => {
    const w = await start({ sandbox: { rateLimits: false } });
    for (let round = 0; round < 20; round += 1) {
      const held = await hold(w);
      const both = await Promise.all([
        w.ctx.useCases.decide({
          approvalId: held.approvalId,
          cardVersion: 1,
          userId: "U_SUP1",
          verdict: "approve",
        }),
        w.ctx.useCases.decide({
          approvalId: held.approvalId,
          cardVersion: 1,
          userId: "U_SUP2",
          verdict: "deny",
          note: "no",
        }),
      ]);
      const [row] = await database.db.sql<{ state: string }>(
        undefined,
        "SELECT state FROM approvals WHERE id = $1",
        [held.approvalId],
      );
      expect(row?.state).toBe("DENIED");
      expect(both[1]?.outcome).toBe("denied");
    }
  });
});

describe("Undo", () => {
  test("stands on the card while an approved refund cools off, and takes it back", async () => {
    const w = await start();
    const held = await hold(w);
    const card = await cardIn(w);
    await click(w, "U_SUP1", card, "Approve");
    await waitFor(async () => (await votes()).length === 1);
    await moveApproval(w, held, "RELEASED");
    await database.db.sql(
      undefined,
      "UPDATE operations SET not_before = countersign_now() + interval '10 minutes', reserved_minor = amount_minor WHERE id = $1",
      [held.operationId],
    );
    await database.db.sql(
      undefined,
      "UPDATE payments SET reserved = 18000 WHERE payment_intent = 'pi_ORD-10042'",
    );
    await moveOperation(w, held, ["PREPARED"]);
    const cooling = await waitFor(() =>
      w.sandbox.control.messages("U_SUP1", "C_APPR").find((one) => buttonsOf(one).includes("Undo")),
    );
    expect(readable(cooling)).toContain("Until then it can be undone");
    await click(w, "U_SUP2", cooling, "Undo");
    await says(w, "U_SUP2", "Denied in time");
    await waitFor(
      async () =>
        (await database.db.sql(undefined, "SELECT 1 FROM operations WHERE status = 'DENIED'")).length === 1,
    );
  });
});

describe("a large amount", () => {
  test("is approved only by typing it again, by two people", async () => {
    const w = await start();
    const held = await hold(w, { amountMinor: 125_000n, role: "finance", approvers: 2, confirmAmount: true });
    for (const user of ["U_FIN1", "U_FIN2"]) await w.sandbox.control.setMember("C_APPR", user, true);
    const card = await cardIn(w, "U_FIN1");
    await click(w, "U_FIN1", card, "Approve");
    const modal = await waitFor(() => w.sandbox.control.modals("U_FIN1")[0]);
    const submit = (as: string, viewId: string, amount: string) =>
      w.sandbox.control.submitView({ as, viewId, values: { amount } });
    expect(await submit("U_FIN1", modal.id, "1,205.00")).toMatchObject({
      ok: false,
      error: "view_errors",
      errors: { amount: expect.stringContaining("£1,250.00 GBP") },
    });
    expect(await submit("U_FIN1", modal.id, "1,250.00")).toMatchObject({ ok: true });
    await says(w, "U_FIN1", "One more person is needed");
    await click(w, "U_FIN1", card, "Approve");
    await says(w, "U_FIN1", "You approved this already");
    await click(w, "U_FIN2", card, "Approve");
    const second = await waitFor(() => w.sandbox.control.modals("U_FIN2")[0]);
    expect(await submit("U_FIN2", second.id, "£1250")).toMatchObject({ ok: true });
    await waitFor(async () => (await votes()).length === 2);
    expect(
      await database.db.sql(undefined, "SELECT state FROM approvals WHERE id = $1", [held.approvalId]),
    ).toEqual([{ state: "APPROVED" }]);
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
