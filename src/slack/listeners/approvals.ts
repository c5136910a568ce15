/** Clicks and forms on approvals. The decision is the approvals room's; here is only what a click means and how it is answered. */
import { type DecideOutcome, getApproval } from "../../approvals/index.js";
import type { ApprovalId } from "../../domain/ids.js";
import { currencyExponent, money } from "../../domain/money.js";
import { withinMs } from "../../ops/index.js";
import { getTicket } from "../../runs/index.js";
import { INPUTS, parseApprovalValue } from "../actions.js";
import { decideSentence } from "../cards/decide-sentences.js";
import { amountForm, approvalDetails, denyForm, type FormMeta } from "../cards/forms.js";
import { cardStands } from "../outbox/shown-card.js";
import { isBlankText } from "../text/blank.js";
import { escapeText } from "../text/safe.js";
import type { SlackContext } from "../types.js";
import { othersWait } from "../views/approval.js";
import { readOperation } from "../views/operation.js";
import type { Click, Submitted } from "./payload.js";
import { errors, GONE, openModal, plainSentence, type Reply, say } from "./reply.js";

/** A form must be opened within three seconds of the click: what is asked before gets this long. */
const PRECHECK_MS = 1_200;

type Target = NonNullable<ReturnType<typeof parseApprovalValue>>;

const NOT_ITS_CARD =
  "This is not the card that Countersign posted for it, so nothing was changed. Please decide on the card in the ticket's thread, in the approvals channel or in App Home.";

/** What a button on a card of ours is about; a sentence for any other. */
async function targetOf(ctx: SlackContext, click: Click): Promise<Target | Reply> {
  const target = parseApprovalValue(click.value);
  if (target === null) return say(GONE);
  return (await cardStands(ctx.db, target.approvalId, click.place)) ? target : say(NOT_ITS_CARD);
}

export async function approveClicked(ctx: SlackContext, click: Click): Promise<Reply> {
  const target = await targetOf(ctx, click);
  if ("kind" in target) return target;
  const outcome = await ctx.useCases.decide({
    ...target,
    userId: click.userId,
    verdict: "approve",
    ...seen(click.place),
    ...aheadOf(click),
  });
  if (outcome.outcome === "repeat_amount") {
    return openModal(ctx, click.triggerId, amountForm(outcome.approval, metaOf(click)));
  }
  return say(decideSentence(outcome));
}

/** Deny opens its form; whoever could not deny anyway, or comes too late, is told so instead. */
export async function denyClicked(ctx: SlackContext, click: Click): Promise<Reply> {
  const target = await targetOf(ctx, click);
  if ("kind" in target) return target;
  const looked = await withinMs(
    PRECHECK_MS,
    ctx.useCases
      .lookBeforeDeny({ ...target, userId: click.userId, ...aheadOf(click) })
      .catch(() => "failed" as const),
  );
  const said = typeof looked === "string" ? null : looked;
  if (said !== null && said.outcome !== "may_deny" && said.outcome !== "try_again") {
    return say(decideSentence(said));
  }
  // Slow or failing: the form opens, and who may is asked when it is submitted, as it is in any case.
  const approval =
    said?.outcome === "may_deny" ? said.approval : await getApproval(ctx.db, target.approvalId);
  return approval === null ? say(GONE) : openModal(ctx, click.triggerId, denyForm(approval, metaOf(click)));
}

export async function denySubmitted(ctx: SlackContext, form: Submitted): Promise<Reply> {
  const target = parseApprovalValue(form.meta?.about ?? "");
  if (target === null) return errors(INPUTS.note.block, GONE);
  const note = form.typed(INPUTS.note.block).trim();
  if (isBlankText(note)) return errors(INPUTS.note.block, "Please say why, in a few words.");
  const typed = form.typed(INPUTS.smaller.block).trim();
  const smaller = typed === "" ? null : await readSmaller(ctx, target.approvalId, typed);
  if (smaller !== null && !smaller.ok) return errors(INPUTS.smaller.block, smaller.sentence);
  const outcome = await ctx.useCases.decide({
    ...target,
    userId: form.userId,
    verdict: "deny",
    note,
    ...(smaller === null ? {} : { suggestedMinor: smaller.minor }),
    ...(form.meta === null ? {} : seen(form.meta.place)),
  });
  return formReply(
    ctx,
    outcome,
    outcome.outcome === "bad_suggestion" ? INPUTS.smaller.block : INPUTS.note.block,
  );
}

export async function amountSubmitted(ctx: SlackContext, form: Submitted): Promise<Reply> {
  const target = parseApprovalValue(form.meta?.about ?? "");
  if (target === null) return errors(INPUTS.amount.block, GONE);
  const outcome = await ctx.useCases.decide({
    ...target,
    userId: form.userId,
    verdict: "approve",
    repeatedAmount: form.typed(INPUTS.amount.block),
    ...(form.meta === null ? {} : seen(form.meta.place)),
  });
  return formReply(ctx, outcome, INPUTS.amount.block);
}

/** What was recorded closes the form and is said beside the card; what was not stands in the form. */
async function formReply(ctx: SlackContext, outcome: DecideOutcome, block: string): Promise<Reply> {
  const sentence = decideSentence(outcome);
  switch (outcome.outcome) {
    case "recorded":
    case "approved":
    case "denied":
      return say(sentence);
    default:
      return errors(block, await plainSentence(ctx, sentence));
  }
}

export async function undoClicked(ctx: SlackContext, click: Click): Promise<Reply> {
  const target = await targetOf(ctx, click);
  if ("kind" in target) return target;
  const outcome = await ctx.useCases.undo({
    approvalId: target.approvalId,
    userId: click.userId,
    ...seen(click.place),
    ...aheadOf(click),
  });
  return say(decideSentence(outcome));
}

export async function detailsClicked(ctx: SlackContext, click: Click): Promise<Reply> {
  const target = parseApprovalValue(click.value);
  const approval = target === null ? null : await getApproval(ctx.db, target.approvalId);
  const operation = approval === null ? null : await readOperation(ctx.db, approval.operationId);
  if (approval === null || operation === null) return say(GONE);
  const ticket = approval.ticketId === null ? null : await getTicket(ctx.db, approval.ticketId);
  const waited = await othersWait(ctx.db, approval);
  return openModal(ctx, click.triggerId, approvalDetails(approval, operation, ticket, waited));
}

function seen(place: FormMeta["place"]): {
  seen?: { channelId: string; messageTs: string } | { home: true };
} {
  if (place.home) return { seen: { home: true } };
  return place.channelId === null || place.messageTs === null
    ? {}
    : { seen: { channelId: place.channelId, messageTs: place.messageTs } };
}

const aheadOf = ({ ahead }: Click): Pick<Click, "ahead"> => (ahead === undefined ? {} : { ahead });

const metaOf = (click: Click): FormMeta => ({ about: click.value, place: click.place });

type Smaller =
  | { readonly ok: true; readonly minor: bigint }
  | { readonly ok: false; readonly sentence: string };

/** "12.50" in the operation's currency as minor units; exact or refused, never rounded. */
async function readSmaller(ctx: SlackContext, id: ApprovalId, typed: string): Promise<Smaller> {
  const approval = await getApproval(ctx.db, id);
  if (approval === null) return { ok: false, sentence: GONE };
  const { currency } = approval.binding;
  const digits = currencyExponent(currency);
  const example = digits === 0 ? "1200" : `12.${"5".padEnd(digits, "0")}`;
  // "£120", "120 GBP": the symbol or the operation's own code around the digits, and nothing else.
  const bare = typed
    .normalize("NFKC")
    .replace(/\s+/gu, "")
    .replace(new RegExp(`^(?:${currency}|\\p{Sc})|${currency}$`, "giu"), "");
  const match = /^(\d{1,3}(?:,\d{3})+|\d{1,13})(?:\.(\d+))?$/u.exec(bare);
  const fraction = match?.[2] ?? "";
  if (match === null || fraction.length > digits) {
    return { ok: false, sentence: `Please type an amount in ${escapeText(currency)} such as ${example}.` };
  }
  const minor = BigInt(`${(match[1] ?? "").replaceAll(",", "")}${fraction.padEnd(digits, "0")}`);
  try {
    return { ok: true, minor: money(minor, currency).amountMinor };
  } catch {
    return { ok: false, sentence: "That amount is too large." };
  }
}
