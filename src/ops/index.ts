/** Use cases behind on-call's commands and cards. */
import { getResolution } from "../ledger/index.js";
import { authorise } from "./authorise.js";
import type { OpsContext } from "./context.js";
import { freeze, freezeState, secondThaw, thaw } from "./freeze.js";
import { health } from "./health.js";
import { closeIncident, incidents, openClosing } from "./incidents.js";
import { parseOpsCommand } from "./parse.js";
import { openReopening, reopen } from "./reopen.js";
import { resolutionView } from "./resolution-view.js";
import { askProvider, openResolution, resolve, second } from "./resolve.js";
import type { OpsUseCases } from "./types.js";
import { approvals, events, home, list, runs, show } from "./views.js";

export { countedElsewhere, dataIn, personNamed, SLOWED_DOWN } from "../ledger/index.js";
export {
  type AttemptFacts,
  type AttemptRun,
  type AttemptsOf,
  attemptRuns,
} from "./attempt-runs.js";
export type { LookContext, OpsContext } from "./context.js";
export {
  askedAnewWords,
  type EvidenceTold,
  elsewhereWords,
  evidenceTold,
  noEvidenceWords,
  nothingSentWords,
} from "./evidence-told.js";
export { verbsLeft, verbsOfTwo, WAIT_FOR_PENDING } from "./explain.js";
export { operationsNamed, theOnlyOne } from "./find.js";
export { healthNow } from "./health.js";
export { countsText, healthTold, shortOf } from "./health-told.js";
export { incidentRows } from "./incident-rows.js";
export { OPS_HELP, statusNamed } from "./parse.js";
export { CONFIRMED_ON_WORD, isReferenceGiven, REFERENCE_IS_GIVEN } from "./reference-given.js";
export { resolutionRemark, storedAnswers, storedRefusal } from "./resolution-view.js";
export { showSwitches } from "./show-switch.js";
export { type Doer, type TimelineEntry, timelineEntry } from "./timeline.js";
export { checkTrips, type Trip } from "./trip.js";
export type * from "./types.js";
export { WHOSE_IS_IT } from "./verbs-now.js";
export { lookAsking, SHOW_ASKS_MS } from "./views.js";
export { withinMs } from "./within.js";

/** Binds the use cases to what they need. */
export function opsUseCases(ctx: OpsContext): OpsUseCases {
  return {
    parse: parseOpsCommand,
    help: async ({ userId }) => {
      const caller = await authorise(ctx, userId);
      return caller.outcome === "refused" ? caller : { outcome: "help" };
    },
    list: (request) => list(ctx, request),
    show: (request) => show(ctx, request),
    events: (request) => events(ctx, request),
    runs: (request) => runs(ctx, request),
    approvals: (request) => approvals(ctx, request),
    health: (request) => health(ctx, request),
    openResolution: (request) => openResolution(ctx, request),
    askProvider: (request) => askProvider(ctx, request),
    resolve: (request) => resolve(ctx, request),
    second: (request) => second(ctx, request),
    openReopening: (request) => openReopening(ctx, request),
    reopen: (request) => reopen(ctx, request),
    incidents: (request) => incidents(ctx, request),
    openClosing: (request) => openClosing(ctx, request),
    closeIncident: (request) => closeIncident(ctx, request),
    freeze: (request) => freeze(ctx, request),
    thaw: (request) => thaw(ctx, request),
    secondThaw: (request) => secondThaw(ctx, request),
    home: (request) => home(ctx, request),
    resolution: async (id) => {
      const row = await getResolution(ctx.db, id);
      return row === null ? null : resolutionView(row);
    },
    freezeState: (kind) => freezeState(ctx, kind),
  };
}
