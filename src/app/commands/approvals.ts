import { listPending } from "../../approvals/index.js";
import { utcSecond } from "../../domain/text/utc-time.js";
import { print, printJson, table } from "../output.js";
import { withDb } from "./open.js";
import { subjectOf } from "./show-text.js";

/** `countersign approvals list`: what waits for whom, until when. */
export async function list(options: { json?: boolean }): Promise<void> {
  await withDb(async (db) => {
    const page = await listPending(db, { limit: 200 });
    if (options.json === true) {
      printJson({
        approvals: page.approvals.map(({ approval, missing }) => ({
          id: approval.id,
          operationId: approval.operationId,
          state: approval.state,
          role: approval.role,
          approversNeeded: approval.approversNeeded,
          missing,
          binding: approval.binding,
          expiresAt: approval.expiresAt,
          createdAt: approval.createdAt,
        })),
        next: page.next,
      });
      return;
    }
    if (page.approvals.length === 0) {
      print("No approval waits.");
      return;
    }
    print(
      table([
        ["approval", "operation", "what", "for", "waits for", "until"],
        ...page.approvals.map(({ approval, missing }) => [
          approval.id,
          approval.operationId,
          subjectOf(approval.binding),
          approval.binding.customerRef,
          `${missing} of ${approval.role}`,
          utcSecond(approval.expiresAt),
        ]),
      ]),
    );
  });
}
