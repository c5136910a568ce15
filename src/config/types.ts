import type { Secret } from "./secret.js";

/** What the environment says, parsed. Durations are integer milliseconds, money is micro US dollars. */
export interface CommonConfig {
  /** BullMQ on Redis; null: on PostgreSQL. */
  readonly redisUrl: Secret | null;
  /** Path of the policy file, as given. */
  readonly policyFile: string;
  readonly port: number;
  readonly planner: PlannerConfig;
  readonly timing: TimingConfig;
  readonly budgets: BudgetConfig;
  readonly logLevel: LogLevel;
  /** Base of an OpenTelemetry collector (OTLP over HTTP); null: no traces. */
  readonly traceEndpoint: string | null;
  /** `name=kill@2,…` for crash tests; empty in production. */
  readonly failpoints: string;
  /** Things that are allowed but probably not meant; to be logged once at start. */
  readonly warnings: readonly string[];
}

/** Parts that only some commands need; `parseConfig` is told which. */
export interface Sections {
  readonly database: DatabaseConfig;
  readonly slack: SlackEnvironment;
  readonly payments: PaymentsConfig;
  readonly seals: SealsConfig;
}
export type Section = keyof Sections;

/** What `parseConfig` returns for the sections asked for. */
export type Config<N extends Section = Section> = CommonConfig & Pick<Sections, N>;

/** What decisions are sealed with. */
export interface SealsConfig {
  /** SEAL_SECRET, or the bot's token where that is not set. */
  readonly secret: Secret;
  /** Others whose seals hold as well, while one secret takes another's place. */
  readonly accepted: readonly Secret[];
}

export interface DatabaseConfig {
  readonly url: Secret;
  /** Connections of one process. */
  readonly poolSize: number;
  /** Password of the role that `migrate --app-role` makes; null: the role is there. */
  readonly appRolePassword: Secret | null;
}

export interface SlackEnvironment {
  readonly botToken: Secret;
  readonly transport:
    | { readonly mode: "http"; readonly signingSecret: Secret }
    | { readonly mode: "socket"; readonly appToken: Secret }
    /** Neither is set, in a process that does not hear Slack. */
    | { readonly mode: "none" };
  /** Web API base, with its trailing slash. */
  readonly apiUrl: string;
  readonly channels: { readonly tickets: string; readonly approvals: string; readonly ops: string };
}

export interface PaymentsConfig {
  readonly secretKey: Secret;
  readonly webhookSecret: Secret;
  /** Base without a trailing slash. */
  readonly apiUrl: string;
}

export type PlannerConfig =
  | { readonly kind: "scripted" }
  | {
      readonly kind: "messages-api";
      readonly apiKey: Secret;
      /** null: the client's own default. */
      readonly baseUrl: string | null;
      readonly model: string;
    }
  /** Runs end `failed` with this sentence. */
  | { readonly kind: "none"; readonly whatToSet: string };

export interface TimingConfig {
  readonly providerTimeoutMs: number;
  readonly providerKeyTtlMs: number;
  readonly reconcileEveryMs: number;
  readonly reconcileBaseMs: number;
  readonly reconcileMaxMs: number;
  readonly quarantineAfterMs: number;
  readonly quarantineRepostMs: number;
  readonly leaseMs: number;
}

export interface ModelPriceConfig {
  readonly model: string;
  readonly inputMicroUsd: bigint;
  readonly outputMicroUsd: bigint;
}

export interface BudgetConfig {
  readonly runMaxSteps: number;
  /** Of one model call. */
  readonly runMaxOutputTokens: number;
  /** null: no limit. */
  readonly runMaxCostMicroUsd: bigint | null;
  readonly dailyMaxCostMicroUsd: bigint | null;
  /** Active time; waiting for people does not count. */
  readonly runDeadlineMs: number;
  /** MODEL_PRICES: by the beginning of the model's name, micro US dollars for a million tokens; the first that fits. */
  readonly modelPrices: readonly ModelPriceConfig[];
}

export const LOG_LEVELS = ["trace", "debug", "info", "warn", "error", "fatal", "silent"] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];
