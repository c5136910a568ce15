/**
 * Named places where a test may kill, delay or break the program ("die exactly here" is one line of a test).
 *
 * 1. Not armed, a failpoint does nothing and costs one map lookup.
 * 2. Every name stands in the catalogue below; a crash test runs through all of them and fails if one never fired.
 * 3. This file does nothing by itself: what an armed failpoint does is handed in by whoever arms it.
 */

export const FAILPOINTS = [
  // agent: one run, phase by phase
  "agent.after_lease",
  "agent.before_model_call",
  "agent.after_model_reply",
  "agent.after_turn_recorded",
  "agent.after_turn_prepared",
  "agent.after_turn_held",
  "agent.after_turn_released",
  "agent.before_tool",
  "agent.after_tool_ran",
  "agent.after_call_finished",
  "agent.after_turn_resolved",
  "agent.before_run_end",
  "agent.after_run_ended",
  // approvals: the last vote of a turn is a row, and nothing is prepared; or the turn is released with it, and not committed
  "approvals.after_turn_decided",
  // tickets
  "runs.after_ticket_filed",
  // Slack: what arrives is stored, then acknowledged, then worked off; what leaves is a row before and after
  "slack.after_stored",
  "slack.after_ack",
  "slack.after_handled",
  "slack.before_write",
  "slack.after_write",
  // dispatch: claim, send, settle
  "dispatch.before_claim",
  "dispatch.after_claim",
  "dispatch.before_send",
  "dispatch.after_send",
  "dispatch.after_settle",
  "dispatch.after_local",
  "dispatch.after_webhook_stored",
  "dispatch.before_webhook_judged",
  // ops: a switch has turned, and no card says so yet
  "ops.after_switch_turned",
  // reconcile
  "reconcile.after_take",
  "reconcile.after_probe",
  "reconcile.after_resend_claimed",
  "reconcile.after_settle",
] as const;
export type FailpointName = (typeof FAILPOINTS)[number];

/** What an armed failpoint does when it is reached; throwing breaks the caller there. */
export type FailpointAction = (name: FailpointName) => void | Promise<void>;

interface Armed {
  action: FailpointAction;
  /** Fires at this pass and not before; 1 is the first. */
  atPass: number;
  passes: number;
}

const armed = new Map<FailpointName, Armed>();

/** Narrows text to a name of the catalogue. */
export const isFailpointName = (text: string): text is FailpointName =>
  (FAILPOINTS as readonly string[]).includes(text);

/** A place that may be armed. Resolves at once unless it is. */
export async function failpoint(name: FailpointName): Promise<void> {
  const here = armed.get(name);
  if (here === undefined) return;
  here.passes += 1;
  if (here.passes === here.atPass) await here.action(name);
}

/** Arms one failpoint; the function returned takes it off again. */
export function armFailpoint(
  name: FailpointName,
  action: FailpointAction,
  options: { atPass?: number } = {},
): () => void {
  const entry: Armed = { action, atPass: options.atPass ?? 1, passes: 0 };
  armed.set(name, entry);
  return () => {
    if (armed.get(name) === entry) armed.delete(name);
  };
}

/** Takes every failpoint off. */
export function disarmFailpoints(): void {
  armed.clear();
}

export interface FailpointSpec {
  name: FailpointName;
  action: "kill" | "throw" | "wait";
  /** For `wait`: how long, in milliseconds. */
  waitMs: number;
  atPass: number;
}

export type FailpointSpecs = { ok: true; specs: FailpointSpec[] } | { ok: false; problem: string };

const SPEC = /^([a-z_]+\.[a-z_]+)=(kill|throw|wait:(\d{1,7}))(?:@(\d{1,6}))?$/;

/** Reads `name=kill`, `name=throw`, `name=wait:500`, each with `@n` for the n-th pass; several separated by commas. */
export function parseFailpoints(text: string): FailpointSpecs {
  const specs: FailpointSpec[] = [];
  for (const part of text.split(",").map((piece) => piece.trim())) {
    if (part === "") continue;
    const match = SPEC.exec(part);
    const name = match?.[1];
    if (match === null || name === undefined) {
      return {
        ok: false,
        problem: `"${part}" is not name=kill, name=throw or name=wait:MS, with @N for a pass`,
      };
    }
    if (!isFailpointName(name)) return { ok: false, problem: `there is no failpoint "${name}"` };
    const action = match[2]?.startsWith("wait") === true ? "wait" : match[2] === "kill" ? "kill" : "throw";
    specs.push({ name, action, waitMs: Number(match[3] ?? 0), atPass: Number(match[4] ?? 1) });
  }
  return { ok: true, specs };
}
