/** Where the worker dies in an episode, once; another one, with nothing of its memory, carries on. */
import type { FailpointName } from "../../domain/failpoints.js";

export const CRASH_POINTS = [
  "none",
  "prepare.before_commit",
  "prepare.after_commit",
  "dispatch.before_claim",
  "dispatch.after_claim",
  "dispatch.before_send",
  "dispatch.after_send",
  "dispatch.after_settle",
  "reconcile.after_take",
  "reconcile.after_probe",
  "reconcile.after_resend_claimed",
  "reconcile.after_settle",
] as const;
export type CrashPoint = (typeof CRASH_POINTS)[number];

/**
 * What the crash takes with it. `kept`: nothing that matters. `unsent`: that nothing was sent yet. `unsaid`: the answer, which
 * nobody wrote down. `looking`: a reconciler's work, which the next one repeats.
 */
export type Loss = "kept" | "unsent" | "unsaid" | "looking";

const LOSSES: Readonly<Record<CrashPoint, Loss>> = {
  none: "kept",
  "prepare.before_commit": "kept",
  "prepare.after_commit": "kept",
  "dispatch.before_claim": "kept",
  "dispatch.after_claim": "unsent",
  "dispatch.before_send": "unsent",
  "dispatch.after_send": "unsaid",
  "dispatch.after_settle": "kept",
  "reconcile.after_take": "looking",
  "reconcile.after_probe": "looking",
  "reconcile.after_resend_claimed": "looking",
  "reconcile.after_settle": "looking",
};

export const lossOf = (point: CrashPoint): Loss => LOSSES[point];

/** The failpoint of the product's own code, where the crash point is one. */
export function failpointOf(point: CrashPoint): FailpointName | null {
  switch (point) {
    case "none":
    case "prepare.before_commit":
    case "prepare.after_commit":
      return null;
    default:
      return point;
  }
}
