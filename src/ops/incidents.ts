/** Open incidents, and closing one with a reason. Any on-call person may: the finding stays on record, and so does who closed it. */
import { cutText } from "../domain/text/cut.js";
import * as ledger from "../ledger/index.js";
import { authorise } from "./authorise.js";
import type { OpsContext } from "./context.js";
import { missingReason, TEXT_MAX_CHARS } from "./form-text.js";
import { incidentRow, incidentRows } from "./incident-rows.js";
import type {
  CloseOutcome,
  CloseRequest,
  IncidentsView,
  OpsUseCases,
  Refused,
  Suggestion,
  Unresolved,
} from "./types.js";

const PAGE = 20;
const SUGGESTIONS = 5;
/** Fewer characters behind `inc_` than this name nothing in particular. */
const MIN_PREFIX = 4;
/** Where to look for the right one. */
const LOOK = "/ops incidents lists the open ones.";
const short = (text: string): string => cutText(text.trim(), 61);

export async function incidents(
  ctx: OpsContext,
  request: Parameters<OpsUseCases["incidents"]>[0],
): Promise<IncidentsView | Refused> {
  const caller = await authorise(ctx, request.userId);
  if (caller.outcome === "refused") return caller;
  const page = await ledger.listIncidents(ctx.db, {
    cursor: request.cursor ?? null,
    limit: request.limit ?? PAGE,
  });
  return { outcome: "incidents", incidents: await incidentRows(ctx.db, page.rows), next: page.next };
}

export async function openClosing(
  ctx: OpsContext,
  request: { userId: string; ref: string },
): ReturnType<OpsUseCases["openClosing"]> {
  const caller = await authorise(ctx, request.userId);
  if (caller.outcome === "refused") return caller;
  const found = await findIncident(ctx, request.ref);
  if (found.outcome === "unresolved") return found;
  const { incident } = found;
  return incident.status === "open"
    ? { outcome: "form", incident: await incidentRow(ctx.db, incident) }
    : already(incident);
}

export async function closeIncident(ctx: OpsContext, request: CloseRequest): Promise<CloseOutcome> {
  const invalid = missingReason(request);
  if (invalid !== null) return invalid;
  const form = await openClosing(ctx, request);
  if (form.outcome !== "form") return form;
  const { id } = form.incident;
  const reason = cutText(request.reason.trim(), TEXT_MAX_CHARS);
  const closed = await ctx.db.tx((tx) =>
    ledger.closeIncident(tx, ctx.ledger, { id, by: request.userId, reason }),
  );
  const incident = await ledger.getIncident(ctx.db, id);
  if (incident === null) throw new Error(`incident ${id} is gone`);
  return closed ? { outcome: "closed", incident: await incidentRow(ctx.db, incident) } : already(incident);
}

type Found = { readonly outcome: "found"; readonly incident: ledger.Incident } | Unresolved;

/** Reads a full id, or its beginning; `inc_` may be left out. */
async function findIncident(ctx: OpsContext, typed: string): Promise<Found> {
  const plain = typed.trim().toLowerCase();
  const ref = plain.startsWith("inc_") ? plain : `inc_${plain}`;
  if (!/^inc_[0-9a-f]{1,32}$/.test(ref)) {
    return unresolved(
      `“${short(typed)}” is no incident id: those are inc_ and then digits and letters a to f. ${LOOK}`,
    );
  }
  if (ref.length < "inc_".length + MIN_PREFIX) {
    return unresolved(
      `“${short(typed)}” is too short to name one incident: give at least ${MIN_PREFIX} characters behind inc_. ${LOOK}`,
    );
  }
  const found = await ledger.findIncidents(ctx.db, ref, { limit: SUGGESTIONS + 1 });
  const [only] = found;
  if (only === undefined) return unresolved(`No incident begins with “${ref}”. ${LOOK}`);
  if (found.length === 1) return { outcome: "found", incident: only };
  const rows = await incidentRows(ctx.db, found.slice(0, SUGGESTIONS));
  return unresolved(
    `Several incidents begin with “${ref}”; add a few characters.`,
    rows.map((incident) => ({ kind: "incident", incident })),
  );
}

const unresolved = (sentence: string, suggestions: readonly Suggestion[] = []): Unresolved => ({
  outcome: "unresolved",
  sentence,
  suggestions,
});

const already = ({ closedBy, closedAt, closeReason }: ledger.Incident) => ({
  outcome: "already" as const,
  by: closedBy,
  at: closedAt,
  reason: closeReason,
});
