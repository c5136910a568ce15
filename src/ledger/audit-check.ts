/** What must recompute about one operation: its events, their chain, and the row that they made. Pure. */
import { type Canonical, canonicalJson, sha256Hex } from "../domain/canonical.js";
import { holdingOf } from "../domain/holding.js";
import { identityProblems } from "../domain/identity.js";
import type { OperationId } from "../domain/ids.js";
import type { Json, JsonObject } from "../domain/json.js";
import { next, OPERATION_EVENTS, type Operation, type OperationEventType } from "../domain/operation.js";
import { isStatus } from "./rows.js";
import type { BrokenLink } from "./types.js";

export interface AuditedEvent {
  readonly id: bigint;
  readonly seq: number;
  /** UTC with microseconds, as the database gives it back. */
  readonly at: string;
  readonly type: string;
  readonly from: string | null;
  readonly to: string | null;
  readonly actor: string;
  readonly attempt: number | null;
  readonly body: string;
  readonly prevHash: string;
  readonly hash: string;
}

export interface AuditedOperation {
  readonly operation: Operation;
  readonly eventCount: number;
  readonly headHash: string;
  /** Minor units that it says to hold of its payment. */
  readonly reservedMinor: bigint;
  /** UTC with microseconds; null: never claimed. */
  readonly firstClaimedAt: string | null;
  /** By the log in force when the policy last answered about it; null: the log did not tell of policies then. */
  readonly policyTold: string | null;
  /** The event that told of that policy; null: none did. */
  readonly policyEvent: { readonly body: string; readonly seq: number } | null;
  /** The log tells of a policy anywhere. */
  readonly policiesTold: boolean;
  /** That the policy allowed it by itself; null: people were asked, or it is older than seals. */
  readonly seal: string | null;
  readonly events: readonly AuditedEvent[];
}

/** Everything that does not hold, in the order of the events; the row last. */
export function checkOperation(audited: AuditedOperation): BrokenLink[] {
  const { operation, events } = audited;
  const broken: BrokenLink[] = [];
  let previous: AuditedEvent | null = null;
  for (const event of events) {
    for (const problem of eventProblems(operation.id, event, previous)) {
      broken.push({
        what: "event",
        where: String(event.id),
        operationId: operation.id,
        seq: event.seq,
        problem,
      });
    }
    previous = event;
  }
  for (const problem of rowProblems(audited, previous)) {
    broken.push({ what: "operation", where: operation.id, operationId: operation.id, seq: null, problem });
  }
  return broken;
}

/** An event as every chain has it. */
export interface ChainedEvent {
  readonly id: bigint;
  readonly seq: number;
  readonly body: string;
  readonly prevHash: string;
  readonly hash: string;
  /** Columns that repeat parts of the content. */
  readonly columns: JsonObject;
}

export const NOT_CANONICAL = "its content is not canonical JSON";

/** What does not hold of an event as a link of its chain. */
export function chainProblems(
  event: ChainedEvent,
  previous: Pick<ChainedEvent, "seq" | "hash"> | null,
): string[] {
  const problems: string[] = [];
  const expectedSeq = (previous?.seq ?? 0) + 1;
  if (event.seq !== expectedSeq) problems.push(`event ${expectedSeq} is missing`);
  if (event.prevHash !== (previous?.hash ?? "")) problems.push("it does not follow its predecessor");
  if (sha256Hex(`${event.prevHash}\n${event.body}`) !== event.hash) {
    problems.push("its hash does not recompute from its content");
  }
  const body = parseBody(event.body);
  if (body === null) return [...problems, NOT_CANONICAL];
  for (const [name, value] of Object.entries(event.columns)) {
    if (body[name] !== value) problems.push(`its column ${name} differs from its content`);
  }
  return problems;
}

function eventProblems(id: OperationId, event: AuditedEvent, previous: AuditedEvent | null): string[] {
  const problems = chainProblems(
    {
      ...event,
      columns: {
        actor: event.actor,
        at: event.at,
        attempt: event.attempt,
        from: event.from,
        operation: id,
        seq: event.seq,
        to: event.to,
        type: event.type,
      },
    },
    previous,
  );
  if (event.from !== (previous?.to ?? null))
    problems.push("it begins in a state that its predecessor did not reach");
  if (!legal(event)) problems.push(`${event.type} does not lead from ${event.from} to ${event.to}`);
  return problems;
}

/** The content of an event; null unless it is canonical JSON of an object. */
export function parseBody(text: string): JsonObject | null {
  try {
    const value = JSON.parse(text) as Json;
    const isObject = value !== null && typeof value === "object" && !Array.isArray(value);
    return isObject && canonicalJson(value as Canonical) === text ? value : null;
  } catch {
    return null;
  }
}

const isTransition = (type: string): type is OperationEventType =>
  (OPERATION_EVENTS as readonly string[]).includes(type);

function legal({ from, to, type }: AuditedEvent): boolean {
  if (from === null) return to === "PREPARED" || to === "AWAITING_APPROVAL";
  if (!isStatus(from)) return false;
  if (!isTransition(type)) return from === to;
  const step = next(from, type);
  return step.legal && step.to === to;
}

function rowProblems(audited: AuditedOperation, last: AuditedEvent | null): string[] {
  const { operation } = audited;
  if (last === null) return ["it has no event"];
  const problems: string[] = [];
  if (audited.eventCount !== last.seq)
    problems.push(`it counts ${audited.eventCount} events, ${last.seq} are there`);
  if (audited.headHash !== last.hash) problems.push("its head is not the hash of its last event");
  if (operation.status !== last.to)
    problems.push(`its status ${operation.status} is not what its events say`);
  problems.push(...identityProblems(operation));
  const stated = dataOf(audited.events[0]);
  for (const [name, value] of Object.entries(materialOf(operation))) {
    if (stated[name] !== value) problems.push(`its ${name} differs from its first event`);
  }
  return [...problems, ...courseProblems(audited, last)];
}

/** What the row says of its own course, beside what its events say. */
function courseProblems(audited: AuditedOperation, last: AuditedEvent): string[] {
  const { operation, events } = audited;
  const problems: string[] = [];
  const holds = holdingOf(operation.status) === "reserved" ? operation.amountMinor : 0n;
  if (audited.reservedMinor !== holds) {
    problems.push(`it says to hold ${audited.reservedMinor}, ${holds} would be right in its state`);
  }
  const sends = events.filter(({ type }) => type === "claim" || type === "resend");
  if (operation.attempts !== sends.length) {
    problems.push(`it counts ${operation.attempts} attempts, its events tell of ${sends.length}`);
  }
  if (audited.firstClaimedAt !== (sends[0]?.at ?? null)) {
    problems.push("the life of its key does not begin when it was first claimed");
  }
  if (parseBody(last.body)?.["token"] !== Number(operation.leaseToken)) {
    problems.push("its lease token is not that of its last event");
  }
  const confirmed = events.findLast(({ to, type }) => to === "CONFIRMED" && isTransition(type));
  const named =
    confirmed === undefined ? null : namedReference(dataOf(confirmed), operation.providerRef ?? "");
  if (named === false) problems.push("its provider reference is not the one that confirmed it");
  const released = events.findLast(({ type }) => type === "release");
  if (released !== undefined && (dataOf(released)["approval"] ?? null) !== operation.approvalId) {
    problems.push("its approval is not the one that released it");
  }
  if (released === undefined && (operation.approvalId !== null || operation.approvedBy.length > 0)) {
    problems.push("it names an approval, and none released it");
  }
  const decided = decidedBy(events);
  const { policyHash } = dataOf(decided);
  if (audited.policyTold !== null && typeof policyHash === "string" && policyHash !== audited.policyTold) {
    problems.push("it was decided under a policy that was not in force");
  }
  const restsUntil = operation.status === "PREPARED" && sends.length === 0 ? coolingOffEnd(decided) : null;
  if (restsUntil !== null && (operation.notBefore?.getTime() ?? 0) < restsUntil) {
    problems.push("it may be sent before its cooling-off is over");
  }
  return problems;
}

/** The event of the policy's last answer: when it was proposed, or released by people. */
export const decidedBy = (events: readonly AuditedEvent[]): AuditedEvent | undefined =>
  events.findLast(({ type }) => type === "prepare" || type === "hold" || type === "release");

const MINUTE_MS = 60_000;

/** Before this moment, in milliseconds since 1970, nothing of it may be claimed; null: at any time. Times are cut to milliseconds. */
export function coolingOffEnd(decided: AuditedEvent | undefined): number | null {
  const minutes = dataOf(decided)["notBeforeMinutes"];
  if (decided === undefined || typeof minutes !== "number") return null;
  return Math.floor(Date.parse(decided.at) + minutes * MINUTE_MS) - 1;
}

/** Whether the confirming event names this reference; null: it names none in a form that can be compared. */
function namedReference(data: JsonObject, ref: string): boolean | null {
  if (typeof data["refHash"] === "string") return data["refHash"] === sha256Hex(ref);
  const said = [
    member(member(data["move"], "effect"), "ref"),
    member(member(data["evidence"], "effect"), "ref"),
    member(data["evidence"], "ref"),
  ].find((value) => typeof value === "string");
  return said === undefined ? null : said === ref;
}

const member = (of: Json | undefined, name: string): Json | undefined =>
  of !== null && typeof of === "object" && !Array.isArray(of) ? of[name] : undefined;

/** What an event says, canonical or not; empty where it is no JSON of an object: whoever reads a log for people shows the rest of it. */
export function contentOf(text: string): JsonObject {
  try {
    return objectOr(JSON.parse(text) as Json);
  } catch {
    return {};
  }
}

/** The value where it is an object, else an empty one. */
export const objectOr = (value: Json | undefined): JsonObject =>
  value !== null && typeof value === "object" && !Array.isArray(value) ? value : {};

/** The data of an event; empty where it has none that can be read. */
export const dataOf = (event: AuditedEvent | undefined): JsonObject =>
  event === undefined ? {} : dataIn(event.body);

/** The data of an event's content; empty where it has none that can be read. */
export function dataIn(body: string): JsonObject {
  return objectOr(parseBody(body)?.["data"]);
}

/** As `materialData` of the insert states it. */
const materialOf = (operation: Operation): JsonObject => ({
  key: operation.key,
  fingerprint: operation.fingerprint,
  kind: operation.kind,
  customer: operation.customerRef,
  order: operation.orderRef,
  subscription: operation.subscriptionRef,
  amount: Number(operation.amountMinor),
  currency: operation.currency,
  occurrence: operation.occurrence,
  paymentIntent: operation.paymentIntent,
  contract: operation.contractVersion,
});
