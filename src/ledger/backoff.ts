/** The ledger's backoff: base and cap from its timing, jitter from its ids. */
import { backoffMs as steps } from "../domain/backoff.js";
import type { LedgerCtx } from "./context.js";

/** Milliseconds until the next look after `tries` of them. */
export const backoffMs = (ctx: LedgerCtx, tries: number): number =>
  steps({
    baseMs: ctx.timing.reconcileBaseMs,
    maxMs: ctx.timing.reconcileMaxMs,
    tries: Math.max(0, tries - 1),
    random: ctx.ids.random(),
  });
