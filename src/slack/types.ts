/**
 * What the Slack room needs of the world, and what it hands out.
 *
 * The room translates: Slack's payloads into use cases, rows into messages. It decides nothing about money; whoever may do
 * what is decided by the use cases, in the database. Everything that leaves is a row first (`slack_cards`, `slack_outbox`).
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Db } from "../db/connect.js";
import type { Policy } from "../domain/policy/policy.js";
import type { Clock, Ids } from "../domain/ports/clock.js";
import type { Directory } from "../domain/ports/directory.js";
import type { Logger } from "../domain/ports/logger.js";
import type { Wake } from "../domain/ports/wake.js";
import type { SlackConfig, SlackMetrics } from "./settings.js";
import type { SlackUseCases } from "./use-cases.js";
import type { SlackWeb } from "./web.js";

/** Rows in, messages out: what `sendOutbox`, `renderCard` and the sweeps need. */
export interface SlackSendContext {
  readonly db: Db;
  readonly ids: Ids;
  readonly clock: Clock;
  readonly wake: Wake;
  readonly web: SlackWeb;
  readonly directory: Directory;
  readonly log: Logger;
  readonly metrics: SlackMetrics;
  readonly config: SlackConfig;
  /** The policy in force. */
  readonly policy: () => Promise<Policy>;
  /** Told when the message that carries a ticket's thread has been posted. */
  readonly useCases: Pick<SlackUseCases, "setTicketThread">;
}

/** Everything: what `processInbox` and the listeners need. */
export interface SlackContext extends Omit<SlackSendContext, "useCases"> {
  /** Connections of its own, on which arrivals are stored: Slack waits for that, whatever all others wait for. */
  readonly arrivals: Db;
  readonly useCases: SlackUseCases;
}

/** Handlers of other paths on the same port, by `METHOD /path`. The body is not read before they are called. */
export type HttpRoutes = {
  readonly [route: string]: (req: IncomingMessage, res: ServerResponse) => void | Promise<void>;
};

export interface SlackHealth {
  /** Slack reaches us: a socket that said hello, or an HTTP server that listens and knows who we are. */
  readonly connected: boolean;
  readonly mode: "http" | "socket";
  /** Open sockets; 0 in HTTP mode. */
  readonly sockets: number;
  /** Milliseconds since the youngest socket said hello; null in HTTP mode or when there is none. */
  readonly socketAgeMs: number | null;
  /** Milliseconds since the last frame or pong on any socket. */
  readonly silentMs: number | null;
  readonly detail: string;
}

export interface SlackHandle {
  /** The port that is really listened on. */
  readonly port: number;
  health(): SlackHealth;
  /** Takes nothing new, lets what runs end, closes sockets and the server. Resolves within about ten seconds. */
  stop(): Promise<void>;
}
