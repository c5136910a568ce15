/** The table at the head of src/payments/classify.ts, row by row, and that no wording changes a verdict. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { SendRefused } from "../../src/domain/ports/payment-provider.js";
import { classify } from "../../src/payments/classify.js";
import type { Exchange } from "../../src/payments/transport.js";
import { NO_FACTS, stripeFactsDir } from "./facts.js";
import { aCancellation, anOperation } from "./operation.js";

const operation = anOperation();

const exchange = (changes: Partial<Exchange> = {}): Exchange => ({
  sent: true,
  status: 200,
  headers: {},
  body: null,
  failure: null,
  ...changes,
});

const verdictOf = (changes: Partial<Exchange>) => classify(operation, "refunds.create", exchange(changes));

const refund = (changes: Record<string, unknown> = {}): string =>
  JSON.stringify({
    id: "re_1",
    object: "refund",
    amount: 2000,
    currency: "gbp",
    status: "succeeded",
    payment_intent: "pi_1",
    created: 1_796_000_000,
    metadata: { operation_id: operation.id },
    ...changes,
  });

const refusal = (
  status: number,
  type: string | null,
  code: string | null,
  message = "no",
): Partial<Exchange> => ({
  status,
  body: JSON.stringify({ error: { type, code, message } }),
});

describe("nothing left: proven not executed, whatever else happened", () => {
  test.each<[Exchange["failure"], string]>([
    [{ kind: "gate", error: new SendRefused("lease_lost", "x") }, "send_refused"],
    [{ kind: "gate", error: "anything" }, "send_refused"],
    [{ kind: "timeout" }, "timeout_before_send"],
    [{ kind: "aborted" }, "aborted_before_send"],
    [{ kind: "connection", code: "ECONNREFUSED" }, "connection_failed"],
    [null, "client_error"],
  ])("%o", (failure, code) => {
    expect(verdictOf({ sent: false, status: null, failure })).toMatchObject({
      verdict: "not_executed",
      code,
    });
  });
});

describe("sent, and no whole answer: unknown", () => {
  test.each<[Exchange["failure"], number | null, string]>([
    [{ kind: "timeout" }, null, "timeout"],
    [{ kind: "timeout" }, 200, "body_stalled"],
    [{ kind: "timeout" }, 400, "body_stalled"],
    [{ kind: "aborted" }, null, "aborted"],
    [{ kind: "aborted" }, 200, "aborted"],
    [{ kind: "connection", code: "ECONNRESET" }, null, "connection_lost"],
    [{ kind: "connection", code: "UND_ERR_SOCKET" }, 200, "body_cut"],
    [{ kind: "gate", error: "impossible" }, null, "gate_after_send"],
    [null, null, "no_answer"],
  ])("%o with status %s", (failure, status, code) => {
    expect(verdictOf({ failure, status })).toMatchObject({ verdict: "unknown", code, httpStatus: status });
  });
});

describe("answers of refusal", () => {
  test.each<[number, string | null, string | null, string, string]>([
    [400, "invalid_request_error", "charge_already_refunded", "rejected", "charge_already_refunded"],
    [400, "invalid_request_error", null, "rejected", "invalid_request_error"],
    [400, null, null, "rejected", "refused"],
    [401, "invalid_request_error", null, "rejected", "unauthorized"],
    [402, "card_error", "card_declined", "rejected", "card_declined"],
    [403, "invalid_request_error", null, "rejected", "forbidden"],
    [404, "invalid_request_error", "resource_missing", "rejected", "resource_missing"],
    [429, "invalid_request_error", "lock_timeout", "not_executed", "lock_timeout"],
    [429, "invalid_request_error", null, "not_executed", "rate_limit"],
    [400, "api_error", null, "unknown", "provider_error"],
    [402, "api_error", "charge_disputed", "unknown", "provider_error"],
    [404, "api_error", null, "unknown", "provider_error"],
    [429, "api_error", "lock_timeout", "not_executed", "lock_timeout"],
    [400, "idempotency_error", null, "unknown", "idempotency_error"],
    [409, "idempotency_error", "idempotency_key_in_use", "unknown", "idempotency_key_in_use"],
    [400, "idempotency_error", "idempotency_key_in_use", "unknown", "idempotency_key_in_use"],
    [429, "idempotency_error", "idempotency_key_in_use", "unknown", "idempotency_key_in_use"],
    [409, "invalid_request_error", "lock_timeout", "unknown", "conflict"],
    [500, "api_error", null, "unknown", "provider_error"],
    [503, "invalid_request_error", "charge_disputed", "unknown", "provider_error"],
    [408, "invalid_request_error", null, "unknown", "unexpected_status"],
    [418, "invalid_request_error", null, "unknown", "unexpected_status"],
    [307, "invalid_request_error", null, "unknown", "unexpected_status"],
  ])("%i %s %s: %s %s", (status, type, code, verdict, known) => {
    expect(verdictOf(refusal(status, type, code))).toMatchObject({ verdict, code: known });
  });

  test.each([301, 400, 401, 402, 403, 404, 409, 429, 500, 502])(
    "%i that is not Stripe's envelope: unknown",
    (status) => {
      for (const body of ["", "<html>", "[]", "{}", '"no"', '{"error":"no"}', '{"error":5}']) {
        expect(verdictOf({ status, body })).toMatchObject({ verdict: "unknown", code: "unreadable_answer" });
      }
    },
  );

  test("the provider's wish to wait is passed on, when it is one", () => {
    const busy = refusal(429, "invalid_request_error", "rate_limit");
    expect(verdictOf({ ...busy, headers: { "retry-after": "7" } })).toMatchObject({ retryAfterMs: 7_000 });
    expect(verdictOf({ ...busy, headers: { "retry-after": "Wed, 21 Oct" } })).toMatchObject({
      retryAfterMs: null,
    });
  });

  test("no wording changes a verdict", () => {
    const types = ["invalid_request_error", "api_error", "card_error", "idempotency_error", null];
    fc.assert(
      fc.property(
        fc.integer({ min: 300, max: 599 }),
        fc.constantFrom(...types),
        fc.option(fc.string()),
        fc.string(),
        fc.string(),
        (status, type, code, one, other) => {
          const a = verdictOf(refusal(status, type, code, one));
          const b = verdictOf(refusal(status, type, code, other));
          expect([a.verdict, "code" in a && a.code]).toEqual([b.verdict, "code" in b && b.code]);
        },
      ),
    );
  });

  test("no status from 500 on, whatever the body, is ever proof that nothing happened", () => {
    fc.assert(
      fc.property(fc.integer({ min: 500, max: 599 }), fc.oneof(fc.string(), fc.json()), (status, body) => {
        expect(verdictOf({ status, body }).verdict).toBe("unknown");
      }),
    );
  });
});

describe("200: the object decides", () => {
  test.each<[Record<string, unknown>, Record<string, unknown>]>([
    [{}, { verdict: "committed" }],
    [{ payment_intent: { id: "pi_1", object: "payment_intent" } }, { verdict: "committed" }],
    [{ metadata: {} }, { verdict: "committed" }],
    [{ currency: "GBP" }, { verdict: "committed" }],
    [{ amount: 2001 }, { verdict: "postcondition_failed", differs: ["amount"] }],
    [{ currency: "usd" }, { verdict: "postcondition_failed", differs: ["currency"] }],
    [{ payment_intent: "pi_2" }, { verdict: "postcondition_failed", differs: ["payment_intent"] }],
    [{ metadata: { operation_id: "op_x" } }, { verdict: "postcondition_failed", differs: ["operation_id"] }],
    [
      { amount: 1, currency: "usd" },
      { verdict: "postcondition_failed", differs: ["amount", "currency"] },
    ],
    [
      { status: "pending", pending_reason: "processing" },
      { verdict: "pending", reason: "processing" },
    ],
    [{ status: "pending" }, { verdict: "pending", reason: "pending" }],
    [
      { status: "pending", amount: 5 },
      { verdict: "postcondition_failed", differs: ["amount"] },
    ],
    [{ status: "requires_action" }, { verdict: "pending", reason: "requires_action" }],
    [
      { status: "failed", failure_reason: "declined" },
      { verdict: "failed_at_provider", code: "declined" },
    ],
    [{ status: "failed" }, { verdict: "failed_at_provider", code: "failed" }],
    [{ status: "canceled" }, { verdict: "failed_at_provider", code: "canceled" }],
    [
      { status: "failed", metadata: {} },
      { verdict: "unknown", code: "other_object" },
    ],
    [
      { status: "canceled", metadata: null },
      { verdict: "unknown", code: "other_object" },
    ],
    [{ status: "refunded" }, { verdict: "unknown", code: "unknown_status" }],
    [{ status: null }, { verdict: "unknown", code: "unknown_status" }],
    [{ amount: "2000" }, { verdict: "unknown", code: "unreadable_answer" }],
    [{ amount: 20.5 }, { verdict: "unknown", code: "unreadable_answer" }],
    [{ amount: 2 ** 53 }, { verdict: "unknown", code: "unreadable_answer" }],
    [{ id: "" }, { verdict: "unknown", code: "unreadable_answer" }],
    [{ object: "charge" }, { verdict: "unknown", code: "unreadable_answer" }],
  ])("%o", (changes, expected) => {
    expect(verdictOf({ body: refund(changes) })).toMatchObject(expected);
  });

  test("a replay and the request's id are kept", () => {
    const headers = { "idempotent-replayed": "true", "request-id": "req_1" };
    expect(verdictOf({ body: refund(), headers })).toMatchObject({ replayed: true, requestId: "req_1" });
  });

  test.each<
    [
      boolean,
      "subscriptions.cancel" | "subscriptions.update",
      Record<string, unknown>,
      Record<string, unknown>,
    ]
  >([
    [false, "subscriptions.cancel", { status: "canceled" }, { verdict: "committed" }],
    [true, "subscriptions.update", { cancel_at_period_end: true }, { verdict: "committed" }],
    [true, "subscriptions.update", { status: "canceled" }, { verdict: "committed" }],
    [
      false,
      "subscriptions.cancel",
      { cancel_at_period_end: true },
      { verdict: "postcondition_failed", differs: ["status"] },
    ],
    [
      false,
      "subscriptions.cancel",
      { id: "sub_2", status: "canceled" },
      { verdict: "postcondition_failed", differs: ["subscription"] },
    ],
    [false, "subscriptions.cancel", {}, { verdict: "unknown", code: "not_cancelled" }],
    [false, "subscriptions.cancel", { object: "refund" }, { verdict: "unknown", code: "unreadable_answer" }],
  ])("at period end %s, %s, %o", (atPeriodEnd, endpoint, changes, expected) => {
    const body = JSON.stringify({ id: "sub_1", object: "subscription", status: "active", ...changes });
    expect(classify(aCancellation(atPeriodEnd), endpoint, exchange({ body }))).toMatchObject(expected);
  });
});

const dir = stripeFactsDir();
describe.skipIf(dir === null)(dir === null ? NO_FACTS : "the handed failure cases", () => {
  test("each one that is an answer gets the verdict its note asks for", () => {
    const { cases } = JSON.parse(readFileSync(join(dir ?? "", "error-cases.json"), "utf8")) as {
      cases: {
        case: string;
        http_status: number | null;
        error_type: string | null;
        error_code: string | null;
        note: string;
      }[];
    };
    const verdicts = Object.fromEntries(
      cases
        .filter(({ http_status, error_type }) => http_status !== null && error_type !== null)
        .map((handed) => [
          handed.case,
          verdictOf(refusal(handed.http_status ?? 0, handed.error_type, handed.error_code)).verdict,
        ]),
    );
    expect(verdicts).toEqual({
      charge_already_refunded: "rejected",
      "amount over what is left": "rejected",
      "amount_too_large / amount_too_small": "rejected",
      "charge_disputed / refund_disputed_payment": "rejected",
      charge_not_refundable: "rejected",
      balance_insufficient: "rejected",
      resource_missing: "rejected",
      "parameter_unknown / parameter_missing / parameter_invalid_integer": "rejected",
      "idempotency: same key, other parameters": "unknown",
      idempotency_key_in_use: "unknown",
      lock_timeout: "not_executed",
      rate_limit: "not_executed",
      api_error: "unknown",
      card_error: "rejected",
      "bad key": "rejected",
      "no permission": "rejected",
    });
  });
});
