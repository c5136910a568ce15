/**
 * People who go on until the work is done, as people do when a program dies under their hands. A click that was acknowledged is the
 * program's to finish, whatever becomes of it: nobody presses again unless they are told to.
 */
import { setTimeout as pause } from "node:timers/promises";
import { buttonsOf, NOT_NOW, type Stage, type Thread } from "../../../src/app/demo/stage.js";

const LOOK_EVERY_MS = 50;
/** Somebody whose click was not taken presses again after this long. */
const PATIENCE_MS = 4_000;
const AT_MOST_MS = 150_000;

const APPROVER = "U_SUP1";

const isNotNow = (text: string): boolean => NOT_NOW.test(text);

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
  /** When a button may be pressed (again): never, once the click was acknowledged. */
  const notBefore = new Map<string, number>();
  let heard = 0;
  let deaths = 0;
  const until = performance.now() + AT_MOST_MS;
  while (performance.now() < until) {
    if (!stage.running) {
      deaths += 1;
      await stage.productEnded();
      await stage.start({ COUNTERSIGN_FAILPOINTS: "" });
    }
    if (await done()) return { deaths };
    const told = [thread.filer, APPROVER].flatMap((as) => stage.toldPrivately(as, thread)).filter(isNotNow);
    if (told.length > heard) notBefore.clear();
    heard = told.length;
    for (const message of stage.threadMessages(thread)) {
      for (const { text, value } of buttonsOf(message)) {
        const as = text.startsWith("Confirm")
          ? thread.filer
          : text.startsWith("Approve")
            ? APPROVER
            : undefined;
        const key = `${message.ts} ${text} ${value}`;
        if (as === undefined || performance.now() < (notBefore.get(key) ?? 0)) continue;
        const pressed = await stage.world.slack.control.click({
          as,
          at: { channel: message.channel, ts: message.ts },
          label: text,
        });
        // Refused, unanswered, not connected: the person sees it and tries again later.
        notBefore.set(key, pressed.ok ? Number.POSITIVE_INFINITY : performance.now() + PATIENCE_MS);
      }
    }
    await pause(LOOK_EVERY_MS);
  }
  throw new Error("the story never came to its end");
}
