/** Webhooks of the sandbox: really signed, sent until they are answered, and out of order when told to. */
import Stripe from "stripe";
import { afterEach, beforeEach, expect, test } from "vitest";
import { waitFor } from "../support/wait.js";
import {
  officialClient,
  startReceiver,
  WEBHOOK_SECRET,
  type WebhookReceiver,
  withPaymentsSandbox,
} from "./support.js";

const under = withPaymentsSandbox({ webhookRetryBaseMs: 20 });
let stripe: Stripe;
let receiver: WebhookReceiver;

beforeEach(async () => {
  stripe = officialClient(under.sandbox.port);
  receiver = await startReceiver();
  const { control } = under.sandbox;
  control.setWebhook({ url: receiver.url, secret: WEBHOOK_SECRET });
  await control.seedPayment({ paymentIntent: "pi_1", amount: 10_000, currency: "GBP" });
});
afterEach(async () => {
  under.sandbox.control.setWebhook(null);
  await receiver.close();
});

const types = (): string[] => receiver.received.map(({ type }) => type);
const received = (count: number) =>
  waitFor(() => receiver.received.length >= count, { what: `${count} webhooks` });

test("a refund is told as refund.created and charge.refunded, and Stripe's own check accepts them", async () => {
  const refund = await stripe.refunds.create({
    payment_intent: "pi_1",
    amount: 100,
    metadata: { operation_id: "op_1" },
  });
  await received(2);
  expect(types()).toEqual(["refund.created", "charge.refunded"]);
  for (const { body, signature } of receiver.received) {
    const event = Stripe.webhooks.constructEvent(body, signature ?? "", WEBHOOK_SECRET);
    expect(event.object).toBe("event");
  }
  const [created, charged] = receiver.received.map(
    ({ body }) => (JSON.parse(body) as { data: { object: Record<string, unknown> } }).data.object,
  );
  expect(created).toMatchObject({ id: refund.id, object: "refund", metadata: { operation_id: "op_1" } });
  expect(charged).toMatchObject({ object: "charge", amount_refunded: 100, payment_intent: "pi_1" });
});

test("later changes are told: updated, and failed days after success", async () => {
  const { control } = under.sandbox;
  const refund = await stripe.refunds.create({ payment_intent: "pi_1", amount: 100 });
  await received(2);
  await control.advanceRefund(refund.id, { status: "failed", failureReason: "declined" });
  await received(4);
  // Sent side by side: which arrives first is the network's affair.
  expect(types().slice(2).sort()).toEqual(["refund.failed", "refund.updated"]);
  const updated = receiver.received.find(({ type }) => type === "refund.updated");
  expect(JSON.parse(updated?.body ?? "{}")).toMatchObject({
    data: { object: { status: "failed" }, previous_attributes: { status: "succeeded" } },
  });
});

test("they come before the answer of the request when that one hangs", async () => {
  under.sandbox.control.arm({ kind: "commit_then_hang", delayMs: 3_600_000 });
  const call = stripe.refunds.create({ payment_intent: "pi_1", amount: 100 }).catch(() => null);
  await received(2);
  await under.sandbox.control.reset();
  await call;
});

test("an endpoint that answers with an error gets the event again until it takes it", async () => {
  receiver.answers.push(500, 503, 200);
  await under.sandbox.control.dashboardRefund({ paymentIntent: "pi_1", amount: 5 });
  await received(4);
  const created = receiver.received.filter(({ type }) => type === "refund.created");
  const charged = receiver.received.filter(({ type }) => type === "charge.refunded");
  expect(created.length + charged.length).toBe(4);
  await waitFor(async () => (await under.sandbox.control.events()).every(({ delivered }) => delivered));
  expect(new Set(created.map(({ id }) => id)).size).toBe(1);
});

test("an endpoint that is away is found again, also after a restart of the sandbox's sending", async () => {
  const { control } = under.sandbox;
  control.setWebhook({ url: "http://127.0.0.1:1/nothing", secret: WEBHOOK_SECRET });
  await control.dashboardRefund({ paymentIntent: "pi_1", amount: 5 });
  await waitFor(() => control.deliveries().some(({ status }) => status === null));
  control.setWebhook({ url: receiver.url, secret: WEBHOOK_SECRET });
  await received(2);
});

test("paused, reversed, repeated: order and number are the test's", async () => {
  const { control } = under.sandbox;
  control.webhookMode({ paused: true });
  const refund = await stripe.refunds.create({ payment_intent: "pi_1", amount: 100 });
  await control.advanceRefund(refund.id, { status: "failed" });
  expect(types()).toEqual([]);
  const sent = await control.flushWebhooks({ order: "reversed", copies: 2 });
  expect(sent.map(({ status }) => status)).toEqual(Array(8).fill(200));
  expect(types()).toEqual([
    "refund.failed",
    "refund.failed",
    "refund.updated",
    "refund.updated",
    "charge.refunded",
    "charge.refunded",
    "refund.created",
    "refund.created",
  ]);
});

test("extra copies by themselves", async () => {
  under.sandbox.control.webhookMode({ extraCopies: 2 });
  await under.sandbox.control.dashboardRefund({ paymentIntent: "pi_1", amount: 5 });
  await received(6);
  expect(types().filter((type) => type === "refund.created")).toHaveLength(3);
});

test("forged: another secret, an old time, no header, a changed body; Stripe's own check refuses each", async () => {
  const { control } = under.sandbox;
  control.webhookMode({ paused: true });
  await control.dashboardRefund({ paymentIntent: "pi_1", amount: 5 });
  const [event] = await control.events();
  const id = event?.id ?? "";
  await control.resendWebhook(id, { secret: "whsec_other" });
  await control.resendWebhook(id, { skewSeconds: -600 });
  await control.resendWebhook(id, { withoutHeader: true });
  await control.resendWebhook(id, { tamper: true });
  await control.forgeWebhook(
    { type: "refund.updated", object: { id: "re_x", object: "refund" } },
    { secret: "x" },
  );
  expect(receiver.received).toHaveLength(5);
  for (const { body, signature } of receiver.received) {
    expect(() => Stripe.webhooks.constructEvent(body, signature ?? "", WEBHOOK_SECRET)).toThrow();
  }
  expect(await control.resendWebhook("evt_none")).toBeNull();
});

test("the provider's clock may be days ahead while its signatures stay right", async () => {
  const { control } = under.sandbox;
  control.setClockOffsetMs(3 * 24 * 3600 * 1000, { signatures: false });
  const refund = await stripe.refunds.create({ payment_intent: "pi_1", amount: 100 });
  await received(2);
  const { body, signature } = receiver.received[0] ?? { body: "", signature: "" };
  expect(Stripe.webhooks.constructEvent(body, signature ?? "", WEBHOOK_SECRET).created).toBe(refund.created);
});

test("subscriptions tell of their end", async () => {
  await under.sandbox.control.seedSubscription({ id: "sub_1" });
  await stripe.subscriptions.cancel("sub_1");
  await received(1);
  expect(types()).toEqual(["customer.subscription.deleted"]);
});
