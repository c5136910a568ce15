/** What `/ops` answers: lists, one operation, timelines, health, help. Ephemeral; nothing here changes anything. */

import type { KnownBlock } from "@slack/types";
import { assertNever } from "../../domain/assert-never.js";
import { formatMoney } from "../../domain/money.js";
import { wordAlone } from "../../domain/named-evidence.js";
import { isTakenBack, type Operation, stateWords } from "../../domain/operation.js";
import { unknownSinceLabel } from "../../domain/quarantine-words.js";
import { counted, peopleIn } from "../../domain/text/counted.js";
import { cutText } from "../../domain/text/cut.js";
import { listOf } from "../../domain/text/list-of.js";
import { utcTime } from "../../domain/text/utc-time.js";
import { isTriedAgain, triedPart } from "../../domain/tried.js";
import type {
  ApprovalsView,
  EventsView,
  FreezeState,
  HealthView,
  IncidentsView,
  ListView,
  OperationView,
  RunsView,
} from "../../ops/index.js";
import {
  askedAnewWords,
  countsText,
  type Doer,
  elsewhereWords,
  evidenceTold,
  healthTold,
  noEvidenceWords,
  nothingSentWords,
  OPS_HELP,
  shortOf,
  type TimelineEntry,
  timelineEntry,
} from "../../ops/index.js";
import { ACTIONS } from "../actions.js";
import { actions, header, type Message, note, ours, type Row, rows, withinLimits } from "../blocks/build.js";
import { withoutAddresses } from "../text/addresses.js";
import { messageLink, type TicketPlace } from "../text/link.js";
import { actorName, escapeText, escapeWithin, mentionUser, oneLine, withRef } from "../text/safe.js";
import { localSecond, localTime, withLocalTimes } from "../text/time.js";
import { attemptLines } from "./attempts.js";
import { filedByRow } from "./filed-by.js";
import { frozenSince } from "./frozen.js";
import { incidentTitle } from "./incident-card.js";
import { freezeName, referenceRow, reopenButton, verbName } from "./ops-cards.js";
import { runTitleOf } from "./run-card.js";
import { kindName } from "./sentences.js";

const LINES_SHOWN = 20;
const EVENTS_SHOWN = 40;
const EVIDENCE_SHOWN = 10;
/** What the provider shows, and what to do about it, stands whole. */
const SENTENCE_MAX = 1200;

const esc = (text: string, max = 300): string => escapeWithin(oneLine(text), max).text;

/** "op_0192… confirmed · refund £180.00 GBP ORD-10042": one line of a list, in mrkdwn. */
export const operationLine = (operation: Operation): string => lineOf(operation, false);

const lineOf = (operation: Operation, slowedDown: boolean): string =>
  `\`${operation.id}\` ${standing(operation)} · ${esc(shortOf(operation))} · created ${localTime(operation.createdAt)}${restText(operation, slowedDown)}`;

/** "refund £180.00 GBP ORD-10042, confirmed (`op_…`)": what the same request became the next time. */
const againText = (next: Operation): string => `${esc(shortOf(next))}, ${standing(next)} (\`${next.id}\`)`;

/** Of what is approved and rests: true before and after its time, as long as it has not left. */
function restText(operation: Operation, slowedDown: boolean): string {
  const { status, notBefore } = operation;
  if (isTriedAgain(operation)) return ` · ${triedPart(operation, slowedDown, localTime)}`;
  return status === "PREPARED" && notBefore !== null
    ? ` · not sent before ${localTime(notBefore)} (cooling off)`
    : "";
}

/** "confirmed by on-call's word alone": what only a person vouches for says so wherever its state is named. */
const standing = ({ status, result }: Pick<Operation, "status" | "result">): string => {
  const word = wordAlone(result);
  if (isTakenBack({ result })) return `${stateWords(status)} (approval taken back)`;
  return word === null ? stateWords(status) : `${stateWords(status)} ${word}`;
};

/** `page` is what the Next button carries; null: no further page. */
export function opsList(view: ListView, page: string | null): Message {
  const title = view.status === null ? "Operations" : `Operations: ${stateWords(view.status)}`;
  const lines = view.operations.slice(0, LINES_SHOWN).map((operation) => {
    const next = view.askedAgain.get(operation.id);
    return `${lineOf(operation, view.slowedDown.has(operation.id))}${next === undefined ? "" : ` · ${askedAnewWords(againText(next))}`}`;
  });
  return withinLimits(
    {
      text: `${title}. Open: ${countsText(view.counts)}.`,
      blocks: [
        header(title),
        note(`Open: ${countsText(view.counts)}.`),
        ...(view.frozen.length === 0 ? [] : [ours(view.frozen.map(frozenLine).join("\n"))]),
        ...chunks(lines, "Nothing here."),
        ...(page === null
          ? []
          : [actions("page", [{ action: ACTIONS.opsPage, text: "Next page", value: page }])]),
      ],
    },
    1,
  );
}

/** Lines in as few sections as hold them. */
export function chunks(lines: readonly string[], otherwise: string): KnownBlock[] {
  if (lines.length === 0) return [ours(otherwise)];
  const blocks: KnownBlock[] = [];
  let text = "";
  for (const line of lines) {
    if (text.length + line.length + 1 > 2900) {
      blocks.push(ours(text));
      text = "";
    }
    text = text === "" ? line : `${text}\n${line}`;
  }
  blocks.push(ours(text));
  return blocks;
}

/** `ticket`: whose it is; null: nobody's that is known. `workspace`: where links to messages begin; null: there are none. */
export function opsShow(
  view: OperationView,
  place: { readonly ticket: TicketPlace | null; readonly workspace: string | null } = NO_PLACE,
): Message {
  const { operation } = view;
  const amount = operation.kind === "refund" ? formatMoney(operation) : null;
  const table: (Row | null)[] = [
    amount === null ? null : { label: "Amount", value: { theirs: amount } },
    operation.orderRef === null ? null : { label: "Order", value: { theirs: operation.orderRef } },
    operation.subscriptionRef === null
      ? null
      : { label: "Subscription", value: { theirs: operation.subscriptionRef } },
    { label: "Customer", value: { theirs: withRef(view.customerName, operation.customerRef) } },
    filedByRow({ filers: operation.filers, ticket: place.ticket }, place.workspace),
    operation.approvedBy.length === 0
      ? null
      : { label: "Approved by", value: { ours: listOf(operation.approvedBy.map(mentionUser)) } },
    referenceRow(operation, view.referenceGiven),
    view.refundedElsewhere === null
      ? null
      : { label: "Refunded elsewhere", value: { theirs: elsewhereWords(view.refundedElsewhere) } },
    view.target === null ? null : { label: "Look it up by", value: { theirs: view.target } },
    { label: "Idempotency key", value: { theirs: operation.idempotencyKey } },
    operation.unknownSince === null
      ? null
      : {
          label: unknownSinceLabel(operation.quarantineReason),
          value: { ours: localTime(operation.unknownSince) },
        },
    view.nextLookAt === null ? null : { label: "Next look", value: { ours: localTime(view.nextLookAt) } },
  ];
  const attempts = attemptLines(view.attempts, operation);
  const verbs = view.safe.map(
    (verb) =>
      `• *${verbName(verb.verb)}*${whenPossible(verb)}: ${withLocalTimes(esc(verb.sentence, SENTENCE_MAX))}`,
  );
  const possible = view.safe.filter((verb) => verb.possible);
  const blocks: KnownBlock[] = [
    header(`${kindName(operation.kind)}: ${standing(operation)}`),
    note(`\`${operation.id}\` · times are in your own time zone`),
    ...rows(table.filter((row) => row !== null)),
    ...(view.frozen === null ? [] : [ours(frozenSince(view.frozen))]),
    ...pendingBlocks(view),
    ours(`*What was sent*\n${attempts.length === 0 ? nothingSentWords(view, againText) : ""}`.trim()),
    ...(attempts.length === 0 ? [] : chunks(attempts, "")),
    ours("*Evidence so far*"),
    ...(view.notAsked === null ? [] : [note(`${esc(view.notAsked)} What stands here is from before.`)]),
    ...chunks(evidenceLines(view), noEvidenceWords(view)),
    ours("*What recovery is allowed, and why*"),
    ...chunks(
      view.recovery.map((line) => `• ${withLocalTimes(esc(line, 600))}`),
      "• Nothing is left to recover.",
    ),
    ...(verbs.length === 0 ? [] : [ours("*What a person may do now*"), ...chunks(verbs, "")]),
    ...(possible.length === 0
      ? []
      : [
          actions(
            "resolve",
            possible.map((verb) => ({
              action: verbAction(verb.verb),
              text: verbName(verb.verb),
              value: operation.id,
            })),
          ),
        ]),
  ];
  if (operation.resolvedByPerson && (operation.status === "CONFIRMED" || operation.status === "REJECTED")) {
    blocks.push(actions("reopen", [reopenButton(operation)]));
  }
  return withinLimits({ text: esc(`${operation.id}: ${standing(operation)}`), blocks }, 1);
}

const NO_PLACE = { ticket: null, workspace: null } as const;

/** What is never possible says so itself. */
function whenPossible({ possible, never, people }: OperationView["safe"][number]): string {
  if (never === true) return "";
  if (!possible) return " (not now)";
  return people === 2 ? " (two people)" : " (one person)";
}

/** What lies open about it besides its state: findings, a decision that waits for its second person, an approval. */
function pendingBlocks({ operation, openIncidents, openResolution, approval }: OperationView): KnownBlock[] {
  const findings = openIncidents.map((incident) => {
    const facts = incidentFacts(incident).join(" · ");
    const whose = incident.operationId === operation.id ? "" : `, ${ofPayment(incident.operationId)}`;
    return `• Incident${whose}: ${esc(incidentTitle(incident.kind), 60)}${facts === "" ? "" : ` · ${facts}`} \`${esc(incident.id, 60)}\``;
  });
  const asked =
    openResolution === null
      ? []
      : [
          `• *${verbName(openResolution.verb)}* was asked for by ${mentionUser(openResolution.by)}, ${localTime(openResolution.createdAt)}, and waits for a second person${
            openResolution.expiresAt === null ? "" : ` until ${localTime(openResolution.expiresAt)}`
          }: ${esc(openResolution.reason)}`,
        ];
  const waits =
    approval === null || operation.status !== "AWAITING_APPROVAL"
      ? []
      : [
          `• Waits for the approval of ${peopleIn(approval.approversNeeded, esc(approval.role, 60))} until ${localTime(approval.expiresAt)}`,
        ];
  const lines = [...findings, ...asked, ...waits];
  return lines.length === 0 ? [] : [ours("*Still open*"), ...chunks(lines, "")];
}

const ofPayment = (operationId: string | null): string =>
  operationId === null ? "on the same payment" : `about \`${operationId}\` on the same payment`;

const evidenceLines = (view: OperationView): string[] =>
  evidenceTold(view)
    .slice(-EVIDENCE_SHOWN)
    .map(
      ({ at, how, sentence }) => `• ${localTime(at)}, ${how}: ${withLocalTimes(esc(sentence, SENTENCE_MAX))}`,
    );

function verbAction(verb: "confirm" | "reject" | "retry"): string {
  switch (verb) {
    case "confirm":
      return ACTIONS.resolveConfirm;
    case "reject":
      return ACTIONS.resolveReject;
    case "retry":
      return ACTIONS.resolveRetry;
    default:
      return assertNever(verb, "verb");
  }
}

export function opsEvents(view: EventsView): Message {
  const hidden = Math.max(0, view.events.length - EVENTS_SHOWN);
  const lines = view.events.slice(-EVENTS_SHOWN).map((event) => timelineText(timelineEntry(event)));
  return withinLimits(
    {
      text: `Events of ${view.operation.id}: ${view.events.length}.`,
      blocks: [
        header("Timeline"),
        note(
          `\`${view.operation.id}\` · ${standing(view.operation)}${hidden === 0 ? "" : ` · ${hidden} earlier events left out`}`,
        ),
        ...chunks(lines, "No events."),
      ],
    },
    1,
  );
}

/** "3. 29 Nov, 14:05:09 Attempt 1 began: it is sent. By worker w:1." and below it what it rests on. */
function timelineText({ seq, at, what, by, second, votes, evidence }: TimelineEntry): string {
  const agreed = second === null ? "" : `, and ${doerText(second)} agreed`;
  const who = `${seq === null ? "–" : `${seq}.`} ${localSecond(at)} *${esc(what)}* By ${doerText(by)}${agreed}.`;
  const voted = votes.map((vote) => {
    const role = vote.role === null ? "" : ` (${esc(vote.role, 60)})`;
    return `${vote.verdict === "approved" ? "Approved" : "Denied"} by ${doerText(vote.person)}${role}${vote.at === null ? "" : `, ${localSecond(vote.at)}`}.`;
  });
  return [
    who,
    ...[...voted, ...evidence.map((one) => withLocalTimes(esc(one)))].map((line) => `      ${line}`),
  ].join("\n");
}

const doerText = (doer: Doer): string =>
  "person" in doer ? mentionUser(doer.person) : escapeText(cutText(oneLine(doer.part), 80));

/** `workspace`: where links to messages begin; null: there are none. */
export function opsRuns(view: RunsView, workspace: string | null): Message {
  const lines = view.runs.slice(0, LINES_SHOWN).map((run) => runLines(run, workspace));
  return withinLimits(
    {
      text: `Runs: ${view.runs.length} shown.`,
      blocks: [
        header("Runs"),
        ...chunks(lines, "No runs."),
        ...(view.next === null ? [] : [note("The newest ones. `countersign runs list` shows all.")]),
      ],
    },
    1,
  );
}

/** "Finished · filed by @Ada · 3 steps · 29 Nov · Ticket · `run_…`", what it asked for, and how the ticket begins. */
function runLines(run: RunsView["runs"][number], workspace: string | null): string {
  const { message, asked } = run;
  const link = message === null ? null : messageLink(message, "Ticket", workspace);
  const ticket = link === null ? "" : ` · ${link}`;
  const head = `*${esc(runTitleOf(run.state, asked), 60)}*${endWords(run)} · filed by ${mentionUser(run.filer)} · ${counted(run.steps, "step")} · ${localTime(run.createdAt)}${ticket} · \`${run.id}\``;
  const more = asked.length - ASKED_SHOWN;
  const what = asked.slice(0, ASKED_SHOWN).map((one) => `      ${askedText(one)}`);
  return [
    head,
    ...what,
    ...(more > 0 ? [`      and ${more} more`] : []),
    `      “${esc(withoutAddresses(run.excerpt), EXCERPT_MAX)}”`,
  ].join("\n");
}

const ASKED_SHOWN = 3;
const EXCERPT_MAX = 100;

/** "Refund £180.00 GBP ORD-10042: confirmed" */
function askedText(asked: RunsView["runs"][number]["asked"][number]): string {
  const amount = asked.kind === "refund" ? ` ${esc(formatMoney(asked))}` : "";
  const target = asked.orderRef ?? asked.subscriptionRef ?? "";
  // Tried or not: what is prepared has had no effect.
  const state = asked.status === "PREPARED" ? "allowed, not carried out yet" : stateWords(asked.status);
  return `${kindName(asked.kind)}${amount} ${esc(target, 60)}: ${state}`;
}

/** How it ended, where the state does not say it. */
const endWords = ({ state, endCode }: RunsView["runs"][number]): string =>
  endCode === null || SAID_BY_STATE.has(endCode) || endCode === state
    ? ""
    : ` · ${esc(endCode.replaceAll("_", " "), 60)}`;
const SAID_BY_STATE: ReadonlySet<string> = new Set(["end_turn", "handed_over", "cancelled"]);

/** "`inc_0192…` Duplicate effect · ORD-10042 · £180.00 GBP · re_… · `op_…` · 29 Nov": one line of a list, in mrkdwn. */
export const incidentLine = (incident: IncidentsView["incidents"][number]): string =>
  [
    `\`${esc(incident.id, 60)}\` ${esc(incidentTitle(incident.kind), 60)}`,
    ...incidentFacts(incident),
    ...(incident.operationId === null ? [] : [`\`${incident.operationId}\``]),
    localTime(incident.createdAt),
  ].join(" · ");

/** By what it is told from the next one of its kind. */
const incidentFacts = ({ target, amount, references }: IncidentsView["incidents"][number]): string[] =>
  [target, amount, references.join(", ")]
    .filter((fact) => fact !== null && fact !== "")
    .map((fact) => esc(fact ?? "", 120));

export function opsIncidents(view: IncidentsView): Message {
  const lines = view.incidents.map(incidentLine);
  return withinLimits(
    {
      text: `Open incidents: ${lines.length === 0 ? "none" : `${lines.length} shown`}.`,
      blocks: [
        header("Open incidents"),
        ...chunks(lines, "No incident is open."),
        ...(view.next === null ? [] : [note("There are more; they come up here as these are closed.")]),
        ...(lines.length === 0
          ? []
          : [note("`/ops close INCIDENT` closes one, with a reason; so does its card.")]),
      ],
    },
    1,
  );
}

export function opsApprovals(view: ApprovalsView): Message {
  const lines = view.approvals.slice(0, LINES_SHOWN).map((approval) => {
    const amount = approval.kind === "refund" ? ` ${esc(formatMoney(approval))}` : "";
    const target = approval.orderRef ?? approval.subscriptionRef ?? "";
    const gate = approval.gateSentence === null ? "" : ` – ${esc(approval.gateSentence, 200)}`;
    return `\`${approval.operationId}\` ${kindName(approval.kind).toLowerCase()}${amount} ${esc(target, 60)} · waits for ${peopleIn(approval.missing, esc(approval.role, 60))}${approval.missing < approval.approversNeeded ? ` (${approval.approversNeeded - approval.missing} of ${approval.approversNeeded} given)` : ""} · until ${localTime(approval.expiresAt)}${gate}`;
  });
  return {
    text: `Approvals that wait: ${view.approvals.length} shown.`,
    blocks: [header("Approvals that wait"), ...chunks(lines, "No approval waits.")],
  };
}

export function frozenLine(state: FreezeState): string {
  const by = state.by === null ? "" : ` by ${actorName(state.by)}`;
  const at = state.at === null ? "" : `, ${localTime(state.at)}`;
  const asked = state.thawAskedBy === null ? "" : ` (thaw asked by ${mentionUser(state.thawAskedBy)})`;
  const why = state.reason === null || state.reason === "" ? "" : `: ${esc(state.reason)}`;
  return `• *${escapeText(freezeName(state.kind))}* frozen${by}${at}${asked}${why}`;
}

export function opsHealth(view: HealthView, now: Date): Message {
  const { title, facts, backlog } = healthTold(view);
  const told = (line: string): string => withLocalTimes(esc(line));
  const parts = view.parts.map(
    (part) => `• ${part.ok ? "ok" : "*not ok*"} – ${esc(part.name, 60)}: ${esc(part.sentence)}`,
  );
  const frozen = view.frozen.filter((state) => state.frozen).map(frozenLine);
  const bad = view.parts.filter((part) => !part.ok).map((part) => part.name);
  return {
    text: `${title}${bad.length === 0 ? "" : `: ${esc(bad.join(", "))}`}, ${utcTime(now)}.`,
    blocks: [
      header(title),
      ...chunks(parts, "No parts."),
      ours(facts.map(told).join("\n")),
      ...(backlog.length === 0
        ? [note("No backlog.")]
        : [ours(`*Backlog*\n${backlog.map((line) => `• ${told(line)}`).join("\n")}`)]),
      ...(frozen.length === 0 ? [note("Nothing is frozen.")] : [ours(frozen.join("\n"))]),
    ],
  };
}

export function opsHelp(): Message {
  const lines = OPS_HELP.map(({ usage, does }) => `\`/ops ${usage}\` – ${does}`);
  return {
    text: `Commands for on-call: ${OPS_HELP.map(({ usage }) => usage.split(" ")[0]).join(", ")}.`,
    blocks: [
      header("On-call commands"),
      ours(lines.join("\n")),
      note(
        "An ID may be shortened to its beginning; an order will do where it can mean only one. Looking changes nothing; what changes the world is said in the ops channel.",
      ),
    ],
  };
}
