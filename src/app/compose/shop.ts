/** The shop's import as every caller of the program uses it: what it finds below a reservation becomes an incident. */
import { type LedgerCtx, openIncident } from "../../ledger/index.js";
import { type ImportResult, importShop } from "../../shop/index.js";

/**
 * Imports a parsed shop file, all or nothing.
 *
 * @throws ShopFileError that names each problem by its path
 */
export function importShopFile(ctx: LedgerCtx, content: unknown): Promise<ImportResult> {
  return importShop(
    {
      db: ctx.db,
      ids: ctx.ids,
      onBelowReserved: async (tx, finding) => {
        await openIncident(tx, ctx, {
          kind: "import_below_reserved",
          dedupeKey: `import:${finding.paymentId}:${finding.captured}`,
          operationId: null,
          paymentId: finding.paymentId,
          detail: {
            order: finding.orderRef,
            currency: finding.currency,
            capturedBefore: Number(finding.capturedBefore),
            captured: Number(finding.captured),
            reserved: Number(finding.reserved),
          },
        });
      },
    },
    { content },
  );
}
