/**
 * The runs room: the only writer of tickets, runs, turns, tool calls, notes and spend.
 *
 * Lock order: this room's rows come last (approval, operation, order, payment, totals, then run), so a transaction that also
 * touches the ledger writes here at its end.
 */

export type * from "./api.js";
export type * from "./types.js";
