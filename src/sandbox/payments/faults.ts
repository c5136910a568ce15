/**
 * Faults as switches: armed by tests or on the page, each with a number of times, a match and a
 * counter of how often it really fired.
 *
 * 1. A fault counts as fired only when it took effect: a lost answer counts only if something was committed.
 * 2. A request meets at most one fault of each stage, the one armed first; a reserved turn that did not
 *    take effect goes back.
 */
import { z } from "zod";
import { FAILURE_REASONS, PENDING_REASONS, REFUND_STATUSES } from "./records.js";

const delayMs = z.int().min(0).max(3_600_000);
const close = z.enum(["reset", "close"]).default("reset");

const matchSchema = z.strictObject({
  method: z.enum(["GET", "POST", "DELETE"]).optional(),
  /** Exact path, or a prefix that ends in `*`. */
  path: z.string().optional(),
  paymentIntent: z.string().optional(),
  operationId: z.string().optional(),
  idempotencyKey: z.string().optional(),
});

const common = {
  /** How often it fires; null: until disarmed. */
  times: z.int().positive().nullable().default(1),
  match: matchSchema.default({}),
};

export const faultSpecSchema = z.discriminatedUnion("kind", [
  /** The connection breaks before anything happens. */
  z.strictObject({ kind: z.literal("drop_before_commit"), close, ...common }),
  /** Nothing for a while, then commit and answer. */
  z.strictObject({ kind: z.literal("hang_then_commit"), delayMs, ...common }),
  /** The commit happens later than the answer: `answer` is what the caller meets now. */
  z.strictObject({
    kind: z.literal("late_commit"),
    delayMs,
    answer: z.enum(["drop", "500", "409", "hang"]).default("drop"),
    ...common,
  }),
  /** The transport delivers the request again by itself. */
  z.strictObject({
    kind: z.literal("redeliver"),
    copies: z.int().min(1).max(10).default(1),
    answer: z.enum(["first", "last"]).default("first"),
    ...common,
  }),
  z.strictObject({
    kind: z.literal("commit_then_drop"),
    close,
    onReplay: z.boolean().default(false),
    ...common,
  }),
  z.strictObject({ kind: z.literal("commit_then_500"), ...common }),
  /** Headers and half a body, then silence on an open connection. */
  z.strictObject({ kind: z.literal("commit_then_stall"), onReplay: z.boolean().default(false), ...common }),
  /** Headers and half a body, then the connection breaks. */
  z.strictObject({
    kind: z.literal("commit_then_cut"),
    close,
    onReplay: z.boolean().default(false),
    ...common,
  }),
  z.strictObject({
    kind: z.literal("commit_then_hang"),
    delayMs,
    onReplay: z.boolean().default(false),
    ...common,
  }),
  /** The answer is no JSON. */
  z.strictObject({
    kind: z.literal("commit_then_garbage"),
    status: z.int().min(200).max(599).default(200),
    onReplay: z.boolean().default(false),
    ...common,
  }),
  z.strictObject({
    kind: z.literal("rate_limited"),
    code: z.enum(["lock_timeout", "rate_limit"]).default("lock_timeout"),
    retryAfterSeconds: z.int().min(0).optional(),
    ...common,
  }),
  z.strictObject({ kind: z.literal("key_in_use"), ...common }),
  z.strictObject({
    kind: z.literal("refuse"),
    code: z.string().nullable(),
    status: z.int().min(400).max(599).default(400),
    type: z
      .enum(["api_error", "card_error", "idempotency_error", "invalid_request_error"])
      .default("invalid_request_error"),
    message: z.string().default("The provider refuses this request."),
    /** Keep the refusal under the idempotency key, as Stripe does once execution began. */
    store: z.boolean().default(true),
    ...common,
  }),
  z.strictObject({ kind: z.literal("idempotency_error"), ...common }),
  /** The key is forgotten just before the request is looked at, as if it had expired. */
  z.strictObject({ kind: z.literal("forget_key"), ...common }),
  /** What becomes of the refund: pending, requires_action, failed …; optionally something else later. */
  z.strictObject({
    kind: z.literal("outcome"),
    status: z.enum(REFUND_STATUSES),
    pendingReason: z.enum(PENDING_REASONS).default("processing"),
    failureReason: z.enum(FAILURE_REASONS).default("unknown"),
    later: z.strictObject({ status: z.enum(REFUND_STATUSES), afterMs: delayMs }).optional(),
    ...common,
  }),
  /** Amount, currency or payment come out wrong: really (`persist`, the default) or only in the answer. */
  z.strictObject({
    kind: z.literal("wrong_answer"),
    amount: z.int().positive().optional(),
    currency: z
      .string()
      .regex(/^[a-z]{3}$/)
      .optional(),
    paymentIntent: z.string().optional(),
    persist: z.boolean().default(true),
    ...common,
  }),
  /** Lists and reads do not yet know refunds younger than `lagMs`. */
  z.strictObject({
    kind: z.literal("stale_read"),
    lagMs: delayMs,
    ...common,
    times: common.times.default(null),
  }),
  /** Reads lie: committed refunds are hidden, or one is shown that never happened. */
  z.strictObject({
    kind: z.literal("lying_read"),
    lie: z.enum(["hide", "invent"]),
    ...common,
    times: common.times.default(null),
  }),
  z.strictObject({
    kind: z.literal("read_down"),
    how: z.enum(["500", "drop", "hang", "429", "garbage"]).default("500"),
    ...common,
    times: common.times.default(null),
  }),
]);

/** A fault as it is armed, defaults filled in. */
export type Fault = z.output<typeof faultSpecSchema>;
/** A fault as a caller writes it. */
export type FaultSpec = z.input<typeof faultSpecSchema>;
export type FaultKind = Fault["kind"];

const STAGES = {
  drop_before_commit: "arrival",
  rate_limited: "arrival",
  key_in_use: "arrival",
  refuse: "arrival",
  idempotency_error: "arrival",
  read_down: "arrival",
  forget_key: "key",
  hang_then_commit: "timing",
  late_commit: "timing",
  redeliver: "timing",
  outcome: "effect",
  wrong_answer: "effect",
  commit_then_drop: "answer",
  commit_then_500: "answer",
  commit_then_stall: "answer",
  commit_then_cut: "answer",
  commit_then_hang: "answer",
  commit_then_garbage: "answer",
  stale_read: "read",
  lying_read: "read",
} as const satisfies Record<FaultKind, string>;

type StageOf<K extends FaultKind> = (typeof STAGES)[K];
type Stage = StageOf<FaultKind>;
type FaultAt<S extends Stage> = Extract<
  Fault,
  { kind: { [K in FaultKind]: StageOf<K> extends S ? K : never }[FaultKind] }
>;

const READ_KINDS: ReadonlySet<FaultKind> = new Set(["stale_read", "lying_read", "read_down"]);

/** What a fault is matched against. */
export interface FaultTarget {
  method: string;
  path: string;
  paymentIntent: string | null;
  operationId: string | null;
  idempotencyKey: string | null;
}

/** A fault that one request has met. `fired()` is called where it takes effect. */
export interface Meeting<F extends Fault = Fault> {
  fault: F;
  fired(): void;
}

export interface Meetings {
  arrival: Meeting<FaultAt<"arrival">> | null;
  key: Meeting<FaultAt<"key">> | null;
  timing: Meeting<FaultAt<"timing">> | null;
  effect: Meeting<FaultAt<"effect">> | null;
  answer: Meeting<FaultAt<"answer">> | null;
  read: Meeting<FaultAt<"read">> | null;
  /** Gives back what did not take effect. Called once, when the request is over. */
  release(): void;
}

export interface FaultStatus {
  id: string;
  fault: Fault;
  fired: number;
  /** Null: without end. */
  remaining: number | null;
  armed: boolean;
}

interface Armed {
  id: string;
  fault: Fault;
  fired: number;
  reserved: number;
  armed: boolean;
}

export interface FaultRegistry {
  /** @throws ZodError for a spec that is none */
  arm(spec: FaultSpec): string;
  /** False when there is no such fault. Its counter stays readable. */
  disarm(id: string): boolean;
  disarmAll(): void;
  status(id: string): FaultStatus | null;
  list(): FaultStatus[];
  meet(target: FaultTarget): Meetings;
}

export function createFaultRegistry(): FaultRegistry {
  const all: Armed[] = [];
  /** Those that may still fire: long runs arm thousands, and each request looks at these only. */
  let active: Armed[] = [];
  let lastId = 0;

  const view = (entry: Armed): FaultStatus => ({
    id: entry.id,
    fault: entry.fault,
    fired: entry.fired,
    remaining: entry.fault.times === null ? null : entry.fault.times - entry.fired,
    armed: entry.armed && (entry.fault.times === null || entry.fired < entry.fault.times),
  });

  return {
    arm(spec) {
      lastId += 1;
      const id = `flt_${lastId}`;
      const entry = { id, fault: faultSpecSchema.parse(spec), fired: 0, reserved: 0, armed: true };
      all.push(entry);
      active.push(entry);
      return id;
    },
    disarm(id) {
      const entry = all.find((candidate) => candidate.id === id);
      if (entry === undefined) return false;
      entry.armed = false;
      return true;
    },
    disarmAll() {
      for (const entry of all) entry.armed = false;
    },
    status(id) {
      const entry = all.find((candidate) => candidate.id === id);
      return entry === undefined ? null : view(entry);
    },
    list: () => all.map(view),
    meet(target) {
      active = active.filter((entry) => view(entry).armed);
      const taken: { entry: Armed; done: boolean }[] = [];
      function take<S extends Stage>(stage: S): Meeting<FaultAt<S>> | null {
        const entry = active.find(
          (candidate) =>
            STAGES[candidate.fault.kind] === stage &&
            (candidate.fault.times === null ||
              candidate.fired + candidate.reserved < candidate.fault.times) &&
            matches(candidate.fault, target),
        );
        if (entry === undefined) return null;
        entry.reserved += 1;
        const turn = { entry, done: false };
        taken.push(turn);
        return {
          fault: entry.fault as FaultAt<S>,
          fired: () => {
            if (turn.done) return;
            turn.done = true;
            entry.reserved -= 1;
            entry.fired += 1;
          },
        };
      }
      return {
        arrival: take("arrival"),
        key: take("key"),
        timing: take("timing"),
        effect: take("effect"),
        answer: take("answer"),
        read: take("read"),
        release: () => {
          for (const turn of taken) {
            if (turn.done) continue;
            turn.done = true;
            turn.entry.reserved -= 1;
          }
        },
      };
    },
  };
}

function matches(fault: Fault, target: FaultTarget): boolean {
  const { match } = fault;
  const isRead = target.method === "GET";
  if (match.method === undefined && READ_KINDS.has(fault.kind) !== isRead) return false;
  if (match.method !== undefined && match.method !== target.method) return false;
  if (match.path !== undefined && !matchesPath(match.path, target.path)) return false;
  if (match.paymentIntent !== undefined && match.paymentIntent !== target.paymentIntent) return false;
  if (match.operationId !== undefined && match.operationId !== target.operationId) return false;
  return match.idempotencyKey === undefined || match.idempotencyKey === target.idempotencyKey;
}

function matchesPath(pattern: string, path: string): boolean {
  return pattern.endsWith("*") ? path.startsWith(pattern.slice(0, -1)) : path === pattern;
}
