/**
 * Text of people, models and providers made shorter. A cut never goes through a character as a reader sees it (an emoji, a letter
 * with its accents), so that no half of a surrogate pair comes into being.
 */
const SEGMENTER = new Intl.Segmenter("en", { granularity: "grapheme" });
/** More code units than one character of any script or emoji needs. */
const LONGEST_CHARACTER = 128;
const MARK = "…";

/** Characters as a reader sees them, in order. */
export const characters = (text: string): Iterable<{ readonly segment: string }> => SEGMENTER.segment(text);

/** The beginning of a text in whole characters, at most `max` code units; for who marks a cut in another way, or goes on with the rest. */
export function headOf(text: string, max: number): string {
  if (text.length <= max) return text;
  const window = text.slice(0, max + LONGEST_CHARACTER);
  const at = SEGMENTER.segment(window).containing(max)?.index ?? max;
  // A heap of marks without end is one "character": there the whole code point is enough.
  return at > max - LONGEST_CHARACTER && at > 0 ? text.slice(0, at) : wholeCodePoints(text, max);
}

/** The text itself, or as much of it as fits into `max` code units with a "…" that says that it was cut. */
export const cutText = (text: string, max: number): string =>
  text.length <= max ? text : `${headOf(text, Math.max(0, max - MARK.length)).trimEnd()}${MARK}`;

const HIGH_SURROGATE_AT_END = /[\ud800-\udbff]$/;

const wholeCodePoints = (text: string, max: number): string => {
  const head = text.slice(0, max);
  return /^[\udc00-\udfff]/.test(text.slice(max, max + 1)) ? head.replace(HIGH_SURROGATE_AT_END, "") : head;
};
