/** Idempotency as Stripe documents it (numbers: src/sandbox/payments/pipeline.ts), and faults that really fire. */
import type Stripe from "stripe";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import {
  type FaultSpec,
  type ProviderPromises,
  startPaymentsSandbox,
} from "../../src/sandbox/payments/index.js";
import { officialClient, SECRET_KEY, withPaymentsSandbox } from "./support.js";

const under = withPaymentsSandbox({ keyTtlMs: 60_000 });
let stripe: Stripe;

beforeEach(async () => {
  stripe = officialClient(under.sandbox.port);
  await under.sandbox.control.seedPayment({ paymentIntent: "pi_1", amount: 10_000, currency: "GBP" });
});

interface Answer {
  status: number;
  replayed: boolean;
  id: string | undefined;
  type: string | undefined;
  code: string | undefined;
  originalRequest: string | null;
}

/** Straight on the wire, where the package hides what matters. */
async function post(amount: number, key: string | null, operationId = "op_1"): Promise<Answer> {
  const response = await fetch(`${under.sandbox.url}/v1/refunds`, {
    method: "POST",
    headers: {
      authorization: `Bearer ${SECRET_KEY}`,
      "content-type": "application/x-www-form-urlencoded",
      ...(key === null ? {} : { "idempotency-key": key }),
    },
    body: `payment_intent=pi_1&amount=${amount}&metadata[operation_id]=${operationId}`,
  });
  const body = (await response.json()) as { id?: string; error?: { type?: string; code?: string } };
  return {
    status: response.status,
    replayed: response.headers.get("idempotent-replayed") === "true",
    id: body.id,
    type: body.error?.type,
    code: body.error?.code,
    originalRequest: response.headers.get("original-request"),
  };
}

const committed = async (): Promise<number> => (await under.sandbox.control.counts()).committed;

describe("keys", () => {
  test("the same key replays the first answer and moves nothing (1)", async () => {
    const first = await post(100, "key-1");
    const second = await post(100, "key-1");
    expect([first.replayed, second.replayed]).toEqual([false, true]);
    expect(second.id).toBe(first.id);
    expect(second.originalRequest).toMatch(/^req_/);
    expect(await committed()).toBe(1);
  });

  test("parameters in another order are the same parameters", async () => {
    await stripe.refunds.create(
      { payment_intent: "pi_1", amount: 100, metadata: { a: "1", b: "2" } },
      { idempotencyKey: "key-1" },
    );
    const again = await stripe.refunds.create(
      { metadata: { b: "2", a: "1" }, amount: 100, payment_intent: "pi_1" },
      { idempotencyKey: "key-1" },
    );
    expect(again.lastResponse.headers["idempotent-replayed"]).toBe("true");
    expect(await committed()).toBe(1);
  });

  test("other parameters, or another endpoint, under a kept key are refused (2)", async () => {
    await post(100, "key-1");
    expect(await post(200, "key-1")).toMatchObject({ status: 400, type: "idempotency_error" });
    await under.sandbox.control.seedSubscription({ id: "sub_1" });
    const elsewhere = stripe.subscriptions.update("sub_1", {}, { idempotencyKey: "key-1" });
    await expect(elsewhere).rejects.toMatchObject({ type: "StripeIdempotencyError" });
    expect(await committed()).toBe(1);
  });

  test("a key whose request still runs is refused with 409, and the first commits once (3)", async () => {
    under.sandbox.control.arm({ kind: "hang_then_commit", delayMs: 300 });
    const first = post(100, "key-1");
    // Both leave in order on their own connections; the first one hangs, so the second is answered before it.
    await expect.poll(async () => (await under.sandbox.control.requests()).length).toBe(1);
    expect(await post(100, "key-1")).toMatchObject({ status: 409, code: "idempotency_key_in_use" });
    expect(await first).toMatchObject({ status: 200, replayed: false });
    expect(await post(100, "key-1")).toMatchObject({ status: 200, replayed: true });
    expect(await committed()).toBe(1);
  });

  test("refusals of an executed request are kept, refused parameters are not (1, 4)", async () => {
    expect(await post(10_001, "key-1")).toMatchObject({ status: 400, replayed: false });
    expect(await post(10_001, "key-1")).toMatchObject({ status: 400, replayed: true });
    expect(await post(0, "key-2")).toMatchObject({ status: 400, code: "parameter_invalid_integer" });
    expect(await post(100, "key-2")).toMatchObject({ status: 200, replayed: false });
  });

  test("a 500 after the commit is kept and replayed (1)", async () => {
    under.sandbox.control.arm({ kind: "commit_then_500" });
    expect(await post(100, "key-1")).toMatchObject({ status: 500, replayed: false });
    expect(await post(100, "key-1")).toMatchObject({ status: 500, replayed: true });
    expect(await committed()).toBe(1);
  });

  test("a key past its life is a new request (5)", async () => {
    await post(100, "key-1");
    under.sandbox.control.setClockOffsetMs(59_000);
    expect(await post(100, "key-1")).toMatchObject({ replayed: true });
    under.sandbox.control.setClockOffsetMs(61_000);
    expect(await post(100, "key-1")).toMatchObject({ status: 200, replayed: false });
    expect(await under.sandbox.control.counts()).toMatchObject({ committed: 2, duplicates: 1 });
  });

  test("no key, no protection", async () => {
    await post(100, null);
    await post(100, null);
    expect(await committed()).toBe(2);
  });

  test("the package makes a key of its own for each call, which is why ours must be given", async () => {
    await stripe.refunds.create({ payment_intent: "pi_1", amount: 1 });
    const [request] = await under.sandbox.control.requests();
    expect(request?.idempotencyKey).toMatch(/^stripe-node-retry-/);
  });

  test("a key of more than 255 characters is refused", async () => {
    expect(await post(100, "k".repeat(256))).toMatchObject({ status: 400 });
    expect(await committed()).toBe(0);
  });
});

describe("faults", () => {
  test("fire as often as armed, and say so", async () => {
    const { control } = under.sandbox;
    const id = control.arm({ kind: "rate_limited", times: 2 });
    expect([(await post(1, "a")).status, (await post(1, "b")).status, (await post(1, "c")).status]).toEqual([
      429, 429, 200,
    ]);
    expect(control.fault(id)).toMatchObject({ fired: 2, remaining: 0, armed: false });
  });

  test("a lost answer does not count where nothing was committed, and waits for the next commit", async () => {
    const { control } = under.sandbox;
    const id = control.arm({ kind: "commit_then_500" });
    expect((await post(10_001, "key-1")).status).toBe(400);
    expect(control.fired(id)).toBe(0);
    expect((await post(100, "key-2")).status).toBe(500);
    expect(control.fired(id)).toBe(1);
  });

  test.each<[string, FaultSpec, boolean]>([
    ["another payment", { kind: "rate_limited", match: { paymentIntent: "pi_2" } }, false],
    ["this payment", { kind: "rate_limited", match: { paymentIntent: "pi_1" } }, true],
    ["another operation", { kind: "rate_limited", match: { operationId: "op_2" } }, false],
    ["this operation", { kind: "rate_limited", match: { operationId: "op_1" } }, true],
    ["another path", { kind: "rate_limited", match: { path: "/v1/subscriptions/*" } }, false],
    ["a prefix of the path", { kind: "rate_limited", match: { path: "/v1/ref*" } }, true],
    ["another method", { kind: "rate_limited", match: { method: "DELETE" } }, false],
    ["this key", { kind: "rate_limited", match: { idempotencyKey: "key-1" } }, true],
  ])("are met only by what they match: %s", async (_what, fault, meets) => {
    under.sandbox.control.arm(fault);
    expect((await post(1, "key-1")).status).toBe(meets ? 429 : 200);
  });

  test("faults of reads leave writes alone, and the other way round", async () => {
    const { control } = under.sandbox;
    control.arm({ kind: "read_down" });
    expect((await post(1, "key-1")).status).toBe(200);
    control.disarmAll();
    control.arm({ kind: "drop_before_commit" });
    expect((await stripe.refunds.list()).data).toHaveLength(1);
  });

  test("two stages at once: a pending refund whose answer is lost", async () => {
    const { control } = under.sandbox;
    control.arm({ kind: "outcome", status: "pending" });
    control.arm({ kind: "commit_then_drop" });
    await expect(post(100, "key-1")).rejects.toThrow();
    expect(await control.effects()).toMatchObject([{ status: "pending" }]);
  });

  test("delivered again by the transport: harmless under a key, money twice without one", async () => {
    const { control } = under.sandbox;
    control.arm({ kind: "redeliver", times: 2 });
    expect(await post(100, "key-1")).toMatchObject({ status: 200, replayed: false });
    expect(await committed()).toBe(1);
    await post(100, null);
    expect(await committed()).toBe(3);
  });

  test.each(["drop", "500", "409", "hang"] as const)(
    "a late commit with the answer %s happens once",
    async (answer) => {
      const { control } = under.sandbox;
      control.arm({ kind: "late_commit", delayMs: 200, answer });
      const call = fetch(`${under.sandbox.url}/v1/refunds`, {
        method: "POST",
        headers: {
          authorization: `Bearer ${SECRET_KEY}`,
          "content-type": "application/x-www-form-urlencoded",
          "idempotency-key": "key-1",
        },
        body: "payment_intent=pi_1&amount=100&metadata[operation_id]=op_1",
        signal: AbortSignal.timeout(150),
      });
      const status = await call.then(
        (response) => String(response.status),
        (error: unknown) => (error instanceof Error && error.name === "TimeoutError" ? "hang" : "drop"),
      );
      expect(status).toBe(answer);
      expect(await committed()).toBe(0);
      await control.settle();
      expect(await post(100, "key-1")).toMatchObject({ status: 200, replayed: true });
      expect(await committed()).toBe(1);
    },
  );

  test("pending and then something else by itself", async () => {
    under.sandbox.control.arm({
      kind: "outcome",
      status: "pending",
      later: { status: "succeeded", afterMs: 50 },
    });
    const { id } = await post(100, "key-1");
    await expect.poll(async () => (await stripe.refunds.retrieve(id ?? "")).status).toBe("succeeded");
  });

  test("a stop commits what was accepted for later, and a restart still knows the key", async () => {
    const first = await startPaymentsSandbox({
      databaseUrl: under.databaseUrl,
      port: 0,
      secretKey: SECRET_KEY,
    });
    first.control.arm({ kind: "late_commit", delayMs: 3_600_000 });
    await expect(
      officialClient(first.port).refunds.create(
        { payment_intent: "pi_1", amount: 100, metadata: { operation_id: "op_1" } },
        { idempotencyKey: "key-1" },
      ),
    ).rejects.toThrow();
    await first.stop();
    const second = await startPaymentsSandbox({
      databaseUrl: under.databaseUrl,
      port: 0,
      secretKey: SECRET_KEY,
    });
    try {
      const replay = await officialClient(second.port).refunds.create(
        { payment_intent: "pi_1", amount: 100, metadata: { operation_id: "op_1" } },
        { idempotencyKey: "key-1" },
      );
      expect(replay.lastResponse.headers["idempotent-replayed"]).toBe("true");
      expect((await second.control.counts()).committed).toBe(1);
    } finally {
      await second.stop();
    }
  });

  test("a fault that does not exist is refused by name", () => {
    expect(() => under.sandbox.control.arm({ kind: "earthquake" } as unknown as FaultSpec)).toThrow(/kind/);
  });
});

test("payments that were not seeded exist only where the sandbox is told how", async () => {
  const sandbox = await startPaymentsSandbox({
    databaseUrl: under.databaseUrl,
    port: 0,
    secretKey: SECRET_KEY,
    autoProvision: (id) => (id === "pi_shop" ? { amount: 500, currency: "JPY" } : null),
  });
  try {
    const client = officialClient(sandbox.port);
    expect(await client.refunds.create({ payment_intent: "pi_shop" })).toMatchObject({
      amount: 500,
      currency: "jpy",
    });
    await expect(client.refunds.create({ payment_intent: "pi_none" })).rejects.toMatchObject({
      code: "resource_missing",
    });
  } finally {
    await sandbox.stop();
  }
});

describe("a provider that promises less", () => {
  const set = (promises: Partial<ProviderPromises>) => under.sandbox.control.setPromises(promises);
  afterEach(() => set({ keyed: true, keyTtlMs: 60_000, readback: "strong", inflightBoundMs: null }));

  test("without keys a repeated request is a second effect", async () => {
    set({ keyed: false });
    await post(100, "key-1");
    await post(100, "key-1");
    expect(await under.sandbox.control.counts()).toMatchObject({ committed: 2, duplicates: 1 });
  });

  test("with a lag, or with nothing to read from", async () => {
    set({ readback: { lagMs: 3_600_000 } });
    await post(100, "key-1");
    expect((await stripe.refunds.list()).data).toEqual([]);
    set({ readback: "none" });
    await expect(stripe.refunds.list()).rejects.toMatchObject({ statusCode: 404 });
    set({ readback: "strong" });
    expect((await stripe.refunds.list()).data).toHaveLength(1);
  });

  test("with a bound, no commit comes later than that", async () => {
    set({ inflightBoundMs: 20 });
    under.sandbox.control.arm({ kind: "late_commit", delayMs: 3_600_000, answer: "500" });
    await post(100, "key-1");
    await under.sandbox.control.settle();
    expect(await committed()).toBe(1);
  });
});

describe("control over HTTP", () => {
  const call = async (method: string, path: string, body?: unknown) => {
    const response = await fetch(`${under.sandbox.url}/_control${path}`, {
      method,
      ...(body === undefined
        ? {}
        : { body: JSON.stringify(body), headers: { "content-type": "application/json" } }),
    });
    return { status: response.status, body: (await response.json()) as Record<string, unknown> };
  };

  test("does what the functions do: seed, arm, count, look, dispute, advance, expire, reset", async () => {
    await call("POST", "/payments", { paymentIntent: "pi_9", amount: 700, currency: "USD" });
    const armed = await call("POST", "/faults", {
      kind: "outcome",
      status: "pending",
      match: { paymentIntent: "pi_9" },
    });
    const refund = await stripe.refunds.create({ payment_intent: "pi_9", amount: 100 });
    expect(refund.status).toBe("pending");
    expect((await call("GET", `/faults/${String(armed.body["id"])}`)).body).toMatchObject({ fired: 1 });
    expect((await call("POST", `/refunds/${refund.id}/advance`, { status: "succeeded" })).body).toMatchObject(
      {
        status: "succeeded",
      },
    );
    expect(
      (await call("POST", "/dashboard/refunds", { paymentIntent: "pi_9", amount: 50 })).body,
    ).toMatchObject({
      origin: "dashboard",
      operationId: null,
    });
    expect((await call("GET", "/counts")).body).toMatchObject({
      committed: 2,
      posts: 1,
      amounts: { usd: 150 },
    });
    expect((await call("GET", "/effects?payment_intent=pi_9")).body["effects"]).toHaveLength(2);
    expect((await call("GET", "/requests?method=POST")).body["requests"]).toHaveLength(1);
    await call("POST", "/payments/pi_9/dispute", {});
    await expect(stripe.refunds.create({ payment_intent: "pi_9" })).rejects.toMatchObject({
      code: "charge_disputed",
    });
    expect((await call("POST", "/keys/expire", {})).body).toEqual({ forgotten: 2 });
    await call("POST", "/clock", { offsetMs: 5 });
    expect(under.sandbox.control.clockOffsetMs()).toBe(5);
    expect((await call("POST", "/reset", {})).body).toEqual({ reset: true });
    expect((await call("GET", "/counts")).body).toMatchObject({ refunds: 0, requests: 0 });
  });

  test("names what is wrong with a request, and what does not exist", async () => {
    expect((await call("POST", "/faults", { kind: "earthquake" })).status).toBe(400);
    expect((await call("POST", "/payments", { paymentIntent: "pi_9" })).status).toBe(400);
    expect((await call("GET", "/nothing")).status).toBe(404);
    const simpleForm = await fetch(`${under.sandbox.url}/_control/reset`, { method: "POST", body: "x" });
    expect(simpleForm.status, "a page elsewhere cannot post here").toBe(415);
  });
});
