/**
 * What a person names as the effect that they confirm, beside what the provider shows. Pure.
 *
 * 1. Where the provider shows several effects, or one that nobody can attribute, the confirmation says which one it means.
 * 2. Where the provider shows the operation's own effect, that is the reference; where it shows none, a person's word is.
 * 3. What was confirmed without the provider showing it, or rejected without proof that nothing happened, says so wherever its end is
 *    told (`onWord`).
 * 4. A word that the provider does not bear out is never taken without a remark. The remark holds nothing that a person wrote.
 */
import type { Evidence, ProviderEffect } from "./evidence.js";
import type { Operation, OperationStatus } from "./operation.js";
import { MADE_DIFFERENTLY } from "./resolving.js";
import { cutText } from "./text/cut.js";

export interface Named {
  /** The provider's own reference where it shows one, else what the person wrote. */
  readonly ref: string;
  /** How the word and the provider differ, one sentence; null: they do not. */
  readonly remark: string | null;
  /** The provider shows it; null: it shows nothing that is meant. */
  readonly effect: ProviderEffect | null;
}

/** References as providers write them. */
const REFERENCE = /\b(?:re|pyr|sub)_[A-Za-z0-9_]+\b/u;
const REFERENCES = new RegExp(REFERENCE, "gu");
const WORD_MAX = 200;

/** null: several are named; or the provider shows effects that could be meant, and the person names none of them. */
export function namedEffect(probe: Evidence, evidenceRef: string): Named | null {
  switch (probe.says) {
    case "committed":
    case "pending":
    case "failed_at_provider": {
      const { effect } = probe;
      const { ref } = effect;
      return { ref, remark: remarkOn({ says: probe.says, ref }, evidenceRef), effect };
    }
    case "duplicate":
    case "unattributed": {
      const [one, ...more] = probe.effects.filter(({ ref }) => mentions(evidenceRef, ref));
      return one === undefined || more.length > 0 ? null : { ref: one.ref, remark: null, effect: one };
    }
    case "absent":
    case "unknown": {
      const [one, ...more] = new Set(evidenceRef.match(REFERENCES));
      if (more.length > 0) return null;
      return {
        ref: one ?? cutText(evidenceRef.trim(), WORD_MAX),
        remark: remarkOn({ says: probe.says, ref: null }, evidenceRef),
        effect: null,
      };
    }
    default:
      return probe satisfies never;
  }
}

/** How a person's word for a confirmation and what the provider showed then differ, one sentence; null: they do not. */
export function remarkOn(shown: { says: string; ref: string | null }, evidenceRef: string): string | null {
  switch (shown.says) {
    case "absent":
      return "This rests on a person's word: the provider showed nothing of it.";
    case "unknown":
      return "This rests on a person's word: the provider could not be asked.";
    case "committed":
      return shown.ref === null || mentions(evidenceRef, shown.ref) || !REFERENCE.test(evidenceRef)
        ? null
        : `The evidence names another reference than the provider shows: ${shown.ref}.`;
    default:
      return null;
  }
}

/** What a confirmation's result is called, by what the provider showed when it was decided. */
export function confirmedCode({ says }: Pick<Evidence, "says">): string {
  if (says === "absent") return UNSEEN;
  return says === "unknown" ? UNASKED : "confirmed_by_person";
}

const UNSEEN = "confirmed_unseen";
const UNASKED = "confirmed_unasked";

/** Result codes of confirmations that only a person vouches for. */
export const CONFIRMED_ON_WORD = [UNSEEN, UNASKED] as const;

/** Confirmed, and only a person vouches for it: the reference on the row is what they wrote, and no known effect. */
export const isConfirmedOnWord = ({ status, result }: Pick<Operation, "status" | "result">): boolean =>
  status === "CONFIRMED" && CONFIRMED_ON_WORD.some((code) => code === result?.code);

/** The text is a reference as the provider writes them, and nothing else. */
export const isReference = (text: string): boolean => text.match(REFERENCE)?.[0] === text;

/**
 * What a rejection's result is called. `proven`: no attempt can have had an effect any more, so that a list without one proves it;
 * an effect that failed at the provider proves it in any case.
 */
export function rejectedCode({ says }: Pick<Evidence, "says">, proven: boolean): string {
  if (says === "failed_at_provider") return PROVEN;
  if (says === "unattributed") return STRANGER_SEEN;
  return proven ? PROVEN : NOT_SEEN;
}

const PROVEN = "rejected_proven";
const NOT_SEEN = "rejected_unseen";
const STRANGER_SEEN = "rejected_beside_another";
/** Of before it was told apart. */
const NOT_TOLD_APART = "rejected_by_person";

/** On-call closed it; the provider refused nothing. */
export const isPersonsRejection = (code: string): boolean =>
  [PROVEN, NOT_SEEN, STRANGER_SEEN, NOT_TOLD_APART, MADE_DIFFERENTLY].includes(code);

/** Of a rejection that proves nothing: what it rests on, one sentence; null: of every other. */
export function rejectionRemark(code: string): string | null {
  switch (code) {
    case NOT_SEEN:
      return "This rests on a person's word: that the provider showed nothing of it is no proof.";
    case STRANGER_SEEN:
      return "This rests on a person's word: the provider showed one that nobody here asked for.";
    default:
      return null;
  }
}

const ON_WORD = "by on-call's word alone";

/** "by on-call's word alone", for titles and rows of lists, where `onWord` would be too long; null: the provider vouches for it. */
export const wordAlone = (result: { readonly code: string } | null): string | null =>
  onWord(result) === null ? null : ON_WORD;

/** "by on-call's word alone: …" of an end that only a person vouches for; null: of every other. */
export function onWord(result: { readonly code: string } | null): string | null {
  switch (result?.code) {
    case UNSEEN:
      return `${ON_WORD}: the provider did not show it`;
    case UNASKED:
      return `${ON_WORD}: the provider could not be asked`;
    case NOT_SEEN:
      return `${ON_WORD}: the provider did not show it, which is no proof`;
    case STRANGER_SEEN:
      return `${ON_WORD}: the provider showed one that nobody here asked for`;
    case NOT_TOLD_APART:
      return ON_WORD;
    default:
      return null;
  }
}

/** What a stored reference is called: one that only a person wrote down is not the provider's, also when its end was taken back. */
export const referenceLabel = (ref: string, given: boolean): "Provider reference" | "Reference given" =>
  !given && REFERENCE.test(ref) ? "Provider reference" : "Reference given";

/** The whole reference, not the beginning of a longer one. */
function mentions(text: string, ref: string): boolean {
  for (let at = text.indexOf(ref); at >= 0; at = text.indexOf(ref, at + 1)) {
    const around = `${text[at - 1] ?? " "}${text[at + ref.length] ?? " "}`;
    if (!/[A-Za-z0-9_]/u.test(around)) return true;
  }
  return false;
}

/** A reference that only a person named belongs to their confirmation: once it was rejected instead, that is of before. */
export const isOfBefore = (status: OperationStatus, given: boolean): boolean =>
  given && status === "REJECTED";
