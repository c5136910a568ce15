/**
 * The product against a payments stand-in that misbehaves in ways nobody listed. Whatever it does: at most one effect, one key and
 * one body, and the ledger's statement is true, or says that it does not know and has asked a person.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { systemClock } from "../../src/app/system.js";
import type { ProviderEffect } from "../../src/domain/evidence.js";
import type { OperationId } from "../../src/domain/ids.js";
import type { Operation } from "../../src/domain/operation.js";
import { listIncidents } from "../../src/ledger/index.js";
import { createPayments, type Payments } from "../../src/payments/index.js";
import { type ReconcileCtx, reconcileOne, sweepOrphans } from "../../src/reconcile/index.js";
import { signatureHeader } from "../../src/sandbox/payments/index.js";
import { type CaseWorld, withCaseWorld } from "../cases/case-world.js";
import { SECRET_KEY, WEBHOOK_SECRET, withPaymentsSandbox } from "../payments/support.js";
import { withDatabase } from "../support/database.js";
import { effectFor } from "../support/ledger-world.js";
import { type End, MISBEHAVIOURS } from "./manners.js";
import { type HostileProvider, type Manners, startHostileProvider, type WireRefund } from "./provider.js";

const database = withDatabase({ reset: "never" });
const build = withCaseWorld(withPaymentsSandbox());
const AMOUNT = 2_000;

let provider: HostileProvider;
let client: Payments;
let w: CaseWorld;
beforeAll(async () => {
  provider = await startHostileProvider();
  client = createPayments({ secretKey: SECRET_KEY, apiUrl: provider.url, clock: systemClock });
  w = await build(database.db);
});
afterAll(async () => {
  await client.close();
  await provider.close();
});

const worker = (timeoutMs: number): ReconcileCtx => {
  const ctx = w.worker("w");
  return { ...ctx, provider: client, timing: { ...ctx.timing, providerTimeoutMs: timeoutMs } };
};

const LETTERS: Partial<Record<Operation["status"], End>> = {
  CONFIRMED: "C",
  REJECTED: "R",
  VOIDED: "V",
  QUARANTINED: "Q",
};

let orders = 0;
const freshOrder = async (): Promise<{ ref: string; paymentIntent: string }> => {
  orders += 1;
  const order = { ref: `ORD-H${orders}`, paymentIntent: `pi_h${orders}`, captured: 18_000 };
  await w.order(order);
  return order;
};

const elsewhere = async (paymentIntent: string): Promise<number> => {
  const [row] = await w.db.sql<{ elsewhere: number }>(
    undefined,
    "SELECT refunded_elsewhere::int AS elsewhere FROM payments WHERE payment_intent = $1",
    [paymentIntent],
  );
  return row?.elsewhere ?? Number.NaN;
};

describe("a provider of bad manners", () => {
  it.each(MISBEHAVIOURS)("$what", async ({ manners, ends, timeoutMs = 3_000 }) => {
    const { ref, paymentIntent } = await freshOrder();
    provider.misbehave(paymentIntent, manners);
    const id = await w.prepared(ref, BigInt(AMOUNT));
    const operation = await w.work(worker(timeoutMs), id);

    const effects = provider.effects(paymentIntent);
    expect(effects.length, "effects at the provider").toBeLessThanOrEqual(1);
    const posts = provider.posts(paymentIntent);
    expect(new Set(posts.map(({ key }) => key)).size, "keys").toBe(1);
    expect(new Set(posts.map(({ body }) => body)).size, "bodies").toBe(1);
    expect(ends, `${operation.status} ${operation.quarantineReason ?? operation.result?.detail}`).toContain(
      LETTERS[operation.status],
    );
    const balance = await w.balance(ref);
    switch (operation.status) {
      case "CONFIRMED":
        expect(effects[0]).toMatchObject({ id: operation.providerRef, amount: AMOUNT });
        expect(balance).toMatchObject({ reserved: 0, refunded: AMOUNT });
        break;
      case "QUARANTINED":
        expect(balance).toMatchObject({ reserved: AMOUNT, refunded: 0 });
        break;
      default:
        expect(effects).toEqual([]);
        expect(balance).toMatchObject({ reserved: 0, refunded: 0 });
    }
  });
});

describe("what an answer or a list says against the ledger", () => {
  it("an answer that names another operation's refund, without our mark, confirms nothing", async () => {
    const first = await freshOrder();
    const done = await w.work(worker(3_000), await w.prepared(first.ref, BigInt(AMOUNT)));
    expect(done.status).toBe("CONFIRMED");
    const second = await freshOrder();
    provider.misbehave(second.paymentIntent, {
      commits: false,
      post: ({ json }) =>
        json(200, {
          ...provider.effects(first.paymentIntent)[0],
          payment_intent: second.paymentIntent,
          metadata: {},
        }),
    });

    const operation = await w.work(worker(3_000), await w.prepared(second.ref, BigInt(AMOUNT)));

    expect(operation).toMatchObject({ status: "QUARANTINED", providerRef: null });
    expect(provider.effects(second.paymentIntent)).toEqual([]);
    expect(await w.balance(second.ref)).toMatchObject({ reserved: AMOUNT, refunded: 0 });
  });

  it("a refund under a rejected operation's id opens the case again when the books are compared", async () => {
    const { ref, paymentIntent } = await freshOrder();
    provider.misbehave(paymentIntent, {
      post: ({ json }) => json(400, { error: { type: "invalid_request_error", code: "charge_disputed" } }),
      list: ({ json }) => json(200, { object: "list", has_more: false, data: [] }),
    });
    const id = await w.prepared(ref, BigInt(AMOUNT));
    expect((await w.work(worker(3_000), id)).status).toBe("REJECTED");
    expect(provider.effects(paymentIntent)).toHaveLength(1);

    provider.misbehave(paymentIntent, {});
    provider.misbehave("", {
      list: ({ json }) =>
        json(200, { object: "list", has_more: false, data: provider.effects(paymentIntent) }),
    });
    const ctx = worker(3_000);
    expect(await sweepOrphans(ctx)).toMatchObject({ read: true, effects: 1, orphans: 1 });
    expect(await sweepOrphans(ctx)).toMatchObject({ orphans: 0 });

    expect(await w.now(id)).toMatchObject({ status: "QUARANTINED" });
    expect(await w.balance(ref)).toMatchObject({ reserved: AMOUNT, refunded: 0 });
    expect(await elsewhere(paymentIntent)).toBe(0);
    const incidents = await listIncidents(w.db, { limit: 50 });
    expect(incidents.rows.filter(({ operationId }) => operationId === id).map(({ kind }) => kind)).toEqual([
      "contradiction",
    ]);
    // Whoever looks next reads it and confirms what is there.
    expect(await reconcileOne(ctx, id, "evidence")).toMatchObject({ status: "CONFIRMED" });
    expect(await w.balance(ref)).toMatchObject({ reserved: 0, refunded: AMOUNT });
  });

  it.each(["OUTCOME_UNKNOWN", "QUARANTINED"])(
    "another refund under every name at each reading makes nobody read without an end (%s)",
    async (status) => {
      const { ref, paymentIntent } = await freshOrder();
      const ids: string[] = [];
      let lists = 0;
      const invented = (): WireRefund[] =>
        ids.map((id, at) => ({
          id: `re_${ref}_${lists}_${at}`,
          object: "refund",
          amount: AMOUNT + at,
          currency: "gbp",
          payment_intent: paymentIntent,
          status: "pending",
          metadata: { operation_id: id },
          created: Math.floor(Date.now() / 1000),
        }));
      provider.misbehave(paymentIntent, {
        commits: false,
        list: ({ json }) => {
          lists += 1;
          json(200, { object: "list", has_more: false, data: invented() });
        },
      });
      const calm = worker(3_000);
      const ctx: ReconcileCtx = {
        ...calm,
        timing: {
          ...calm.timing,
          reconcileBaseMs: 3_600_000,
          reconcileMaxMs: 36_000_000,
          quarantineAfterMs: status === "QUARANTINED" ? 0 : 3_600_000,
        },
      };
      for (const amount of [2_000n, 2_001n]) ids.push(await w.prepared(ref, amount));
      for (const id of ids as OperationId[]) await w.look(ctx, id);
      for (const id of ids as OperationId[]) await reconcileOne(ctx, id, "evidence");
      const before = lists;
      for (let round = 0; round < 30; round += 1)
        for (const id of ids as OperationId[]) await w.look(ctx, id);

      expect(lists - before).toBeLessThan(25);
      for (const id of ids as OperationId[]) expect(await w.now(id)).toMatchObject({ status });
      const open = await w.db.sql(
        undefined,
        "SELECT 1 FROM operations WHERE id = ANY($1) AND due_at IS NULL",
        [ids],
      );
      expect(open).toEqual([]);
    },
  );

  it("what cannot be written down counts as unknown, and ends with a person", async () => {
    const { ref, paymentIntent } = await freshOrder();
    const id = await w.prepared(ref, BigInt(AMOUNT));
    const ctx = worker(3_000);
    const beyond = (operation: Operation): ProviderEffect =>
      effectFor(operation, { amountMinor: 2n ** 60n, target: paymentIntent });
    const unwritable: ReconcileCtx = {
      ...ctx,
      provider: {
        ...ctx.provider,
        execute: async (operation, _request, { beforeSend }) => {
          await beforeSend();
          return {
            verdict: "postcondition_failed",
            effect: beyond(operation),
            differs: ["amount"],
            requestId: null,
          };
        },
        list: async () => ({
          read: "complete",
          effects: [beyond(await w.now(id))],
          balance: null,
          readAt: systemClock.now(),
        }),
      },
    };

    const operation = await w.work(unwritable, id);

    expect(operation).toMatchObject({ status: "QUARANTINED", attempts: 1 });
    expect(operation.quarantineReason).toBe("unknown_too_long: the provider's answer could not be recorded");
    expect(await w.balance(ref)).toMatchObject({ reserved: AMOUNT, refunded: 0 });
  });
});

describe("a confirmed refund that fails later, at a provider of other habits", () => {
  const unknownRoute: NonNullable<Manners["read"]> = ({ json }) =>
    json(404, { error: { type: "invalid_request_error", message: "Unrecognized request URL." } });
  const hear = (ctx: ReconcileCtx, refund: WireRefund): Promise<number> => {
    const body = JSON.stringify({ id: `evt_${refund.id}`, type: "refund.failed", data: { object: refund } });
    const seconds = Math.floor(systemClock.now().getTime() / 1000);
    return w.hear(ctx, Buffer.from(body), signatureHeader(body, WEBHOOK_SECRET, seconds));
  };
  const compareBooks = async (ctx: ReconcileCtx, paymentIntent: string): Promise<void> => {
    provider.misbehave("", {
      list: ({ json }) => json(200, { object: "list", has_more: false, data: provider.made(paymentIntent) }),
    });
    await w.advance(ctx.reconcile.orphanLagMs + 60_000);
    await sweepOrphans(ctx);
  };

  it.each<[string, Manners, "a webhook" | "the books"]>([
    ["ids without a prefix", { commit: (one) => ({ ...one, id: "4d1c0b1e-33c2-4d8e" }) }, "a webhook"],
    ["ids with dots and colons", { commit: (one) => ({ ...one, id: "refund:17.2" }) }, "a webhook"],
    ["no metadata", { commit: (one) => ({ ...one, id: "re_nomark", metadata: {} }) }, "a webhook"],
    ["ids that no path takes", { commit: (one) => ({ ...one, id: "re/18" }) }, "the books"],
    ["no reading of one refund", { read: unknownRoute }, "the books"],
    ["no metadata", { commit: (one) => ({ ...one, id: "re_nomark2", metadata: {} }) }, "the books"],
  ])("%s: it is taken back (%o), by %s", async (_habit, manners, teller) => {
    const { ref, paymentIntent } = await freshOrder();
    provider.misbehave(paymentIntent, manners);
    const ctx = worker(3_000);
    const id = await w.prepared(ref, BigInt(AMOUNT));
    expect(await w.work(ctx, id)).toMatchObject({ status: "CONFIRMED", attempts: 1 });
    const [refund] = provider.effects(paymentIntent);
    if (refund === undefined) throw new Error("nothing was made");
    Object.assign(refund, { status: "failed", failure_reason: "declined" });
    if (teller === "a webhook") expect(await hear(ctx, refund)).toBe(200);
    else await compareBooks(ctx, paymentIntent);

    expect(await w.now(id)).toMatchObject({ status: "REVERSED", providerRef: refund.id });
    expect(await w.balance(ref)).toMatchObject({ reserved: 0, refunded: 0 });
    expect(provider.effects(paymentIntent)).toEqual([]);
    expect(provider.posts(paymentIntent)).toHaveLength(1);
  });
});

it("the audit log of all of it verifies", () => w.intact());
