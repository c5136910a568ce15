/** The program's own composition, on the databases and with the planner of an evaluation. */
import { randomBytes } from "node:crypto";
import type { Config } from "../../config/index.js";
import { sealsWith } from "../../domain/seals.js";
import type { DeskPorts } from "../../evaluation/index.js";
import { createLogger, createMetrics, NO_TRACER } from "../../telemetry/index.js";
import { composeContexts } from "../compose/contexts.js";
import { systemClock, systemIds } from "../system.js";

export function deskPorts(config: Config<never>, freshLedger: DeskPorts["freshLedger"]): DeskPorts {
  const log = createLogger({ level: config.logLevel, secrets: [], fields: { roles: "evaluate" } });
  const metrics = createMetrics({ processMetrics: false });
  // Nobody but this process decides on these databases, and nobody tells their log of the policy.
  const seals = sealsWith({ secret: randomBytes(32).toString("hex"), policiesTold: false });
  return {
    ids: systemIds,
    clock: systemClock,
    log,
    freshLedger,
    compose: (parts) => {
      const contexts = composeContexts({
        config,
        db: parts.db,
        wake: async () => {},
        notices: parts.notices,
        directory: parts.directory,
        provider: parts.provider,
        verifyWebhook: () => ({ ok: false, reason: "no_signature" }),
        log,
        metrics,
        tracer: NO_TRACER,
        worker: "evaluate",
        seals,
      });
      const { planner: instead } = parts;
      const newRuns = { ...contexts.agent.newRuns, planner: instead.name, model: instead.model };
      return {
        ...contexts,
        runs: { ...contexts.runs, newRuns },
        agent: { ...contexts.agent, newRuns, planner: instead },
      };
    },
  };
}
