/** A card's message, from its subject's rows as they are now. Null: the subject is gone. */
import { assertNever } from "../../domain/assert-never.js";
import { isApprovalId, isOperationId, isRunId, isTicketId } from "../../domain/ids.js";
import { ONCALL_ROLE } from "../../domain/policy/policy.js";
import type { CardSubject } from "../../domain/ports/notices.js";
import type { RunState } from "../../domain/run.js";
import type { FreezeKind } from "../../ops/index.js";
import { getTicket } from "../../runs/index.js";
import { type Message, note } from "../blocks/build.js";
import { approvalCard, plainApprovalCard } from "../cards/approval-card.js";
import { bindingCard } from "../cards/binding-card.js";
import { escalationCard } from "../cards/escalation-card.js";
import { incidentCard } from "../cards/incident-card.js";
import { quarantineCard, resolutionCard, thawCard } from "../cards/ops-cards.js";
import { runCard } from "../cards/run-card.js";
import { ticketCard } from "../cards/ticket-card.js";
import type { SlackSendContext } from "../types.js";
import { readApprovalView } from "../views/approval.js";
import { bindingStandingOf } from "../views/binding.js";
import { readFreeze, readIncident, readQuarantine, readResolution } from "../views/ops.js";
import { readRunView } from "../views/run.js";
import { workspaceUrl } from "../web.js";
import { mentionsOf } from "./mentions.js";

export type CardKind = CardSubject["kind"] | "ticket";

export interface RenderedCard {
  readonly message: Message;
  /** Goes before the backlog: somebody waits for it or has to act on it. */
  readonly urgent: boolean;
  /** Brings the subject's message up to date, but is not worth a new one: what it says has been told. */
  readonly onlyEdit?: boolean;
}

export async function renderSubject(
  ctx: Pick<SlackSendContext, "db" | "policy" | "web" | "config">,
  kind: CardKind,
  id: string,
  plainForm: boolean,
): Promise<RenderedCard | null> {
  const { db } = ctx;
  switch (kind) {
    case "approval": {
      const view = isApprovalId(id) ? await readApprovalView(db, id) : null;
      return view === null ? null : urgent(plainForm ? plainApprovalCard(view) : approvalCard(view));
    }
    case "escalation": {
      const view = isApprovalId(id) ? await readApprovalView(db, id) : null;
      if (view === null) return null;
      const asks = view.approval.state === "PENDING";
      const mentions = asks ? mentionsOf(await ctx.policy(), ONCALL_ROLE) : "";
      return { ...urgent(escalationCard(view.approval, mentions)), onlyEdit: !asks };
    }
    case "run": {
      const view = isRunId(id) ? await readRunView(db, id) : null;
      if (view === null) return null;
      const message = runCard(view, await workspaceUrl(ctx.web));
      return { message, urgent: !ON_ITS_WAY.has(view.view.run.state) };
    }
    case "binding": {
      const ticket = isTicketId(id) ? await getTicket(db, id) : null;
      if (ticket === null) return null;
      return { message: bindingCard(ticket, await bindingStandingOf(db, ticket.id)), urgent: false };
    }
    case "ticket": {
      const ticket = isTicketId(id) ? await getTicket(db, id) : null;
      return ticket === null ? null : { message: ticketCard(ticket), urgent: false };
    }
    case "quarantine": {
      const view = isOperationId(id)
        ? await readQuarantine(db, id, await ctx.policy(), ctx.config.keyTtlMs)
        : null;
      if (view === null) return null;
      return urgent(quarantineCard({ ...view, workspace: await workspaceUrl(ctx.web) }));
    }
    case "resolution": {
      const view = await readResolution(db, id);
      return view === null ? null : urgent(resolutionCard(view));
    }
    case "thaw": {
      const state = await readFreeze(db, id as FreezeKind);
      if (state === null) return null;
      const asks = state.frozen && state.thawAskedBy !== null;
      return { ...urgent(thawCard(state)), onlyEdit: !asks };
    }
    case "incident": {
      const view = await readIncident(db, id);
      return view === null ? null : urgent(incidentCard(view, await workspaceUrl(ctx.web)));
    }
    default:
      return assertNever(kind, "card kind");
  }
}

const urgent = (message: Message): RenderedCard => ({ message, urgent: true });

/** Steps that nobody waits for: merged, and shown when there is room. */
const ON_ITS_WAY: ReadonlySet<RunState> = new Set(["queued", "running"]);

/** For the old message of a card that was posted again. */
export const REPLACED: Message = {
  text: "Posted again below.",
  blocks: [note("_Posted again below._")],
};
