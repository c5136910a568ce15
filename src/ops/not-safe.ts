/** Why the ledger did not do what a person decided, in words. */
import { assertNever } from "../domain/assert-never.js";
import type { NotSafe } from "../ledger/index.js";
import { KEY_IS_OVER } from "./explain.js";

export const NAME_ONE =
  "Name the reference of the one that is this operation, and no other. If none is, it is not confirmed.";

export const anothersSentence = (other: string | undefined): string =>
  `Not done: the reference named is already the effect of operation ${other ?? "of another ticket"}. Name this operation's own. If the other one is wrong, that one is opened again first.`;

export function notSafeSentence(code: Exclude<NotSafe, "anothers_effect">): string {
  switch (code) {
    case "names_none_shown":
      return `Not done: the evidence names none of what the provider shows, or several. ${NAME_ONE}`;
    case "named_differs":
      return "Not done: what is named is not what was asked for, so it confirms nothing. Name one that is; if none is, it is not confirmed.";
    case "may_still_commit":
      return "Not done: what was sent may still take effect, and nobody can know yet.";
    case "wrong_state":
      return "Not done: its state does not allow it.";
    case "filed_it_themselves":
      return "Not done: you asked for this yourself.";
    case "not_as_asked":
      return "Not done: that is not what was asked for, so it is never confirmed. Two people may reject it; what was made instead then counts as refunded elsewhere.";
    case "evidence_contradicts":
      return "Not done: the provider shows otherwise. /ops show says what is left to do.";
    case "key_expired":
      return `Not done: ${KEY_IS_OVER}`;
    case "nobody_can_know":
      return "Not done: the provider does not show what happened, so nobody can know yet.";
    case "same_person":
      return "Not done: a second person must agree.";
    case "not_asked":
      return "Not done: the record does not show that a person asked for this, so nobody can agree to it. If it is right, ask for it again on the operation's card.";
    default:
      return assertNever(code, "reason");
  }
}

const CODES: ReadonlySet<string> = new Set<NotSafe>([
  "wrong_state",
  "evidence_contradicts",
  "not_as_asked",
  "may_still_commit",
  "nobody_can_know",
  "key_expired",
  "names_none_shown",
  "named_differs",
  "anothers_effect",
  "filed_it_themselves",
  "same_person",
  "not_asked",
]);

/** Of a stored code; one that is not known says only that. `other`: the operation whose effect it is already. */
export function refusedSentence(code: string, other: string | undefined): string {
  if (!isNotSafe(code)) return "Not done: it was not safe any more.";
  return code === "anothers_effect" ? anothersSentence(other) : notSafeSentence(code);
}

const isNotSafe = (code: string): code is NotSafe => CODES.has(code);
