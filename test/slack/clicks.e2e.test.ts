/** Clicks on approval cards, through the real Bolt app. */
import { describe, expect, test } from "vitest";
import { waitFor } from "../support/wait.js";
import { withCards } from "./support/cards.js";
import { type HeldOptions, hold } from "./support/held.js";
import { answers } from "./support/see.js";
import { interactionForm, sendSigned } from "./support/signed.js";

const { database, start, handledClicks, cardIn, whereItStands, click, votes, says } = withCards();

/** A held operation's card, where only a user group makes supervisors. */
async function heldForGroup(w: Awaited<ReturnType<typeof start>>) {
  w.policy = {
    ...w.policy,
    roles: { ...w.policy.roles, supervisor: { usergroups: ["S_SUP"], users: [], limit: { GBP: 50_000n } } },
  };
  await hold(w);
  return cardIn(w);
}

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
      expect(answer).toContain("it still waits for one person in the role");
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
    const card = await heldForGroup(w);
    await w.sandbox.control.setUserGroup("S_SUP", { users: ["U_AGENT2"] });
    await click(w, "U_SUP1", card, "Approve");
    await says(w, "U_SUP1", "you are not in it");
    await w.sandbox.control.setMember("C_APPR", "U_AGENT2", true);
    await click(w, "U_AGENT2", card, "Approve");
    await says(w, "U_AGENT2", "Approved:");
  });

  test("while Slack does not say who is in the role is refused, and says so", async () => {
    const w = await start();
    const card = await heldForGroup(w);
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
