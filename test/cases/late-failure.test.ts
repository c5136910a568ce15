/** Accepted, paid out, and taken back by the bank days later: told by webhooks in any order, each more than once. */
import { expect, it } from "vitest";
import { systemClock } from "../../src/app/system.js";
import { dueWebhooks, processWebhook } from "../../src/dispatch/index.js";
import { listIncidents } from "../../src/ledger/index.js";
import { reconcileOne, sweepOrphans } from "../../src/reconcile/index.js";
import { signatureHeader } from "../../src/sandbox/payments/index.js";
import { WEBHOOK_SECRET, withPaymentsSandbox } from "../payments/support.js";
import { withDatabase } from "../support/database.js";
import { withCaseWorld } from "./case-world.js";

const database = withDatabase();
const build = withCaseWorld(withPaymentsSandbox());
const DAYS_MS = 3 * 24 * 3_600_000;

it.each([
  ["in their order", false],
  ["the last first", true],
] as const)("the case opens again, once, and the money counts anew: webhooks %s", async (_how, reversed) => {
  const w = await build(database.db);
  await w.order({ ref: "ORD-1", captured: 18_000 });
  const ctx = w.worker("w");
  w.control.arm({ kind: "outcome", status: "pending" });
  const id = await w.prepared("ORD-1", 2_000n);
  expect(await w.look(ctx, id)).toMatchObject({ status: "OUTCOME_UNKNOWN" });
  const [effect] = await w.control.effects();
  await w.control.advanceRefund(effect?.id ?? "", { status: "succeeded" });
  expect(await w.work(ctx, id)).toMatchObject({ status: "CONFIRMED", providerRef: effect?.id });
  expect(await w.balance("ORD-1")).toMatchObject({ reserved: 0, refunded: 2_000 });

  await w.advance(DAYS_MS);
  await w.control.advanceRefund(effect?.id ?? "", { status: "failed" });
  const made = (await w.control.events()).map(({ body }) => Buffer.from(body));
  const bodies = reversed ? made.reverse() : made;
  expect(bodies.length).toBeGreaterThan(2);
  for (const body of [...bodies, ...bodies]) {
    const signed = signatureHeader(
      body.toString("utf8"),
      WEBHOOK_SECRET,
      Math.floor(systemClock.now().getTime() / 1000),
    );
    expect(await w.hear(ctx, body, `${signed}0`)).toBe(400);
    expect(await w.hear(ctx, body, signed)).toBe(200);
  }

  expect(await w.now(id)).toMatchObject({ status: "REVERSED" });
  expect((await w.path(id)).filter((status) => status === "REVERSED")).toHaveLength(1);
  expect(await w.balance("ORD-1")).toMatchObject({ reserved: 0, refunded: 0 });
  expect((await w.control.effects()).map(({ status }) => status)).toEqual(["failed"]);
  expect(await w.posts()).toHaveLength(1);
  const incidents = (await listIncidents(w.db, { limit: 10 })).rows;
  expect(incidents.map(({ kind, operationId }) => [kind, operationId])).toEqual([["reversed", id]]);
  expect((await w.told()).length, "the thread is told of each turn").toBeGreaterThanOrEqual(2);
  await w.intact();
});

it("a refund that fails while a reconciler holds the list that showed it paid out is not confirmed", async () => {
  const w = await build(database.db);
  await w.order({ ref: "ORD-1", captured: 18_000 });
  const ctx = w.worker("w");
  w.control.arm({ kind: "commit_then_drop", match: { method: "POST" } });
  const id = await w.prepared("ORD-1", 2_000n);
  expect(await w.look(ctx, id)).toMatchObject({ status: "OUTCOME_UNKNOWN" });
  const slow: typeof ctx = {
    ...ctx,
    provider: {
      ...ctx.provider,
      list: async (target, options) => {
        const listing = await ctx.provider.list(target, options);
        const [effect] = await w.control.effects();
        await w.control.advanceRefund(effect?.id ?? "", { status: "failed" });
        const body = Buffer.from((await w.control.events()).at(-1)?.body ?? "");
        expect(await w.hear(w.worker("app"), body, signed(body))).toBe(200);
        return listing;
      },
    },
  };
  await reconcileOne(slow, id, "evidence");
  expect(await w.path(id)).not.toContain("CONFIRMED");
  expect(await w.work(ctx, id)).toMatchObject({ status: "REJECTED" });
  expect(await w.balance("ORD-1")).toMatchObject({ reserved: 0, refunded: 0 });
  expect((await w.control.effects()).map(({ status }) => status)).toEqual(["failed"]);
  await w.intact();
});

it("a failure that is told while somebody else confirms what they read before is judged once more, and reverses it", async () => {
  const w = await build(database.db);
  await w.order({ ref: "ORD-1", captured: 18_000 });
  const ctx = w.worker("w");
  w.control.arm({ kind: "commit_then_drop", match: { method: "POST" } });
  const id = await w.prepared("ORD-1", 2_000n);
  const open = await w.look(ctx, id);
  expect(open).toMatchObject({ status: "OUTCOME_UNKNOWN" });
  const before = await ctx.provider.list(open, { timeoutMs: 3_000 });
  const [effect] = await w.control.effects();
  await w.control.advanceRefund(effect?.id ?? "", { status: "failed" });
  const body = Buffer.from((await w.control.events()).at(-1)?.body ?? "");
  // The webhook has looked at the row and reads its object; the reconciler writes what it had read, in between.
  const app = w.worker("app");
  const between: typeof app = {
    ...app,
    provider: {
      ...app.provider,
      read: async (ref, options) => {
        await reconcileOne(
          { ...ctx, provider: { ...ctx.provider, list: async () => before } },
          id,
          "evidence",
        );
        return app.provider.read(ref, options);
      },
    },
  };
  expect(await w.hear(between, body, signed(body))).toBe(200);
  expect(await w.path(id), "it was too late to stop it").toContain("CONFIRMED");

  await w.advance(60_000);
  for (const event of await dueWebhooks(w.db, { limit: 5 })) await processWebhook(app, event);
  expect(await w.now(id)).toMatchObject({ status: "REVERSED" });
  expect(await w.balance("ORD-1")).toMatchObject({ reserved: 0, refunded: 0 });
  expect(await dueWebhooks(w.db, { limit: 5 })).toEqual([]);
  await w.intact();
});

it.each([
  ["succeeded", "CONFIRMED", { reserved: 0, refunded: 2_000 }, "the comparison of the books"],
  ["failed", "REJECTED", { reserved: 0, refunded: 0 }, "the comparison of the books"],
  ["succeeded", "CONFIRMED", { reserved: 0, refunded: 2_000 }, "a webhook about its charge"],
  ["failed", "REJECTED", { reserved: 0, refunded: 0 }, "a webhook about its charge"],
] as const)(
  "a refund that a person has before them because it was pending too long, and that %s, ends as %s with %o by %s",
  async (status, end, balance, teller) => {
    const w = await build(database.db);
    await w.order({ ref: "ORD-1", captured: 18_000 });
    const usual = w.worker("w");
    const ctx = { ...usual, reconcile: { ...usual.reconcile, orphanWindowMs: DAYS_MS } };
    w.control.arm({ kind: "outcome", status: "pending" });
    const id = await w.prepared("ORD-1", 2_000n);
    expect(await w.work(ctx, id)).toMatchObject({ status: "QUARANTINED" });
    expect(await sweepOrphans(ctx)).toMatchObject({ read: true, effects: 1, orphans: 0 });
    expect(await w.look(ctx, id), "pending is no news").toMatchObject({ status: "QUARANTINED" });
    const [effect] = await w.control.effects();
    await w.control.advanceRefund(effect?.id ?? "", { status });
    if (teller === "a webhook about its charge") {
      const body = Buffer.from(
        JSON.stringify({
          id: "evt_of_the_charge",
          type: "charge.refunded",
          data: { object: { id: "ch_1", object: "charge", payment_intent: "pi_ORD-1", metadata: {} } },
        }),
      );
      expect(await w.hear(ctx, body, signed(body))).toBe(200);
    } else await sweepOrphans(ctx);

    expect(await w.look(ctx, id)).toMatchObject({ status: end });
    expect(await w.balance("ORD-1")).toMatchObject(balance);
    expect(await sweepOrphans(ctx)).toMatchObject({ orphans: 0, missing: 0 });
    expect(await w.posts()).toHaveLength(1);
    expect((await w.control.effects()).map((one) => one.status)).toEqual([status]);
    await w.intact();
  },
);

it("a refund that fails later, of which no webhook tells, is found when the books are compared", async () => {
  const w = await build(database.db);
  await w.order({ ref: "ORD-1", captured: 18_000 });
  const ctx = w.worker("w");
  const id = await w.prepared("ORD-1", 2_000n);
  expect(await w.work(ctx, id)).toMatchObject({ status: "CONFIRMED" });
  const [effect] = await w.control.effects();
  await w.control.advanceRefund(effect?.id ?? "", { status: "failed" });
  await w.advance(ctx.reconcile.orphanLagMs + 60_000);
  expect(await sweepOrphans(ctx)).toMatchObject({ read: true, missing: 1 });
  expect(await sweepOrphans(w.worker("another"))).toMatchObject({ missing: 0 });
  expect(await w.now(id)).toMatchObject({ status: "REVERSED" });
  expect(await w.balance("ORD-1")).toMatchObject({ reserved: 0, refunded: 0 });
  const incidents = (await listIncidents(w.db, { limit: 10 })).rows;
  expect(incidents.map(({ kind, operationId }) => [kind, operationId])).toEqual([["reversed", id]]);
  expect((await w.told()).length, "done, and taken back").toBeGreaterThanOrEqual(2);
  await w.intact();
});

it.each(["a webhook", "the comparison of the books"] as const)(
  "a refund that was taken back and is made after all is told once by %s, and its money has left",
  async (teller) => {
    const w = await build(database.db);
    await w.order({ ref: "ORD-1", captured: 18_000 });
    const ctx = w.worker("w");
    const id = await w.prepared("ORD-1", 2_000n);
    expect(await w.work(ctx, id)).toMatchObject({ status: "CONFIRMED" });
    const [effect] = await w.control.effects();
    const tell = async (status: "failed" | "succeeded"): Promise<void> => {
      await w.control.advanceRefund(effect?.id ?? "", { status });
      const body = Buffer.from((await w.control.events()).at(-1)?.body ?? "");
      if (status === "failed" || teller === "a webhook") await w.hear(ctx, body, signed(body));
    };
    await tell("failed");
    expect(await w.now(id)).toMatchObject({ status: "REVERSED" });
    expect(await w.balance("ORD-1")).toMatchObject({ refunded: 0 });
    await tell("succeeded");
    await sweepOrphans(ctx);
    await sweepOrphans(w.worker("another"));

    expect(await w.now(id)).toMatchObject({ status: "REVERSED" });
    expect(await w.balance("ORD-1")).toMatchObject({ reserved: 0, refunded: 0 });
    expect(await w.db.sql(undefined, "SELECT refunded_elsewhere FROM payments")).toEqual([
      { refunded_elsewhere: 2_000n },
    ]);
    const incidents = (await listIncidents(w.db, { limit: 10 })).rows;
    expect(incidents.map(({ kind, operationId }) => [kind, operationId]).sort()).toEqual([
      ["late_effect", id],
      ["reversed", id],
    ]);
    await w.intact();
  },
);

it("a list that is older than the failure makes nothing alive again", async () => {
  const w = await build(database.db);
  await w.order({ ref: "ORD-1", captured: 18_000 });
  const ctx = w.worker("w");
  const id = await w.prepared("ORD-1", 2_000n);
  expect(await w.work(ctx, id)).toMatchObject({ status: "CONFIRMED" });
  const before = await ctx.provider.listSince(new Date(0), { timeoutMs: 3_000 });
  const [effect] = await w.control.effects();
  await w.control.advanceRefund(effect?.id ?? "", { status: "failed" });
  const body = Buffer.from((await w.control.events()).at(-1)?.body ?? "");
  await w.hear(ctx, body, signed(body));
  expect(await w.now(id)).toMatchObject({ status: "REVERSED" });

  await sweepOrphans({ ...ctx, provider: { ...ctx.provider, listSince: async () => before } });
  expect(await w.db.sql(undefined, "SELECT refunded_elsewhere FROM payments")).toEqual([
    { refunded_elsewhere: 0n },
  ]);
  expect((await listIncidents(w.db, { limit: 10 })).rows.map(({ kind }) => kind)).toEqual(["reversed"]);
  await w.intact();
});

const signed = (body: Buffer): string =>
  signatureHeader(body.toString("utf8"), WEBHOOK_SECRET, Math.floor(systemClock.now().getTime() / 1000));
