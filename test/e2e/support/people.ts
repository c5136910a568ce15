/** People who go on clicking until the work is done, as people do when a program dies under their hands. */
import { setTimeout as pause } from "node:timers/promises";
import { buttonLabels, type Stage, type Thread } from "../../../src/app/demo/stage.js";

const LOOK_EVERY_MS = 50;
/** Somebody whose click led to nothing presses again after this long. */
const PATIENCE_MS = 4_000;
const AT_MOST_MS = 150_000;

export interface SeenThrough {
  /** How often the process ended under the story. */
  deaths: number;
}

/**
 * Confirms the customer and approves whatever asks for it; starts the product again, without failpoints, whenever it died; until
 * `done` says so. @throws when it never does
 */
export async function seeThrough(
  stage: Stage,
  thread: Thread,
  done: () => Promise<boolean>,
): Promise<SeenThrough> {
  const pressedAt = new Map<string, number>();
  let deaths = 0;
  const until = performance.now() + AT_MOST_MS;
  while (performance.now() < until) {
    if (!stage.running) {
      deaths += 1;
      await stage.productEnded();
      await stage.start({ COUNTERSIGN_FAILPOINTS: "" });
    }
    if (await done()) return { deaths };
    for (const message of stage.threadMessages(thread)) {
      for (const label of buttonLabels(message)) {
        const as = label.startsWith("Confirm")
          ? thread.filer
          : label.startsWith("Approve")
            ? "U_SUP1"
            : undefined;
        const key = `${message.ts} ${label}`;
        const now = performance.now();
        if (as === undefined || now - (pressedAt.get(key) ?? Number.NEGATIVE_INFINITY) < PATIENCE_MS)
          continue;
        pressedAt.set(key, now);
        // Refused, unanswered, not connected: the person sees it and tries again later.
        await stage.world.slack.control.click({
          as,
          at: { channel: message.channel, ts: message.ts },
          label,
        });
      }
    }
    await pause(LOOK_EVERY_MS);
  }
  throw new Error("the story never came to its end");
}
