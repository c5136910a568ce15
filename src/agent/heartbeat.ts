/** Keeps a lease while its run is driven. When it is lost, everything that listens to `signal` stops. */
import { LeaseLost, type RunLease, renewLease } from "../runs/index.js";
import type { AgentCtx } from "./ports.js";

/** Renewed this often within one lease: two renewals may fail before it runs out. */
const BEATS_PER_LEASE = 3;

export interface Heart {
  signal: AbortSignal;
  stop(): void;
}

export function keepLease(ctx: Pick<AgentCtx, "db" | "leaseMs" | "log">, lease: RunLease): Heart {
  const lost = new AbortController();
  let beating = false;
  const timer = setInterval(
    () => {
      if (beating) return;
      beating = true;
      renewLease(ctx.db, lease, ctx.leaseMs)
        .then((state) => {
          if (state === "lost") lost.abort(new LeaseLost(lease.runId));
        })
        // The database is away: the lease runs out by its clock, and the next write finds that out.
        .catch((error: unknown) =>
          ctx.log.warn({ runId: lease.runId, err: error }, "a lease was not renewed"),
        )
        .finally(() => {
          beating = false;
        });
    },
    Math.max(50, Math.floor(ctx.leaseMs / BEATS_PER_LEASE)),
  );
  timer.unref();
  return {
    signal: lost.signal,
    stop: () => clearInterval(timer),
  };
}
