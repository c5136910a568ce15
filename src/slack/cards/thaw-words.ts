/** What somebody hears who asked for a thaw. Mrkdwn, everything foreign escaped. */
import { assertNever } from "../../domain/assert-never.js";
import { capital } from "../../domain/text/capital.js";
import { listOf } from "../../domain/text/list-of.js";
import type { FreezeKind, FreezeState, ThawOutcome } from "../../ops/index.js";
import { actorName, escapeText, escapeWithin, oneLine } from "../text/safe.js";
import { localTime } from "../text/time.js";
import { freezeName } from "./ops-cards.js";

const said = (text: string, max = 800): string => escapeWithin(oneLine(text), max).text;
const nameOf = (kind: FreezeKind): string => escapeText(freezeName(kind));

export function thawSentence(outcome: ThawOutcome): string {
  switch (outcome.outcome) {
    case "refused":
      return said(outcome.sentence);
    case "not_frozen":
      return notFrozen(outcome.state.kind, outcome.frozenNow);
    case "thawed":
      return `Thawed: ${nameOf(outcome.state.kind)}. ${whatGoesOn(outcome.stillFrozen)}`;
    case "needs_second":
    case "gone":
      return said(outcome.sentence);
    case "kept_frozen":
      return `It stays frozen: ${nameOf(outcome.state.kind)}.`;
    default:
      return assertNever(outcome, "outcome of a thaw");
  }
}

/** Another switch may hold it back all the same: that one is named, with the command that turns it back. */
function notFrozen(kind: FreezeKind, frozenNow: readonly FreezeState[]): string {
  const whole = frozenNow.find((state) => state.kind === "all");
  if (kind !== "all" && whole !== undefined)
    return `${capital(nameOf(kind))} are frozen with everything,${frozenBy(whole)}; they have no freeze of their own. Nothing was changed. \`/ops thaw\` thaws everything.`;
  if (frozenNow.length === 0) return `Not frozen: ${nameOf(kind)}. Nothing was changed.`;
  const frozen = listOf(frozenNow.map((state) => `${nameOf(state.kind)},${frozenBy(state)}`));
  const commands = listOf(frozenNow.map((state) => `\`/ops thaw ${state.kind}\``));
  const before =
    kind === "all"
      ? `Not everything is frozen, only ${frozen}`
      : `Not frozen: ${nameOf(kind)}. Frozen: ${frozen}`;
  return `${before}. Nothing was changed. ${commands} ${frozenNow.length === 1 ? "thaws that" : "thaw them"}.`;
}

/** " since … by …: the reason" */
export function frozenBy({ at, by, reason }: FreezeState): string {
  const when = at === null ? "" : ` since ${localTime(at)}`;
  const who = by === null ? "" : ` by ${actorName(by)}`;
  return `${when}${who}${reason === null || reason === "" ? "" : ` (${said(reason, 300)})`}`;
}

/** One sentence, plain: whether anything is held back by another switch. */
const whatGoesOn = (stillFrozen: readonly FreezeKind[]): string =>
  stillFrozen.length === 0
    ? "What waited goes on."
    : `Still frozen by a switch of its own: ${stillFrozen.map(nameOf).join(", ")}. Thaw that too if it is meant.`;
