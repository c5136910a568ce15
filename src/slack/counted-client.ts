/** A Web API client that counts every call by method and outcome, whoever makes it and whatever they make of the failure. */
import { type WebAPICallResult, WebAPIRequestError, WebClient, type WebClientOptions } from "@slack/web-api";
import type { Logger } from "../domain/ports/logger.js";
import { type CallFailure, callFailure } from "./call-failure.js";
import type { Reach } from "./reach.js";
import type { SlackMetrics } from "./settings.js";

export interface CallsSeen {
  readonly metrics: Pick<SlackMetrics, "called" | "rateLimited">;
  readonly log: Logger;
}

export class CountedClient extends WebClient {
  readonly #seen: CallsSeen & { readonly reach: Reach };

  constructor(token: string, options: WebClientOptions, seen: CallsSeen & { readonly reach: Reach }) {
    super(token, options);
    this.#seen = seen;
  }

  /** Every method of the package's goes through here. */
  override async apiCall(method: string, options?: Record<string, unknown>): Promise<WebAPICallResult> {
    try {
      const answer = await super.apiCall(method, options);
      this.#seen.reach.answered();
      this.#seen.metrics.called(method, "ok");
      return answer;
    } catch (error) {
      if (error instanceof WebAPIRequestError) this.#seen.reach.failed(method, error.message);
      else this.#seen.reach.answered();
      callFailed(this.#seen, method, callFailure(error));
      throw error;
    }
  }
}

/** Counts a failed call, and logs that Slack wants to be called less often: its callers wait and say nothing. */
export function callFailed({ metrics, log }: CallsSeen, method: string, failure: CallFailure): void {
  metrics.called(method, failure.kind === "refused" ? failure.code : failure.kind);
  if (failure.kind !== "rate_limited") return;
  metrics.rateLimited(method);
  log.warn({ method, retryAfterMs: failure.retryAfterMs }, "Slack asks us to slow down");
}
