/** Text of people with the names of those whom it mentions: a raw id says nothing to whoever reads it later, and a mention would ping. */
import { cutText } from "../../domain/text/cut.js";
import { mentionedUsers, plainSlackText } from "../../domain/text/slack-text.js";
import { oneLine } from "../text/safe.js";
import type { SlackContext } from "../types.js";

/** A text that mentions more people keeps the ids of the others: nobody's message asks Slack for a crowd. */
const NAMED_AT_MOST = 5;
/** A name may be a day old; it decides nothing. */
const NAME_MAX_AGE_MS = 86_400_000;
const NAME_MAX_CHARS = 40;
/** What names are made of. People choose theirs: one that reads like an order or an address must not become one in the text. */
const NOT_OF_A_NAME = /[^\p{L}\p{M} '’-]/gu;

/** The text as its author saw it. Whose name cannot be read keeps the id, as `plainSlackText` gives it. */
export async function namedText(ctx: Pick<SlackContext, "directory">, wire: string): Promise<string> {
  const names = new Map<string, string>();
  await Promise.all(
    mentionedUsers(wire)
      .slice(0, NAMED_AT_MOST)
      .map(async (id) => {
        const reading = await ctx.directory.person(id, { maxAgeMs: NAME_MAX_AGE_MS });
        const name = reading.ok ? nameIn(reading.person.displayName) : "";
        if (name !== "") names.set(id, name);
      }),
  );
  return plainSlackText(wire, names);
}

const nameIn = (displayName: string): string =>
  cutText(oneLine(displayName.replace(NOT_OF_A_NAME, " ")), NAME_MAX_CHARS);
