/** Reading what the provider lists, to the last page or not at all. */
import type Stripe from "stripe";
import { BAD_REFERENCE, type Listing, type ProviderEffect } from "../domain/evidence.js";
import type { Clock } from "../domain/ports/clock.js";
import type { ReadOptions } from "../domain/ports/payment-provider.js";
import { networkWords } from "../domain/text/network-words.js";
import type { CallOptions, Exchange, Transport } from "./transport.js";
import {
  cancellationEffect,
  errorSchema,
  readJson,
  refundEffect,
  refundListSchema,
  refundSchema,
  subscriptionSchema,
} from "./wire.js";

export interface ReadContext {
  stripe: Stripe;
  transport: Transport;
  clock: Clock;
}

/** The provider's largest page (docs.stripe.com/api/refunds/list). */
const PAGE_SIZE = 100;
/** A hundred thousand refunds of one payment are no payment; a list that long turns in circles. */
const MAX_PAGES = 1_000;
/** However large its pages are. */
const MAX_LISTED = MAX_PAGES * PAGE_SIZE;

/** Which refunds: those of one payment, or all since a time. */
export type RefundQuery = { paymentIntent: string } | { createdSince: Date };

/**
 * Every refund that the query names. A page that cannot be read fails the whole listing. One payment's list is read within a lease, so
 * its time is for all pages together; the whole account's may have as many pages as the shop has refunds, so its time is for each.
 */
export async function listRefunds(
  ctx: ReadContext,
  query: RefundQuery,
  options: ReadOptions,
): Promise<Listing> {
  const deadline = "paymentIntent" in query ? performance.now() + options.timeoutMs : undefined;
  const found = new Map<string, ProviderEffect>();
  let startingAfter: string | null = null;
  for (let page = 0; page < MAX_PAGES; page += 1) {
    const params: Stripe.RefundListParams = {
      ...("paymentIntent" in query
        ? { payment_intent: query.paymentIntent }
        : { created: { gte: Math.floor(query.createdSince.getTime() / 1000) } }),
      limit: PAGE_SIZE,
      ...(startingAfter === null ? {} : { starting_after: startingAfter }),
    };
    const exchange = await ctx.transport.call(remaining(options, deadline), async () => {
      await ctx.stripe.refunds.list(params);
    });
    const problem = readProblem(exchange);
    if (problem !== null) return problem;
    const list = readJson(refundListSchema, exchange.body ?? "");
    if (list === null) return unreadable();
    const before = found.size;
    for (const refund of list.data) {
      const effect = refundEffect(refund, targetOf(query));
      const key = "paymentIntent" in query ? effect.ref : `${effect.ref} ${effect.target}`;
      const known = found.get(key);
      // Between two pages a refund may move on; it does not become another one.
      if ("paymentIntent" in query && known !== undefined && isAnother(known, effect))
        return twice(effect.ref);
      found.set(key, effect);
    }
    if (found.size > MAX_LISTED) return tooLong();
    if (!list.has_more) return complete(ctx, onlyOf(query, found));
    const last = list.data.at(-1);
    if (last === undefined || found.size === before) {
      return { read: "failed", reason: "pagination", detail: "The provider's list does not come to an end." };
    }
    startingAfter = last.id;
  }
  return tooLong();
}

const tooLong = (): FailedRead => ({
  read: "failed",
  reason: "pagination",
  detail: "The provider's list has too many pages.",
});

const isAnother = (one: ProviderEffect, other: ProviderEffect): boolean =>
  one.operationId !== other.operationId ||
  one.amountMinor !== other.amountMinor ||
  one.currency !== other.currency ||
  one.target !== other.target;

const twice = (ref: string): FailedRead => ({
  read: "failed",
  reason: "unreadable_answer",
  detail: `The provider's list shows two different refunds as ${ref}.`,
});

const targetOf = (query: RefundQuery): string => ("paymentIntent" in query ? query.paymentIntent : "");

/** A list that holds other payments' refunds was not filtered; they are not this payment's. */
function onlyOf(query: RefundQuery, found: ReadonlyMap<string, ProviderEffect>): ProviderEffect[] {
  const effects = [...found.values()];
  return "paymentIntent" in query ? effects.filter(({ target }) => target === query.paymentIntent) : effects;
}

/**
 * What may stand in a path of the provider's as an id, whatever its prefix: nothing empty, which would list everything, and nothing that
 * a server could take for another path.
 */
const NAMEABLE = /^[A-Za-z0-9_][A-Za-z0-9_.:~-]{0,254}$/;

/** One effect, or none, by reference. A reference that can be no id is refused. */
export async function readByRef(ctx: ReadContext, ref: string, options: ReadOptions): Promise<Listing> {
  if (!NAMEABLE.test(ref)) {
    return { read: "failed", reason: BAD_REFERENCE, detail: "This is no reference of the provider." };
  }
  if (ref.startsWith("sub_")) {
    const subscription = await readSubscription(ctx, ref, options);
    return subscription.read === "failed" && subscription.reason === "resource_missing"
      ? complete(ctx, [])
      : subscription;
  }
  const exchange = await ctx.transport.call(remaining(options), async () => {
    await ctx.stripe.refunds.retrieve(ref);
  });
  const problem = readProblem(exchange);
  if (problem !== null) return problem.reason === "resource_missing" ? complete(ctx, []) : problem;
  const refund = readJson(refundSchema, exchange.body ?? "");
  if (refund === null || refund.id !== ref) return unreadable();
  return complete(ctx, [refundEffect(refund, "")]);
}

/** The cancellation of a subscription as its one effect, if there is one. */
export async function readSubscription(ctx: ReadContext, id: string, options: ReadOptions): Promise<Listing> {
  const exchange = await ctx.transport.call(remaining(options), async () => {
    await ctx.stripe.subscriptions.retrieve(id);
  });
  const problem = readProblem(exchange);
  if (problem !== null) return problem;
  const subscription = readJson(subscriptionSchema, exchange.body ?? "");
  if (subscription === null || subscription.id !== id) return unreadable();
  const effect = cancellationEffect(subscription);
  return complete(ctx, effect === null ? [] : [effect]);
}

function remaining(options: ReadOptions, deadline = performance.now() + options.timeoutMs): CallOptions {
  return {
    timeoutMs: Math.max(0, deadline - performance.now()),
    ...(options.signal === undefined ? {} : { signal: options.signal }),
  };
}

const complete = (ctx: ReadContext, effects: ProviderEffect[]): Listing => ({
  read: "complete",
  effects,
  // The wire that we promise to need has no balance; what is left follows from the effects.
  balance: null,
  readAt: ctx.clock.now(),
});

type FailedRead = Extract<Listing, { read: "failed" }>;

const unreadable = (): FailedRead => ({
  read: "failed",
  reason: "unreadable_answer",
  detail: "The provider's answer could not be read.",
});

/** Why a read has no answer; null when it has one. */
export function readProblem(exchange: Exchange): FailedRead | null {
  const failed = (reason: string, detail: string): FailedRead => ({ read: "failed", reason, detail });
  if (exchange.failure !== null) {
    switch (exchange.failure.kind) {
      case "timeout":
        return failed("timeout", "The provider did not answer in time.");
      case "aborted":
        return failed("aborted", "The reading was stopped.");
      case "connection":
        return failed(
          "unreachable",
          `The provider could not be reached: ${networkWords(exchange.failure.code)}.`,
        );
      case "gate":
        return failed("aborted", "The reading was stopped.");
      default:
        return exchange.failure satisfies never;
    }
  }
  const { status, body } = exchange;
  if (status === null || body === null) return failed("client_error", "The question could not be asked.");
  if (status >= 200 && status < 300) return null;
  const error = readJson(errorSchema, body)?.error;
  if (error === undefined) return failed(`http_${status}`, `The provider answered with HTTP ${status}.`);
  return failed(error.code ?? `http_${status}`, `The provider answered with HTTP ${status}.`);
}
