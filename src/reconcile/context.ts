/** What the room needs from outside. */
import type { DispatchCtx } from "../dispatch/index.js";

export interface ReconcileCtx extends DispatchCtx {
  readonly reconcile: {
    /** Attempts after which an open outcome is no longer sent again. */
    readonly maxAttempts: number;
    /** Operations that one process looks at in parallel. */
    readonly concurrency: number;
    /** How far back the orphan sweep reads the provider's list, milliseconds. */
    readonly orphanWindowMs: number;
    /** A confirmed operation is missed at the provider only after this long, milliseconds: lists lag. */
    readonly orphanLagMs: number;
  };
}

/** Which operations: those of the sweep's window, or all of one payment. */
export type MissingScope = { readonly since: Date } | { readonly paymentIntent: string };
