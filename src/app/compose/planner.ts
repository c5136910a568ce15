/** Which planner drives the runs, and within which budgets. */
import {
  type ModelPrice,
  messagesApiPlanner,
  noPlanner,
  type Planner,
  type PlannerSettings,
  scriptedPlanner,
} from "../../agent/index.js";
import type { Config } from "../../config/index.js";
import type { RunsCtx } from "../../runs/index.js";

/**
 * Prices where MODEL_PRICES names none: millionths of a dollar for a million tokens, by the beginning of the model's name. They
 * bound budgets and are no invoice: set MODEL_PRICES to what is really charged.
 */
const PRICES: readonly (readonly [string, ModelPrice])[] = [
  ["claude-opus", { inputMicroUsd: 15_000_000n, outputMicroUsd: 75_000_000n }],
  ["claude-sonnet", { inputMicroUsd: 3_000_000n, outputMicroUsd: 15_000_000n }],
  ["claude-haiku", { inputMicroUsd: 1_000_000n, outputMicroUsd: 5_000_000n }],
];
/** An unknown model is counted as the dearest one: budgets must not be passed for want of a price. */
const UNKNOWN_PRICE: ModelPrice = { inputMicroUsd: 15_000_000n, outputMicroUsd: 75_000_000n };

const CALL_DEADLINE_MS = 120_000;
/** Longest silence inside a reply, pings included. */
const IDLE_MS = 45_000;
const RETRY_BASE_MS = 1_000;
const RETRY_MAX_MS = 60_000;
const MAX_FAILURES = 6;
/** The one larger try after a reply that was cut off. */
const LARGER = 4;

type PlannerConfig = Pick<Config, "planner" | "budgets">;

export function choosePlanner(config: PlannerConfig): { planner: Planner; settings: PlannerSettings } {
  const { planner: wanted, budgets } = config;
  const settings = (price: ModelPrice | null): PlannerSettings => ({
    maxOutputTokens: budgets.runMaxOutputTokens,
    largerOutputTokens: budgets.runMaxOutputTokens * LARGER,
    callDeadlineMs: CALL_DEADLINE_MS,
    dailyMaxMicroUsd: budgets.dailyMaxCostMicroUsd,
    price,
    retryBaseMs: RETRY_BASE_MS,
    retryMaxMs: RETRY_MAX_MS,
    maxFailures: MAX_FAILURES,
  });
  switch (wanted.kind) {
    case "scripted":
      return { planner: scriptedPlanner(), settings: settings(null) };
    case "none":
      return { planner: noPlanner(wanted.whatToSet), settings: settings(null) };
    case "messages-api":
      return {
        planner: messagesApiPlanner({
          apiKey: wanted.apiKey.reveal(),
          baseUrl: wanted.baseUrl,
          model: wanted.model,
          idleMs: IDLE_MS,
        }),
        settings: settings(priceOf(wanted.model, budgets)),
      };
  }
}

const priceOf = (model: string, { modelPrices }: PlannerConfig["budgets"]): ModelPrice =>
  modelPrices.find((price) => model.startsWith(price.model)) ??
  PRICES.find(([name]) => model.startsWith(name))?.[1] ??
  UNKNOWN_PRICE;

/** What a new run is given: planner, model, budgets. */
export function newRunSettings(config: PlannerConfig): RunsCtx["newRuns"] {
  const { planner, budgets } = config;
  return {
    planner: planner.kind,
    model: planner.kind === "messages-api" ? planner.model : null,
    budgets: {
      maxSteps: budgets.runMaxSteps,
      maxCostMicroUsd: budgets.runMaxCostMicroUsd,
      deadlineMs: budgets.runDeadlineMs,
    },
  };
}
