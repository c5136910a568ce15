/** What a failed call to the Messages API means for the run, decided once, by class and status and never by message text. */
import {
  APIConnectionError,
  APIError,
  AuthenticationError,
  BadRequestError,
  ContentTooLargeError,
  NotFoundError,
  PaymentRequiredError,
  PermissionDeniedError,
  RateLimitError,
} from "@anthropic-ai/sdk";
import type { PlannerFailure } from "../planner.js";
import { BrokenReply, StreamErrorEvent } from "./assemble.js";

export type StoppedBy = "deadline" | "idle" | "caller" | null;

const giveUp = (code: string, detail: string): PlannerFailure => ({ next: "give_up", code, detail });
const later = (
  code: string,
  detail: string,
  more: { billed: boolean; retryAfterMs?: number | null },
): PlannerFailure => ({
  next: "later",
  code,
  detail,
  billed: more.billed,
  retryAfterMs: more.retryAfterMs ?? null,
});

/** Spend limits that will not pass soon: asking again only costs time. */
const LASTING_LIMITS: ReadonlySet<string> = new Set([
  "enforced_spend_limit_reached",
  "contract_spend_limit_reached",
  "linked_organization_spend_limit_reached",
]);

/** `stoppedBy`: our own deadline, watchdog or caller ended the call. */
export function classifyFailure(error: unknown, stoppedBy: StoppedBy, model: string): PlannerFailure {
  switch (stoppedBy) {
    case "deadline":
      return later("deadline", "A call took longer than its deadline.", { billed: true });
    case "idle":
      return later("idle", "A call went silent.", { billed: true });
    case "caller":
      return later("aborted", "The call was given up because the run moved elsewhere.", { billed: true });
    case null:
      break;
  }
  if (error instanceof StreamErrorEvent) {
    return later(error.type, `The service broke the reply off (${error.type}).`, { billed: true });
  }
  if (error instanceof BrokenReply)
    return later(error.code, "The reply arrived incomplete.", { billed: true });
  if (error instanceof APIConnectionError) {
    return later("connection", "The service could not be reached.", { billed: !neverSent(error) });
  }
  if (error instanceof APIError && error.status !== undefined) return byStatus(error, error.status, model);
  // A bare TypeError or DOMException: the body was cut while it was read.
  return later("connection_cut", "The connection was cut while the reply was read.", { billed: true });
}

/** Socket errors that come before a byte of the request has left. */
const BEFORE_SENDING: ReadonlySet<string> = new Set([
  "ECONNREFUSED",
  "ENOTFOUND",
  "EAI_AGAIN",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "UND_ERR_CONNECT_TIMEOUT",
]);

function neverSent(error: unknown): boolean {
  let cause: unknown = error;
  for (let depth = 0; depth < 5 && cause instanceof Error; depth += 1) {
    const code = (cause as NodeJS.ErrnoException).code;
    if (code !== undefined && BEFORE_SENDING.has(code)) return true;
    cause = cause.cause;
  }
  return false;
}

function byStatus(error: APIError, status: number, model: string): PlannerFailure {
  const said = error.type ?? String(status);
  if (error instanceof AuthenticationError) {
    return giveUp(
      "model_key_refused",
      "The model service refused the key: set ANTHROPIC_API_KEY to a valid one.",
    );
  }
  if (error instanceof PermissionDeniedError) {
    return giveUp(
      "model_not_permitted",
      `The key in ANTHROPIC_API_KEY may not use the model "${model}": set another ANTHROPIC_MODEL or another key.`,
    );
  }
  if (error instanceof NotFoundError) {
    return giveUp(
      "model_not_found",
      `The model service does not know "${model}": check ANTHROPIC_MODEL and ANTHROPIC_BASE_URL.`,
    );
  }
  if (error instanceof PaymentRequiredError) {
    return giveUp("model_billing", "The model service refused the call for billing reasons.");
  }
  if (error instanceof RateLimitError && LASTING_LIMITS.has(error.errorCode ?? "")) {
    return giveUp("model_spend_limit", "The model service's own spend limit is reached.");
  }
  if (error instanceof ContentTooLargeError) {
    return giveUp("request_too_large", "The conversation is too large for the model service.");
  }
  if (error instanceof BadRequestError) {
    return giveUp("invalid_request", `The model service refused the request as invalid (${said}).`);
  }
  const again = shouldRetry(error) ?? (status === 408 || status === 409 || status === 429 || status >= 500);
  return again
    ? later(said, `The service answered ${status} (${said}).`, {
        billed: false,
        retryAfterMs: retryAfterMs(error),
      })
    : giveUp("model_refused", `The model service answered ${status} (${said}).`);
}

function shouldRetry(error: APIError): boolean | null {
  const header = error.headers?.get("x-should-retry");
  return header === "true" ? true : header === "false" ? false : null;
}

/** `retry-after-ms`, else `retry-after` in seconds or as a date, which is held against the answer's own. Null: not said. */
export function retryAfterMs(error: APIError): number | null {
  const ms = error.headers?.get("retry-after-ms");
  const seconds = error.headers?.get("retry-after");
  const value = numeric(ms) ?? scaled(numeric(seconds)) ?? until(seconds, error.headers?.get("date"));
  return value === null ? null : Math.min(value, Number.MAX_SAFE_INTEGER);
}

/** From the date of the answer to the date that it names, both by the service's clock; a date without a date beside it says nothing. */
function until(then: string | null | undefined, now: string | null | undefined): number | null {
  const ms = Date.parse(then ?? "") - Date.parse(now ?? "");
  return Number.isNaN(ms) ? null : Math.max(0, ms);
}

const numeric = (text: string | null | undefined): number | null =>
  text === null || text === undefined || !/^\d+(\.\d+)?$/.test(text.trim()) ? null : Math.ceil(Number(text));

const scaled = (seconds: number | null): number | null => (seconds === null ? null : seconds * 1000);
