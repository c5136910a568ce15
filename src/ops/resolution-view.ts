/** Resolutions and what the provider said, as views. */
import { assertNever } from "../domain/assert-never.js";
import { effectWords, elsewhereWords, fieldsWords, unaskedSentence } from "../domain/effect-words.js";
import type { Evidence, ProviderEffect } from "../domain/evidence.js";
import type { Json } from "../domain/json.js";
import { remarkOn } from "../domain/named-evidence.js";
import { AGREED_ON, answerShown, REFUSED_BY, type Resolution, SHOWN_SINCE } from "../ledger/index.js";
import { refusedSentence } from "./not-safe.js";
import { foundSentence } from "./timeline.js";
import type { ProbeView, ResolutionView } from "./types.js";

export function resolutionView(row: Resolution): ResolutionView {
  return {
    id: row.id,
    operationId: row.operationId,
    verb: row.verb,
    state: row.state,
    by: row.by,
    reason: row.reason,
    evidenceRef: row.evidenceRef,
    ...storedAnswers(row.probe),
    refusal: storedRefusal(row.probe),
    secondBy: row.secondBy,
    secondVerdict: row.secondVerdict,
    secondNote: row.secondNote,
    expiresAt: row.expiresAt,
    createdAt: row.createdAt,
  };
}

/** Of a confirmation: how the word for it and what the provider showed differ; null: they do not. */
export function resolutionRemark({
  verb,
  evidenceRef,
  probe,
  shownSince,
  agreedOn,
}: Pick<ResolutionView, "verb" | "evidenceRef" | "probe" | "shownSince" | "agreedOn">): string | null {
  const counts = agreedOn ?? shownSince ?? probe;
  return verb === "confirm" && counts !== null
    ? remarkOn({ says: counts.says, ref: counts.providerRef }, evidenceRef)
    : null;
}

/** What the provider said just now, in one sentence. */
export function probeView(evidence: Evidence): ProbeView {
  switch (evidence.says) {
    case "committed":
      if (evidence.postcondition === "holds")
        return view(evidence.says, evidence.effect, `The provider shows it: ${described(evidence.effect)}.`);
      return {
        ...view(
          evidence.says,
          evidence.effect,
          `The provider shows ${described(evidence.effect)}${elsewhereWords(evidence.effect, evidence.differs)}, which differs from what was asked for in ${fieldsWords(evidence.differs)}.`,
        ),
        differs: true,
      };
    case "duplicate":
      return view(
        evidence.says,
        evidence.effects[0] ?? null,
        `The provider shows it more than once: ${evidence.effects.map(described).join("; ")}.`,
      );
    case "pending":
      return view(
        evidence.says,
        evidence.effect,
        `The provider has accepted ${described(evidence.effect)} and it is pending: ${evidence.reason.replaceAll("_", " ")}.`,
      );
    case "failed_at_provider":
      return view(
        evidence.says,
        evidence.effect,
        `The provider accepted ${described(evidence.effect)}, and it failed there: ${evidence.code.replaceAll("_", " ")}.`,
      );
    case "absent":
      return view(evidence.says, null, "The provider shows nothing of it now.");
    case "unattributed":
      return view(
        evidence.says,
        evidence.effects[0] ?? null,
        `The provider shows what nobody here asked for: ${evidence.effects.map(described).join("; ")}.`,
      );
    case "unknown":
      return view(evidence.says, null, unaskedSentence(evidence.reason));
    default:
      return assertNever(evidence);
  }
}

function view(says: string, effect: ProviderEffect | null, sentence: string): ProbeView {
  return { says, providerRef: effect?.ref ?? null, sentence };
}

const described = (effect: ProviderEffect): string =>
  `${effectWords(effect)} (${effect.status.replaceAll("_", " ")})`;

/** What the provider had said when the first person decided, as the row keeps it; null: nothing was kept. */
function storedProbe(stored: Resolution["probe"]): ProbeView | null {
  const says = stored["says"];
  if (typeof says !== "string") return null;
  const ref = stored["providerRef"] ?? refOf(stored["effect"]);
  const sentence = stored["sentence"];
  return {
    says,
    providerRef: typeof ref === "string" ? ref : null,
    sentence:
      typeof sentence === "string"
        ? sentence
        : (foundSentence(stored) ?? `The provider said: ${says.replaceAll("_", " ")}.`),
  };
}

/** What the provider had answered when it was asked for, since, and at the agreement, as the row keeps it. */
export function storedAnswers(
  stored: Resolution["probe"],
): Pick<ResolutionView, "probe" | "shownSince" | "shownTimes" | "agreedOn"> {
  const { shown, times } = answerShown({ probe: stored });
  const since = stored[SHOWN_SINCE] === undefined ? null : shown;
  return {
    probe: storedProbe(stored),
    shownSince: answerIn(since),
    shownTimes: times,
    agreedOn: answerIn(stored[AGREED_ON] ?? null),
  };
}

const answerIn = (stored: Json): ProbeView | null =>
  typeof stored === "object" && stored !== null && !Array.isArray(stored) ? storedProbe(stored) : null;

/** Why a request was refused at the agreement, and what the provider showed then, in sentences; null: it was not, or that was not kept. */
export function storedRefusal(stored: Resolution["probe"]): string | null {
  const refusal = stored[REFUSED_BY];
  if (typeof refusal !== "object" || refusal === null || Array.isArray(refusal)) return null;
  const { code, shown, other } = refusal;
  const found = shown === undefined ? null : foundSentence(shown);
  return [
    ...(found === null ? [] : [found]),
    refusedSentence(typeof code === "string" ? code : "", typeof other === "string" ? other : undefined),
  ].join(" ");
}

function refOf(effect: unknown): unknown {
  return typeof effect === "object" && effect !== null && "ref" in effect ? effect.ref : null;
}
