/** What people and the app write, as the page reads it: Slack's rules, and nothing that becomes markup by accident. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";

interface Mark {
  t: string;
  text?: string;
  url?: string;
  id?: string;
  name?: string;
  children?: Mark[];
}

/** The page's modules carry their types as comments, which the compiler of the tests does not read. */
const { parseMrkdwn, parsePlain } = (await import(
  new URL("../../../src/sandbox/page/text/mrkdwn.js", import.meta.url).href
)) as {
  parseMrkdwn(source: string, options?: { verbatim?: boolean }): Mark[];
  parsePlain(text: string, emoji: boolean): Mark[];
};

/** Short form: marks as brackets, so that a table of cases can be read. */
function short(marks: Mark[]): string {
  return marks
    .map((mark) => {
      const inner = mark.children === undefined ? "" : short(mark.children);
      switch (mark.t) {
        case "text":
          return mark.text ?? "";
        case "break":
          return "⏎";
        case "link":
          return `[${inner}](${mark.url})`;
        case "user":
        case "channel":
        case "group":
          return `{${mark.t} ${mark.id}}`;
        case "emoji":
          return `{${mark.name}}`;
        case "code":
        case "pre":
          return `{${mark.t} ${mark.text}}`;
        default:
          return `{${mark.t}${inner === "" ? "" : ` ${inner}`}}`;
      }
    })
    .join("");
}

describe("mrkdwn", () => {
  it.each([
    ["*bold* and _italic_ and ~gone~", "{bold bold} and {italic italic} and {strike gone}"],
    ["*both _at_ once*", "{bold both {italic at} once}"],
    ["2*3*4 and snake_case_name", "2*3*4 and snake_case_name"],
    ["* not bold *", "* not bold *"],
    ["(*bold*), *bold*!", "({bold bold}), {bold bold}!"],
    ["*one\ntwo*", "*one⏎two*"],
    ["`*code*` stays", "{code *code*} stays"],
    ["*a `*` b*", "{bold a {code *} b}"],
    ["before\n```\nconst a = *1*;\n```\nafter", "before{pre const a = *1*;}after"],
    ["an unclosed ``` fence", "an unclosed ``` fence"],
    ["&gt; quoted\n&gt; twice\nnot", "{quote quoted⏎twice}not"],
    ["&gt;&gt;&gt; all\nof it", "{quote all⏎of it}"],
    ["<https://a.example/x?b=1&amp;c=2|the page>", "[the page](https://a.example/x?b=1&c=2)"],
    ["<mailto:a@b.example|a@b.example>", "[a@b.example](mailto:a@b.example)"],
    ["see https://a.example/x.", "see [https://a.example/x](https://a.example/x)."],
    [
      "<@U_AGENT> <#C_TICK|support> <!subteam^S_SUP> <!here>",
      "{user U_AGENT} {channel C_TICK} {group S_SUP} {broadcast}",
    ],
    [":package: and :no_such_emoji_here:", "{package} and :no_such_emoji_here:"],
    ["&lt;b&gt; &amp;lt;", "<b> &lt;"],
    ["<b>raw</b>", "<b>raw</b>"],
  ])("reads %j as Slack does", (source, wanted) => {
    expect(short(parseMrkdwn(source))).toBe(wanted);
  });

  it("makes no link of an address that a click must not open", () => {
    const marks = parseMrkdwn("<javascript:alert(1)|click> <data:text/html,x|here> <vbscript:x|x>");
    expect(marks.filter((mark) => mark.t === "link")).toEqual([]);
  });

  it("leaves bare addresses alone where the text is verbatim", () => {
    expect(parseMrkdwn("https://a.example", { verbatim: true })).toEqual([
      { t: "text", text: "https://a.example" },
    ]);
  });

  it("keeps every character of a text without marks, and never throws on any other", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary", maxLength: 60 }), (text) => {
        const marks = parseMrkdwn(text);
        const plain = text.replace(/[<>&*_~`:\n]/gu, "");
        if (plain === text && !/https?:/iu.test(text)) expect(short(marks)).toBe(text);
      }),
    );
  });

  it.each(["*a ", "_b ~c *d ", "*_~", "`", "<", "<a ", ":a", "*a _b ~c `d <e ", "&gt; *"])(
    "reads 40 000 characters of %j before anybody notices, and without running out of stack",
    (part) => {
      const text = part.repeat(Math.ceil(40_000 / part.length));
      const started = performance.now();
      expect(parseMrkdwn(text).length).toBeGreaterThan(0);
      // Some milliseconds; the square of the length would be minutes.
      expect(performance.now() - started).toBeLessThan(5_000);
    },
  );
});

describe("plain text", () => {
  it("knows emoji and lines, and nothing else", () => {
    expect(short(parsePlain("*a* :tada:\n<@U1>", true))).toBe("*a* {tada}⏎<@U1>");
    expect(short(parsePlain(":tada:", false))).toBe(":tada:");
  });

  it.each([true, false])(
    "shows what an app escaped as it was typed, decoded once and never a mention (emoji: %s)",
    (emoji) => {
      expect(parsePlain("&lt;!channel&gt; &lt;@U_SUP1&gt; R&amp;D &amp;lt;b&amp;gt;", emoji)).toEqual([
        { t: "text", text: "<!channel> <@U_SUP1> R&D &lt;b&gt;" },
      ]);
    },
  );
});
