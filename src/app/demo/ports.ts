/** Ports of this machine. */
import { createServer } from "node:net";
import { CountersignError } from "../../domain/errors.js";

/** A port that nobody listens on now. Another process may take it before it is used; whoever binds it says so. */
export function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const probe = createServer();
    probe.once("error", reject);
    probe.listen(0, "127.0.0.1", () => {
      const address = probe.address();
      probe.close(() => {
        if (address === null || typeof address === "string") reject(new Error("the system gave no port"));
        else resolve(address.port);
      });
    });
  });
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
