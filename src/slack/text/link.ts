/** Links to messages, in the form that Slack itself gives them. */
import type { TicketId } from "../../domain/ids.js";
import { escapeWithin, oneLine } from "./safe.js";

/** A ticket as somebody who reads another one is led to it. */
export interface TicketPlace {
  readonly id: TicketId;
  /** TCK-2001 for seeded tickets. */
  readonly ref: string | null;
  /** The message that carries its thread; null: it has none in Slack. */
  readonly message: MessagePlace | null;
}

export interface MessagePlace {
  readonly channelId: string;
  readonly ts: string;
}

/** Mrkdwn. `workspace`: where links to messages begin; null: there are none, and null is returned. */
export const messageLink = (
  { channelId, ts }: MessagePlace,
  label: string,
  workspace: string | null,
): string | null =>
  workspace === null
    ? null
    : `<${workspace}archives/${encodeURIComponent(channelId)}/p${ts.replace(".", "")}|${label}>`;

/** As much of an id as tells tickets apart at sight. */
const ID_SHOWN = "tkt_".length + 12;

/** Another ticket, in mrkdwn: its thread, or what it is called. */
export const ticketLink = ({ id, ref, message }: TicketPlace, workspace: string | null): string =>
  (message === null ? null : messageLink(message, "another ticket", workspace)) ??
  `another ticket (${escapeWithin(oneLine(ref ?? id.slice(0, ID_SHOWN)), 60).text})`;
