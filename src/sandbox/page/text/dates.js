/** Slack's date tokens and the page's own times, in the time zone of the person who looks. */

const LOCALE = "en-GB";
const DAY_MS = 86_400_000;

/** @param {Date} at @param {string} tz @param {Intl.DateTimeFormatOptions} options */
function say(at, tz, options) {
  try {
    return new Intl.DateTimeFormat(LOCALE, { timeZone: tz, ...options }).format(at);
  } catch {
    return new Intl.DateTimeFormat(LOCALE, { timeZone: "UTC", ...options }).format(at);
  }
}

/** Year-month-day in the zone, to compare days. @param {number} ms @param {string} tz */
export function dayKey(ms, tz) {
  return say(new Date(ms), tz, { year: "numeric", month: "2-digit", day: "2-digit" })
    .split("/")
    .reverse()
    .join("-");
}

/** `today`, `yesterday`, `tomorrow`, or null. @param {number} ms @param {string} tz @param {number} nowMs */
function near(ms, tz, nowMs) {
  const day = dayKey(ms, tz);
  if (day === dayKey(nowMs, tz)) return "today";
  if (day === dayKey(nowMs - DAY_MS, tz)) return "yesterday";
  if (day === dayKey(nowMs + DAY_MS, tz)) return "tomorrow";
  return null;
}

/** @param {number} ms @param {number} nowMs */
export function ago(ms, nowMs) {
  const seconds = Math.round((ms - nowMs) / 1000);
  /** @type {[Intl.RelativeTimeFormatUnit, number][]} */
  const units = [
    ["day", 86_400],
    ["hour", 3_600],
    ["minute", 60],
  ];
  const speak = new Intl.RelativeTimeFormat(LOCALE, { numeric: "auto" });
  for (const [unit, size] of units) {
    if (Math.abs(seconds) >= size) return speak.format(Math.trunc(seconds / size), unit);
  }
  return speak.format(seconds, "second");
}

/** @type {Record<string, Intl.DateTimeFormatOptions>} */
const FORMS = {
  date_num: { year: "numeric", month: "2-digit", day: "2-digit" },
  date: { year: "numeric", month: "long", day: "numeric" },
  date_short: { year: "numeric", month: "short", day: "numeric" },
  date_long: { weekday: "long", year: "numeric", month: "long", day: "numeric" },
  time: { hour: "2-digit", minute: "2-digit" },
  time_secs: { hour: "2-digit", minute: "2-digit", second: "2-digit" },
};

/**
 * The text of a `<!date^…>`; the fallback when a token is unknown, as Slack does.
 * @param {{ seconds: number, format: string, fallback: string }} date
 * @param {{ tz: string, nowMs: number }} where
 */
export function formatDate({ seconds, format, fallback }, { tz, nowMs }) {
  const ms = seconds * 1000;
  if (!Number.isFinite(ms) || Math.abs(ms) > 8.64e15) return fallback;
  let unknown = false;
  const text = format.replace(/\{([a-z_]+)\}/gu, (_whole, /** @type {string} */ token) => {
    if (token === "ago") return ago(ms, nowMs);
    const plain = token === "day_divider_pretty" ? "date_long" : token.replace(/_pretty$/u, "");
    const form = FORMS[plain];
    if (form === undefined) {
      unknown = true;
      return "";
    }
    if (plain === "date_num") return dayKey(ms, tz);
    const word = plain === token ? null : near(ms, tz, nowMs);
    return word ?? say(new Date(ms), tz, form);
  });
  return unknown ? fallback : text;
}

/** Milliseconds of a Slack timestamp. @param {string} ts */
export function tsMs(ts) {
  return Number(ts.split(".")[0]) * 1000 + Math.floor(Number(ts.split(".")[1] ?? 0) / 1000);
}

/** @param {number} ms @param {string} tz */
export function clockTime(ms, tz) {
  return say(new Date(ms), tz, { hour: "2-digit", minute: "2-digit" });
}

/** @param {number} ms @param {string} tz */
export function clockSeconds(ms, tz) {
  return say(new Date(ms), tz, { hour: "2-digit", minute: "2-digit", second: "2-digit" });
}

/** For tooltips: the whole time with its zone. @param {number} ms @param {string} tz */
export function fullTime(ms, tz) {
  return say(new Date(ms), tz, {
    weekday: "short",
    day: "numeric",
    month: "short",
    year: "numeric",
    hour: "2-digit",
    minute: "2-digit",
    second: "2-digit",
    timeZoneName: "short",
  });
}

/** Heading of a day in a channel. @param {number} ms @param {string} tz @param {number} nowMs */
export function dayName(ms, tz, nowMs) {
  const word = near(ms, tz, nowMs);
  if (word !== null) return word[0]?.toUpperCase() + word.slice(1);
  return say(new Date(ms), tz, { weekday: "long", day: "numeric", month: "long" });
}
