/** Freeze and thaw: the switch that stops new effects, who may turn it back, and the lines at which it trips by itself. */

import { mayThaw } from "../domain/policy/people.js";
import { cutText } from "../domain/text/cut.js";
import * as ledger from "../ledger/index.js";
import { authorise, type Caller, refused, secondWithinMs } from "./authorise.js";
import type { OpsContext } from "./context.js";
import { typedAtOf } from "./form-text.js";
import { showSwitch } from "./show-switch.js";
import type { FreezeKind, FreezeOutcome, FreezeState, OpsUseCases, ThawOutcome } from "./types.js";
import { inFlight } from "./views.js";

/** Who froze, when it was no person. */
export const TRIPPED = "system:trip";

const REASON_MAX_CHARS = 500;

/** After this answers, nothing new of the kind leaves, anywhere. */
export async function freeze(
  ctx: OpsContext,
  request: Parameters<OpsUseCases["freeze"]>[0],
): Promise<FreezeOutcome> {
  const reason = cutText(request.reason.trim(), REASON_MAX_CHARS);
  if (reason === "") return { outcome: "invalid", sentence: "Say why, so that others understand it later." };
  const caller = await authorise(ctx, request.userId);
  if (caller.outcome === "refused") return caller;
  const { state, already, used } = await ledger.freeze(ctx.ledger, {
    kind: request.kind,
    by: request.userId,
    reason,
    ...commandOf(request),
  });
  if (used && !state.frozen) return { outcome: "invalid", sentence: USED };
  if (!already) await showSwitch(ctx, state);
  return { outcome: "frozen", state, already, inFlight: await inFlight(ctx) };
}

/** Others turn the switch meanwhile, which must be judged anew; more often than this they do not. */
const MOVED_TRIES = 5;

export async function thaw(
  ctx: OpsContext,
  request: Parameters<OpsUseCases["thaw"]>[0],
): Promise<ThawOutcome> {
  const caller = await authorise(ctx, request.userId);
  if (caller.outcome === "refused") return caller;
  for (let tries = 1; ; tries += 1) {
    const outcome = await thawAsItStands(ctx, caller, request);
    if (outcome !== "moved") return outcome;
    if (tries === MOVED_TRIES)
      return { outcome: "gone", state: await freezeState(ctx, request.kind), sentence: GONE };
  }
}

async function thawAsItStands(
  ctx: OpsContext,
  caller: Caller,
  { userId, kind, command, typedAt }: Parameters<OpsUseCases["thaw"]>[0],
): Promise<ThawOutcome | "moved"> {
  const state = await freezeState(ctx, kind);
  if (!state.frozen) return notFrozen(ctx, state);
  const typed = {
    kind,
    by: userId,
    version: state.version,
    ...commandOf({ command }),
    ...typedAtOf({ typedAt }),
  };
  const may = mayThaw(caller.reading, keyOf(caller, state.by), caller.policy);
  if (may.may) return thawed(ctx, typed);
  if (may.reason !== "same_person") return refused(may);
  const withinMs = secondWithinMs(caller.policy);
  const asked = await ledger.askThaw(ctx.ledger, { ...typed, withinMs });
  // The request of this very command, which still stands, is shown once more.
  const stands = asked.kept === "used" && asked.state.thawAskedBy !== null;
  if (asked.kept !== null && !stands) return keptWith(asked.state, asked.kept);
  return { outcome: "needs_second", state: asked.state, sentence: may.sentence };
}

async function thawed(
  ctx: OpsContext,
  typed: Parameters<typeof ledger.thaw>[1],
): Promise<ThawOutcome | "moved"> {
  const { state, changed, kept } = await ledger.thaw(ctx.ledger, typed);
  if (kept !== null && state.frozen) return keptWith(state, kept);
  if (changed) await showSwitch(ctx, state);
  return changed ? thawedNow(ctx, state) : notFrozen(ctx, state);
}

const keptWith = (state: FreezeState, kept: ledger.ThawKept): ThawOutcome | "moved" =>
  kept === "moved" ? kept : { outcome: "gone", state, sentence: kept === "used" ? USED : FROZEN_SINCE };

const commandOf = ({ command }: { readonly command?: string | null | undefined }): { command?: string } =>
  command === undefined || command === null ? {} : { command };

const USED =
  "This command was carried out before, and the switch was turned since. Nothing was changed; type it again if you mean it now.";
const FROZEN_SINCE =
  "It was frozen after you typed this. Nothing was changed; type it again if you mean that freeze.";

/**
 * The other person's answer to a thaw that waits, as the card of that version asks for it. Who froze, or asked for the thaw, is
 * not another person.
 */
export async function secondThaw(
  ctx: OpsContext,
  request: Parameters<OpsUseCases["secondThaw"]>[0],
): Promise<ThawOutcome> {
  const caller = await authorise(ctx, request.userId);
  if (caller.outcome === "refused") return caller;
  const state = await freezeState(ctx, request.kind);
  if (!state.frozen) return notFrozen(ctx, state);
  for (const other of [state.by, state.thawAskedBy]) {
    const may = mayThaw(caller.reading, keyOf(caller, other), caller.policy);
    if (!may.may) return refused(may);
  }
  const answer = { kind: request.kind, by: request.userId, version: request.version };
  const agreed = request.verdict === "agree";
  const result = await (agreed ? ledger.agreeThaw : ledger.refuseThaw)(ctx.ledger, answer);
  if (!result.changed) return { outcome: "gone", state: result.state, sentence: GONE };
  if (agreed) await showSwitch(ctx, result.state);
  return agreed ? thawedNow(ctx, result.state) : { outcome: "kept_frozen", state: result.state };
}

const GONE =
  "This request for a thaw is no longer open: it was answered, ran out, or the switch was turned meanwhile. Nothing was changed.";

const frozenNow = async (ctx: Pick<OpsContext, "db">): Promise<readonly FreezeState[]> =>
  (await ledger.freezeStates(ctx.db)).filter(({ frozen }) => frozen);

const notFrozen = async (ctx: Pick<OpsContext, "db">, state: FreezeState): Promise<ThawOutcome> => ({
  outcome: "not_frozen",
  state,
  frozenNow: await frozenNow(ctx),
});

/** Switches are turned one by one: one that is still on is said, because it still holds back what it names. */
async function thawedNow(ctx: Pick<OpsContext, "db">, state: FreezeState): Promise<ThawOutcome> {
  const others = await frozenNow(ctx);
  return { outcome: "thawed", state, stillFrozen: others.map(({ kind }) => kind) };
}

/** A user id as the person it belongs to, when that is the caller; otherwise as it is. */
function keyOf({ reading }: Caller, userId: string | null): string | null {
  if (userId === null || !reading.ok) return userId;
  return reading.person.ids.includes(userId) ? reading.person.personKey : userId;
}

export async function freezeState(ctx: Pick<OpsContext, "db">, kind: FreezeKind): Promise<FreezeState> {
  const state = (await ledger.freezeStates(ctx.db)).find((each) => each.kind === kind);
  if (state === undefined) throw new Error(`there is no freeze switch for ${kind}`);
  return state;
}
