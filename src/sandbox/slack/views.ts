/**
 * Modals and App Home: the stack of each person (at most three), hashes against races, what is kept on an update.
 *
 * Values are kept on an update only for inputs with the same block id and action id. A view that is closed is gone: its
 * id is `not_found` afterwards.
 */
import { ApiError, argumentsError } from "./app-post.js";
import { isObject, sentence } from "./blocks/check.js";
import { normaliseBlocks } from "./blocks/elements-of.js";
import { stateOf } from "./blocks/state.js";
import { checkView, VIEW_MAX_BYTES } from "./blocks/view.js";
import type { SandboxContext } from "./context.js";
import type { JsonObject, View } from "./model.js";

export const MAX_STACK = 3;

/** Checks a view from the app. Throws `invalid_arguments` with pointers, or `view_too_large`. */
export function readView(given: unknown): JsonObject {
  if (!isObject(given)) throw argumentsError("missing required field: view [json-pointer:/view]");
  const problems = checkView(given);
  if (problems.length > 0) throw argumentsError(...problems.map(sentence));
  if (Buffer.byteLength(JSON.stringify(given)) > VIEW_MAX_BYTES) throw new ApiError("view_too_large");
  return given as JsonObject;
}

function fieldsOf(
  ctx: SandboxContext,
  given: JsonObject,
): Omit<View, "id" | "owner" | "rootViewId" | "previousViewId"> {
  const text = (name: string): string => (typeof given[name] === "string" ? (given[name] as string) : "");
  const object = (name: string): JsonObject | null => {
    const value = given[name];
    return isObject(value) ? { emoji: true, ...(value as JsonObject) } : null;
  };
  const blocks = normaliseBlocks(ctx, given["blocks"] as unknown[]);
  return {
    type: given["type"] === "home" ? "home" : "modal",
    blocks,
    privateMetadata: text("private_metadata"),
    callbackId: text("callback_id"),
    externalId: text("external_id"),
    title: object("title"),
    submit: object("submit"),
    close: object("close"),
    clearOnClose: given["clear_on_close"] === true,
    notifyOnClose: given["notify_on_close"] === true,
    hash: ctx.ids.viewHash(ctx.clock.now()),
    values: stateOf(blocks),
    errors: {},
  };
}

/** All live views: open modals and published homes. */
export function* liveViews(ctx: SandboxContext): Generator<View> {
  for (const stack of ctx.modals.values()) yield* stack;
  yield* Object.values(ctx.data.homes);
}

export function findView(ctx: SandboxContext, id: string): View | undefined {
  for (const view of liveViews(ctx)) if (view.id === id) return view;
  return undefined;
}

export function stackOf(ctx: SandboxContext, user: string): View[] {
  return ctx.modals.get(user) ?? [];
}

function setStack(ctx: SandboxContext, user: string, stack: View[]): void {
  if (stack.length === 0) ctx.modals.delete(user);
  else ctx.modals.set(user, stack);
  ctx.hub.emit({ type: "modals", user });
}

function freshExternalId(ctx: SandboxContext, given: JsonObject, except: View | null): void {
  const id = given["external_id"];
  if (typeof id !== "string" || id === "") return;
  for (const view of liveViews(ctx)) {
    if (view !== except && view.externalId === id) throw new ApiError("duplicate_external_id");
  }
}

/** Opens a modal as the root of the person's stack; an open one is replaced. */
export function openModal(ctx: SandboxContext, user: string, given: JsonObject): View {
  mustBe(given, "modal");
  freshExternalId(ctx, given, null);
  const id = ctx.ids.id("V");
  const view: View = { id, owner: user, rootViewId: id, previousViewId: null, ...fieldsOf(ctx, given) };
  setStack(ctx, user, [view]);
  return view;
}

/** Puts a modal on top of the stack. Throws `push_limit_reached` at three. */
export function pushModal(ctx: SandboxContext, user: string, given: JsonObject): View {
  mustBe(given, "modal");
  const stack = stackOf(ctx, user);
  const top = stack.at(-1);
  if (!top) throw new ApiError("not_found");
  if (stack.length >= MAX_STACK) throw new ApiError("push_limit_reached");
  freshExternalId(ctx, given, null);
  const view: View = {
    id: ctx.ids.id("V"),
    owner: user,
    rootViewId: top.rootViewId,
    previousViewId: top.id,
    ...fieldsOf(ctx, given),
  };
  setStack(ctx, user, [...stack, view]);
  return view;
}

/** Replaces the content of a view. `hash`, where given, must be the current one. */
export function updateView(
  ctx: SandboxContext,
  view: View,
  given: JsonObject,
  hash: string | undefined,
): View {
  if (hash !== undefined && hash !== view.hash) throw new ApiError("hash_conflict");
  mustBe(given, view.type);
  freshExternalId(ctx, given, view);
  const fresh = fieldsOf(ctx, given);
  Object.assign(view, fresh, { values: stateOf(fresh.blocks, view.values) });
  if (view.type === "modal") ctx.hub.emit({ type: "modals", user: view.owner });
  else {
    ctx.dirty();
    ctx.hub.emit({ type: "home", user: view.owner });
  }
  return view;
}

/** Publishes a person's home. */
export function publishHome(
  ctx: SandboxContext,
  user: string,
  given: JsonObject,
  hash: string | undefined,
): View {
  mustBe(given, "home");
  const current = ctx.data.homes[user];
  if (current) return updateView(ctx, current, given, hash);
  if (hash !== undefined) throw new ApiError("hash_conflict");
  freshExternalId(ctx, given, null);
  const id = ctx.ids.id("V");
  const view: View = { id, owner: user, rootViewId: id, previousViewId: null, ...fieldsOf(ctx, given) };
  ctx.data.homes[user] = view;
  ctx.dirty();
  ctx.hub.emit({ type: "home", user });
  return view;
}

function mustBe(given: JsonObject, type: View["type"]): void {
  if (given["type"] !== type) throw argumentsError(`must be a \`${type}\` view [json-pointer:/view/type]`);
}

/** Takes the top view away, or the whole stack; returns what was closed, top first. */
export function closeModal(ctx: SandboxContext, user: string, all: boolean): View[] {
  const stack = stackOf(ctx, user);
  const top = stack.at(-1);
  if (!top) return [];
  const clear = all || top.clearOnClose;
  setStack(ctx, user, clear ? [] : stack.slice(0, -1));
  return clear ? [...stack].reverse() : [top];
}

/** Takes exactly this view off the top after its submission was accepted. */
export function dropView(ctx: SandboxContext, view: View): void {
  setStack(
    ctx,
    view.owner,
    stackOf(ctx, view.owner).filter((v) => v !== view),
  );
}

export function clearStack(ctx: SandboxContext, user: string): void {
  setStack(ctx, user, []);
}

/** Shows these sentences at the inputs. */
export function setErrors(ctx: SandboxContext, view: View, errors: Record<string, string>): void {
  view.errors = errors;
  ctx.hub.emit({ type: "modals", user: view.owner });
}
