import type { Db } from "../../db/connect.js";
import { sha256Hex } from "../../domain/canonical.js";
import { formatMoney, money } from "../../domain/money.js";
import type { Operation } from "../../domain/operation.js";
import { counted } from "../../domain/text/counted.js";
import { utcSecond } from "../../domain/text/utc-time.js";
import {
  auditOperation,
  type OperationAudit,
  requestOf,
  type StoryEvent,
  storyOf,
} from "../../ledger/index.js";
import { isReferenceGiven } from "../../ops/index.js";
import { policyLoadedAt } from "../../policy/index.js";
import { getTicket } from "../../runs/index.js";
import { CommandFailure } from "../exit.js";
import { print, printJson } from "../output.js";
import { withDb } from "./open.js";
import { find, operationJson } from "./ops.js";
import { timelineText } from "./timeline-text.js";

/** What stands behind one operation, gathered from its rows and its part of the log. */
interface Explanation {
  readonly operation: Operation;
  readonly events: readonly StoryEvent[];
  readonly request: Awaited<ReturnType<typeof requestOf>>;
  /** SHA-256 of the ticket's text: as the first event names it, and of the text that is stored now. */
  readonly ticket: {
    readonly textHash: string | null;
    readonly textHashNow: string | null;
    readonly filedAt: Date | null;
    readonly source: string | null;
    /** Who confirmed whom it is about; null: nobody did. */
    readonly customerConfirmedBy: string | null;
  };
  /** Since when the policy that judged it is known here; null: it is not. */
  readonly policyLoadedAt: Date | null;
  readonly audit: OperationAudit;
  /** Its reference is only what a person named. */
  readonly referenceGiven: boolean;
}

/**
 * `countersign audit explain ID`: one decision from the ticket's text to the provider's reference, with the links of the log that
 * carry it. Exit 1 and the first broken link, if there is one.
 */
export async function explain(id: string, options: { json?: boolean }): Promise<void> {
  await withDb(async (db) => {
    const told = await gather(db, await find(db, id));
    if (options.json === true) printJson(json(told));
    else for (const line of lines(told)) print(line);
    const [first] = told.audit.broken;
    if (first !== undefined)
      throw new CommandFailure(`Broken: ${first.what} ${first.where}: ${first.problem}`);
  });
}

async function gather(db: Db, operation: Operation): Promise<Explanation> {
  const audit = await auditOperation(db, operation.id);
  if (audit === null) throw new CommandFailure(`There is no operation ${operation.id}.`);
  const events = await storyOf(db, operation.id);
  const textHash = events[0]?.data["ticketTextHash"];
  const ticket = operation.ticketId === null ? null : await getTicket(db, operation.ticketId);
  return {
    operation,
    events,
    request: await requestOf(db, operation.id),
    ticket: {
      textHash: typeof textHash === "string" ? textHash : null,
      textHashNow: ticket === null ? null : sha256Hex(ticket.text),
      filedAt: ticket?.createdAt ?? null,
      source: ticket?.source ?? null,
      customerConfirmedBy: ticket?.boundBy ?? null,
    },
    policyLoadedAt: await policyLoadedAt(db, operation.policyHash),
    audit,
    referenceGiven: await isReferenceGiven(db, operation.id),
  };
}

function json({
  operation,
  events,
  request,
  ticket,
  policyLoadedAt,
  audit,
  referenceGiven,
}: Explanation): Record<string, unknown> {
  return {
    operation: operationJson(operation),
    referenceGiven,
    ticket: { id: operation.ticketId, ...ticket },
    policyHash: operation.policyHash,
    policyLoadedAt,
    request,
    events,
    chain: { intact: audit.broken.length === 0, ...audit },
  };
}

function lines({
  operation,
  events,
  request,
  ticket,
  policyLoadedAt,
  audit,
  referenceGiven,
}: Explanation): string[] {
  const amount =
    operation.amountMinor === 0n
      ? ""
      : ` of ${formatMoney(money(operation.amountMinor, operation.currency))}`;
  const target = operation.orderRef ?? operation.subscriptionRef ?? "";
  return [
    `${operation.id}: ${operation.kind}${amount} on ${target} for ${operation.customerRef}: ${operation.status}`,
    `Ticket ${operation.ticketId ?? "none"}, filed${filedWords(ticket)} by ${operation.filers.join(", ")}; the customer ${
      ticket.customerConfirmedBy === null
        ? "was confirmed by nobody"
        : `was confirmed by ${ticket.customerConfirmedBy}`
    }`,
    `SHA-256 of its text ${ticket.textHash ?? "not recorded"}: ${textStands(ticket)}`,
    `Run ${operation.ownerRunId ?? "none"}; policy ${operation.policyHash}${policyLoadedAt === null ? "" : `, known since ${utcSecond(policyLoadedAt)}`}`,
    `Key ${operation.idempotencyKey}; request ${request === null ? "none" : JSON.stringify(request)}`,
    `${referenceGiven ? "Reference given by a person" : "Provider's reference"}: ${operation.providerRef ?? "none"}`,
    "",
    ...events.map(timelineText),
    "",
    `Chain: ${counted(audit.events, "event")}, each following from the one before; the last is ${audit.headHash}`,
    ...audit.blocks.map(
      ({ seq, hash, sealedAt }) => `Sealed in block ${seq}, ${utcSecond(sealedAt)}: ${hash}`,
    ),
    ...(audit.unsealed === 0 ? [] : [`Not sealed yet: ${audit.unsealed}`]),
  ];
}

const filedWords = ({ filedAt, source }: Explanation["ticket"]): string =>
  filedAt === null ? "" : ` ${utcSecond(filedAt)} (${source ?? "?"})`;

function textStands({ textHash, textHashNow }: Explanation["ticket"]): string {
  if (textHashNow === null) return "the ticket is not there";
  return textHash === textHashNow
    ? "the stored text has it"
    : "the stored text has another, it was deleted or changed";
}
