/** What the room is told at its start, and what it finds out about itself. Imports nothing. */

/** Counters and timers that operations may watch. Every method is cheap and never throws. */
export interface SlackMetrics {
  /** From arrival to acknowledgement, milliseconds. */
  acknowledged(kind: string, ms: number): void;
  /** Slack asked us to slow down on this method. */
  rateLimited(method: string): void;
  /** A call ended: `ok`, or Slack's error code, or `rate_limited`, or `unknown` when the answer was lost. */
  called(method: string, outcome: string): void;
  /** Something arrived that was refused before it was stored (foreign app, old timestamp, …). */
  refused(why: string): void;
  /** A person asked for what they may not do. */
  forbidden(what: string): void;
}

export const SILENT_METRICS: SlackMetrics = {
  acknowledged: () => {},
  rateLimited: () => {},
  called: () => {},
  refused: () => {},
  forbidden: () => {},
};

/** CONTRACT §3, the Slack part. Channel ids as Slack spells them. */
export interface SlackConfig {
  readonly botToken: string;
  /** Which of the two secrets is set chooses the transport; a process that only sends may have none. */
  readonly transport:
    | { readonly mode: "http"; readonly signingSecret: string }
    | { readonly mode: "socket"; readonly appToken: string }
    | { readonly mode: "none" };
  /** Web API base, with its trailing slash. */
  readonly apiUrl: string;
  readonly channels: { readonly tickets: string; readonly approvals: string; readonly ops: string };
  /** How long the provider does a repeated key at most once, in milliseconds; absent: cards do not tell of it. */
  readonly keyTtlMs?: number;
  /** TCP port of the one HTTP server. 0 takes any free one (tests). */
  readonly port: number;
}

/** Who we are in Slack, from auth.test. */
export interface SlackIdentity {
  readonly teamId: string;
  readonly enterpriseId: string | null;
  readonly isEnterpriseInstall: boolean;
  readonly botUserId: string;
  readonly botId: string | null;
  /** Null while Slack has not told us: then the signing secret or app token alone proves that a request is for us. */
  readonly appId: string | null;
  /** Of the workspace, with a slash at its end: links to messages begin so. Null: not told. */
  readonly url: string | null;
}
