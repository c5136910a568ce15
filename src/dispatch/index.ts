/**
 * Dispatch: a prepared operation becomes an effect, once; what the provider says becomes evidence.
 * Knows adapters only through ports.
 */

export { maybeAliveAgain, reportAliveAgain } from "./alive-again.js";
export type { DispatchCtx, LocalEffect } from "./context.js";
export { contradictRejected } from "./contradicted.js";
export { drive } from "./drive.js";
export { reportDuplicate } from "./duplicate.js";
export { effectEvidence } from "./effect-evidence.js";
export { judgeBesideWord, judgeNamed, seeGiven } from "./on-word.js";
export { lookAtParked } from "./parked.js";
export { probe, refreshBalance } from "./probe.js";
export { type Probe, read as readProvider } from "./read.js";
export { sendClaimed } from "./send.js";
export { reportChanged, tellUnrecordable } from "./stop.js";
export { takeBack } from "./taken-back.js";
export { tellOpen } from "./tell-open.js";
export { cannotBeRecorded } from "./unrecorded.js";
export { dueWebhooks, processWebhook, type StoredWebhook, storeWebhook } from "./webhooks.js";
