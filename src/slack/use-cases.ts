/**
 * The use cases that listeners call: functions of other rooms with their contexts already bound by the composition root. Each may
 * be called again with the same arguments and answers with a value that holds all that a sentence to the person needs. None of
 * them talks to Slack; whoever may do what is their decision.
 */
import type {
  DecideClick,
  DecideOutcome,
  MayDeny,
  PendingFor,
  PersonAhead,
  UndoClick,
} from "../approvals/index.js";
import type { OperationId, RunId, TicketId } from "../domain/ids.js";
import type { OpsUseCases } from "../ops/index.js";
import type {
  BindingAnswer,
  BindingCandidate,
  CancelAnswer,
  FiledTicket,
  FileTicket,
  ReplyAnswer,
  ThreadReply,
} from "../runs/index.js";

/** Answer to "This is a further refund". */
export type FurtherAnswer =
  /** A run of its own asks for a further occurrence; its approval card follows. */
  | { readonly outcome: "asked"; readonly runId: RunId }
  | { readonly outcome: "already_asked"; readonly runId: RunId }
  | { readonly outcome: "refused"; readonly sentence: string };

export interface SlackUseCases {
  fileTicket(filing: FileTicket): Promise<FiledTicket>;
  /** The message that carries a form's ticket has been posted: its thread is there from now on. */
  setTicketThread(thread: { ticketId: TicketId; channelId: string; messageTs: string }): Promise<void>;
  threadReply(reply: ThreadReply): Promise<ReplyAnswer>;
  requestCancel(request: { runId: RunId; by: string }): Promise<CancelAnswer>;
  confirmBinding(request: { ticketId: TicketId; by: string }): Promise<BindingAnswer>;
  changeBinding(request: { ticketId: TicketId; by: string; customerRef: string }): Promise<BindingAnswer>;
  /** Whom a typed reference or address means; never guesses. */
  findCustomers(text: string): Promise<readonly BindingCandidate[]>;
  furtherRefund(request: {
    operationId: OperationId;
    ticketId: TicketId;
    by: string;
  }): Promise<FurtherAnswer>;
  /** Begins to read who clicked, for `decide`, `lookBeforeDeny` or `undo`. */
  readAhead(userId: string): PersonAhead;
  decide(click: DecideClick): Promise<DecideOutcome>;
  /** What a no would come to, before its form is opened. */
  lookBeforeDeny(
    click: Pick<DecideClick, "approvalId" | "cardVersion" | "userId" | "ahead">,
  ): Promise<DecideOutcome | MayDeny>;
  /** Takes an approved, not yet sent operation back. */
  undo(click: UndoClick): Promise<DecideOutcome>;
  /** Undecided approvals that this person may decide, most urgent first. `maxAgeMs`: how old what is known of the person may be. */
  pendingFor(who: { userId: string; limit: number; maxAgeMs: number }): Promise<PendingFor>;
  readonly ops: OpsUseCases;
}
