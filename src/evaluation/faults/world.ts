/**
 * The world of the matrix: a ledger's database, a payment provider with a database of its own, and one time for both that moves
 * only when it is told to.
 */
import { createServer } from "node:http";
import { buffer } from "node:stream/consumers";
import { setClockOffset } from "../../db/clock.js";
import { type Db, type OpenDb, openDb } from "../../db/connect.js";
import type { Clock, Ids } from "../../domain/ports/clock.js";
import type { Logger } from "../../domain/ports/logger.js";
import { createPayments, type Payments } from "../../payments/index.js";
import { activatePolicy, readPolicyText } from "../../policy/index.js";
import { type PaymentsControl, startPaymentsSandbox } from "../../sandbox/payments/index.js";
import { importShop } from "../../shop/index.js";
import { CAPTURED_MINOR, CURRENCY, MATRIX_POLICY } from "./premises.js";

/** What the command or the test hands in. */
export interface MatrixPorts {
  readonly ids: Ids;
  readonly clock: Clock;
  readonly log: Logger;
}

export interface World {
  readonly db: Db;
  readonly ports: MatrixPorts;
  readonly control: PaymentsControl;
  /** The provider's base URL and key, for arms that speak HTTP themselves. */
  readonly wire: { readonly url: string; readonly secretKey: string };
  readonly provider: Payments;
  /** The same adapter against a port where nobody listens. */
  readonly unreachable: Payments;
  /** Milliseconds by which this world is ahead of the machine. Only grows. */
  elapsedMs(): number;
  /** Lets time pass for ledger and provider alike; what was to happen meanwhile happens at its moment. */
  advance(ms: number): Promise<void>;
  /** Something that happens by itself in so many milliseconds. */
  later(ms: number, happens: () => Promise<void>): void;
  /** Forgets what was still to come. */
  forgetLater(): void;
  /** Commits everything that the provider still holds back. */
  hurryProvider(): Promise<void>;
  /** Who hears the provider's webhooks of what happens from now on, answering with a status; null: none is sent. */
  onWebhook(hear: Hear | null): Promise<void>;
  /** An order with a captured payment at the shop and at the provider. */
  newPayment(): Promise<{ orderRef: string; paymentIntent: string }>;
  close(): Promise<void>;
}

export interface WorldOptions {
  readonly ports: MatrixPorts;
  /** A migrated database for the ledger, and any database for the provider. */
  readonly ledgerUrl: string;
  readonly providerUrl: string;
}

const SECRET_KEY = "sk_test_matrix";
/** Reserved and never listened on: connections to it are refused. */
const CLOSED_PORT_URL = "http://127.0.0.1:1";
/** Orders are imported in batches ahead of their use. */
const BATCH = 100;
export const CUSTOMER_REF = "CUS-1";
export const WEBHOOK_SECRET = "whsec_matrix";

interface Coming {
  readonly atMs: number;
  readonly happens: () => Promise<void>;
}

export async function openWorld(options: WorldOptions): Promise<World> {
  const { ports } = options;
  const clock = lazyClock(
    openDb({ url: options.ledgerUrl, applicationName: "countersign-faults", poolSize: 6 }),
  );
  const { db } = clock;
  const sandbox = await startPaymentsSandbox({
    databaseUrl: options.providerUrl,
    port: 0,
    secretKey: SECRET_KEY,
    clock: () => ports.clock.now().getTime(),
    seed: "matrix",
  });
  const { control } = sandbox;
  const hooks = await listenForWebhooks();
  const adapter = (apiUrl: string): Payments =>
    createPayments({ secretKey: SECRET_KEY, apiUrl, clock: ports.clock });
  const provider = adapter(sandbox.url);
  const unreachable = adapter(CLOSED_PORT_URL);
  await activatePolicy(db, readPolicyText(MATRIX_POLICY, "matrix policy"));

  let elapsed = 0;
  let coming: Coming[] = [];
  const moveTo = (toMs: number): void => {
    elapsed = toMs;
    clock.moveTo(elapsed);
    control.setClockOffsetMs(elapsed, { signatures: false });
  };
  const advance = async (ms: number): Promise<void> => {
    const target = elapsed + Math.max(0, Math.ceil(ms));
    for (;;) {
      const [next] = coming.filter(({ atMs }) => atMs <= target).sort((a, b) => a.atMs - b.atMs);
      if (next === undefined) break;
      coming = coming.filter((one) => one !== next);
      moveTo(Math.max(elapsed, next.atMs));
      await next.happens();
    }
    moveTo(target);
  };

  let orders = 0;
  const importBatch = async (): Promise<void> => {
    const from = orders;
    await importShop(
      { db, ids: ports.ids, onBelowReserved: async () => {} },
      { content: shopFile(from, BATCH, new Date(ports.clock.now().getTime() + elapsed)) },
    );
  };

  return {
    db,
    ports,
    control,
    wire: { url: sandbox.url, secretKey: SECRET_KEY },
    provider,
    unreachable,
    elapsedMs: () => elapsed,
    advance,
    later: (ms, happens) => {
      coming.push({ atMs: elapsed + ms, happens });
    },
    forgetLater: () => {
      coming = [];
    },
    hurryProvider: () => control.hurry(),
    onWebhook: async (hear) => {
      hooks.hear(hear);
      if (hear !== null) await control.forgetWebhooks();
      control.setWebhook(hear === null ? null : { url: hooks.url, secret: WEBHOOK_SECRET });
    },
    newPayment: async () => {
      if (orders % BATCH === 0) await importBatch();
      const { orderRef, paymentIntent } = names(orders);
      orders += 1;
      await control.seedPayment({ paymentIntent, amount: CAPTURED_MINOR, currency: CURRENCY });
      return { orderRef, paymentIntent };
    },
    close: async () => {
      await Promise.all([provider.close(), unreachable.close()]);
      await sandbox.stop();
      await hooks.close();
      await db.close();
    },
  };
}

/** The ledger's database, which hears of the time that has passed when it is next asked: most arms never ask it. */
function lazyClock(raw: OpenDb): { readonly db: OpenDb; moveTo(offsetMs: number): void } {
  let behind: number | null = null;
  let catchingUp: Promise<void> = Promise.resolve();
  const inTime = (): Promise<void> => {
    if (behind !== null) {
      const offsetMs = behind;
      behind = null;
      catchingUp = catchingUp.then(() => setClockOffset(raw, offsetMs));
    }
    return catchingUp;
  };
  return {
    db: {
      ...raw,
      sql: async (name, text, params) => {
        await inTime();
        return raw.sql(name, text, params);
      },
      tx: async (work, txOptions) => {
        await inTime();
        return raw.tx(work, txOptions);
      },
    },
    moveTo: (offsetMs) => {
      behind = offsetMs;
    },
  };
}

const names = (n: number): { orderRef: string; paymentIntent: string } => ({
  orderRef: `ORD-${n}`,
  paymentIntent: `pi_matrix_${n}`,
});

function shopFile(from: number, count: number, now: Date): object {
  return {
    customers: [{ ref: CUSTOMER_REF, name: "Alice", email: "alice@shop.example" }],
    orders: Array.from({ length: count }, (_, index) => {
      const { orderRef, paymentIntent } = names(from + index);
      return {
        ref: orderRef,
        customer: CUSTOMER_REF,
        status: "delivered",
        currency: CURRENCY,
        placedAt: now.toISOString(),
        deliveredAt: now.toISOString(),
        items: [{ ref: `${orderRef}-1`, sku: "S", name: "Thing", quantity: 1, unitAmount: CAPTURED_MINOR }],
        payment: { paymentIntent, captured: CAPTURED_MINOR },
      };
    }),
  };
}

type Hear = (body: Buffer, signature: string | undefined) => Promise<number>;

interface Hooks {
  readonly url: string;
  hear(hear: Hear | null): void;
  close(): Promise<void>;
}

const ACKNOWLEDGED = 200;
const FAILED = 500;

async function listenForWebhooks(): Promise<Hooks> {
  let listener: Hear | null = null;
  const server = createServer((incoming, answer) => {
    const signature = incoming.headers["stripe-signature"];
    buffer(incoming)
      .then((body) => listener?.(body, typeof signature === "string" ? signature : undefined))
      .then(
        (status) => answer.writeHead(status ?? ACKNOWLEDGED).end(),
        () => answer.writeHead(FAILED).end(),
      );
  });
  await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("the webhook listener has no port");
  return {
    url: `http://127.0.0.1:${address.port}/webhooks`,
    hear: (hear) => {
      listener = hear;
    },
    close: () =>
      new Promise((closed) => {
        server.close(() => closed());
        server.closeAllConnections();
      }),
  };
}
