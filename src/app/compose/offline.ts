/**
 * A context for commands that change rows without being the product: what people should see becomes rows all the same, and a
 * worker sends it; nobody is woken, the sweeper finds what is due.
 */
import { environment, parseConfig } from "../../config/index.js";
import type { Db, Tx } from "../../db/connect.js";
import type { Notices } from "../../domain/ports/notices.js";
import { NO_SEALS } from "../../domain/seals.js";
import type { LedgerCtx } from "../../ledger/index.js";
import type { RunsCtx } from "../../runs/index.js";
import { createNotices } from "../../slack/index.js";
import { systemIds } from "../system.js";
import { ledgerContext } from "./ledger.js";
import { newRunSettings } from "./planner.js";
import { identify } from "./shop-reads.js";

/** Channels of the notices: those of the environment, or none, and then nothing is posted there. */
export function offlineNotices(): Notices<Tx> {
  const env = environment();
  return createNotices({
    ids: systemIds,
    wake: async () => {},
    config: {
      channels: {
        tickets: env["SLACK_TICKETS_CHANNEL"] ?? "",
        approvals: env["SLACK_APPROVALS_CHANNEL"] ?? "",
        ops: env["SLACK_OPS_CHANNEL"] ?? "",
      },
    },
  });
}

export function offlineContext(db: Db): LedgerCtx & RunsCtx {
  const config = parseConfig([]);
  const notices = offlineNotices();
  const wake = async (): Promise<void> => {};
  return {
    ...ledgerContext({ db, notices, wake, timing: config.timing, seals: NO_SEALS }),
    identify,
    newRuns: newRunSettings(config),
  };
}
