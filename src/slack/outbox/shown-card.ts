/** Whether a click comes from a message that this app posted for the approval: a copy anywhere else proves nothing was seen. */
import type { Db } from "../../db/connect.js";
import type { ApprovalId } from "../../domain/ids.js";
import type { FormPlace } from "../cards/forms.js";

/** $1 approval, $2 channel, $3 ts. A card whose post is on its way has no ts yet, and can be clicked before its answer is here. */
const STANDS = `
SELECT 1 AS one FROM slack_cards
WHERE kind = 'approval' AND subject_id = $1 AND channel_id = $2
  AND (message_ts = $3 OR (message_ts IS NULL AND attempt_at IS NOT NULL)) LIMIT 1`;

/** True in App Home, which is drawn for each person from the rows. */
export async function cardStands(db: Db, approvalId: ApprovalId, place: FormPlace): Promise<boolean> {
  if (place.home) return true;
  const { channelId, messageTs } = place;
  if (channelId === null || messageTs === null) return false;
  const rows = await db.sql("slack.card.stands", STANDS, [approvalId, channelId, messageTs]);
  return rows.length > 0;
}
