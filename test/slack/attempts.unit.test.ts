/** What was sent, in words: no word of the database, and no line twice. */
import { expect, test } from "vitest";
import { attemptLines } from "../../src/slack/cards/attempts.js";

const at = (minute: number): Date => new Date(Date.UTC(2026, 10, 29, 12, minute));
const told = (lines: readonly string[]): string[] =>
  lines.map((line) => line.replaceAll(/<!date[^|]*\|29 Nov 2026, ([^>]*)>/gu, "$1"));

test("tries that went alike are one line; another code, or another verdict, begins a new one", () => {
  const tries = [
    ["unknown", "connection_lost"],
    ["unknown", "connection_lost"],
    ["unknown", "timeout"],
    ["not_executed", "rate_limit"],
    ["unknown", "timeout"],
    ["open", null],
  ] as const;
  const lines = attemptLines(
    tries.map(([verdict, code], n) => ({ number: n + 1, startedAt: at(n), verdict, code })),
  );
  expect(told(lines)).toEqual([
    "• attempts 1 to 2, 12:00 UTC to 12:01 UTC: no clear answer, may have been carried out (connection lost)",
    "• attempt 3, 12:02 UTC: no clear answer, may have been carried out (timeout)",
    "• attempt 4, 12:03 UTC: certainly not carried out, may be sent again (rate limit)",
    "• attempt 5, 12:04 UTC: no clear answer, may have been carried out (timeout)",
    "• attempt 6, 12:05 UTC: no answer yet",
  ]);
});

test("nothing sent has no line, and a foreign code is text", () => {
  expect(attemptLines([])).toEqual([]);
  const [line] = attemptLines([{ number: 1, startedAt: at(0), verdict: "rejected", code: "<!channel>" }]);
  expect(line).toContain("refused by the provider, not carried out (&lt;!channel&gt;)");
});
