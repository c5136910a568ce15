/** The adapter against the payments sandbox: each fault gets the verdict that is true of it, and the provider's count agrees. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { AttemptOutcome } from "../../src/domain/evidence.js";
import type { Operation } from "../../src/domain/operation.js";
import { createPayments, type Payments } from "../../src/payments/index.js";
import type { FaultSpec } from "../../src/sandbox/payments/index.js";
import { aCancellation, anOperation } from "./operation.js";
import { officialClient, SECRET_KEY, withPaymentsSandbox } from "./support.js";

const under = withPaymentsSandbox();
const NOW = new Date("2026-11-29T12:00:00Z");
let payments: Payments;
let operation: Operation;

beforeAll(() => {
  payments = createPayments({ secretKey: SECRET_KEY, apiUrl: under.sandbox.url, clock: { now: () => NOW } });
});
afterAll(() => payments.close());
beforeEach(async () => {
  operation = anOperation();
  await under.sandbox.control.seedPayment({ paymentIntent: "pi_1", amount: 10_000, currency: "GBP" });
  await under.sandbox.control.seedSubscription({ id: "sub_1" });
});

const execute = (of = operation, timeoutMs = 30_000, key = of.idempotencyKey): Promise<AttemptOutcome> =>
  payments.execute(of, payments.buildRequest(of), {
    idempotencyKey: key,
    timeoutMs,
    beforeSend: async () => {},
  });

const list = (of = operation) => payments.list(of, { timeoutMs: 30_000 });
const counts = () => under.sandbox.control.counts();

test("a refund is committed, and the same key replays it", async () => {
  const first = await execute();
  expect(first).toMatchObject({
    verdict: "committed",
    replayed: false,
    effect: {
      kind: "refund",
      target: "pi_1",
      amountMinor: 2_000n,
      currency: "GBP",
      status: "succeeded",
      operationId: operation.id,
    },
  });
  const again = await execute();
  expect(again).toMatchObject({ verdict: "committed", replayed: true });
  expect(again.verdict === "committed" && first.verdict === "committed" && again.effect.ref).toBe(
    first.verdict === "committed" ? first.effect.ref : "",
  );
  expect(await counts()).toMatchObject({ committed: 1, duplicates: 0, posts: 2 });
});

describe("faults of the answer: committed at the provider, unknown to us, found by reading", () => {
  test.each<[FaultSpec, string]>([
    [{ kind: "commit_then_drop" }, "connection_lost"],
    [{ kind: "commit_then_drop", close: "close" }, "connection_lost"],
    [{ kind: "commit_then_500" }, "provider_error"],
    [{ kind: "commit_then_stall" }, "body_stalled"],
    [{ kind: "commit_then_cut" }, "body_cut"],
    [{ kind: "commit_then_garbage" }, "unreadable_answer"],
    [{ kind: "commit_then_garbage", status: 502 }, "unreadable_answer"],
    [{ kind: "commit_then_hang", delayMs: 60_000 }, "timeout"],
  ])("%o", async (fault, code) => {
    const id = under.sandbox.control.arm(fault);
    // Only what never ends is given up early.
    const timeoutMs = code === "timeout" || code === "body_stalled" ? 400 : 30_000;
    expect(await execute(operation, timeoutMs)).toMatchObject({ verdict: "unknown", code });
    expect(under.sandbox.control.fired(id)).toBe(1);
    expect(await counts()).toMatchObject({ committed: 1, posts: 1 });
    expect(await list()).toMatchObject({
      read: "complete",
      readAt: NOW,
      effects: [{ operationId: operation.id, status: "succeeded", amountMinor: 2_000n }],
    });
  });

  test("a 500 after the commit is replayed under its key: the list knows better", async () => {
    under.sandbox.control.arm({ kind: "commit_then_500" });
    await execute();
    expect(await execute()).toMatchObject({ verdict: "unknown", code: "provider_error" });
    expect(await list()).toMatchObject({ effects: [{ operationId: operation.id }] });
    expect((await counts()).committed).toBe(1);
  });
});

describe("nothing was committed", () => {
  test("dropped before the commit: unknown to us, and the list is empty", async () => {
    under.sandbox.control.arm({ kind: "drop_before_commit" });
    expect(await execute()).toMatchObject({ verdict: "unknown", code: "connection_lost" });
    expect(await list()).toMatchObject({ read: "complete", effects: [] });
    expect(await execute()).toMatchObject({ verdict: "committed", replayed: false });
    expect((await counts()).committed).toBe(1);
  });

  test.each(["lock_timeout", "rate_limit"] as const)(
    "429 %s: proven not executed, may be tried again",
    async (code) => {
      under.sandbox.control.arm({ kind: "rate_limited", code, times: 2, retryAfterSeconds: 3 });
      expect(await execute()).toMatchObject({ verdict: "not_executed", code, retryAfterMs: 3_000 });
      expect(await execute()).toMatchObject({ verdict: "not_executed", code });
      expect(await execute()).toMatchObject({ verdict: "committed", replayed: false });
      expect((await counts()).committed).toBe(1);
    },
  );

  test.each<[string, number, string | null, FaultSpec | null]>([
    ["charge_disputed", 400, "charge_disputed", null],
    [
      "charge_already_refunded",
      400,
      "charge_already_refunded",
      { kind: "refuse", code: "charge_already_refunded" },
    ],
    [
      "a declined card",
      402,
      "card_declined",
      { kind: "refuse", code: "card_declined", status: 402, type: "card_error" },
    ],
    ["no permission", 403, "forbidden", { kind: "refuse", code: null, status: 403 }],
    ["a bad key", 401, "unauthorized", { kind: "refuse", code: null, status: 401 }],
    ["an unknown payment", 404, "resource_missing", null],
    ["more than is left", 400, "amount_not_available", null],
  ])("%s: rejected with its code", async (what, httpStatus, code, fault) => {
    const { control } = under.sandbox;
    if (fault !== null) control.arm(fault);
    if (what === "charge_disputed") await control.dispute("pi_1");
    const of =
      what === "an unknown payment"
        ? anOperation({ paymentIntent: "pi_none" })
        : what === "more than is left"
          ? anOperation({ amountMinor: 10_001n })
          : operation;
    const outcome = await execute(of);
    expect(outcome).toMatchObject({ verdict: "rejected", code, httpStatus });
    expect(outcome.verdict === "rejected" && outcome.detail.length).toBeGreaterThan(10);
    expect(await counts()).toMatchObject({ committed: 0, posts: 1 });
  });
});

describe("the key", () => {
  test("in use while the first request still runs: unknown; the late commit is found under the same key", async () => {
    const { control } = under.sandbox;
    control.arm({ kind: "late_commit", delayMs: 300, answer: "409" });
    expect(await execute()).toMatchObject({
      verdict: "unknown",
      code: "idempotency_key_in_use",
      httpStatus: 409,
    });
    expect(await list()).toMatchObject({ effects: [] });
    expect(await execute()).toMatchObject({ verdict: "unknown", code: "idempotency_key_in_use" });
    await control.settle();
    expect(await execute()).toMatchObject({ verdict: "committed", replayed: true });
    expect((await counts()).committed).toBe(1);
  });

  test("with other parameters: unknown, never rejected, and it says what differed", async () => {
    await execute();
    const other = anOperation({ amountMinor: 1_500n });
    const outcome = await execute(other, 30_000, operation.idempotencyKey);
    expect(outcome).toMatchObject({ verdict: "unknown", code: "idempotency_error", httpStatus: 400 });
    expect(outcome.verdict === "unknown" && outcome.detail).toMatch(/amount/);
    expect((await counts()).committed).toBe(1);
  });

  test("a refusal that the provider kept is replayed as such: it is the answer to every attempt", async () => {
    await under.sandbox.control.dispute("pi_1");
    const first = await execute();
    expect(first).toMatchObject({ verdict: "rejected", code: "charge_disputed" });
    expect(first).not.toHaveProperty("replayed");
    await under.sandbox.control.dispute("pi_1", false);
    expect(await execute()).toMatchObject({ verdict: "rejected", code: "charge_disputed", replayed: true });
    expect((await counts()).committed).toBe(0);
  });

  test("expired: the same key is a new request, which only the ledger's clock can prevent", async () => {
    await execute();
    expect(await under.sandbox.control.expireKeys()).toBe(1);
    expect(await execute()).toMatchObject({ verdict: "committed", replayed: false });
    expect(await counts()).toMatchObject({ committed: 2, duplicates: 1 });
  });

  test("the parameters leave in one order, whatever order storage gave them back in", async () => {
    const request = payments.buildRequest(operation);
    const reordered = {
      endpoint: request.endpoint,
      target: request.target,
      params: Object.fromEntries(Object.entries(request.params).reverse()),
    };
    await execute();
    expect(
      await payments.execute(operation, reordered, {
        idempotencyKey: operation.idempotencyKey,
        timeoutMs: 30_000,
        beforeSend: async () => {},
      }),
    ).toMatchObject({ verdict: "committed", replayed: true });
  });

  test("a stored request that is not this operation's is never sent", async () => {
    const foreign = payments.buildRequest(anOperation({ amountMinor: 9_000n }));
    await expect(
      payments.execute(operation, foreign, {
        idempotencyKey: operation.idempotencyKey,
        timeoutMs: 30_000,
        beforeSend: async () => {},
      }),
    ).rejects.toMatchObject({ code: "request_mismatch", retry: "never" });
    expect((await counts()).requests).toBe(0);
  });
});

describe("accepted and not done", () => {
  test("pending keeps its reason; later success is read back", async () => {
    const { control } = under.sandbox;
    control.arm({ kind: "outcome", status: "pending", pendingReason: "insufficient_funds" });
    const outcome = await execute();
    expect(outcome).toMatchObject({ verdict: "pending", reason: "insufficient_funds" });
    const ref = outcome.verdict === "pending" ? outcome.effect.ref : "";
    expect(await list()).toMatchObject({
      effects: [{ status: "pending", pendingReason: "insufficient_funds" }],
    });
    await control.advanceRefund(ref, { status: "succeeded" });
    expect(await payments.read(ref, { timeoutMs: 30_000 })).toMatchObject({
      read: "complete",
      effects: [{ ref, status: "succeeded", operationId: operation.id, target: "pi_1" }],
    });
    await control.advanceRefund(ref, { status: "failed", failureReason: "declined" });
    expect(await list()).toMatchObject({ effects: [{ ref, status: "failed", failureReason: "declined" }] });
  });

  test("requires_action is pending by that name; failed is terminal with its reason", async () => {
    const { control } = under.sandbox;
    control.arm({ kind: "outcome", status: "requires_action" });
    expect(await execute()).toMatchObject({ verdict: "pending", reason: "requires_action" });
    control.arm({ kind: "outcome", status: "failed", failureReason: "lost_or_stolen_card" });
    expect(await execute(anOperation())).toMatchObject({
      verdict: "failed_at_provider",
      code: "lost_or_stolen_card",
    });
  });

  test.each<[FaultSpec, string]>([
    [{ kind: "wrong_answer", amount: 2_100 }, "amount"],
    [{ kind: "wrong_answer", currency: "eur" }, "currency"],
    [{ kind: "wrong_answer", paymentIntent: "pi_other" }, "payment_intent"],
  ])("%o: committed, but not what was intended", async (fault, differs) => {
    const { control } = under.sandbox;
    await control.seedPayment({ paymentIntent: "pi_other", amount: 10_000, currency: "GBP" });
    control.arm(fault);
    expect(await execute()).toMatchObject({ verdict: "postcondition_failed", differs: [differs] });
    expect((await counts()).committed).toBe(1);
  });
});

describe("reading", () => {
  test("goes to the last page and keeps other payments' refunds out", async () => {
    const { control } = under.sandbox;
    await control.seedPayment({ paymentIntent: "pi_many", amount: 10_000, currency: "GBP" });
    const client = officialClient(under.sandbox.port);
    for (let i = 0; i < 105; i += 1) await client.refunds.create({ payment_intent: "pi_many", amount: 1 });
    await execute();
    const listing = await list(anOperation({ paymentIntent: "pi_many" }));
    expect(listing.read === "complete" && listing.effects.length).toBe(105);
    const pages = await control.requests({ method: "GET", path: "/v1/refunds" });
    expect(pages.map(({ params }) => params["limit"])).toEqual(["100", "100"]);
    const everything = await payments.listSince(new Date(0), { timeoutMs: 30_000 });
    expect(everything.read === "complete" && everything.effects.length).toBe(106);
  });

  test("a refund made in the dashboard is there and belongs to nobody", async () => {
    await under.sandbox.control.dashboardRefund({ paymentIntent: "pi_1", amount: 500 });
    expect(await list()).toMatchObject({ effects: [{ operationId: null, amountMinor: 500n }] });
  });

  // Of what answered with an error, on-call is not told that it does not answer.
  test.each<[FaultSpec, string, RegExp]>([
    [{ kind: "read_down", how: "500" }, "http_500", /^The provider answered with HTTP 500\.$/u],
    [
      { kind: "read_down", how: "429" },
      "rate_limit",
      /^The provider answered with HTTP 429 \(rate_limit\)\.$/u,
    ],
    [{ kind: "read_down", how: "drop" }, "unreachable", /^The provider could not be reached: .+ \(\w+\)\.$/u],
    [{ kind: "read_down", how: "hang" }, "timeout", /^The provider did not answer in time\.$/u],
    [{ kind: "read_down", how: "garbage" }, "http_502", /^The provider answered with HTTP 502\.$/u],
  ])("%o: the listing failed and is not taken for empty", async (fault, reason, sentence) => {
    under.sandbox.control.arm(fault);
    expect(await payments.list(operation, { timeoutMs: 400 })).toMatchObject({ read: "failed", reason });
    expect(await payments.ping({ timeoutMs: 400 })).toEqual({
      ok: false,
      reason: expect.stringMatching(sentence),
    });
  });

  test("a page that goes down in the middle fails the whole listing", async () => {
    const { control } = under.sandbox;
    const client = officialClient(under.sandbox.port);
    for (let i = 0; i < 101; i += 1) await client.refunds.create({ payment_intent: "pi_1", amount: 1 });
    control.arm({ kind: "read_down", how: "500", match: { method: "GET" }, times: 1 });
    expect(await list()).toMatchObject({ read: "failed" });
    expect(await list()).toMatchObject({ read: "complete" });
  });

  test("a stale read shows nothing yet; a lying one hides or invents", async () => {
    const { control } = under.sandbox;
    await execute();
    const stale = control.arm({ kind: "stale_read", lagMs: 3_600_000 });
    expect(await list()).toMatchObject({ read: "complete", effects: [] });
    expect(control.fired(stale)).toBe(1);
    control.disarmAll();
    control.arm({ kind: "lying_read", lie: "hide", times: 1 });
    expect(await list()).toMatchObject({ effects: [] });
    expect(await list()).toMatchObject({ effects: [{ operationId: operation.id }] });
    control.arm({ kind: "lying_read", lie: "invent", times: 1 });
    const invented = await list();
    expect(invented.read === "complete" && invented.effects.map(({ operationId }) => operationId)).toEqual([
      operation.id,
      operation.id,
    ]);
    expect((await counts()).committed).toBe(1);
  });

  test.each(["", " ", ".", "..", "re_1/../charges", "re_1?x=1", "re_1#x", "x".repeat(256)])(
    "the reference %j is refused before anything is asked",
    async (ref) => {
      expect(await payments.read(ref, { timeoutMs: 1_000 })).toMatchObject({
        read: "failed",
        reason: "bad_reference",
      });
      expect((await counts()).requests).toBe(0);
    },
  );

  test.each(["re_none", "4d1c0b1e-33c2-4d8e-9d2f-000000000000", "17", "refund:17.2"])(
    "a reference that the provider does not know, whatever its form (%s), is read as nothing there",
    async (ref) => {
      expect(await payments.read(ref, { timeoutMs: 30_000 })).toMatchObject({
        read: "complete",
        effects: [],
      });
    },
  );
});

describe("subscriptions", () => {
  test("cancelled at once: committed, read back, and a repeat is refused by the provider", async () => {
    const of = aCancellation(false);
    expect(await list(of)).toMatchObject({ read: "complete", effects: [] });
    expect(await execute(of)).toMatchObject({
      verdict: "committed",
      effect: { kind: "subscription_cancellation", ref: "sub_1", target: "sub_1", status: "canceled" },
    });
    expect(await execute(of)).toMatchObject({ verdict: "rejected", code: "resource_missing" });
    expect(await list(of)).toMatchObject({ effects: [{ status: "canceled" }] });
    expect(await payments.read("sub_1", { timeoutMs: 30_000 })).toMatchObject({
      effects: [{ ref: "sub_1" }],
    });
    expect((await counts()).cancellations).toBe(1);
  });

  test("cancelled at the end of the period: committed while still active", async () => {
    const of = aCancellation(true);
    expect(await execute(of)).toMatchObject({
      verdict: "committed",
      effect: { status: "cancel_at_period_end" },
    });
    expect(await execute(of)).toMatchObject({ verdict: "committed", replayed: true });
    expect((await counts()).cancellations).toBe(1);
  });

  test("cancelled at the end of the period where at once was asked: not what was intended", async () => {
    await execute(aCancellation(true));
    expect(await list(aCancellation(false))).toMatchObject({ effects: [{ status: "cancel_at_period_end" }] });
  });

  test("a lost answer to a cancellation: unknown, and the state tells", async () => {
    under.sandbox.control.arm({ kind: "commit_then_drop" });
    const of = aCancellation(false);
    expect(await execute(of)).toMatchObject({ verdict: "unknown", code: "connection_lost" });
    expect(await list(of)).toMatchObject({ effects: [{ status: "canceled" }] });
  });
});

test("an operation without a request at the provider is a mistake of ours", () => {
  expect(() => payments.buildRequest(anOperation({ kind: "cancel_order" }))).toThrow(/our own database/);
  expect(() => payments.buildRequest(anOperation({ paymentIntent: null }))).toThrow(/needs a payment/);
  expect(() => payments.buildRequest(anOperation({ amountMinor: 0n }))).toThrow(/an amount/);
});

test("yen are sent as they are", async () => {
  await under.sandbox.control.seedPayment({ paymentIntent: "pi_jp", amount: 9_899, currency: "JPY" });
  const of = anOperation({ paymentIntent: "pi_jp", amountMinor: 9_899n, currency: "JPY" });
  expect(await execute(of)).toMatchObject({
    verdict: "committed",
    effect: { amountMinor: 9_899n, currency: "JPY" },
  });
  const [request] = await under.sandbox.control.requests({ method: "POST" });
  expect(request?.params["amount"]).toBe("9899");
});
