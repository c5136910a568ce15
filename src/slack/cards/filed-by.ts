/** Who asked for an operation, and where: whoever is told to ask the filer, or to tell them, is led there. */
import { listOf } from "../../domain/text/list-of.js";
import type { Row } from "../blocks/build.js";
import { messageLink, type TicketPlace } from "../text/link.js";
import { escapeWithin, mentionUser, oneLine } from "../text/safe.js";

/** `workspace`: where links to messages begin; null: there are none. */
export function filedByRow(
  { filers, ticket }: { readonly filers: readonly string[]; readonly ticket: TicketPlace | null },
  workspace: string | null,
): Row {
  const people = listOf(filers.map(mentionUser)) || "nobody known";
  const place = ticket === null ? "" : `, ${placeOf(ticket, workspace)}`;
  return { label: "Filed by", value: { ours: `${people}${place}` } };
}

const placeOf = ({ id, ref, message }: TicketPlace, workspace: string | null): string =>
  (message === null ? null : messageLink(message, "the ticket's thread", workspace)) ??
  `ticket \`${escapeWithin(oneLine(ref ?? id), 60).text}\``;
