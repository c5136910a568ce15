/**
 * The one place where an attempt gets its verdict: from what happened on the wire, by status, type and code, and by whether
 * a byte may have left. Never by the text of a message.
 *
 * | on the wire | verdict |
 * |---|---|
 * | nothing left (refused connection, gate, deadline or abort before the first byte) | not_executed |
 * | sent, and no whole answer (deadline, abort, reset, cut or stalled body) | unknown |
 * | an answer that is no JSON object, or not Stripe's shape | unknown |
 * | 5xx; 409; `idempotency_error`; `api_error` (but for 429); any status not named here | unknown |
 * | 429 in Stripe's envelope | not_executed |
 * | 400, 401, 402, 403, 404 in Stripe's envelope | rejected |
 * | 200, object as intended and settled | committed |
 * | 200, object not as intended | postcondition_failed |
 * | 200, pending or requires_action | pending |
 * | 200, failed or canceled, object as intended and under our operation's id | failed_at_provider |
 * | 200, failed or canceled, any other object | unknown: it says nothing of ours |
 * | 200, any other state | unknown |
 */
import { assertNever } from "../domain/assert-never.js";
import type { AttemptOutcome, ProviderEffect } from "../domain/evidence.js";
import type { Operation } from "../domain/operation.js";
import { SendRefused, type StoredRequest } from "../domain/ports/payment-provider.js";
import { networkWords } from "../domain/text/network-words.js";
import { differences } from "./postcondition.js";
import { refusalInWords } from "./refusals.js";
import type { Exchange, TransportFailure } from "./transport.js";
import {
  cancellationEffect,
  errorSchema,
  readJson,
  refundEffect,
  refundSchema,
  subscriptionSchema,
  type WireError,
} from "./wire.js";

/** Pure. */
export function classify(
  operation: Operation,
  endpoint: StoredRequest["endpoint"],
  exchange: Exchange,
): AttemptOutcome {
  if (!exchange.sent) return neverSent(exchange.failure);
  if (exchange.failure !== null) return lost(exchange.failure, exchange.status);
  if (exchange.status === null || exchange.body === null) {
    return { verdict: "unknown", code: "no_answer", detail: "No answer came.", httpStatus: exchange.status };
  }
  if (exchange.status >= 200 && exchange.status < 300) {
    return judgeObject(operation, endpoint, exchange, exchange.body);
  }
  const envelope = readJson(errorSchema, exchange.body);
  if (envelope === null) return unreadable(exchange.status);
  return refused(envelope.error, exchange.status, exchange.headers);
}

/** What the last check before sending found. */
const NOT_SENT: Readonly<Record<string, string>> = {
  lease_lost: "another worker has it by now",
  key_expiring: "the life of its key would have ended on the way",
  frozen: "its kind was frozen meanwhile",
};

function neverSent(failure: TransportFailure | null): AttemptOutcome {
  const proven = (code: string, detail: string): AttemptOutcome => ({
    verdict: "not_executed",
    code,
    detail,
    retryAfterMs: null,
  });
  if (failure === null) return proven("client_error", "The request could not be built; nothing was sent.");
  switch (failure.kind) {
    case "gate":
      return proven(
        "send_refused",
        failure.error instanceof SendRefused
          ? `Not sent: ${NOT_SENT[failure.error.code] ?? "the last check before sending said no"} (${failure.error.code}).`
          : "Not sent: the last check before sending failed.",
      );
    case "timeout":
      return proven("timeout_before_send", "The time ran out before anything was sent.");
    case "aborted":
      return proven("aborted_before_send", "Stopped before anything was sent.");
    case "connection":
      return proven("connection_failed", `The provider could not be reached: ${networkWords(failure.code)}.`);
    default:
      return assertNever(failure, "transport failure");
  }
}

function lost(failure: TransportFailure, httpStatus: number | null): AttemptOutcome {
  const open = (code: string, detail: string): AttemptOutcome => ({
    verdict: "unknown",
    code,
    detail,
    httpStatus,
  });
  const headersCame = httpStatus !== null;
  switch (failure.kind) {
    case "gate":
      // The gate ran after the first byte: impossible by construction, and if it were, nobody could know.
      return open("gate_after_send", "The last check before sending failed after sending.");
    case "timeout":
      return headersCame
        ? open("body_stalled", "The answer began and did not end in time.")
        : open("timeout", "No answer came in time.");
    case "aborted":
      return open("aborted", "Stopped while waiting for the answer.");
    case "connection":
      return headersCame
        ? open("body_cut", `The connection broke inside the answer: ${networkWords(failure.code)}.`)
        : open("connection_lost", `The connection broke before an answer: ${networkWords(failure.code)}.`);
    default:
      return assertNever(failure, "transport failure");
  }
}

const unreadable = (httpStatus: number): AttemptOutcome => ({
  verdict: "unknown",
  code: "unreadable_answer",
  detail: `The answer (HTTP ${httpStatus}) could not be read.`,
  httpStatus,
});

function refused(
  error: WireError,
  httpStatus: number,
  headers: Readonly<Record<string, string>>,
): AttemptOutcome {
  const unknown = (code: string, detail: string): AttemptOutcome => ({
    verdict: "unknown",
    code,
    detail,
    httpStatus,
  });
  const said = error.message === null || error.message === undefined ? "" : ` ${error.message}`;
  if (error.code === "idempotency_key_in_use") {
    return unknown("idempotency_key_in_use", "An earlier request with this key is still being executed.");
  }
  if (error.type === "idempotency_error") {
    return unknown("idempotency_error", `The provider has this key with other parameters.${said}`);
  }
  switch (httpStatus) {
    case 429:
      return {
        verdict: "not_executed",
        code: error.code ?? "rate_limit",
        detail: "The provider was too busy and did not execute the request.",
        retryAfterMs: retryAfterMs(headers),
      };
    case 400:
    case 401:
    case 402:
    case 403:
    case 404: {
      // The provider's own trouble is no refusal, whatever number it comes under.
      if (error.type === "api_error") return unknown("provider_error", providersTrouble(httpStatus));
      const code = error.code ?? error.decline_code ?? fallbackCode(httpStatus, error);
      const outcome = { verdict: "rejected", code, detail: refusalInWords(code, error), httpStatus } as const;
      return isReplay(headers) ? { ...outcome, replayed: true } : outcome;
    }
    case 409:
      return unknown("conflict", `The provider answered with a conflict.${said}`);
    default:
      return httpStatus >= 500
        ? unknown("provider_error", providersTrouble(httpStatus))
        : unknown("unexpected_status", `The provider answered with HTTP ${httpStatus}.`);
  }
}

const providersTrouble = (httpStatus: number): string =>
  `The provider answered with an error (HTTP ${httpStatus}).`;

/** Stripe gives no code for a refund beyond what is left and for keys that it does not accept. */
function fallbackCode(httpStatus: number, error: WireError): string {
  if (httpStatus === 401) return "unauthorized";
  if (httpStatus === 403) return "forbidden";
  if (error.param === "amount") return "amount_not_available";
  return error.type ?? "refused";
}

const isReplay = (headers: Readonly<Record<string, string>>): boolean =>
  headers["idempotent-replayed"] === "true";

function retryAfterMs(headers: Readonly<Record<string, string>>): number | null {
  const seconds = headers["retry-after"];
  return seconds !== undefined && /^\d{1,6}$/.test(seconds) ? Number(seconds) * 1000 : null;
}

function judgeObject(
  operation: Operation,
  endpoint: StoredRequest["endpoint"],
  exchange: Exchange,
  body: string,
): AttemptOutcome {
  const requestId = exchange.headers["request-id"] ?? null;
  const replayed = isReplay(exchange.headers);
  const httpStatus = exchange.status ?? 200;
  switch (endpoint) {
    case "refunds.create": {
      const refund = readJson(refundSchema, body);
      if (refund === null) return unreadable(httpStatus);
      const effect = refundEffect(refund, operation.paymentIntent ?? "");
      return judgeRefund(operation, effect, { requestId, replayed, httpStatus });
    }
    case "subscriptions.cancel":
    case "subscriptions.update": {
      const subscription = readJson(subscriptionSchema, body);
      if (subscription === null) return unreadable(httpStatus);
      const effect = cancellationEffect(subscription);
      if (effect === null) {
        return {
          verdict: "unknown",
          code: "not_cancelled",
          detail: `The provider answered with a subscription that is ${subscription.status} and not cancelled.`,
          httpStatus,
        };
      }
      const differs = differences(operation, effect);
      return differs.length === 0
        ? { verdict: "committed", effect, requestId, replayed }
        : { verdict: "postcondition_failed", effect, differs, requestId };
    }
    default:
      return assertNever(endpoint, "endpoint");
  }
}

function judgeRefund(
  operation: Operation,
  effect: ProviderEffect,
  answer: { requestId: string | null; replayed: boolean; httpStatus: number },
): AttemptOutcome {
  const { requestId, replayed, httpStatus } = answer;
  switch (effect.status) {
    case "failed":
    case "canceled": {
      const differs = differences(operation, effect);
      // It would free the money: that takes more than likeness, for there may be another one like it.
      if (effect.operationId === null) differs.push("operation_id");
      if (differs.length === 0) {
        return { verdict: "failed_at_provider", effect, code: effect.failureReason ?? effect.status };
      }
      return {
        verdict: "unknown",
        code: "other_object",
        detail: `The provider answered with ${effect.ref}, which is ${effect.status} and differs in ${differs.join(", ")}.`,
        httpStatus,
      };
    }
    case "succeeded":
    case "pending":
    case "requires_action": {
      const differs = differences(operation, effect);
      if (differs.length > 0) return { verdict: "postcondition_failed", effect, differs, requestId };
      if (effect.status === "succeeded") return { verdict: "committed", effect, requestId, replayed };
      return { verdict: "pending", effect, reason: effect.pendingReason ?? effect.status, requestId };
    }
    default:
      return {
        verdict: "unknown",
        code: "unknown_status",
        detail: `The provider answered with a refund in the state "${effect.status}".`,
        httpStatus,
      };
  }
}
