/** What the provider has shown of an operation, oldest first, each fact once: Slack and the shell tell the same. Pure. */
import { formatMoney } from "../domain/money.js";
import { ENDED, type Operation } from "../domain/operation.js";
import { capital } from "../domain/text/capital.js";
import { wasAnswered } from "./attempt-runs.js";
import type { LastLook, OperationView } from "./types.js";

export interface EvidenceTold {
  readonly at: Date;
  /** How it became known: "asked", "told by the provider". */
  readonly how: string;
  readonly sentence: string;
}

const HOW: Readonly<Record<string, string>> = {
  response: "its answer",
  late_response: "its late answer",
  probe: "asked",
  sweep: "found in its list",
  webhook: "told by the provider",
  person: "by a person",
};

/**
 * What was stored, then what was last asked where nothing newer has come since. An earlier reading that showed the very same is the
 * same fact, and the last look tells it.
 */
export function evidenceTold({
  evidence,
  lastLook,
}: Pick<OperationView, "evidence" | "lastLook">): EvidenceTold[] {
  const newest = evidence.at(-1)?.at ?? null;
  const look = lastLook === null || (newest !== null && newest > lastLook.at) ? null : lastLook;
  const again = (one: OperationView["evidence"][number]): boolean =>
    look !== null &&
    (one.source === "probe" || one.source === "sweep") &&
    one.shows !== null &&
    look.shows.includes(one.shows);
  const kept = evidence.filter((one) => !again(one));
  const told = ({ shows }: LastLook): boolean =>
    shows.length === 1 && kept.at(-1)?.shows != null && kept.at(-1)?.shows === shows[0];
  return [
    ...kept.map(({ at, source, says }) => ({ at, how: HOW[source] ?? source, sentence: says })),
    ...(look === null
      ? []
      : [{ at: look.at, how: "last asked", sentence: told(look) ? AS_BEFORE : look.sentence }]),
  ];
}

/** The newest of what is stored shows the very same, and stands above. */
const AS_BEFORE = "The provider shows the same.";

/** "£20.00 GBP on its payment, by no operation of ours" */
export const elsewhereWords = (money: NonNullable<OperationView["refundedElsewhere"]>): string =>
  `${formatMoney(money)} on its payment, by no operation that stands as carried out here`;

/** Nothing of it is to be sent any more, unless it is opened again. */
export const hasEnded = ({ status }: Pick<Operation, "status">): boolean => ENDED.has(status);

/** Where nothing was sent: what has ended waits for nothing, and where the same was asked for again, that is named. */
export function nothingSentWords(
  { operation, next }: Pick<OperationView, "operation" | "next">,
  named: (next: Operation) => string,
): string {
  if (!hasEnded(operation)) return "Nothing yet.";
  return next === null ? "Nothing was sent." : `${capital(askedAnewWords(named(next)))}.`;
}

/** Of what ended without an effect: one effect at most comes of both. */
export const askedAnewWords = (next: string): string => `nothing was sent; asked for anew as ${next}`;

/** Where the provider has shown nothing. An answer to what was sent is from the provider, too. */
export function noEvidenceWords({
  attempts,
  operation,
}: Pick<OperationView, "attempts" | "operation">): string {
  if (attempts.some(wasAnswered)) return "The provider's answer to what was sent, as it stands above.";
  return hasEnded(operation) ? "Nothing from the provider." : "Nothing from the provider yet.";
}
