/** Arms the failpoints of COUNTERSIGN_FAILPOINTS: places where a crash test kills, breaks or delays this process. */
import { setTimeout as pause } from "node:timers/promises";
import { armFailpoint, type FailpointSpec, parseFailpoints } from "../domain/failpoints.js";
import type { Logger } from "../domain/ports/logger.js";

/** Empty text arms nothing. @throws when the text names no failpoint */
export function armFromEnvironment(text: string, log: Logger): void {
  if (text === "") return;
  const parsed = parseFailpoints(text);
  if (!parsed.ok) throw new Error(`COUNTERSIGN_FAILPOINTS: ${parsed.problem}`);
  for (const spec of parsed.specs) {
    log.warn(
      { failpoint: spec.name, action: spec.action },
      "a failpoint is armed: this process is under test",
    );
    armFailpoint(spec.name, () => act(spec), { atPass: spec.atPass });
  }
}

async function act(spec: FailpointSpec): Promise<void> {
  switch (spec.action) {
    case "kill":
      process.kill(process.pid, "SIGKILL");
      // The signal ends the process before this returns.
      await pause(60_000);
      return;
    case "throw":
      throw new Error(`failpoint ${spec.name}`);
    case "wait":
      await pause(spec.waitMs);
      return;
  }
}
