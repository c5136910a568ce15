/** The page of the Slack sandbox in a real browser, in front of a small app on the real Bolt. */

import type { App } from "@slack/bolt";
import type { KnownBlock } from "@slack/types";
import type { Page } from "playwright-core";
import { expect, it } from "vitest";
import type { SlackSandbox } from "../../src/sandbox/slack/index.js";
import { sandbox, socketApp, web } from "../sandbox/slack/helpers.js";
import { waitFor } from "../support/wait.js";
import { card, form } from "./support/cards.js";
import { describeInBrowser, fitsWidth, stumbles, visitor } from "./support/chromium.js";

const { visit } = visitor();
const HOSTILE = `<img src=x onerror="window.hit=1"> <script>window.hit=1</script> <b>b</b> "><svg onload=window.hit=1> javascript:window.hit=1 &lt;i&gt; \u202Etxet`;

const messages = (page: Page) => page.locator("#messages article");
const thread = (page: Page) => page.locator("#thread");
const composer = (page: Page) => page.locator("#channel textarea");
const toast = (page: Page) => page.locator(".toast");

async function write(page: Page, text: string): Promise<void> {
  await composer(page).fill(text);
  await composer(page).press("Enter");
}

async function post(sb: SlackSandbox, as: string, channel: string, text: string): Promise<string> {
  const posted = await sb.control.post({ as, channel, text });
  if (!posted.ok) throw new Error(posted.message);
  return posted.ts;
}

/** Deliveries of this type that the app has got. */
const delivered = (sb: SlackSandbox, type: string) =>
  sb.control.journal().filter((entry) => entry.kind === "delivery" && entry.type === type).length;

function formApp(app: App): void {
  app.action("deny", async ({ ack, body, client }) => {
    await ack();
    if (body.type !== "block_actions") return;
    await client.views.open({ trigger_id: body.trigger_id, view: form("Deny the refund") });
  });
  app.action("push", async ({ ack, body, client }) => {
    await ack();
    if (body.type !== "block_actions") return;
    await client.views.push({ trigger_id: body.trigger_id, view: form("On top") });
  });
  app.view("deny", async ({ ack, view }) => {
    const note = view.state.values["note"]?.["text"]?.value ?? "";
    if (note.length < 10)
      await ack({ response_action: "errors", errors: { note: "Say why in a sentence." } });
    else await ack();
  });
}

describeInBrowser("channels and messages", () => {
  it("marks what is unread and counts mentions, without reload, until the person has looked", async () => {
    const sb = await sandbox();
    const page = await visit(sb.url, { as: "U_SUP1", path: "/archives/C_TICK" });
    const entry = page.locator('[data-entry="C_GENERAL"]');
    await post(sb, "U_AGENT", "C_GENERAL", "nothing for anybody");
    await page.locator('[data-entry="C_GENERAL"].channel-unread').waitFor();
    expect(await entry.locator(".count").count()).toBe(0);
    await post(sb, "U_AGENT", "C_GENERAL", "@sam and @supervisors, look");
    await entry.locator(".count").waitFor();
    expect(await entry.locator(".count").textContent()).toBe("1");
    await entry.click();
    await page.locator('[data-entry="C_GENERAL"]:not(.channel-unread)').waitFor();
    expect(await page.locator("#messages article:has(.mention-me)").count()).toBe(1);
    expect(await page.locator(".new-line").count()).toBe(0);
  });

  it("shows another person's view in a second window at the same time", async () => {
    const sb = await sandbox();
    const ada = await visit(sb.url, { as: "U_AGENT", path: "/archives/C_TICK" });
    const sam = await visit(sb.url, { as: "U_SUP1", path: "/archives/C_TICK" });
    await write(ada, "the jacket came torn");
    await messages(sam).getByText("the jacket came torn").waitFor();
    await messages(sam).last().hover();
    await sam.getByRole("button", { name: "Reply in thread" }).click();
    await thread(sam).locator("textarea").fill("I look at it");
    await thread(sam).locator("textarea").press("Enter");
    await messages(ada).getByText("1 reply").click();
    await thread(ada).getByText("I look at it").waitFor();
  });

  it("turns no text of people into markup, wherever it stands", async () => {
    const sb = await sandbox();
    const admin = web(sb);
    await sb.control.changePerson({ user: "U_AGENT", realName: HOSTILE });
    await post(sb, "U_AGENT", "C_TICK", HOSTILE);
    const wire = HOSTILE.replaceAll("<", "&lt;").replaceAll(">", "&gt;");
    await admin.chat.postMessage({
      channel: "C_TICK",
      text: HOSTILE,
      blocks: [
        { type: "header", text: { type: "plain_text", text: HOSTILE.slice(0, 150) } },
        {
          type: "section",
          text: { type: "mrkdwn", text: `*${HOSTILE}* ${wire} \`${HOSTILE}\` <javascript:window.hit=1|go>` },
        },
        {
          type: "markdown",
          text: `${HOSTILE}\n\n[go](javascript:window.hit=1) ![x](javascript:window.hit=1)\n\n<img src=x onerror=window.hit=1>`,
        },
        { type: "image", image_url: "https://example.com/x.png", alt_text: HOSTILE },
        {
          type: "actions",
          elements: [
            { type: "button", action_id: "a", text: { type: "plain_text", text: HOSTILE.slice(0, 75) } },
          ],
        },
      ],
    });
    const page = await visit(sb.url, { as: "U_SUP1", path: "/archives/C_TICK" });
    await messages(page).nth(1).waitFor();
    await page.locator("#inspector-toggle").click();
    await page.locator(".wire-row summary").first().click();
    await page.locator("#me").click();
    expect(
      await page
        .locator("#messages :is(img, script, svg:not(.icon), b, i), dialog :is(img, script, b)")
        .count(),
    ).toBe(0);
    expect(await page.locator('a[href^="javascript" i]').count()).toBe(0);
    expect(await messages(page).first().locator(".rich-text").textContent()).toContain(
      '<img src=x onerror="window.hit=1">',
    );
    expect(await page.evaluate("window.hit")).toBeUndefined();
  });

  it("keeps what somebody is writing, and where they read, while cards change around them", async () => {
    const sb = await sandbox();
    const client = web(sb);
    const { ts = "" } = await client.chat.postMessage({ channel: "C_TICK", text: "card", blocks: card() });
    const page = await visit(sb.url, { as: "U_SUP1", path: "/archives/C_TICK" });
    await composer(page).fill("half a sentence");
    await client.chat.update({
      channel: "C_TICK",
      ts,
      text: "card",
      blocks: [{ type: "section", text: { type: "mrkdwn", text: "*decided*" } }],
    });
    await messages(page).getByText("decided").waitFor();
    expect(await page.getByRole("button", { name: "Deny" }).count()).toBe(0);
    expect(await composer(page).inputValue()).toBe("half a sentence");
    expect(await page.evaluate("document.activeElement.getAttribute('aria-label')")).toBe("Message");
  });

  it("opens a permalink at its message and its thread", async () => {
    const sb = await sandbox();
    const parent = await post(sb, "U_AGENT", "C_TICK", "parent");
    const reply = await sb.control.post({
      as: "U_SUP1",
      channel: "C_TICK",
      text: "the answer",
      threadTs: parent,
    });
    if (!reply.ok) throw new Error(reply.message);
    const { permalink = "" } = await web(sb).chat.getPermalink({ channel: "C_TICK", message_ts: reply.ts });
    const { pathname, search } = new URL(permalink);
    const page = await visit(sb.url, { as: "U_AGENT", path: pathname + search });
    await thread(page).locator(".message-wanted").getByText("the answer").waitFor();
  });

  it("shows a message for one person to that person alone, until it is dismissed", async () => {
    const sb = await sandbox();
    const ada = await visit(sb.url, { as: "U_AGENT", path: "/archives/C_TICK" });
    const sam = await visit(sb.url, { as: "U_SUP1", path: "/archives/C_TICK" });
    await web(sb).chat.postEphemeral({ channel: "C_TICK", user: "U_AGENT", text: "between us" });
    await messages(ada).getByText("Only visible to you").waitFor();
    await post(sb, "U_SUP1", "C_TICK", "after it");
    await messages(sam).getByText("after it").waitFor();
    expect(await sam.getByText("between us").count()).toBe(0);
    await ada.getByRole("button", { name: "Dismiss" }).first().click();
    await waitFor(async () => (await ada.getByText("between us").count()) === 0);
  });
});

describeInBrowser("buttons, menus and forms", () => {
  it("sends nothing when the confirm dialog is declined, and one press when it is confirmed", async () => {
    const sb = await sandbox();
    await socketApp(sb, (app) => app.action("approve", async ({ ack }) => ack()));
    await web(sb).chat.postMessage({ channel: "C_APPR", text: "card", blocks: card() });
    const page = await visit(sb.url, { as: "U_SUP1", path: "/archives/C_APPR" });
    await page.getByRole("button", { name: "Approve £180.00" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Not yet" }).click();
    await page.getByRole("button", { name: "Approve £180.00" }).click();
    await page.keyboard.press("Escape");
    expect(delivered(sb, "block_actions")).toBe(0);
    await page.getByRole("button", { name: "Approve £180.00" }).click();
    await page.getByRole("button", { name: "Yes, approve" }).click();
    await waitFor(() => delivered(sb, "block_actions") === 1);
  });

  it("sends what was chosen in a menu of a message", async () => {
    const sb = await sandbox();
    const chosen: unknown[] = [];
    await socketApp(sb, (app) =>
      app.action("reason", async ({ ack, body }) => {
        await ack();
        if (body.type === "block_actions") chosen.push(body.actions[0]);
      }),
    );
    await web(sb).chat.postMessage({ channel: "C_APPR", text: "card", blocks: card() });
    const page = await visit(sb.url, { as: "U_SUP1", path: "/archives/C_APPR" });
    await page.locator("#messages select").selectOption("late");
    await waitFor(() => chosen.length === 1);
    expect(chosen[0]).toMatchObject({ selected_option: { value: "late" } });
  });

  it("shows a form's error at its input, keeps what was typed, and takes the corrected form", async () => {
    const sb = await sandbox();
    await socketApp(sb, formApp);
    await web(sb).chat.postMessage({ channel: "C_APPR", text: "card", blocks: card() });
    const page = await visit(sb.url, { as: "U_SUP1", path: "/archives/C_APPR" });
    await page.getByRole("button", { name: "Deny" }).click();
    const note = page.getByLabel("Note");
    await page.getByRole("button", { name: "Deny it" }).click();
    await page.getByText("Please complete this required field.").waitFor();
    await note.fill("too short");
    await page.locator("dialog").getByLabel("Kind").selectOption("fraud");
    await page.getByRole("button", { name: "Deny it" }).click();
    await page.getByText("Say why in a sentence.").waitFor();
    expect(await note.inputValue()).toBe("too short");
    expect(await note.getAttribute("aria-invalid")).toBe("true");
    expect(await page.locator("dialog").getByLabel("Kind").inputValue()).toBe("fraud");
    await note.fill("the jacket was worn for a year");
    await page.getByRole("button", { name: "Deny it" }).click();
    await page.locator("dialog").waitFor({ state: "detached" });
  });

  it("leaves the inspector in use while a form is open, and gives the focus back to the button", async () => {
    const sb = await sandbox();
    await socketApp(sb, formApp);
    await web(sb).chat.postMessage({ channel: "C_APPR", text: "card", blocks: card() });
    const page = await visit(sb.url, { as: "U_SUP1", path: "/archives/C_APPR" });
    await page.getByRole("button", { name: "Deny" }).click();
    await page.getByLabel("Note").fill("kept");
    await page.locator("#inspector-toggle").click();
    await page.getByRole("tab", { name: "Faults" }).click();
    await page
      .locator(".fault-form", { hasText: "any call" })
      .getByRole("button", { name: "Switch on" })
      .click();
    await page.locator(".fault-list").getByText("Any call answers internal_error").waitFor();
    expect(await page.locator("#sidebar[inert]").count()).toBe(1);
    await page.keyboard.press("Escape");
    await page.locator("#inspector").waitFor({ state: "hidden" });
    expect(await page.getByLabel("Note").inputValue()).toBe("kept");
    await page.getByLabel("Note").focus();
    await page.keyboard.press("Escape");
    await page.locator("dialog").waitFor({ state: "detached" });
    const focused = page.locator("#messages button:focus");
    await focused.waitFor();
    expect(await focused.textContent()).toBe("Deny");
  });

  it("stacks forms: the one below has what was typed when the upper one goes", async () => {
    const sb = await sandbox();
    await socketApp(sb, formApp);
    await web(sb).chat.postMessage({ channel: "C_APPR", text: "card", blocks: card() });
    const page = await visit(sb.url, { as: "U_SUP1", path: "/archives/C_APPR" });
    await page.getByRole("button", { name: "Deny" }).click();
    await page.getByLabel("Note").fill("typed below");
    await page.getByRole("button", { name: "One more form" }).click();
    await page.getByRole("heading", { name: "On top" }).waitFor();
    await page.getByRole("button", { name: "Back" }).click();
    await page.getByRole("heading", { name: "Deny the refund" }).waitFor();
    expect(await page.getByLabel("Note").inputValue()).toBe("typed below");
    await page.keyboard.press("Escape");
    await page.locator("dialog").waitFor({ state: "detached" });
    expect(sb.control.modals("U_SUP1")).toEqual([]);
  });

  it("opens a form from a message's shortcut", async () => {
    const sb = await sandbox();
    await socketApp(sb, (app) =>
      app.shortcut("resolve_with_countersign", async ({ ack, body, client }) => {
        await ack();
        await client.views.open({ trigger_id: body.trigger_id, view: form("From a message") });
      }),
    );
    await post(sb, "U_AGENT", "C_TICK", "please");
    const page = await visit(sb.url, { as: "U_AGENT", path: "/archives/C_TICK" });
    await messages(page).last().focus();
    await page.keyboard.press("m");
    await page.getByRole("menuitem", { name: "Resolve with Countersign" }).click();
    await page.getByRole("heading", { name: "From a message" }).waitFor();
  });

  it("says so when the app does not answer, and leaves the button to be pressed again", async () => {
    const sb = await sandbox();
    await web(sb).chat.postMessage({ channel: "C_APPR", text: "card", blocks: card() });
    const page = await visit(sb.url, { as: "U_SUP1", path: "/archives/C_APPR" });
    await page.getByText("App not connected").waitFor();
    await page.getByRole("button", { name: "Deny" }).click();
    await toast(page).getByText("not_connected").waitFor();
    expect(await page.getByRole("button", { name: "Deny" }).getAttribute("aria-busy")).toBeNull();
    expect(await toast(page).count()).toBe(1);
  });

  it("updates the app's home while somebody looks at it", async () => {
    const sb = await sandbox();
    const client = web(sb);
    const publish = (text: string) =>
      client.views.publish({
        user_id: "U_SUP1",
        view: { type: "home", blocks: [{ type: "section", text: { type: "mrkdwn", text } }] },
      });
    const page = await visit(sb.url, { as: "U_SUP1", path: "/?view=home" });
    await page.getByText("has not published a home").waitFor();
    await publish("*Nothing* waits for you");
    await page.locator("#home-body strong", { hasText: "Nothing" }).waitFor();
    await publish("*One* thing waits for you");
    await page.locator("#home-body strong", { hasText: "One" }).waitFor();
  });

  it("leaves the keyboard where it is while a card or the home changes, and never on another's button", async () => {
    const sb = await sandbox();
    const client = web(sb);
    const decide = (id: string): KnownBlock => ({
      type: "actions",
      block_id: `decide.${id}`,
      elements: [
        { type: "button", action_id: "approve", text: { type: "plain_text", text: `Approve ${id}` } },
        { type: "button", action_id: "deny", text: { type: "plain_text", text: `Deny ${id}` } },
      ],
    });
    const line = (text: string): KnownBlock => ({ type: "section", text: { type: "plain_text", text } });
    const publish = (...blocks: KnownBlock[]) =>
      client.views.publish({ user_id: "U_SUP1", view: { type: "home", blocks } });
    await publish(decide("A"), decide("B"));
    const page = await visit(sb.url, { as: "U_SUP1", path: "/?view=home" });
    const focused = (): Promise<string> => page.evaluate("document.activeElement.textContent");
    await page.getByRole("button", { name: "Deny B" }).focus();
    await publish(line("Refunds are frozen."), decide("0"), decide("A"), decide("B"));
    await page.getByText("Refunds are frozen.").waitFor();
    expect(await focused()).toBe("Deny B");
    await publish(decide("A"));
    await page.getByText("Refunds are frozen.").waitFor({ state: "detached" });
    expect(await page.evaluate("document.activeElement.id")).toBe("home-body");
    await page.keyboard.press("Tab");
    expect(await focused()).toBe("Approve A");

    const { ts = "" } = await client.chat.postMessage({
      channel: "C_APPR",
      text: "x",
      blocks: [decide("C")],
    });
    const edit = (...blocks: KnownBlock[]) =>
      client.chat.update({ channel: "C_APPR", ts, text: "x", blocks });
    await page.goto(`${sb.url}/archives/C_APPR?as=U_SUP1`);
    await page.getByRole("button", { name: "Deny C" }).focus();
    await edit(line("Refunds are frozen."), decide("C"));
    await messages(page).getByText("Refunds are frozen.").waitFor();
    expect(await focused()).toBe("Deny C");
    await edit(line("Denied."));
    await messages(page).getByText("Denied.").waitFor();
    expect(await page.evaluate("document.activeElement.tagName")).toBe("ARTICLE");
  });
});

describeInBrowser("threads and files", () => {
  it("gathers the threads that concern a person, says which are new, and leads into them", async () => {
    const sb = await sandbox();
    const mine = await post(sb, "U_AGENT", "C_TICK", "the kettle broke");
    const other = await post(sb, "U_SUP1", "C_TICK", "nothing of Ada's");
    const page = await visit(sb.url, { as: "U_AGENT", path: "/archives/C_GENERAL" });
    const { control } = sb;
    await control.post({ as: "U_SUP1", channel: "C_TICK", text: "which kettle?", threadTs: mine });
    await control.post({ as: "U_SUP2", channel: "C_TICK", text: "hm", threadTs: other });
    const entry = page.locator('[data-entry="threads"]');
    await page.locator('[data-entry="threads"].channel-unread').waitFor();
    await entry.click();
    const list = page.locator("#threads");
    await list.getByText("which kettle?").waitFor();
    expect(await list.locator(".thread-entry").count()).toBe(1);
    expect(await list.locator(".thread-unread").count()).toBe(1);
    await list.getByRole("button", { name: "Open thread" }).click();
    await thread(page).getByText("which kettle?").waitFor();
    await page.locator('[data-entry="threads"]:not(.channel-unread)').waitFor();
  });

  it("counts no message for one person among the replies of a thread", async () => {
    const sb = await sandbox();
    const parent = await post(sb, "U_AGENT", "C_TICK", "please");
    await sb.control.post({ as: "U_SUP1", channel: "C_TICK", text: "a reply", threadTs: parent });
    const page = await visit(sb.url, {
      as: "U_AGENT",
      path: `/archives/C_TICK/p${parent.replace(".", "")}?thread_ts=${parent}`,
    });
    await thread(page).getByText("a reply").waitFor();
    await web(sb).chat.postEphemeral({
      channel: "C_TICK",
      user: "U_AGENT",
      text: "just you",
      thread_ts: parent,
    });
    await thread(page).getByText("just you").waitFor();
    expect(await thread(page).locator(".replies-line").textContent()).toBe("1 reply");
    expect(await page.locator("#messages .replies-count").textContent()).toBe("1 reply");
  });

  it("sends files by name, also without a word, and lets one of them go first", async () => {
    const sb = await sandbox();
    const page = await visit(sb.url, { as: "U_AGENT", path: "/archives/C_TICK" });
    const image = (name: string) => ({ name, mimeType: "image/png", buffer: Buffer.alloc(2048) });
    await page.locator("#channel input[type=file]").setInputFiles([image("broken.png"), image("wrong.png")]);
    await page.getByRole("button", { name: "Leave out wrong.png" }).click();
    await page.locator("#channel").getByRole("button", { name: "Send" }).click();
    await messages(page).getByText("broken.png").waitFor();
    const [sent] = sb.control.messages("U_AGENT", "C_TICK");
    expect(sent).toMatchObject({
      subtype: "file_share",
      text: "",
      files: [{ name: "broken.png", mimetype: "image/png", size: 2048 }],
    });
    expect(await page.locator(".composer-files li").count()).toBe(0);
  });

  it("says new messages aloud as they stand on the page, not as markup", async () => {
    const sb = await sandbox();
    const page = await visit(sb.url, { as: "U_AGENT", path: "/archives/C_TICK" });
    await web(sb).chat.postMessage({ channel: "C_TICK", text: "*Approved* by <@U_SUP1>: R&amp;D jacket" });
    await page.locator("#announcer", { hasText: "Approved by @Sam Supervisor: R&D jacket" }).waitFor({
      state: "attached",
    });
    expect(await page.locator("#announcer").textContent()).not.toMatch(/[*<]/u);
  });
});

describeInBrowser("people, keys and small screens", () => {
  it("offers everybody who can act, and says why the others cannot", async () => {
    const sb = await sandbox();
    const page = await visit(sb.url, { as: "U_AGENT", path: "/archives/C_TICK" });
    await page.locator("#me").click();
    for (const [id, why] of [
      ["U_GONE", "Deactivated"],
      ["U_INVITED", "has not joined"],
      ["U_BOT", "not a person"],
    ]) {
      const entry = page.locator(`[data-person="${id}"]`);
      expect(await entry.getAttribute("aria-disabled")).toBe("true");
      expect(await entry.textContent()).toContain(why);
    }
    await page.locator('[data-person="U_FIN1"]').click();
    await page.locator("#me", { hasText: "Fiona Ledger" }).waitFor();
    expect(new URL(page.url()).searchParams.get("as")).toBe("U_FIN1");
    await page.locator('[data-entry="G_FIN"]').waitFor();
    await page.locator("#me").click();
    await page.locator('[data-person="U_STRANGER"]').click();
    await page.locator("#me", { hasText: "Sky Stranger" }).waitFor();
    expect(await page.locator('[data-entry="G_FIN"], [data-entry="C_TICK"]').count()).toBe(0);
  });

  it("works without a mouse: channels, messages, threads, commands, the switcher", async () => {
    const sb = await sandbox();
    await socketApp(sb, (app) =>
      app.command("/ops", async ({ ack, command }) => ack(`you asked for ${command.text}`)),
    );
    await post(sb, "U_ONC2", "C_TICK", "first");
    await post(sb, "U_ONC1", "C_TICK", "second");
    const page = await visit(sb.url, { as: "U_ONC1", path: "/archives/C_APPR" });
    await page.keyboard.press("Alt+ArrowUp");
    await messages(page).last().focus();
    await page.keyboard.press("ArrowUp");
    await page.keyboard.press("Enter");
    await thread(page).getByText("first").waitFor();
    await page.keyboard.type("a reply by hand");
    await page.keyboard.press("Enter");
    await thread(page).locator("article").getByText("a reply by hand").waitFor();
    await page.keyboard.press("Escape");
    await thread(page).waitFor({ state: "hidden" });
    await page.locator("#messages article:focus", { hasText: "first" }).waitFor();
    await composer(page).focus();
    await page.keyboard.type("/o");
    await page.getByRole("option", { name: "/ops" }).waitFor();
    await page.keyboard.press("Tab");
    await page.keyboard.type("health");
    await page.keyboard.press("Enter");
    await messages(page).getByText("you asked for health").waitFor();
    // Emptied when the answer to the request is in, which may come after the message.
    await waitFor(async () => (await composer(page).inputValue()) === "");
    await page.keyboard.press("Alt+p");
    await page.getByRole("dialog").getByRole("heading", { name: "Who are you?" }).waitFor();
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("Enter");
    await page.locator("#me", { hasText: "Leo Martin" }).waitFor();
  });

  it("keeps a command that does not exist in the field and says so", async () => {
    const sb = await sandbox();
    const page = await visit(sb.url, { as: "U_AGENT", path: "/archives/C_TICK" });
    await write(page, "/refund everything");
    await toast(page).getByText("/refund is not a valid command.").waitFor();
    expect(await composer(page).inputValue()).toBe("/refund everything");
  });

  it("fits a phone: list, channel, thread and form, one at a time, with a way back", async () => {
    const sb = await sandbox();
    await socketApp(sb, formApp);
    const ts = await post(sb, "U_AGENT", "C_TICK", `a-very-long-word-${"x".repeat(300)}`);
    await web(sb).chat.postMessage({ channel: "C_TICK", thread_ts: ts, text: "card", blocks: card() });
    const page = await visit(sb.url, {
      as: "U_SUP1",
      viewport: { width: 390, height: 800 },
      hasTouch: true,
      isMobile: true,
    });
    expect(await fitsWidth(page)).toBe(true);
    await page.locator('[data-entry="C_TICK"]').tap();
    await messages(page).getByText("1 reply").waitFor();
    expect(await fitsWidth(page)).toBe(true);
    expect(await page.locator("#sidebar").isVisible()).toBe(false);
    await messages(page).getByText("1 reply").tap();
    // The field would bring the keyboard up over the thread.
    await page.locator("#thread-close:focus").waitFor();
    await thread(page).getByRole("button", { name: "Deny" }).tap();
    await page.getByLabel("Note").waitFor();
    expect(await fitsWidth(page)).toBe(true);
    await page.getByRole("button", { name: "Back", exact: true }).last().tap();
    await page.locator("dialog").waitFor({ state: "detached" });
    await page.getByRole("button", { name: "Close thread" }).tap();
    await page.getByRole("button", { name: "Back to the channels" }).tap();
    await page.locator("#sidebar").waitFor();
  });

  it.each(["light", "dark"] as const)(
    "names every control and lets every text stand out, %s",
    async (colorScheme) => {
      const sb = await sandbox();
      await socketApp(sb, formApp);
      const ticket = await post(
        sb,
        "U_AGENT",
        "C_TICK",
        "*please* see `ORD-1` @sam https://shop.example :tada:",
      );
      const { chat, views } = web(sb);
      await chat.postMessage({ channel: "C_TICK", thread_ts: ticket, text: "card", blocks: card() });
      await chat.postMessage({ channel: "C_APPR", text: "card", blocks: card() });
      await chat.postEphemeral({ channel: "C_APPR", user: "U_SUP1", text: "only you" });
      await views.publish({ user_id: "U_SUP1", view: { type: "home", blocks: card() } });
      const page = await visit(sb.url, { as: "U_SUP1", path: "/archives/C_TICK", colorScheme });
      await page.locator("#messages .replies").click();
      await thread(page).getByRole("button", { name: "Deny" }).waitFor();
      expect(await stumbles(page)).toEqual([]);
      await page.locator('[data-entry="home"]').click();
      await page.locator("#home-body").getByRole("button", { name: "Deny" }).waitFor();
      expect(await stumbles(page)).toEqual([]);
      await page.locator('[data-entry="C_APPR"]').click();
      await page.locator("#channel").getByRole("button", { name: "Deny" }).click();
      await page.getByRole("button", { name: "Deny it" }).click();
      await page.getByText("Please complete this required field.").waitFor();
      await page.locator("#inspector-toggle").click();
      for (const tab of ["Requests", "Faults", "Books"]) {
        await page.getByRole("tab", { name: tab }).click();
        expect(await stumbles(page), tab).toEqual([]);
      }
      await page.getByLabel("Note").press("Escape");
      await page.locator("dialog").waitFor({ state: "detached" });
      await page.keyboard.press("Alt+p");
      await page.getByRole("dialog").waitFor();
      expect(await stumbles(page)).toEqual([]);
    },
  );

  it("follows the machine's choice of light and dark", async () => {
    const sb = await sandbox();
    const colour = async (colorScheme: "light" | "dark") => {
      const page = await visit(sb.url, { as: "U_AGENT", path: "/archives/C_TICK", colorScheme });
      return page.evaluate("getComputedStyle(document.body).backgroundColor");
    };
    expect(await colour("light")).not.toBe(await colour("dark"));
  });
});

describeInBrowser("inspector", () => {
  it("shows calls and deliveries as they went over the wire", async () => {
    const sb = await sandbox();
    await web(sb).chat.postMessage({ channel: "C_TICK", text: "from the app" });
    const page = await visit(sb.url, { as: "U_AGENT", path: "/archives/C_TICK?inspector" });
    const row = page.locator(".wire-row", { hasText: "chat.postMessage" });
    await row.locator("summary").click();
    await row.getByText('"from the app"').first().waitFor();
    await web(sb)
      .chat.postMessage({ channel: "C_NOPE", text: "x" })
      .catch(() => undefined);
    await page.locator(".wire-bad", { hasText: "channel_not_found" }).waitFor();
  });

  it("switches faults on and off", async () => {
    const sb = await sandbox();
    const page = await visit(sb.url, { as: "U_AGENT", path: "/archives/C_TICK?inspector" });
    await page.getByRole("tab", { name: "Faults" }).click();
    const slack = page.locator(".fault-group", { hasText: "Sockets:" });
    await slack.getByLabel("Method").selectOption("chat.postMessage");
    await slack.getByRole("button", { name: "Switch on" }).first().click();
    await slack.getByText("chat.postMessage answers internal_error, 1 left").waitFor();
    await expect(web(sb).chat.postMessage({ channel: "C_TICK", text: "x" })).rejects.toThrow(
      "internal_error",
    );
    await slack.locator(".fault-list li").waitFor({ state: "detached" });
  });

  it("says that there is nothing to compare where no ledger and no provider is attached", async () => {
    const sb = await sandbox();
    const page = await visit(sb.url, { as: "U_AGENT", path: "/archives/C_TICK?inspector" });
    await page.getByRole("tab", { name: "Books" }).click();
    const books = page.getByRole("tabpanel", { name: "Books" });
    await books.getByText("No ledger is attached here.").waitFor();
    await books.getByText("No payments sandbox is attached here.").waitFor();
  });
});
