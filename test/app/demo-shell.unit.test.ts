/** What the demo prints for another terminal is enough to drive a ticket from there. */
import { expect, test } from "vitest";
import { shellVariables } from "../../src/app/demo/index.js";
import { parseConfig } from "../../src/config/index.js";

const WORLD = {
  DATABASE_URL: "postgresql://u:p@127.0.0.1:5432/countersign",
  SLACK_BOT_TOKEN: "xoxb-sandbox",
  STRIPE_API_URL: "http://127.0.0.1:4011",
  STRIPE_SECRET_KEY: "sk_test_sandbox",
  STRIPE_WEBHOOK_SECRET: "whsec_sandbox",
  POLICY_FILE: "policies/default.yaml",
};

test("the line that the demo prints is all that `run` needs", () => {
  const printed = shellVariables({ env: WORLD });
  const pairs = printed.split(" ").map((pair) => pair.split("=", 2) as [string, string]);
  expect(() => parseConfig(["database", "payments", "seals"], Object.fromEntries(pairs))).not.toThrow();
});
