import { fc, test } from "@fast-check/vitest";
import { describe, expect } from "vitest";
import { storable, storableDocument, storableText } from "../../../src/domain/text/storable.js";

const anyText = fc
  .string({ unit: "binary" })
  .chain((text) =>
    fc.constantFrom("", "\0", "\ud83d", "\ude00", "\u{1f600}", "\\u0000").map((odd) => text + odd + text),
  );
/** As PostgreSQL reads it: no NUL, no half of a pair, escaped or not. */
const holds = (text: string): boolean =>
  !text.includes("\0") && text.isWellFormed() && !/(?<!\\)(?:\\\\)*\\u(?:0000|d[89a-f])/i.test(text);

describe("text for the database", () => {
  test("keeps everything that can be read", () => {
    expect(storableText("a\0b\ud83dc\u{1f600}")).toBe("a\ufffdb\ufffdc\u{1f600}");
    expect(storable({ "k\0": ["x\ud83d", 1, null, { y: true }] })).toEqual({
      "k\ufffd": ["x\ufffd", 1, null, { y: true }],
    });
  });

  test("gives back the very value that needs nothing", () => {
    const value = { a: ["\u{1f600}", { b: 1n }], at: new Date(0) };
    expect(storable(value)).toBe(value);
  });

  test("leaves letters that only look like an escape", () => {
    expect(storableDocument("a person typed \\u0000")).toBe("a person typed \\u0000");
    expect(storableDocument(JSON.stringify({ typed: "\\u0000" }))).toBe(JSON.stringify({ typed: "\\u0000" }));
  });

  test.prop([fc.jsonValue({ stringUnit: "binary" }), anyText])(
    "makes any document one that can be held",
    (value, text) => {
      const document = storableDocument(JSON.stringify({ value, text, list: [text] }));
      expect(holds(document)).toBe(true);
      expect(JSON.parse(document)).toEqual(
        storable(JSON.parse(JSON.stringify({ value, text, list: [text] }))),
      );
    },
  );
});
