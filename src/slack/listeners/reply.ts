/** Answers of listeners, and how they reach the person. */
import type { KnownBlock } from "@slack/types";
import type { Refused, Unresolved } from "../../ops/index.js";
import { callFailure } from "../call-failure.js";
import type { FormPlace, Modal } from "../cards/forms.js";
import { incidentLine, operationLine } from "../cards/ops-views.js";
import { storeAnswer } from "../outbox/answer.js";
import { sendOutbox } from "../outbox/send.js";
import { escapeWithin, oneLine } from "../text/safe.js";
import type { SlackContext } from "../types.js";

export type Reply =
  | { readonly kind: "nothing" }
  /** Seen by the person alone. Mrkdwn, escaped. */
  | { readonly kind: "say"; readonly text: string; readonly blocks?: readonly KnownBlock[] }
  /** Forms only: plain text by input block; the form stays open. */
  | {
      readonly kind: "errors";
      readonly errors: Readonly<Record<string, string>>;
      /** What was typed, for when the form is gone before the answer is there: nobody types it twice. */
      readonly typed?: readonly (readonly [label: string, text: string])[];
    };

export const NOTHING: Reply = { kind: "nothing" };
export const say = (text: string, blocks?: readonly KnownBlock[]): Reply =>
  blocks === undefined ? { kind: "say", text } : { kind: "say", text, blocks };
export const errors = (block: string, text: string): Extract<Reply, { kind: "errors" }> => ({
  kind: "errors",
  errors: { [block]: text },
});

/** Why on-call is shown nothing, and which ids may have been meant. */
export function notShown(view: Refused | Unresolved): Reply {
  const said = (text: string, max: number): string => escapeWithin(oneLine(text), max).text;
  if (view.outcome === "refused") return say(said(view.sentence, 800));
  const suggestions = view.suggestions
    .slice(0, 5)
    .map(
      (one) => `\n• ${one.kind === "operation" ? operationLine(one.operation) : incidentLine(one.incident)}`,
    );
  return say(`${said(view.sentence, 800)}${suggestions.join("")}`);
}

export const CLICK_AGAIN = "The form could not be opened in time. Please click again.";
export const GONE = "This is no longer active; nothing was changed.";

/** Opens a form while the trigger lives (three seconds, once). `triggerId` null: the click is handled later than that. */
export async function openModal(ctx: SlackContext, triggerId: string | null, view: Modal): Promise<Reply> {
  return (await openView(ctx, triggerId, view)).reply;
}

/** An open form as it was rendered: `hash` changes whenever it is rendered again. */
export interface OpenView {
  readonly id: string;
  readonly hash: string;
}

/** As `openModal`, with what was opened; null: nothing was, or by an earlier delivery. */
export async function openView(
  ctx: SlackContext,
  triggerId: string | null,
  view: Modal,
): Promise<{ reply: Reply; opened: OpenView | null }> {
  if (triggerId === null) return { reply: say(CLICK_AGAIN), opened: null };
  try {
    const { id, hash } = (await ctx.web.interactive.views.open({ trigger_id: triggerId, view })).view ?? {};
    return { reply: NOTHING, opened: id === undefined || hash === undefined ? null : { id, hash } };
  } catch (error) {
    const failure = callFailure(error);
    ctx.log.warn({ failure }, "a form could not be opened");
    // A second delivery of the same click finds the trigger used: the form is open already.
    const open = failure.kind === "refused" && /exchanged/.test(failure.code);
    return { reply: open ? NOTHING : say(CLICK_AGAIN), opened: null };
  }
}

/**
 * Renders an open form again; what was typed into it stays. Nobody may look at it any more, or it was sent and shows something else by
 * now: then it stays as it is, and nothing is said.
 */
export async function updateView(ctx: SlackContext, { id, hash }: OpenView, view: Modal): Promise<void> {
  try {
    await ctx.web.interactive.views.update({ view_id: id, hash, view });
  } catch (error) {
    ctx.log.info({ failure: callFailure(error) }, "an open form was not rendered again");
  }
}

export interface Recipient {
  readonly userId: string;
  readonly place: FormPlace;
  readonly responseUrl: string | null;
  /** One answer for one key. */
  readonly key: string;
}

/** Publishes the person's Home with the answer on top; handed in, because Home is rendered elsewhere. */
export type ShowInHome = (ctx: SlackContext, userId: string, notice: string) => Promise<void>;

/** Brings an answer to the person: written down first, sent at once. */
export async function deliver(
  ctx: SlackContext,
  to: Recipient,
  reply: Reply,
  showInHome: ShowInHome,
): Promise<void> {
  const text = textOf(reply);
  if (text === null) return;
  if (to.place.home && to.place.channelId === null) return showInHome(ctx, to.userId, text);
  const { channelId, threadTs } = to.place;
  const blocks = reply.kind === "say" ? reply.blocks : undefined;
  const id = await storeAnswer(ctx, to.key, {
    userId: to.userId,
    channelId,
    threadTs,
    responseUrl: to.responseUrl,
    text,
    ...(blocks === undefined ? {} : { blocks }),
  });
  if (id !== null) await sendOutbox(ctx, id);
}

function textOf(reply: Reply): string | null {
  switch (reply.kind) {
    case "nothing":
      return null;
    case "say":
      return reply.text;
    // The form is gone by the time this is delivered: what stood beside the fields is said as a message.
    case "errors":
      return [Object.values(reply.errors).join(" "), ...(reply.typed ?? []).map(typedLine)].join("\n");
  }
}

const typedLine = ([label, text]: readonly [string, string]): string =>
  `${label}, as you typed it: ${escapeWithin(oneLine(text), 1000).text}`;

const MENTION = /<@([A-Z0-9_]+)>/gu;
const DATE = /<!date\^\d+\^[^|>]*\|([^>]*)>/gu;

/** Mrkdwn of ours as plain text for a form's errors, with people by name. */
export async function plainSentence(ctx: SlackContext, mrkdwn: string): Promise<string> {
  const ids = [...mrkdwn.matchAll(MENTION)].map((match) => match[1] ?? "");
  const names = new Map<string, string>();
  if (ids.length > 0) {
    const rows = await ctx.db.sql<{ id: string; name: string | null }>(
      "slack.names",
      "SELECT id, profile->>'displayName' AS name FROM slack_people WHERE id = ANY ($1)",
      [ids],
    );
    for (const { id, name } of rows) if (name !== null) names.set(id, name);
  }
  return mrkdwn
    .replace(DATE, "$1")
    .replace(MENTION, (_all, id: string) => names.get(id) ?? `@${id}`)
    .replaceAll("*", "")
    .replaceAll("&lt;", "<")
    .replaceAll("&gt;", ">")
    .replaceAll("&amp;", "&");
}
