/** Runs: one agent job for one ticket. States and their order (DESIGN §8). */
export const RUN_STATES = [
  "queued",
  "running",
  "awaiting_binding",
  "awaiting_approval",
  "waiting",
  "resolved",
  "escalated",
  "budget_exhausted",
  "failed",
  "cancelled",
] as const;
export type RunState = (typeof RUN_STATES)[number];

export const RUN_ENDS = ["resolved", "escalated", "budget_exhausted", "failed", "cancelled"] as const;
export type RunEnd = (typeof RUN_ENDS)[number];

/** True for the named ends. */
export const isRunEnd = (state: RunState): state is RunEnd => (RUN_ENDS as readonly string[]).includes(state);

export const RUN_TRANSITIONS = {
  queued: ["running", "awaiting_binding", "failed", "cancelled"],
  running: ["queued", "awaiting_binding", "awaiting_approval", "waiting", ...RUN_ENDS],
  awaiting_binding: ["queued", "running", "escalated", "failed", "cancelled"],
  awaiting_approval: ["queued", "running", "waiting", "escalated", "failed", "cancelled"],
  waiting: ["queued", "running", "awaiting_approval", "escalated", "failed", "cancelled"],
  resolved: [],
  escalated: [],
  budget_exhausted: [],
  failed: [],
  cancelled: [],
} as const satisfies Record<RunState, readonly RunState[]>;

/** States from which a run may come to `to`, the state itself included where it is no end (looking again changes nothing). */
export function runStatesBefore(to: RunState): readonly RunState[] {
  return RUN_STATES.filter(
    (from) => (RUN_TRANSITIONS[from] as readonly RunState[]).includes(to) || (from === to && !isRunEnd(to)),
  );
}

/** How the ticket is tied to a customer. Identity is never the model's. */
export type Binding = "none" | "unconfirmed" | "confirmed";

/** Phases of a turn: one model call and its consequences. */
export const TURN_STATES = ["recorded", "held", "released", "resolved", "final"] as const;
export type TurnState = (typeof TURN_STATES)[number];

/** A tool call of a turn. */
export const CALL_STATES = ["proposed", "held", "ready", "waiting", "done"] as const;
export type CallState = (typeof CALL_STATES)[number];
