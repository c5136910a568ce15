/** Statements 34 to 38: the stack of modals, hashes, submissions, closing, App Home. */
import type { App } from "@slack/bolt";
import { describe, expect, test, vi } from "vitest";
import type { JsonObject, SlackSandbox } from "../../../src/sandbox/slack/index.js";
import { button, form, refused, sandbox, section, socketApp, until, web } from "./helpers.js";

vi.setConfig({ testTimeout: 60_000 });

const input = (blockId: string, element: object, more: object = {}): object => ({
  type: "input",
  block_id: blockId,
  label: { type: "plain_text", text: blockId },
  element: { action_id: "v", ...element },
  ...more,
});

/** A card with a button whose press opens `view`, and further listeners. */
async function opened(
  sb: SlackSandbox,
  view: never,
  setUp: (app: App) => void = () => undefined,
): Promise<string> {
  await socketApp(sb, (app) => {
    app.action("open", async ({ ack, body, client }) => {
      await ack();
      await client.views.open({ trigger_id: (body as { trigger_id: string }).trigger_id, view });
    });
    setUp(app);
  });
  const { ts } = await web(sb).chat.postMessage({
    channel: "C_TICK",
    text: "card",
    blocks: [button("open")],
  });
  await sb.control.click({ as: "U_SUP1", at: { channel: "C_TICK", ts: ts ?? "" }, actionId: "open" });
  await until(() => sb.control.modals("U_SUP1").length === 1, "the modal");
  return sb.control.modals("U_SUP1")[0]?.id ?? "";
}

const top = (sb: SlackSandbox) => sb.control.modals("U_SUP1").at(-1);
const submit = (sb: SlackSandbox, values: Record<string, string | string[] | null>) =>
  sb.control.submitView({ as: "U_SUP1", viewId: top(sb)?.id ?? "", values });

describe("the stack", () => {
  test("34 at most three; a push needs a trigger from inside a modal", async () => {
    const sb = await sandbox();
    const errors: string[] = [];
    const view = form("f", {
      blocks: [button("push"), ...((form("x") as { blocks: object[] }).blocks ?? [])],
    });
    await opened(sb, view, (app) => {
      app.action("push", async ({ ack, body, client }) => {
        await ack();
        await client.views
          .push({ trigger_id: (body as { trigger_id: string }).trigger_id, view })
          .catch((e: { data?: { error: string } }) => errors.push(e.data?.error ?? "?"));
      });
    });
    for (let size = 2; size <= 3; size += 1) {
      await sb.control.click({ as: "U_SUP1", at: { viewId: top(sb)?.id ?? "" }, actionId: "push" });
      await until(() => sb.control.modals("U_SUP1").length === size);
    }
    await sb.control.click({ as: "U_SUP1", at: { viewId: top(sb)?.id ?? "" }, actionId: "push" });
    await until(() => errors.length === 1);
    expect(errors).toEqual(["push_limit_reached"]);
    const [root, second, third] = sb.control.modals("U_SUP1");
    expect(new Set([root?.id, second?.id, third?.id]).size).toBe(3);

    // A command's trigger comes from outside a modal. Nobody listens to it here, so it ends unanswered.
    sb.control.settings({ ackTimeoutMs: 100 });
    await sb.control.command({ as: "U_SUP2", channel: "C_TICK", command: "/ops", text: "" });
    const slash = sb.control.journal().find((e) => e.kind === "delivery" && e.type === "slash_command");
    const trigger = slash?.kind === "delivery" ? (slash.payload as JsonObject)["trigger_id"] : "";
    const outside = web(sb).views.push({ trigger_id: String(trigger), view: form("f") });
    expect((await refused(outside)).error).toBe("invalid_trigger_id");
  });

  test("35 a stale hash is hash_conflict, an unknown id not_found, an external id in use duplicate_external_id", async () => {
    const sb = await sandbox();
    const id = await opened(sb, form("f", { external_id: "ext-1" }));
    const views = web(sb).views;
    const hash = top(sb)?.hash ?? "";
    const updated = await views.update({ view_id: id, hash, view: form("f", { external_id: "ext-1" }) });
    expect((updated.view as { hash?: string }).hash).not.toBe(hash);
    expect((await refused(views.update({ view_id: id, hash, view: form("f") }))).error).toBe("hash_conflict");
    await views.update({ external_id: "ext-1", view: form("f", { external_id: "ext-1" }) });
    expect((await refused(views.update({ view_id: "V0000000000", view: form("f") }))).error).toBe(
      "not_found",
    );
    expect(
      (await refused(views.update({ view_id: id, external_id: "ext-1", view: form("f") } as never)))
        .response_metadata?.messages?.[0],
    ).toContain("Cannot provide both");
    const home = { type: "home", external_id: "ext-1", blocks: [section("a")] } as never;
    expect((await refused(views.publish({ user_id: "U_AGENT", view: home }))).error).toBe(
      "duplicate_external_id",
    );
    await sb.control.closeView({ as: "U_SUP1", viewId: id });
    expect((await refused(views.update({ view_id: id, view: form("f") }))).error).toBe("not_found");
  });

  test("33 a view above 250 kB is view_too_large", async () => {
    const sb = await sandbox();
    const id = await opened(sb, form("f"));
    const blocks = Array.from({ length: 100 }, () => section("x".repeat(2990)));
    const big = form("f", { blocks });
    expect((await refused(web(sb).views.update({ view_id: id, view: big }))).error).toBe("view_too_large");
  });
});

describe("submitting", () => {
  test("36 required fields, lengths, e-mails and numbers are checked before anything is sent", async () => {
    const sb = await sandbox();
    let submissions = 0;
    const view = form("f", {
      blocks: [
        input("Note", { type: "plain_text_input", min_length: 5, max_length: 10 }),
        input("Mail", { type: "email_text_input" }, { optional: true }),
        input("Amount", { type: "number_input", is_decimal_allowed: false, min_value: "1", max_value: "9" }),
        input("Link", { type: "url_text_input" }, { optional: true }),
      ],
    });
    await opened(sb, view, (app) => {
      app.view("f", async ({ ack }) => {
        submissions += 1;
        await ack();
      });
    });
    expect(await submit(sb, {})).toMatchObject({
      ok: false,
      error: "invalid_input",
      errors: {
        Note: "Please complete this required field.",
        Amount: "Please complete this required field.",
      },
    });
    expect(await submit(sb, { Note: "hey", Amount: "4.5", Mail: "nobody", Link: "x" })).toMatchObject({
      errors: {
        Note: "Enter at least 5 characters",
        Amount: "Enter a whole number",
        Mail: "Enter a valid e-mail address",
        Link: "Enter a valid URL",
      },
    });
    expect(await submit(sb, { Note: "long enough to fail", Amount: "10", Mail: "", Link: "" })).toMatchObject(
      {
        errors: { Note: "Enter no more than 10 characters", Amount: "Enter a number of at most 9" },
      },
    );
    expect(submissions).toBe(0);
    expect(await submit(sb, { Note: "just so", Amount: "9", Mail: "a@b.example" })).toEqual({ ok: true });
    expect(submissions).toBe(1);
    expect(sb.control.modals("U_SUP1")).toHaveLength(0);
  });

  test("36 errors are shown at their inputs, and those for an unknown block are flagged", async () => {
    const sb = await sandbox();
    const answers: object[] = [
      { response_action: "errors", errors: { reason: "No longer open" } },
      { response_action: "errors", errors: { nowhere: "lost" } },
      { response_action: "dance" },
    ];
    await opened(sb, form("f"), (app) => {
      app.view("f", async ({ ack }) => {
        await ack((answers.shift() ?? {}) as never);
      });
    });
    expect(await submit(sb, { Reason: "x" })).toMatchObject({
      error: "view_errors",
      errors: { reason: "No longer open" },
    });
    expect(top(sb)?.errors).toEqual({ reason: "No longer open" });
    const toasts: string[] = [];
    sb.control.subscribe("U_SUP1", (e) => {
      if (e.type === "toast") toasts.push(e.message);
    });
    expect(await submit(sb, { Reason: "x" })).toMatchObject({ error: "dispatch_failed" });
    expect(toasts[0]).toContain("nowhere");
    expect(await submit(sb, { Reason: "x" })).toMatchObject({ error: "dispatch_failed" });
    expect(await submit(sb, { Reason: "x" })).toEqual({ ok: true });
  });

  test("36 update replaces, push stacks, clear closes all; an answer with a bad view leaves the form open", async () => {
    const sb = await sandbox();
    const answers: object[] = [
      { response_action: "update", view: form("f", { title: { type: "plain_text", text: "Second" } }) },
      { response_action: "push", view: form("f", { title: { type: "plain_text", text: "Third" } }) },
      { response_action: "update", view: form("f", { title: { type: "plain_text", text: "x".repeat(30) } }) },
      { response_action: "clear" },
    ];
    await opened(sb, form("f"), (app) => {
      app.view("f", async ({ ack }) => {
        await ack((answers.shift() ?? {}) as never);
      });
    });
    await submit(sb, { Reason: "a" });
    expect(sb.control.modals("U_SUP1").map((m) => m.title)).toEqual(["Second"]);
    await submit(sb, { Reason: "a" });
    expect(sb.control.modals("U_SUP1").map((m) => m.title)).toEqual(["Second", "Third"]);
    expect(await submit(sb, { Reason: "a" })).toMatchObject({ error: "dispatch_failed" });
    expect(sb.control.modals("U_SUP1")).toHaveLength(2);
    await submit(sb, { Reason: "a" });
    expect(sb.control.modals("U_SUP1")).toHaveLength(0);
  });

  test("36 a submission that is not answered leaves the form and shows an error", async () => {
    const sb = await sandbox({ settings: { ackTimeoutMs: 200 } });
    await opened(sb, form("f"), (app) => {
      app.view("f", async () => undefined);
    });
    expect(await submit(sb, { Reason: "a" })).toMatchObject({ error: "operation_timeout" });
    expect(top(sb)?.values["reason"]?.["text"]).toEqual({ type: "plain_text_input", value: "a" });
  });

  test("36 selects, dates, checkboxes and radio buttons arrive in Slack's shape", async () => {
    const sb = await sandbox();
    const seen: JsonObject[] = [];
    const options = ["red", "blue"].map((v) => ({
      text: { type: "plain_text", text: v.toUpperCase() },
      value: v,
    }));
    const view = form("f", {
      blocks: [
        input("One", { type: "static_select", options }),
        input("Many", { type: "multi_static_select", options, max_selected_items: 1 }),
        input("Day", { type: "datepicker" }),
        input("Box", { type: "checkboxes", options }),
        input("Radio", { type: "radio_buttons", options, initial_option: options[0] }),
        input("Who", { type: "users_select" }, { optional: true }),
      ],
    });
    await opened(sb, view, (app) => {
      app.view("f", async ({ ack, view: sent }) => {
        seen.push(sent.state.values as unknown as JsonObject);
        await ack();
      });
    });
    expect(await submit(sb, { One: "green" })).toMatchObject({ error: "invalid_input" });
    expect(
      await submit(sb, { One: "blue", Many: ["red", "blue"], Day: "2026-11-29", Box: ["red"] }),
    ).toMatchObject({
      errors: { Many: "Choose no more than 1" },
    });
    await submit(sb, { One: "BLUE", Many: ["red"], Day: "2026-11-29", Box: ["red", "blue"] });
    expect(seen[0]).toMatchObject({
      One: { v: { type: "static_select", selected_option: { value: "blue" } } },
      Many: { v: { selected_options: [{ value: "red" }] } },
      Day: { v: { type: "datepicker", selected_date: "2026-11-29" } },
      Box: { v: { selected_options: [{ value: "red" }, { value: "blue" }] } },
      Radio: { v: { selected_option: { value: "red" } } },
      Who: { v: { type: "users_select", selected_user: null } },
    });
  });
});

describe("updating and closing", () => {
  test("37 values survive an update only under the same block id and action id", async () => {
    const sb = await sandbox();
    const blocks = (ids: string[]): object[] => [
      button("touch"),
      ...ids.map((id) => input(id, { type: "plain_text_input" })),
    ];
    const id = await opened(sb, form("f", { blocks: blocks(["kept", "lost"]) }), (app) => {
      app.action("touch", async ({ ack }) => ack());
    });
    await sb.control.click({
      as: "U_SUP1",
      at: { viewId: id },
      actionId: "touch",
      values: { kept: "first", lost: "second" },
    });
    await web(sb).views.update({ view_id: id, view: form("f", { blocks: blocks(["kept", "fresh"]) }) });
    expect(top(sb)?.values).toMatchObject({ kept: { v: { value: "first" } }, fresh: { v: { value: null } } });
    expect(top(sb)?.values["lost"]).toBeUndefined();
  });

  test("37 view_closed comes only with notify_on_close, and the cross says is_cleared", async () => {
    const sb = await sandbox();
    const closed: JsonObject[] = [];
    const listen = (app: App): void => {
      app.view({ type: "view_closed", callback_id: /.*/u }, async ({ ack, body }) => {
        closed.push(body as unknown as JsonObject);
        await ack();
      });
    };
    const quietId = await opened(sb, form("quiet"), listen);
    await sb.control.closeView({ as: "U_SUP1", viewId: quietId });
    expect(closed).toHaveLength(0);
    const [card] = sb.control.messages("U_SUP1", "C_TICK");
    const reopen = async (view: never): Promise<string> => {
      await sb.control.click({
        as: "U_SUP1",
        at: { channel: "C_TICK", ts: card?.ts ?? "" },
        actionId: "open",
      });
      await until(() => sb.control.modals("U_SUP1").length === 1);
      const id = top(sb)?.id ?? "";
      await web(sb).views.update({ view_id: id, view });
      return id;
    };
    const plainId = await reopen(form("f", { notify_on_close: true }));
    await sb.control.closeView({ as: "U_SUP1", viewId: plainId });
    expect(closed.at(-1)).toMatchObject({ type: "view_closed", is_cleared: false, view: { id: plainId } });
    const crossId = await reopen(form("f", { notify_on_close: true }));
    await sb.control.closeView({ as: "U_SUP1", viewId: crossId, all: true });
    expect(closed.at(-1)).toMatchObject({ is_cleared: true, view: { id: crossId } });
    expect(closed).toHaveLength(2);
  });
});

describe("App Home", () => {
  test("38 a home is published for one person; app_home_opened carries the view only once there is one", async () => {
    const sb = await sandbox();
    const heard: JsonObject[] = [];
    await socketApp(sb, (app) => {
      app.event("app_home_opened", async ({ event }) => {
        heard.push(event as unknown as JsonObject);
      });
    });
    await sb.control.openHome({ as: "U_AGENT" });
    await until(() => heard.length === 1);
    expect(heard[0]).toMatchObject({ type: "app_home_opened", user: "U_AGENT", tab: "home" });
    expect(heard[0]?.["channel"]).toMatch(/^D/u);
    expect(heard[0]?.["view"]).toBeUndefined();
    const published = await web(sb).views.publish({
      user_id: "U_AGENT",
      view: { type: "home", blocks: [section("Your tickets")] } as never,
    });
    expect(sb.control.home("U_AGENT")).toMatchObject({ published: true });
    expect(sb.control.home("U_SUP1")).toMatchObject({ published: false });
    await sb.control.openHome({ as: "U_AGENT", tab: "messages" });
    await until(() => heard.length === 2);
    expect(heard[1]).toMatchObject({ tab: "messages", view: { type: "home", id: published.view?.id } });
    const again = { user_id: "U_AGENT", view: { type: "home", blocks: [] } as never };
    expect((await refused(web(sb).views.publish({ ...again, hash: "1.stale" }))).error).toBe("hash_conflict");
    expect((await refused(web(sb).views.publish({ ...again, view: form("f") }))).error).toBe(
      "invalid_arguments",
    );
    expect((await refused(web(sb).views.publish({ ...again, user_id: "U_NOBODY" }))).error).toBe(
      "invalid_arguments",
    );
  });
});
