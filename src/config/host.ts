/** What the demo takes from its surroundings: the machine's own variables, ports, and the planner's key. */
import { z } from "zod";
import { ConfigError, environment } from "./parse.js";

const HOST_VARIABLES = ["PATH", "HOME", "TMPDIR", "SYSTEMROOT", "LANG"] as const;
const PLANNER_VARIABLES = [
  "PLANNER",
  "ANTHROPIC_API_KEY",
  "ANTHROPIC_BASE_URL",
  "ANTHROPIC_MODEL",
  "LOG_LEVEL",
] as const;

/** The machine's own variables, for the environment of a child process. Nothing of ours. */
export const hostEnvironment = (): Record<string, string> => pick(HOST_VARIABLES);

/** The demo's planner: the real model when there is a key for it, the scripted one otherwise. */
export function plannerEnvironment(): Record<string, string> {
  const found = pick(PLANNER_VARIABLES);
  return found["ANTHROPIC_API_KEY"] === undefined ? { PLANNER: "scripted", ...found } : found;
}

function pick(names: readonly string[]): Record<string, string> {
  const source = environment();
  const found: Record<string, string> = {};
  for (const name of names) {
    const value = source[name];
    if (value !== undefined && value !== "") found[name] = value;
  }
  return found;
}

const PORT_WORDS = "must be a whole number from 1 to 65535 in digits";
const port = (fallback: number) =>
  z
    .string()
    .regex(/^\d{1,5}$/, PORT_WORDS)
    .transform(Number)
    .refine((number) => number >= 1 && number <= 65_535, PORT_WORDS)
    .default(fallback);

const demoSchema = z.object({
  DEMO_PORT: port(4010),
  DEMO_PAYMENTS_PORT: port(4011),
  DEMO_PRODUCT_PORT: port(4012),
  DEMO_DATABASE_SERVER_URL: z.url().optional(),
});

export interface DemoEnvironment {
  slackPort: number;
  paymentsPort: number;
  productPort: number;
  /** A PostgreSQL server to use instead of the embedded one. */
  databaseServerUrl?: string;
}

/** Ports of the demo. @throws ConfigError naming every bad variable */
export function demoEnvironment(): DemoEnvironment {
  const parsed = demoSchema.safeParse(pick(Object.keys(demoSchema.shape)));
  if (!parsed.success) {
    throw new ConfigError(parsed.error.issues.map((issue) => `${issue.path.join(".")}: ${issue.message}`));
  }
  const { DEMO_PORT, DEMO_PAYMENTS_PORT, DEMO_PRODUCT_PORT, DEMO_DATABASE_SERVER_URL } = parsed.data;
  return {
    slackPort: DEMO_PORT,
    paymentsPort: DEMO_PAYMENTS_PORT,
    productPort: DEMO_PRODUCT_PORT,
    ...(DEMO_DATABASE_SERVER_URL === undefined ? {} : { databaseServerUrl: DEMO_DATABASE_SERVER_URL }),
  };
}
