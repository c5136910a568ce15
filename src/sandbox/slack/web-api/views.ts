/** views.open, push, update, publish; blocks.validate. */
import { ApiError, argumentsError, blocksError } from "../app-post.js";
import { checkBlocks } from "../blocks/blocks.js";
import type { SandboxContext } from "../context.js";
import type { JsonObject, View } from "../model.js";
import { useTrigger } from "../triggers.js";
import {
  findView,
  liveViews,
  openModal,
  publishHome,
  pushModal,
  readView,
  stackOf,
  updateView,
} from "../views.js";
import { wireView } from "../wire.js";
import { findPerson } from "../workspace.js";
import { type Method, stringOf } from "./method.js";

function answer(ctx: SandboxContext, view: View): JsonObject {
  return { view: wireView(ctx, view, { ...view.values }) };
}

function triggerArg(args: JsonObject): string {
  const id = stringOf(args, "trigger_id");
  if (id === undefined) throw argumentsError("missing required field: trigger_id [json-pointer:/trigger_id]");
  return id;
}

const open: Method = {
  scopes: [],
  token: "bot",
  tier: "tier4",
  args: { view: "json", trigger_id: "string" },
  run(ctx, args) {
    const id = triggerArg(args);
    const given = readView(args["view"]);
    const trigger = useTrigger(ctx, id);
    return answer(ctx, openModal(ctx, trigger.user, given));
  },
};

const push: Method = {
  scopes: [],
  token: "bot",
  tier: "tier4",
  args: { view: "json", trigger_id: "string" },
  run(ctx, args) {
    const id = triggerArg(args);
    const given = readView(args["view"]);
    const from = ctx.triggers.get(id);
    if (from && from.viewId === null) throw new ApiError("invalid_trigger_id");
    const trigger = useTrigger(ctx, id);
    const root = findView(ctx, trigger.viewId ?? "");
    if (root?.type === "home") {
      throw argumentsError(
        "must match the `type` of the root view whose stack we're pushing onto [json-pointer:/view/type]",
      );
    }
    if (!stackOf(ctx, trigger.user).some((v) => v.id === trigger.viewId)) throw new ApiError("not_found");
    return answer(ctx, pushModal(ctx, trigger.user, given));
  },
};

const update: Method = {
  scopes: [],
  token: "bot",
  tier: "tier4",
  args: { view: "json", view_id: "string", external_id: "string", hash: "string" },
  run(ctx, args) {
    const id = stringOf(args, "view_id");
    const externalId = stringOf(args, "external_id");
    if (id !== undefined && externalId !== undefined) {
      throw argumentsError("Cannot provide both `view_id` and `external_id`");
    }
    if (id === undefined && externalId === undefined) {
      throw argumentsError("missing required field: view_id [json-pointer:/view_id]");
    }
    const given = readView(args["view"]);
    const view =
      id === undefined ? [...liveViews(ctx)].find((v) => v.externalId === externalId) : findView(ctx, id);
    if (!view) throw new ApiError("not_found");
    return answer(ctx, updateView(ctx, view, given, stringOf(args, "hash")));
  },
};

const publish: Method = {
  scopes: [],
  token: "bot",
  tier: "tier4",
  args: { view: "json", user_id: "string", hash: "string" },
  run(ctx, args) {
    const person = findPerson(ctx, stringOf(args, "user_id") ?? "");
    if (!person || person.isBot) throw argumentsError("invalid `user_id` [json-pointer:/user_id]");
    const given = readView(args["view"]);
    return answer(ctx, publishHome(ctx, person.id, given, stringOf(args, "hash")));
  },
};

const validate: Method = {
  scopes: [],
  token: "any",
  tier: "tier3",
  args: { blocks: "json" },
  run(_ctx, args) {
    const problems = checkBlocks(args["blocks"], "message", "/blocks");
    if (problems.length > 0) throw blocksError(problems);
    return {};
  },
};

export const VIEWS: Record<string, Method> = {
  "views.open": open,
  "views.push": push,
  "views.update": update,
  "views.publish": publish,
  "blocks.validate": validate,
};
