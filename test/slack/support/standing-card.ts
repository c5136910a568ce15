/** A card that stands in the approvals channel, for approvals that are rows and that nobody posted. */
import type { Db } from "../../../src/db/connect.js";

export const CARD_TS = "1796000000.000100";

const INSERT = `
INSERT INTO slack_cards (id, kind, subject_id, slot, channel_id, message_ts)
VALUES ('card_' || md5($1), 'approval', $1, 'approvals', 'C_APPR', $2)
ON CONFLICT (kind, subject_id, slot) DO UPDATE SET message_ts = EXCLUDED.message_ts`;

/** Clicks on it come from C_APPR and CARD_TS. */
export async function standCard(db: Db, approvalId: string): Promise<void> {
  await db.sql(undefined, INSERT, [approvalId, CARD_TS]);
}
