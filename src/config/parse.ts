/**
 * The environment, parsed once at start. The only reader of `process.env`.
 *
 * Invariants
 *  1. Every bad or missing variable is named in one error, with what it should be; the values of secrets are not shown.
 *  2. An empty variable counts as unset.
 *  3. A secret may come from a file: NAME_FILE holds the path (Docker and Kubernetes secrets). Both set is an error.
 */
import { readFileSync } from "node:fs";
import type { z } from "zod";
import * as field from "./fields.js";
import { Secret } from "./secret.js";
import {
  type BudgetConfig,
  type CommonConfig,
  type Config,
  type DatabaseConfig,
  LOG_LEVELS,
  type LogLevel,
  type PaymentsConfig,
  type PlannerConfig,
  type SealsConfig,
  type Section,
  type Sections,
  type SlackEnvironment,
  type TimingConfig,
} from "./types.js";

export type Environment = Readonly<Record<string, string | undefined>>;

const DEFAULT_MODEL = "claude-sonnet-5-5";
const DEFAULT_POOL_SIZE = 10;
const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;

/** All that is wrong with the environment, at once. The command line answers with exit code 2. */
export class ConfigError extends Error {
  readonly code = "bad_configuration";
  readonly retry = "never";
  readonly problems: readonly string[];
  constructor(problems: readonly string[]) {
    super(`the configuration cannot be used:\n${problems.map((problem) => `  ${problem}`).join("\n")}`);
    this.name = "ConfigError";
    this.problems = problems;
  }
}

/** The environment of this process, for whoever hands a changed copy to a child or to `parseConfig`. */
export function environment(): Environment {
  return process.env;
}

/**
 * Parses what is common and the sections named in `needs`. `hearsSlack` (true): what Slack delivers comes to this process, which takes
 * one of the two secrets that prove it; a process that only sends needs neither.
 *
 * @throws ConfigError naming every bad variable
 */
export function parseConfig<N extends Section>(
  needs: readonly N[],
  env: Environment = environment(),
  { hearsSlack = true }: { readonly hearsSlack?: boolean } = {},
): Config<N> {
  const reader = new Reader(env);
  const common = readCommon(reader);
  const sections: Partial<Sections> = {
    ...(needs.includes("database" as N) ? { database: readDatabase(reader) } : {}),
    ...(needs.includes("slack" as N) ? { slack: readSlack(reader, hearsSlack) } : {}),
    ...(needs.includes("payments" as N) ? { payments: readPayments(reader) } : {}),
    ...(needs.includes("seals" as N) ? { seals: readSeals(reader) } : {}),
  };
  if (reader.problems.length > 0) throw new ConfigError(reader.problems);
  // Without a problem, every needed section was read; `Reader` returns placeholders only beside a problem.
  return { ...common, ...sections, warnings: reader.warnings } as Config<N>;
}

/**
 * What decisions are sealed with, for a command that can do without; null: nothing is set.
 *
 * @throws ConfigError naming every bad variable
 */
export function sealsIfSet(env: Environment = environment()): SealsConfig | null {
  const reader = new Reader(env);
  const token = reader.optionalSecret("SLACK_BOT_TOKEN", field.secret);
  const own = reader.optionalSecret("SEAL_SECRET", field.sealSecret);
  if (reader.problems.length > 0) throw new ConfigError(reader.problems);
  return own === null && token === null ? null : parseConfig(["seals"], env).seals;
}

function readCommon(reader: Reader): CommonConfig {
  return {
    redisUrl: reader.optionalSecret("REDIS_URL", field.redisUrl),
    policyFile: reader.value("POLICY_FILE", field.text, "policy.yaml"),
    port: reader.value("PORT", field.integer(0, 65_535), 3000),
    planner: readPlanner(reader),
    timing: readTiming(reader),
    budgets: readBudgets(reader),
    logLevel: reader.oneOf<LogLevel>("LOG_LEVEL", LOG_LEVELS, "info"),
    traceEndpoint: reader.value<string | null>("OTEL_EXPORTER_OTLP_ENDPOINT", field.baseUrl, null),
    failpoints: reader.value("COUNTERSIGN_FAILPOINTS", field.text, ""),
    warnings: [],
  };
}

function readDatabase(reader: Reader): DatabaseConfig {
  return {
    url: reader.secret("DATABASE_URL", field.postgresUrl, "the PostgreSQL to use, 13 or newer"),
    poolSize: reader.value("DATABASE_POOL_SIZE", field.integer(2, 500), DEFAULT_POOL_SIZE),
    appRolePassword: reader.optionalSecret("APP_ROLE_PASSWORD", field.secret),
  };
}

function readSlack(reader: Reader, hears: boolean): SlackEnvironment {
  const botToken = reader.secret(
    "SLACK_BOT_TOKEN",
    field.slackToken("xoxb"),
    "the bot token (xoxb-…) of the Slack app",
  );
  const signingSecret = reader.optionalSecret("SLACK_SIGNING_SECRET", field.secret);
  const appToken = reader.optionalSecret("SLACK_APP_TOKEN", field.slackToken("xapp"));
  if (
    hears &&
    signingSecret === null &&
    appToken === null &&
    !reader.failed("SLACK_SIGNING_SECRET", "SLACK_APP_TOKEN")
  ) {
    reader.problem(
      "SLACK_SIGNING_SECRET or SLACK_APP_TOKEN is missing: set the first to receive over HTTP, the second (xapp-…) for Socket Mode",
    );
  }
  if (hears && signingSecret !== null && appToken !== null) {
    reader.warnings.push("SLACK_APP_TOKEN and SLACK_SIGNING_SECRET are both set: Socket Mode is used");
  }
  const channel = (name: string, use: string): string =>
    reader.required(name, field.channelId, "", `the id of the channel ${use}`);
  return {
    botToken,
    transport: transportOf(signingSecret, appToken, hears),
    apiUrl: reader.value("SLACK_API_URL", field.slackApiUrl, "https://slack.com/api/"),
    channels: {
      tickets: channel("SLACK_TICKETS_CHANNEL", "where tickets are filed"),
      approvals: channel("SLACK_APPROVALS_CHANNEL", "where approvals are asked for"),
      ops: channel("SLACK_OPS_CHANNEL", "of on-call"),
    },
  };
}

function transportOf(
  signingSecret: Secret | null,
  appToken: Secret | null,
  hears: boolean,
): SlackEnvironment["transport"] {
  if (appToken !== null) return { mode: "socket", appToken };
  if (signingSecret !== null || hears)
    return { mode: "http", signingSecret: signingSecret ?? new Secret("") };
  return { mode: "none" };
}

function readPayments(reader: Reader): PaymentsConfig {
  return {
    secretKey: reader.secret(
      "STRIPE_SECRET_KEY",
      field.secret,
      "the secret key (sk_…) of the Stripe account",
    ),
    webhookSecret: reader.secret(
      "STRIPE_WEBHOOK_SECRET",
      field.secret,
      "the webhook's signing secret (whsec_…)",
    ),
    apiUrl: reader.value("STRIPE_API_URL", field.baseUrl, "https://api.stripe.com"),
  };
}

/** Whoever lets money leave by people's decisions, in whichever role, must know theirs from made up ones. */
function readSeals(reader: Reader): SealsConfig {
  const own = reader.optionalSecret("SEAL_SECRET", field.sealSecret);
  const accepted = reader.optionalSecret("SEAL_SECRETS_ACCEPTED", field.sealSecrets);
  const secret = own ?? reader.sealingToken();
  return {
    secret: secret ?? new Secret(""),
    accepted: (accepted?.reveal() ?? "")
      .split(",")
      .map((each) => each.trim())
      .filter((each) => each !== "")
      .map((each) => new Secret(each)),
  };
}

function readPlanner(reader: Reader): PlannerConfig {
  const apiKey = reader.optionalSecret("ANTHROPIC_API_KEY", field.secret);
  const baseUrl = reader.value<string | null>("ANTHROPIC_BASE_URL", field.baseUrl, null);
  const model = reader.value("ANTHROPIC_MODEL", field.text, DEFAULT_MODEL);
  const wanted = reader.oneOf("PLANNER", ["scripted", "model", ""] as const, "");
  if (wanted === "scripted") return { kind: "scripted" };
  if (apiKey !== null) return { kind: "messages-api", apiKey, baseUrl, model };
  return {
    kind: "none",
    whatToSet: "No model is configured: set ANTHROPIC_API_KEY, or PLANNER=scripted to run without a model.",
  };
}

function readTiming(reader: Reader): TimingConfig {
  const ms = (name: string, byDefault: number): number => reader.value(name, field.milliseconds(), byDefault);
  const timing: TimingConfig = {
    providerTimeoutMs: ms("PROVIDER_TIMEOUT_MS", 10_000),
    providerKeyTtlMs: ms("PROVIDER_KEY_TTL_MS", 24 * HOUR_MS),
    reconcileEveryMs: ms("RECONCILE_EVERY_MS", 15_000),
    reconcileBaseMs: ms("RECONCILE_BASE_MS", 2_000),
    reconcileMaxMs: ms("RECONCILE_MAX_MS", 15 * MINUTE_MS),
    quarantineAfterMs: ms("QUARANTINE_AFTER_MS", HOUR_MS),
    quarantineRepostMs: ms("QUARANTINE_REPOST_MS", HOUR_MS),
    leaseMs: ms("LEASE_MS", 30_000),
  };
  if (timing.reconcileBaseMs > timing.reconcileMaxMs) {
    reader.problem("RECONCILE_BASE_MS must not be greater than RECONCILE_MAX_MS");
  }
  if (timing.leaseMs <= timing.providerTimeoutMs) {
    reader.warnings.push(
      "LEASE_MS is not greater than PROVIDER_TIMEOUT_MS: a slow answer will find its lease lost and be reconciled",
    );
  }
  return timing;
}

function readBudgets(reader: Reader): BudgetConfig {
  return {
    runMaxSteps: reader.value("RUN_MAX_STEPS", field.integer(1, 1000), 12),
    runMaxOutputTokens: reader.value("RUN_MAX_OUTPUT_TOKENS", field.integer(1, 1_000_000), 1024),
    runMaxCostMicroUsd: reader.value<bigint | null>("RUN_MAX_COST_USD", field.usd, null),
    dailyMaxCostMicroUsd: reader.value<bigint | null>("DAILY_MAX_COST_USD", field.usd, null),
    modelPrices: reader.value<BudgetConfig["modelPrices"]>("MODEL_PRICES", field.modelPrices, []),
    runDeadlineMs: reader.value("RUN_DEADLINE_MS", field.milliseconds(), 10 * MINUTE_MS),
  };
}

/** Reads variables and gathers what is wrong instead of stopping at the first; a placeholder stands in for a bad value. */
class Reader {
  readonly problems: string[] = [];
  readonly warnings: string[] = [];
  readonly #env: Environment;
  readonly #failed = new Set<string>();

  constructor(env: Environment) {
    this.#env = env;
  }

  problem(sentence: string): void {
    this.problems.push(sentence);
  }

  failed(...names: readonly string[]): boolean {
    return names.some((name) => this.#failed.has(name));
  }

  value<T>(name: string, schema: z.ZodType<T, string>, byDefault: T): T {
    const raw = this.#raw(name);
    return raw === undefined ? byDefault : this.#parse(name, schema, raw, byDefault);
  }

  required<T>(name: string, schema: z.ZodType<T, string>, placeholder: T, what: string): T {
    const raw = this.#raw(name);
    if (raw === undefined) {
      this.#fail(name, `${name} is missing: ${what}`);
      return placeholder;
    }
    return this.#parse(name, schema, raw, placeholder);
  }

  oneOf<T extends string>(name: string, allowed: readonly T[], byDefault: T): T {
    const raw = this.#raw(name);
    if (raw === undefined) return byDefault;
    const found = allowed.find((one) => one === raw);
    if (found === undefined) {
      this.#fail(name, `${name} must be one of ${allowed.filter((one) => one !== "").join(", ")}`);
    }
    return found ?? byDefault;
  }

  secret(name: string, schema: z.ZodType<string, string>, what: string): Secret {
    const raw = this.#rawSecret(name);
    if (raw === undefined) {
      if (!this.failed(name)) this.#fail(name, `${name} is missing: ${what}`);
      return new Secret("");
    }
    return new Secret(this.#parse(name, schema, raw, ""));
  }

  optionalSecret(name: string, schema: z.ZodType<string, string>): Secret | null {
    const raw = this.#rawSecret(name);
    return raw === undefined ? null : new Secret(this.#parse(name, schema, raw, ""));
  }

  /** The bot's token, which seals where nothing else is set; null: its absence is told. */
  sealingToken(): Secret | null {
    if (this.failed("SEAL_SECRET", "SLACK_BOT_TOKEN")) return null;
    const token = this.optionalSecret("SLACK_BOT_TOKEN", field.secret);
    if (token === null && !this.failed("SLACK_BOT_TOKEN")) {
      this.#fail(
        "SEAL_SECRET",
        "SEAL_SECRET or SLACK_BOT_TOKEN is missing: decisions are sealed with it, and none counts without",
      );
    }
    return token;
  }

  #raw(name: string): string | undefined {
    const raw = this.#env[name]?.trim();
    return raw === "" ? undefined : raw;
  }

  #rawSecret(name: string): string | undefined {
    const direct = this.#raw(name);
    const file = this.#raw(`${name}_FILE`);
    if (file === undefined) return direct;
    if (direct !== undefined) {
      this.#fail(name, `${name} and ${name}_FILE are both set: keep one`);
      return undefined;
    }
    try {
      const content = readFileSync(file, "utf8").trim();
      if (content !== "") return content;
      this.#fail(name, `${name}_FILE names an empty file (${file})`);
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      this.#fail(name, `${name}_FILE cannot be read (${file}: ${code ?? "unknown error"})`);
    }
    return undefined;
  }

  #parse<T>(name: string, schema: z.ZodType<T, string>, raw: string, placeholder: T): T {
    const result = schema.safeParse(raw);
    if (result.success) return result.data;
    this.#fail(name, `${name} ${result.error.issues[0]?.message ?? "is malformed"}`);
    return placeholder;
  }

  #fail(name: string, sentence: string): void {
    this.#failed.add(name);
    this.problems.push(sentence);
  }
}
