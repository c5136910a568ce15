/** What a wake-up can be about. A wake-up carries an id only; whoever gets it re-reads the row. */
export const WAKE_KINDS = ["run", "operation", "inbox", "outbox", "card", "webhook", "approval"] as const;
export type WakeKind = (typeof WAKE_KINDS)[number];

/**
 * Says "look at this row now". Called after commit only. Never throws and never blocks for long: a lost wake-up is found
 * again by the sweeper.
 */
export type Wake = (kind: WakeKind, id: string) => Promise<void>;
