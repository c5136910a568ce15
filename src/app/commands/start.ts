import { environment, parseConfig } from "../../config/index.js";
import { PolicyFileError } from "../../policy/index.js";
import { CommandFailure, EXIT_BAD_USAGE } from "../exit.js";
import { type Role, startProcess } from "../process.js";
import { stopSignal, stopWithParent } from "../stop-signal.js";

const ROLES: readonly Role[] = ["app", "worker"];

/** `countersign start`: runs until SIGTERM or Ctrl-C. */
export async function start(options: { roles: string; endWithParent?: boolean }): Promise<void> {
  const roles = rolesOf(options.roles);
  const config = parseConfig(["database", "slack", "payments", "seals"], environment(), {
    hearsSlack: roles.has("app"),
  });
  const stop = stopSignal();
  if (options.endWithParent === true) stopWithParent(stop);
  try {
    const running = await startProcess(config, roles, stop.signal);
    if (!stop.signal.aborted) {
      await new Promise<void>((resolve) =>
        stop.signal.addEventListener("abort", () => resolve(), { once: true }),
      );
    }
    await running.stop();
  } catch (error) {
    if (error instanceof PolicyFileError) throw new CommandFailure(error.message, EXIT_BAD_USAGE);
    if (error instanceof Error && "code" in error && error.code === "EADDRINUSE") {
      throw new CommandFailure(
        `Port ${config.port} is taken. Set PORT to a free port and start again.`,
        EXIT_BAD_USAGE,
      );
    }
    throw error;
  }
}

function rolesOf(text: string): ReadonlySet<Role> {
  const wanted = text.split(",").map((part) => part.trim());
  const known = wanted.filter((part): part is Role => (ROLES as readonly string[]).includes(part));
  if (known.length === 0 || known.length !== wanted.length) {
    throw new CommandFailure(`--roles takes ${ROLES.join(", ")} or both, not "${text}".`, EXIT_BAD_USAGE);
  }
  return new Set(known);
}
