/** Slack's date tokens, in the zone of the person who looks. */
import { describe, expect, it } from "vitest";

const { formatDate } = (await import(
  new URL("../../../src/sandbox/page/text/dates.js", import.meta.url).href
)) as {
  formatDate(
    date: { seconds: number; format: string; fallback: string },
    where: { tz: string; nowMs: number },
  ): string;
};

const NOON = Date.UTC(2026, 10, 29, 12, 0, 0);
const say = (format: string, seconds = NOON / 1000, tz = "Europe/London") =>
  formatDate({ seconds, format, fallback: "fallback" }, { tz, nowMs: NOON });

describe("dates in messages", () => {
  it.each([
    ["{date_num} {time}", "2026-11-29 12:00"],
    ["{date}", "29 November 2026"],
    ["{date_short}", "29 Nov 2026"],
    ["{date_long}", "Sunday 29 November 2026"],
    ["{date_short_pretty} {time_secs}", "today 12:00:00"],
    ["until {time}", "until 12:00"],
    ["{ago}", "now"],
  ])("shows %s", (format, wanted) => {
    expect(say(format).replace(",", "")).toBe(wanted);
  });

  it("says yesterday and tomorrow by the person's midnight, not the machine's", () => {
    expect(say("{date_pretty}", NOON / 1000 + 13 * 3600)).toBe("tomorrow");
    expect(say("{date_pretty}", NOON / 1000 + 13 * 3600, "Pacific/Honolulu")).toBe("today");
    expect(say("{date_pretty}", NOON / 1000 - 13 * 3600)).toBe("yesterday");
  });

  it("shows the fallback for a token it does not know and for a time that is none", () => {
    expect(say("{date_fancy}")).toBe("fallback");
    expect(say("{date}", 9e15)).toBe("fallback");
  });
});
