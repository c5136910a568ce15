/** Ports of this machine. */
import { randomInt } from "node:crypto";
import { createServer } from "node:net";
import { CountersignError } from "../../domain/errors.js";

/** Below what systems give to outgoing connections (from 32768 on Linux, 49152 elsewhere): none of those takes it before it is used. */
const LOWEST = 20_000;
const HIGHEST = 32_000;
const TRIES = 100;

/** A port that nobody listens on now. Another process may take it before it is used; whoever binds it says so. */
export async function freePort(): Promise<number> {
  for (let tried = 0; tried < TRIES; tried += 1) {
    const port = randomInt(LOWEST, HIGHEST);
    if (await portIsFree(port)) return port;
  }
  throw new Error(`none of ${TRIES} ports between ${LOWEST} and ${HIGHEST} was free`);
}

/** @throws a sentence that names the variable to set when somebody listens on the port already */
export function assertPortFree(port: number, variable: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const probe = createServer();
    probe.once("error", (error: NodeJS.ErrnoException) => {
      reject(
        error.code === "EADDRINUSE"
          ? new CountersignError(
              "port_taken",
              `Port ${port} is taken. Set ${variable} to a free port and start again.`,
            )
          : error,
      );
    });
    probe.listen(port, "127.0.0.1", () => probe.close(() => resolve()));
  });
}

/** Whether nobody listens on the port now. */
export async function portIsFree(port: number): Promise<boolean> {
  try {
    await assertPortFree(port, "");
    return true;
  } catch {
    // Taken, or not ours to take: either way it is not free.
    return false;
  }
}
