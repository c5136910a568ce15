/** `/ops` and the cards of the ops channel. Who may, what is safe and what it takes is the ops room's to say. */
import { assertNever } from "../../domain/assert-never.js";
import { decodeCursor } from "../../domain/cursor.js";
import type { OperationStatus } from "../../domain/operation.js";
import { ENDED, OPEN_OUTCOMES, OPERATION_STATUSES } from "../../domain/operation.js";
import {
  type FreezeOutcome,
  type OperationView,
  type OpsCommand,
  type ProbeView,
  type ResolutionView,
  type ResolveOutcome,
  type ResolveVerb,
  resolutionRemark,
  type SecondOutcome,
  withinMs,
} from "../../ops/index.js";
import { INPUTS, parseOperationValue, parseResolutionValue, parseThawValue } from "../actions.js";
import type { Message } from "../blocks/build.js";
import { closed, type FormMeta, type Modal, type ProviderAsked, resolveForm } from "../cards/forms.js";
import { freezeName, nothingNew, verbName } from "../cards/ops-cards.js";
import {
  operationLine,
  opsApprovals,
  opsEvents,
  opsHealth,
  opsHelp,
  opsIncidents,
  opsList,
  opsRuns,
  opsShow,
} from "../cards/ops-views.js";
import { outcomeOf, whatOf } from "../cards/sentences.js";
import { frozenBy, thawSentence } from "../cards/thaw-words.js";
import { isBlankText } from "../text/blank.js";
import { actorName, escapeText, escapeWithin, oneLine } from "../text/safe.js";
import { localTime } from "../text/time.js";
import type { SlackContext } from "../types.js";
import { readOperation } from "../views/operation.js";
import { workspaceUrl } from "../web.js";
import { closeAsked, reopenAsked } from "./ops-records.js";
import type { Click, SlashCommand, Submitted } from "./payload.js";
import { errors, GONE, notShown, openModal, openView, type Reply, say, updateView } from "./reply.js";

/** At three in the morning the switch must not ask first. */
const NO_REASON = "No reason was given.";
const said = (text: string, max = 800): string => escapeWithin(oneLine(text), max).text;
const shown = (message: Message): Reply => say(message.text, message.blocks);

/** `receivedAt`: when it came first, however late it is carried out. */
type Typed = SlashCommand & { readonly receivedAt: Date | null };

export async function opsCommand(ctx: SlackContext, command: Typed): Promise<Reply> {
  const parsed = ctx.useCases.ops.parse(command.text);
  if (!parsed.ok) {
    const allowed = await ctx.useCases.ops.help({ userId: command.userId });
    if (allowed.outcome === "refused") return notShown(allowed);
    return say(
      `${said(parsed.sentence)}${parsed.suggestion === null ? "" : ` Did you mean \`${said(parsed.suggestion, 200)}\`?`}`,
    );
  }
  return runCommand(ctx, command, parsed.command);
}

async function runCommand(
  ctx: SlackContext,
  { userId, id, receivedAt, triggerId, place }: Typed,
  command: OpsCommand,
): Promise<Reply> {
  const { ops } = ctx.useCases;
  switch (command.verb) {
    case "help":
      return helpFor(ctx, userId);
    case "list":
      return listPage(ctx, userId, command.status, null);
    case "show": {
      const view = await ops.show({ userId, ref: command.ref });
      return view.outcome === "operation" ? shown(await showMessage(ctx, view)) : notShown(view);
    }
    case "events": {
      const view = await ops.events({ userId, ref: command.ref });
      return view.outcome === "events" ? shown(opsEvents(view)) : notShown(view);
    }
    case "confirm":
    case "reject":
    case "retry":
      return resolveAsked(ctx, { userId, triggerId, ref: command.ref, verb: command.verb, place });
    case "reopen":
      return reopenAsked(ctx, { userId, triggerId, ref: command.ref, place });
    case "close":
      return closeAsked(ctx, { userId, triggerId, ref: command.ref, place });
    case "incidents": {
      const view = await ops.incidents({ userId });
      return view.outcome === "incidents" ? shown(opsIncidents(view)) : notShown(view);
    }
    case "runs": {
      const view = await ops.runs({ userId });
      return view.outcome === "runs" ? shown(opsRuns(view, await workspaceUrl(ctx.web))) : notShown(view);
    }
    case "approvals": {
      const view = await ops.approvals({ userId });
      return view.outcome === "approvals" ? shown(opsApprovals(view)) : notShown(view);
    }
    case "freeze": {
      const reason = command.reason ?? NO_REASON;
      return say(freezeSentence(await ops.freeze({ userId, kind: command.kind, reason, command: id })));
    }
    case "thaw":
      return say(
        thawSentence(await ops.thaw({ userId, kind: command.kind, command: id, typedAt: receivedAt })),
      );
    case "health": {
      const view = await ops.health({ userId });
      return view.outcome === "health" ? shown(opsHealth(view, ctx.clock.now())) : notShown(view);
    }
    default:
      return assertNever(command, "command");
  }
}

async function helpFor(ctx: SlackContext, userId: string): Promise<Reply> {
  const view = await ctx.useCases.ops.help({ userId });
  return view.outcome === "help" ? shown(opsHelp()) : notShown(view);
}

async function listPage(
  ctx: SlackContext,
  userId: string,
  status: OperationStatus | null,
  cursor: string | null,
): Promise<Reply> {
  const view = await ctx.useCases.ops.list({ userId, status, cursor, limit: 20 });
  if (view.outcome !== "list") return notShown(view);
  return shown(opsList(view, view.next === null ? null : JSON.stringify([status, view.next])));
}

/** "Next page": status and the opaque cursor travel in the button. */
export async function pageClicked(ctx: SlackContext, click: Click): Promise<Reply> {
  const page = pageOf(click.value);
  return page === null ? say(GONE) : listPage(ctx, click.userId, page.status, page.cursor);
}

function pageOf(value: string): { status: OperationStatus | null; cursor: string } | null {
  try {
    const parsed: unknown = JSON.parse(value);
    if (!Array.isArray(parsed) || typeof parsed[1] !== "string") return null;
    decodeCursor(parsed[1]);
    const status = OPERATION_STATUSES.find((known) => known === parsed[0]) ?? null;
    return { status, cursor: parsed[1] };
  } catch {
    return null;
  }
}

interface ResolveAsked {
  readonly userId: string;
  readonly triggerId: string | null;
  readonly ref: string;
  readonly verb: ResolveVerb;
  readonly place: FormMeta["place"];
}

async function resolveAsked(ctx: SlackContext, asked: ResolveAsked): Promise<Reply> {
  const { userId, ref, verb, triggerId, place } = asked;
  const answer = await ctx.useCases.ops.openResolution({ userId, ref, verb });
  if (answer.outcome !== "form") return notShown(answer);
  const operation = await readOperation(ctx.db, answer.operation.id);
  if (operation === null) return say(GONE);
  // An open outcome gets its form in any case: the provider is asked at the submit, and its answer may settle the question.
  if (!answer.verb.possible && !OPEN_OUTCOMES.has(operation.status))
    return say(`${verbName(verb)} is not possible now. ${said(answer.verb.sentence)}`);
  const formWith = (asked: ProviderAsked): Modal =>
    resolveForm(operation, answer.verb, { about: operation.id, verb, place }, asked);
  if (answer.verb.never === true || triggerId === null) return openModal(ctx, triggerId, formWith(null));
  const asking = providerSays(ctx, userId, operation.id);
  const early = await withinMs(ASK_BEFORE_OPENING_MS, asking);
  if (early !== "late") return openModal(ctx, triggerId, formWith(early));
  const { reply, opened } = await openView(ctx, triggerId, formWith("asking"));
  if (opened !== null) await updateView(ctx, opened, formWith(await asking));
  return reply;
}

/** A trigger lives for three seconds, and who clicks is looked up before: what takes longer comes into the open form. */
const ASK_BEFORE_OPENING_MS = 800;

/** Never throws: that nobody could be asked is an answer. */
async function providerSays(ctx: SlackContext, userId: string, ref: string): Promise<ProbeView> {
  try {
    const answer = await ctx.useCases.ops.askProvider({ userId, ref });
    if (answer.outcome === "asked") return answer.probe;
  } catch (error) {
    ctx.log.warn({ ref, error: String(error) }, "the provider was not asked for a form");
  }
  return { says: "unknown", providerRef: null, sentence: "The provider could not be asked just now." };
}

export async function resolveClicked(ctx: SlackContext, click: Click, verb: ResolveVerb): Promise<Reply> {
  const ref = parseOperationValue(click.value);
  if (ref === null) return say(GONE);
  return resolveAsked(ctx, {
    userId: click.userId,
    triggerId: click.triggerId,
    ref,
    verb,
    place: click.place,
  });
}

export async function resolveSubmitted(ctx: SlackContext, form: Submitted): Promise<Reply> {
  const ref = parseOperationValue(form.meta?.about ?? "");
  const verb = form.meta?.verb;
  if (ref === null || verb === undefined) return errors(INPUTS.reason.block, GONE);
  const reason = form.typed(INPUTS.reason.block).trim();
  const evidenceRef = form.typed(INPUTS.evidence.block).trim();
  if (isBlankText(reason)) return errors(INPUTS.reason.block, "Please give a reason.");
  if (isBlankText(evidenceRef)) return errors(INPUTS.evidence.block, "Please name the evidence.");
  const { userId, receivedAt: typedAt } = form;
  const outcome = await ctx.useCases.ops.resolve({ ref, verb, userId, reason, evidenceRef, typedAt });
  if (outcome.outcome === "invalid") {
    return errors(outcome.field === "reason" ? INPUTS.reason.block : INPUTS.evidence.block, outcome.sentence);
  }
  // What may come right by waiting or by another word is told in the form, which keeps what was typed.
  const mayGoOn = outcome.outcome === "not_safe" && OPEN_OUTCOMES.has(outcome.operation.status);
  if (outcome.outcome === "refused" || outcome.outcome === "unresolved" || mayGoOn) {
    return {
      ...errors(INPUTS.reason.block, outcome.sentence),
      typed: [
        ["Reason", reason],
        ["Evidence", evidenceRef],
      ],
    };
  }
  return say(await resolveSentence(ctx, outcome));
}

async function resolveSentence(ctx: SlackContext, outcome: ResolveOutcome): Promise<string> {
  switch (outcome.outcome) {
    case "refused":
    case "invalid":
      return said(outcome.sentence);
    case "unresolved":
      return said(outcome.sentence);
    case "resolved": {
      const { verb } = outcome.resolution;
      const operation = await readOperation(ctx.db, outcome.operation.id);
      const done =
        operation === null
          ? ""
          : verb === "retry"
            ? `${whatOf(operation)}: it is sent once more under the same key; its card tells what comes of it.`
            : outcomeOf(operation);
      const probe = outcome.probe === null ? "" : ` Asked just before: ${said(outcome.probe.sentence, 300)}`;
      return `${verbName(verb)}: recorded. ${said(done)}${probe}${remarkOf(outcome.resolution)}`;
    }
    case "needs_second":
      return `${said(outcome.sentence)} A card in ${mentionOps(ctx)} asks for one.${remarkOf(outcome.resolution)}`;
    case "settled_by_evidence":
      return `The provider answered the question itself, so nothing else was done. ${said(outcome.sentence)}`;
    case "not_safe":
      return said(outcome.sentence);
    case "overtaken": {
      const who = outcome.by === null ? "" : ` by ${actorName(outcome.by)}`;
      const when = outcome.at === null ? "" : `, ${localTime(outcome.at)}`;
      // A no, or a leave to send again, answers the request and settles nothing.
      const ended = ENDED.has(outcome.operation.status);
      if (!ended && outcome.by === null) return said(outcome.sentence);
      return `It was ${ended ? "settled" : "answered"} meanwhile${who}${when}. ${said(outcome.sentence)}`;
    }
    default:
      return assertNever(outcome, "outcome of a resolution");
  }
}

/** A word that the provider does not bear out is not taken in silence. */
function remarkOf(resolution: ResolutionView): string {
  const remark = resolutionRemark(resolution);
  return remark === null ? "" : `\n*Take care:* ${said(remark)}`;
}

const mentionOps = (ctx: SlackContext): string => `<#${ctx.config.channels.ops}>`;

export async function secondClicked(ctx: SlackContext, click: Click, agree: boolean): Promise<Reply> {
  const asked = parseResolutionValue(click.value);
  if (asked === null) return say(GONE);
  const outcome = await ctx.useCases.ops.second({
    resolutionId: asked.id,
    seen: asked.seen,
    userId: click.userId,
    verdict: agree ? "agree" : "disagree",
  });
  return say(await secondSentence(ctx, outcome));
}

async function secondSentence(ctx: SlackContext, outcome: SecondOutcome): Promise<string> {
  switch (outcome.outcome) {
    case "disagreed":
      return "Recorded that you disagree. Nothing is done; the operation stays as it is.";
    case "shown_anew":
      return said(outcome.sentence);
    default:
      return resolveSentence(ctx, outcome);
  }
}

export async function thawClicked(ctx: SlackContext, click: Click, agree: boolean): Promise<Reply> {
  const asked = parseThawValue(click.value);
  if (asked === null) return say(GONE);
  const outcome = await ctx.useCases.ops.secondThaw({
    userId: click.userId,
    ...asked,
    verdict: agree ? "agree" : "disagree",
  });
  return say(thawSentence(outcome));
}

/** With a link to the ticket's thread, where there is one. */
async function showMessage(ctx: SlackContext, view: OperationView): Promise<Message> {
  const facts = await readOperation(ctx.db, view.operation.id);
  return opsShow(view, { ticket: facts?.ticket ?? null, workspace: await workspaceUrl(ctx.web) });
}

export async function operationDetailsClicked(ctx: SlackContext, click: Click): Promise<Reply> {
  const ref = parseOperationValue(click.value);
  if (ref === null) return say(GONE);
  const view = await ctx.useCases.ops.show({ userId: click.userId, ref, askMs: ASK_BEFORE_OPENING_MS });
  if (view.outcome !== "operation") return notShown(view);
  const { blocks: all } = await showMessage(ctx, view);
  const blocks = all.filter((block) => block.type !== "actions");
  return openModal(ctx, click.triggerId, closed("Operation", blocks));
}

function freezeSentence(outcome: FreezeOutcome): string {
  switch (outcome.outcome) {
    case "refused":
    case "invalid":
      return said(outcome.sentence);
    case "frozen": {
      const name = escapeText(freezeName(outcome.state.kind));
      const head = outcome.already
        ? `Frozen already: ${name}${frozenBy(outcome.state)}. Nothing was changed.`
        : `Frozen: ${name}. ${nothingNew(outcome.state.kind)} from now on.`;
      const flying =
        outcome.inFlight.length === 0
          ? " Of what was sent before, no outcome is open."
          : `\nSent before and still open; these are followed up:\n${outcome.inFlight.map(operationLine).join("\n")}`;
      return `${head}${flying}`;
    }
    default:
      return assertNever(outcome, "outcome of a freeze");
  }
}
