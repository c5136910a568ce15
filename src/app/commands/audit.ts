import { counted } from "../../domain/text/counted.js";
import { exportAudit, verifyAudit } from "../../ledger/index.js";
import { CommandFailure } from "../exit.js";
import { print } from "../output.js";
import { withDb } from "./open.js";

/** `countersign audit export`: JSON Lines on stdout. */
export async function exportLog(): Promise<void> {
  await withDb(async (db) => {
    for await (const line of exportAudit(db)) print(line);
  });
}

/** `countersign audit verify`: exit 1 and the first broken link, if there is one. */
export async function verify(): Promise<void> {
  await withDb(async (db) => {
    const report = await verifyAudit(db);
    const [first] = report.broken;
    if (!report.intact || first !== undefined) {
      throw new CommandFailure(
        first === undefined
          ? "The chain is broken."
          : `Broken: ${first.what} ${first.where}${first.operationId === null ? "" : ` of ${first.operationId}`}: ${first.problem}`,
      );
    }
    print(
      `Intact: ${counted(report.events, "event")} of ${counted(report.operations, "operation")}, ${report.sealedEvents} of them in ${counted(report.blocks, "block")}.`,
    );
  });
}
