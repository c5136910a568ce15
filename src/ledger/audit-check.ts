/** What must recompute about one operation: its events, their chain, and the row that they made. Pure. */
import { type Canonical, canonicalJson, sha256Hex } from "../domain/canonical.js";
import { fingerprint, idempotencyKey, operationKey } from "../domain/identity.js";
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

function eventProblems(id: OperationId, event: AuditedEvent, previous: AuditedEvent | null): string[] {
  const problems: string[] = [];
  const expectedSeq = (previous?.seq ?? 0) + 1;
  if (event.seq !== expectedSeq) problems.push(`event ${expectedSeq} is missing`);
  if (event.prevHash !== (previous?.hash ?? "")) problems.push("it does not follow its predecessor");
  if (sha256Hex(`${event.prevHash}\n${event.body}`) !== event.hash) {
    problems.push("its hash does not recompute from its content");
  }
  const body = parse(event.body);
  if (body === null) return [...problems, "its content is not canonical JSON"];
  const columns: JsonObject = {
    actor: event.actor,
    at: event.at,
    attempt: event.attempt,
    from: event.from,
    operation: id,
    seq: event.seq,
    to: event.to,
    type: event.type,
  };
  for (const [name, value] of Object.entries(columns)) {
    if (body[name] !== value) problems.push(`its column ${name} differs from its content`);
  }
  if (event.from !== (previous?.to ?? null))
    problems.push("it begins in a state that its predecessor did not reach");
  if (!legal(event)) problems.push(`${event.type} does not lead from ${event.from} to ${event.to}`);
  return problems;
}

function parse(text: string): JsonObject | null {
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
  if (operationKey(operation) !== operation.key) problems.push("its key does not follow from its fields");
  if (fingerprint(operation, operation, operation.contractVersion) !== operation.fingerprint) {
    problems.push("its fingerprint does not recompute");
  }
  if (idempotencyKey(operation.id) !== operation.idempotencyKey) {
    problems.push("its idempotency key does not follow from its id");
  }
  const stated = parse(audited.events[0]?.body ?? "")?.["data"];
  for (const [name, value] of Object.entries(materialOf(operation))) {
    const said =
      stated !== null && typeof stated === "object" && !Array.isArray(stated) ? stated?.[name] : null;
    if (said !== value) problems.push(`its ${name} differs from its first event`);
  }
  return problems;
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
