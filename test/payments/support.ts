/** The payments sandbox for a test file: a database of its own, emptied before each test; its clients and a receiver. */
import { readFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import { join } from "node:path";
import { Ajv2020, type ValidateFunction } from "ajv/dist/2020.js";
import pg from "pg";
import Stripe from "stripe";
import { afterAll, beforeAll, beforeEach, inject } from "vitest";
import {
  type PaymentsSandbox,
  type PaymentsSandboxOptions,
  startPaymentsSandbox,
} from "../../src/sandbox/payments/index.js";
import { withDatabaseName } from "../support/global-setup.js";

export const SECRET_KEY = "sk_test_sandbox";
export const WEBHOOK_SECRET = "whsec_sandbox";

let counter = 0;

export interface SandboxUnderTest {
  readonly sandbox: PaymentsSandbox;
  readonly databaseUrl: string;
}

/** Call at the top of a test file. */
export function withPaymentsSandbox(options: Partial<PaymentsSandboxOptions> = {}): SandboxUnderTest {
  const server = inject("server");
  counter += 1;
  const name = `${server.prefix}_pay_${process.pid}_${counter}`;
  const databaseUrl = withDatabaseName(server.adminUrl, name);
  let sandbox: PaymentsSandbox | undefined;
  const opened = (): PaymentsSandbox => {
    if (sandbox === undefined)
      throw new Error("withPaymentsSandbox(): it exists only inside tests and hooks");
    return sandbox;
  };
  beforeAll(async () => {
    await execute(server.adminUrl, `CREATE DATABASE ${name}`);
    sandbox = await startPaymentsSandbox({ databaseUrl, port: 0, secretKey: SECRET_KEY, ...options });
  });
  beforeEach(async () => {
    const { control } = opened();
    control.setWebhook(null);
    control.webhookMode({ paused: false, extraCopies: 0, delayMs: 0, order: "created" });
    control.setClockOffsetMs(0);
    await control.reset();
  });
  afterAll(async () => {
    await sandbox?.stop();
    await execute(server.adminUrl, `DROP DATABASE IF EXISTS ${name} WITH (FORCE)`);
  });
  return {
    get sandbox() {
      return opened();
    },
    databaseUrl,
  };
}

async function execute(url: string, statement: string): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    await client.query(statement);
  } finally {
    await client.end();
  }
}

/** The unchanged official client, as anyone would build it, with its own retries off unless asked. */
export function officialClient(port: number, config: Partial<Stripe.StripeConfig> = {}): Stripe {
  return new Stripe(SECRET_KEY, {
    host: "127.0.0.1",
    port,
    protocol: "http",
    maxNetworkRetries: 0,
    telemetry: false,
    ...config,
  });
}

export type SchemaName = "refund" | "refund_list" | "create_request" | "create_headers" | "error_envelope";

/** Validators of the handed schema by the name of the definition. */
export function schemaValidator(dir: string): (name: SchemaName, value: unknown) => string[] {
  const schema: unknown = JSON.parse(readFileSync(join(dir, "refund.schema.json"), "utf8"));
  const ajv = new Ajv2020({ strict: false, allErrors: true });
  const { $id } = schema as { $id: string };
  ajv.addSchema(schema as object);
  const compiled = new Map<SchemaName, ValidateFunction>();
  return (name, value) => {
    const validate = compiled.get(name) ?? ajv.compile({ $ref: `${$id}#/$defs/${name}` });
    compiled.set(name, validate);
    return validate(value)
      ? []
      : (validate.errors ?? []).map((error) => `${error.instancePath} ${error.message}`);
  };
}

export interface ReceivedWebhook {
  signature: string | null;
  body: string;
  type: string;
  id: string;
}

export interface WebhookReceiver {
  url: string;
  received: ReceivedWebhook[];
  /** Status for the next answers; 200 when the list is empty. */
  answers: number[];
  close(): Promise<void>;
}

/** An endpoint that keeps what it gets. */
export async function startReceiver(): Promise<WebhookReceiver> {
  const received: ReceivedWebhook[] = [];
  const answers: number[] = [];
  const server: Server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      const body = Buffer.concat(chunks).toString("utf8");
      const header = request.headers["stripe-signature"];
      const { type, id } = JSON.parse(body) as { type: string; id: string };
      received.push({ signature: typeof header === "string" ? header : null, body, type, id });
      response.writeHead(answers.shift() ?? 200).end();
    });
  });
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("no port");
  return {
    url: `http://127.0.0.1:${address.port}/webhooks/stripe`,
    received,
    answers,
    close: () =>
      new Promise((done) => {
        server.close(() => done());
        server.closeAllConnections();
      }),
  };
}
