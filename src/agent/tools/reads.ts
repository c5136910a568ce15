/**
 * Read tools. Wide in what they find (part of a name, a misspelt question), bounded by the ticket's scope in whom they show.
 * Results say what must not be missed: already refunded, what is left, what is held and by whom.
 */

import { assertNever } from "../../domain/assert-never.js";
import type { Json, JsonObject } from "../../domain/json.js";
import { formatMoney, money } from "../../domain/money.js";
import { onWord } from "../../domain/named-evidence.js";
import type { Operation } from "../../domain/operation.js";
import type { Db, Tx } from "../../domain/ports/database.js";
import { headOf } from "../../domain/text/cut.js";
import type { AgentCtx, OrderFacts } from "../ports.js";
import { amountOf, nameOf, type ToolResult } from "../results.js";
import { mayRead, outOfScope, type Scope } from "../scope.js";
import type { ReadCall } from "./catalogue.js";

export type ReadCtx = Pick<AgentCtx, "shop" | "gate" | "forbidden">;

const CUSTOMER_MATCHES = 5;
const ORDERS_SHOWN = 20;
/** Lines of one order that are shown; the rest is counted. */
const LINES_SHOWN = 100;
const ARTICLES = 3;
const ARTICLE_CHARS = 1_500;

/** Runs one read. Never throws for what was not found: that is an answer. */
export async function runRead(ctx: ReadCtx, db: Db | Tx, scope: Scope, call: ReadCall): Promise<ToolResult> {
  switch (call.name) {
    case "get_order":
      return getOrder(ctx, db, scope, call.input.order_reference);
    case "get_shipment_status":
      return getShipments(ctx, db, scope, call.input.order_reference);
    case "find_customer":
      return scope.kind === "customer"
        ? ownCustomer(ctx, db, scope.customerId, call.input.query)
        : anyCustomer(ctx, db, call.input.query);
    case "search_help_centre":
      return searchHelp(ctx, db, call.input.question);
    default:
      return assertNever(call, "read tool");
  }
}

const answer = (value: JsonObject): ToolResult => ({
  result: JSON.stringify(value),
  resultJson: value,
  isError: false,
});

const sorry = (sentence: string): ToolResult => ({ result: sentence, resultJson: null, isError: true });

/** The same words whether it exists or not; what exists and is somebody else's is counted. */
function notInScope(ctx: ReadCtx, order: OrderFacts | null, reference: string): ToolResult {
  if (order !== null) ctx.forbidden("scope");
  return sorry(outOfScope(reference));
}

/** The order as typed, or in capitals: people type references either way. */
export async function findOrder(ctx: ReadCtx, db: Db | Tx, reference: string): Promise<OrderFacts | null> {
  const exact = await ctx.shop.order(db, reference);
  if (exact !== null || reference === reference.toUpperCase()) return exact;
  return ctx.shop.order(db, reference.toUpperCase());
}

async function getOrder(ctx: ReadCtx, db: Db | Tx, scope: Scope, reference: string): Promise<ToolResult> {
  const order = await findOrder(ctx, db, reference);
  if (order === null || !mayRead(scope, order)) return notInScope(ctx, order, reference);
  const live = [
    ...(await ctx.gate.liveOn(db, { kind: "refund", orderRef: order.ref })),
    ...(await ctx.gate.liveOn(db, { kind: "cancel_order", orderRef: order.ref })),
  ];
  return answer({
    order: {
      reference: order.ref,
      status: order.status,
      currency: order.currency,
      placed_at: order.placedAt.toISOString(),
      delivered_at: order.deliveredAt?.toISOString() ?? null,
      cancelled_at: order.cancelledAt?.toISOString() ?? null,
      lines: order.items.slice(0, LINES_SHOWN).map((item) => ({
        reference: item.ref,
        name: item.name,
        quantity: item.quantity,
        unit_amount_minor: Number(item.unitMinor),
        line_total_minor: Number(item.unitMinor * BigInt(item.quantity)),
        line_total: show(item.unitMinor * BigInt(item.quantity), order.currency),
      })),
      shipping_minor: Number(order.shippingMinor),
    },
    payment: paymentFacts(order),
    notes: orderNotes(order, live),
  });
}

/** Captured less everything spent, set aside, or refunded outside; never below zero. Minor units. */
export function refundableMinor({ payment }: OrderFacts): bigint {
  return payment === null || payment.refundable < 0n ? 0n : payment.refundable;
}

function paymentFacts(order: OrderFacts): Json {
  if (order.payment === null) return null;
  const { captured, reserved, refunded, refundedElsewhere } = order.payment;
  const left = refundableMinor(order);
  return {
    paid_minor: Number(captured),
    already_refunded_minor: Number(refunded + refundedElsewhere),
    set_aside_minor: Number(reserved),
    refundable_left_minor: Number(left),
    refundable_left: show(left, order.currency),
  };
}

function orderNotes(order: OrderFacts, live: readonly Operation[]): string[] {
  const notes: string[] = [];
  const hidden = order.items.length - LINES_SHOWN;
  if (hidden > 0) notes.push(`${hidden} further lines are not shown.`);
  if (order.payment === null) notes.push("There is no payment on this order: nothing can be refunded.");
  else if (refundableMinor(order) === 0n) notes.push("Nothing is left to refund on this order.");
  const elsewhere = order.payment?.refundedElsewhere ?? 0n;
  if (elsewhere > 0n) notes.push(`${show(elsewhere, order.currency)} was refunded outside this system.`);
  const other = order.payment?.otherCurrency ?? null;
  if (other !== null) {
    notes.push(
      `The provider shows a refund in ${other}: nothing can be refunded until on-call has looked into it.`,
    );
  }
  for (const operation of live) notes.push(operationNote(operation));
  return notes;
}

/** One sentence from the operation's row. */
function operationNote(operation: Operation): string {
  const onCall = onWord(operation.result);
  const word = onCall === null ? "" : `, ${onCall}`;
  switch (operation.status) {
    case "CONFIRMED":
      return operation.kind === "refund"
        ? `Already refunded: ${amountOf(operation)} (reference${word === "" ? "" : " given"} ${operation.providerRef ?? "?"}${word}).`
        : `Already done: ${nameOf(operation)}${word}.`;
    case "AWAITING_APPROVAL":
      return `Held: ${nameOf(operation)} waits for a person's approval${
        operation.filers.length === 0 ? "" : ` (asked for by ${operation.filers.join(", ")})`
      }.`;
    case "PREPARED":
    case "DISPATCHED":
      return `Under way: ${nameOf(operation)}.`;
    case "QUARANTINED":
      return `With on-call: ${nameOf(operation)}; it may have happened.`;
    case "OUTCOME_UNKNOWN":
    case "RECONCILING":
      return `Being checked with the provider: ${nameOf(operation)}; it may have happened.`;
    case "REVERSED":
      return `Done and later taken back: ${nameOf(operation)}.`;
    case "REJECTED":
    case "DENIED":
    case "EXPIRED":
    case "VOIDED":
      return `Not done: ${nameOf(operation)}${word}.`;
    default:
      return assertNever(operation.status, "operation status");
  }
}

async function getShipments(ctx: ReadCtx, db: Db | Tx, scope: Scope, reference: string): Promise<ToolResult> {
  const order = await findOrder(ctx, db, reference);
  if (order === null || !mayRead(scope, order)) return notInScope(ctx, order, reference);
  return answer({
    order: { reference: order.ref, status: order.status },
    shipments: order.shipments.map((shipment) => ({
      carrier: shipment.carrier,
      tracking: shipment.tracking,
      status: shipment.status,
      updated_at: shipment.updatedAt.toISOString(),
    })),
    notes: order.shipments.length === 0 ? ["No parcel is known for this order."] : [],
  });
}

async function ownCustomer(
  ctx: ReadCtx,
  db: Db | Tx,
  customerId: string,
  query: string,
): Promise<ToolResult> {
  const customer = await ctx.shop.customer(db, customerId);
  if (customer === null) return sorry("The customer of this ticket is no longer in the shop.");
  const words = query.toLowerCase();
  const matches = [customer.name, customer.email, customer.ref].some((value) =>
    value.toLowerCase().includes(words),
  );
  const orders = await ctx.shop.ordersOf(db, customerId, ORDERS_SHOWN);
  const subscriptions = await ctx.shop.subscriptionsOf(db, customerId);
  return answer({
    customer: { reference: customer.ref, name: customer.name, email: customer.email },
    orders: orders.map((order) => ({
      reference: order.ref,
      status: order.status,
      placed_at: order.placedAt.toISOString(),
    })),
    subscriptions: subscriptions.map((subscription) => ({
      reference: subscription.ref,
      plan: subscription.plan,
      status: subscription.status,
      current_period_end: subscription.currentPeriodEnd?.toISOString() ?? null,
      ends_with_period: subscription.cancelAtPeriodEnd,
    })),
    notes: [
      ...(matches ? [] : ["The words do not match; this is the customer of the ticket all the same."]),
      "Only the customer of this ticket is shown.",
    ],
  });
}

/** Before anybody is bound: whom might be meant, for the filer to choose from. No addresses, no orders. */
async function anyCustomer(ctx: ReadCtx, db: Db | Tx, query: string): Promise<ToolResult> {
  if (query.replace(/[^\p{L}\p{N}]/gu, "").length < 3) {
    return sorry("The query needs at least three letters or digits.");
  }
  const found = await ctx.shop.searchCustomers(db, query, CUSTOMER_MATCHES);
  return answer({
    matches: found.map((customer) => ({
      reference: customer.ref,
      name: customer.name,
      email: masked(customer.email),
    })),
    notes: [
      "Nobody is bound to this ticket yet: the filer says in the thread whom it is about. Until then nothing can be changed.",
    ],
  });
}

/** "t…@shop.example" */
const masked = (email: string): string => email.replace(/^(.).*(@.*)$/s, "$1…$2");

async function searchHelp(ctx: ReadCtx, db: Db | Tx, question: string): Promise<ToolResult> {
  const found = await ctx.shop.searchHelp(db, question, ARTICLES);
  return answer({
    articles: found.map((article) => ({
      slug: article.slug,
      title: article.title,
      body:
        article.body.length <= ARTICLE_CHARS ? article.body : `${headOf(article.body, ARTICLE_CHARS)} […cut]`,
    })),
    notes: found.length === 0 ? ["The help centre has nothing on this."] : [],
  });
}

function show(amountMinor: bigint, currency: string): string {
  try {
    return formatMoney(money(amountMinor, currency));
  } catch {
    return `${amountMinor} ${currency} (minor units)`;
  }
}
