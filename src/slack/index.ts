/** The Slack room: what the composition root and the workers use. */
export type {
  HttpRoutes,
  SlackConfig,
  SlackContext,
  SlackHandle,
  SlackHealth,
  SlackIdentity,
  SlackMetrics,
  SlackSendContext,
} from "./types.js";
export { SILENT_METRICS } from "./types.js";
export type * from "./use-cases.js";
export { createSlackWeb, type SlackWeb } from "./web.js";
