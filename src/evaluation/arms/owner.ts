/** The run and the ticket in whose name the matrix asks. */

import type { RunId, TicketId } from "../../domain/ids.js";
import { fileTicket, type RunsCtx, startRunIn } from "../../runs/index.js";
import type { World } from "../faults/world.js";
import { silent } from "../silent.js";

export interface Owner {
  readonly runId: RunId;
  readonly ticketId: TicketId;
}

const RUN_DEADLINE_MS = 3_600_000;

export async function fileOwner(
  world: Pick<World, "db"> & { readonly ports: Pick<World["ports"], "ids"> },
): Promise<Owner> {
  const ctx: RunsCtx = {
    db: world.db,
    ids: world.ports.ids,
    wake: async () => {},
    notices: silent,
    identify: async () => [],
    newRuns: {
      planner: "code",
      model: null,
      budgets: { maxSteps: 1, maxCostMicroUsd: null, deadlineMs: RUN_DEADLINE_MS },
    },
  };
  const filed = await fileTicket(ctx, {
    source: "cli",
    dedupeKey: world.ports.ids.next("matrix_"),
    filer: "U_AGENT",
    text: "refunds of the fault matrix",
    start: false,
  });
  const run = await world.db.tx((tx) => startRunIn(tx, ctx, { ticketId: filed.ticket.id, planner: "code" }));
  if (run === null) throw new Error("the matrix has no run");
  return { runId: run.id, ticketId: filed.ticket.id };
}
