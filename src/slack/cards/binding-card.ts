/** Whom a ticket is about, with Confirm and Change for the filer. */
import type { KnownBlock } from "@slack/types";
import { assertNever } from "../../domain/assert-never.js";
import type { BindingCandidate, Ticket } from "../../runs/index.js";
import { ACTIONS } from "../actions.js";
import { actions, type Message, note, ours, theirs } from "../blocks/build.js";
import { withoutAddresses } from "../text/addresses.js";
import { escapeWithin, mentionUser, oneLine } from "../text/safe.js";

const CANDIDATES_SHOWN = 8;
const WAITS_SHOWN = 5;

export interface BindingStanding {
  readonly ended: boolean;
  readonly approved: boolean;
  /** Changes that wait for the customer to be confirmed or for an approval, in words that may be the planner's. */
  readonly waits: readonly string[];
}

/** The small print below a customer that the filer left unconfirmed to the end. */
const LEFT_UNCONFIRMED = {
  nobody: "Nobody confirmed this.",
  approval:
    "Whoever filed it did not confirm this. Approving confirmed the customer for what was approved alone.",
} as const;

/**
 * `ended`: the ticket's work is over, so nothing can be confirmed or chosen any more. `approved`: an approval confirmed the customer
 * for its operation.
 */
export function bindingCard(ticket: Ticket, { ended, approved, waits }: BindingStanding): Message {
  if (ended && ticket.binding !== "confirmed") return endedCard(ticket, approved);
  switch (ticket.binding) {
    case "confirmed":
      return {
        text: `About ${nameOf(ticket)}.`,
        blocks: [
          theirs(`About ${rawName(ticket)}.`, 500),
          ...(ticket.boundBy === null ? [] : [note(`Confirmed by ${mentionUser(ticket.boundBy)}.`)]),
        ],
      };
    case "unconfirmed":
      return {
        text: `This looks to be about ${nameOf(ticket)}. Please confirm.`,
        blocks: [
          theirs(`This looks to be about ${rawName(ticket)}${foundBy(ticket)}. Is that right?`, 700),
          ...waitsBlocks(waits),
          note(
            `Until whoever filed it confirms this, every change waits for an approval, whatever its amount. ${ONCE_CONFIRMED}`,
          ),
          actions("binding", [
            {
              action: ACTIONS.bindingConfirm,
              text: "Confirm",
              value: ticket.id,
              style: "primary",
              says: "Confirm the customer",
            },
            { action: ACTIONS.bindingChange, text: "Change", value: ticket.id, says: "Change the customer" },
          ]),
        ],
      };
    case "none":
      return unbound(ticket);
    default:
      return assertNever(ticket.binding, "binding");
  }
}

const ONCE_CONFIRMED = "Once it is confirmed, what the policy allows by itself is done at once.";

function waitsBlocks(waits: readonly string[]): KnownBlock[] {
  if (waits.length === 0) return [];
  const more = waits.length - WAITS_SHOWN;
  const lines = waits.slice(0, WAITS_SHOWN).map((one) => `• ${oneLine(one)}`);
  return [
    ours("*Waits for this:*"),
    theirs([...lines, ...(more > 0 ? [`• and ${more} more`] : [])].join("\n"), 1_000),
  ];
}

function endedCard(ticket: Ticket, approved: boolean): Message {
  if (ticket.binding === "none") {
    const text =
      "It was not said which customer this is about. Name an order or the customer's e-mail address here, and a new run begins.";
    return { text, blocks: [theirs(text, 500)] };
  }
  return {
    text: `About ${nameOf(ticket)}, by its text.`,
    blocks: [
      theirs(`About ${rawName(ticket)}${foundBy(ticket)}.`, 700),
      note(approved ? LEFT_UNCONFIRMED.approval : LEFT_UNCONFIRMED.nobody),
    ],
  };
}

function unbound(ticket: Ticket): Message {
  const candidates = distinct(ticket.candidates);
  const question =
    candidates.length === 0
      ? "Which customer is this about? Answer here with an order reference or the customer's e-mail address, or press Choose."
      : "More than one customer fits this text. Which one is meant?";
  const list = candidates
    .slice(0, CANDIDATES_SHOWN)
    .map((one) => `• ${oneLine(withoutAddresses(one.name))} (${oneLine(one.customerRef)})${viaText(one)}`);
  const blocks: KnownBlock[] = [
    ours(question),
    ...(list.length === 0 ? [] : [theirs(list.join("\n"))]),
    note("Nothing is changed until that is known."),
    actions("binding", [
      {
        action: ACTIONS.bindingChange,
        text: "Choose",
        value: ticket.id,
        style: "primary",
        says: "Choose the customer",
      },
    ]),
  ];
  return { text: question, blocks };
}

/** One entry a customer, with every word that led there. */
export function distinct(candidates: readonly BindingCandidate[]): readonly BindingCandidate[] {
  const byCustomer = new Map<string, BindingCandidate>();
  for (const one of candidates) {
    const known = byCustomer.get(one.customerId);
    byCustomer.set(one.customerId, known === undefined ? one : { ...known, via: [...known.via, ...one.via] });
  }
  return [...byCustomer.values()];
}

export function viaText(candidate: Pick<BindingCandidate, "via">): string {
  const words = [...new Set(candidate.via.map((via) => oneLine(via.text)))].slice(0, 4);
  return words.length === 0 ? "" : `, by ${words.join(", ")}`;
}

function foundBy(ticket: Ticket): string {
  const [candidate] = distinct(ticket.candidates).filter((one) => one.customerId === ticket.customerId);
  return candidate === undefined ? "" : viaText(candidate);
}

const rawName = (ticket: Ticket): string =>
  `${oneLine(withoutAddresses(ticket.customerName ?? "?"))} (${oneLine(ticket.customerRef ?? "?")})`;
const nameOf = (ticket: Ticket): string => escapeWithin(rawName(ticket), 300).text;
