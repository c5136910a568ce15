import { capital } from "./capital.js";

/** It ends already: with a stop, or with one inside the quotation or brackets at its end. */
const ENDED = /[.!?…]["'”’)\]]*$/u;

/** A plain word in lower case: no reference or code (`re_1A`, `http_500:`), which stay as they are. */
const PLAIN_WORD = /^[a-z]+(?=[\s,;]|$)/u;

/**
 * A text that may lack its capital and its full stop, as a sentence of its own: `offer 2,000."` has one. Nothing stays nothing.
 */
export function asSentence(text: string): string {
  const trimmed = text.trim().replace(PLAIN_WORD, capital);
  return trimmed === "" || ENDED.test(trimmed) ? trimmed : `${trimmed}.`;
}
