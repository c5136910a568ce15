/**
 * The failure cases at the level of ledger, dispatch and reconciler: real database, the real adapter on the provider's wire, the
 * official client under it. Workers are contexts on the same database; time moves when a test says so, for both sides alike.
 */
import { afterAll, beforeAll } from "vitest";
import { systemClock } from "../../src/app/system.js";
import { setClockOffset } from "../../src/db/clock.js";
import type { Db } from "../../src/db/connect.js";
import { drive, processWebhook, storeWebhook } from "../../src/dispatch/index.js";
import type { OperationId } from "../../src/domain/ids.js";
import { ENDED, type Operation } from "../../src/domain/operation.js";
import {
  eventsOf,
  getOperation,
  type LedgerTiming,
  type PerCall,
  verifyAudit,
} from "../../src/ledger/index.js";
import { createPayments, createWebhookVerifier, type Payments } from "../../src/payments/index.js";
import { type ReconcileCtx, reconcileOne } from "../../src/reconcile/index.js";
import type { PaymentsControl } from "../../src/sandbox/payments/index.js";
import { outcomeOf } from "../../src/slack/cards/sentences.js";
import { readOperation } from "../../src/slack/views/operation.js";
import { type Harness, type Held, harness, type OrderSpec } from "../approvals/harness.js";
import { type Balance, balanceOf, operationAt } from "../approvals/steps.js";
import { type SandboxUnderTest, SECRET_KEY, WEBHOOK_SECRET } from "../payments/support.js";
import { SEALS } from "../support/ledger-world.js";

export interface CaseWorld {
  readonly h: Harness;
  readonly db: Db;
  readonly control: PaymentsControl;
  /** A worker's context; another name is another process. */
  worker(name: string, on?: Db): ReconcileCtx;
  /** An order at the shop and its payment at the provider. */
  order(spec: OrderSpec): Promise<void>;
  /** One ticket that asks for this refund; the turn as it was judged. */
  ask(order: string, amountMinor: bigint): Promise<Held>;
  /** As `ask`, for a refund that is allowed at once. */
  prepared(order: string, amountMinor: bigint): Promise<OperationId>;
  /** Lets time pass for ledger and provider alike. */
  advance(ms: number): Promise<void>;
  /** Whatever the operation needs now, as a worker's wake-up would. */
  look(ctx: ReconcileCtx, id: OperationId): Promise<Operation>;
  /** Looks and lets time pass until it has ended or is with a person. */
  work(ctx: ReconcileCtx, id: OperationId): Promise<Operation>;
  /** A webhook as the endpoint takes it: stored, then judged. Answers the endpoint's status. */
  hear(ctx: ReconcileCtx, body: Buffer, signature: string | undefined): Promise<number>;
  now(id: OperationId): Promise<Operation>;
  /** Statuses in the order of the operation's events. */
  path(id: OperationId): Promise<string[]>;
  balance(order: string): Promise<Balance>;
  /** Requests `POST /v1/refunds` that the provider saw, with key and body. */
  posts(): Promise<{ key: string | null; body: string; amount: unknown }[]>;
  committed(): Promise<number>;
  /** What the threads were told, in words where a row is told. */
  told(): Promise<string[]>;
  intact(): Promise<void>;
}

export const TIMING: LedgerTiming = {
  leaseMs: 30_000,
  providerTimeoutMs: 3_000,
  sendMarginMs: 500,
  reconcileBaseMs: 2_000,
  reconcileMaxMs: 900_000,
  quarantineAfterMs: 3_600_000,
  quarantineRepostMs: 3_600_000,
  prepareGraceMs: 2_000,
};
const MAX_ATTEMPTS = 8;
const MAX_LOOKS = 60;

/** Threads show a post once for each key. */
const onceByKey = <P extends { key: string }>(posts: readonly P[]): P[] =>
  posts.filter((post, index) => posts.findIndex((other) => other.key === post.key) === index);

/** Call at the top of a test file, after database and sandbox. */
export function withCaseWorld(
  payments: SandboxUnderTest,
): (db: Db, timing?: Partial<LedgerTiming>) => Promise<CaseWorld> {
  let client: Payments | null = null;
  beforeAll(() => {
    client = createPayments({ secretKey: SECRET_KEY, apiUrl: payments.sandbox.url, clock: systemClock });
  });
  afterAll(() => client?.close());
  return async (db, timing = {}) => {
    if (client === null) throw new Error("the world exists only inside tests");
    return build(await harness(db), client, payments, { ...TIMING, ...timing });
  };
}

function build(h: Harness, client: Payments, payments: SandboxUnderTest, timing: LedgerTiming): CaseWorld {
  const { control } = payments.sandbox;
  const { db } = h;
  let elapsedMs = 0;

  const worker = (name: string, on: Db = db): ReconcileCtx => {
    const approvals = on === db ? h.ctx : h.elsewhere(on);
    return {
      ...approvals.ledger,
      timing,
      approvals,
      provider: client,
      verifyWebhook: createWebhookVerifier(WEBHOOK_SECRET),
      localEffect: async () => ({ ok: false, code: "none", detail: "There are only refunds here." }),
      log: h.ctx.log,
      worker: name,
      reconcile: {
        maxAttempts: MAX_ATTEMPTS,
        concurrency: 4,
        orphanWindowMs: 3_600_000,
        orphanLagMs: 600_000,
      },
    };
  };
  const now = async (id: OperationId): Promise<Operation> => {
    const operation = await getOperation(db, id);
    if (operation === null) throw new Error(`no operation ${id}`);
    return operation;
  };
  const advance = async (ms: number): Promise<void> => {
    elapsedMs += ms;
    await setClockOffset(db, elapsedMs);
    control.setClockOffsetMs(elapsedMs, { signatures: false });
  };
  const look = async (ctx: ReconcileCtx, id: OperationId): Promise<Operation> => {
    const { status } = await now(id);
    if (status === "PREPARED") await drive(ctx, id);
    else if (status === "DISPATCHED" || status === "OUTCOME_UNKNOWN" || status === "RECONCILING") {
      await reconcileOne(ctx, id, "due");
    } else if (status === "QUARANTINED") await reconcileOne(ctx, id, "due");
    return now(id);
  };
  const dueInMs = async (id: OperationId): Promise<number> => {
    const [row] = await db.sql<{ ms: number | null }>(
      undefined,
      "SELECT CEIL(EXTRACT(EPOCH FROM (due_at - countersign_now())) * 1000)::int AS ms FROM operations WHERE id = $1",
      [id],
    );
    return Math.max(0, row?.ms ?? 0);
  };

  return {
    h,
    db,
    control,
    worker,
    now,
    advance,
    look,
    order: async (spec) => {
      await h.order(spec);
      await control.seedPayment({
        paymentIntent: spec.paymentIntent ?? `pi_${spec.ref}`,
        amount: spec.captured,
        currency: spec.currency ?? "GBP",
      });
    },
    ask: async (order, amount) => h.turn(await h.ticket(), [{ order, amount }]),
    prepared: async (order, amount) => {
      const held = await h.turn(await h.ticket(), [{ order, amount }]);
      const outcomes = held.outcomes.map((call: PerCall) => call.outcome);
      if (outcomes[0] !== "prepared") throw new Error(`not prepared: ${outcomes.join(", ")}`);
      return operationAt(held, 0);
    },
    work: async (ctx, id) => {
      for (let looks = 0; looks < MAX_LOOKS; looks += 1) {
        const operation = await look(ctx, id);
        if (ENDED.has(operation.status) || operation.status === "QUARANTINED") return operation;
        await advance(await dueInMs(id));
      }
      throw new Error(`${id} came to no end`);
    },
    hear: async (ctx, body, signature) => {
      const stored = await storeWebhook(ctx, body, signature, systemClock.now());
      if (!stored.stored) return stored.why === "forged" ? 400 : 200;
      await processWebhook(ctx, stored.eventId);
      return 200;
    },
    path: async (id) => {
      const events = await eventsOf(db, id);
      return events.flatMap((event) => (event.to === null || event.to === event.from ? [] : [event.to]));
    },
    balance: (order) => balanceOf(db, order),
    posts: async () =>
      (await control.requests({ method: "POST", path: "/v1/refunds" })).map((request) => ({
        key: request.idempotencyKey,
        body: JSON.stringify(request.params),
        amount: request.params["amount"],
      })),
    committed: async () => (await control.counts()).committed,
    told: async () =>
      Promise.all(
        onceByKey(h.shown.thread).map(async ({ message }) => {
          if (message.type !== "operation_outcome") return message.type;
          const facts = await readOperation(db, message.operationId);
          return facts === null ? "gone" : outcomeOf(facts);
        }),
      ),
    intact: async () => {
      const report = await verifyAudit(db, SEALS);
      if (report.broken.length > 0) throw new Error(JSON.stringify(report.broken));
    },
  };
}
