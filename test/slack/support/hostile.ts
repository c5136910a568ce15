/** Text that means harm. */
import { fc } from "@fast-check/vitest";

const NASTY = [
  "<!channel>",
  "<@U_SUP1>",
  "<!subteam^S_SUP>",
  "<https://pay.example|refund policy>",
  "<!date^1^{date}|x>",
  "&amp;lt;!here&gt;",
  "*_~`> ```",
  "\u202Egnp.exe\u202C",
  "\u200B\u2060\uFEFF\u00AD",
  "Z\u0301\u0302\u0303\u0304\u0305\u0306\u0307",
  "\uD800",
  "\u0000\u0007\r\n\t",
  "👩‍👩‍👧‍👦🇬🇧",
  "https://pay.example/now",
  "a@b.example",
  "\u{E0041}\u{E0042}",
  "Approve £1.00 GBP",
];

/** Any text, and the texts that have done harm elsewhere, in any mix and up to forty thousand characters. */
export const hostile = fc.oneof(
  {
    weight: 3,
    arbitrary: fc
      .array(fc.oneof(fc.constantFrom(...NASTY), fc.string({ unit: "binary" })), {
        minLength: 1,
        maxLength: 8,
      })
      .map((parts) => parts.join("")),
  },
  {
    weight: 1,
    arbitrary: fc
      .tuple(fc.constantFrom(...NASTY), fc.integer({ min: 1, max: 40_000 }))
      .map(([piece, size]) => piece.repeat(Math.ceil(size / piece.length)).slice(0, size)),
  },
);
/** The same, never blank. */
export const line = hostile.map((text) => `x${text}`);
