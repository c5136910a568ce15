/**
 * What a result tells the planner to do next. It stands behind the facts in sentences for the planner; people who read the same facts
 * are not told it.
 */
export const ADVICE = {
  notAgain: "Do not ask for it again in this ticket.",
  newTicket: "Say that whoever filed it can ask for it again in a new ticket.",
  noUse: "Repeating it changes nothing.",
  againOrPerson: "It may be asked for again, or hand the ticket to a person.",
  toPerson: "Hand the ticket to a person.",
  checkReference: "Check the reference, or hand the ticket to a person.",
} as const;

/** The same amount once more, in the unit of the tools' input. */
const IN_MINOR_UNITS = / \(\d+ in minor units\)/gu;

/** A result without its advice and without the tools' units: for people. */
export function factsOnly(result: string): string {
  let facts = result;
  for (const advice of Object.values(ADVICE)) facts = facts.replaceAll(advice, "");
  return facts.replace(IN_MINOR_UNITS, "").replace(/ {2,}/g, " ").trim();
}
