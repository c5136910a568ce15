/**
 * Which ticket, run, operation a line of the log is about, without handing it through every call: set once where the work begins,
 * carried by the asynchronous context, added to every line.
 */
import { AsyncLocalStorage } from "node:async_hooks";

export interface Correlation {
  readonly ticketId?: string;
  readonly runId?: string;
  readonly operationId?: string;
  readonly approvalId?: string;
  readonly attempt?: number;
  /** Slack's event or envelope id, as stored in the inbox. */
  readonly slackEvent?: string;
  /** Kind of the job, or name of the schedule, that is being worked on. */
  readonly job?: string;
}

const storage = new AsyncLocalStorage<Correlation>();

/** Runs `fn` with these ids added to those already set. */
export function withCorrelation<T>(ids: Correlation, fn: () => T): T {
  return storage.run({ ...storage.getStore(), ...ids }, fn);
}

/** The ids in force here; empty outside of any work. */
export function correlation(): Correlation {
  return storage.getStore() ?? {};
}
