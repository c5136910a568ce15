/** What an answer of Slack's that is no success means for whoever made the call. */
import { WebAPIHTTPError, WebAPIPlatformError, WebAPIRateLimitedError } from "@slack/web-api";
import { cutText } from "../domain/text/cut.js";

/** What a failed call means. Only `refused` and `rate_limited` prove that nothing was written. */
export type CallFailure =
  | { readonly kind: "rate_limited"; readonly retryAfterMs: number }
  /** Slack answered `ok: false` with this code. `details` name the offending spot, for the log. */
  | { readonly kind: "refused"; readonly code: string; readonly details: string }
  /** No answer, or one that says nothing: it may have happened. */
  | { readonly kind: "unknown"; readonly detail: string };

const RATE_CODES: ReadonlySet<string> = new Set(["ratelimited", "rate_limited", "message_limit_exceeded"]);
/** Slack's own trouble: whether the call took effect is open. */
const OPEN_CODES: ReadonlySet<string> = new Set([
  "internal_error",
  "fatal_error",
  "service_unavailable",
  "request_timeout",
]);
const DEFAULT_RETRY_AFTER_MS = 30_000;
const RESPONSE_RETRY_AFTER_MS = 1_000;
const HTTP_TOO_MANY = 429;

/** Classifies what a WebClient call threw. */
export function callFailure(error: unknown): CallFailure {
  if (error instanceof WebAPIRateLimitedError) {
    return { kind: "rate_limited", retryAfterMs: Math.max(1, error.retryAfter) * 1000 };
  }
  if (error instanceof WebAPIPlatformError) {
    const data = error.data as {
      error?: string;
      errors?: unknown;
      response_metadata?: { messages?: unknown; retryAfter?: number };
    };
    const code = data.error ?? "unknown_error";
    if (RATE_CODES.has(code)) {
      const seconds = data.response_metadata?.retryAfter;
      return {
        kind: "rate_limited",
        retryAfterMs: seconds === undefined ? DEFAULT_RETRY_AFTER_MS : seconds * 1000,
      };
    }
    const details = cutText(JSON.stringify(data.errors ?? data.response_metadata?.messages ?? []), 500);
    return OPEN_CODES.has(code) ? { kind: "unknown", detail: code } : { kind: "refused", code, details };
  }
  if (error instanceof WebAPIHTTPError) {
    return error.statusCode === HTTP_TOO_MANY
      ? { kind: "rate_limited", retryAfterMs: DEFAULT_RETRY_AFTER_MS }
      : { kind: "unknown", detail: `HTTP ${error.statusCode}` };
  }
  if (error instanceof Error) {
    // The package throws a bare Error for a 429 without a readable Retry-After.
    if (error.message.startsWith("Retry header did not contain")) {
      return { kind: "rate_limited", retryAfterMs: DEFAULT_RETRY_AFTER_MS };
    }
    return { kind: "unknown", detail: cutText(error.message, 300) };
  }
  return { kind: "unknown", detail: cutText(String(error), 300) };
}

/** What a status that is no success means where a response_url was answered. */
export function responseFailure(status: number): CallFailure {
  return status === HTTP_TOO_MANY
    ? { kind: "rate_limited", retryAfterMs: RESPONSE_RETRY_AFTER_MS }
    : { kind: "refused", code: `HTTP ${status}`, details: "" };
}
