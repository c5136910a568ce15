/** What stops operations from being sent, and what that is called. */
import { assertNever } from "./assert-never.js";
import type { OperationKind } from "./operation.js";
import { asSentence } from "./text/sentence.js";
import { utcTime } from "./text/utc-time.js";

/** The switch that stops an operation from being sent; the one that was turned first, where there are two. */
export interface Frozen {
  readonly kind: OperationKind | "all";
  readonly since: Date | null;
  readonly by: string | null;
  /** What whoever turned it gave as the reason. */
  readonly reason: string | null;
}

/** "Refunds are frozen": what a switch stops, as the beginning of a sentence. */
export function frozenWords(kind: Frozen["kind"]): string {
  switch (kind) {
    case "all":
      return "Sending of everything is frozen";
    case "refund":
      return "Refunds are frozen";
    case "cancel_order":
      return "Cancellations of orders are frozen";
    case "cancel_subscription":
      return "Cancellations of subscriptions are frozen";
    default:
      return assertNever(kind, "freeze kind");
  }
}

/** "Refunds are frozen since 29 Nov 2026, 11:30 UTC: the provider answers oddly." Plain text; who did it is a person's id, and told elsewhere. */
export function frozenReason({ kind, since, reason }: Frozen): string {
  const when = since === null ? "" : ` since ${utcTime(since)}`;
  const why = (reason ?? "").replace(/\s+/gu, " ").trim();
  return asSentence(`${frozenWords(kind)}${when}${why === "" ? "" : `: ${why}`}`);
}
