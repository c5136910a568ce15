/** Names in a ticket's text are chosen by their owners: they read well and are nothing else. */
import { describe, expect, test } from "vitest";
import type { Directory, PersonReading } from "../../src/domain/ports/directory.js";
import { findReferences } from "../../src/domain/text/references.js";
import { namedText } from "../../src/slack/people/names.js";

const asked: string[] = [];
function directory(names: Readonly<Record<string, string>>): { directory: Directory } {
  const person = async (userId: string): Promise<PersonReading> => {
    asked.push(userId);
    const displayName = names[userId];
    if (displayName === undefined) return { ok: false, reason: "ratelimited" };
    return {
      ok: true,
      person: {
        userId,
        ids: [userId],
        personKey: `T1:${userId}`,
        teamId: "T1",
        displayName,
        standing: "member",
        roles: [],
        rolesUnreadable: [],
        roleEvidence: {},
        fetchedAt: new Date(0),
      },
    };
  };
  return { directory: { person, members: async () => ({ ok: false, reason: "not asked here" }) } };
}

describe("a text with the names of those whom it mentions", () => {
  test("reads as its author saw it; whose name cannot be read keeps the id", async () => {
    const ctx = directory({ U1: "Zoë O'Neill-Šimić" });
    expect(await namedText(ctx, "ask <@U1> and <@U2>: ORD-1")).toBe("ask @Zoë O'Neill-Šimić and @U2: ORD-1");
  });

  test("takes no order, address or control from a name", async () => {
    const ctx = directory({ U1: "ORD-10042 bob@shop.example <!here> \u202e\n*x*" });
    const text = await namedText(ctx, "refund it, says <@U1>");
    expect(text).toMatch(/^refund it, says @[\p{L} -]+$/u);
    expect(findReferences(text)).toEqual(findReferences("refund it"));
  });

  test("asks for a few people, however many are mentioned, and for nobody twice", async () => {
    asked.length = 0;
    const many = Array.from({ length: 40 }, (_unused, n) => `<@U${n % 20}>`).join(" ");
    await namedText(directory({}), many);
    expect(asked).toEqual(["U0", "U1", "U2", "U3", "U4"]);
  });
});
