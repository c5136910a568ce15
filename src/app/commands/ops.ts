import type { Db } from "../../db/connect.js";
import { frozenReason } from "../../domain/frozen.js";
import { isOperationId, type OperationId } from "../../domain/ids.js";
import { formatMoney, money } from "../../domain/money.js";
import { OPERATION_STATUSES, type Operation, type OperationStatus } from "../../domain/operation.js";
import { utcSecond } from "../../domain/text/utc-time.js";
import { isTriedAgain, triedPart } from "../../domain/tried.js";
import {
  askedAgain,
  findByPrefix,
  freezeStates,
  getOperation,
  type Incident,
  listIncidents,
  listOperations,
  slowedDown,
  storyOf,
} from "../../ledger/index.js";
import {
  askedAnewWords,
  incidentRows,
  lookAsking,
  operationsNamed,
  statusNamed,
  theOnlyOne,
} from "../../ops/index.js";
import { activePolicy } from "../../policy/index.js";
import { askProvider } from "../compose/ask-provider.js";
import { MAX_ATTEMPTS } from "../compose/ledger.js";
import { offlineContext } from "../compose/offline.js";
import { CommandFailure, EXIT_BAD_USAGE } from "../exit.js";
import { print, printJson, table } from "../output.js";
import { needIdLike } from "./id-like.js";
import { withDb } from "./open.js";
import { againText, showText, standingOf, subjectOf } from "./show-text.js";
import { timelineText } from "./timeline-text.js";

const PAGE = 50;
/** What is worth a line stands in what is printed. */
const NO_LOG = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };
const SUGGESTIONS = 5;

interface ListOptions {
  /** The state as a bare word, as `/ops list` takes it. */
  readonly word?: string;
  readonly status?: string;
  readonly cursor?: string;
  readonly json?: boolean;
}

/** `countersign ops list [status]` */
export async function list(options: ListOptions): Promise<void> {
  const status = statusAsked(options);
  await withDb(async (db) => {
    const page = await listOperations(db, {
      ...(status === undefined ? {} : { status }),
      cursor: options.cursor ?? null,
      limit: PAGE,
    });
    if (options.json === true) {
      printJson({ operations: page.rows.map(operationJson), next: page.next });
      return;
    }
    for (const state of await freezeStates(db))
      if (state.frozen)
        print(`${frozenReason({ ...state, since: state.at })} By ${state.by ?? "nobody known"}.`);
    if (page.rows.length === 0) {
      print(status === undefined ? "No operations yet." : `No operation is ${status}.`);
      return;
    }
    const again = await askedAgain(db, page.rows);
    const slowed = await slowedDown(db, page.rows);
    print(
      table([
        ["operation", "status", "kind", "amount", "on", "customer", "created", ""],
        ...page.rows.map((row) => [
          row.id,
          standingOf(row),
          row.kind,
          amountOf(row),
          row.orderRef ?? row.subscriptionRef ?? "",
          row.customerRef,
          utcSecond(row.createdAt),
          againOr(again.get(row.id), restText(row, slowed.has(row.id))),
        ]),
      ]),
    );
    if (page.next !== null)
      print(`More: countersign ops list${status === undefined ? "" : ` ${status}`} --cursor ${page.next}`);
  });
}

/** `countersign ops show ID` */
export async function show(id: string, options: { json?: boolean }): Promise<void> {
  await withDb(async (db) => {
    const operation = await find(db, id);
    if (options.json === true) {
      printJson(operationJson(operation));
      return;
    }
    const policy = await activePolicy(db);
    const asking = askProvider(db);
    try {
      const looking = {
        db,
        ledger: offlineContext(db),
        maxAttempts: MAX_ATTEMPTS,
        // From here looking writes nothing, whatever is looked at.
        asking: typeof asking.probe === "string" ? asking.probe : { probe: asking.probe, read: asking.probe },
        log: NO_LOG,
      };
      for (const line of showText(await lookAsking(looking, operation, { policy: policy?.policy ?? null })))
        print(line);
    } finally {
      await asking.close();
    }
  });
}

/** `countersign ops events ID` */
export async function events(id: string, options: { json?: boolean }): Promise<void> {
  await withDb(async (db) => {
    const operation = await find(db, id);
    const rows = await storyOf(db, operation.id);
    if (options.json === true) {
      printJson({
        events: rows.map((event) => ({
          seq: event.seq,
          at: event.at,
          type: event.type,
          from: event.from,
          to: event.to,
          actor: event.actor,
          attempt: event.attempt,
          evidence: event.data,
          hash: event.hash,
        })),
        next: null,
      });
      return;
    }
    for (const event of rows) print(timelineText(event));
  });
}

/** `countersign ops incidents`: what nobody has closed, newest first. */
export async function incidents(options: { cursor?: string; json?: boolean }): Promise<void> {
  await withDb(async (db) => {
    const page = await listIncidents(db, { cursor: options.cursor ?? null, limit: PAGE });
    if (options.json === true) {
      printJson({ incidents: page.rows.map(incidentJson), next: page.next });
      return;
    }
    if (page.rows.length === 0) {
      print("No incident is open.");
      return;
    }
    print(
      table([
        ["incident", "kind", "on", "amount", "reference", "operation", "found"],
        ...(await incidentRows(db, page.rows)).map((row) => [
          row.id,
          row.kind,
          row.target ?? "",
          row.amount ?? "",
          row.references.join(", "),
          row.operationId ?? "",
          utcSecond(row.createdAt),
        ]),
      ]),
    );
    if (page.next !== null) print(`More: countersign ops incidents --cursor ${page.next}`);
  });
}

const incidentJson = ({ id, kind, status, operationId, detail, createdAt }: Incident) => ({
  id,
  kind,
  status,
  operation: operationId,
  detail,
  createdAt,
});

function statusAsked({ word, status }: ListOptions): OperationStatus | undefined {
  if (word !== undefined && status !== undefined) {
    throw new CommandFailure(
      "Name the state once: ops list STATE, or ops list --status STATE.",
      EXIT_BAD_USAGE,
    );
  }
  const text = word ?? status;
  return text === undefined ? undefined : statusOf(text);
}

function statusOf(text: string): OperationStatus {
  const status = statusNamed(text);
  if (status === null) {
    throw new CommandFailure(
      `"${text}" is no state of an operation. There are: ${OPERATION_STATUSES.join(", ")}.`,
      EXIT_BAD_USAGE,
    );
  }
  return status;
}

/** @throws with the code of bad usage for what cannot be an id, with that of a failed look for one that is not there */
export async function find(db: Db, text: string): Promise<Operation> {
  const named = await byOtherName(db, text);
  if (named !== null) return named;
  needIdLike(text, "op_", "operation");
  const id = isOperationId(text) ? text : await byPrefix(db, text);
  const operation = await getOperation(db, id);
  if (operation === null) throw new CommandFailure(`There is no operation ${text}.`);
  return operation;
}

async function byPrefix(db: Db, text: string): Promise<OperationId> {
  const found = await findByPrefix(db, text, { limit: SUGGESTIONS });
  const [only] = found;
  if (only === undefined) throw new CommandFailure(`There is no operation ${text}.`);
  if (found.length > 1) {
    const meant = await Promise.all(found.map((one) => getOperation(db, one)));
    const lines = meant.flatMap((one) => (one === null ? [] : [candidateText(one)]));
    const more = found.length === SUGGESTIONS ? "\nThere may be more: add a few characters." : "";
    throw new CommandFailure(
      `${text} is the beginning of several operations:\n${lines.map((line) => `  ${line}`).join("\n")}${more}`,
    );
  }
  return only;
}

/**
 * An order or a reference in place of an id, as in Slack: the one operation that there is of it, for who only looks; null where it names
 * none. @throws CommandFailure with all that may be meant
 */
async function byOtherName(db: Db, text: string): Promise<Operation | null> {
  if (text.startsWith("op_")) return null;
  const { ids, more } = await operationsNamed(db, text);
  if (ids.length === 0) return null;
  const named = (await Promise.all(ids.map((id) => getOperation(db, id)))).filter((one) => one !== null);
  const operation = more ? null : theOnlyOne(named, text);
  if (operation !== null) return operation;
  const lines = named.map((one) => `\n  ${candidateText(one)}`);
  throw new CommandFailure(
    `${text} is no id of an operation. Of that order, payment or reference ${more ? "these are the newest operations" : "there are"}:${lines.join("")}`,
  );
}

/** Enough to see which one is meant, as Slack shows it: "op_…  CONFIRMED  refund £20.00 GBP on ORD-1, 29 Nov 2026, …". */
const candidateText = (operation: Operation): string =>
  `${operation.id}  ${standingOf(operation)}  ${subjectOf(operation)}, ${utcSecond(operation.createdAt)}`;

/** What the same request became the next time, if it was made again. */
const againOr = (next: Operation | undefined, otherwise: string): string =>
  next === undefined ? otherwise : askedAnewWords(againText(next));

/** Of what is approved and rests, or is tried again. */
function restText(operation: Operation, slowed: boolean): string {
  const { status, notBefore } = operation;
  if (isTriedAgain(operation)) return triedPart(operation, slowed, utcSecond);
  return status === "PREPARED" && notBefore !== null
    ? `cooling off, not sent before ${utcSecond(notBefore)}`
    : "";
}

const amountOf = (operation: Operation): string =>
  operation.amountMinor === 0n ? "" : formatMoney(money(operation.amountMinor, operation.currency));

/** The fields that the contract names, in its words. */
export function operationJson(operation: Operation): Record<string, unknown> {
  return {
    id: operation.id,
    key: operation.key,
    kind: operation.kind,
    status: operation.status,
    customer: operation.customerRef,
    order: operation.orderRef,
    subscription: operation.subscriptionRef,
    amount: operation.amountMinor,
    currency: operation.currency,
    occurrence: operation.occurrence,
    fingerprint: operation.fingerprint,
    idempotencyKey: operation.idempotencyKey,
    attempts: operation.attempts,
    approvalId: operation.approvalId,
    approvedBy: operation.approvedBy,
    filers: operation.filers,
    runId: operation.ownerRunId,
    ticketId: operation.ticketId,
    providerRef: operation.providerRef,
    quarantineReason: operation.quarantineReason,
    result: operation.result,
    createdAt: operation.createdAt,
    updatedAt: operation.updatedAt,
  };
}
