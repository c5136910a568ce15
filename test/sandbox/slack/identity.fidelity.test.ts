/** Statements 44 to 46: people of every standing, and user groups. */
import { describe, expect, test, vi } from "vitest";
import type { JsonObject, SlackSandbox } from "../../../src/sandbox/slack/index.js";
import { button, form, refused, sandbox, socketApp, until, web } from "./helpers.js";

vi.setConfig({ testTimeout: 60_000 });

async function info(sb: SlackSandbox, user: string): Promise<JsonObject> {
  return (await web(sb).users.info({ user, include_locale: true })).user as unknown as JsonObject;
}

describe("people", () => {
  test("44 users.info tells members, guests, deactivated, invited, bots, outsiders and strangers apart", async () => {
    const sb = await sandbox();
    expect(await info(sb, "U_SUP1")).toMatchObject({
      team_id: "T_HOME",
      deleted: false,
      is_bot: false,
      is_restricted: false,
      is_ultra_restricted: false,
      locale: "en-GB",
    });
    expect(await info(sb, "U_GUEST")).toMatchObject({ is_restricted: true, is_ultra_restricted: false });
    expect(await info(sb, "U_ULTRA")).toMatchObject({ is_restricted: true, is_ultra_restricted: true });
    expect(await info(sb, "U_GONE")).toMatchObject({ deleted: true });
    expect(await info(sb, "U_INVITED")).toMatchObject({ is_invited_user: true });
    expect(await info(sb, "U_BOT")).toMatchObject({ is_bot: true });
    const external = await info(sb, "U_EXT");
    expect(external).toMatchObject({ team_id: "T_EXT", is_stranger: false });
    expect(external["locale"]).toBeUndefined();
    expect(await info(sb, "U_STRANGER")).toMatchObject({ team_id: "T_EXT", is_stranger: true });
    expect((await refused(web(sb).users.info({ user: "U_NOBODY" }))).error).toBe("user_not_found");
    const { members } = await web(sb).users.list({ limit: 3 });
    expect(members).toHaveLength(3);
  });

  test("44 lists come by cursor to the end", async () => {
    const sb = await sandbox();
    const ids: unknown[] = [];
    for await (const answer of web(sb).paginate("users.list", { limit: 5 })) {
      ids.push(...((answer as unknown as { members: { id: string }[] }).members ?? []).map((m) => m.id));
    }
    expect(new Set(ids).size).toBe(ids.length);
    expect(ids).toContain("U_ONC2");
    expect((await refused(web(sb).users.list({ cursor: "nonsense" }))).error).toBe("invalid_cursor");
    expect((await refused(web(sb).conversations.history({ channel: "C_TICK", limit: 1000 }))).error).toBe(
      "invalid_limit",
    );
    const channels = await web(sb).conversations.list({ types: "public_channel,private_channel" });
    expect(channels.channels?.find((c) => c.id === "C_SHARED")).toMatchObject({ is_ext_shared: true });
    expect(channels.channels?.some((c) => c.id === "G_FIN")).toBe(false);
    const shared = await web(sb).conversations.info({ channel: "C_SHARED" });
    expect(shared.channel).toMatchObject({ is_ext_shared: true, connected_team_ids: ["T_EXT"] });
  });

  test("44 an org-wide installation sends team null", async () => {
    const sb = await sandbox({ settings: { orgInstall: true } });
    const bodies: JsonObject[] = [];
    await socketApp(sb, (app) => {
      app.action("go", async ({ ack, body }) => {
        bodies.push(body as unknown as JsonObject);
        await ack();
      });
    });
    const { ts } = await web(sb).chat.postMessage({ channel: "C_TICK", text: "c", blocks: [button("go")] });
    await sb.control.click({ as: "U_SUP1", at: { channel: "C_TICK", ts: ts ?? "" }, actionId: "go" });
    expect(bodies[0]).toMatchObject({
      team: null,
      is_enterprise_install: true,
      enterprise: { id: "E_ORG" },
      user: { team_id: "T_HOME" },
    });
  });

  test("45 the deactivated cannot act; outsiders press buttons but have no commands and shortcuts, and submit under their own team", async () => {
    const sb = await sandbox();
    const bodies: JsonObject[] = [];
    await socketApp(sb, (app) => {
      app.action("go", async ({ ack, body, client }) => {
        bodies.push(body as unknown as JsonObject);
        await ack();
        await client.views.open({ trigger_id: (body as { trigger_id: string }).trigger_id, view: form("f") });
      });
      app.view("f", async ({ ack, body }) => {
        bodies.push(body as unknown as JsonObject);
        await ack();
      });
    });
    const { ts } = await web(sb).chat.postMessage({ channel: "C_SHARED", text: "c", blocks: [button("go")] });
    const at = { channel: "C_SHARED", ts: ts ?? "" };
    for (const [as, error] of [
      ["U_GONE", "user_deactivated"],
      ["U_INVITED", "user_cannot_act"],
      ["U_BOT", "user_cannot_act"],
      ["U_STRANGER", "unknown_channel"],
      ["U_GUEST", "unknown_channel"],
      ["U_NOBODY", "unknown_user"],
    ] as const) {
      expect(await sb.control.click({ as, at, actionId: "go" })).toMatchObject({ ok: false, error });
    }
    expect(bodies).toHaveLength(0);
    expect((await sb.control.click({ as: "U_EXT", at, actionId: "go" })).ok).toBe(true);
    expect(bodies[0]).toMatchObject({ team: { id: "T_EXT" }, user: { id: "U_EXT", team_id: "T_EXT" } });
    await until(() => sb.control.modals("U_EXT").length === 1);
    await sb.control.submitView({
      as: "U_EXT",
      viewId: sb.control.modals("U_EXT")[0]?.id ?? "",
      values: { Reason: "hello" },
    });
    expect(bodies[1]).toMatchObject({
      type: "view_submission",
      team: { id: "T_EXT" },
      user: { team_id: "T_EXT" },
      view: { team_id: "T_EXT", app_installed_team_id: "T_HOME" },
    });
    expect(
      await sb.control.command({ as: "U_EXT", channel: "C_SHARED", command: "/ops", text: "" }),
    ).toMatchObject({
      error: "not_allowed_for_external",
    });
    expect(
      await sb.control.shortcut({ as: "U_EXT", callbackId: "resolve_with_countersign", message: at }),
    ).toMatchObject({ error: "not_allowed_for_external" });
  });

  test("45 a change of standing is told to the app and holds from then on", async () => {
    const sb = await sandbox();
    const changes: JsonObject[] = [];
    await socketApp(sb, (app) => {
      app.event("user_change", async ({ event }) => {
        changes.push(event.user as unknown as JsonObject);
      });
    });
    await sb.control.changePerson({ user: "U_SUP1", deleted: true });
    await sb.control.changePerson({ user: "U_SUP2", isRestricted: true });
    await until(() => changes.length === 2);
    expect(changes).toMatchObject([
      { id: "U_SUP1", deleted: true },
      { id: "U_SUP2", is_restricted: true },
    ]);
    expect(await sb.control.post({ as: "U_SUP1", channel: "C_TICK", text: "still here?" })).toMatchObject({
      error: "user_deactivated",
    });
    expect(await info(sb, "U_SUP1")).toMatchObject({ deleted: true });
  });
});

describe("user groups", () => {
  test("46 members are listed, disabled groups only when asked for, unknown ones not; a free plan has none", async () => {
    const sb = await sandbox();
    const groups = web(sb).usergroups;
    expect((await groups.users.list({ usergroup: "S_SUP" })).users).toEqual(["U_SUP1", "U_SUP2"]);
    expect((await refused(groups.users.list({ usergroup: "S_NOPE" }))).error).toBe("no_such_subteam");
    expect((await refused(groups.users.list({ usergroup: "S_OFF" }))).error).toBe("no_such_subteam");
    expect((await groups.users.list({ usergroup: "S_OFF", include_disabled: true })).users).toEqual([]);
    const listed = await groups.list({ include_users: true });
    expect(listed.usergroups?.map((g) => g.id)).toEqual(["S_SUP", "S_FIN", "S_ONC"]);
    expect(listed.usergroups?.[0]?.users).toEqual(["U_SUP1", "U_SUP2"]);
    sb.control.settings({ freePlan: true });
    expect((await refused(groups.users.list({ usergroup: "S_SUP" }))).error).toBe("plan_upgrade_required");
  });

  test("46 a change of members emits subteam_members_changed with who came and went", async () => {
    const sb = await sandbox();
    const heard: JsonObject[] = [];
    await socketApp(sb, (app) => {
      app.event("subteam_members_changed", async ({ event }) => {
        heard.push(event as unknown as JsonObject);
      });
    });
    await sb.control.setUserGroup("S_SUP", { users: ["U_SUP2", "U_AGENT"] });
    await until(() => heard.length === 1);
    expect(heard[0]).toMatchObject({
      subteam_id: "S_SUP",
      added_users: ["U_AGENT"],
      added_users_count: 1,
      removed_users: ["U_SUP1"],
      removed_users_count: 1,
    });
    expect((await web(sb).usergroups.users.list({ usergroup: "S_SUP" })).users).toEqual([
      "U_SUP2",
      "U_AGENT",
    ]);
  });
});
