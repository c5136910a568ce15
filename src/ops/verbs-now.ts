/**
 * The three verbs as they stand by what the provider has just said, from the function that will decide (`judgeResolving`). Pure.
 *
 * What was stored when it was parked does not count beside a newer word of the provider's. Where it could not be asked, it does.
 */
import { differsFromAsked } from "../domain/as-asked.js";
import { assertNever } from "../domain/assert-never.js";
import type { Evidence } from "../domain/evidence.js";
import type { Operation } from "../domain/operation.js";
import type { Policy } from "../domain/policy/policy.js";
import { judgeResolving, type ResolvingRefusal } from "../domain/resolving.js";
import { type Explained, KEY_IS_OVER, verbViews, WAIT_FOR_PENDING } from "./explain.js";
import { probeView } from "./resolution-view.js";
import type { VerbView } from "./types.js";

/** `asked` null: the provider was not asked, or has not answered yet. */
export function verbsNow(view: Explained, policy: Policy, asked: Evidence | null): readonly VerbView[] {
  if (asked === null) return verbViews(view, policy);
  const reason = asked.says === "unknown" ? view.operation.quarantineReason : storedAs(asked);
  const told = { ...view, operation: { ...view.operation, quarantineReason: reason } };
  return verbViews(told, policy).map((standing) => judged(standing, told, asked));
}

/** As it would be parked by this evidence, where that says which verbs are left. */
function storedAs(asked: Evidence): string | null {
  switch (asked.says) {
    case "committed":
      return asked.postcondition === "fails" ? `postcondition_failed: ${asked.effect.ref}` : null;
    case "duplicate":
      return `duplicate_effect: ${asked.effects.map(({ ref }) => ref).join(", ")}`;
    case "pending":
    case "failed_at_provider":
    case "absent":
    case "unattributed":
    case "unknown":
      return null;
    default:
      return assertNever(asked);
  }
}

function judged(standing: VerbView, view: Explained, asked: Evidence): VerbView {
  const { verb } = standing;
  const { operation, contract, attempts, now, lastSendEndedAt, timing } = view;
  const judgement = judgeResolving({
    verb,
    status: operation.status,
    contract,
    probe: asked,
    attempts,
    now,
    firstClaimedAt: operation.firstClaimedAt,
    lastSendEndedAt,
    timeoutMs: timing.providerTimeoutMs,
    marginMs: timing.sendMarginMs,
  });
  if (judgement.possible && settlesOtherwise(verb, asked))
    return { ...standing, possible: false, sentence: refusal("evidence_contradicts", standing, asked) };
  if (judgement.possible && verb === "confirm" && noneAsAsked(operation, asked))
    return { ...standing, possible: false, sentence: refusal("not_as_asked", standing, asked) };
  if (judgement.possible) {
    const people = judgement.people === 2 ? 2 : standing.people;
    return !standing.possible || people === standing.people
      ? standing
      : { ...standing, people, sentence: `${standing.sentence} It takes a second person.` };
  }
  // What is never possible has its own words, and what to do instead.
  if (standing.never === true) return standing;
  const sentence = refusal(judgement.code, standing, asked);
  return { verb, people: standing.people, possible: false, sentence };
}

/** That it came to nothing there ends it; it is not sent again. */
const settlesOtherwise = (verb: VerbView["verb"], asked: Evidence): boolean =>
  verb === "retry" && asked.says === "failed_at_provider";

/** Several are shown, or what nobody asked for, and none of it could be named. */
const noneAsAsked = (operation: Operation, asked: Evidence): boolean =>
  operation.kind === "refund" &&
  "effects" in asked &&
  asked.effects.every((effect) => differsFromAsked(operation, effect).length > 0);

/** What would be refused now, and why. */
function refusal(code: ResolvingRefusal, standing: VerbView, asked: Evidence): string {
  const { sentence: said } = probeView(asked);
  switch (code) {
    case "evidence_contradicts":
      // What the provider shows stands once, as evidence; what to do about it, in the first of the three.
      if (asked.says === "pending")
        return `Not while the provider has it pending: its end there settles it.${standing.verb === "confirm" ? ` ${WAIT_FOR_PENDING}` : ""}`;
      return `Refused as long as this holds: ${said}${instead(asked)}`;
    case "not_as_asked":
      return `Refused: ${said} What is not as it was asked for is never confirmed.`;
    case "nobody_can_know":
      return standing.verb === "confirm"
        ? `Refused now: ${said} Until it is quarantined, it counts only if the provider shows it.`
        : `Refused now: ${said} Without its answer nobody can know; try again when it answers.`;
    case "key_expired":
      return `Not possible: ${KEY_IS_OVER}`;
    case "may_still_commit":
    case "wrong_state":
      return standing.sentence;
    default:
      return assertNever(code, "refusal");
  }
}

/** What that answer leaves. */
function instead(asked: Evidence): string {
  switch (asked.says) {
    case "committed":
      return " Confirm committed is what is left.";
    case "failed_at_provider":
      return " Reject is what is left.";
    case "unattributed":
      return ` ${WHOSE_IS_IT}`;
    case "duplicate":
    case "pending":
    case "absent":
    case "unknown":
      return "";
    default:
      return assertNever(asked);
  }
}

/** What is asked first about an effect that nobody here asked for. */
export const WHOSE_IS_IT =
  "Ask who made it: made for this ticket, Confirm committed with its reference; made for another, Reject.";
