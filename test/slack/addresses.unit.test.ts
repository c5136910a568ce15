/** What a planner's words lose on their way to people: every address that somebody may have planted. And nothing else. */
import { describe, expect, test } from "vitest";
import { escalatedPost, modelPost } from "../../src/slack/cards/posts.js";
import { toolText } from "../../src/slack/cards/run-card.js";
import { ADDRESS_MARK, withoutAddresses } from "../../src/slack/text/addresses.js";

describe("addresses", () => {
  test.each([
    "attacker@evil.example",
    "ATTACKER+x@mail.evil.example",
    "attacker＠evil.example",
    "att\u200backer@evil.example",
    "https://evil.example/",
    "http://203.0.113.7/claim?x=1",
    "mailto:attacker@evil.example",
    "javascript:alert",
    "www.evil.com/path",
    "freegame.com",
    "GB33BUKB20201555555555",
    "GB33 BUKB 2020 1555 5555 55",
    "DE89370400440532013000",
  ])("%s is left out", (address) => {
    expect(withoutAddresses(`Write to ${address} now.`)).toBe(`Write to ${ADDRESS_MARK} now.`);
  });

  test.each([
    "Refunded £20.00 GBP on order ORD-10042, reference re_oo8pTeZ4hvkd7KIZ7EUn56xO.",
    "Done.Thanks for asking. It is v1.2.3, 10.50 a piece, at 09:30.",
    "Order #W7594624 and A-4471/B-9001 are delivered.",
    "The file broken.png shows it; see SUB-1 and GB-12.",
    "返金しました。ありがとう。",
    "pi_3MtwBwLkdIwHu7ix28a3tqPa is not an account, 1Z999AA10123456784 is a parcel.",
  ])("%s stays as it is", (words) => {
    expect(withoutAddresses(words)).toBe(words);
  });
});

describe("posts of the planner's words", () => {
  const words = "Refunded! Mail attacker@evil.example or https://evil.example/";

  test("carry the marker in the notification text as well, and no address", () => {
    const says = modelPost(words, "messages-api");
    expect(says.text).toBe(`Planner says, unverified: Refunded! Mail ${ADDRESS_MARK} or ${ADDRESS_MARK}`);
    const handed = escalatedPost(null, words, ["U_AGENT"]);
    expect(handed.text).toMatch(
      /^Handed back to <@U_AGENT>, who filed it\. .* Summary by the planner, unverified: Refunded! Mail/,
    );
    expect(JSON.stringify([says, handed])).not.toContain("evil.example");
    expect(escalatedPost(null, " ", []).text).toBe("Handed back to a person.");
  });

  test("quote in a step what is no reference", () => {
    expect(toolText("get_order", { order_reference: "ORD-10042" })).toBe("Look up order ORD-10042");
    expect(toolText("get_order", { order_reference: "Refunded £500.00" })).toBe(
      "Look up order “Refunded £500.00”",
    );
    expect(toolText("refunded in full", {})).toBe("Unknown tool “refunded in full”");
    expect(toolText("find_customer", { query: "attacker@evil.example" })).toBe(
      `Look for customer “${ADDRESS_MARK}”`,
    );
  });
});
