/** Events at an even pace, each timed from when it is sent until it is acknowledged. */
import { setTimeout as pause } from "node:timers/promises";
import { type Spread, spreadOf } from "../shared/spread.js";

export interface AckLoad {
  readonly perSecond: number;
  readonly seconds: number;
}

export interface AckPorts {
  /** Sends the nth event; resolves when it is acknowledged (true) or given up. */
  send(n: number): Promise<boolean>;
  /** How many of the events are recorded as tickets. */
  recorded(): Promise<number>;
}

export interface AckReport {
  readonly sent: number;
  readonly acknowledged: number;
  /** Events whose moment had passed by more than one interval when they were sent: the sender itself was late. */
  readonly sentLate: number;
  readonly spread: Spread;
  readonly recorded: number;
  /** From the last acknowledgement until the last ticket was there. */
  readonly recordedAfterMs: number;
  readonly wrong: readonly string[];
}

/** Slack's patience, and our goal (p99). */
const PATIENCE_MS = 3_000;
const GOAL_P99_MS = 500;
const RECORDED_WITHIN_MS = 120_000;
const LOOK_EVERY_MS = 100;

export async function measureAcks(ports: AckPorts, load: AckLoad): Promise<AckReport> {
  const total = Math.round(load.perSecond * load.seconds);
  const everyMs = 1_000 / load.perSecond;
  const began = performance.now();
  const answers: Promise<{ acked: boolean; ms: number }>[] = [];
  let sentLate = 0;
  for (let n = 0; n < total; n += 1) {
    const waitMs = began + n * everyMs - performance.now();
    if (waitMs > 0) await pause(waitMs);
    else if (waitMs < -everyMs) sentLate += 1;
    const sentAt = performance.now();
    answers.push(ports.send(n).then((acked) => ({ acked, ms: performance.now() - sentAt })));
  }
  const done = await Promise.all(answers);
  const acknowledged = done.filter(({ acked }) => acked).length;
  const lastAckAt = performance.now();
  let recorded = await ports.recorded();
  while (recorded < total && performance.now() - lastAckAt < RECORDED_WITHIN_MS) {
    await pause(LOOK_EVERY_MS);
    recorded = await ports.recorded();
  }
  const spread = spreadOf(done.map(({ ms }) => ms));
  return {
    sent: total,
    acknowledged,
    sentLate,
    spread,
    recorded,
    recordedAfterMs: performance.now() - lastAckAt,
    wrong: [
      ...(acknowledged === total ? [] : [`${total - acknowledged} events were not acknowledged`]),
      ...(spread.max < PATIENCE_MS ? [] : [`the slowest took ${spread.max.toFixed(0)} ms, over Slack's 3 s`]),
      ...(spread.p99 < GOAL_P99_MS ? [] : [`p99 is ${spread.p99.toFixed(0)} ms, over ${GOAL_P99_MS} ms`]),
      ...(recorded === total ? [] : [`${recorded} of ${total} events became tickets`]),
    ],
  };
}
