/** Who asks: read anew for every use case, at most 5 s old, failing closed. */
import type { Operation } from "../domain/operation.js";
import { mayFreeze, mayResolve } from "../domain/policy/people.js";
import type { Policy } from "../domain/policy/policy.js";
import type { PersonReading } from "../domain/ports/directory.js";
import type { OpsContext } from "./context.js";
import { findOperation, type Meant } from "./find.js";
import type { Refused, Unresolved } from "./types.js";

/** Oldest reading of a person at a command or a click (CONTRACT §4). */
export const READING_MAX_AGE_MS = 5_000;

export interface Caller {
  readonly outcome: "caller";
  readonly userId: string;
  readonly reading: PersonReading;
  readonly policy: Policy;
}

/** On-call, or a sentence that says why not. `maxAgeMs`: longer only where nothing can be changed. */
export async function authorise(
  ctx: Pick<OpsContext, "directory" | "activePolicy" | "db">,
  userId: string,
  maxAgeMs: number = READING_MAX_AGE_MS,
): Promise<Caller | Refused> {
  const reading = await ctx.directory.person(userId, { maxAgeMs });
  const policy = await ctx.activePolicy(ctx.db);
  const may = mayFreeze(reading);
  return may.may ? { outcome: "caller", userId, reading, policy } : refused(may);
}

/**
 * The operation that on-call names, if this person may decide about it; else a sentence that says why not. `meant`: a form that is only
 * opened shows which operation it is about; what is carried out is named by its id.
 */
export async function authoriseOn(
  ctx: OpsContext,
  request: { readonly userId: string; readonly ref: string },
  meant?: Meant,
): Promise<
  | { readonly outcome: "authorised"; readonly caller: Caller; readonly operation: Operation }
  | Refused
  | Unresolved
> {
  const caller = await authorise(ctx, request.userId);
  if (caller.outcome === "refused") return caller;
  const found = await findOperation(ctx.db, request.ref, meant);
  if (found.outcome === "unresolved") return found;
  const { operation } = found;
  const may = mayResolve(caller.reading, operation, caller.policy);
  return may.may ? { outcome: "authorised", caller, operation } : refused(may);
}

/** How long what needs a second person waits for one. Milliseconds. */
export const secondWithinMs = (policy: Policy): number => policy.resolution.expireAfterMinutes * 60_000;

export const refused = (may: { readonly reason: string; readonly sentence: string }): Refused => ({
  outcome: "refused",
  reason: may.reason,
  sentence: may.sentence,
});
