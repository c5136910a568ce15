/**
 * The scripted planner: simple, honest rules over the conversation instead of a model, for demos and tests without a key. It
 * looks things up first, asks for what the words ask for, and ends with a short text that says what it is. What came of its
 * requests it leaves to the rows.
 */

import { factsOnly } from "../../domain/text/advice.js";
import { cutText, headOf } from "../../domain/text/cut.js";
import { findReferences } from "../../domain/text/references.js";
import type { ContentBlock } from "../../runs/index.js";
import type { Planner, PlannerAnswer, PlannerRequest } from "../planner.js";
import { answering } from "./scripted-help.js";
import {
  type PastCall,
  type Reading,
  readConversation,
  type SeenOrder,
  seenCustomer,
  seenHelp,
  seenOrder,
  seenShipments,
} from "./scripted-reading.js";
import { type OrderAmongOthers, reasonOf, refundOf, type WantedCall } from "./scripted-refund.js";
import { isOrderLike, readWishes, type Wishes } from "./scripted-wishes.js";

/** How the planner names itself wherever it speaks. */
export const SCRIPTED_MARK = "Scripted planner, no model.";

type Move = { calls: readonly WantedCall[] } | { say: string };

export function scriptedPlanner(): Planner {
  return { name: "scripted", model: null, plan: (request) => Promise.resolve(plan(request)) };
}

function plan(request: PlannerRequest): PlannerAnswer {
  const reading = readConversation(request.messages);
  const move = decide(reading, readWishes(reading.words));
  const content: ContentBlock[] =
    "say" in move
      ? [{ type: "text", text: `${SCRIPTED_MARK} ${move.say}` }]
      : move.calls.map((call, index) => ({
          type: "tool_use",
          id: `toolu_scripted_${reading.replies + 1}_${index + 1}`,
          name: call.name,
          input: call.input,
        }));
  return {
    ok: true,
    reply: {
      content,
      stopReason: "say" in move ? "end_turn" : "tool_use",
      stopDetails: null,
      model: "scripted",
      usage: { inputTokens: 0, outputTokens: 0, raw: {} },
      requestId: null,
      malformed: new Map(),
    },
  };
}

function decide(reading: Reading, wishes: Wishes): Move {
  if (wishes.complaint) return escalate(wishes);
  const refused = reading.calls.filter((call) => WRITES.has(call.name) && call.isError);
  if (refused.length > 0) {
    const results = refused.map((call) => call.result);
    return handOver(wishes, "Not everything that was asked for was done.", results);
  }
  const acts = wishes.refund || wishes.cancelOrder || wishes.chargedTwice || wishes.whereIsIt;
  const ofSubscription = wishes.refund && wishes.refundSubscription;
  if (wishes.cancelSubscription && (!acts || ofSubscription || ordersNamed(wishes).length === 0)) {
    const move = subscription(reading, wishes);
    if (!acts || "calls" in move || reading.customer === null) return move;
    const rest = ofSubscription ? ONLY_ORDERS : "It is not clear on which order the rest of it is.";
    return handOver(wishes, rest, [move.say]);
  }
  if (ofSubscription) return handOver(wishes, ONLY_ORDERS, []);
  if (!acts) return ask(reading, wishes);
  const targets = orderTargets(reading, wishes);
  if ("calls" in targets || "say" in targets) return targets;
  const move = onOrders(reading, wishes, targets.orders);
  if ("calls" in move || !wishes.cancelSubscription) return move;
  const too = subscription(reading, wishes);
  return "calls" in too ? too : { say: `${move.say} ${too.say}` };
}

const ONLY_ORDERS = "Money is wanted back for a subscription, and only orders can be refunded here.";

function escalate(wishes: Wishes): Move {
  const about = wishes.references.length === 0 ? "" : ` It names ${wishes.references.join(", ")}.`;
  return {
    calls: [
      {
        name: "escalate_to_human",
        input: {
          summary: `${SCRIPTED_MARK} The ticket reads like a complaint for a person.${about} Nothing was changed. It says: ${cutText(wishes.text, 600)}`,
        },
      },
    ],
  };
}

const WRITES: ReadonlySet<string> = new Set(["issue_refund", "cancel_order", "cancel_subscription"]);

/** What was refused, denied, failed or unclear is no answer to the ticket: a person takes over, and is told what the results say. */
function handOver(wishes: Wishes, what: string, said: readonly string[]): Move {
  const results = [...new Set(said.map(factsOnly))].join(" ");
  return {
    calls: [
      {
        name: "escalate_to_human",
        input: {
          summary: [
            SCRIPTED_MARK,
            what,
            cutText(results, 900),
            `The ticket says: ${cutText(wishes.text, 400)}`,
          ]
            .filter((part) => part !== "")
            .join(" "),
        },
      },
    ],
  };
}

const callsNamed = (reading: Reading, name: string): PastCall[] =>
  reading.calls.filter((call) => call.name === name);

const calledFor = (reading: Reading, name: string, key: string, value: string): PastCall | undefined =>
  callsNamed(reading, name)
    .filter((call) => call.input[key] === value)
    .at(-1);

/** References of orders in the text; a line's reference (ORD-1-2) is not an order's where the order is named or fits. */
function ordersNamed(wishes: Wishes): string[] {
  const refs = wishes.references.filter(isOrderLike);
  return refs.filter((ref) => !refs.some((other) => other !== ref && ref.startsWith(`${other}-`)));
}

/** The orders meant: named ones, else the customer's only one, else a question. */
function orderTargets(reading: Reading, wishes: Wishes): { orders: readonly string[] } | Move {
  const named = ordersNamed(wishes);
  if (named.length > 0) return { orders: named };
  const found = callsNamed(reading, "find_customer").at(-1);
  const profile = found === undefined ? null : seenCustomer(found);
  if (reading.customer !== null && profile !== null) {
    const meant = mentioned(wishes, profile.orders);
    if (meant.length > 0) return { orders: meant };
    const [only, ...more] = profile.orders;
    if (only !== undefined && more.length === 0) return { orders: [only.reference] };
    const list = profile.orders.map((order) => order.reference).join(", ");
    return handOver(wishes, "It is not clear which order is meant.", [
      `The customer has ${list === "" ? "none" : list}.`,
    ]);
  }
  if (
    found === undefined ||
    (reading.customer !== null && profile === null && callsNamed(reading, "find_customer").length < 2)
  ) {
    const query = reading.customer ?? wishes.emails[0] ?? wishes.references[0];
    if (query !== undefined) return { calls: [{ name: "find_customer", input: { query } }] };
  }
  return { say: "I could not tell which order is meant. Which one is it?" };
}

/** Which of the customer's orders the words name, in the words' order: a shop's reference need not look like one ("big-one"). */
function mentioned(wishes: Wishes, orders: readonly { reference: string }[]): string[] {
  const theirs = new Map(orders.map(({ reference }) => [reference.toUpperCase(), reference]));
  const named = findReferences(wishes.text).candidates.map((spelling) => theirs.get(spelling.toUpperCase()));
  return [...new Set(named)].filter((reference) => reference !== undefined);
}

function onOrders(reading: Reading, wishes: Wishes, orders: readonly string[]): Move {
  const lacking = orders
    .filter((ref) => calledFor(reading, "get_order", "order_reference", ref) === undefined)
    .map((ref): WantedCall => ({ name: "get_order", input: { order_reference: ref } }));
  const tracking = wishes.whereIsIt
    ? orders
        .filter((ref) => calledFor(reading, "get_shipment_status", "order_reference", ref) === undefined)
        .map((ref): WantedCall => ({ name: "get_shipment_status", input: { order_reference: ref } }))
    : [];
  if (lacking.length + tracking.length > 0) return { calls: [...lacking, ...tracking] };
  const said: string[] = [];
  const wanted: WantedCall[] = [];
  const unclear: string[] = [];
  const lookups = orders.map((ref) => calledFor(reading, "get_order", "order_reference", ref));
  const seen = lookups.map((lookup) => (lookup === undefined ? null : seenOrder(lookup)));
  const unknown = orders.filter((_ref, index) => seen[index] === null);
  for (const [index, ref] of orders.entries()) {
    const lookup = lookups[index];
    const order = seen[index] ?? null;
    if (order === null) {
      unclear.push(lookup === undefined ? `${ref}: not found.` : factsOnly(lookup.result));
      continue;
    }
    const step = onOrder(reading, wishesFor(wishes, index, orders.length), {
      ...order,
      others: orders,
      unknown,
    });
    said.push(...step.said);
    wanted.push(...step.calls);
    unclear.push(...step.unclear);
  }
  if (wanted.length > 0) return { calls: wanted };
  if (unclear.length === 0) return { say: said.join(" ") };
  // Whom it is about is asked by the thread itself; whatever else is unclear, or on an order that is not theirs, is a person's.
  return reading.customer === null
    ? { say: [...new Set([...said, ...unclear])].join(" ") }
    : handOver(wishes, "Not everything that was asked for can be done.", [...said, ...unclear]);
}

/** Several orders: as many amounts belong to them in their order; one amount is meant for each only if the words say so. */
function wishesFor(wishes: Wishes, index: number, orders: number): Wishes {
  const { amounts } = wishes;
  if (orders === 1 || amounts.length === 0 || (amounts.length === 1 && wishes.each)) return wishes;
  const own = amounts.length === orders ? amounts[index] : undefined;
  return own === undefined ? { ...wishes, unclearAmounts: true } : { ...wishes, amounts: [own] };
}

function onOrder(
  reading: Reading,
  wishes: Wishes,
  order: OrderAmongOthers,
): { said: string[]; calls: WantedCall[]; unclear: string[] } {
  const ref = order.order.reference;
  const said: string[] = [];
  const unclear: string[] = [];
  const calls: WantedCall[] = [];
  if (wishes.whereIsIt) said.push(whereabouts(reading, ref));
  if (wishes.chargedTwice) said.push(payments(order));
  if (wishes.cancelOrder) {
    if (calledFor(reading, "cancel_order", "order_reference", ref) === undefined) {
      calls.push({ name: "cancel_order", input: { order_reference: ref, reason: reasonOf(wishes) } });
    } else said.push(`I asked to cancel ${ref}; what came of it stands above.`);
  }
  if (wishes.refund && !wishes.chargedTwice) {
    const refund = refundOf(wishes, order);
    if (typeof refund === "string") unclear.push(refund);
    else if (calledFor(reading, "issue_refund", "order_reference", ref) === undefined) calls.push(refund);
    else said.push(`I asked for a refund on ${ref}; what came of it stands above.`);
  }
  return { said, calls, unclear };
}

function whereabouts(reading: Reading, ref: string): string {
  const call = calledFor(reading, "get_shipment_status", "order_reference", ref);
  const seen = call === undefined ? null : seenShipments(call);
  if (seen === null) return call === undefined ? `${ref}: nothing is known.` : factsOnly(call.result);
  const parcels = seen.shipments.map((one) => `${one.carrier} ${one.tracking}: ${one.status}`);
  return `${ref} is ${seen.order.status}. ${parcels.length === 0 ? "No parcel is known." : `${parcels.join("; ")}.`}`;
}

function payments({ order, payment }: SeenOrder): string {
  return payment === null
    ? `There is no payment on ${order.reference}.`
    : `There is one payment on ${order.reference}, and ${payment.refundable_left} of it is not refunded. I found no second charge here, so I asked for nothing; the bank statement can show whether another shop or a pending hold is meant.`;
}

function subscription(reading: Reading, wishes: Wishes): Move {
  const asked = callsNamed(reading, "cancel_subscription").at(-1);
  if (asked !== undefined)
    return { say: "I asked to cancel the subscription; what came of it stands above." };
  const named = wishes.references.find((ref) => ref.startsWith("SUB-"));
  if (named !== undefined) return cancelSubscription(wishes, named);
  const found = callsNamed(reading, "find_customer").at(-1);
  const profile = found === undefined ? null : seenCustomer(found);
  const active = profile?.subscriptions.filter((one) => one.status !== "cancelled") ?? [];
  const [only, ...more] = active;
  if (only !== undefined && more.length === 0) return cancelSubscription(wishes, only.reference);
  const query = reading.customer ?? wishes.emails[0];
  if (profile === null && query !== undefined && callsNamed(reading, "find_customer").length < 2) {
    return { calls: [{ name: "find_customer", input: { query } }] };
  }
  return reading.customer === null
    ? { say: "I could not tell which subscription is meant. Which one is it?" }
    : handOver(wishes, "It is not clear which subscription is meant.", []);
}

const cancelSubscription = (wishes: Wishes, reference: string): Move => ({
  calls: [
    {
      name: "cancel_subscription",
      input: {
        subscription_reference: reference,
        at_period_end: wishes.atPeriodEnd,
        reason: reasonOf(wishes),
      },
    },
  ],
});

/** Nothing to do: the help centre may know; what it does not answer is a person's. */
function ask(reading: Reading, wishes: Wishes): Move {
  const found = callsNamed(reading, "search_help_centre").at(-1);
  if (found === undefined && wishes.text.trim().length >= 2) {
    return { calls: [{ name: "search_help_centre", input: { question: headOf(wishes.text, 400) } }] };
  }
  const article = answering(wishes.text, (found === undefined ? null : seenHelp(found))?.articles ?? []);
  return article === null
    ? handOver(
        wishes,
        "I found no request that I know in this ticket, and the help centre does not answer it. A person should read it.",
        [],
      )
    : { say: `The help centre says under "${article.title}": ${cutText(article.body, 700)}` };
}
