export { ConfigError, type Environment, environment, parseConfig } from "./parse.js";
export { Secret } from "./secret.js";
export type {
  BudgetConfig,
  CommonConfig,
  Config,
  DatabaseConfig,
  LogLevel,
  PaymentsConfig,
  PlannerConfig,
  Section,
  SlackEnvironment,
  TimingConfig,
} from "./types.js";
