/** Asking the payment provider from a command that only looks: what it says is judged as everywhere, and written nowhere. */
import { ConfigError, parseConfig } from "../../config/index.js";
import type { Db } from "../../db/connect.js";
import { readProvider } from "../../dispatch/index.js";
import type { Evidence } from "../../domain/evidence.js";
import type { Operation } from "../../domain/operation.js";
import { SHOW_ASKS_MS } from "../../ops/index.js";
import { createPayments, type Payments } from "../../payments/index.js";
import { systemClock } from "../system.js";

export interface Asking {
  /** A sentence: why the provider cannot be asked from here. */
  readonly probe: ((operation: Operation) => Promise<Evidence>) | string;
  close(): Promise<void>;
}

/** With the provider of the environment, if that names one. */
export function askProvider(db: Db): Asking {
  const config = paymentsConfig();
  if (config === null) return { probe: NOT_ASKED, close: async () => {} };
  const provider = providerOf(config);
  // Nobody waits for what comes later, the program's end neither.
  const providerTimeoutMs = Math.min(config.timing.providerTimeoutMs, SHOW_ASKS_MS);
  const ctx = { db, provider, timing: { ...config.timing, providerTimeoutMs } };
  return {
    probe: async (operation) => (await readProvider(ctx, operation)).evidence,
    close: () => provider.close(),
  };
}

export const NOT_ASKED =
  "The provider was not asked: here that needs STRIPE_SECRET_KEY, STRIPE_WEBHOOK_SECRET and STRIPE_API_URL as the program has them.";

/** The provider of the environment; null: that names none. */
export function providerOfEnvironment(): Payments | null {
  const config = paymentsConfig();
  return config === null ? null : providerOf(config);
}

const providerOf = ({ payments }: NonNullable<ReturnType<typeof paymentsConfig>>): Payments =>
  createPayments({
    secretKey: payments.secretKey.reveal(),
    apiUrl: payments.apiUrl,
    clock: systemClock,
  });

function paymentsConfig() {
  try {
    return parseConfig(["payments"]);
  } catch (error) {
    if (error instanceof ConfigError) return null;
    throw error;
  }
}
