/** On-call's forms that leave a record of their own: opening a wrong click again, closing an incident. */
import { assertNever } from "../../domain/assert-never.js";
import type { CloseOutcome, ReopenOutcome } from "../../ops/index.js";
import { INPUTS, parseIncidentValue, parseOperationValue } from "../actions.js";
import { closeIncidentForm, type FormMeta, reopenForm } from "../cards/forms.js";
import { incidentTitle } from "../cards/incident-card.js";
import { actorName, escapeWithin, oneLine } from "../text/safe.js";
import { localTime } from "../text/time.js";
import type { SlackContext } from "../types.js";
import { readOperation } from "../views/operation.js";
import type { Click, Submitted } from "./payload.js";
import { errors, GONE, notShown, openModal, type Reply, say } from "./reply.js";

const said = (text: string, max = 800): string => escapeWithin(oneLine(text), max).text;

export interface Asked {
  readonly userId: string;
  readonly triggerId: string | null;
  readonly ref: string;
  readonly place: FormMeta["place"];
}

const askedBy = ({ userId, triggerId, place }: Click, ref: string): Asked => ({
  userId,
  triggerId,
  place,
  ref,
});

export async function reopenAsked(ctx: SlackContext, asked: Asked): Promise<Reply> {
  const { userId, ref, triggerId, place } = asked;
  const answer = await ctx.useCases.ops.openReopening({ userId, ref });
  if (answer.outcome === "not_safe") return say(`Open again is not possible now. ${said(answer.sentence)}`);
  if (answer.outcome !== "form") return notShown(answer);
  const operation = await readOperation(ctx.db, answer.operation.id);
  return operation === null
    ? say(GONE)
    : openModal(ctx, triggerId, reopenForm(operation, { about: operation.id, place }));
}

export async function reopenClicked(ctx: SlackContext, click: Click): Promise<Reply> {
  const ref = parseOperationValue(click.value);
  return ref === null ? say(GONE) : reopenAsked(ctx, askedBy(click, ref));
}

export async function reopenSubmitted(ctx: SlackContext, form: Submitted): Promise<Reply> {
  const ref = parseOperationValue(form.meta?.about ?? "");
  if (ref === null) return errors(INPUTS.reason.block, GONE);
  const outcome = await ctx.useCases.ops.reopen({
    ref,
    userId: form.userId,
    reason: form.typed(INPUTS.reason.block),
    evidenceRef: form.typed(INPUTS.evidence.block),
    typedAt: form.receivedAt,
  });
  return reopenReply(outcome);
}

function reopenReply(outcome: ReopenOutcome): Reply {
  switch (outcome.outcome) {
    case "invalid":
      return errors(INPUTS[outcome.field].block, outcome.sentence);
    case "refused":
    case "unresolved":
      return errors(INPUTS.reason.block, outcome.sentence);
    case "not_safe":
      return say(`Not opened. ${said(outcome.sentence)}`);
    case "reopened":
      return say(
        outcome.operation.kind === "refund"
          ? "Opened again: recorded. It waits for a person, its amount counts as spent until then, and its card is in the ops channel."
          : "Opened again: recorded. It waits for a person, and its card is in the ops channel.",
      );
    default:
      return assertNever(outcome, "outcome of opening again");
  }
}

export async function closeAsked(ctx: SlackContext, asked: Asked): Promise<Reply> {
  const { userId, ref, triggerId, place } = asked;
  const answer = await ctx.useCases.ops.openClosing({ userId, ref });
  if (answer.outcome === "refused" || answer.outcome === "unresolved") return notShown(answer);
  if (answer.outcome !== "form") return closeReply(answer);
  const { incident } = answer;
  return openModal(ctx, triggerId, closeIncidentForm(incident, { about: incident.id, place }));
}

export async function closeClicked(ctx: SlackContext, click: Click): Promise<Reply> {
  const ref = parseIncidentValue(click.value);
  return ref === null ? say(GONE) : closeAsked(ctx, askedBy(click, ref));
}

export async function closeSubmitted(ctx: SlackContext, form: Submitted): Promise<Reply> {
  const ref = parseIncidentValue(form.meta?.about ?? "");
  if (ref === null) return errors(INPUTS.reason.block, GONE);
  const reason = form.typed(INPUTS.reason.block);
  return closeReply(await ctx.useCases.ops.closeIncident({ ref, userId: form.userId, reason }));
}

function closeReply(outcome: CloseOutcome): Reply {
  switch (outcome.outcome) {
    case "invalid":
    case "refused":
    case "unresolved":
      return errors(INPUTS.reason.block, outcome.sentence);
    case "already": {
      const by = outcome.by === null ? "" : ` by ${actorName(outcome.by)}`;
      const at = outcome.at === null ? "" : `, ${localTime(outcome.at)}`;
      const why = outcome.reason === null ? "" : ` Reason: ${said(outcome.reason, 300)}`;
      return say(`This incident was closed already${by}${at}. Nothing was changed.${why}`);
    }
    case "closed":
      return say(
        `Closed: ${said(incidentTitle(outcome.incident.kind))}. It stays on record with your reason.`,
      );
    default:
      return assertNever(outcome, "outcome of closing an incident");
  }
}
