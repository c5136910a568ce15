/** Times in plain text, always with their zone: one form for everybody who reads it. */

/** "2 Nov 2026, 14:05 UTC". */
export const utcTime = (at: Date): string => `${UTC.format(at)} UTC`;

/** "2 Nov 2026, 14:05:09 UTC": where the order of things counts. */
export const utcSecond = (at: Date): string =>
  `${UTC.format(at)}:${String(at.getUTCSeconds()).padStart(2, "0")} UTC`;

/** What the two above write, in a longer text; the groups are the day, the time and its seconds. */
export const UTC_TIMES = /\b(\d{1,2} [A-Z][a-z]{2,3} \d{4}), (\d{2}:\d{2}(:\d{2})?) UTC\b/gu;

const UTC = new Intl.DateTimeFormat("en-GB", {
  timeZone: "UTC",
  day: "numeric",
  month: "short",
  year: "numeric",
  hour: "2-digit",
  minute: "2-digit",
  hourCycle: "h23",
});
