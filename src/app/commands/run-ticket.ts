import os from "node:os";
import { setTimeout as pause } from "node:timers/promises";
import { driveRun } from "../../agent/index.js";
import { parseConfig } from "../../config/index.js";
import { isRunEnd } from "../../domain/run.js";
import { recordPolicyActivated } from "../../ledger/index.js";
import { createPayments, createWebhookVerifier } from "../../payments/index.js";
import { watchPolicyFile } from "../../policy/index.js";
import { reconcileDue } from "../../reconcile/index.js";
import { confirmBinding, findTicket, getRun, startRun, viewRun } from "../../runs/index.js";
import { createLogger, createMetrics, NO_TRACER } from "../../telemetry/index.js";
import { composeContexts } from "../compose/contexts.js";
import { nobody } from "../compose/nobody.js";
import { offlineNotices } from "../compose/offline.js";
import { sealSecrets, sealsOf } from "../compose/seals.js";
import { CommandFailure } from "../exit.js";
import { print } from "../output.js";
import { systemClock } from "../system.js";
import { withDb } from "./open.js";

const LOOK_EVERY_MS = 200;
const RECONCILE_LIMIT = 20;

/**
 * `countersign run TICKET`: drives one seeded ticket from the shell, no Slack in sight. The keyboard stands for the filer, who
 * confirms the customer; what needs an approval waits for a supervisor in Slack.
 */
export async function runTicket(reference: string): Promise<void> {
  const config = parseConfig(["database", "payments", "seals"]);
  const log = createLogger({
    level: config.logLevel,
    secrets: [
      config.database.url,
      config.payments.secretKey,
      config.payments.webhookSecret,
      ...sealSecrets(config.seals),
    ],
    fields: { roles: "cli" },
  });
  await withDb(async (db) => {
    const seals = sealsOf(config.seals);
    const policy = await watchPolicyFile({
      db,
      file: config.policyFile,
      record: recordPolicyActivated(seals),
    });
    const payments = createPayments({
      secretKey: config.payments.secretKey.reveal(),
      apiUrl: config.payments.apiUrl,
      clock: systemClock,
    });
    try {
      const contexts = composeContexts({
        config,
        db,
        wake: async () => {},
        notices: offlineNotices(),
        directory: nobody,
        provider: payments,
        verifyWebhook: createWebhookVerifier(config.payments.webhookSecret.reveal()),
        log,
        metrics: createMetrics({ processMetrics: false }),
        tracer: NO_TRACER,
        worker: `${os.hostname()}:${process.pid}`,
        seals,
      });
      const ticket = await findTicket(db, reference);
      if (ticket === null)
        throw new CommandFailure(
          `There is no ticket ${reference}. \`countersign seed\` files TCK-2001 and others.`,
        );
      if (ticket.binding === "unconfirmed") {
        await confirmBinding(contexts.runs, { ticketId: ticket.id, by: ticket.filer });
      }
      const started = await startRun(contexts.runs, { ticket: reference });
      if (started.outcome === "refused") throw new CommandFailure(started.sentence);
      const { id } = started.run;
      for (;;) {
        await driveRun(contexts.agent, id);
        await reconcileDue(contexts.reconcile, { limit: RECONCILE_LIMIT });
        const run = await getRun(db, id);
        if (
          run === null ||
          isRunEnd(run.state) ||
          run.state === "awaiting_approval" ||
          run.state === "awaiting_binding"
        )
          break;
        await pause(LOOK_EVERY_MS);
      }
      const view = await viewRun(db, id);
      if (view === null) throw new CommandFailure(`The run ${id} is gone.`);
      for (const call of view.calls) {
        print(
          `${call.name}${call.decision === null ? "" : ` (${call.decision})`}${call.replayed ? " replayed" : ""}: ${call.result ?? call.state}`,
        );
      }
      print(
        `${view.run.id}  ${view.run.state}${view.run.ending === null ? "" : `: ${view.run.ending.detail}`}`,
      );
      if (view.run.state === "awaiting_approval")
        print("Waits for an approval: `countersign approvals list` shows for whose.");
      if (view.run.state === "failed")
        throw new CommandFailure("The run failed; nothing more is done on it.");
    } finally {
      await payments.close();
      await policy.stop();
    }
  });
}
