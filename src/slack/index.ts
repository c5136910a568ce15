/** The Slack room: what the composition root and the workers use. */

export { processInbox } from "./inbox/process.js";
export { dueArrivals, STORE_WITHIN } from "./inbox/store.js";
export { createNotices, type NoticesContext } from "./notices.js";
export { followWorld } from "./outbox/behind-world.js";
export { dueCards, renderCard } from "./outbox/card.js";
export { makeForgottenPostsDue, showUnshown } from "./outbox/forgotten.js";
export { refreshHomes } from "./outbox/home.js";
export { dueOutbox, sendOutbox } from "./outbox/send.js";
export { createDirectory, type DirectoryContext } from "./people/directory.js";
export { pruneSlack } from "./prune.js";
export { SILENT_METRICS, type SlackConfig, type SlackIdentity, type SlackMetrics } from "./settings.js";
export { type StartOptions, startSlack } from "./start.js";
export type { HttpRoutes, SlackContext, SlackHandle, SlackHealth, SlackSendContext } from "./types.js";
export type * from "./use-cases.js";
export { createSlackWeb, type SlackWeb } from "./web.js";
