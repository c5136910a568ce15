/** What was sent, in words: no word of the database, and no line twice. */
import { expect, test } from "vitest";
import { OPERATION_STATUSES } from "../../src/domain/operation.js";
import { attemptLines } from "../../src/slack/cards/attempts.js";

const at = (minute: number): Date => new Date(Date.UTC(2026, 10, 29, 12, minute));
const PARKED = { status: "QUARANTINED", attempts: 1 } as const;
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
    { status: "DISPATCHED", attempts: 6 },
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
  expect(attemptLines([], PARKED)).toEqual([]);
  const [line] = attemptLines(
    [{ number: 1, startedAt: at(0), verdict: "rejected", code: "<!channel>" }],
    PARKED,
  );
  expect(line).toContain("refused by the provider, not carried out (&lt;!channel&gt;)");
});

test.each(OPERATION_STATUSES)(
  "an attempt without an answer is waited for only while it is under way: %s",
  (status) => {
    const [line] = attemptLines([{ number: 1, startedAt: at(0), verdict: "open", code: null }], {
      status,
      attempts: 1,
    });
    if (status === "DISPATCHED") expect(line).toContain("no answer yet");
    else expect(line).toContain("no answer: the worker was lost; what became of it is told below");
  },
);

test("an attempt whose worker was lost is told as that while the next one is under way", () => {
  const open = (number: number) => ({ number, startedAt: at(number), verdict: "open", code: null });
  const lines = attemptLines([open(1), open(2)], { status: "DISPATCHED", attempts: 2 });
  expect(lines).toEqual([
    expect.stringContaining("attempt 1, "),
    expect.stringMatching(/attempt 2, .*: no answer yet$/u),
  ]);
  expect(lines[0]).toContain("the worker was lost");
});

test("a stored answer that came again reads like no second effect", () => {
  const attempt = (number: number, verdict: string, replayed: boolean) => ({
    number,
    startedAt: at(0),
    verdict,
    code: null,
    replayed,
  });
  expect(
    told(
      attemptLines(
        [attempt(1, "committed", false), attempt(2, "committed", true), attempt(3, "rejected", true)],
        PARKED,
      ),
    ),
  ).toEqual([
    "• attempt 1, 12:00 UTC: carried out",
    "• attempt 2, 12:00 UTC: the provider gave its stored answer again (carried out before); nothing new was done",
    "• attempt 3, 12:00 UTC: the provider gave its stored answer again (refused before), not carried out",
  ]);
});

test.each([
  ["unknown", "idempotency_key_in_use", "an earlier request with its key was still being executed"],
  ["failed_at_provider", "lost_or_stolen_card", "the card was lost or stolen"],
  ["failed_at_provider", "expired_or_canceled_card", "the card has expired or was cancelled"],
] as const)("%s by %s is told in words", (verdict, code, words) => {
  const [line] = attemptLines([{ number: 1, startedAt: at(0), verdict, code }], PARKED);
  expect(line).toContain(`(${words})`);
});
