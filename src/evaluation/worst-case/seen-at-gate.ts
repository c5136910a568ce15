/** The gate between a turn and its effects, with somebody beside it who counts what comes through. */
import type { TurnGate } from "../../agent/index.js";

export interface SeenAtGate {
  readonly gate: TurnGate;
  /** Writes that the policy was asked about; what only repeated an operation of before is not among them. */
  readonly judged: ReadonlySet<string>;
  readonly held: ReadonlySet<string>;
  readonly repeated: ReadonlySet<string>;
}

/** @param hostile runs whose writes count */
export function seenAtGate(gate: TurnGate, hostile: (runId: string) => boolean): SeenAtGate {
  const judged = new Set<string>();
  const held = new Set<string>();
  const repeated = new Set<string>();
  return {
    judged,
    held,
    repeated,
    gate: {
      ...gate,
      prepare: async (tx, turn) => {
        const answers = await gate.prepare(tx, turn);
        if (!hostile(turn.runId)) return answers;
        for (const { callId, outcome } of answers) {
          if (outcome === "same" || outcome === "denied_before" || outcome === "conflict")
            repeated.add(callId);
          else judged.add(callId);
          if (outcome === "held") held.add(callId);
        }
        return answers;
      },
    },
  };
}
