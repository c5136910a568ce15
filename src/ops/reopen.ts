/**
 * A wrong click is opened again: what a person had confirmed or rejected is parked for a person once more, with a record of its
 * own. Whoever may resolve an operation may open it again; ends that the provider's evidence settled are not a person's to open.
 */

import type { Operation } from "../domain/operation.js";
import { cutText } from "../domain/text/cut.js";
import * as ledger from "../ledger/index.js";
import { authoriseOn } from "./authorise.js";
import type { OpsContext } from "./context.js";
import { type Meant, onlyOneThat } from "./find.js";
import { CARRIED_OUT_BEFORE, missingText, TEXT_MAX_CHARS, typedAtOf } from "./form-text.js";
import type { ReopenForm, ReopenOutcome, ReopenRequest } from "./types.js";

const NOT_A_PERSONS_END = "Only what a person has confirmed or rejected can be opened again.";

/** May this person open it again? An order finds its operation where a person ended one alone. */
export async function openReopening(
  ctx: OpsContext,
  request: { userId: string; ref: string },
): Promise<ReopenForm> {
  return reopening(ctx, request, onlyOneThat(endedByPerson));
}

async function reopening(
  ctx: OpsContext,
  request: { userId: string; ref: string },
  meant?: Meant,
): Promise<ReopenForm> {
  const allowed = await authoriseOn(ctx, request, meant);
  if (allowed.outcome !== "authorised") return allowed;
  const { operation } = allowed;
  return endedByPerson(operation)
    ? { outcome: "form", operation }
    : { outcome: "not_safe", operation, sentence: NOT_A_PERSONS_END };
}

const endedByPerson = ({ status, resolvedByPerson }: Operation): boolean =>
  (status === "CONFIRMED" || status === "REJECTED") && resolvedByPerson;

export async function reopen(ctx: OpsContext, request: ReopenRequest): Promise<ReopenOutcome> {
  const invalid = missingText(request);
  if (invalid !== null) return invalid;
  const form = await reopening(ctx, request);
  if (form.outcome !== "form") return form;
  const { operation } = form;
  const result = await ledger.reopen(ctx.ledger, {
    operationId: operation.id,
    expectedVersion: operation.version,
    by: request.userId,
    reason: cutText(request.reason.trim(), TEXT_MAX_CHARS),
    evidenceRef: cutText(request.evidenceRef.trim(), TEXT_MAX_CHARS),
    ...typedAtOf(request),
  });
  switch (result.outcome) {
    case "reopened":
      return { outcome: "reopened", operation: result.operation };
    case "not_safe":
      return {
        outcome: "not_safe",
        operation: result.operation,
        sentence:
          result.code === "wrong_state"
            ? NOT_A_PERSONS_END
            : result.code === "repeated"
              ? CARRIED_OUT_BEFORE
              : "You asked for this yourself, so somebody else must open it.",
      };
    case "overtaken":
      return {
        outcome: "not_safe",
        operation: result.operation ?? operation,
        sentence: "It has moved meanwhile; look again.",
      };
    default:
      return result satisfies never;
  }
}
