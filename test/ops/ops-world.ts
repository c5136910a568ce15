/** On-call's use cases on a real database and a real provider's wire (the payments sandbox behind the official client). */
import { afterAll, beforeAll } from "vitest";
import { systemClock } from "../../src/app/system.js";
import type { Db } from "../../src/db/connect.js";
import { type DispatchCtx, drive, probe, readProvider } from "../../src/dispatch/index.js";
import type { OperationId } from "../../src/domain/ids.js";
import type { Operation, OperationStatus } from "../../src/domain/operation.js";
import { getOperation } from "../../src/ledger/index.js";
import { type OpsContext, type OpsUseCases, opsUseCases } from "../../src/ops/index.js";
import { createPayments, type Payments } from "../../src/payments/index.js";
import { type ReconcileCtx, reconcileOne } from "../../src/reconcile/index.js";
import { type Harness, harness } from "../approvals/harness.js";
import { moveClock, onlyApproval, operationAt } from "../approvals/steps.js";
import { type SandboxUnderTest, SECRET_KEY } from "../payments/support.js";

export interface OpsWorld {
  readonly h: Harness;
  readonly ops: OpsUseCases;
  readonly ctx: OpsContext;
  readonly dispatch: DispatchCtx;
  readonly reconcile: ReconcileCtx;
  /** An approved refund of `amount`, prepared. */
  prepared(amount?: bigint): Promise<OperationId>;
  /** Sent once; what the provider does is armed before. */
  sent(amount?: bigint): Promise<Operation>;
  /** Sent, its outcome unknown for too long, and nobody could be asked. */
  quarantined(amount?: bigint): Promise<Operation>;
  now(id: OperationId): Promise<Operation>;
}

const MAX_ATTEMPTS = 5;

/** Call at the top of a test file, after the sandbox. */
export function withOpsWorld(payments: SandboxUnderTest): (db: Db) => Promise<OpsWorld> {
  let client: Payments | null = null;
  beforeAll(() => {
    client = createPayments({ secretKey: SECRET_KEY, apiUrl: payments.sandbox.url, clock: systemClock });
  });
  afterAll(async () => {
    await client?.close();
  });
  return async (db) => {
    if (client === null) throw new Error("the world exists only inside tests");
    return build(await harness(db), client, payments);
  };
}

async function build(h: Harness, client: Payments, payments: SandboxUnderTest): Promise<OpsWorld> {
  await h.order({ ref: "ORD-1", captured: 100_000, paymentIntent: "pi_1" });
  await payments.sandbox.control.seedPayment({ paymentIntent: "pi_1", amount: 100_000, currency: "GBP" });
  const timing = { ...h.ctx.ledger.timing, providerTimeoutMs: 2_000, sendMarginMs: 100 };
  const dispatch: DispatchCtx = {
    ...h.ctx.ledger,
    timing,
    approvals: h.ctx,
    provider: client,
    verifyWebhook: () => ({ ok: false, reason: "no_signature" }),
    localEffect: async () => ({ ok: false, code: "none", detail: "none" }),
    log: h.ctx.log,
    worker: "test",
  };
  const reconcile: ReconcileCtx = {
    ...dispatch,
    reconcile: { maxAttempts: MAX_ATTEMPTS, concurrency: 1, orphanWindowMs: 1, orphanLagMs: 1 },
  };
  const ctx: OpsContext = {
    db: h.db,
    ledger: dispatch,
    directory: h.people,
    notices: h.ctx.notices,
    activePolicy: h.ctx.activePolicy,
    log: h.ctx.log,
    maxAttempts: MAX_ATTEMPTS,
    probe: async (operation) => (await probe(dispatch, operation)).evidence,
    read: async (operation) => (await readProvider(dispatch, operation)).evidence,
    reconcile: (id) => reconcileOne(reconcile, id, "evidence"),
    healthParts: async () => [{ name: "queue", ok: false, sentence: "The queue does not answer." }],
  };
  const now = async (id: OperationId): Promise<Operation> => {
    const operation = await getOperation(h.db, id);
    if (operation === null) throw new Error(`no operation ${id}`);
    return operation;
  };
  const prepared = async (amount = 18_000n): Promise<OperationId> => {
    const held = await h.turn(await h.ticket(), [{ order: "ORD-1", amount }]);
    if (held.approvals.length > 0) {
      await h.click("U_SUP1", onlyApproval(held));
      await h.release(held);
    }
    return operationAt(held, 0);
  };
  const sent = async (amount?: bigint): Promise<Operation> => drive(dispatch, await prepared(amount));
  return {
    h,
    ops: opsUseCases(ctx),
    ctx,
    dispatch,
    reconcile,
    prepared,
    sent,
    now,
    quarantined: async (amount) => {
      const operation = await sent(amount);
      const { control } = payments.sandbox;
      const down = control.arm({ kind: "read_down", how: "drop" });
      // The one safe try before a person is asked is lost as well.
      const lost = control.arm({ kind: "drop_before_commit", times: null });
      for (let look = 0; look < 4 && (await now(operation.id)).status !== "QUARANTINED"; look += 1) {
        await moveClock(h.db, 61 * (look + 1));
        await reconcileOne(reconcile, operation.id, "due");
      }
      await moveClock(h.db, 61 * 5);
      control.disarm(lost);
      control.disarm(down);
      return now(operation.id);
    },
  };
}

/** Throws unless the operation is where the test begins. */
export function expectStatus(operation: Operation, status: OperationStatus): Operation {
  if (operation.status !== status) throw new Error(`${operation.id} is ${operation.status}, not ${status}`);
  return operation;
}
