import type { Ticket } from "./types.js";

/** What the planner is told about whom the ticket concerns. */
export function bindingSentence(ticket: Ticket): string {
  const who = `${ticket.customerRef ?? "?"} (${ticket.customerName ?? "?"})`;
  switch (ticket.binding) {
    case "confirmed":
      return `The filer confirmed that this ticket is about customer ${who}.`;
    case "unconfirmed":
      return `By the references in its text this ticket is about customer ${who}. The filer has not confirmed that yet.`;
    case "none":
      return ticket.candidates.length === 0
        ? "It is not known which customer this ticket is about. The filer has been asked."
        : `The text of this ticket fits several customers: ${ticket.candidates
            .map((one) => `${one.customerRef} (${one.name})`)
            .join(", ")}. The filer has been asked which one is meant.`;
  }
}
