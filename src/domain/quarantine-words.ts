/** Why an operation waits for a person, in words; stored as `code: detail`. */
import type { QuarantineReason } from "./recovery.js";

const WORDS: Readonly<Record<QuarantineReason | "opened_again" | "retry_authorised", string>> = {
  postcondition_failed: "The provider made something else than was asked for.",
  duplicate_effect: "The provider shows more than one effect of this operation.",
  unattributed_effect: "The provider shows an effect that nobody here asked for and that could be this one.",
  pending_too_long: "The provider has it pending for longer than the policy waits.",
  unknown_too_long: "It has been unknown for longer than the policy waits.",
  proof_incomplete: "It could not be proven for every attempt that nothing happened.",
  key_conflict: "The provider holds another request under this operation's key.",
  evidence_contradicts: "Evidence came that contradicts how it had ended.",
  opened_again: "A person opened again what a person had settled.",
  retry_authorised: "A person authorised sending it again.",
};

/** The reason as sentences; the provider's own word for it stays. Text of no known kind is given back as it is. */
export function quarantineWords(stored: string): string {
  const [, code = "", detail = ""] = /^([a-z_]+)(?:: ?(.*))?$/su.exec(stored) ?? [];
  if (!Object.hasOwn(WORDS, code)) return stored;
  const words = WORDS[code as keyof typeof WORDS];
  // What follows a code of the wire says the same in words.
  const more = detail.replace(/^[a-z]+_[a-z0-9_]*: (?=[A-Z])/u, "").trim();
  return more === "" ? words : `${words} ${more}`;
}
