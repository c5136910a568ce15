/** What a model call is counted at: no model is free of the budget for want of a price. */
import { describe, expect, test } from "vitest";
import { choosePlanner } from "../../src/app/compose/planner.js";
import { parseConfig } from "../../src/config/index.js";

const priceOf = (env: Record<string, string>) =>
  choosePlanner(parseConfig([], { ANTHROPIC_API_KEY: "sk-ant-test", ...env })).settings.price;
const dollars = (input: bigint, output: bigint) => ({
  inputMicroUsd: input * 1_000_000n,
  outputMicroUsd: output * 1_000_000n,
});

describe("the price of a model", () => {
  test.each([
    ["claude-sonnet-5-5", dollars(3n, 15n)],
    ["claude-haiku-5-5", dollars(1n, 5n)],
    ["claude-opus-5-5", dollars(15n, 75n)],
    ["some-model-of-tomorrow", dollars(15n, 75n)],
  ])("%s has a default, an unknown one that of the dearest", (model, price) => {
    expect(priceOf({ ANTHROPIC_MODEL: model })).toEqual(price);
  });

  test("MODEL_PRICES comes before the defaults, by the beginning of the name", () => {
    const env = { ANTHROPIC_MODEL: "claude-sonnet-5-5", MODEL_PRICES: "claude-sonnet=4/20" };
    expect(priceOf(env)).toMatchObject(dollars(4n, 20n));
  });

  test("the scripted planner costs nothing", () => {
    expect(choosePlanner(parseConfig([], { PLANNER: "scripted" })).settings.price).toBeNull();
  });
});
