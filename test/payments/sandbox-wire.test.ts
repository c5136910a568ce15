/** The payments sandbox, driven by the unchanged `stripe` package. */
import Stripe from "stripe";
import { beforeEach, describe, expect, test } from "vitest";
import { officialClient, SECRET_KEY, withPaymentsSandbox } from "./support.js";

const under = withPaymentsSandbox();
let stripe: Stripe;

beforeEach(async () => {
  stripe = officialClient(under.sandbox.port);
  await under.sandbox.control.seedPayment({ paymentIntent: "pi_1", amount: 10_000, currency: "GBP" });
});

const refundOf = (amount: number, key: string, operationId = "op_1") =>
  stripe.refunds.create(
    { payment_intent: "pi_1", amount, metadata: { operation_id: operationId, operation_key: "k" } },
    { idempotencyKey: key },
  );

async function failure(call: Promise<unknown>): Promise<Stripe.errors.StripeError> {
  const error: unknown = await call.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  if (!(error instanceof Stripe.errors.StripeError))
    throw new Error(`expected a refusal, got ${String(error)}`);
  return error;
}

describe("refunds", () => {
  test("a refund is committed once and read back by id and by list", async () => {
    const refund = await refundOf(2_000, "key-1");
    expect(refund).toMatchObject({
      object: "refund",
      status: "succeeded",
      amount: 2_000,
      currency: "gbp",
      payment_intent: "pi_1",
      metadata: { operation_id: "op_1", operation_key: "k" },
    });
    expect(await stripe.refunds.retrieve(refund.id)).toMatchObject({ id: refund.id, amount: 2_000 });
    const list = await stripe.refunds.list({ payment_intent: "pi_1" });
    expect(list.data.map(({ id }) => id)).toEqual([refund.id]);
    expect(await under.sandbox.control.effects()).toMatchObject([
      {
        id: refund.id,
        operationId: "op_1",
        operationKey: "k",
        amount: 2_000,
        currency: "gbp",
        origin: "api",
      },
    ]);
    expect(await under.sandbox.control.counts()).toMatchObject({ committed: 1, duplicates: 0, posts: 1 });
  });

  test("partial refunds add up to the payment and not a penny more", async () => {
    await refundOf(6_000, "key-1");
    const tooMuch = await failure(refundOf(4_001, "key-2"));
    expect([tooMuch.statusCode, tooMuch.type, tooMuch.param]).toEqual([
      400,
      "StripeInvalidRequestError",
      "amount",
    ]);
    await refundOf(4_000, "key-3");
    const nothingLeft = await failure(refundOf(1, "key-4"));
    expect([nothingLeft.statusCode, nothingLeft.code]).toEqual([400, "charge_already_refunded"]);
    expect((await under.sandbox.control.counts()).amounts).toEqual({ gbp: 10_000 });
  });

  test("two refunds at the same moment that together exceed the payment: one is refused", async () => {
    const outcomes = await Promise.allSettled([refundOf(6_000, "key-1"), refundOf(7_000, "key-2")]);
    expect(outcomes.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
    expect((await under.sandbox.control.counts()).committed).toBe(1);
  });

  test("no amount means everything that is left", async () => {
    await refundOf(2_500, "key-1");
    const rest = await stripe.refunds.create({ payment_intent: "pi_1" });
    expect(rest.amount).toBe(7_500);
  });

  test("a failed refund gives its amount back to the payment", async () => {
    const refund = await refundOf(10_000, "key-1");
    await under.sandbox.control.advanceRefund(refund.id, { status: "failed", failureReason: "declined" });
    expect(await stripe.refunds.retrieve(refund.id)).toMatchObject({
      status: "failed",
      failure_reason: "declined",
    });
    expect((await refundOf(10_000, "key-2")).status).toBe("succeeded");
  });

  test("disputed, unpaid and unknown payments are refused by their own codes", async () => {
    const { control } = under.sandbox;
    await control.dispute("pi_1");
    expect((await failure(refundOf(1, "key-1"))).code).toBe("charge_disputed");
    await control.seedPayment({ paymentIntent: "pi_2", amount: 5, currency: "USD", status: "processing" });
    expect((await failure(stripe.refunds.create({ payment_intent: "pi_2" }))).code).toBe(
      "payment_intent_unexpected_state",
    );
    const unknown = await failure(stripe.refunds.create({ payment_intent: "pi_none" }));
    expect([unknown.statusCode, unknown.code]).toEqual([404, "resource_missing"]);
  });

  test("money in a currency without decimals is taken as it is written", async () => {
    await under.sandbox.control.seedPayment({ paymentIntent: "pi_jp", amount: 9_899, currency: "JPY" });
    const refund = await stripe.refunds.create({ payment_intent: "pi_jp", amount: 9_899 });
    expect([refund.amount, refund.currency]).toEqual([9_899, "jpy"]);
  });

  test("only a refund that waits for the customer can be canceled", async () => {
    under.sandbox.control.arm({ kind: "outcome", status: "requires_action" });
    const waiting = await refundOf(100, "key-1");
    expect([waiting.status, waiting.next_action?.type]).toEqual(["requires_action", "display_details"]);
    expect((await stripe.refunds.cancel(waiting.id)).status).toBe("canceled");
    const done = await refundOf(100, "key-2");
    expect((await failure(stripe.refunds.cancel(done.id))).statusCode).toBe(400);
  });
});

describe("lists", () => {
  test("are newest first and page to the end in both directions", async () => {
    const ids: string[] = [];
    for (let i = 0; i < 7; i += 1) ids.unshift((await refundOf(10 + i, `key-${i}`)).id);
    const first = await stripe.refunds.list({ payment_intent: "pi_1", limit: 3 });
    expect([first.data.map(({ id }) => id), first.has_more]).toEqual([ids.slice(0, 3), true]);
    const all: string[] = [];
    for await (const refund of stripe.refunds.list({ payment_intent: "pi_1", limit: 2 })) all.push(refund.id);
    expect(all).toEqual(ids);
    const back = await stripe.refunds.list({ limit: 2, ending_before: ids[4] ?? "" });
    expect([back.data.map(({ id }) => id), back.has_more]).toEqual([ids.slice(2, 4), true]);
  });

  test("filter by payment, charge and time of creation", async () => {
    const { control } = under.sandbox;
    const charge = await control.seedPayment({ paymentIntent: "pi_2", amount: 500, currency: "USD" });
    await refundOf(100, "key-1");
    control.setClockOffsetMs(3_600_000);
    const later = await stripe.refunds.create({ payment_intent: "pi_2", amount: 100 });
    expect((await stripe.refunds.list({ charge })).data.map(({ id }) => id)).toEqual([later.id]);
    const recent = await stripe.refunds.list({ created: { gte: later.created } });
    expect(recent.data.map(({ id }) => id)).toEqual([later.id]);
    const older = await stripe.refunds.list({ created: { lt: later.created } });
    expect(older.data).toHaveLength(1);
  });

  test.each([
    ["limit", { limit: 101 }],
    ["limit", { limit: 0 }],
    ["starting_after", { starting_after: "re_none" }],
  ])("an impossible %s is refused", async (_name, params) => {
    expect((await failure(Promise.resolve(stripe.refunds.list(params)))).type).toBe(
      "StripeInvalidRequestError",
    );
  });
});

describe("parameters", () => {
  const post = async (body: string, headers: Record<string, string> = {}) => {
    const response = await fetch(`${under.sandbox.url}/v1/refunds`, {
      method: "POST",
      headers: {
        authorization: `Bearer ${SECRET_KEY}`,
        "content-type": "application/x-www-form-urlencoded",
        ...headers,
      },
      body,
    });
    const answer = (await response.json()) as { error: { type: string; code?: string; param?: string } };
    return { status: response.status, ...answer.error };
  };

  test.each([
    ["payment_intent=pi_1&amount=10.5", "parameter_invalid_integer", "amount"],
    ["payment_intent=pi_1&amount=1e3", "parameter_invalid_integer", "amount"],
    ["payment_intent=pi_1&amount=-5", "parameter_invalid_integer", "amount"],
    ["payment_intent=pi_1&amount=0", "parameter_invalid_integer", "amount"],
    ["payment_intent=pi_1&amount=", "parameter_invalid_empty", "amount"],
    ["payment_intent=pi_1&amount=100000000", "amount_too_large", "amount"],
    ["payment_intent=pi_1&note=x", "parameter_unknown", "note"],
    ["payment_intent=pi_1&reason=changed_mind", undefined, "reason"],
    ["amount=5", "parameter_missing", "charge"],
    ["payment_intent=pi_1&charge=ch_1", "parameters_exclusive", undefined],
    ["payment_intent=pi_1&metadata=5", undefined, "metadata"],
    ["payment_intent=pi_1&metadata[a][b]=5", undefined, "metadata[a]"],
    ["payment_intent=pi_1&expand[]=customer", undefined, "expand"],
  ])("%s is refused and moves nothing", async (body, code, param) => {
    expect(await post(body)).toMatchObject({ status: 400, type: "invalid_request_error" });
    expect(await post(body)).toMatchObject(
      Object.fromEntries(Object.entries({ code, param }).filter(([, v]) => v)),
    );
    expect((await under.sandbox.control.counts()).refunds).toBe(0);
  });

  test("a body that is no form, a wrong key and no key are refused", async () => {
    expect(await post('{"payment_intent":"pi_1"}', { "content-type": "application/json" })).toMatchObject({
      status: 400,
    });
    expect(await post("payment_intent=pi_1", { authorization: "Bearer sk_wrong" })).toMatchObject({
      status: 401,
    });
    const bare = await fetch(`${under.sandbox.url}/v1/refunds`);
    expect(bare.status).toBe(401);
    expect((await under.sandbox.control.counts()).refunds).toBe(0);
  });

  test("an unknown path is Stripe's 404", async () => {
    const error = await failure(stripe.rawRequest("GET", "/v1/unicorns"));
    expect([error.statusCode, error.type]).toEqual([404, "StripeInvalidRequestError"]);
  });
});

describe("subscriptions", () => {
  beforeEach(() => under.sandbox.control.seedSubscription({ id: "sub_1" }));

  test("cancel at once takes effect once; a repeat finds no such subscription", async () => {
    expect(await stripe.subscriptions.cancel("sub_1")).toMatchObject({ id: "sub_1", status: "canceled" });
    expect((await failure(stripe.subscriptions.cancel("sub_1"))).code).toBe("resource_missing");
    expect((await stripe.subscriptions.retrieve("sub_1")).status).toBe("canceled");
    expect((await under.sandbox.control.counts()).cancellations).toBe(1);
  });

  test("cancel at the end of the period stays active until then", async () => {
    const updated = await stripe.subscriptions.update("sub_1", { cancel_at_period_end: true });
    expect(updated).toMatchObject({ status: "active", cancel_at_period_end: true });
    await stripe.subscriptions.update("sub_1", { cancel_at_period_end: true });
    expect((await under.sandbox.control.counts()).cancellations).toBe(1);
    under.sandbox.control.setClockOffsetMs(31 * 24 * 3600 * 1000);
    expect((await stripe.subscriptions.retrieve("sub_1")).status).toBe("canceled");
  });
});

test("ids follow from the seed, and a restart repeats none", async () => {
  const { deterministicId } = await import("../../src/sandbox/payments/ids.js");
  const refund = await refundOf(1, "key-1");
  expect(deterministicId("countersign", "re", 1)).toMatch(/^re_[0-9A-Za-z]{24}$/);
  expect(refund.id).toMatch(/^re_[0-9A-Za-z]{24}$/);
  const { startPaymentsSandbox } = await import("../../src/sandbox/payments/index.js");
  const second = await startPaymentsSandbox({
    databaseUrl: under.databaseUrl,
    port: 0,
    secretKey: SECRET_KEY,
  });
  try {
    const other = await officialClient(second.port).refunds.create({ payment_intent: "pi_1", amount: 1 });
    expect(other.id).not.toBe(refund.id);
    expect((await second.control.effects()).map(({ id }) => id)).toEqual([refund.id, other.id]);
  } finally {
    await second.stop();
  }
});
