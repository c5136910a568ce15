/**
 * What recovery the contract allows for one operation now, why, and what a person may do: sentences derived from the same
 * pure functions that decide (`recover`, `keyIsSafe`, `inflightBoundPassed`), so that what is explained is what happens.
 */

import { assertNever } from "../domain/assert-never.js";
import type { EffectContract } from "../domain/contract.js";
import { contractBook } from "../domain/contracts.js";
import { type Evidence, effectsOf, type ProviderEffect } from "../domain/evidence.js";
import { type Frozen, frozenReason } from "../domain/frozen.js";
import { rejectionRemark } from "../domain/named-evidence.js";
import { OPEN_OUTCOMES, type Operation, type OperationStatus } from "../domain/operation.js";
import { resolversNeeded } from "../domain/policy/people.js";
import type { Policy } from "../domain/policy/policy.js";
import { quarantineCode, quarantineThen, quarantineWords } from "../domain/quarantine-words.js";
import {
  type AttemptFact,
  inflightBoundPassed,
  keyIsSafe,
  type Move,
  provenNotExecuted,
  recover,
} from "../domain/recovery.js";
import { capital } from "../domain/text/capital.js";
import { asSentence } from "../domain/text/sentence.js";
import { utcSecond } from "../domain/text/utc-time.js";
import { isTriedAgain, SLOW_DOWN, timesTried, triedSentences } from "../domain/tried.js";
import type { ResolveVerb, VerbView } from "./types.js";

/** Times are the database's, durations in milliseconds. */
export interface Explained {
  readonly operation: Operation;
  readonly contract: EffectContract;
  readonly attempts: readonly AttemptFact[];
  readonly now: Date;
  readonly lastSendEndedAt: Date | null;
  readonly nextLookAt: Date | null;
  readonly leaseUntil: Date | null;
  /** What keeps its kind from being sent. */
  readonly frozen: Frozen | null;
  readonly timing: {
    readonly providerTimeoutMs: number;
    readonly sendMarginMs: number;
    readonly quarantineAfterMs: number;
  };
  readonly maxAttempts: number;
  readonly endedBefore: boolean;
}

/** What is known beside the rows: what the provider has said just now (null: it was not asked, or did not answer), and how the verbs stand by that. */
export interface KnownNow {
  readonly asked: Evidence | null;
  readonly verbs: readonly VerbView[];
}

/** One sentence each; the last says what happens next by itself. */
export function recoverySentences(view: Explained, known: KnownNow = NOT_ASKED): readonly string[] {
  const { operation } = view;
  switch (operation.status) {
    case "AWAITING_APPROVAL":
      return [
        "Nothing was sent: it waits for an approval.",
        "It ends by itself when nobody decides in time.",
      ];
    case "PREPARED":
      return ["Nothing that may have committed was sent; the money is set aside.", ...unsentSentences(view)];
    case "DISPATCHED":
      return [...underWay(view), ...promises(view, known)];
    case "OUTCOME_UNKNOWN":
    case "RECONCILING":
      return [...promises(view, known), ...whatIf(view, known), nextSentence(view)];
    case "QUARANTINED":
      return [
        parkedSentence(operation.quarantineReason, known),
        // What the provider showed forbids sending again, whatever its key promises.
        ...(shownAtQuarantine(view)?.effect === true ? [] : promises(view, known)),
        "Only a person, or new evidence from the provider, moves it.",
      ];
    case "CONFIRMED":
    case "REJECTED":
      return [
        operation.resolvedByPerson ? "A person settled it; they may open it again." : "It has ended.",
        ...ending(operation),
        "Evidence from the provider that says otherwise reopens it by itself.",
      ];
    case "DENIED":
    case "EXPIRED":
    case "VOIDED":
      return [
        "It has ended without an effect; nothing was ever sent that may have committed.",
        ...ending(operation),
      ];
    case "REVERSED":
      return [
        "The provider took it back after it was confirmed. It never moves again.",
        "A new refund is its own ticket, or a further refund where the filer asks again.",
      ];
    default:
      return assertNever(operation.status, "operation status");
  }
}

function unsentSentences({ operation, attempts, frozen }: Explained): string[] {
  const tried = isTriedAgain(operation);
  if (frozen !== null)
    return [
      ...(tried ? [`${capital(timesTried(operation.attempts))}, certainly nothing carried out.`] : []),
      `It is not sent as long as this holds: ${frozenReason(frozen)} It goes on by itself when that is thawed.`,
    ];
  if (tried) return [triedSentences(operation, SLOW_DOWN.includes(attempts.at(-1)?.code ?? ""))];
  const { notBefore } = operation;
  return [
    `It is sent as soon as a worker takes it${notBefore === null ? "" : `, not before ${utcSecond(notBefore)}`}.`,
  ];
}

/** Whose time is over has lost it, whatever the row says until somebody takes it. */
function underWay({ operation: { attempts }, leaseUntil, now }: Explained): string[] {
  if (leaseUntil !== null && leaseUntil <= now) {
    return [
      `Attempt ${attempts} was under way until ${utcSecond(leaseUntil)}, and its worker has not been heard of since.`,
      "The outcome counts as unknown then, and is looked up as soon as a worker takes it (/ops health says whether one is running).",
    ];
  }
  return [
    `Attempt ${attempts} is under way${leaseUntil === null ? "" : ` until ${utcSecond(leaseUntil)} at the latest`}.`,
    "If its worker is lost, the outcome counts as unknown and is looked up.",
  ];
}

/** Why it ended, as it was stored with the end. */
function ending({ result }: Operation): string[] {
  if (result === null) return [];
  const remark = rejectionRemark(result.code);
  return [...(result.detail === "" ? [] : [asSentence(result.detail)]), ...(remark === null ? [] : [remark])];
}

/** What the provider promises about this effect, and what that means now. */
function promises(view: Explained, known: KnownNow): string[] {
  const { contract, operation, now } = view;
  if (contract.local)
    return [
      "It is a change in our own database, made in one step with its record: it happened or it did not.",
    ];
  return [
    keySentence(view, known),
    readbackSentence(contract),
    boundSentence(contract, now, view.lastSendEndedAt),
    ...(contract.cancellable
      ? [
          "What was sent can be called back at the provider by a person; once it shows as cancelled there, it ends as rejected.",
        ]
      : []),
    `That is what the provider promises, as contract ${operation.contractVersion} has it.`,
  ];
}

function keySentence(view: Explained, known: KnownNow): string {
  const { contract, operation } = view;
  if (!contract.keyed) return "The provider knows no key: sending again could do it twice.";
  if (contract.keyTtlMs === null) return "Sending again does it at most once, however late.";
  if (operation.firstClaimedAt === null) return "The provider does a repeated key at most once.";
  const until = utcSecond(new Date(operation.firstClaimedAt.getTime() + contract.keyTtlMs));
  return keyIsSafe(contract, clockOf(view))
    ? `Until ${until} the provider does a repeated key at most once${sendingAgain(operation, known)}`
    : `The life of its key ended at ${until}: it is never sent again, because it could happen twice.`;
}

/** The key alone makes nothing safe: what the provider shows now, or anything else that forbids the verb, is said by the verb. */
function sendingAgain({ status }: Operation, { asked, verbs }: KnownNow): string {
  const forbidden = verbs.some(({ verb, possible }) => verb === "retry" && !possible);
  const seen = asked !== null && effectsOf(asked).length > 0;
  if (!seen && BY_ITSELF.has(status))
    return ". Where that is right it is repeated by itself, under that key; nobody has to authorise it.";
  return forbidden || seen
    ? ". That does not make it right to send it again now: see Authorise retry."
    : ", so sending again is safe.";
}

/** Open, and not with a person. */
const BY_ITSELF: ReadonlySet<OperationStatus> = new Set(["DISPATCHED", "OUTCOME_UNKNOWN", "RECONCILING"]);

const NOT_ASKED: KnownNow = { asked: null, verbs: [] };

/** Why it was parked is what was known then, where the provider has answered since. */
function parkedSentence(reason: string | null, { asked }: KnownNow): string {
  if (reason === null) return "It is parked for a person.";
  return asked === null || asked.says === "unknown"
    ? `It is parked for a person. ${quarantineWords(reason)}`
    : `It is parked for a person, by what was known then: ${quarantineThen(reason)}`;
}

function readbackSentence(contract: EffectContract): string {
  switch (contract.readback.kind) {
    case "none":
      return "The provider's effects cannot be listed.";
    case "eventual":
      return "The provider lists what it did, with a delay: finding nothing does not prove that nothing happened.";
    case "strong":
      return "The provider lists what it did at once.";
    default:
      return assertNever(contract.readback);
  }
}

function boundSentence(contract: EffectContract, now: Date, lastSendEndedAt: Date | null): string {
  if (contract.inflightBoundMs === null) {
    return "The provider names no time after which a request that was sent can no longer take effect.";
  }
  if (lastSendEndedAt === null) return "A request may still be on its way.";
  const until = utcSecond(new Date(lastSendEndedAt.getTime() + contract.inflightBoundMs));
  return inflightBoundPassed(contract, { now, lastSendEndedAt })
    ? `Since ${until} nothing that was sent can take effect any more.`
    : `What was sent may still take effect until ${until}.`;
}

/** The move that each answer of the provider would bring now, from the function that decides it. */
function whatIf(view: Explained, known: KnownNow): string[] {
  const absent: Evidence = { says: "absent" };
  const unknown: Evidence = { says: "unknown", reason: "the provider cannot be asked" };
  if (isPendingThere(view, known)) return whilePending(view);
  return [
    "If the provider shows it as asked for, it is confirmed.",
    `If the provider shows nothing, ${moveWords(moveFor(view, absent), view.frozen)}.`,
    `If the provider cannot be asked, ${moveWords(moveFor(view, unknown), view.frozen)}.`,
  ];
}

/** By what the provider says now; where it says nothing, by what it had answered. */
const isPendingThere = ({ attempts }: Explained, { asked }: KnownNow): boolean =>
  asked === null || asked.says === "unknown"
    ? attempts.some(({ verdict }) => verdict === "pending")
    : asked.says === "pending";

/** The provider has it and will end it: what waits for that sends nothing, and nothing new comes of its key. */
function whilePending(view: Explained): string[] {
  const pending: Evidence = { says: "pending", effect: asAccepted(view.operation), reason: "pending" };
  const gone = moveFor(view, { says: "absent" });
  const again = gone.do === "send_again" && view.contract.keyed;
  return [
    "The provider has accepted it, and it is pending there: nothing is sent as long as that holds.",
    `If it ends there as asked for, it is confirmed. If it fails there, it ends as rejected${view.operation.kind === "refund" ? " and the money is free again" : ""}.`,
    `As long as it is pending, ${moveWords(moveFor(view, pending), view.frozen)}.`,
    again
      ? `Only if the provider does not show it any more, ${moveWords(gone, view.frozen)}: that brings back what the key made before, and makes nothing new.`
      : `If the provider does not show it any more, ${moveWords(gone, view.frozen)}.`,
  ];
}

const asAccepted = ({
  kind,
  amountMinor,
  currency,
  paymentIntent,
  providerSubscription,
}: Operation): ProviderEffect => ({
  ref: "",
  kind: kind === "refund" ? "refund" : "subscription_cancellation",
  target: paymentIntent ?? providerSubscription ?? "",
  amountMinor,
  currency,
  status: "pending",
  pendingReason: null,
  failureReason: null,
  operationId: null,
  createdAt: new Date(0),
});

function moveFor(view: Explained, evidence: Evidence): Move {
  const { operation, timing } = view;
  return recover({
    contract: view.contract,
    evidence,
    attempts: view.attempts,
    now: view.now,
    firstClaimedAt: operation.firstClaimedAt,
    lastSendEndedAt: view.lastSendEndedAt,
    unknownSince: operation.unknownSince ?? view.now,
    quarantineAfterMs: timing.quarantineAfterMs,
    timeoutMs: timing.providerTimeoutMs,
    marginMs: timing.sendMarginMs,
    maxAttempts: view.maxAttempts,
    endedBefore: view.endedBefore,
  });
}

function moveWords(move: Move, frozen: Frozen | null): string {
  switch (move.do) {
    case "confirm":
      return "it is confirmed";
    case "reject":
      return "it ends as rejected";
    case "prepare_again":
      return "it goes back to being prepared, because no attempt was carried out";
    case "send_again":
      return frozen === null
        ? "it is sent again under the same key"
        : "it is sent again under the same key, but not before its kind is thawed";
    case "later":
      return "it is looked at again later";
    case "quarantine":
      return "it goes to a person";
    default:
      return assertNever(move);
  }
}

/** What is due is taken within seconds; what has been due for longer, nobody takes. */
const LATE_AFTER_MS = 60_000;

function nextSentence(view: Explained): string {
  const at = nextLookOf(view);
  if (at === null) return "A worker is looking at it.";
  return view.now.getTime() - at.getTime() < LATE_AFTER_MS
    ? `It is looked at again by itself at ${utcSecond(at)}.`
    : `It should have been looked at again by itself at ${utcSecond(at)}, and nobody has: /ops health says whether a worker is running.`;
}

/** When a machine asks the provider again by itself. In other states what is due is something else: the sending, a lease, a card. */
export const nextLookOf = ({
  operation,
  nextLookAt,
}: Pick<Explained, "operation" | "nextLookAt">): Date | null =>
  operation.status === "OUTCOME_UNKNOWN" ? nextLookAt : null;

/** An attempt may have committed, or may still. */
export const mayStillCommit = (
  contract: EffectContract,
  view: { attempts: readonly AttemptFact[]; now: Date; lastSendEndedAt: Date | null },
): boolean =>
  view.attempts.some(({ verdict }) => !provenNotExecuted(verdict)) && !inflightBoundPassed(contract, view);

/** The three verbs as they stand now, with the reason. Empty for an operation that a person cannot resolve. */
export function verbViews(view: Explained, policy: Policy): readonly VerbView[] {
  if (!isResolvable(view.operation.status)) return [];
  return (["confirm", "reject", "retry"] as const).map((verb) => verbView(verb, view, policy));
}

/** States in which the three verbs mean something. */
export const isResolvable = (status: Operation["status"]): boolean => OPEN_OUTCOMES.has(status);

function verbView(verb: ResolveVerb, view: Explained, policy: Policy): VerbView {
  const { operation, contract } = view;
  const open = mayStillCommit(contract, view);
  const noBound = open && contract.inflightBoundMs === null;
  const people = resolversNeeded(
    { verb, amountMinor: operation.amountMinor, currency: operation.currency, noBound },
    policy,
  );
  const two = people === 2 ? " It takes a second person." : "";
  const shown = shownAtQuarantine(view);
  if (shown?.code === "postcondition_failed") return differentView(verb);
  if (verb === "confirm") return confirmView(operation.status, shown, people);
  if (shown !== null && (verb === "retry" || shown.effect)) {
    return { verb, people, possible: false, sentence: `Not as long as this holds: ${shown.words}` };
  }
  if (verb === "retry" && keyIsOver(view)) {
    return { verb, people, possible: false, sentence: `Not possible: ${KEY_IS_OVER}` };
  }
  const wait = open && (!noBound || operation.status !== "QUARANTINED");
  if (wait) {
    const sentence = noBound
      ? "Not yet: what was sent may still take effect, and the provider names no end to that. It becomes possible for two people once it is quarantined."
      : "Not yet: what was sent may still take effect.";
    return { verb, people, possible: false, sentence };
  }
  if (verb === "reject") {
    return {
      verb,
      people,
      possible: true,
      sentence: `Say that it did not happen and cannot happen any more; the money is free again.${two}`,
    };
  }
  return retryView(view, people, two);
}

/** The verbs that what the provider showed when it was parked leaves, whatever else holds; all of them where it showed nothing. */
export function verbsLeft(
  parked: Pick<Operation, "status" | "quarantineReason">,
  attempts: readonly { readonly verdict: string }[],
): readonly ResolveVerb[] {
  const shown = shownAtQuarantine({ operation: parked, attempts });
  switch (shown?.code) {
    case undefined:
    case null:
      return ["confirm", "reject", "retry"];
    case "postcondition_failed":
      return ["reject"];
    case "pending_too_long":
      return [];
    default:
      return shown?.effect === true ? ["confirm"] : ["confirm", "reject"];
  }
}

/** The verbs that take a second person, by the policy, the amount and whether something that was sent can still arrive. */
export function verbsOfTwo(
  { kind, amountMinor, currency }: Pick<Operation, "kind" | "amountMinor" | "currency">,
  attempts: readonly { readonly verdict: string }[],
  policy: Policy,
): readonly ResolveVerb[] {
  // Whether a provider names a bound depends on no setting.
  const noBound =
    contractBook({ keyTtlMs: 0 })[kind].inflightBoundMs === null &&
    attempts.some(({ verdict }) => !provenNotExecuted(verdict));
  return (["confirm", "reject", "retry"] as const).filter(
    (verb) => resolversNeeded({ verb, amountMinor, currency, noBound }, policy) === 2,
  );
}

interface Shown {
  readonly code: ReturnType<typeof quarantineCode>;
  readonly words: string;
  /** The provider showed an effect of this operation; else one that nobody can attribute. */
  readonly effect: boolean;
}

/**
 * What the provider showed when it was parked, where that stands in the way of a verb (`judgeResolving`). It is asked again at the
 * submit, and its answer then counts.
 */
function shownAtQuarantine({
  operation,
  attempts,
}: {
  readonly operation: Pick<Operation, "status" | "quarantineReason">;
  readonly attempts: readonly { readonly verdict: string }[];
}): Shown | null {
  const { status, quarantineReason } = operation;
  const code = status === "QUARANTINED" ? quarantineCode(quarantineReason ?? "") : null;
  switch (code) {
    case "postcondition_failed":
    case "duplicate_effect":
    case "pending_too_long":
    case "shown_otherwise":
      return { code, words: quarantineWords(quarantineReason ?? ""), effect: true };
    case "evidence_contradicts":
      // Rows of before it was parked as that: what turned up is not what was asked for.
      if (/ differs in \S/u.test(quarantineReason ?? ""))
        return { code: "postcondition_failed", words: quarantineWords(quarantineReason ?? ""), effect: true };
      // An effect turned up after the end; or an answer said committed and the list shows nothing, which forbids nothing.
      return attempts.some(({ verdict }) => verdict === "committed")
        ? null
        : { code, words: quarantineWords(quarantineReason ?? ""), effect: true };
    case "unattributed_effect":
      return { code, words: quarantineWords(quarantineReason ?? ""), effect: false };
    default:
      return null;
  }
}

/** What to do about what the provider has taken and not ended. */
export const WAIT_FOR_PENDING =
  "Wait: when the provider tells that it succeeded or failed, this ends by itself. Ask the provider's support with the reference where its page of the refund asks for something, shows no day by which to expect it, or that day is over.";

function confirmView(status: Operation["status"], shown: Shown | null, people: 1 | 2): VerbView {
  const verb = "confirm";
  const onlyIfShown =
    status === "QUARANTINED" ? "" : " Until it is quarantined, it counts only if the provider then shows it.";
  switch (shown?.code) {
    case "pending_too_long":
      return {
        verb,
        people,
        possible: false,
        sentence: `Not while the provider has it pending: its end settles it. ${WAIT_FOR_PENDING}`,
      };
    case "duplicate_effect":
      return {
        verb,
        people: 2,
        possible: true,
        sentence:
          "Only once finance has said which of them counts: name its reference. It takes a second person.",
      };
    default:
      return {
        verb,
        people,
        possible: true,
        sentence: `Say that the provider carried it out, with the reference you saw there. The provider is asked first.${onlyIfShown}${people === 2 ? " It takes a second person." : ""}`,
      };
  }
}

/** It is never sent again, whatever becomes known of it. */
const keyIsOver = (view: Explained): boolean =>
  view.contract.keyed && !keyIsSafe(view.contract, clockOf(view));

/** What is left once a key's life is over. Which of the two ends it is, only the provider knows: neither is advised without its condition. */
export const KEY_IS_OVER =
  "the life of its key is over, so sending again could do it twice. Look it up at the provider: if it shows it, Confirm committed; if it shows nothing and nothing can arrive any more, Reject.";

/** The provider has shown something else than was asked for. What it shows when a form is sent decides; this is what to expect. */
function differentView(verb: ResolveVerb): VerbView {
  return verb === "reject"
    ? {
        verb,
        people: 2,
        possible: true,
        sentence:
          "Say that it was not carried out as asked; what was made instead then counts as refunded elsewhere. It takes a second person.",
      }
    : {
        verb,
        people: 1,
        possible: false,
        never: true,
        sentence:
          verb === "confirm"
            ? "Not possible: what the provider made is not what was asked for, so it is never confirmed. Reject it, with a second person."
            : "Not possible: the provider made something under its key already. Reject it, with a second person.",
      };
}

function retryView(view: Explained, people: 1 | 2, two: string): VerbView {
  const verb = "retry";
  if (view.frozen !== null) {
    return {
      verb,
      people,
      possible: false,
      sentence: `Not as long as this holds: ${frozenReason(view.frozen)}`,
    };
  }
  const sentence = `It is sent once more under the same key, unless the provider shows that it happened.${two}`;
  return { verb, people, possible: true, sentence };
}

const clockOf = (view: Explained) => ({
  now: view.now,
  firstClaimedAt: view.operation.firstClaimedAt,
  timeoutMs: view.timing.providerTimeoutMs,
  marginMs: view.timing.sendMarginMs,
});
