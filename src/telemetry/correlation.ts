/**
 * Which ticket, run, operation a line of the log is about, without handing it through every call: set where the work begins, added
 * to as it becomes known, carried by the asynchronous context, put on every line and every span.
 */
import { AsyncLocalStorage } from "node:async_hooks";

export interface Correlation {
  ticketId?: string;
  runId?: string;
  operationId?: string;
  approvalId?: string;
  attempt?: number;
  /** Slack's event or envelope, as stored in the inbox. */
  slackEvent?: string;
  /** Kind of the job, or name of the schedule, that is being worked on. */
  job?: string;
}

const storage = new AsyncLocalStorage<Correlation>();

/** Runs `fn` with these ids added to those already set. */
export function withCorrelation<T>(ids: Readonly<Correlation>, fn: () => T): T {
  return storage.run({ ...storage.getStore(), ...ids }, fn);
}

/** Adds what has become known to the work around; nothing happens outside of any. */
export function addCorrelation(ids: Readonly<Correlation>): void {
  const around = storage.getStore();
  if (around !== undefined) Object.assign(around, ids);
}

/** The ids in force here; empty outside of any work. */
export function correlation(): Readonly<Correlation> {
  return storage.getStore() ?? {};
}
