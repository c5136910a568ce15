/** Tickets: filed by message, form or shortcut; bound, added to, stopped by whoever filed them. */

import { sha256Hex } from "../../domain/canonical.js";
import { mayFile } from "../../domain/policy/people.js";
import { isRunEnd } from "../../domain/run.js";
import { cutText } from "../../domain/text/cut.js";
import { listOf } from "../../domain/text/list-of.js";
import { plainSlackText } from "../../domain/text/slack-text.js";
import { withinMs } from "../../ops/index.js";
import {
  type BindingAnswer,
  currentRun,
  type FiledTicket,
  getTicket,
  type ReplyAnswer,
  type Ticket,
} from "../../runs/index.js";
import { COMMANDS, INPUTS, parseFurtherValue, parseRunValue, parseTicketValue } from "../actions.js";
import { callFailure } from "../call-failure.js";
import { bindingForm, CANDIDATE, ticketForm } from "../cards/forms.js";
import { runTitle } from "../cards/run-card.js";
import { runDetails } from "../cards/run-details.js";
import { isBlankText } from "../text/blank.js";
import { escapeWithin, linkChannel, oneLine } from "../text/safe.js";
import type { SlackContext } from "../types.js";
import { readRunView } from "../views/run.js";
import type { Click, MessageShortcut, PersonsMessage, SlashCommand, Submitted } from "./payload.js";
import { errors, GONE, NOTHING, openModal, type Reply, say } from "./reply.js";

const READING_MAX_AGE_MS = 5_000;

/** Thrown when Slack cannot say now who somebody is: the arrival is tried again. */
export class LaterPlease extends Error {}

const said = (text: string, max = 400): string => escapeWithin(oneLine(text), max).text;

/** Null: may file. Otherwise the sentence, or `unreadable` when nobody can know now. */
async function cannotFile(
  ctx: SlackContext,
  userId: string,
): Promise<{ sentence: string; unreadable: boolean } | null> {
  const reading = await ctx.directory.person(userId, { maxAgeMs: READING_MAX_AGE_MS });
  const may = mayFile(reading, await ctx.policy());
  if (may.may) return null;
  const unreadable = may.reason === "unreadable";
  if (!unreadable) ctx.metrics.forbidden("file");
  return { sentence: may.sentence, unreadable };
}

/** A person's message. `lastTry`: say it rather than come back once more. */
export async function messageArrived(
  ctx: SlackContext,
  message: PersonsMessage,
  lastTry: boolean,
): Promise<Reply> {
  const { botUserId } = await ctx.web.identity();
  const wire = withoutMention(message.wireText, botUserId);
  if (message.threadTs !== null) return replyArrived(ctx, message, message.threadTs, plainSlackText(wire));
  if (message.channelId !== ctx.config.channels.tickets) {
    return message.mention
      ? say(`Tickets are filed in ${linkChannel(ctx.config.channels.tickets)}, or with /ticket anywhere.`)
      : NOTHING;
  }
  const refusal = await cannotFile(ctx, message.userId);
  if (refusal !== null) {
    if (refusal.unreadable && !lastTry) throw new LaterPlease(refusal.sentence);
    return say(`This was not filed. ${said(refusal.sentence)}`);
  }
  const { teamId } = await ctx.web.identity();
  await ctx.useCases.fileTicket({
    source: "message",
    dedupeKey: messageKey(message.channelId, message.ts),
    teamId,
    channelId: message.channelId,
    messageTs: message.ts,
    threadTs: message.ts,
    filer: message.userId,
    text: plainSlackText(wire),
    files: message.files,
  });
  return NOTHING;
}

const messageKey = (channel: string, ts: string): string => `message:${channel}:${ts}`;

/** "@Countersign refund …": the address is not part of what is asked. */
const withoutMention = (wire: string, botUserId: string): string =>
  wire.replaceAll(new RegExp(`<@${botUserId}(?:\\|[^>]*)?>`, "gu"), "").trim();

/** Information for the run when a filer wrote it. Whatever it says, it approves nothing. */
async function replyArrived(
  ctx: SlackContext,
  message: PersonsMessage,
  threadTs: string,
  text: string,
): Promise<Reply> {
  const named = message.files.map((file) => `(file: ${file.name})`).join(" ");
  const answer = await ctx.useCases.threadReply({
    channelId: message.channelId,
    threadTs,
    author: message.userId,
    text: isBlankText(text) ? named : named === "" ? text : `${text} ${named}`,
    dedupeKey: messageKey(message.channelId, message.ts),
  });
  return answer.outcome === "ended"
    ? say(endedSentence(ctx, answer, "your message changes nothing"))
    : NOTHING;
}

/** Said to the writer alone: what became of the ticket, and how to go on. */
function endedSentence(
  ctx: SlackContext,
  { run, ticket }: Pick<Extract<ReplyAnswer, { outcome: "ended" }>, "run" | "ticket">,
  so: string,
): string {
  const end = `The work on this ticket is over (${runTitle(run.state).toLowerCase()}), so ${so}.`;
  return ticket.binding === "none"
    ? `${end} Name an order or the customer's e-mail address here, and it begins again.`
    : `${end} For anything else, write a new message in ${linkChannel(ctx.config.channels.tickets)} or use ${COMMANDS.ticket}.`;
}

/** Of the three seconds in which a form opens, how long it may take to learn that this person may not file. */
const REFUSE_WITHIN_MS = 1_200;

export async function ticketCommand(ctx: SlackContext, command: SlashCommand): Promise<Reply> {
  const refusal = await withinMs(REFUSE_WITHIN_MS, cannotFile(ctx, command.userId));
  // Whom nobody can read in time is asked for at the submit, where there is time.
  if (refusal !== null && refusal !== "late" && !refusal.unreadable) {
    return say(`Nothing can be filed. ${said(refusal.sentence)}`);
  }
  return openModal(ctx, command.triggerId, ticketForm(plainSlackText(command.text), command.place));
}

export async function ticketSubmitted(ctx: SlackContext, form: Submitted): Promise<Reply> {
  const text = form.typed(INPUTS.text.block);
  if (isBlankText(text)) return errors(INPUTS.text.block, "Please say what should be done.");
  const refusal = await cannotFile(ctx, form.userId);
  if (refusal !== null) return errors(INPUTS.text.block, refusal.sentence);
  const reference = form.typed(INPUTS.reference.block).trim();
  const customer = reference === "" ? null : await oneCustomer(ctx, reference);
  if (customer !== null && !customer.ok) return errors(INPUTS.reference.block, customer.sentence);
  const { teamId } = await ctx.web.identity();
  const filed = await ctx.useCases.fileTicket({
    source: "form",
    // One window files one ticket, however often its button is pressed.
    dedupeKey: `form:${form.viewId}:${sha256Hex(text).slice(0, 16)}`,
    teamId,
    filer: form.userId,
    text,
    customerId: customer?.customerId ?? null,
  });
  return say(filedSentence(ctx, filed));
}

function filedSentence(ctx: SlackContext, filed: FiledTicket): string {
  const where = linkChannel(ctx.config.channels.tickets);
  switch (filed.outcome) {
    case "filed":
      return `Filed. The answer comes in its thread in ${linkChannel(filed.ticket.channelId ?? ctx.config.channels.tickets)}.`;
    case "duplicate":
      return `This is a ticket already; you count as filer of it, too. See its thread in ${linkChannel(filed.ticket.channelId ?? ctx.config.channels.tickets)}.`;
    case "asked":
      return `Filed, but there is no text. Please say in its thread in ${where} what should be done.`;
  }
}

type OneCustomer =
  | { readonly ok: true; readonly customerId: string; readonly customerRef: string }
  | { readonly ok: false; readonly sentence: string };

async function oneCustomer(ctx: SlackContext, typed: string): Promise<OneCustomer> {
  const found = await ctx.useCases.findCustomers(typed);
  const customers = new Map(found.map((one) => [one.customerId, one]));
  const [only] = customers.values();
  if (only === undefined) {
    return {
      ok: false,
      sentence: `No order, subscription or customer is known as "${cutText(oneLine(typed), 100)}".`,
    };
  }
  if (customers.size > 1) {
    const names = listOf(
      [...customers.values()].slice(0, 5).map((one) => `${one.name} (${one.customerRef})`),
    );
    return {
      ok: false,
      sentence: `That fits several customers: ${names}. Please name an order, or a customer's reference.`,
    };
  }
  return { ok: true, customerId: only.customerId, customerRef: only.customerRef };
}

/** "Resolve with Countersign" on a message: who wrote it and who ran it both count as filers. */
export async function resolveShortcut(ctx: SlackContext, shortcut: MessageShortcut): Promise<Reply> {
  const refusal = await cannotFile(ctx, shortcut.userId);
  if (refusal !== null) return say(`This was not filed. ${said(refusal.sentence)}`);
  const { teamId, botUserId } = await ctx.web.identity();
  if (shortcut.author === botUserId)
    return say("This is one of my own messages; there is nothing in it to resolve.");
  // Known from now on, so that another account of the author's is told from somebody else's.
  if (shortcut.author !== null) await ctx.directory.person(shortcut.author, { maxAgeMs: READING_MAX_AGE_MS });
  const reachable = await canPostIn(ctx, shortcut.channelId);
  const filed = await ctx.useCases.fileTicket({
    source: "shortcut",
    dedupeKey: messageKey(shortcut.channelId, shortcut.ts),
    teamId,
    // Where the app may not post, the ticket gets a message of its own in the tickets channel.
    ...(reachable
      ? { channelId: shortcut.channelId, messageTs: shortcut.ts, threadTs: shortcut.threadTs ?? shortcut.ts }
      : {}),
    filer: shortcut.userId,
    filers: shortcut.author === null ? [] : [shortcut.author],
    text: plainSlackText(withoutMention(shortcut.wireText, botUserId)),
    files: shortcut.files,
  });
  return say(filedSentence(ctx, filed));
}

async function canPostIn(ctx: SlackContext, channel: string): Promise<boolean> {
  if (channel === ctx.config.channels.tickets) return true;
  try {
    const { channel: info } = await ctx.web.reads.conversations.info({ channel });
    return info?.is_member === true && info.is_archived !== true;
  } catch (error) {
    ctx.log.info({ channel, failure: callFailure(error) }, "a shortcut was used where the app cannot look");
    return false;
  }
}

export async function bindingConfirmed(ctx: SlackContext, click: Click): Promise<Reply> {
  const ticketId = parseTicketValue(click.value);
  if (ticketId === null) return say(GONE);
  const refusal = await cannotFile(ctx, click.userId);
  if (refusal !== null) return say(said(refusal.sentence));
  return say(bindingSentence(await ctx.useCases.confirmBinding({ ticketId, by: click.userId })));
}

export async function bindingChangeClicked(ctx: SlackContext, click: Click): Promise<Reply> {
  const ticketId = parseTicketValue(click.value);
  const ticket = ticketId === null ? null : await getTicket(ctx.db, ticketId);
  if (ticket === null) return say(GONE);
  if (!ticket.filers.includes(click.userId)) {
    return say("Only the person who filed this ticket can say whom it is about. Nothing was changed.");
  }
  const run = await currentRun(ctx.db, ticket.id);
  if (run !== null && isRunEnd(run.state))
    return say(endedSentence(ctx, { run, ticket }, "nothing was changed"));
  return openModal(ctx, click.triggerId, bindingForm(ticket, { about: click.value, place: click.place }));
}

export async function bindingSubmitted(ctx: SlackContext, form: Submitted): Promise<Reply> {
  const ticketId = parseTicketValue(form.meta?.about ?? "");
  const ticket = ticketId === null ? null : await getTicket(ctx.db, ticketId);
  if (ticketId === null || ticket === null) return errors(INPUTS.reference.block, GONE);
  const refusal = await cannotFile(ctx, form.userId);
  if (refusal !== null) return errors(INPUTS.reference.block, refusal.sentence);
  const customer = await chosenCustomer(ctx, form, ticket);
  if (!customer.ok) return errors(INPUTS.reference.block, customer.sentence);
  const answer = await ctx.useCases.changeBinding({
    ticketId,
    by: form.userId,
    customerRef: customer.customerRef,
  });
  return answer.outcome === "refused"
    ? errors(INPUTS.reference.block, answer.sentence)
    : say(bindingSentence(answer));
}

async function chosenCustomer(ctx: SlackContext, form: Submitted, ticket: Ticket): Promise<OneCustomer> {
  const typed = form.typed(INPUTS.reference.block).trim();
  if (typed !== "") return oneCustomer(ctx, typed);
  const chosen = ticket.candidates.find((one) => one.customerId === form.chosen(CANDIDATE.block));
  return chosen === undefined
    ? {
        ok: false,
        sentence: "Please choose a customer, or type an order, a subscription or an e-mail address.",
      }
    : { ok: true, customerId: chosen.customerId, customerRef: chosen.customerRef };
}

function bindingSentence(answer: BindingAnswer): string {
  switch (answer.outcome) {
    case "bound":
      return `Confirmed: this is about ${nameOf(answer.ticket)}.${
        answer.restartedRun === null ? "" : " The work begins again for this customer."
      }`;
    case "unchanged":
      return `That is confirmed already: ${nameOf(answer.ticket)}.`;
    case "refused":
      return said(answer.sentence);
  }
}

const nameOf = (ticket: Ticket): string =>
  said(`${ticket.customerName ?? "?"} (${ticket.customerRef ?? "?"})`);

export async function stopClicked(ctx: SlackContext, click: Click): Promise<Reply> {
  const runId = parseRunValue(click.value);
  if (runId === null) return say(GONE);
  const answer = await ctx.useCases.requestCancel({ runId, by: click.userId });
  switch (answer.outcome) {
    case "requested":
      return say(
        "It stops before its next step. What has been sent already cannot be called back; its outcome is still told here.",
      );
    case "ended":
      return say("This run has ended already; nothing was changed.");
    case "refused":
      return say(said(answer.sentence));
  }
}

export async function runDetailsClicked(ctx: SlackContext, click: Click): Promise<Reply> {
  const runId = parseRunValue(click.value);
  const view = runId === null ? null : await readRunView(ctx.db, runId);
  return view === null ? say(GONE) : openModal(ctx, click.triggerId, runDetails(view));
}

export async function furtherClicked(ctx: SlackContext, click: Click): Promise<Reply> {
  const target = parseFurtherValue(click.value);
  if (target === null) return say(GONE);
  const refusal = await cannotFile(ctx, click.userId);
  if (refusal !== null) return say(said(refusal.sentence));
  const answer = await ctx.useCases.furtherRefund({ ...target, by: click.userId });
  switch (answer.outcome) {
    case "asked":
      return say("A further refund is asked for. It needs an approval; its card lists the earlier ones.");
    case "already_asked":
      return say("That further refund was asked for already; see its card in this thread.");
    case "refused":
      return say(said(answer.sentence));
  }
}
