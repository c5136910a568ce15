/**
 * Confirm, reject, authorise retry: an on-call person's decision with reason and evidence.
 *
 * 1. The provider is asked when the form is opened, and its answer is shown there; at the submit it is asked again. Where it settles the question, evidence settles the operation and
 *    not the verb.
 * 2. Nobody resolves what they filed; nor what they approved, where the policy says so.
 * 3. Whether an attempt can still commit, and how many people it takes, is judged by the ledger in the transaction that
 *    writes; what is judged here is judged again there.
 */

import type { Evidence } from "../domain/evidence.js";
import type { Operation } from "../domain/operation.js";
import { mayAgree } from "../domain/policy/people.js";
import type { Policy } from "../domain/policy/policy.js";
import { cutText } from "../domain/text/cut.js";
import * as ledger from "../ledger/index.js";
import { authorise, authoriseOn, type Caller, refused, secondWithinMs } from "./authorise.js";
import type { OpsContext } from "./context.js";
import { isResolvable, verbViews } from "./explain.js";
import { explained } from "./explained.js";
import { onlyOneThat } from "./find.js";
import { missingText, TEXT_MAX_CHARS, typedAtOf } from "./form-text.js";
import { notResolvable, settledByEvidence, told } from "./resolution-outcome.js";
import { probeView, resolutionView } from "./resolution-view.js";
import type {
  OpsUseCases,
  ResolutionView,
  ResolveOutcome,
  ResolveRequest,
  ResolveVerb,
  SecondOutcome,
  SecondRequest,
} from "./types.js";
import { verbsNow } from "./verbs-now.js";

/**
 * May this person open the form, and what would it take? Asks nobody but the directory. An order finds its operation where one
 * alone is open.
 */
export async function openResolution(
  ctx: OpsContext,
  request: Parameters<OpsUseCases["openResolution"]>[0],
): ReturnType<OpsUseCases["openResolution"]> {
  const allowed = await authoriseOn(
    ctx,
    request,
    onlyOneThat(({ status }) => isResolvable(status)),
  );
  if (allowed.outcome !== "authorised") return allowed;
  const { caller, operation } = allowed;
  const view = await explained(ctx, operation);
  const verb = verbViews(view, caller.policy).find((each) => each.verb === request.verb) ?? {
    verb: request.verb,
    possible: false,
    people: 1 as const,
    sentence: notResolvable(operation),
  };
  return { outcome: "form", operation, verb };
}

/** The provider's word before anything is typed; at the submit it is asked again, because that may be much later. */
export async function askProvider(
  ctx: OpsContext,
  request: Parameters<OpsUseCases["askProvider"]>[0],
): ReturnType<OpsUseCases["askProvider"]> {
  const allowed = await authoriseOn(ctx, request);
  if (allowed.outcome !== "authorised") return allowed;
  return { outcome: "asked", probe: probeView(await ctx.probe(allowed.operation)) };
}

/** Carries a submitted form out. Never throws for what a person, the provider or another click did. */
export async function resolve(ctx: OpsContext, request: ResolveRequest): Promise<ResolveOutcome> {
  const invalid = missingText(request);
  if (invalid !== null) return invalid;
  const allowed = await authoriseOn(ctx, request);
  if (allowed.outcome !== "authorised") return allowed;
  const { caller, operation } = allowed;
  if (!isResolvable(operation.status)) {
    return { outcome: "not_safe", operation, probe: null, sentence: notResolvable(operation) };
  }
  const evidence = await ctx.probe(operation);
  const settled = await settledByEvidence(ctx, operation, request.verb, evidence);
  return settled ?? carryOut(ctx, request, { operation, evidence, caller });
}

/** Reconcilers move an open operation all the time; a person's decision does not lose to their looking. */
const OVERTAKEN_TRIES = 5;

async function carryOut(
  ctx: OpsContext,
  request: ResolveRequest,
  asked: { operation: Operation; evidence: Evidence; caller: Caller },
): Promise<ResolveOutcome> {
  const { evidence, caller } = asked;
  let { operation } = asked;
  for (let tries = 1; ; tries += 1) {
    const standing = await standsNow(ctx, operation, { verb: request.verb, evidence, policy: caller.policy });
    if (standing.refused !== null) return standing.refused;
    const asked = {
      operationId: operation.id,
      expectedVersion: operation.version,
      verb: request.verb,
      by: request.userId,
      reason: cutText(request.reason.trim(), TEXT_MAX_CHARS),
      evidenceRef: cutText(request.evidenceRef.trim(), TEXT_MAX_CHARS),
      probe: evidence,
      needsSecond: standing.people === 2,
      secondWithinMs: secondWithinMs(caller.policy),
      ...typedAtOf(request),
    };
    const result = await ledger.resolve(ctx.ledger, asked).catch(unlessItDoesNotFit);
    if (result === null) return doesNotFit(operation, evidence);
    const byMachine = result.outcome === "overtaken" && result.by === null;
    const now = byMachine ? result.operation : null;
    if (now === null || !isResolvable(now.status) || tries === OVERTAKEN_TRIES) {
      return told(ctx, result, operation, evidence);
    }
    operation = now;
  }
}

/** The second person's click. The provider is asked again: days may lie between. */
export async function second(ctx: OpsContext, request: SecondRequest): Promise<SecondOutcome> {
  const caller = await authorise(ctx, request.userId);
  if (caller.outcome === "refused") return caller;
  const resolution = await ledger.getResolution(ctx.db, request.resolutionId);
  if (resolution === null) {
    return { outcome: "unresolved", sentence: "This request is not known here.", suggestions: [] };
  }
  const operation = await ledger.getOperation(ctx.db, resolution.operationId);
  if (operation === null) throw new Error(`operation ${resolution.operationId} is gone`);
  if (resolution.state !== "proposed" || resolution.verb === "reopen") return over(resolution, operation);
  const { reading } = caller;
  const first =
    reading.ok && reading.person.ids.includes(resolution.by) ? reading.person.personKey : resolution.by;
  const may = mayAgree(reading, first, operation, caller.policy);
  if (!may.may) return refused(may);
  const evidence = await ctx.probe(operation);
  if (request.verdict === "agree") {
    const settled = await settledByEvidence(ctx, operation, resolution.verb, evidence);
    if (settled !== null) return settled;
  }
  if (request.verdict === "agree") {
    const { verb } = resolution;
    const { refused: not } = await standsNow(ctx, operation, { verb, evidence, policy: caller.policy });
    if (not !== null) return not;
  }
  const answer = {
    resolutionId: resolution.id,
    by: request.userId,
    verdict: request.verdict,
    note: cutText(request.note?.trim() ?? "", TEXT_MAX_CHARS) || null,
    probe: evidence,
    ...(request.seen === undefined ? {} : { seen: request.seen }),
  };
  const result = await ledger.secondResolve(ctx.ledger, answer).catch(unlessItDoesNotFit);
  if (result === null) return doesNotFit(operation, evidence);
  if (result.outcome === "shown_anew") {
    const anew = resolutionView(result.resolution);
    return { outcome: "shown_anew", resolution: anew, sentence: answersOtherwise(anew) };
  }
  if (result.outcome === "disagreed") {
    return { outcome: "disagreed", resolution: resolutionView(result.resolution) };
  }
  if (result.outcome === "expired") return over(result.resolution, operation);
  if (result.outcome === "overtaken" && result.by !== null) {
    // Somebody answered between the look and the lock: the request tells what became of it.
    const answered = await ledger.getResolution(ctx.db, resolution.id);
    if (answered !== null && answered.state !== "proposed")
      return over(answered, result.operation ?? operation);
  }
  return told(ctx, result, operation, evidence);
}

/** null: the payment's own numbers do not allow it, so that nothing was written. */
function unlessItDoesNotFit(error: unknown): null {
  if (ledger.doesNotFit(error)) return null;
  throw error;
}

const doesNotFit = (
  operation: Operation,
  evidence: Evidence,
): Extract<ResolveOutcome, { outcome: "not_safe" }> => ({
  outcome: "not_safe",
  operation,
  probe: probeView(evidence),
  sentence:
    "Not done: what its payment has set aside and refunded was changed in the database, and does not hold this. Once that is mended (`countersign audit verify` names the row), decide it again.",
});

/** The person reads both answers: the one that they agreed to, and the one that holds. */
function answersOtherwise({ probe, shownSince }: ResolutionView): string {
  const first = probe === null ? "" : ` When it was asked for: ${probe.sentence}`;
  return `Nothing was done yet, because the card said something else than the provider answers now: ${shownSince?.sentence ?? ""} The card says so now; press Agree there again if you agree to that.${first}`;
}

function over(resolution: ledger.Resolution, operation: Operation): SecondOutcome {
  const by = resolution.secondBy ?? (resolution.state === "applied" ? resolution.by : null);
  return {
    outcome: "overtaken",
    operation,
    by,
    at: resolution.updatedAt,
    sentence: `This request was ${PAST[resolution.state]}.${by === null ? " Ask again if it is still needed." : ""}`,
  };
}

const PAST = {
  proposed: "not one that takes two",
  applied: "carried out already",
  disagreed: "turned down already",
  refused: "refused already",
  superseded: "overtaken: the operation has moved since",
  expired: "left without an answer for too long",
} as const;

/**
 * How the verb stands by that answer, as `/ops show` tells it. Refused here is what the ledger cannot know: where the provider could not
 * be asked, what it showed before still holds; and nothing is authorised while it is frozen.
 */
async function standsNow(
  ctx: OpsContext,
  operation: Operation,
  of: { verb: ResolveVerb; evidence: Evidence; policy: Policy },
): Promise<{ refused: Extract<ResolveOutcome, { outcome: "not_safe" }> | null; people: 1 | 2 }> {
  const view = await explained(ctx, operation);
  const standing = verbsNow(view, of.policy, of.evidence).find(({ verb }) => verb === of.verb);
  if (standing === undefined) return { refused: null, people: 1 };
  const ours =
    (of.evidence.says === "unknown" && operation.status === "QUARANTINED") ||
    (of.verb === "retry" && view.frozen);
  if (standing.possible || !ours) return { refused: null, people: standing.people };
  const probe = probeView(of.evidence);
  const refused = {
    outcome: "not_safe",
    operation,
    probe,
    sentence: saidOnce(probe.sentence, standing.sentence),
  } as const;
  return { refused, people: standing.people };
}

const saidOnce = (asked: string, standing: string): string =>
  standing.includes(asked) ? standing : `${asked} ${standing}`;
