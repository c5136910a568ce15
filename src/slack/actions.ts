/**
 * Every id that travels through Slack and comes back with a click. Listeners, cards and the manifest's test read them from here.
 * A button carries ids and a version only, never a fact: all facts are read again.
 */

import type { ApprovalId, OperationId, RunId, TicketId } from "../domain/ids.js";
import { isApprovalId, isOperationId, isRunId, isTicketId } from "../domain/ids.js";
import { OPERATION_KINDS } from "../domain/operation.js";
import type { FreezeKind, FreezeState, ResolutionView } from "../ops/index.js";

export const ACTIONS = {
  approve: "approval.approve",
  deny: "approval.deny",
  undo: "approval.undo",
  approvalDetails: "approval.details",
  stop: "run.stop",
  runDetails: "run.details",
  bindingConfirm: "binding.confirm",
  bindingChange: "binding.change",
  furtherRefund: "operation.further",
  resolveConfirm: "quarantine.confirm",
  resolveReject: "quarantine.reject",
  resolveRetry: "quarantine.retry",
  operationDetails: "operation.details",
  reopen: "operation.reopen",
  closeIncident: "incident.close",
  agree: "resolution.agree",
  disagree: "resolution.disagree",
  thawAgree: "thaw.agree",
  thawDisagree: "thaw.disagree",
  homeRefresh: "home.refresh",
  opsPage: "ops.page",
} as const;

export const VIEWS = {
  ticket: "ticket.form",
  deny: "approval.deny_form",
  approveAmount: "approval.amount_form",
  bindingChange: "binding.change_form",
  resolve: "operation.resolve_form",
  reopen: "operation.reopen_form",
  closeIncident: "incident.close_form",
  details: "details",
} as const;

export const SHORTCUTS = { resolve: "resolve_with_countersign" } as const;

export const COMMANDS = { ticket: "/ticket", ops: "/ops" } as const;

/** Input blocks and their elements; error answers are keyed by block. */
export const INPUTS = {
  text: { block: "text", action: "text" },
  reference: { block: "reference", action: "reference" },
  note: { block: "note", action: "note" },
  smaller: { block: "smaller", action: "smaller" },
  amount: { block: "amount", action: "amount" },
  reason: { block: "reason", action: "reason" },
  evidence: { block: "evidence", action: "evidence" },
} as const;

/** `apr_….3`: approval and card version. */
export function approvalValue(id: ApprovalId, cardVersion: number): string {
  return `${id}.${cardVersion}`;
}

export function parseApprovalValue(value: string): { approvalId: ApprovalId; cardVersion: number } | null {
  const [id = "", version = "", rest] = value.split(".");
  if (rest !== undefined || !isApprovalId(id) || !/^[1-9]\d{0,8}$/.test(version)) return null;
  return { approvalId: id, cardVersion: Number(version) };
}

export const parseRunValue = (value: string): RunId | null => (isRunId(value) ? value : null);
export const parseTicketValue = (value: string): TicketId | null => (isTicketId(value) ? value : null);
export const parseOperationValue = (value: string): OperationId | null =>
  isOperationId(value) ? value : null;

/** `op_…:tkt_…`: an operation as one ticket's thread was told of it. */
export function furtherValue(operationId: OperationId, ticketId: TicketId): string {
  return `${operationId}:${ticketId}`;
}

export function parseFurtherValue(value: string): { operationId: OperationId; ticketId: TicketId } | null {
  const [operation = "", ticket = "", rest] = value.split(":");
  return rest === undefined && isOperationId(operation) && isTicketId(ticket)
    ? { operationId: operation, ticketId: ticket }
    : null;
}

/** `res_…` or `res_….2`: a request as its card showed it, with how often the provider's answer on it had changed. */
export const resolutionValue = ({ id, shownTimes }: Pick<ResolutionView, "id" | "shownTimes">): string =>
  shownTimes === 0 ? id : `${id}.${shownTimes}`;

export function parseResolutionValue(value: string): { id: string; seen: number } | null {
  const [, id, seen = "0"] = /^(res_[0-9a-f]{32})(?:\.([1-9]\d{0,8}))?$/.exec(value) ?? [];
  return id === undefined ? null : { id, seen: Number(seen) };
}

export const parseIncidentValue = (value: string): string | null =>
  /^inc_[0-9a-f]{32}$/.test(value) ? value : null;

/** `refund.7`: a switch as its card showed it. */
export const thawValue = ({ kind, version }: Pick<FreezeState, "kind" | "version">): string =>
  `${kind}.${version}`;

export function parseThawValue(value: string): { kind: FreezeKind; version: number } | null {
  const [name = "", version = "", rest] = value.split(".");
  const kind = FREEZE_KINDS.find((known) => known === name);
  return rest === undefined && kind !== undefined && /^[1-9]\d{0,14}$/.test(version)
    ? { kind, version: Number(version) }
    : null;
}

const FREEZE_KINDS: readonly FreezeKind[] = ["all", ...OPERATION_KINDS];
