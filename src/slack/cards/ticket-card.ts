/** The message that carries a form's ticket: who filed it, and what they wrote. */
import { listOf } from "../../domain/text/list-of.js";
import type { Ticket } from "../../runs/index.js";
import { type Message, note, ours, withinLimits } from "../blocks/build.js";
import { escapeWithin, mentionUser, oneLine } from "../text/safe.js";
import { longText } from "./posts.js";

export function ticketCard(ticket: Ticket): Message {
  const filers = listOf(ticket.filers.map(mentionUser));
  const files = ticket.files.map((file) => oneLine(file.name)).join(", ");
  return withinLimits(
    {
      text: `Ticket by ${filers}: ${escapeWithin(oneLine(ticket.text), 1500).text}`,
      blocks: [
        ours(`*Ticket* by ${filers}`),
        ...longText(ticket.text),
        ...(files === "" ? [] : [note(`Files: ${escapeWithin(files, 500).text}`)]),
      ],
    },
    1,
  );
}
