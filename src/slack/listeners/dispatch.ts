/**
 * From an arrival to its handler, for both ways in: at once, while the person waits, and later, from the inbox, when the first
 * try did not finish. Every kind of click has an entry here; what is not known is answered as no longer active.
 */
import type { PersonAhead } from "../../approvals/index.js";
import type { JsonObject } from "../../domain/json.js";
import { ACTIONS, COMMANDS, SHORTCUTS, VIEWS } from "../actions.js";
import { personTeam } from "../inbox/ours.js";
import { publishHome } from "../outbox/home.js";
import type { SlackContext } from "../types.js";
import {
  amountSubmitted,
  approveClicked,
  denyClicked,
  denySubmitted,
  detailsClicked,
  undoClicked,
} from "./approvals.js";
import {
  operationDetailsClicked,
  opsCommand,
  pageClicked,
  resolveClicked,
  resolveSubmitted,
  secondClicked,
  thawClicked,
} from "./ops.js";
import { closeClicked, closeSubmitted, reopenClicked, reopenSubmitted } from "./ops-records.js";
import { type Click, clickOf, commandOf, type Submitted, shortcutOf, submittedOf } from "./payload.js";
import { GONE, NOTHING, type Recipient, type Reply, say } from "./reply.js";
import {
  bindingChangeClicked,
  bindingConfirmed,
  bindingSubmitted,
  furtherClicked,
  resolveShortcut,
  runDetailsClicked,
  stopClicked,
  ticketCommand,
  ticketSubmitted,
} from "./tickets.js";

/** An interaction with its answer's address. `reply` does the work; called once. */
export interface Handled {
  readonly to: Omit<Recipient, "key">;
  reply(): Promise<Reply>;
}

type ActionHandler = (ctx: SlackContext, click: Click) => Promise<Reply>;

const ON_ACTION: Readonly<Record<string, ActionHandler>> = {
  [ACTIONS.approve]: approveClicked,
  [ACTIONS.deny]: denyClicked,
  [ACTIONS.undo]: undoClicked,
  [ACTIONS.approvalDetails]: detailsClicked,
  [ACTIONS.stop]: stopClicked,
  [ACTIONS.runDetails]: runDetailsClicked,
  [ACTIONS.bindingConfirm]: bindingConfirmed,
  [ACTIONS.bindingChange]: bindingChangeClicked,
  [ACTIONS.furtherRefund]: furtherClicked,
  [ACTIONS.resolveConfirm]: (ctx, click) => resolveClicked(ctx, click, "confirm"),
  [ACTIONS.resolveReject]: (ctx, click) => resolveClicked(ctx, click, "reject"),
  [ACTIONS.resolveRetry]: (ctx, click) => resolveClicked(ctx, click, "retry"),
  [ACTIONS.operationDetails]: operationDetailsClicked,
  [ACTIONS.reopen]: reopenClicked,
  [ACTIONS.closeIncident]: closeClicked,
  [ACTIONS.agree]: (ctx, click) => secondClicked(ctx, click, true),
  [ACTIONS.disagree]: (ctx, click) => secondClicked(ctx, click, false),
  [ACTIONS.thawAgree]: (ctx, click) => thawClicked(ctx, click, true),
  [ACTIONS.thawDisagree]: (ctx, click) => thawClicked(ctx, click, false),
  [ACTIONS.opsPage]: pageClicked,
  [ACTIONS.homeRefresh]: async (ctx, click) => {
    await publishHome(ctx, click.userId, null);
    return NOTHING;
  },
};

const ON_VIEW: Readonly<Record<string, (ctx: SlackContext, form: Submitted) => Promise<Reply>>> = {
  [VIEWS.ticket]: ticketSubmitted,
  [VIEWS.deny]: denySubmitted,
  [VIEWS.approveAmount]: amountSubmitted,
  [VIEWS.bindingChange]: bindingSubmitted,
  [VIEWS.resolve]: resolveSubmitted,
  [VIEWS.reopen]: reopenSubmitted,
  [VIEWS.closeIncident]: closeSubmitted,
};

export const FOREIGN = "Members of another workspace cannot do this. Nothing was changed.";

/** True when the payload itself says that the person belongs to another workspace. */
async function isForeign(ctx: SlackContext, body: JsonObject): Promise<boolean> {
  const team = personTeam(body);
  if (team === null) return false;
  const us = await ctx.web.identity();
  if (team === us.teamId) return false;
  const enterprise = body["enterprise"];
  const id =
    typeof enterprise === "object" && enterprise !== null && "id" in enterprise ? enterprise["id"] : null;
  return !(us.isEnterpriseInstall && us.enterpriseId !== null && id === us.enterpriseId);
}

/** `live`: it arrived just now, so that its trigger may still open a form. */
export function handleAction(
  ctx: SlackContext,
  body: JsonObject,
  live: { readonly ahead: PersonAhead | null } | null,
): Handled | null {
  const parsed = clickOf(body);
  if (parsed === null) return null;
  const ahead = live?.ahead ?? null;
  const click = {
    ...parsed,
    ...(live === null ? { triggerId: null } : {}),
    ...(ahead === null ? {} : { ahead }),
  };
  const { userId, place, responseUrl, actionId } = click;
  return {
    to: { userId, place, responseUrl },
    reply: async () => {
      if (await isForeign(ctx, body)) return say(FOREIGN);
      const handler = ON_ACTION[actionId];
      return handler === undefined ? say(GONE) : handler(ctx, click);
    },
  };
}

/** `receivedAt`: when it came first. */
export function handleView(ctx: SlackContext, body: JsonObject, receivedAt: Date | null): Handled | null {
  const form = submittedOf(body, receivedAt);
  if (form === null) return null;
  const place = form.meta?.place ?? { channelId: null, messageTs: null, threadTs: null, home: false };
  return {
    to: { userId: form.userId, place, responseUrl: null },
    reply: async () => {
      if (await isForeign(ctx, body)) return say(FOREIGN);
      const handler = ON_VIEW[form.callbackId];
      return handler === undefined ? say(GONE) : handler(ctx, form);
    },
  };
}

/** `receivedAt`: when it came first. `live`: just now, so that it may open a form. */
export function handleCommand(
  ctx: SlackContext,
  body: JsonObject,
  { live, receivedAt }: { readonly live: boolean; readonly receivedAt: Date | null },
): Handled | null {
  const parsed = commandOf(body);
  if (parsed === null) return null;
  const command = { ...parsed, receivedAt, ...(live ? {} : { triggerId: null }) };
  const { userId, place, responseUrl } = command;
  return {
    to: { userId, place, responseUrl },
    reply: async () => {
      if (await isForeign(ctx, body)) return say(FOREIGN);
      switch (command.command) {
        case COMMANDS.ticket:
          return ticketCommand(ctx, command);
        case COMMANDS.ops:
          return opsCommand(ctx, command);
        default:
          return say(
            `I do not know ${command.command.replace(/[<>&]/gu, "")}. Try ${COMMANDS.ticket} or ${COMMANDS.ops}.`,
          );
      }
    },
  };
}

export function handleShortcut(ctx: SlackContext, body: JsonObject): Handled | null {
  const shortcut = shortcutOf(body);
  if (shortcut === null) return null;
  const { userId, responseUrl, channelId, threadTs, ts } = shortcut;
  return {
    to: { userId, responseUrl, place: { channelId, messageTs: ts, threadTs, home: false } },
    reply: async () => {
      if (await isForeign(ctx, body)) return say(FOREIGN);
      return shortcut.callbackId === SHORTCUTS.resolve ? resolveShortcut(ctx, shortcut) : say(GONE);
    },
  };
}
