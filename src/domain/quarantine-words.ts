/** Why an operation waits for a person, in words; stored as `code: detail`. */
import type { QuarantineReason } from "./recovery.js";
import { asSentence } from "./text/sentence.js";

const WORDS: Readonly<Record<QuarantineReason | "opened_again" | "retry_authorised", string>> = {
  postcondition_failed: "The provider made something else than was asked for.",
  duplicate_effect: "The provider shows more than one effect of this operation.",
  unattributed_effect: "The provider shows an effect that nobody here asked for and that could be this one.",
  pending_too_long: "The provider still has it pending after the time set for that.",
  unknown_too_long: "The outcome is still unknown after the time set for that.",
  proof_incomplete: "It could not be proven for every attempt that nothing happened.",
  key_conflict: "The provider holds another request under this operation's key.",
  row_changed: "Its record in the database no longer says what was decided, so it is not sent again.",
  evidence_contradicts: "Evidence came that contradicts how it had ended.",
  ended_before: "It had ended before, so it is not sent again unless a person authorises that.",
  shown_otherwise: "The provider shows an effect of it that counted as none of it before.",
  opened_again: "A person opened it again.",
  retry_authorised: "A person authorised sending it again.",
};

/** The reason as sentences; the provider's own word for it stays. Text of no known kind is given back as it is. */
export function quarantineWords(stored: string): string {
  const [, code = "", detail = ""] = /^([a-z_]+)(?:: ?(.*))?$/su.exec(stored) ?? [];
  if (!Object.hasOwn(WORDS, code)) return stored;
  const words = WORDS[code as keyof typeof WORDS];
  // What follows a code of the wire says the same in words.
  const more = unrepeated(words, detail.replace(/^[a-z][a-z0-9_]*: (?=[A-Z])/u, "").trim());
  if (more === "") return words;
  // How a question was answered, and not how the effect itself was.
  if (code === "unknown_too_long" && more.startsWith(PROVIDER))
    return `${words} When it was asked last, the provider${asSentence(more).slice(PROVIDER.length)}`;
  const made = /^(.+?) (differs in .+?)(?: from what was asked for)?\.?$/su.exec(more);
  if (code === "postcondition_failed" && made !== null)
    return `${words.slice(0, -1)}: ${made[1]} (${made[2]}).`;
  return REFERENCES.test(more) ? `${words.slice(0, -1)}: ${more}.` : `${words} ${asSentence(more)}`;
}

const PROVIDER = "The provider";

/** What held when it was parked and need not hold any more. */
const THEN: Readonly<Partial<Record<keyof typeof WORDS, string>>> = {
  duplicate_effect: "The provider showed more than one effect of this operation.",
  unattributed_effect: "The provider showed an effect that nobody here asked for and that could be this one.",
  pending_too_long: "The provider still had it pending after the time set for that.",
  unknown_too_long: "The outcome was still unknown after the time set for that.",
  key_conflict: "The provider held another request under this operation's key.",
};

/** The same where the provider has answered since: what was known then, in the past tense. */
export function quarantineThen(stored: string): string {
  const code = quarantineCode(stored);
  const then = code === null ? undefined : THEN[code];
  if (code === null || then === undefined) return quarantineWords(stored);
  return then.slice(0, -1) + quarantineWords(stored).slice(WORDS[code].length - 1);
}

/** The provider's references and nothing else: "re_1, re_2". */
const REFERENCES = /^[a-z]+_[A-Za-z0-9]+(?:, [a-z]+_[A-Za-z0-9]+)*$/u;

/** A detail that begins with what the words say already goes on after that. */
function unrepeated(words: string, detail: string): string {
  const said = words.slice(0, -1);
  return detail.toLowerCase().startsWith(said.toLowerCase())
    ? detail.slice(said.length).replace(/^[.\s]+/u, "")
    : detail;
}

/** What is known of something parked, as a card's title says it; null: the outcome itself is not known. */
const KNOWN: Readonly<Partial<Record<keyof typeof WORDS, string>>> = {
  postcondition_failed: "Not what was asked for",
  duplicate_effect: "More than one effect",
  pending_too_long: "Still pending at the provider",
  evidence_contradicts: "Evidence against how it ended",
  shown_otherwise: "Shown otherwise than before",
  opened_again: "Opened again",
};

/** What it is called while it waits for a person. */
export const quarantineTitle = (stored: string | null): string => knownTitle(stored) ?? "Outcome not known";

/** What is known of it as a sentence, where something is: null leaves "the outcome is not known". */
export const quarantineKnown = (stored: string | null): string | null =>
  stored === null || knownTitle(stored) === null ? null : quarantineWords(stored);

function knownTitle(stored: string | null): string | null {
  const code = quarantineCode(stored ?? "");
  return code === null ? null : (KNOWN[code] ?? null);
}

/** What the time since which an operation is open is called: one that had ended was open before that, too. */
export function unknownSinceLabel(
  stored: string | null,
): "Open again since" | "Open since" | "Unknown since" {
  const code = quarantineCode(stored ?? "");
  if (code === "opened_again" || code === "ended_before") return "Open again since";
  return knownTitle(stored) === null ? "Unknown since" : "Open since";
}

/** The code of a stored reason; null: it has none that is known. */
export function quarantineCode(stored: string): keyof typeof WORDS | null {
  const code = /^[a-z_]+/u.exec(stored)?.[0] ?? "";
  return Object.hasOwn(WORDS, code) ? (code as keyof typeof WORDS) : null;
}
