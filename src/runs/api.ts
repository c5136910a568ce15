/** The shapes of this room's answers. Tagged unions hold everything a sentence to a person needs. */
import type { RunId, TicketId } from "../domain/ids.js";
import type { BindingCandidate, Run, Ticket, TicketFile, TicketSource } from "./types.js";

export interface FileTicket {
  source: TicketSource;
  /** The same key is the same ticket: `message:C1:1796.1`, `form:V123`, `seed:TCK-2001`. */
  dedupeKey: string;
  ref?: string | null;
  teamId?: string | null;
  channelId?: string | null;
  messageTs?: string | null;
  threadTs?: string | null;
  filer: string;
  /** Others who count as filer beside `filer`. */
  filers?: readonly string[];
  text: string;
  files?: readonly TicketFile[];
  /** A customer chosen by the filer in a form: bound and confirmed. */
  customerId?: string | null;
  /** False: the ticket waits without a run (seeded tickets, started by name). Default true. */
  start?: boolean;
}

export type FiledTicket =
  | { outcome: "filed"; ticket: Ticket; run: Run | null }
  /** Filed before under this key; nothing changed but, with another filer, who counts as filer. */
  | { outcome: "duplicate"; ticket: Ticket; run: Run | null }
  /** No text: the thread asks what is wanted, and the filer's answer starts the run. */
  | { outcome: "asked"; ticket: Ticket };

export type BindingAnswer =
  | { outcome: "bound"; ticket: Ticket; restartedRun: RunId | null }
  | { outcome: "unchanged"; ticket: Ticket }
  | { outcome: "refused"; code: BindingRefusal; sentence: string };
export type BindingRefusal =
  | "no_ticket"
  | "not_filer"
  | "nothing_to_confirm"
  | "no_such_customer"
  | "run_has_acted"
  /** No run is under way any more; `ended` in the words of who shows it. */
  | "ended";

/** A reply in a ticket's thread. Information for the run, never an approval. */
export interface ThreadReply {
  channelId: string;
  threadTs: string;
  author: string;
  text: string;
  /** Unique for the message. */
  dedupeKey: string;
}

export type ReplyAnswer =
  | { outcome: "noted"; runId: RunId; ticketId: TicketId }
  /** The thread had asked what is wanted; this was the answer. */
  | { outcome: "started"; run: Run; ticketId: TicketId }
  /** The thread had asked whom it is about; these were found. */
  | {
      outcome: "candidates";
      ticketId: TicketId;
      candidates: readonly BindingCandidate[];
      runId: RunId | null;
    }
  /** The work on this ticket is over; nothing was stored. */
  | { outcome: "ended"; run: Run; ticket: Ticket }
  | { outcome: "ignored"; why: "no_ticket" | "not_filer" | "blank" | "no_active_run" | "seen_before" };

export type StartAnswer =
  | { outcome: "started"; run: Run }
  | { outcome: "active"; run: Run }
  | { outcome: "refused"; code: "no_ticket" | "blank"; sentence: string };

export type CancelAnswer =
  | { outcome: "requested"; run: Run }
  | { outcome: "ended"; run: Run }
  | { outcome: "refused"; code: "no_run" | "not_filer"; sentence: string };
