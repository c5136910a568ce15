/** Reconcile: an outcome that nobody knows is read at the provider and decided by contract, never guessed. */
export { sendIfAuthorised } from "./authorised.js";
export type { ReconcileCtx } from "./context.js";
export { reconcileDue } from "./due.js";
export { remindForgotten } from "./forgotten.js";
export { reconcileOne } from "./one.js";
export { sweepOrphans } from "./orphans.js";
export { repostQuarantined } from "./repost.js";
