/** users.*, usergroups.*, bots.info, team.info, auth.test, api.test. */
import { ApiError } from "../app-post.js";
import type { SandboxContext } from "../context.js";
import { botProfile, wireGroup, wireUser } from "../wire.js";
import { findGroup, findPerson, isHome } from "../workspace.js";
import { type Method, page, stringOf, userArg } from "./method.js";

const authTest: Method = {
  scopes: [],
  token: "any",
  tier: "special",
  args: {},
  run(ctx) {
    return {
      url: `${ctx.baseUrl}/`,
      team: ctx.team.name,
      user: findPerson(ctx, ctx.app.botUserId)?.name ?? ctx.app.name,
      team_id: ctx.team.id,
      user_id: ctx.app.botUserId,
      bot_id: ctx.app.botId,
      is_enterprise_install: false,
    };
  },
};

const apiTest: Method = {
  scopes: [],
  token: "any",
  tier: "tier4",
  args: { error: "string", foo: "string" },
  run(_ctx, args) {
    const error = stringOf(args, "error");
    if (error !== undefined) throw new ApiError(error, { args });
    return { args };
  },
};

const teamInfo: Method = {
  scopes: ["team:read"],
  token: "bot",
  tier: "tier3",
  args: { team: "string", domain: "string" },
  run(ctx) {
    return {
      team: { id: ctx.team.id, name: ctx.team.name, domain: ctx.team.domain, email_domain: "", icon: {} },
    };
  },
};

const botsInfo: Method = {
  scopes: ["users:read"],
  token: "bot",
  tier: "tier3",
  args: { bot: "string" },
  run(ctx, args) {
    if (stringOf(args, "bot") !== ctx.app.botId) throw new ApiError("bot_not_found");
    return { bot: botProfile(ctx) };
  },
};

const usersInfo: Method = {
  scopes: ["users:read"],
  token: "bot",
  tier: "tier4",
  args: { user: "string", include_locale: "bool" },
  run(ctx, args) {
    return { user: wireUser(ctx, userArg(ctx, args), args["include_locale"] === true) };
  },
};

const usersList: Method = {
  scopes: ["users:read"],
  token: "bot",
  tier: "tier2",
  args: { cursor: "string", limit: "int", include_locale: "bool" },
  run(ctx, args) {
    const everyone = ctx.data.people.filter((p) => isHome(ctx, p) || p.kind === "external");
    const { items, nextCursor } = page(everyone, args, { limit: 1000, max: 1000 });
    return {
      members: items.map((p) => wireUser(ctx, p, args["include_locale"] === true)),
      cache_ts: Math.floor(ctx.clock.now() / 1000),
      response_metadata: { next_cursor: nextCursor },
    };
  },
};

/** User groups are a feature of paid plans. */
function paidPlan(ctx: SandboxContext): void {
  if (ctx.settings.freePlan) throw new ApiError("plan_upgrade_required");
}

const groupsList: Method = {
  scopes: ["usergroups:read"],
  token: "bot",
  tier: "tier2",
  args: { include_disabled: "bool", include_users: "bool", include_count: "bool" },
  run(ctx, args) {
    paidPlan(ctx);
    const groups = ctx.data.groups.filter((g) => !g.disabled || args["include_disabled"] === true);
    return { usergroups: groups.map((g) => wireGroup(ctx, g, args["include_users"] === true)) };
  },
};

const groupUsers: Method = {
  scopes: ["usergroups:read"],
  token: "bot",
  tier: "tier2",
  args: { usergroup: "string", include_disabled: "bool" },
  run(ctx, args) {
    paidPlan(ctx);
    const group = findGroup(ctx, stringOf(args, "usergroup") ?? "");
    if (!group || (group.disabled && args["include_disabled"] !== true)) {
      throw new ApiError("no_such_subteam");
    }
    return { users: group.users };
  },
};

export const PEOPLE_METHODS: Record<string, Method> = {
  "auth.test": authTest,
  "api.test": apiTest,
  "team.info": teamInfo,
  "bots.info": botsInfo,
  "users.info": usersInfo,
  "users.list": usersList,
  "usergroups.list": groupsList,
  "usergroups.users.list": groupUsers,
};
