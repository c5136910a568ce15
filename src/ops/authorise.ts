/** Who asks: read anew for every use case, at most 5 s old, failing closed. */
import { mayFreeze } from "../domain/policy/people.js";
import type { Policy } from "../domain/policy/policy.js";
import type { PersonReading } from "../domain/ports/directory.js";
import type { OpsContext } from "./context.js";
import type { Refused } from "./types.js";

/** Oldest reading of a person at a command or a click (CONTRACT §4). */
export const READING_MAX_AGE_MS = 5_000;

export interface Caller {
  readonly outcome: "caller";
  readonly userId: string;
  readonly reading: PersonReading;
  readonly policy: Policy;
}

/** On-call, or a sentence that says why not. */
export async function authorise(
  ctx: Pick<OpsContext, "directory" | "activePolicy" | "db">,
  userId: string,
): Promise<Caller | Refused> {
  const reading = await ctx.directory.person(userId, { maxAgeMs: READING_MAX_AGE_MS });
  const policy = await ctx.activePolicy(ctx.db);
  const may = mayFreeze(reading);
  return may.may ? { outcome: "caller", userId, reading, policy } : refused(may);
}

/** How long what needs a second person waits for one. Milliseconds. */
export const secondWithinMs = (policy: Policy): number => policy.resolution.expireAfterMinutes * 60_000;

export const refused = (may: { readonly reason: string; readonly sentence: string }): Refused => ({
  outcome: "refused",
  reason: may.reason,
  sentence: may.sentence,
});
