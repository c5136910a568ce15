/** Modal forms. `private_metadata` holds ids only; what is submitted is judged again from rows. */

import type { KnownBlock, ModalView, PlainTextInput } from "@slack/types";
import type { Approval } from "../../domain/approval.js";
import { frozenWords } from "../../domain/frozen.js";
import { currencyExponent } from "../../domain/money.js";
import { capital } from "../../domain/text/capital.js";
import { cutText, headOf } from "../../domain/text/cut.js";
import {
  type IncidentRow,
  type ProbeView,
  type ResolveVerb,
  type VerbView,
  WHOSE_IS_IT,
} from "../../ops/index.js";
import type { Ticket } from "../../runs/index.js";
import { INPUTS, VIEWS } from "../actions.js";
import { note, ours, plain, type Row, rows, theirs } from "../blocks/build.js";
import { LIMITS } from "../limits.js";
import { withoutAddresses } from "../text/addresses.js";
import { escapeWithin, oneLine, withRef } from "../text/safe.js";
import { localTime, withLocalTimes } from "../text/time.js";
import { heldBecause, isConfirmed } from "./approval-card.js";
import { distinct, viaText } from "./binding-card.js";
import { amountOf } from "./decide-sentences.js";
import { frozenSince } from "./frozen.js";
import { incidentTitle } from "./incident-card.js";
import { verbName } from "./ops-cards.js";
import { furtherAskedBy, type OperationFacts, outcomeOf, resultOf, whatOf } from "./sentences.js";

export type Modal = ModalView & { readonly private_metadata: string };

/** Where a form was opened, so that its answer can be given there. Ids only. */
export interface FormPlace {
  readonly channelId: string | null;
  readonly messageTs: string | null;
  readonly threadTs: string | null;
  readonly home: boolean;
}

export interface FormMeta {
  /** What the form is about: an approval's value, a ticket, an operation and a verb. */
  readonly about: string;
  readonly verb?: ResolveVerb;
  readonly place: FormPlace;
}

interface InputSpec {
  readonly input: { readonly block: string; readonly action: string };
  readonly label: string;
  readonly hint?: string;
  readonly placeholder?: string;
  readonly multiline?: boolean;
  readonly optional?: boolean;
  readonly initial?: string;
  readonly max?: number;
}

function textInput(spec: InputSpec): KnownBlock {
  const element: PlainTextInput = {
    type: "plain_text_input",
    action_id: spec.input.action,
    multiline: spec.multiline ?? false,
    max_length: spec.max ?? LIMITS.inputMax,
    ...(spec.placeholder === undefined ? {} : { placeholder: plain(spec.placeholder, LIMITS.placeholder) }),
    ...(spec.initial === undefined || spec.initial === ""
      ? {}
      : { initial_value: cutText(spec.initial, LIMITS.inputMax) }),
  };
  return {
    type: "input",
    block_id: spec.input.block,
    optional: spec.optional ?? false,
    label: plain(spec.label, 200),
    element,
    ...(spec.hint === undefined ? {} : { hint: plain(spec.hint, 500) }),
  };
}

interface FormSpec {
  readonly callback: string;
  readonly title: string;
  readonly submit: string;
  readonly meta: FormMeta | null;
  readonly blocks: readonly KnownBlock[];
}

function form({ callback, title, submit, meta, blocks }: FormSpec): Modal {
  return {
    type: "modal",
    callback_id: callback,
    title: plain(title, LIMITS.viewTitle),
    submit: plain(submit, LIMITS.viewSubmit),
    close: plain("Cancel", LIMITS.viewSubmit),
    private_metadata: meta === null ? "" : JSON.stringify(meta),
    blocks: [...blocks],
  };
}

export function ticketForm(text: string, place: FormPlace): Modal {
  return form({
    callback: VIEWS.ticket,
    title: "File a ticket",
    submit: "File",
    meta: { about: "ticket", place },
    blocks: [
      textInput({
        input: INPUTS.text,
        label: "What should be done?",
        placeholder: "ORD-1001 came broken, $20 back please",
        multiline: true,
        initial: text,
      }),
      textInput({
        input: INPUTS.reference,
        label: "Order, subscription or customer's e-mail",
        hint: "Named here, the customer counts as confirmed by you.",
        optional: true,
        max: 200,
      }),
    ],
  });
}

/** What a decision is about, in a word: Slack draws every form's button in green, so that only its words tell them apart. */
const subjectOf = ({ kind }: Pick<OperationFacts, "kind">): string =>
  kind === "refund" ? "refund" : "cancellation";

export function denyForm(approval: Approval, meta: FormMeta): Modal {
  const { binding } = approval;
  const money = binding.kind === "refund";
  return form({
    callback: VIEWS.deny,
    title: `Deny this ${subjectOf(binding)}`,
    submit: `Deny ${subjectOf(binding)}`,
    meta,
    blocks: [
      theirs(`${whatOf(binding)} for ${withRef(binding.customerName, binding.customerRef)}`, 600),
      note(`*Deny ${subjectOf(binding)}* says no: nothing is sent.`),
      textInput({
        input: INPUTS.note,
        label: "Note",
        hint: "Whoever asked and the agent read it.",
        multiline: true,
        max: 1000,
      }),
      ...(money
        ? [
            textInput({
              input: INPUTS.smaller,
              label: `Smaller amount in ${binding.currency} instead`,
              hint: `A new ticket may ask for that much; the policy decides whether it needs an approval.${currencyExponent(binding.currency) === 0 ? " Whole numbers only." : ""}`,
              optional: true,
              max: 30,
            }),
          ]
        : []),
    ],
  });
}

export function amountForm(approval: Approval, meta: FormMeta): Modal {
  const { binding } = approval;
  return form({
    callback: VIEWS.approveAmount,
    title: `Approve ${subjectOf(binding)}`,
    submit: `Approve ${subjectOf(binding)}`,
    meta,
    blocks: [
      theirs(`${whatOf(binding)} for ${withRef(binding.customerName, binding.customerRef)}`, 600),
      textInput({
        input: INPUTS.amount,
        label: `Type the amount again: ${amountOf(approval)}`,
        hint: "An amount this large is approved only by repeating it.",
        max: 40,
      }),
    ],
  });
}

/** Select whose options are the candidates; its values are customer ids. */
export const CANDIDATE = { block: "candidate", action: "candidate" } as const;

export function bindingForm(ticket: Ticket, meta: FormMeta): Modal {
  const candidates = distinct(ticket.candidates).slice(0, 10);
  return form({
    callback: VIEWS.bindingChange,
    title: "Which customer?",
    submit: "Choose",
    meta,
    blocks: [
      ...(candidates.length === 0
        ? []
        : [
            {
              type: "input" as const,
              block_id: CANDIDATE.block,
              optional: true,
              label: plain("Found in the text", 200),
              element: {
                type: "radio_buttons" as const,
                action_id: CANDIDATE.action,
                options: candidates.map((one) => ({
                  text: plain(oneLine(`${one.name} (${one.customerRef})${viaText(one)}`), LIMITS.optionText),
                  value: one.customerId,
                })),
              },
            },
          ]),
      textInput({
        input: INPUTS.reference,
        label:
          candidates.length === 0
            ? "Order, subscription or e-mail"
            : "Or another order, subscription or e-mail",
        optional: candidates.length > 0,
        max: 200,
      }),
    ],
  });
}

/** Where the verb is not possible it asks the provider; where it never is, it says what to do instead, with nothing to send. */
export function resolveForm(
  operation: OperationFacts,
  verb: VerbView,
  meta: FormMeta,
  asked: ProviderAsked,
): Modal {
  const { frozen } = operation;
  // It stands first that nothing is sent; what else the form is for, whoever reads on finds.
  const onlyFrozen =
    verb.verb === "retry" && frozen !== null && verb.sentence.includes(frozenWords(frozen.kind));
  const facts = [
    ...(onlyFrozen
      ? [
          ours(
            `${frozenSince(frozen)} *Authorise retry* is possible after that; until then this form only asks the provider.`,
          ),
        ]
      : []),
    ...rows([...operationRows(operation), ...(asked === null ? [] : [providerRow(asked)])]),
    ...(asked === null || asked === "asking" ? [] : wordBlocks(operation, verb.verb, asked)),
    // In the reader's time, as the card that this form was opened from.
    ...(onlyFrozen ? [] : [ours(withLocalTimes(escapeWithin(oneLine(verb.sentence), 1000).text))]),
  ];
  if (verb.never === true) return closed(verbName(verb.verb), facts);
  return form({
    callback: VIEWS.resolve,
    title: verbName(verb.verb),
    submit: submitOf(verb),
    meta: { ...meta, verb: verb.verb },
    blocks: [
      ...facts,
      note(
        "The provider is asked once more before anything is written; if it answers the question, its answer counts.",
      ),
      reasonInput(),
      evidenceInput(),
    ],
  });
}

/** What the provider says now; "asking": its answer comes into the open form. null: there is nothing to ask. */
export type ProviderAsked = ProbeView | "asking" | null;

const providerRow = (asked: ProbeView | "asking"): Row => ({
  label: "Provider says now",
  value: {
    theirs: asked === "asking" ? "It is being asked; the answer comes here." : asked.sentence,
  },
});

/** Where the button would rest on a person's word, or do nothing, it is said before it is pressed. */
function wordBlocks(operation: OperationFacts, verb: ResolveVerb, asked: ProbeView): KnownBlock[] {
  const care = asked.differs === true ? carefullyDiffering(operation, verb) : carefully(verb, asked.says);
  return care === null ? [] : [ours(`*Take care:* ${care}`)];
}

const NOT: Readonly<Record<ResolveVerb, string>> = {
  confirm: "it is not confirmed",
  reject: "it is not rejected",
  retry: "nothing is sent",
};

/** Of what was made, and not as it was asked for: it settles nothing by itself, and is only ever rejected. */
function carefullyDiffering({ kind, status }: OperationFacts, verb: ResolveVerb): string {
  if (verb === "confirm") return `what the provider shows is not what was asked for, so ${NOT.confirm}.`;
  const shown = "the provider shows one that is not what was asked for";
  if (verb === "retry") return `${shown}, so ${NOT.retry}.`;
  if (status !== "QUARANTINED") return `${shown}, so ${NOT.reject} until it waits for a person.`;
  const made = kind === "refund" ? "counts as refunded elsewhere" : "stays as the provider shows it";
  return `${shown}. Rejected, it counts as not carried out, and what was made ${made}.`;
}

/** What the button does that its name does not say, by what the provider shows; null: nothing. */
function carefully(verb: ResolveVerb, says: string): string | null {
  const not = NOT[verb];
  switch (says) {
    case "absent":
    case "unknown":
      if (verb === "confirm") return "confirmed now, it rests on your word alone, and is told so everywhere.";
      if (verb === "retry") return null;
      return says === "unknown"
        ? "without the provider's answer it cannot be rejected."
        : "that the provider shows nothing is no proof as long as something that was sent can still arrive.";
    case "committed":
      return verb === "confirm"
        ? null
        : `the provider shows one, so ${not}. Where that is what was asked for, it is settled by it as carried out.`;
    case "failed_at_provider":
      return verb === "reject"
        ? null
        : `it failed at the provider, so ${not}; it is settled by that as not carried out.`;
    case "unattributed":
      return `nobody here asked for what the provider shows${verb === "retry" ? `, so ${not}` : ""}. ${WHOSE_IS_IT}`;
    case "duplicate":
      return verb === "confirm" ? null : `the provider shows it more than once, so ${not}.`;
    case "pending":
      return `it is pending at the provider, so ${not}: its end there settles it.`;
    default:
      return null;
  }
}

function submitOf({ verb, possible, people }: VerbView): string {
  if (!possible) return "Ask the provider";
  return people === 2 ? "Ask a second person" : verbName(verb);
}

function operationRows(operation: OperationFacts): Row[] {
  return [
    { label: "Operation", value: { theirs: whatOf(operation) } },
    { label: "Customer", value: { theirs: withRef(operation.customerName, operation.customerRef) } },
    { label: "Id", value: { theirs: operation.id } },
  ];
}

const reasonInput = (): KnownBlock =>
  textInput({ input: INPUTS.reason, label: "Reason", multiline: true, max: 1000 });

const evidenceInput = (): KnownBlock =>
  textInput({
    input: INPUTS.evidence,
    label: "Evidence",
    hint: "A reference that an auditor can follow: the provider's refund id, a ticket, a link.",
    max: 500,
  });

export function reopenForm(operation: OperationFacts, meta: FormMeta): Modal {
  return form({
    callback: VIEWS.reopen,
    title: "Open again",
    submit: "Open again",
    meta,
    blocks: [
      ...rows(operationRows(operation)),
      theirs(resultOf(operation), 1000),
      note(
        operation.kind === "refund"
          ? "It waits for a person again, its amount counts as spent until it is settled anew, and nothing is sent by this."
          : "It waits for a person again, and nothing is sent by this.",
      ),
      reasonInput(),
      evidenceInput(),
    ],
  });
}

export function closeIncidentForm(incident: IncidentRow, meta: FormMeta): Modal {
  return form({
    callback: VIEWS.closeIncident,
    title: "Close incident",
    submit: "Close",
    meta,
    blocks: [
      ...rows([
        { label: "Incident", value: { theirs: `${incidentTitle(incident.kind)} (${incident.id})` } },
        ...[
          { label: "Order or subscription", said: incident.target },
          { label: "Amount", said: incident.amount },
          { label: "Provider reference", said: incident.references.join(", ") },
          { label: "Operation", said: incident.operationId },
        ].flatMap(({ label, said }) =>
          said === null || said === "" ? [] : [{ label, value: { theirs: said } }],
        ),
        { label: "Found", value: { ours: localTime(incident.createdAt) } },
      ]),
      note("The finding stays on record with your name and your reason. Closing changes no operation."),
      reasonInput(),
    ],
  });
}

/** Shown when a submitted form takes longer than Slack waits. */
export function workingView(): Modal {
  return closed("Working on it", [
    theirs("This takes a moment. You can close this; the answer comes as a message."),
  ]);
}

/** A window with nothing to submit. */
export function closed(title: string, blocks: readonly KnownBlock[]): Modal {
  return {
    type: "modal",
    callback_id: VIEWS.details,
    title: plain(title, LIMITS.viewTitle),
    close: plain("Close", LIMITS.viewSubmit),
    private_metadata: "",
    blocks: blocks.slice(0, LIMITS.blocksPerView),
  };
}

/** Everything about an approval that its card cuts short. */
export function approvalDetails(
  approval: Approval,
  operation: OperationFacts,
  ticket: Ticket | null,
  othersWait: boolean,
): Modal {
  const { reasons } = approval.binding.policy;
  // Decided, it is how it was judged; while it is a question, the same words as on the card.
  const held =
    approval.state === "PENDING" ? heldBecause(approval, isConfirmed(approval, ticket), othersWait) : reasons;
  const parts: (readonly [string, string])[] = [
    ["Why it is held", held.map((reason) => `• ${oneLine(reason)}`).join("\n")],
    [
      "Planner's words, unverified",
      furtherAskedBy(operation.reason) === null ? withoutAddresses(operation.reason) : "",
    ],
    ["The ticket, as it was written", ticket?.text ?? ""],
    ["Note", approval.denyNote ?? ""],
    ...approval.votes.map((vote) => [`Note by ${vote.userId}`, vote.note ?? ""] as const),
    [
      "Items",
      operation.items.map((item) => `${item.ref}${item.name === null ? "" : `: ${item.name}`}`).join("\n"),
    ],
  ];
  return closed("Full text", [
    theirs(
      `${whatOf(approval.binding)} for ${withRef(approval.binding.customerName, approval.binding.customerRef)}`,
      1000,
    ),
    note(`Operation ${operation.id}`),
    ...(approval.state === "PENDING" ? [] : [theirs(endOf(operation), 1000)]),
    ...parts
      .filter(([, text]) => text.trim() !== "")
      .flatMap(([label, text]) => [ours(`*${label.replace(/[<>&*]/gu, "")}*`), ...long(text)]),
  ]);
}

/** How it ended or stands; what it is stands above. */
function endOf(operation: OperationFacts): string {
  const said = outcomeOf(operation);
  const what = `${whatOf(operation)}: `;
  if (!said.startsWith(what)) return resultOf(operation);
  const end = said.slice(what.length);
  return capital(end);
}

const PART_MAX = 2_000;

/** Up to about 40,000 characters, which is as much as Slack lets anybody write. */
function long(text: string): KnownBlock[] {
  const blocks: KnownBlock[] = [];
  for (let at = 0; at < text.length && blocks.length < 30; ) {
    const part = headOf(text.slice(at, at + 2 * PART_MAX), PART_MAX);
    if (part.trim() !== "") blocks.push(theirs(part));
    at += part.length;
  }
  return blocks;
}
