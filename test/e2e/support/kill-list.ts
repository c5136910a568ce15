/** Where the process is killed: a share in every run of the tests, all the rest in `npm run test:kills`. */
import { FAILPOINTS, type FailpointName } from "../../../src/domain/failpoints.js";

export interface Kill {
  name: FailpointName;
  pass: number;
}

/** Around the money: each on another side of a commit or of the socket. */
export const KILLED_IN_EVERY_RUN: readonly Kill[] = [
  { name: "agent.after_turn_released", pass: 1 },
  { name: "dispatch.after_claim", pass: 1 },
  { name: "dispatch.after_send", pass: 1 },
  { name: "reconcile.after_resend_claimed", pass: 1 },
];

/** Places that are passed for the read and again for the write: the second pass is the one that money hangs on. */
const AGAIN: readonly Kill[] = [
  { name: "agent.after_model_reply", pass: 2 },
  { name: "agent.after_turn_recorded", pass: 2 },
  { name: "agent.after_tool_ran", pass: 2 },
  { name: "agent.after_call_finished", pass: 2 },
  { name: "agent.after_turn_resolved", pass: 2 },
  { name: "dispatch.before_webhook_judged", pass: 2 },
];

/** Places that no ticket passes: a test of their own dies there in every run. */
export const KILLED_BY_THEIR_OWN_TEST = [
  "ops.after_switch_turned",
] as const satisfies readonly FailpointName[];
const HAS_ITS_OWN_TEST: ReadonlySet<FailpointName> = new Set(KILLED_BY_THEIR_OWN_TEST);

export const KILLED_ON_DEMAND: readonly Kill[] = [
  ...FAILPOINTS.filter(
    (name) => !HAS_ITS_OWN_TEST.has(name) && !KILLED_IN_EVERY_RUN.some((kill) => kill.name === name),
  ).map((name) => ({ name, pass: 1 })),
  ...AGAIN,
];
