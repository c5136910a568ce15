/**
 * An approval in a channel that another company reads, or may read for all that Slack says: a line without any of its facts stands
 * there instead, the card itself goes where it is safe, and what must be mended is said in the ops channel.
 */
import { getApproval } from "../../approvals/index.js";
import { isApprovalId } from "../../domain/ids.js";
import { type Message, note, theirs } from "../blocks/build.js";
import { linkChannel } from "../text/safe.js";
import type { SlackSendContext } from "../types.js";
import type { CardRow } from "./card-row.js";
import { moveCard, sayInOps } from "./lost-card.js";
import { mayShowApprovals } from "./sharing.js";

export type Hidden =
  /** Nothing to hide: the card may stand there. */
  | { readonly hide: "no" }
  /** Slack could not be asked now. */
  | { readonly hide: "later" }
  /** Not even the line: the card has its place elsewhere. */
  | { readonly hide: "all" }
  /** `again`: look once more in a while, because somebody may have mended it. */
  | { readonly hide: "behind"; readonly message: Message; readonly again: boolean };

export async function hiddenApproval(ctx: SlackSendContext, row: CardRow, channel: string): Promise<Hidden> {
  const sharing = await mayShowApprovals(ctx, channel);
  if (sharing.is === "internal") return { hide: "no" };
  if (sharing.is === "unknown") return { hide: "later" };
  if (sharing.is === "closed") await sayWhatToMend(ctx, channel, sharing.code);
  if (row.slot.includes("!")) return { hide: "all" };
  const { approvals, ops } = ctx.config.channels;
  if (row.slot === "approvals" && ops !== channel) await moveCard(ctx, row, ops);
  return {
    hide: "behind",
    message: lineInstead(sharing.is, sharing.is === "shared" && channel !== approvals ? approvals : null),
    again: sharing.is === "closed" && (await isOpen(ctx, row.subject_id)),
  };
}

async function isOpen(ctx: Pick<SlackSendContext, "db">, id: string): Promise<boolean> {
  return isApprovalId(id) && (await getApproval(ctx.db, id))?.state === "PENDING";
}

/** `elsewhere`: a channel where the card stands, if it is known that it may. */
function lineInstead(why: "shared" | "closed", elsewhere: string | null): Message {
  const because =
    why === "shared"
      ? "this channel is shared with another company"
      : "Slack does not say whether this channel is shared with another company";
  const text = `An approval is needed. Its card is not shown here, because ${because}.`;
  const where = elsewhere === null ? "" : `${linkChannel(elsewhere)} and in `;
  return { text, blocks: [theirs(text), note(`It is in ${where}the app's Home tab.`)] };
}

async function sayWhatToMend(ctx: SlackSendContext, channel: string, code: string): Promise<void> {
  const mend =
    code === "missing_scope"
      ? "Give the app the scopes channels:read and groups:read and install it again."
      : "Invite the app there, or name another channel in its configuration.";
  await sayInOps(
    ctx,
    `closed:${channel}:${code}`,
    `Slack does not say whether ${channel} is shared with another company (${code}), so approval cards are not shown there; they are in the app's Home tab. ${mend}`,
  );
}
