export { ConfigError, type Environment, environment, parseConfig, sealsIfSet } from "./parse.js";
export { Secret } from "./secret.js";
export type {
  BudgetConfig,
  CommonConfig,
  Config,
  DatabaseConfig,
  LogLevel,
  PaymentsConfig,
  PlannerConfig,
  SealsConfig,
  Section,
  SlackEnvironment,
  TimingConfig,
} from "./types.js";
