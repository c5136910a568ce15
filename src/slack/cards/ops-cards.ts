/** Cards of the ops channel: an operation in quarantine, the second person's question, a thaw that waits. */

import type { KnownBlock } from "@slack/types";
import { assertNever } from "../../domain/assert-never.js";
import { isOfBefore, onWord, referenceLabel, wordAlone } from "../../domain/named-evidence.js";
import {
  quarantineCode,
  quarantineKnown,
  quarantineTitle,
  quarantineWords,
  unknownSinceLabel,
} from "../../domain/quarantine-words.js";
import { listOf } from "../../domain/text/list-of.js";
import {
  type AttemptFacts,
  type FreezeKind,
  type FreezeState,
  type ProbeView,
  type ResolutionVerb,
  type ResolutionView,
  resolutionRemark,
  verbsLeft,
  WAIT_FOR_PENDING,
} from "../../ops/index.js";
import { ACTIONS, resolutionValue, thawValue } from "../actions.js";
import {
  actions,
  type ButtonSpec,
  header,
  type Message,
  note,
  ours,
  type Row,
  rows,
  theirs,
  withinLimits,
} from "../blocks/build.js";
import { actorName, escapeText, escapeWithin, mentionUser, oneLine, withRef } from "../text/safe.js";
import { localTime } from "../text/time.js";
import { attemptLines } from "./attempts.js";
import { filedByRow } from "./filed-by.js";
import { frozenSince } from "./frozen.js";
import { kindName, type OperationFacts, outcomeOf, resultOf, whatOf } from "./sentences.js";

export interface QuarantineView {
  readonly operation: OperationFacts;
  readonly attempts: readonly AttemptFacts[];
  /** The newest resolution of this operation, if any. */
  readonly resolution: ResolutionFacts | null;
  /** Which verbs take a second person. Absent: that is not known here. */
  readonly verbsOfTwo?: readonly ResolutionVerb[];
  /** How long the provider does a repeated key at most once, and whether that is over. Absent: there is no such time, or none is known here. */
  readonly key?: { readonly until: Date; readonly over: boolean };
  /** Where links to messages begin. Absent or null: there are none. */
  readonly workspace?: string | null;
}

const TEXT_MAX = 800;
const ATTEMPTS_SHOWN = 6;

export function quarantineCard(view: QuarantineView): Message {
  const { operation, attempts, resolution, verbsOfTwo } = view;
  const { frozen } = operation;
  const open = operation.status === "QUARANTINED";
  const all = verbsLeft(operation, attempts);
  const left = all.filter((verb) => verb !== "retry" || frozen === null);
  // Where only its end at the provider settles it, there is nothing to decide here.
  const asks = left.length === 0 ? "a person must look at it" : "a person must decide";
  const title = open ? `${quarantineTitle(operation.quarantineReason)}: ${asks}` : afterQuarantine(operation);
  const safe = open ? safeBlocks(operation) : [];
  const blocks: KnownBlock[] = [
    header(title),
    ...rows([...operationRows(operation), ...(open ? openRows(view) : [])]),
    ...(open
      ? [
          ours("*What happened*"),
          theirs(
            operation.quarantineReason === null
              ? "The outcome could not be established automatically."
              : quarantineWords(operation.quarantineReason),
            TEXT_MAX,
          ),
          ...attemptsBlocks(attempts, operation),
          ...(frozen === null
            ? []
            : [
                ours(
                  `${frozenSince(frozen)}${all.includes("retry") ? " *Authorise retry* is possible after that." : ""}`,
                ),
              ]),
          ...safe,
          note(`\`/ops show ${operation.id}\` says what is safe now and why, \`/ops events\` what happened.`),
          note(
            `${operation.kind === "refund" ? "The amount counts as spent until this is settled. " : ""}${buttonsNote(left)}${safe.length > 0 ? "" : secondNote(left, verbsOfTwo)}`,
          ),
        ]
      : [theirs(besideRows(operation), TEXT_MAX)]),
    ...resolutionBlocks(resolution, operation),
    ...(open ? [actions("resolve", resolveButtons(operation, left))] : []),
    ...(mayBeReopened(operation) ? [actions("reopen", [reopenButton(operation)])] : []),
  ];
  const text = open
    ? `${whatOf(operation)}: ${quarantineKnown(operation.quarantineReason) === null ? "the outcome is not known and " : ""}${asks}. ${quarantineWords(operation.quarantineReason ?? "")}`
    : outcomeOf(operation);
  return withinLimits({ text: escapeWithin(oneLine(text), 1500).text, blocks }, 2);
}

/** The rows name operation, customer and reference. */
const besideRows = (operation: OperationFacts): string => resultOf({ ...operation, providerRef: null });

const buttonsNote = (left: readonly ResolutionVerb[]): string =>
  left.length === 0
    ? "*Details* asks the provider and says what it shows now."
    : "Each button asks for a reason and evidence, and the provider is asked again first.";

/** Of the buttons that are there: which of them take a second person. */
function secondNote(
  left: readonly ResolutionVerb[],
  verbsOfTwo: readonly ResolutionVerb[] | undefined,
): string {
  const named = (verbs: readonly ResolutionVerb[]): string =>
    listOf(verbs.map((verb) => `*${verbName(verb)}*`));
  if (left.length === 0) return "";
  const others = left.filter((verb) => verb !== "confirm");
  if (verbsOfTwo === undefined)
    return others.length === 0 ? "" : ` ${named(others)} may need a second person, who is then asked here.`;
  const two = left.filter((verb) => verbsOfTwo.includes(verb));
  const one = left.filter((verb) => !verbsOfTwo.includes(verb));
  if (two.length === 0) return " One person is enough.";
  const needs = `${named(two)} ${two.length === 1 ? "needs" : "need"} a second person, who is then asked here`;
  return ` ${needs}${one.length === 0 ? "" : `; ${named(one)} ${one.length === 1 ? "does" : "do"} not`}.`;
}

/** Where what the provider showed leaves one way out, or none: nobody has to find that out in a form. */
function safeBlocks({ kind, quarantineReason }: OperationFacts): KnownBlock[] {
  const code = quarantineCode(quarantineReason ?? "");
  if (code === "postcondition_failed") {
    const counts = kind === "refund" ? "; what was made instead then counts as refunded elsewhere" : "";
    return [
      ours(
        `*What is possible:* *Reject*, with a second person, who is then asked here: it was not carried out as asked${counts}. Nothing else.`,
      ),
    ];
  }
  if (code === "duplicate_effect") {
    return [
      ours(
        "*What is possible:* *Confirm committed*, with a second person, who is then asked here, once finance has said which of them counts: its reference is the evidence. Nothing else.",
      ),
    ];
  }
  if (code === "pending_too_long") {
    return [ours(`*What to do:* ${WAIT_FOR_PENDING}`)];
  }
  return [];
}

/** What was parked is settled only when it has ended. */
function afterQuarantine({ status, result }: OperationFacts): string {
  switch (status) {
    case "PREPARED":
    case "DISPATCHED":
      return "Being sent again: not settled yet";
    case "OUTCOME_UNKNOWN":
    case "RECONCILING":
      return "Being checked again: not settled yet";
    default:
      return wordAlone(result) === null ? "Settled" : `Settled ${wordAlone(result)}`;
  }
}

function operationRows(operation: OperationFacts): Row[] {
  const table: (Row | null)[] = [
    { label: "Operation", value: { theirs: whatOf(operation) } },
    { label: "Customer", value: { theirs: withRef(operation.customerName, operation.customerRef) } },
    { label: "Id", value: { theirs: operation.id } },
    operation.providerTarget === null
      ? null
      : { label: "Look it up by", value: { theirs: operation.providerTarget } },
    operation.unknownSince === null
      ? null
      : {
          label: unknownSinceLabel(operation.quarantineReason),
          value: { ours: localTime(operation.unknownSince) },
        },
    referenceRow(operation, operation.referenceGiven),
  ];
  return table.filter((row) => row !== null);
}

/** What a person named with a confirmation is told until another decision stands. */
export const referenceRow = (
  { providerRef, status }: Pick<OperationFacts, "providerRef" | "status">,
  given: boolean,
): Row | null =>
  providerRef === null || isOfBefore(status, given)
    ? null
    : { label: referenceLabel(providerRef, given), value: { theirs: providerRef } };

/** What whoever decides needs: whom to ask, and whether sending again is still safe. */
function openRows({ operation, key, workspace }: QuarantineView): Row[] {
  const filed = filedByRow(operation, workspace ?? null);
  if (key === undefined) return [filed];
  const until = localTime(key.until);
  const good = key.over ? `Its life ended ${until}: never sent again` : `Good until ${until}`;
  return [filed, { label: "Idempotency key", value: { ours: good } }];
}

function attemptsBlocks(attempts: readonly AttemptFacts[], { status }: OperationFacts): KnownBlock[] {
  if (attempts.length === 0) return [];
  const lines = attemptLines(attempts, { status, attempts: attempts.length }).slice(-ATTEMPTS_SHOWN);
  return [ours(`*What was sent*\n${lines.join("\n")}`)];
}

/** What the provider showed leaves fewer than three: a button that only leads to a refusal is none. */
function resolveButtons({ id }: OperationFacts, left: readonly ResolutionVerb[]): ButtonSpec[] {
  const all: (ButtonSpec & { readonly verb: ResolutionVerb | null })[] = [
    {
      verb: "confirm",
      action: ACTIONS.resolveConfirm,
      text: "Confirm committed",
      value: id,
      says: "Confirm that the provider carried it out",
    },
    {
      verb: "reject",
      action: ACTIONS.resolveReject,
      text: "Reject",
      value: id,
      style: "danger",
      says: "Reject: it was not carried out",
    },
    {
      verb: "retry",
      action: ACTIONS.resolveRetry,
      text: "Authorise retry",
      value: id,
      says: "Authorise sending it again",
    },
    {
      verb: null,
      action: ACTIONS.operationDetails,
      text: "Details",
      value: id,
      says: "Details of the operation",
    },
  ];
  return all.flatMap(({ verb, ...button }) => (verb === null || left.includes(verb) ? [button] : []));
}

/** A person's end may be opened again; whoever clicks is asked who they are first. */
const mayBeReopened = ({ status, resolvedByPerson }: OperationFacts): boolean =>
  resolvedByPerson && (status === "CONFIRMED" || status === "REJECTED");

export const reopenButton = ({ id }: Pick<OperationFacts, "id">): ButtonSpec => ({
  action: ACTIONS.reopen,
  text: "Open again",
  value: id,
  says: "Open again: this was settled by mistake",
});

export function verbName(verb: ResolutionVerb): string {
  switch (verb) {
    case "confirm":
      return "Confirm committed";
    case "reject":
      return "Reject";
    case "retry":
      return "Authorise retry";
    case "reopen":
      return "Open again";
    default:
      return assertNever(verb, "verb");
  }
}

function resolutionBlocks(resolution: ResolutionFacts | null, operation: OperationFacts): KnownBlock[] {
  if (resolution === null) return [];
  // It waits for a person, whatever was decided before.
  const open = operation.status === "QUARANTINED";
  const { state, by, verb, reason, evidenceRef, secondBy, secondVerdict, createdAt, decidedAt } = resolution;
  const second =
    secondBy === null
      ? ""
      : `, ${secondVerdict === "agree" ? "agreed" : "not agreed"} by ${mentionUser(secondBy)}`;
  const applied = state === "applied";
  const at = applied ? (decidedAt ?? createdAt) : createdAt;
  const before = open && applied && verb !== "reopen" ? "Before this: " : "";
  return [
    note(
      `${before}*${applied ? appliedTitle(verb) : verbName(verb)}*${applied ? "" : " asked for"} by ${mentionUser(by)}${second}, ${localTime(at)}.${afterwards(resolution)}`,
    ),
    theirs(`Reason: ${oneLine(reason)}\nEvidence: ${oneLine(evidenceRef)}`, TEXT_MAX),
    // Of an end on a person's word, the outcome says so.
    ...(operation.status === "CONFIRMED" && onWord(operation.result) !== null
      ? []
      : remarkBlocks(resolution)),
  ];
}

function remarkBlocks(resolution: ResolutionFacts): KnownBlock[] {
  const remark = resolutionRemark(resolution);
  return remark === null ? [] : [theirs(remark, TEXT_MAX)];
}

function afterwards({ state, expiresAt, refusal }: ResolutionView): string {
  switch (state) {
    case "proposed":
      return ` Waits for a second person${expiresAt === null ? "" : ` until ${localTime(expiresAt)}`}.`;
    case "expired":
      return " Nobody agreed in time, so nothing was done.";
    case "superseded":
      return " The operation moved meanwhile, so nothing was done.";
    case "refused":
      return refusal === null
        ? " It was not safe any more, so nothing was done."
        : ` At the agreement it was refused: ${escapeWithin(oneLine(refusal), 500).text}`;
    case "applied":
    case "disagreed":
      return "";
    default:
      return assertNever(state, "resolution state");
  }
}

/** A resolution and when it was decided; null while it waits for a second person. */
export type ResolutionFacts = ResolutionView & { readonly decidedAt: Date | null };

export interface ResolutionCardView {
  readonly resolution: ResolutionFacts;
  readonly operation: OperationFacts;
}

/** Where two people are needed: the question to the second one. */
export function resolutionCard({ resolution, operation }: ResolutionCardView): Message {
  const open = resolution.state === "proposed";
  const title = open
    ? `A second person is needed: ${verbName(resolution.verb).toLowerCase()}`
    : resolutionEnd(resolution);
  const blocks: KnownBlock[] = [
    header(title),
    ...rows([
      { label: "Operation", value: { theirs: whatOf(operation) } },
      { label: "Customer", value: { theirs: withRef(operation.customerName, operation.customerRef) } },
      { label: "Id", value: { theirs: operation.id } },
      { label: "Asked by", value: { ours: mentionUser(resolution.by) } },
      { label: "Reason", value: { theirs: resolution.reason } },
      { label: "Evidence", value: { theirs: resolution.evidenceRef } },
      ...answerRows(resolution),
      ...(resolution.refusal === null
        ? []
        : [{ label: "Refused because", value: { theirs: resolution.refusal } }]),
      ...(open && resolution.expiresAt !== null
        ? [{ label: "Open until", value: { ours: localTime(resolution.expiresAt) } }]
        : []),
    ]),
    ...remarkBlocks(resolution),
    ...(resolution.secondBy === null
      ? []
      : [
          note(
            `*${resolution.secondVerdict === "agree" ? "Agreed" : "Disagreed"}* by ${mentionUser(resolution.secondBy)}${resolution.decidedAt === null ? "" : `, ${localTime(resolution.decidedAt)}`}.`,
          ),
          ...(resolution.secondNote === null || resolution.secondNote.trim() === ""
            ? []
            : [theirs(resolution.secondNote, TEXT_MAX)]),
        ]),
    ...(open
      ? [
          ours(
            `${anewWords(resolution)}*Agree* ${agreeing(resolution.verb, operation)} The provider is asked again first; if it answers the question, its answer counts, and if it answers otherwise than here, nothing is done and this card asks anew. *Disagree* leaves the operation as it is.`,
          ),
          ...(resolution.verb === "retry" && operation.frozen !== null
            ? [ours(`${frozenSince(operation.frozen)} *Agree* is refused until then.`)]
            : []),
          actions("second", [
            { action: ACTIONS.agree, text: "Agree", value: resolutionValue(resolution), style: "primary" },
            {
              action: ACTIONS.disagree,
              text: "Disagree",
              value: resolutionValue(resolution),
              style: "danger",
            },
          ]),
        ]
      : [note(afterAnswer(resolution))]),
  ];
  const text = escapeWithin(
    oneLine(`${title}. ${whatOf(operation)}. Reason: ${resolution.reason}`),
    1500,
  ).text;
  return withinLimits({ text, blocks }, 2);
}

/** What the provider answered: while it is a question the newest answer, which is what is agreed to; of what is over, each at its time. */
function answerRows({ state, probe, shownSince, agreedOn }: ResolutionView): Row[] {
  const open = state === "proposed";
  const answers: readonly { label: string; answer: ProbeView | null; past: boolean }[] = [
    open && shownSince === null
      ? { label: "Provider says", answer: probe, past: false }
      : { label: "Provider said when asked for", answer: probe, past: true },
    open
      ? { label: "Provider says now", answer: shownSince, past: false }
      : { label: "Provider said later", answer: agreedOn === null ? shownSince : null, past: true },
    { label: "Provider said at the agreement", answer: agreedOn, past: true },
  ];
  return answers.flatMap(({ label, answer, past }) =>
    answer === null ? [] : [{ label, value: { theirs: past ? inPast(answer.sentence) : answer.sentence } }],
  );
}

/** What it showed then, it need not show any more. */
const inPast = (sentence: string): string =>
  sentence
    .replace("The provider shows ", "The provider showed ")
    .replace("The provider has it pending", "The provider had it pending")
    .replace(", which differs from ", ", which differed from ");

/** Why it is asked once more. */
const anewWords = ({ shownSince }: ResolutionView): string =>
  shownSince === null
    ? ""
    : "The provider answers otherwise than when this was asked for, so an agreement to that was not carried out. ";

/** What pressing Agree does, as the rest of a sentence. */
function agreeing(verb: ResolutionVerb, { kind, quarantineReason }: OperationFacts): string {
  const money = kind === "refund";
  switch (verb) {
    case "confirm":
      return "records that the provider carried it out. Nothing is sent.";
    case "reject":
      if (quarantineCode(quarantineReason ?? "") === "postcondition_failed")
        return `records that it was not carried out as asked${money ? "; what was made instead counts as refunded elsewhere" : ""}. Nothing is sent.`;
      return `records that it did not happen and cannot happen any more${money ? "; the amount is free again" : ""}. Nothing is sent. That the provider shows nothing is no proof as long as something that was sent can still arrive.`;
    case "retry":
      return "sends it once more under the same key, unless the provider shows that it happened.";
    case "reopen":
      return "lets it wait for a person again. Nothing is sent.";
    default:
      return assertNever(verb, "verb");
  }
}

/** What stays true of it: how the operation goes on is told by its own card. */
function afterAnswer({ state, verb }: ResolutionView): string {
  const card = "the card of the operation says what came of it.";
  if (state !== "applied") return `Nothing was done by this; ${card}`;
  return verb === "retry" ? `It is sent once more under the same key; ${card}` : `This settled it; ${card}`;
}

/** What two people did. */
function appliedTitle(verb: ResolutionVerb): string {
  switch (verb) {
    case "confirm":
      return "Confirmed as committed";
    case "reject":
      return "Rejected";
    case "retry":
      return "Retry authorised";
    case "reopen":
      return "Opened again";
    default:
      return assertNever(verb, "verb");
  }
}

function resolutionEnd({ state, verb }: ResolutionView): string {
  const name = verbName(verb);
  switch (state) {
    case "proposed":
      return `${name}: waits for a second person`;
    case "applied":
      return appliedTitle(verb);
    case "disagreed":
      return `${name}: the second person disagreed`;
    case "refused":
      return `${name}: refused`;
    case "superseded":
      return `${name}: overtaken by another answer`;
    case "expired":
      return `${name}: nobody answered in time`;
    default:
      return assertNever(state, "resolution state");
  }
}

/** "No new refund is sent": what a switch holds back, and nothing else. */
export function nothingNew(kind: FreezeKind): string {
  switch (kind) {
    case "all":
      return "Nothing new is sent";
    case "refund":
      return "No new refund is sent";
    case "cancel_order":
      return "No new cancellation of an order is sent";
    case "cancel_subscription":
      return "No new cancellation of a subscription is sent";
    default:
      return assertNever(kind, "freeze kind");
  }
}

export function freezeName(kind: FreezeKind): string {
  return kind === "all" ? "everything" : `${kindName(kind).toLowerCase()} operations`;
}

/** A switch and, where it asks nothing now, how the last request for a thaw was answered. */
export interface ThawCardView extends FreezeState {
  readonly answer: { readonly askedBy: string; readonly by: string; readonly thawed: boolean } | null;
}

/** Where a thaw needs another person than the freeze. */
export function thawCard(state: ThawCardView): Message {
  const name = freezeName(state.kind);
  if (!state.frozen || state.thawAskedBy === null) return thawAnswered(name, state.answer);
  const title = `A second person is needed: thaw ${name}`;
  const table: Row[] = [
    { label: "Frozen by", value: { ours: state.by === null ? "Countersign itself" : actorName(state.by) } },
    ...(state.at === null ? [] : [{ label: "Since", value: { ours: localTime(state.at) } }]),
    ...(state.reason === null || state.reason === ""
      ? []
      : [{ label: "Because", value: { theirs: state.reason } }]),
    { label: "Thaw asked by", value: { ours: mentionUser(state.thawAskedBy) } },
    ...(state.thawExpiresAt === null
      ? []
      : [{ label: "Open until", value: { ours: localTime(state.thawExpiresAt) } }]),
  ];
  return {
    text: escapeWithin(title, 300).text,
    blocks: [
      header(title),
      ...rows(table),
      ours(releases(state.kind, name)),
      actions("thaw", [
        { action: ACTIONS.thawAgree, text: "Agree", value: thawValue(state), style: "primary" },
        { action: ACTIONS.thawDisagree, text: "Disagree", value: thawValue(state), style: "danger" },
      ]),
    ],
  };
}

/** What pressing Agree on a thaw does; true whatever other switches are turned meanwhile. */
const releases = (kind: FreezeKind, name: string): string =>
  kind === "all"
    ? "*Agree* lets everything that this freeze holds back be sent. A kind that is frozen by a switch of its own stays frozen. *Disagree* keeps everything frozen."
    : `*Agree* lets the ${escapeText(name)} that this freeze holds back be sent, unless everything is frozen by its own switch: that stays frozen. *Disagree* keeps them frozen.`;

/** A post of its own says what was answered, so the question does not say it a second time. */
function thawAnswered(name: string, answer: ThawCardView["answer"]): Message {
  const who = answer === null ? "" : ` ${answeredBy(answer)}`;
  const text = `It was asked here whether to thaw ${escapeText(name)}.${who} The answer stands below.`;
  return { text, blocks: [note(`_${text}_`)] };
}

function answeredBy({ askedBy, by, thawed }: NonNullable<ThawCardView["answer"]>): string {
  const asked = `Asked by ${personOf(askedBy)}`;
  if (thawed) return `${asked}, agreed by ${personOf(by)}.`;
  return by.startsWith("system:")
    ? `${asked}; nobody agreed in time.`
    : `${asked}, not agreed by ${personOf(by)}.`;
}

/** Whose name was erased from the audit log has none here. */
const personOf = (actor: string): string =>
  actor.startsWith("person:") ? "somebody whose name was erased" : actorName(actor);
