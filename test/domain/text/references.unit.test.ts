import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  findReferences,
  normalEmail,
  plainSpelling,
  referenceSpellings,
} from "../../../src/domain/text/references.js";
import { plainSlackText } from "../../../src/domain/text/slack-text.js";

describe("Slack's text as its author saw it", () => {
  it.each([
    [
      "refund <mailto:tom.w@shop.example|tom.w@shop.example> order <tel:10042|ORD-10042> R&amp;D jacket",
      "refund tom.w@shop.example order ORD-10042 R&D jacket",
    ],
    ["&amp;lt;b&amp;gt;", "&lt;b&gt;"],
    ["a &lt;@U1&gt; b", "a <@U1> b"],
    ["<@U_SUP1> and <@U2|cancel ORD-1>", "@colleague and @colleague"],
    ["<#C1|tickets> <#C2>", "#tickets #C2"],
    ["<!channel> <!here|here> <!subteam^S1|@supervisors>", "@channel here @supervisors"],
    ["<!date^1392734382^{date}|Feb 18, 2014>", "Feb 18, 2014"],
    ["<https://pay.example|refund policy>", "refund policy (https://pay.example)"],
    ["<http://shop.example|shop.example>", "shop.example"],
    ["<https://shop.example/a?b=1&amp;c=2>", "https://shop.example/a?b=1&c=2"],
    ["<mailto:a@b.example>", "a@b.example"],
    ["5 < 6 > 4", "5 < 6 > 4"],
    ["", ""],
  ])("%s", (raw, plain) => {
    expect(plainSlackText(raw)).toBe(plain);
  });

  it("never throws and never decodes twice, whatever arrives", () => {
    fc.assert(
      fc.property(
        fc.string({
          unit: fc.constantFrom("&", "amp;", "lt;", "<", ">", "|", "@", "#", "!", "a", "mailto:"),
        }),
        (raw) => {
          expect(
            plainSlackText(raw.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;")),
          ).toBe(raw);
        },
      ),
    );
  });
});

describe("references in a ticket", () => {
  it.each<[text: string, includes: string[]]>([
    ["ORD-1001 came broken, $20 back please", ["ORD-1001"]],
    ["ord-1001", ["ORD-1001"]],
    ["order #ORD-1001.", ["ORD-1001"]],
    ["ORD1001", ["ORD-1001"]],
    ["Ord 1001", ["ORD-1001"]],
    ["ORD\u20111001 and A\u20134471", ["ORD-1001", "A-4471"]],
    ["ORD\u00a01001", ["ORD-1001"]],
    ["OR\u200bD-1001", ["ORD-1001"]],
    ["ＯＲＤ－１００１", ["ORD-1001"]],
    ["(A-4471/B-9001)", ["A-4471/B-9001"]],
    ["A-4471, B-9001", ["A-4471", "B-9001"]],
    ["my order is #W2378156", ["#W2378156", "W2378156"]],
    ["ORD-JP1", ["ORD-JP1"]],
    ["ORD-BIG", ["ORD-BIG"]],
    ["order_5f3a", ["order_5f3a"]],
  ])("%s", (text, includes) => {
    const { candidates } = findReferences(text);
    for (const each of includes) expect(candidates).toContain(each);
  });

  it("a slash between two orders names both", () => {
    expect(findReferences("A-4471/B-9001").lookalikes).toEqual(["A-4471", "B-9001"]);
    expect(findReferences("A-4471/B-9001").candidates).toEqual(expect.arrayContaining(["A-4471", "B-9001"]));
  });

  it.each<[string, string[]]>([
    ["refund tom.w@shop.example please", ["tom.w@shop.example"]],
    ["Pat@Shop.example and pat@shop.example", ["pat@shop.example"]],
    ["(tom@shop.example).", ["tom@shop.example"]],
    ["write to anna+orders@mail.shop.co.uk!", ["anna+orders@mail.shop.co.uk"]],
    ["@U_SUP1 me@ @shop.example a@b", []],
  ])("e-mail addresses in: %s", (text, emails) => {
    expect(findReferences(text).emails).toEqual(emails);
  });

  it("an address is not searched for orders", () => {
    expect(findReferences("mail ord-1001@shop.example").candidates).not.toContain("ORD-1001");
  });

  it("says which words look like an order, for an answer when there is none", () => {
    expect(findReferences("ord-999 and jacket-blue, 20-30 euros, e-mail").lookalikes).toEqual(["ORD-999"]);
  });

  it("stays small and quick on 40,000 characters of anything", () => {
    const walls = [
      "a-1 ".repeat(10_000),
      "-".repeat(40_000),
      `a${"-1".repeat(20_000)}`,
      "a@".repeat(20_000),
      "x1y2".repeat(10_000),
      "a.".repeat(20_000),
    ];
    for (const wall of walls) {
      const began = performance.now();
      // A word spells six candidates at most, and two more with its neighbour.
      expect(findReferences(wall).candidates.length).toBeLessThanOrEqual(8 * 20_000);
      expect(performance.now() - began).toBeLessThan(5_000);
    }
  });

  it.each([
    [
      "emoji",
      Array.from({ length: 300 }, (_, line) => `${"🎉👩‍👩‍👧‍👦:tada:".repeat(6)}1️⃣ ${line}`).join("\n"),
    ],
    [
      "other references",
      Array.from({ length: 1_500 }, (_, line) => `REF-${line} of jacket ${line}a`).join("\n"),
    ],
  ])("finds the order behind 300 lines and more of %s", (_, wall) => {
    expect(findReferences(`${wall}\nord-10042`).candidates).toContain("ORD-10042");
  });

  it("never throws", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary", maxLength: 200 }), (text) => {
        findReferences(text);
        referenceSpellings(text);
      }),
    );
  });
});

describe("one reference that somebody typed", () => {
  it.each([
    ["  ord-10042 ", "ORD-10042"],
    ["#ORD-10042", "ORD-10042"],
    ["“ORD-10042”", "ORD-10042"],
    ["ORD 10042", "ORD-10042"],
    ["ORD—10042", "ORD-10042"],
    ["W2378156", "#W2378156"],
  ])("%s is looked up as %s too", (typed, stored) => {
    expect(referenceSpellings(typed)).toContain(stored);
  });

  it("nothing is looked up for nothing, or for a novel", () => {
    expect(referenceSpellings(" \u200b ")).toEqual([]);
    expect(referenceSpellings("x".repeat(65))).toEqual([]);
  });

  it("addresses compare in one form", () => {
    expect(normalEmail(" Pat@Shop.Example ")).toBe("pat@shop.example");
    expect(plainSpelling("a\u00a0“b” — c")).toBe('a "b" - c');
  });
});
