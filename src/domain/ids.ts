/**
 * Ids of our rows: a prefix that names the kind and a time-ordered UUIDv7 without dashes.
 * Time-ordered keys keep inserts at the right edge of the index.
 */
export type OperationId = `op_${string}`;
export type RunId = `run_${string}`;
export type ApprovalId = `apr_${string}`;
export type TicketId = `tkt_${string}`;
export type TurnId = `turn_${string}`;
export type CallId = `call_${string}`;

export const ID_PREFIXES = {
  operation: "op_",
  run: "run_",
  approval: "apr_",
  ticket: "tkt_",
  turn: "turn_",
  call: "call_",
  attempt: "att_",
  incident: "inc_",
  resolution: "res_",
  inbox: "inb_",
  outbox: "out_",
  card: "card_",
  evidence: "evd_",
  customer: "cus_",
  order: "ord_",
  payment: "pay_",
  item: "itm_",
  shipment: "shp_",
  subscription: "sub_",
  article: "art_",
} as const;

/** Narrows text to an operation id; false for anything that does not look like one. */
export const isOperationId = (text: string): text is OperationId => /^op_[0-9a-f]{32}$/.test(text);
/** Narrows text to a run id. */
export const isRunId = (text: string): text is RunId => /^run_[0-9a-f]{32}$/.test(text);
/** Narrows text to an approval id. */
export const isApprovalId = (text: string): text is ApprovalId => /^apr_[0-9a-f]{32}$/.test(text);
/** Narrows text to a ticket id. */
export const isTicketId = (text: string): text is TicketId => /^tkt_[0-9a-f]{32}$/.test(text);
