import { afterEach, describe, expect, it } from "vitest";
import { type Schedules, startSchedules } from "../../src/jobs/index.js";
import { deferred, waitFor } from "../support/wait.js";

const started: Schedules[] = [];
afterEach(async () => {
  await Promise.all(started.splice(0).map((schedules) => schedules.stop()));
});

const start = (pass: () => Promise<void>, name = "sweep") => {
  const warnings: object[] = [];
  const told: object[] = [];
  const quiet = () => {};
  const schedules = startSchedules([{ name, everyMs: 5, pass }], {
    log: {
      debug: quiet,
      info: (fields) => void told.push(fields),
      warn: (fields) => void warnings.push(fields),
      error: quiet,
    },
    random: () => 0.5,
  });
  started.push(schedules);
  return { schedules, warnings, told };
};

describe("a schedule", () => {
  it("goes on after a pass that failed, and names itself in the log", async () => {
    let passes = 0;
    const { warnings } = start(async () => {
      passes += 1;
      if (passes === 1) throw new Error("planted");
    });
    await waitFor(() => passes >= 4);
    expect(warnings).toEqual([expect.objectContaining({ schedule: "sweep" })]);
  });

  it("that fails for long says so ever more seldom, and once that it works again", async () => {
    let passes = 0;
    const { warnings, told } = start(async () => {
      passes += 1;
      if (passes <= 20) throw new Error("planted");
    });
    await waitFor(() => passes >= 22);
    expect(warnings.map((fields) => (fields as { failures: number }).failures)).toEqual([1, 2, 4, 8, 16]);
    expect(told).toEqual([{ schedule: "sweep", failures: 20 }]);
  });

  it("a slow pass is never overtaken by the next one", async () => {
    let running = 0;
    let most = 0;
    let passes = 0;
    const turns = Array.from({ length: 3 }, () => deferred<void>());
    start(async () => {
      running += 1;
      most = Math.max(most, running);
      passes += 1;
      await turns[passes - 1]?.promise;
      running -= 1;
    });
    for (const [index, turn] of turns.entries()) {
      await waitFor(() => passes === index + 1);
      turn.resolve();
    }
    await waitFor(() => passes > 3);
    expect(most).toBe(1);
  });

  it("stop waits for the pass under way and starts none after it", async () => {
    const gate = deferred<void>();
    let passes = 0;
    const { schedules } = start(async () => {
      passes += 1;
      await gate.promise;
    });
    await waitFor(() => passes === 1);
    let stopped = false;
    const stopping = schedules.stop().then(() => {
      stopped = true;
    });
    await new Promise((done) => setImmediate(done));
    expect(stopped).toBe(false);
    gate.resolve();
    await stopping;
    expect(passes).toBe(1);
  });
});
