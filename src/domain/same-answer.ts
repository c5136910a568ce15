/** Whether two answers of the provider about one operation tell a person the same. Pure. */
import type { Evidence } from "./evidence.js";
import type { Json } from "./json.js";

/**
 * The kind of an answer and the references that it shows; null: there is none. Of how it was worded and of a state at the provider nothing:
 * an answer that only these tell apart is no other one. Nor do amounts, except of what was made instead: that is what is agreed to.
 */
export function answerKind(stored: Json): string | null {
  if (typeof stored !== "object" || stored === null || Array.isArray(stored)) return null;
  const { says, postcondition, effect, effects } = stored;
  if (typeof says !== "string") return null;
  const shown = Array.isArray(effects) ? effects : [effect ?? null];
  const instead = says === "committed" && postcondition === "fails";
  const refs = shown.flatMap((one) =>
    typeof one === "object" && one !== null && !Array.isArray(one) && typeof one["ref"] === "string"
      ? [instead ? `${one["ref"]} ${String(one["amountMinor"])} ${String(one["currency"])}` : one["ref"]]
      : [],
  );
  return JSON.stringify([says, says === "committed" ? (postcondition ?? null) : null, refs.toSorted()]);
}

/** The provider itself says what the verb says: its answer counts, whatever was shown before. */
export const answersAs = (verb: "confirm" | "reject" | "retry", evidence: Evidence): boolean =>
  (verb === "confirm" && evidence.says === "committed" && evidence.postcondition === "holds") ||
  (verb === "reject" && evidence.says === "failed_at_provider");
