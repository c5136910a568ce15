/** What both ways to the app have in common. */
import type { JsonObject } from "../model.js";

/** One try to hand something to the app. */
export interface Attempt {
  kind: "events_api" | "interactive" | "slash_commands";
  /** For the journal and for faults: `message`, `block_actions`, `slash_command`, … */
  type: string;
  /** The same over all attempts of one delivery. */
  deliveryId: string;
  payload: JsonObject;
  /** 0 for the first. */
  retryNum: number;
  retryReason: string | null;
  /** The app may answer with content. */
  acceptsResponse: boolean;
}

export type AttemptResult =
  | { outcome: "acked"; body: unknown }
  | { outcome: "timeout" }
  /** Answered with another status than 200, or unreadably. `noRetry`: the app asked for no further try. */
  | { outcome: "http_error"; status: number; noRetry: boolean }
  | { outcome: "connection_failed" }
  | { outcome: "not_connected" };

export interface Transport {
  attempt(attempt: Attempt): Promise<AttemptResult>;
  /** Open sockets, or 1 once the request url is verified. */
  connected(): number;
  stop(): Promise<void>;
}
