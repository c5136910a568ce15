/** What was sent, what the provider made of it, and what was found: the counts that tests of effects assert. */
import type { Db } from "../../src/db/connect.js";
import type { PaymentsSandbox } from "../../src/sandbox/payments/index.js";

export interface Counters {
  /** Refunds that the provider was asked for. */
  posts(): Promise<number>;
  /** Refunds that it made, by its own books. */
  committed(): Promise<number>;
  /** Kinds of all incidents, in the order of the alphabet. */
  incidents(): Promise<string[]>;
}

/** Both are looked at when a count is asked for: they exist only inside tests. */
export const countersOf = (
  database: { readonly db: Db },
  payments: { readonly sandbox: Pick<PaymentsSandbox, "control"> },
): Counters => ({
  posts: async () =>
    (await payments.sandbox.control.requests({ method: "POST", path: "/v1/refunds" })).length,
  committed: async () => (await payments.sandbox.control.counts()).committed,
  incidents: async () =>
    (await database.db.sql<{ kind: string }>(undefined, "SELECT kind FROM incidents ORDER BY kind")).map(
      ({ kind }) => kind,
    ),
});
