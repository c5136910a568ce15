/**
 * How much of a ticket or of a reply is read. It is cut once, where it comes in; everybody who reads it later (who finds the customer, the
 * planner, the person with the card) reads the same text. Pure.
 */
import { headOf } from "./cut.js";

/** Slack's own limit of a message. */
export const TICKET_TEXT_MAX_CHARS = 40_000;

export interface TextTaken {
  readonly text: string;
  /** What has to be told in the thread where something was left out; null: nothing was. */
  readonly leftOut: string | null;
}

/** The text as it is kept and read, and what to say where its end is not. */
export function takeText(text: string): TextTaken {
  if (text.length <= TICKET_TEXT_MAX_CHARS) return { text, leftOut: null };
  const head = headOf(text, TICKET_TEXT_MAX_CHARS);
  const missing = (text.length - head.length).toLocaleString("en-GB");
  return {
    text: head,
    leftOut: `That text is longer than ${TICKET_TEXT_MAX_CHARS.toLocaleString("en-GB")} characters: its last ${missing} were not read. If the order or the amount stands there, write it here.`,
  };
}
