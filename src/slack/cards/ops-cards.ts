/** Cards of the ops channel: an operation in quarantine, the second person's question, a thaw that waits, an incident. */
import type { KnownBlock } from "@slack/types";
import { assertNever } from "../../domain/assert-never.js";
import {
  quarantineCode,
  quarantineKnown,
  quarantineTitle,
  quarantineWords,
  unknownSinceLabel,
} from "../../domain/quarantine-words.js";
import {
  type AttemptFacts,
  type FreezeKind,
  type FreezeState,
  type ResolutionVerb,
  type ResolutionView,
  resolutionRemark,
} from "../../ops/index.js";
import { ACTIONS, thawValue } from "../actions.js";
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
import { kindName, type OperationFacts, outcomeOf, whatOf } from "./sentences.js";

export interface QuarantineView {
  readonly operation: OperationFacts;
  readonly attempts: readonly AttemptFacts[];
  /** The newest resolution of this operation, if any. */
  readonly resolution: ResolutionFacts | null;
}

const TEXT_MAX = 800;
const ATTEMPTS_SHOWN = 6;

export function quarantineCard({ operation, attempts, resolution }: QuarantineView): Message {
  const open = operation.status === "QUARANTINED";
  const title = open
    ? `${quarantineTitle(operation.quarantineReason)}: a person must decide`
    : afterQuarantine(operation.status);
  const blocks: KnownBlock[] = [
    header(title),
    ...rows(operationRows(operation)),
    ...(open
      ? [
          ours("*What happened*"),
          theirs(
            operation.quarantineReason === null
              ? "The outcome could not be established automatically."
              : quarantineWords(operation.quarantineReason),
            TEXT_MAX,
          ),
          ...attemptsBlocks(attempts),
          note(`\`/ops show ${operation.id}\` says what is safe now and why, \`/ops events\` what happened.`),
          note(
            `${operation.kind === "refund" ? "The amount counts as spent until this is settled. " : ""}Each button asks for a reason and evidence, and the provider is asked again first. *Reject* and *Authorise retry* may need a second person, who is then asked here.`,
          ),
        ]
      : [theirs(outcomeOf(operation), TEXT_MAX)]),
    ...resolutionBlocks(resolution, open),
    ...(open ? [actions("resolve", resolveButtons(operation))] : []),
    ...(mayBeReopened(operation) ? [actions("reopen", [reopenButton(operation)])] : []),
  ];
  const text = open
    ? `${whatOf(operation)}: ${quarantineKnown(operation.quarantineReason) === null ? "the outcome is not known and " : ""}a person must decide. ${quarantineWords(operation.quarantineReason ?? "")}`
    : outcomeOf(operation);
  return withinLimits({ text: escapeWithin(oneLine(text), 1500).text, blocks }, 2);
}

/** What was parked is settled only when it has ended. */
function afterQuarantine(status: OperationFacts["status"]): string {
  switch (status) {
    case "PREPARED":
    case "DISPATCHED":
      return "Being sent again: not settled yet";
    case "OUTCOME_UNKNOWN":
    case "RECONCILING":
      return "Being checked again: not settled yet";
    default:
      return "Settled";
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
    operation.providerRef === null
      ? null
      : { label: "Provider reference", value: { theirs: operation.providerRef } },
  ];
  return table.filter((row) => row !== null);
}

function attemptsBlocks(attempts: readonly AttemptFacts[]): KnownBlock[] {
  if (attempts.length === 0) return [];
  const lines = attemptLines(attempts).slice(-ATTEMPTS_SHOWN);
  return [ours(`*What was sent*\n${lines.join("\n")}`)];
}

function resolveButtons({ id }: OperationFacts): ButtonSpec[] {
  return [
    {
      action: ACTIONS.resolveConfirm,
      text: "Confirm committed",
      value: id,
      says: "Confirm that the provider carried it out",
    },
    {
      action: ACTIONS.resolveReject,
      text: "Reject",
      value: id,
      style: "danger",
      says: "Reject: it was not carried out",
    },
    { action: ACTIONS.resolveRetry, text: "Authorise retry", value: id, says: "Authorise sending it again" },
    { action: ACTIONS.operationDetails, text: "Details", value: id, says: "Details of the operation" },
  ];
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

/** `open`: the operation waits for a person, whatever was decided before. */
function resolutionBlocks(resolution: ResolutionFacts | null, open: boolean): KnownBlock[] {
  if (resolution === null) return [];
  const { state, by, verb, reason, evidenceRef, secondBy, secondVerdict, createdAt, decidedAt } = resolution;
  const second =
    secondBy === null
      ? ""
      : `, ${secondVerdict === "agree" ? "agreed" : "not agreed"} by ${mentionUser(secondBy)}`;
  const applied = state === "applied";
  const at = applied ? (decidedAt ?? createdAt) : createdAt;
  const before = open && applied ? "Before this: " : "";
  return [
    note(
      `${before}*${verbName(verb)}* ${applied ? "done" : "asked for"} by ${mentionUser(by)}${second}, ${localTime(at)}.${afterwards(resolution)}`,
    ),
    theirs(`Reason: ${oneLine(reason)}\nEvidence: ${oneLine(evidenceRef)}`, TEXT_MAX),
    ...remarkBlocks(resolution),
  ];
}

function remarkBlocks(resolution: ResolutionFacts): KnownBlock[] {
  const remark = resolutionRemark(resolution);
  return remark === null ? [] : [theirs(remark, TEXT_MAX)];
}

function afterwards({ state, expiresAt }: ResolutionView): string {
  switch (state) {
    case "proposed":
      return ` Waits for a second person${expiresAt === null ? "" : ` until ${localTime(expiresAt)}`}.`;
    case "expired":
      return " Nobody agreed in time, so nothing was done.";
    case "superseded":
      return " The operation moved meanwhile, so nothing was done.";
    case "refused":
      return " It was not safe any more, so nothing was done.";
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
      ...(resolution.probe === null
        ? []
        : [{ label: "Provider says", value: { theirs: resolution.probe.sentence } }]),
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
            `*Agree* ${agreeing(resolution.verb, operation)} The provider is asked again first; if it answers the question, its answer counts. *Disagree* leaves the operation as it is.`,
          ),
          actions("second", [
            { action: ACTIONS.agree, text: "Agree", value: resolution.id, style: "primary" },
            { action: ACTIONS.disagree, text: "Disagree", value: resolution.id, style: "danger" },
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

/** What pressing Agree does, as the rest of a sentence. */
function agreeing(verb: ResolutionVerb, { kind, quarantineReason }: OperationFacts): string {
  const money = kind === "refund";
  switch (verb) {
    case "confirm":
      return "records that the provider carried it out. Nothing is sent.";
    case "reject":
      if (quarantineCode(quarantineReason ?? "") === "postcondition_failed")
        return `records that it was not carried out as asked${money ? "; what was made instead counts as refunded elsewhere" : ""}. Nothing is sent.`;
      return `records that it did not happen${money ? "; the amount is free again" : ""}. Nothing is sent.`;
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

function resolutionEnd({ state, verb }: ResolutionView): string {
  const name = verbName(verb);
  switch (state) {
    case "proposed":
      return `${name}: waits for a second person`;
    case "applied":
      return `${name}: done`;
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

/** As the database knows them (`incidents_kind_is_known`). */
export const INCIDENT_KINDS = [
  "orphan_effect",
  "missing_effect",
  "duplicate_effect",
  "contradiction",
  "reversed",
  "refunded_elsewhere",
  "overdrawn",
  "import_below_reserved",
  "late_effect",
  "freeze_tripped",
  "row_changed",
  "made_differently",
  "other_currency",
] as const;
export type IncidentKind = (typeof INCIDENT_KINDS)[number];

export interface IncidentView {
  readonly id: string;
  readonly kind: IncidentKind;
  readonly status: "open" | "closed";
  readonly operation: OperationFacts | null;
  /** Whose operation or payment it is about; null: that is not known. */
  readonly customer: { readonly name: string; readonly ref: string } | null;
  /** Facts of the finding as label and value, in the order in which they are read. */
  readonly detail: readonly (readonly [string, string])[];
  readonly closedBy: string | null;
  readonly closedAt: Date | null;
  readonly closeReason: string | null;
  readonly createdAt: Date;
}

export function incidentCard(incident: IncidentView): Message {
  const { title, meaning, next } = incidentWords(incident.kind);
  const table: Row[] = [
    ...(incident.operation === null
      ? []
      : [
          {
            label: "Operation",
            value: { theirs: `${whatOf(incident.operation)} (${incident.operation.id})` },
          },
        ]),
    ...(incident.customer === null
      ? []
      : [{ label: "Customer", value: { theirs: withRef(incident.customer.name, incident.customer.ref) } }]),
    ...incident.detail
      .slice(0, 12)
      .map(([label, value]) => ({ label: escapeWithin(oneLine(label), 60).text, value: { theirs: value } })),
  ];
  const closed = incident.status === "closed";
  return withinLimits(
    {
      text: escapeWithin(`${closed ? "Closed incident" : "Incident"}: ${title}. ${meaning}`, 1000).text,
      blocks: [
        header(`${closed ? "Closed" : "Incident"}: ${title}`),
        ours(meaning),
        ...rows(table),
        note(`Found ${localTime(incident.createdAt)} · \`${escapeText(incident.id)}\``),
        ...(closed
          ? closedBlocks(incident)
          : [
              ours(`*What to do:* ${next}`),
              actions("incident", [
                {
                  action: ACTIONS.closeIncident,
                  text: "Close",
                  value: incident.id,
                  says: "Close this incident",
                },
              ]),
            ]),
      ],
    },
    1,
  );
}

function closedBlocks({ closedBy, closedAt, closeReason }: IncidentView): KnownBlock[] {
  const by = closedBy === null ? "" : ` by ${mentionUser(closedBy)}`;
  const at = closedAt === null ? "" : `, ${localTime(closedAt)}`;
  return [
    note(`Closed${by}${at}.`),
    ...(closeReason === null ? [] : [theirs(`Reason: ${oneLine(closeReason)}`, TEXT_MAX)]),
  ];
}

/** "Duplicate effect", as lists name it. */
export const incidentTitle = (kind: IncidentKind): string => {
  const { title } = incidentWords(kind);
  return `${title.charAt(0).toUpperCase()}${title.slice(1)}`;
};

interface IncidentWords {
  readonly title: string;
  readonly meaning: string;
  /** What whoever reads the card does first, in mrkdwn of ours; the runbook says more. */
  readonly next: string;
}

function incidentWords(kind: IncidentKind): IncidentWords {
  switch (kind) {
    case "orphan_effect":
      return {
        title: "effect without an operation",
        meaning: "The provider shows an effect that no approved operation of ours explains.",
        next: "Freeze everything (`/ops freeze`) if it is not frozen yet: somebody else may hold the provider's key.",
      };
    case "missing_effect":
      return {
        title: "confirmed operation without an effect",
        meaning: "We hold this as done, but the provider does not show it.",
        next: "Ask the provider with the reference; until it answers, the customer may not have the money.",
      };
    case "duplicate_effect":
      return {
        title: "duplicate effect",
        meaning: "The provider shows more than one effect for one operation.",
        next: "Freeze refunds (`/ops freeze refund`) if they are not frozen yet, keep both references, tell finance.",
      };
    case "contradiction":
      return {
        title: "contradicting evidence",
        meaning: "The provider's evidence contradicts how this operation was closed; the case is open again.",
        next: "Decide it anew on its own card, which is in this channel again.",
      };
    case "reversed":
      return {
        title: "taken back by the provider",
        meaning: "A confirmed effect failed later at the provider. The customer does not have the money.",
        next: "Tell the customer; a new refund is its own ticket.",
      };
    case "refunded_elsewhere":
      return {
        title: "refunded elsewhere",
        meaning: "Money was refunded on this payment outside Countersign.",
        next: "Nothing: the balance was corrected. Ask whoever did it to use tickets.",
      };
    case "overdrawn":
      return {
        title: "more given back than was paid",
        meaning: "What was refunded and set aside on this payment is more than was captured.",
        next: "Tell finance.",
      };
    case "import_below_reserved":
      return {
        title: "import lowered a payment",
        meaning: "An import set the captured amount below what is already refunded or set aside.",
        next: "Correct the shop's file and import it again.",
      };
    case "late_effect":
      return {
        title: "effect after the end",
        meaning: "An effect turned up for an operation that had ended without one.",
        next: "Freeze refunds (`/ops freeze refund`), keep the reference, tell finance.",
      };
    case "freeze_tripped":
      return {
        title: "frozen automatically",
        meaning: "A limit of the policy was passed, so new effects are frozen until a person thaws them.",
        next: "Understand it first (`/ops incidents`, `/ops list`), then `/ops thaw` and close this.",
      };
    case "row_changed":
      return {
        title: "changed in the database",
        meaning:
          "An operation's row no longer says what was decided, so it was not sent. Somebody wrote to the database.",
        next: "Freeze everything (`/ops freeze`), find who wrote to the database; `countersign audit verify` names the row.",
      };
    case "made_differently":
      return {
        title: "not what was asked for",
        meaning:
          "The provider did something else than this operation asked for, so it is not counted as done.",
        next: "Two people press Reject on the operation's card; finance puts right what the customer has.",
      };
    case "other_currency":
      return {
        title: "refund in another currency",
        meaning:
          "The provider shows a refund on this payment in another currency than it was paid in. It cannot be counted, so nothing can be refunded on this payment.",
        next: "Compare the order with the provider. If the shop has the wrong currency, correct its file and import it again; else refund there, and tell finance.",
      };
    default:
      return assertNever(kind, "incident kind");
  }
}
