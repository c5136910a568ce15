import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { inspect } from "node:util";
import { describe, expect, it } from "vitest";
import { ConfigError, type Environment, parseConfig, sealsIfSet } from "../../src/config/index.js";

const WHOLE: Environment = {
  DATABASE_URL: "postgresql://u:planted-db@db:5432/shop",
  SLACK_BOT_TOKEN: "xoxb-planted-bot",
  SLACK_SIGNING_SECRET: "planted-signing",
  SLACK_TICKETS_CHANNEL: "C1",
  SLACK_APPROVALS_CHANNEL: "C2",
  SLACK_OPS_CHANNEL: "C3",
  STRIPE_SECRET_KEY: "sk_test_planted",
  STRIPE_WEBHOOK_SECRET: "whsec_planted",
};
const ALL = ["database", "slack", "payments"] as const;

const problemsOf = (env: Environment, needs: Parameters<typeof parseConfig>[0] = ALL): readonly string[] => {
  try {
    parseConfig(needs, env);
  } catch (error) {
    if (error instanceof ConfigError) return error.problems;
    throw error;
  }
  return [];
};

describe("what is missing or malformed", () => {
  it("an empty environment names every variable that start needs in one error", () => {
    const text = problemsOf({}).join("\n");
    for (const name of [
      "DATABASE_URL",
      "SLACK_BOT_TOKEN",
      "SLACK_SIGNING_SECRET or SLACK_APP_TOKEN",
      "SLACK_TICKETS_CHANNEL",
      "SLACK_APPROVALS_CHANNEL",
      "SLACK_OPS_CHANNEL",
      "STRIPE_SECRET_KEY",
      "STRIPE_WEBHOOK_SECRET",
    ]) {
      expect(text).toContain(name);
    }
    expect(problemsOf({})).toHaveLength(8);
  });

  it("a process that only sends to Slack needs no secret of Slack's deliveries, and everything else", () => {
    const sends = (env: Environment) => parseConfig(ALL, env, { hearsSlack: false });
    const { SLACK_SIGNING_SECRET: _unset, ...without } = WHOLE;
    expect(sends(without).slack.transport).toEqual({ mode: "none" });
    expect(problemsOf(without)).toEqual([expect.stringContaining("SLACK_SIGNING_SECRET or SLACK_APP_TOKEN")]);
    expect(sends(WHOLE).slack.transport.mode).toBe("http");
    expect(sends({ ...WHOLE, SLACK_APP_TOKEN: "xapp-1" }).warnings).toEqual([]);
    expect(() => sends({})).toThrow(
      /DATABASE_URL.*SLACK_BOT_TOKEN.*SLACK_OPS_CHANNEL.*STRIPE_WEBHOOK_SECRET/su,
    );
    expect(() => sends({})).not.toThrow(/SLACK_SIGNING_SECRET/u);
    expect(() => sends({ ...without, SLACK_APP_TOKEN: "xoxb-bot" })).toThrow(/SLACK_APP_TOKEN must be/u);
  });

  it("a token of another kind is named beside everything else that is bad", () => {
    const problems = problemsOf({ ...WHOLE, SLACK_BOT_TOKEN: "bad", PORT: "none", STRIPE_SECRET_KEY: "" });
    expect(problems.map((problem) => problem.split(" ")[0]).sort()).toEqual([
      "PORT",
      "SLACK_BOT_TOKEN",
      "STRIPE_SECRET_KEY",
    ]);
    expect(problems).toContain("SLACK_BOT_TOKEN must be a token that begins with xoxb-");
  });

  it("a command that needs only the database does not ask for Slack or Stripe", () => {
    expect(problemsOf({}, ["database"])).toEqual([expect.stringContaining("DATABASE_URL")]);
    expect(problemsOf({}, [])).toEqual([]);
  });

  it.each([
    ["PORT", "99999"],
    ["PORT", "3000x"],
    ["LEASE_MS", "30s"],
    ["LEASE_MS", "0"],
    ["PROVIDER_TIMEOUT_MS", "1e4"],
    ["RECONCILE_MAX_MS", "-1"],
    ["RUN_MAX_STEPS", "0"],
    ["RUN_MAX_COST_USD", "$5"],
    ["DAILY_MAX_COST_USD", "0.0000001"],
    ["LOG_LEVEL", "loud"],
    ["PLANNER", "scriptd"],
    ["REDIS_URL", "localhost:6379"],
    ["DATABASE_URL", "mysql://x/y"],
    ["SLACK_API_URL", "slack.com/api"],
    ["STRIPE_API_URL", "ftp://x"],
    ["SLACK_OPS_CHANNEL", "#ops"],
    ["SLACK_BOT_TOKEN", "xoxb with blanks"],
    ["SLACK_BOT_TOKEN", "bad"],
    ["SLACK_APP_TOKEN", "xoxb-bot"],
  ])("%s=%s is refused by name, alone", (name, value) => {
    const problems = problemsOf({ ...WHOLE, [name]: value });
    expect(problems).toHaveLength(1);
    expect(problems[0]).toContain(name);
  });

  it("all malformed ones are named at once, and no secret's value is in the message", () => {
    const problems = problemsOf({
      ...WHOLE,
      PORT: "x",
      LEASE_MS: "y",
      STRIPE_SECRET_KEY: "sk_live planted",
      DATABASE_URL: "planted-db-password",
    });
    expect(problems).toHaveLength(4);
    expect(problems.join("\n")).not.toContain("planted");
  });

  it("an empty variable counts as unset", () => {
    expect(parseConfig(ALL, { ...WHOLE, PORT: "", REDIS_URL: " " })).toMatchObject({
      port: 3000,
      redisUrl: null,
    });
    expect(problemsOf({ ...WHOLE, SLACK_OPS_CHANNEL: "" })).toEqual([
      expect.stringContaining("SLACK_OPS_CHANNEL is missing"),
    ]);
  });
});

describe("what is chosen", () => {
  it("defaults are the documented ones", () => {
    const config = parseConfig(ALL, WHOLE);
    expect(config.timing).toEqual({
      providerTimeoutMs: 10_000,
      providerKeyTtlMs: 86_400_000,
      reconcileEveryMs: 15_000,
      reconcileBaseMs: 2_000,
      reconcileMaxMs: 900_000,
      quarantineAfterMs: 3_600_000,
      quarantineRepostMs: 3_600_000,
      leaseMs: 30_000,
    });
    expect(config.budgets).toMatchObject({
      runMaxSteps: 12,
      runMaxOutputTokens: 1024,
      runMaxCostMicroUsd: null,
    });
    expect(config).toMatchObject({
      port: 3000,
      policyFile: "policy.yaml",
      logLevel: "info",
      redisUrl: null,
      warnings: [],
    });
    expect(config.slack.apiUrl).toBe("https://slack.com/api/");
    expect(config.payments.apiUrl).toBe("https://api.stripe.com");
  });

  it("the app token chooses Socket Mode, the signing secret HTTP; both are said to be ambiguous", () => {
    const http = parseConfig(["slack"], WHOLE);
    expect(http.slack.transport.mode).toBe("http");
    const socket = parseConfig(["slack"], { ...WHOLE, SLACK_SIGNING_SECRET: "", SLACK_APP_TOKEN: "xapp-1" });
    expect(socket.slack.transport.mode).toBe("socket");
    const both = parseConfig(["slack"], { ...WHOLE, SLACK_APP_TOKEN: "xapp-1" });
    expect(both.slack.transport.mode).toBe("socket");
    expect(both.warnings).toHaveLength(1);
  });

  it("bases are brought to one form: Slack's with a slash, the others without", () => {
    const config = parseConfig(ALL, {
      ...WHOLE,
      SLACK_API_URL: "http://h:1/api",
      STRIPE_API_URL: "http://h:2/",
    });
    expect(config.slack.apiUrl).toBe("http://h:1/api/");
    expect(config.payments.apiUrl).toBe("http://h:2");
  });

  it("the planner is the model with a key, scripted when asked for, else a sentence that says what to set", () => {
    expect(parseConfig([], { ANTHROPIC_API_KEY: "k" }).planner.kind).toBe("messages-api");
    expect(parseConfig([], { ANTHROPIC_API_KEY: "k", PLANNER: "scripted" }).planner.kind).toBe("scripted");
    const none = parseConfig([], {}).planner;
    expect(none.kind === "none" && none.whatToSet).toContain("ANTHROPIC_API_KEY");
  });

  it("dollars become exact micro dollars", () => {
    const { budgets } = parseConfig([], { RUN_MAX_COST_USD: "0.10", DAILY_MAX_COST_USD: "145.05" });
    expect(budgets).toMatchObject({ runMaxCostMicroUsd: 100_000n, dailyMaxCostMicroUsd: 145_050_000n });
  });

  it("prices of models are exact and in the order given", () => {
    const { budgets } = parseConfig([], { MODEL_PRICES: "claude-sonnet-5-5=3/15, claude-haiku=0.8/4.25" });
    expect(budgets.modelPrices).toEqual([
      { model: "claude-sonnet-5-5", inputMicroUsd: 3_000_000n, outputMicroUsd: 15_000_000n },
      { model: "claude-haiku", inputMicroUsd: 800_000n, outputMicroUsd: 4_250_000n },
    ]);
    expect(() => parseConfig([], { MODEL_PRICES: "claude=3" })).toThrow(/MODEL_PRICES must be like/);
  });

  it("a lease shorter than the provider's timeout is allowed, and said", () => {
    expect(parseConfig([], { LEASE_MS: "2000" }).warnings).toEqual([expect.stringContaining("LEASE_MS")]);
  });
});

describe("secrets", () => {
  it("never print: not as text, JSON or in an inspector", () => {
    const config = parseConfig(ALL, {
      ...WHOLE,
      ANTHROPIC_API_KEY: "planted-key",
      REDIS_URL: "redis://:planted@h:1",
    });
    const shown = [
      inspect(config, { depth: 9, showHidden: true }),
      JSON.stringify(config, (_key, value: unknown) => (typeof value === "bigint" ? String(value) : value)),
      `${config.database.url} ${config.slack.botToken}`,
    ].join("\n");
    expect(shown).not.toContain("planted");
    expect(config.database.url.reveal()).toBe(WHOLE["DATABASE_URL"]);
  });

  it("of the seals is the bot's token, or one of its own; others are accepted beside it", () => {
    const seals = (env: Environment) => {
      const { secret, accepted } = parseConfig(["seals"], env).seals;
      return [secret, ...accepted].map((each) => each.reveal());
    };
    const own = "planted-seal-".repeat(3);
    expect(seals(WHOLE)).toEqual(["xoxb-planted-bot"]);
    expect(seals({ ...WHOLE, SEAL_SECRET: own })).toEqual([own]);
    const accepted = "xoxb-planted-bot-before , planted-seal-of-long-ago";
    expect(seals({ SEAL_SECRET: own, SEAL_SECRETS_ACCEPTED: accepted })).toEqual([
      own,
      "xoxb-planted-bot-before",
      "planted-seal-of-long-ago",
    ]);
    expect(problemsOf({}, ["seals"])).toEqual([
      "SEAL_SECRET or SLACK_BOT_TOKEN is missing: decisions are sealed with it, and none counts without",
    ]);
    expect(problemsOf({ ...WHOLE, SEAL_SECRET: "short" }, ["seals"])).toEqual([
      "SEAL_SECRET must have at least 32 characters",
    ]);
    expect(problemsOf({ ...WHOLE, SEAL_SECRETS_ACCEPTED: `${own},x` }, ["seals"])).toEqual([
      expect.stringMatching(/^SEAL_SECRETS_ACCEPTED must be secrets/u),
    ]);
    // Beside everything else that start needs, a missing token is named once, in every role.
    const { SLACK_BOT_TOKEN: _, ...without } = WHOLE;
    for (const hearsSlack of [true, false])
      expect(() => parseConfig([...ALL, "seals"], without, { hearsSlack })).toThrow(
        /^the configuration cannot be used:\n {2}SLACK_BOT_TOKEN is missing: [^\n]*$/u,
      );
  });

  it("of the seals may be left out of a command that only checks them", () => {
    expect(sealsIfSet({})).toBeNull();
    expect(sealsIfSet(WHOLE)?.secret.reveal()).toBe("xoxb-planted-bot");
    expect(() => sealsIfSet({ SEAL_SECRET: "short" })).toThrow(ConfigError);
  });

  it("may come from a file; both ways at once, or an unreadable file, is named", () => {
    const folder = mkdtempSync(join(tmpdir(), "countersign-config-"));
    try {
      const file = join(folder, "token");
      writeFileSync(file, "xoxb-from-file\n");
      const { SLACK_BOT_TOKEN: _, ...rest } = WHOLE;
      const config = parseConfig(ALL, { ...rest, SLACK_BOT_TOKEN_FILE: file });
      expect(config.slack.botToken.reveal()).toBe("xoxb-from-file");
      expect(problemsOf({ ...WHOLE, SLACK_BOT_TOKEN_FILE: file })).toEqual([
        expect.stringContaining("both set"),
      ]);
      expect(problemsOf({ ...rest, SLACK_BOT_TOKEN_FILE: join(folder, "none") })).toEqual([
        expect.stringContaining("ENOENT"),
      ]);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});
