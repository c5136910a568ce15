/**
 * The sandbox against the handed facts of Stripe's wire: every object and every error that it sends is valid by the schema,
 * and the official client sees each failure case as the facts say. Left out where the facts are not beside the checkout.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type Stripe from "stripe";
import { beforeEach, describe, expect, test } from "vitest";
import type { FaultSpec } from "../../src/sandbox/payments/index.js";
import { NO_FACTS, stripeFactsDir } from "./facts.js";
import {
  officialClient,
  type SchemaName,
  SECRET_KEY,
  schemaValidator,
  withPaymentsSandbox,
} from "./support.js";

const dir = stripeFactsDir();
const under = withPaymentsSandbox();

describe.skipIf(dir === null)(dir === null ? NO_FACTS : "the handed facts", () => {
  const facts = dir ?? "";
  let stripe: Stripe;
  beforeEach(async () => {
    stripe = officialClient(under.sandbox.port);
    await under.sandbox.control.seedPayment({ paymentIntent: "pi_1", amount: 10_000, currency: "GBP" });
  });

  const read = (name: string): unknown => JSON.parse(readFileSync(join(facts, name), "utf8"));

  test("the vectors agree with the schema as we read it", () => {
    const validate = schemaValidator(facts);
    const { vectors } = read("refund.vectors.json") as {
      vectors: { name: string; def: SchemaName; valid: boolean; value: unknown }[];
    };
    expect(vectors.length).toBeGreaterThan(30);
    for (const { name, def, valid, value } of vectors) {
      expect(validate(def, value).length === 0, name).toBe(valid);
    }
  });

  const wire = async (method: string, path: string, body?: string, key?: string) => {
    const response = await fetch(`${under.sandbox.url}${path}`, {
      method,
      headers: {
        authorization: `Bearer ${SECRET_KEY}`,
        ...(body === undefined ? {} : { "content-type": "application/x-www-form-urlencoded" }),
        ...(key === undefined ? {} : { "idempotency-key": key }),
      },
      ...(body === undefined ? {} : { body }),
    });
    return { status: response.status, value: (await response.json()) as Record<string, unknown> };
  };

  test("refunds in every state, expanded, listed and in events are valid", async () => {
    const validate = schemaValidator(facts);
    const { control } = under.sandbox;
    const ids: string[] = [];
    for (const status of ["succeeded", "pending", "requires_action", "failed", "canceled"] as const) {
      control.arm({ kind: "outcome", status });
      const { value } = await wire(
        "POST",
        "/v1/refunds",
        `payment_intent=pi_1&amount=10&metadata[operation_id]=${status}`,
      );
      expect(validate("refund", value), status).toEqual([]);
      expect(value["status"]).toBe(status);
      ids.push(String(value["id"]));
    }
    for (const to of ["pending", "succeeded", "failed", "requires_action", "canceled"] as const) {
      await control.advanceRefund(ids[0] ?? "", { status: to });
      const { value } = await wire("GET", `/v1/refunds/${ids[0]}`);
      expect(validate("refund", value), to).toEqual([]);
    }
    const expanded = await wire("GET", `/v1/refunds/${ids[1]}?expand[]=charge&expand[]=payment_intent`);
    expect(validate("refund", expanded.value)).toEqual([]);
    expect(expanded.value["charge"]).toMatchObject({ object: "charge" });
    const list = await wire("GET", "/v1/refunds?limit=2");
    expect(validate("refund_list", list.value)).toEqual([]);
    expect(validate("refund_list", (await wire("GET", "/v1/refunds?payment_intent=pi_x")).value)).toEqual([]);
    for (const event of await control.events()) {
      const { data } = JSON.parse(event.body) as { data: { object: { object: string } } };
      if (data.object.object === "refund") expect(validate("refund", data.object), event.type).toEqual([]);
    }
  });

  test("every refusal is a valid error", async () => {
    const validate = schemaValidator(facts);
    const { control } = under.sandbox;
    await control.seedSubscription({ id: "sub_1", status: "canceled" });
    await control.seedPayment({ paymentIntent: "pi_open", amount: 1, currency: "GBP", status: "processing" });
    const cases: [string, string, string?][] = [
      ["POST", "/v1/refunds", "payment_intent=pi_1&amount=1.5"],
      ["POST", "/v1/refunds", "payment_intent=pi_1&amount="],
      ["POST", "/v1/refunds", "payment_intent=pi_1&amount=100000000"],
      ["POST", "/v1/refunds", "payment_intent=pi_1&amount=10001"],
      ["POST", "/v1/refunds", "payment_intent=pi_none"],
      ["POST", "/v1/refunds", "payment_intent=pi_open"],
      ["POST", "/v1/refunds", "charge=ch_none"],
      ["POST", "/v1/refunds", "note=x"],
      ["POST", "/v1/refunds", "a[b=x"],
      ["POST", "/v1/refunds", ""],
      ["GET", "/v1/refunds?limit=1000"],
      ["GET", "/v1/refunds/re_none"],
      ["GET", "/v1/payment_intents/pi_none"],
      ["GET", "/v1/charges/ch_none"],
      ["GET", "/v1/unicorns"],
      ["DELETE", "/v1/subscriptions/sub_1"],
      ["DELETE", "/v1/refunds/re_1"],
      ["POST", "/v1/subscriptions/sub_1", "cancel_at_period_end=true"],
      ["POST", "/v1/subscriptions/sub_none", "cancel_at_period_end=maybe"],
      ["POST", "/v1/refunds/re_none/cancel", ""],
    ];
    for (const [method, path, body] of cases) {
      const { status, value } = await wire(method, path, body);
      expect(status, `${method} ${path} ${body}`).toBeGreaterThanOrEqual(400);
      expect(
        validate("error_envelope", value),
        `${method} ${path} ${body}: ${JSON.stringify(value)}`,
      ).toEqual([]);
    }
  });

  /** How to bring each handed case about, by its name; null where it is not a failure or needs no fault. */
  const HOW: Record<string, FaultSpec | "seed" | null> = {
    "200 refund": null,
    charge_already_refunded: { kind: "refuse", code: "charge_already_refunded" },
    "amount over what is left": "seed",
    "amount_too_large / amount_too_small": { kind: "refuse", code: "amount_too_large" },
    "charge_disputed / refund_disputed_payment": { kind: "refuse", code: "charge_disputed" },
    charge_not_refundable: { kind: "refuse", code: "charge_not_refundable" },
    balance_insufficient: { kind: "refuse", code: "balance_insufficient" },
    resource_missing: { kind: "refuse", code: "resource_missing", status: 404 },
    "parameter_unknown / parameter_missing / parameter_invalid_integer": {
      kind: "refuse",
      code: "parameter_unknown",
    },
    "idempotency: same key, other parameters": { kind: "idempotency_error" },
    idempotency_key_in_use: { kind: "key_in_use" },
    lock_timeout: { kind: "rate_limited", code: "lock_timeout" },
    rate_limit: { kind: "rate_limited", code: "rate_limit" },
    api_error: { kind: "commit_then_500" },
    "html or empty body": { kind: "commit_then_garbage", status: 502 },
    card_error: { kind: "refuse", code: "card_declined", status: 402, type: "card_error" },
    "bad key": { kind: "refuse", code: null, status: 401 },
    "no permission": { kind: "refuse", code: null, status: 403 },
    "socket closed before a response": { kind: "commit_then_drop", times: 2, onReplay: true },
    "timeout before headers": { kind: "commit_then_hang", delayMs: 60_000 },
    "200 whose body is cut or stalls": { kind: "commit_then_cut" },
  };

  interface HandedCase {
    case: string;
    http_status: number | null;
    error_type: string | null;
    error_code: string | null;
    sdk_class: string | null;
  }

  test("each failure case reaches the official client as the facts say", async () => {
    const { cases } = read("error-cases.json") as { cases: HandedCase[] };
    expect(cases.map(({ case: name }) => name).filter((name) => !(name in HOW))).toEqual([]);
    for (const [index, handed] of cases.entries()) {
      await under.sandbox.control.reset();
      await under.sandbox.control.seedPayment({ paymentIntent: "pi_1", amount: 10_000, currency: "GBP" });
      const how = HOW[handed.case];
      if (how !== null && how !== "seed" && how !== undefined) under.sandbox.control.arm(how);
      const error: unknown = await stripe.refunds
        .create(
          { payment_intent: "pi_1", amount: how === "seed" ? 10_001 : 100 },
          { idempotencyKey: `case-${index}`, timeout: 400 },
        )
        .then(
          () => null,
          (thrown: unknown) => thrown,
        );
      if (handed.sdk_class === null) {
        expect(error, handed.case).toBeNull();
        continue;
      }
      const seen = error as { type?: string; statusCode?: number; code?: string; rawType?: string };
      expect(seen.type, handed.case).toBe(handed.sdk_class);
      const readable = handed.error_type !== null;
      if (readable) expect(seen.statusCode, handed.case).toBe(handed.http_status);
      if (readable) expect(seen.rawType, handed.case).toBe(handed.error_type);
      if (readable) expect(seen.code ?? null, handed.case).toBe(handed.error_code);
    }
  });

  test("the official client repeats a reset by itself: two POSTs, one effect under its own key", async () => {
    under.sandbox.control.arm({ kind: "commit_then_drop" });
    const refund = await stripe.refunds.create({ payment_intent: "pi_1", amount: 100 });
    expect(refund.lastResponse.headers["idempotent-replayed"]).toBe("true");
    expect(await under.sandbox.control.counts()).toMatchObject({ posts: 2, committed: 1 });
  });
});
