/** It ends already: with a stop, or with one inside the quotation or brackets at its end. */
const ENDED = /[.!?…]["'”’)\]]*$/u;

/** A text that may lack its full stop, as a sentence of its own: `offer 2,000."` has one. Nothing stays nothing. */
export function asSentence(text: string): string {
  const trimmed = text.trim();
  return trimmed === "" || ENDED.test(trimmed) ? trimmed : `${trimmed}.`;
}
