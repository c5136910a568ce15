/** Signatures over the exact bytes, times in both directions, and events that are read as far as they can be. */
import Stripe from "stripe";
import { describe, expect, test } from "vitest";
import { createWebhookVerifier, readEvent } from "../../src/payments/index.js";
import { signatureHeader } from "../../src/sandbox/payments/index.js";

const SECRET = "whsec_test";
const NOW = new Date("2026-11-29T12:00:00Z");
const seconds = (offset = 0): number => Math.floor(NOW.getTime() / 1000) + offset;
const verify = createWebhookVerifier(SECRET);

const BODY = JSON.stringify({
  id: "evt_1",
  object: "event",
  type: "refund.updated",
  created: 1_796_000_040,
  data: {
    object: {
      id: "re_9",
      object: "refund",
      amount: 2000,
      currency: "usd",
      payment_intent: "pi_1001",
      status: "succeeded",
      metadata: { operation_id: "op_1", operation_key: "k" },
    },
  },
});
const sign = (body = BODY, secret = SECRET, at = seconds()): string => signatureHeader(body, secret, at);
const check = (header: string | undefined, body = BODY) => verify(Buffer.from(body, "utf8"), header, NOW);

test("a signature of ours is one of Stripe's, and the other way round", () => {
  expect(Stripe.webhooks.constructEvent(BODY, sign(), SECRET, 300, undefined, NOW.getTime()).id).toBe(
    "evt_1",
  );
  const theirs = Stripe.webhooks.generateTestHeaderString({
    payload: BODY,
    secret: SECRET,
    timestamp: seconds(),
  });
  expect(check(theirs)).toMatchObject({ ok: true });
});

test("a good webhook says what it is about", () => {
  expect(check(sign())).toMatchObject({
    ok: true,
    event: {
      id: "evt_1",
      type: "refund.updated",
      objectId: "re_9",
      paymentIntent: "pi_1001",
      subscription: null,
      operationId: "op_1",
      payload: { id: "evt_1" },
    },
  });
});

describe("refused", () => {
  test.each<[string, string | undefined, string]>([
    ["no header", undefined, "no_signature"],
    ["an empty header", "", "no_signature"],
    ["a header that is none", "hello", "bad_signature"],
    ["another secret", sign(BODY, "whsec_other"), "bad_signature"],
    ["only another scheme", sign().replace("v1=", "v0="), "bad_signature"],
    ["no time", sign().replace(/^t=\d+,/, ""), "bad_signature"],
    ["a time that was not signed", sign().replace(/^t=\d+/, `t=${seconds(1)}`), "bad_signature"],
    ["ten minutes old", sign(BODY, SECRET, seconds(-600)), "too_old"],
    ["a second too old", sign(BODY, SECRET, seconds(-301)), "too_old"],
    ["ten minutes ahead", sign(BODY, SECRET, seconds(600)), "too_new"],
    ["a second too far ahead", sign(BODY, SECRET, seconds(301)), "too_new"],
  ])("%s", (_what, header, reason) => {
    expect(check(header)).toEqual({ ok: false, reason });
  });

  test("a body that nests 50,000 deep", () => {
    const body = BODY.replace('"amount":2000', `"amount":${"[".repeat(50_000)}${"]".repeat(50_000)}`);
    expect(check(sign(body), body)).toEqual({ ok: false, reason: "unreadable" });
  });

  test("one changed byte of the body", () => {
    expect(check(sign(), BODY.replace("2000", "9000"))).toEqual({ ok: false, reason: "bad_signature" });
    expect(check(sign(), `${BODY} `)).toEqual({ ok: false, reason: "bad_signature" });
  });

  test("a second time in the header does not make an old signature young", () => {
    const old = sign(BODY, SECRET, seconds(-600));
    const outcomes = [check(`${old},t=${seconds()}`), check(`t=${seconds()},${old}`)];
    for (const outcome of outcomes) expect(outcome.ok).toBe(false);
  });

  test.each([
    "",
    "[]",
    "{}",
    "null",
    '{"id":"evt_1","type":"x"}',
    '{"id":"evt_1","type":"x","data":{"object":5}}',
  ])("a signed body that is no event: %j", (body) => {
    expect(check(sign(body), body)).toMatchObject({ ok: false });
  });
});

test("the edges of the tolerance are inside it, both ways", () => {
  expect(check(sign(BODY, SECRET, seconds(-300)))).toMatchObject({ ok: true });
  expect(check(sign(BODY, SECRET, seconds(300)))).toMatchObject({ ok: true });
});

test("two signatures while the secret is being changed: one good one is enough", () => {
  const other = sign(BODY, "whsec_old").split(",v1=")[1];
  expect(check(`${sign()},v1=${other}`)).toMatchObject({ ok: true });
});

describe("what events are about", () => {
  const about = (object: unknown) => readEvent(JSON.stringify({ id: "evt_1", type: "t", data: { object } }));
  test("charges name their payment, subscriptions themselves, others nothing", () => {
    expect(about({ object: "charge", id: "ch_1", payment_intent: { id: "pi_1" } })).toMatchObject({
      objectId: "ch_1",
      paymentIntent: "pi_1",
      subscription: null,
    });
    expect(about({ object: "subscription", id: "sub_1" })).toMatchObject({ subscription: "sub_1" });
    expect(about({ anything: true })).toMatchObject({
      objectId: null,
      paymentIntent: null,
      subscription: null,
      operationId: null,
    });
    expect(
      about({ object: "refund", id: 5, payment_intent: 7, metadata: { operation_id: 9 } }),
    ).toMatchObject({
      objectId: null,
      paymentIntent: null,
      operationId: null,
    });
  });
});
