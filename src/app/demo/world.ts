/**
 * The world around the product on one machine: embedded PostgreSQL, the payments sandbox with a database of its own, the
 * Slack sandbox with its page. The product itself runs as another process (`product.ts`) and knows these only by its
 * environment variables, as it would know the real services.
 */
import path from "node:path";
import pg from "pg";
import { type EmbeddedPostgres, startEmbedded } from "../../db/embedded.js";
import { applyMigrations } from "../../db/migrate.js";
import type { Json } from "../../domain/json.js";
import { type PaymentsSandbox, startPaymentsSandbox } from "../../sandbox/payments/index.js";
import { type SlackSandbox, startSlackSandbox } from "../../sandbox/slack/index.js";
import type { ShopFile } from "../../shop/index.js";
import { makeFolder } from "../files.js";
import { freePort } from "./ports.js";

/** Credentials of the sandboxes. They open nothing else. */
const LOCAL_KEYS = {
  stripe: "sk_test_countersign_sandbox",
  stripeWebhook: "whsec_countersign_sandbox",
  bot: "xoxb-countersign-sandbox",
  app: "xapp-countersign-sandbox",
  signing: "countersign-sandbox-signing-secret",
} as const;

export interface WorldOptions {
  /** Everything that is kept lies here; made when missing. */
  dataDir: string;
  /** 0: any free port. */
  slackPort: number;
  paymentsPort: number;
  postgresPort: number;
  /** Of the product; 0: any free port. */
  productPort: number;
  /** A server to use instead of the embedded one; the two databases are made on it. */
  databaseServerUrl?: string;
  databaseName?: string;
  redisUrl?: string;
  transport: "socket" | "http";
  policyFile: string;
  /** Shop whose payments and subscriptions the provider knows. */
  shop: ShopFile;
  /** Variables on top of the derived ones: timing, planner. */
  extraEnv: Readonly<Record<string, string>>;
  /** Keeps the Slack workspace over a restart. */
  keepWorkspace: boolean;
  /** What the inspector of the page shows of the ledger. */
  operations?: () => Promise<Json>;
}

export interface World {
  readonly slack: SlackSandbox;
  readonly payments: PaymentsSandbox;
  readonly shop: ShopFile;
  readonly databaseUrl: string;
  readonly productPort: number;
  /** Environment for the product's process. */
  readonly env: Readonly<Record<string, string>>;
  stop(): Promise<void>;
}

/** Starts everything and applies the product's migrations. @throws with the variable to set when a port is taken */
export async function startWorld(options: WorldOptions): Promise<World> {
  makeFolder(options.dataDir);
  const stops: (() => Promise<void>)[] = [];
  try {
    const server = await databaseServer(options, stops);
    const productPort = options.productPort === 0 ? await freePort() : options.productPort;
    await applyMigrations(server.product);

    const payments = await startPaymentsSandbox({
      databaseUrl: server.payments,
      port: options.paymentsPort,
      secretKey: LOCAL_KEYS.stripe,
      webhook: { url: `http://127.0.0.1:${productPort}/webhooks/stripe`, secret: LOCAL_KEYS.stripeWebhook },
    });
    stops.push(() => payments.stop());
    await seedProvider(payments, options.shop);

    const slack = await startSlackSandbox({
      port: options.slackPort,
      seed: "countersign",
      signingSecret: LOCAL_KEYS.signing,
      botToken: LOCAL_KEYS.bot,
      appToken: LOCAL_KEYS.app,
      mode: options.transport,
      requestUrl: `http://127.0.0.1:${productPort}/slack/events`,
      rateLimits: true,
      paymentsControlUrl: payments.controlUrl,
      ...(options.keepWorkspace ? { stateFile: path.join(options.dataDir, "slack-workspace.json") } : {}),
      ...(options.operations === undefined ? {} : { productReadPort: { operations: options.operations } }),
    });
    stops.push(() => slack.stop());

    return {
      slack,
      payments,
      shop: options.shop,
      databaseUrl: server.product,
      productPort,
      env: productEnvironment(options, { slack, payments, databaseUrl: server.product }),
      stop: () => stopAll(stops),
    };
  } catch (error) {
    await stopAll(stops);
    throw error;
  }
}

function productEnvironment(
  options: WorldOptions,
  parts: { slack: SlackSandbox; payments: PaymentsSandbox; databaseUrl: string },
): Record<string, string> {
  return {
    DATABASE_URL: parts.databaseUrl,
    ...(options.redisUrl === undefined ? {} : { REDIS_URL: options.redisUrl }),
    SLACK_API_URL: parts.slack.apiUrl,
    SLACK_BOT_TOKEN: LOCAL_KEYS.bot,
    ...(options.transport === "socket"
      ? { SLACK_APP_TOKEN: LOCAL_KEYS.app }
      : { SLACK_SIGNING_SECRET: LOCAL_KEYS.signing }),
    SLACK_TICKETS_CHANNEL: "C_TICK",
    SLACK_APPROVALS_CHANNEL: "C_APPR",
    SLACK_OPS_CHANNEL: "C_OPS",
    STRIPE_SECRET_KEY: LOCAL_KEYS.stripe,
    STRIPE_API_URL: parts.payments.url,
    STRIPE_WEBHOOK_SECRET: LOCAL_KEYS.stripeWebhook,
    POLICY_FILE: options.policyFile,
    ...options.extraEnv,
  };
}

async function databaseServer(
  options: WorldOptions,
  stops: (() => Promise<void>)[],
): Promise<{ product: string; payments: string }> {
  const name = options.databaseName ?? "countersign";
  const paymentsName = `${name}_payments`;
  if (options.databaseServerUrl !== undefined) {
    const server = new URL(options.databaseServerUrl);
    await makeDatabase(server.href, name);
    await makeDatabase(server.href, paymentsName);
    return { product: withDatabase(server, name), payments: withDatabase(server, paymentsName) };
  }
  const embedded: EmbeddedPostgres = await startEmbedded({
    dataDir: path.join(options.dataDir, "postgres"),
    port: options.postgresPort,
    portVariable: "DEMO_POSTGRES_PORT",
    database: name,
  });
  stops.push(() => embedded.stop());
  await makeDatabase(embedded.url(), paymentsName);
  return { product: embedded.url(), payments: embedded.url(paymentsName) };
}

function withDatabase(server: URL, name: string): string {
  const url = new URL(server.href);
  url.pathname = `/${name}`;
  return url.href;
}

/** Makes a database unless it is there. @throws whatever the server says besides "already exists" */
async function makeDatabase(serverUrl: string, name: string): Promise<void> {
  const client = new pg.Client({ connectionString: serverUrl });
  await client.connect();
  try {
    const known = await client.query("SELECT 1 FROM pg_database WHERE datname = $1", [name]);
    if (known.rowCount === 0) await client.query(`CREATE DATABASE ${client.escapeIdentifier(name)}`);
  } finally {
    await client.end();
  }
}

async function seedProvider(payments: PaymentsSandbox, shop: ShopFile): Promise<void> {
  const known = new Set((await payments.control.payments()).map((charge) => charge.paymentIntent));
  for (const order of shop.orders) {
    if (order.payment == null || known.has(order.payment.paymentIntent)) continue;
    await payments.control.seedPayment({
      paymentIntent: order.payment.paymentIntent,
      amount: order.payment.captured,
      currency: order.currency,
    });
  }
  const subscriptions = new Set(
    (await payments.control.subscriptions()).map((subscription) => subscription.id),
  );
  for (const subscription of shop.subscriptions) {
    if (!subscriptions.has(subscription.providerRef)) {
      await payments.control.seedSubscription({ id: subscription.providerRef });
    }
  }
}

/** Stops in the reverse of the order in which things were started; the first error is told after all were tried. */
async function stopAll(stops: (() => Promise<void>)[]): Promise<void> {
  const failures: unknown[] = [];
  for (const stop of stops.splice(0).reverse()) {
    try {
      await stop();
    } catch (error) {
      failures.push(error);
    }
  }
  if (failures.length > 0) throw failures[0];
}
