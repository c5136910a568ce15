import { sealsIfSet } from "../../config/index.js";
import { counted } from "../../domain/text/counted.js";
import { type AuditReport, exportAudit, verifyAudit } from "../../ledger/index.js";
import { sealsOf } from "../compose/seals.js";
import { CommandFailure } from "../exit.js";
import { print } from "../output.js";
import { withDb } from "./open.js";

/** `countersign audit export`: JSON Lines on stdout. */
export async function exportLog(): Promise<void> {
  await withDb(async (db) => {
    for await (const line of exportAudit(db)) print(line);
  });
}

/** `countersign audit verify`: exit 1 and the first broken link, if there is one. Seals are looked at where their secret is set. */
export async function verify(): Promise<void> {
  const config = sealsIfSet();
  await withDb(async (db) => {
    const report = await verifyAudit(db, config === null ? null : sealsOf(config));
    const [first] = report.broken;
    if (!report.intact || first !== undefined) {
      throw new CommandFailure(
        first === undefined
          ? "The chain is broken."
          : `Broken: ${first.what} ${first.where}${first.operationId === null ? "" : ` of ${first.operationId}`}: ${first.problem}${sealsNotLookedAt(report)}`,
      );
    }
    print(intactSentence(report));
  });
}

/**
 * What was read, and how much of it the blocks hold: they hold every event, also those that are of no operation. Blocks are read last,
 * so under load they may hold more than was counted: they are never said to be a part of it.
 */
export function intactSentence(report: Omit<AuditReport, "intact" | "broken">): string {
  const all = report.events + report.subjectEvents;
  const read = `${counted(all, "event")}, ${report.events} of ${counted(report.operations, "operation")} and ${report.subjectEvents} of freezes, incidents and the policy`;
  const open = Math.max(0, all - report.sealedEvents);
  const seal = report.blocks === 1 ? "seals" : "seal";
  return `Intact: ${read}. ${counted(report.blocks, "block")} ${seal} ${counted(report.sealedEvents, "event")}; ${open} not sealed yet.${report.decisionSeals === null ? sealsNotLookedAt(report) : ` ${counted(report.decisionSeals, "decision")} with a seal of ours.`}`;
}

/** Empty where they were. */
const sealsNotLookedAt = ({ decisionSeals }: Pick<AuditReport, "decisionSeals">): string =>
  decisionSeals === null
    ? " Seals of decisions were not checked: set SEAL_SECRET, or SLACK_BOT_TOKEN where it seals."
    : "";
