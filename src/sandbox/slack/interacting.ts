/**
 * What people press and submit: buttons and menus, forms, slash commands, shortcuts, the app's home. Each builds the
 * payload, waits for the acknowledgement, and does with it what Slack's client does.
 */
import { actor, homeOnly, messageFor, Refusal, writableChannel } from "./acting.js";
import { ApiError } from "./app-post.js";
import { isObject } from "./blocks/check.js";
import { elementsOf, type Located } from "./blocks/elements-of.js";
import { clientProblems, isStateful, stateFrom, stateOf } from "./blocks/state.js";
import type { AckResult, SandboxContext } from "./context.js";
import type {
  ActError,
  ClickRequest,
  CloseViewRequest,
  CommandRequest,
  InputValue,
  OpenHomeRequest,
  ShortcutRequest,
  SubmitViewRequest,
} from "./control-types.js";
import { send } from "./messages.js";
import type { Block, ElementState, Person, StateValues, View } from "./model.js";
import {
  globalShortcut,
  messageAction,
  messageShortcut,
  slashCommand,
  viewAction,
  viewClosed,
  viewSubmission,
} from "./payloads.js";
import { respond } from "./response-url.js";
import { commandText } from "./text.js";
import { applySubmission } from "./view-response.js";
import { closeModal, findView, setErrors, stackOf } from "./views.js";
import { wireView } from "./wire.js";
import { directMessage } from "./workspace.js";

const SENTENCES: Record<"operation_timeout" | "dispatch_failed" | "not_connected", string> = {
  operation_timeout: "The app did not answer within 3 seconds (operation_timeout).",
  dispatch_failed: "The app answered with an error (dispatch_failed).",
  not_connected: "The app is not connected.",
};

/** The acknowledgement's content, or the refusal that the person sees. */
function acknowledged(ctx: SandboxContext, person: Person, result: AckResult): unknown {
  if (result.acked) return result.body;
  return refuse(ctx, person, result.error, SENTENCES[result.error]);
}

function refuse(ctx: SandboxContext, person: Person, error: ActError, message: string): never {
  ctx.hub.emit({ type: "toast", user: person.id, error, message });
  throw new Refusal(error, message);
}

/** The one element that the request means. */
function locate(blocks: Block[], request: ClickRequest): Located {
  const named = [...elementsOf(blocks)].filter(
    (e) =>
      (request.actionId === undefined || e.actionId === request.actionId) &&
      (request.blockId === undefined || e.blockId === request.blockId),
  );
  const { label } = request;
  const exact = named.filter((e) => e.label === label);
  const found =
    label === undefined ? named : exact.length > 0 ? exact : named.filter((e) => e.label.startsWith(label));
  const [one, ...more] = found;
  if (!one) throw new Refusal("unknown_element", "There is no such button or menu (any more).");
  if (more.length > 0) {
    throw new Refusal("ambiguous_element", `${found.length} elements fit; name block_id and action_id.`);
  }
  return one;
}

/** Fits `values` to inputs by `block/action`, action id, block id or label, and gives the resulting state. */
function fillIn(blocks: Block[], state: StateValues, values: Record<string, InputValue>): StateValues {
  const all = [...elementsOf(blocks)].filter((e) => isStateful(e.type));
  const next = structuredClone(state);
  for (const [key, value] of Object.entries(values)) {
    const exact = all.filter((e) => `${e.blockId}/${e.actionId}` === key);
    const named = exact.length > 0 ? exact : all.filter((e) => e.actionId === key || e.blockId === key);
    const fits = named.length > 0 ? named : all.filter((e) => e.label === key);
    const [located, ...more] = fits;
    if (!located) throw new Refusal("unknown_element", `There is no input "${key}".`);
    if (more.length > 0) throw new Refusal("ambiguous_element", `"${key}" fits ${fits.length} inputs.`);
    const made = stateFrom(located, value);
    if (typeof made === "string") throw new Refusal("invalid_input", made);
    next[located.blockId] = { ...next[located.blockId], [located.actionId]: made };
  }
  return next;
}

/** Confirm dialogs stand before the dispatch; Slack tells the app nothing of them. */
function confirmed(located: Located, answer: boolean | undefined): void {
  if (!isObject(located.element["confirm"])) return;
  if (answer === undefined) throw new Refusal("confirm_required", "The button asks to confirm first.");
  if (!answer) throw new Refusal("cancelled", "Not confirmed, nothing was sent.");
}

/** State of the pressed element itself, for those that hold or choose a value. */
function chosenState(located: Located, value: InputValue | undefined): ElementState | null {
  if (located.type === "overflow" || located.type === "feedback_buttons") {
    return menuChoice(located, value);
  }
  if (!isStateful(located.type)) return null;
  const made = stateFrom(located, value ?? null);
  if (typeof made === "string") throw new Refusal("invalid_input", made);
  return made;
}

function menuChoice(located: Located, value: InputValue | undefined): ElementState {
  if (typeof value !== "string") throw new Refusal("invalid_input", "Say which entry was chosen.");
  if (located.type === "feedback_buttons") {
    for (const name of ["positive_button", "negative_button"]) {
      const button = located.element[name];
      if (isObject(button) && button["value"] === value) {
        return { type: located.type, text: button["text"] ?? null, value };
      }
    }
    throw new Refusal("invalid_input", `There is no feedback button "${value}".`);
  }
  const options = Array.isArray(located.element["options"]) ? located.element["options"] : [];
  const option = options.find((o) => isObject(o) && o["value"] === value);
  if (option === undefined) throw new Refusal("invalid_input", `The menu has no entry "${value}".`);
  return { type: located.type, selected_option: option };
}

export async function personClicks(ctx: SandboxContext, request: ClickRequest): Promise<void> {
  const person = actor(ctx, request.as);
  if ("viewId" in request.at) await clickInView(ctx, person, request, request.at.viewId);
  else await clickInMessage(ctx, person, request, request.at);
}

async function clickInMessage(
  ctx: SandboxContext,
  person: Person,
  request: ClickRequest,
  at: { channel: string; ts: string },
): Promise<void> {
  const message = messageFor(ctx, person, at.channel, at.ts);
  const located = locate(message.blocks, request);
  confirmed(located, request.confirm);
  const chosen = chosenState(located, request.value);
  const state = fillIn(message.blocks, stateOf(message.blocks), request.values ?? {});
  if (chosen && isStateful(located.type)) {
    state[located.blockId] = { ...state[located.blockId], [located.actionId]: chosen };
  }
  const payload = messageAction(ctx, person, message, located, chosen, state);
  acknowledged(ctx, person, await ctx.delivery.interaction("interactive", "block_actions", payload));
}

async function clickInView(
  ctx: SandboxContext,
  person: Person,
  request: ClickRequest,
  viewId: string,
): Promise<void> {
  const view = ownView(ctx, person, viewId);
  const located = locate(view.blocks, request);
  confirmed(located, request.confirm);
  const chosen = chosenState(located, request.value);
  view.values = fillIn(view.blocks, stateOf(view.blocks, view.values), request.values ?? {});
  if (chosen && isStateful(located.type)) {
    view.values[located.blockId] = { ...view.values[located.blockId], [located.actionId]: chosen };
  }
  if (located.input && !located.input.dispatches) return;
  const payload = viewAction(ctx, person, view, located, chosen);
  acknowledged(ctx, person, await ctx.delivery.interaction("interactive", "block_actions", payload));
}

function ownView(ctx: SandboxContext, person: Person, viewId: string): View {
  const view = findView(ctx, viewId);
  if (!view || view.owner !== person.id) {
    throw new Refusal("unknown_view", "That form is not open (any more).");
  }
  return view;
}

export async function personSubmits(ctx: SandboxContext, request: SubmitViewRequest): Promise<void> {
  const person = actor(ctx, request.as);
  const view = ownView(ctx, person, request.viewId);
  if (stackOf(ctx, person.id).at(-1) !== view) {
    throw new Refusal("unknown_view", "That form is not the one on top.");
  }
  if (!view.submit) throw new Refusal("unknown_element", "This form has nothing to submit.");
  view.values = fillIn(view.blocks, stateOf(view.blocks, view.values), request.values);
  const problems = clientProblems(view.blocks, view.values);
  setErrors(ctx, view, problems);
  if (Object.keys(problems).length > 0) {
    throw new Refusal("invalid_input", Object.values(problems).join(" "));
  }
  const payload = viewSubmission(ctx, person, view);
  const result = await ctx.delivery.interaction("interactive", "view_submission", payload);
  const body = acknowledged(ctx, person, result);
  const outcome = applySubmission(ctx, view, body);
  switch (outcome.kind) {
    case "done":
      return;
    case "errors":
      throw new Refusal("view_errors", Object.values(outcome.errors).join(" "));
    case "unusable":
      refuse(ctx, person, "dispatch_failed", `The app's answer cannot be used: ${outcome.why}`);
  }
}

export async function personCloses(ctx: SandboxContext, request: CloseViewRequest): Promise<void> {
  const person = actor(ctx, request.as);
  const view = ownView(ctx, person, request.viewId);
  if (stackOf(ctx, person.id).at(-1) !== view) {
    throw new Refusal("unknown_view", "That form is not the one on top.");
  }
  const all = request.all === true;
  for (const closed of closeModal(ctx, person.id, all)) {
    if (!closed.notifyOnClose) continue;
    await ctx.delivery.interaction("interactive", "view_closed", viewClosed(ctx, person, closed, all));
  }
}

export async function personCommands(ctx: SandboxContext, request: CommandRequest): Promise<void> {
  const person = actor(ctx, request.as);
  homeOnly(ctx, person, "Slash commands");
  if (request.threadTs !== undefined) {
    throw new Refusal("not_allowed_in_thread", `${request.command} is not supported in threads. Sorry!`);
  }
  const channel = writableChannel(ctx, person, request.channel);
  const command = ctx.app.commands.find((c) => c.command === request.command);
  if (!command) throw new Refusal("unknown_command", `${request.command} is not a valid command.`);
  const text = commandText(ctx, request.text, command.shouldEscape);
  const payload = slashCommand(ctx, person, channel.id, command.command, text);
  const result = await ctx.delivery.interaction("slash_commands", "slash_command", payload);
  const body = acknowledged(ctx, person, result);
  const content = typeof body === "string" ? { text: body } : isObject(body) ? body : {};
  if (Object.keys(content).length === 0) return;
  const url = ctx.responseUrls.get(String(payload["response_url"]).slice(ctx.baseUrl.length));
  if (!url) return;
  try {
    respond(ctx, url, content as Parameters<typeof respond>[2]);
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    refuse(ctx, person, "dispatch_failed", `The app's answer cannot be used: ${error.code}`);
  }
}

export async function personUsesShortcut(ctx: SandboxContext, request: ShortcutRequest): Promise<void> {
  const person = actor(ctx, request.as);
  homeOnly(ctx, person, "Shortcuts");
  const kind = request.message === undefined ? "global" : "message";
  const shortcut = ctx.app.shortcuts.find(
    (s) => s.kind === kind && (s.callbackId === request.callbackId || s.name === request.callbackId),
  );
  if (!shortcut) throw new Refusal("unknown_shortcut", `There is no such ${kind} shortcut.`);
  if (request.message === undefined) {
    const payload = globalShortcut(ctx, person, shortcut);
    acknowledged(ctx, person, await ctx.delivery.interaction("interactive", "shortcut", payload));
    return;
  }
  const message = messageFor(ctx, person, request.message.channel, request.message.ts);
  if (message.ephemeralFor !== null) {
    throw new Refusal("unknown_message", "Messages that only you can see have no shortcuts.");
  }
  const payload = messageShortcut(ctx, person, shortcut, message);
  acknowledged(ctx, person, await ctx.delivery.interaction("interactive", "message_action", payload));
}

export function personOpensHome(ctx: SandboxContext, request: OpenHomeRequest): void {
  const person = actor(ctx, request.as);
  const view = ctx.data.homes[person.id];
  send(ctx, {
    type: "app_home_opened",
    user: person.id,
    channel: directMessage(ctx, person.id).id,
    tab: request.tab ?? "home",
    event_ts: ctx.ids.ts(ctx.clock.now()),
    ...(view ? { view: wireView(ctx, view, { ...view.values }) } : {}),
  });
}
