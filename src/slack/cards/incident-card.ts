/** The card of an incident: what was found, whose it is, what to do about it. */

import type { KnownBlock } from "@slack/types";
import { beyondWords, leftWords } from "../../domain/approval-words.js";
import { assertNever } from "../../domain/assert-never.js";
import { capital, uncapital } from "../../domain/text/capital.js";
import { ACTIONS } from "../actions.js";
import {
  actions,
  header,
  type Message,
  note,
  ours,
  type Row,
  rows,
  theirs,
  withinLimits,
} from "../blocks/build.js";
import { actorName, escapeText, escapeWithin, oneLine, withRef } from "../text/safe.js";
import { localTime } from "../text/time.js";
import { filedByRow } from "./filed-by.js";
import { type OperationFacts, standingOf, whatOf } from "./sentences.js";

const REASON_MAX = 800;
/** What was left by the balance when it was found, as `incidentDetail` calls it. */
export const LEFT_THEN = "Left to refund then";
/** The hash of a policy that it is about. */
export const POLICY_LABEL = "Policy";

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
  /** Operations of ours whose outcome is open and that may be what was found: they are decided first. */
  readonly undecided: readonly OperationFacts[];
  /** What is left of its payment now, in minor units; negative: too much is spoken for. Of money found elsewhere, while it is open. */
  readonly leftNow?: {
    readonly amountMinor: bigint;
    readonly currency: string;
    /** When the balance last moved: a card that is older says what was left then. */
    readonly at: Date;
  };
  /** Refunds on the same payment that only a person vouches for. */
  readonly vouched?: readonly OperationFacts[];
  /** Of money found elsewhere: all of it is told as a duplicate of an operation of ours. */
  readonly ownSecond?: boolean;
  /** Of money found elsewhere: all of it is what operations of ours asked for on other payments. */
  readonly ofAnother?: boolean;
  /** Of an automatic freeze: who turned the switch back since, and when. */
  readonly thawed?: { readonly by: string; readonly at: Date };
  /** It is about what a person's word alone had confirmed. */
  readonly onWord?: boolean;
  readonly closedBy: string | null;
  readonly closedAt: Date | null;
  readonly closeReason: string | null;
  readonly createdAt: Date;
}

/** `workspace`: where links to messages begin; null: there are none. */
export function incidentCard(incident: IncidentView, workspace: string | null = null): Message {
  const { title, meaning, next } = wordsOf(incident);
  const first = decideFirst(incident);
  const table: Row[] = [
    ...(incident.operation === null
      ? []
      : [
          { label: "Operation", value: { theirs: whatOf(incident.operation) } },
          ...(incident.status === "open"
            ? [
                { label: "State now", value: { theirs: standingOf(incident.operation) } },
                filedByRow(incident.operation, workspace),
              ]
            : []),
        ]),
    ...(incident.customer === null
      ? []
      : [{ label: "Customer", value: { theirs: withRef(incident.customer.name, incident.customer.ref) } }]),
    ...(incident.leftNow === undefined
      ? []
      : [{ label: "Left to refund", value: { ours: leftNowText(incident.leftNow) } }]),
    ...incident.detail
      // What was left when it was found is told only where nothing newer is.
      .filter(([label]) => incident.leftNow === undefined || label !== LEFT_THEN)
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
        ...(incident.thawed === undefined
          ? []
          : [note(`Thawed by ${actorName(incident.thawed.by)}, ${localTime(incident.thawed.at)}.`)]),
        note([`Found ${localTime(incident.createdAt)}`, ...idsOf(incident)].join(" · ")),
        ...(closed
          ? closedBlocks(incident)
          : [
              ours(`*What to do:* ${first === "" ? next : `${first} Only then: ${uncapital(next)}`}`),
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

const UNDECIDED_SHOWN = 3;

/** What was refunded may be what one of ours asked for: which of the two, a person says on that one's own card. */
function decideFirst({ undecided }: IncidentView): string {
  if (undecided.length === 0) return "";
  const named = undecided.slice(0, UNDECIDED_SHOWN).map((one) => {
    const parked = one.status === "QUARANTINED" ? "waits for a person" : "is being checked";
    return `${escapeWithin(oneLine(whatOf(one)), 200).text} (\`${escapeText(one.id)}\`) ${parked}`;
  });
  const more =
    undecided.length > UNDECIDED_SHOWN ? `; and ${undecided.length - UNDECIDED_SHOWN} more like it` : "";
  const is =
    undecided.length === 1
      ? "It has the same amount and may be this one"
      : "Each has the same amount and may be this one";
  return `Decide first: ${named.join("; ")}${more}. ${is}. Ask who made the refund: made for that ticket, *Confirm committed* with its reference; made for another, *Reject*.`;
}

/** What the commands take, small: whoever is tired reads the rest first. */
const idsOf = ({ id, operation }: IncidentView): string[] =>
  [id, ...(operation === null ? [] : [operation.id])].map((one) => `\`${escapeText(one)}\``);

function closedBlocks({ closedBy, closedAt, closeReason }: IncidentView): KnownBlock[] {
  const by = closedBy === null ? "" : ` by ${actorName(closedBy)}`;
  const at = closedAt === null ? "" : `, ${localTime(closedAt)}`;
  return [
    note(`Closed${by}${at}.`),
    ...(closeReason === null ? [] : [theirs(`Reason: ${oneLine(closeReason)}`, REASON_MAX)]),
  ];
}

const leftNowText = ({ amountMinor, currency, at }: NonNullable<IncidentView["leftNow"]>): string =>
  `${leftWords(amountMinor, currency)}${beyondWords(amountMinor, currency)}, as of ${localTime(at)}`;

/** Of too much: whether it still is, and what of it nobody but a person vouches for. */
function overdrawnWords({ leftNow, vouched = [] }: IncidentView): Partial<Rest> {
  if (leftNow !== undefined && leftNow.amountMinor >= 0n) {
    return {
      meaning:
        "What was refunded, or may have been, was together more than was paid on this payment. It no longer is.",
      next: "Find out how it came about, then close this.",
    };
  }
  const [one] = vouched;
  if (one === undefined) return {};
  const named = vouched
    .slice(0, UNDECIDED_SHOWN)
    .map((each) => `${escapeWithin(oneLine(whatOf(each)), 200).text} (\`${escapeText(each.id)}\`)`)
    .join("; ");
  return {
    next: `${named} ${vouched.length === 1 ? "rests" : "rest"} on a person's word alone. Open the payment at the provider: if that refund is not there, press *Open again* on its card (or \`/ops reopen ID\`) and decide it anew; if it is there, tell finance. Nothing more can be refunded on this payment meanwhile.`,
  };
}

/** What was changed is an operation, or the switch that holds all of its kind. */
const wordsOf = (incident: IncidentView): IncidentWords => {
  const { kind, operation, onWord } = incident;
  return {
    ...incidentWords(kind, (incident.operation?.frozen ?? null) !== null),
    ...(kind === "overdrawn" ? overdrawnWords(incident) : {}),
    ...(kind === "row_changed" && operation === null ? changedWords(incident) : {}),
    ...(onWord === true ? ON_WORD[kind] : {}),
    ...(operation !== null && SETTLED_STATES.has(operation.status) ? settledWords(kind, operation) : {}),
    ...(incident.thawed === undefined ? {} : THAWED),
    ...(incident.ownSecond === true ? OWN_SECOND : {}),
    ...(incident.ofAnother === true ? OF_ANOTHER : {}),
  };
};

const OWN_SECOND: Rest = {
  meaning:
    "The provider shows a second refund under the id of one of ours. The balance was corrected by it, and the duplicate is an incident of its own.",
  next: "Go by the incident of the duplicate, which is named above; then close this.",
};

const OF_ANOTHER: Rest = {
  meaning:
    "The provider made a refund on this payment that one of our operations asked for on another. The balance was corrected by it.",
  next: "Go by the incident of that operation, which is named above (`/ops show ID`). Finance puts right what this customer has; then close this.",
};

/** The switch was turned back since; who did it and when stands below. */
const THAWED: Rest = {
  meaning: "A limit of the policy was passed, so new effects were frozen. They have been thawed since.",
  next: "Make sure that what passed the limit is understood (`/ops incidents`, `/ops list`), then close this.",
};

const SETTLED_STATES: ReadonlySet<OperationFacts["status"]> = new Set(["CONFIRMED", "REJECTED", "REVERSED"]);

/** Its own card asks nothing any more. */
function settledWords(kind: IncidentKind, { status }: OperationFacts): Partial<Rest> {
  if (kind === "contradiction") return SETTLED;
  if (kind !== "made_differently") return {};
  const closed = status === "REJECTED";
  return {
    meaning: `The provider did something else than this operation asked for. It has been ${closed ? "closed as not carried out" : "settled"} since.`,
    next: "Finance puts right what the customer has; then close this.",
  };
}

const SETTLED: Rest = {
  meaning:
    "The provider's evidence contradicted how this operation was closed. It was opened again, and has been settled since.",
  next: "Find out how it came to be closed wrongly (`/ops events ID`), and whether the customer was told something else; then close this.",
};

type Rest = Omit<IncidentWords, "title">;

const LIFTED: Rest = {
  meaning:
    "A freeze switch was changed in the database, and not by anybody on call. Nothing was sent because of that, and it stands again as the log tells it.",
  next: "Find who wrote to the database; then `/ops thaw` if it is frozen and may go on, and close this.",
};

const UNKNOWN_POLICY: Rest = {
  meaning:
    "A policy was put in force by somebody who wrote to the database, or by a process with another secret. What is decided under it is not sent here.",
  next: "Give every process the same `SEAL_SECRET` (the bot's token where there is none), and one that takes its place to `SEAL_SECRETS_ACCEPTED` first; start again, then close this. If they are the same: freeze everything (`/ops freeze`) and find who wrote to the database.",
};

/** Of no operation: a policy, or a freeze switch. */
const changedWords = ({ detail }: IncidentView): Rest =>
  detail.some(([label]) => label === POLICY_LABEL) ? UNKNOWN_POLICY : LIFTED;

const ON_WORD: Readonly<Partial<Record<IncidentKind, Rest>>> = {
  missing_effect: {
    meaning: "We hold this as done on a person's word alone, and the provider does not show it.",
    next: "Ask whoever confirmed it. If it was not done, press *Open again* on its card (or `/ops reopen ID`) and decide it anew; the customer may not have what they were told.",
  },
  contradiction: {
    meaning:
      "This was confirmed on a person's word alone, and the provider shows otherwise. The case was opened again, and what the provider shows settles it.",
    next: "Look at it with `/ops show ID`: if it is confirmed by the provider's reference, close this; else decide it on its own card.",
  },
};

/** "Duplicate effect", as lists name it. */
export const incidentTitle = (kind: IncidentKind): string => {
  const { title } = incidentWords(kind);
  return capital(title);
};

interface IncidentWords {
  readonly title: string;
  readonly meaning: string;
  /** What whoever reads the card does first, in mrkdwn of ours; the runbook says more. */
  readonly next: string;
}

/** `frozen`: what it is about is not sent now. */
function incidentWords(kind: IncidentKind, frozen = false): IncidentWords {
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
        meaning: "We hold this as done, and the provider does not show it so.",
        next: "Ask the provider with the reference; until it answers, the customer may not have the money.",
      };
    case "duplicate_effect":
      return {
        title: "duplicate effect",
        meaning: "The provider shows more than one effect for one operation.",
        next: frozen
          ? "Leave refunds frozen, keep both references, tell finance."
          : "Freeze refunds (`/ops freeze refund`), keep both references, tell finance.",
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
        title: "more refunded or set aside than was paid",
        meaning: "What was refunded, or may have been, is together more than was paid on this payment.",
        next: "Tell finance. Nothing more can be refunded on this payment meanwhile.",
      };
    case "import_below_reserved":
      return {
        title: "import lowered a payment",
        meaning: "An import set what was paid below what is already refunded or set aside.",
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
        next: "Understand it first (`/ops incidents`, `/ops list`), then `/ops thaw` and close this. One person on call is enough for that thaw: nobody froze it by hand.",
      };
    case "row_changed":
      return {
        title: "changed in the database",
        meaning:
          "An operation's row, or its payment's, no longer says what was decided. Somebody wrote to the database; nothing is sent on what it says now.",
        next: "Freeze everything (`/ops freeze`), find who wrote to the database; `countersign audit verify` names the row. Where only a seal is missing, first ask whether `SEAL_SECRET` or the bot's token was changed.",
      };
    case "made_differently":
      return {
        title: "not what was asked for",
        meaning:
          "The provider did something else than this operation asked for, so it is not counted as done.",
        next: "One person on call presses *Reject* on the operation's card, another presses *Agree*; finance puts right what the customer has.",
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
