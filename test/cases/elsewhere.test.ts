/**
 * What the provider shows beyond what was asked for, in another currency, or not any more: counted once, at once, and given back when it
 * came to nothing, whoever sees it and in whatever order.
 */
import { once } from "node:events";
import { beforeEach, describe, expect, it } from "vitest";
import { systemClock } from "../../src/app/system.js";
import { refreshBalance } from "../../src/dispatch/index.js";
import type { OperationId } from "../../src/domain/ids.js";
import { closeIncident, reopen, resolve, secondResolve } from "../../src/ledger/index.js";
import { type ReconcileCtx, sweepOrphans } from "../../src/reconcile/index.js";
import { signatureHeader } from "../../src/sandbox/payments/index.js";
import { readIncident } from "../../src/slack/views/ops.js";
import { WEBHOOK_SECRET, withPaymentsSandbox } from "../payments/support.js";
import { withDatabase } from "../support/database.js";
import { type CaseWorld, withCaseWorld } from "./case-world.js";

const database = withDatabase();
const payments = withPaymentsSandbox();
const build = withCaseWorld(payments);
const DAYS_MS = 3 * 24 * 3_600_000;
let w: CaseWorld;

beforeEach(async () => {
  w = await build(database.db);
});

interface Books {
  reserved: number;
  refunded: number;
  elsewhere: number;
}

async function books(): Promise<Books> {
  const [row] = await database.db.sql<Books>(
    undefined,
    "SELECT reserved::int, refunded::int, refunded_elsewhere::int AS elsewhere FROM payments",
  );
  if (row === undefined) throw new Error("no payment");
  return row;
}

const incidents = (): Promise<{ id: string; kind: string; status: string }[]> =>
  database.db.sql(undefined, "SELECT id, kind, status FROM incidents ORDER BY created_at, id");
const kinds = async (): Promise<string[]> => (await incidents()).map(({ kind }) => kind);

const signed = (body: Buffer): string =>
  signatureHeader(body.toString("utf8"), WEBHOOK_SECRET, Math.floor(systemClock.now().getTime() / 1000));

/** Every webhook that the provider made, the last first, each twice. */
async function hearAll(): Promise<void> {
  const bodies = (await w.control.events()).map(({ body }) => Buffer.from(body)).reverse();
  for (const body of [...bodies, ...bodies])
    expect(await w.hear(w.worker("app"), body, signed(body))).toBe(200);
}

/** What a person would see before they decide. */
async function proofOf(id: OperationId) {
  const operation = await w.now(id);
  const listing = await w.worker("w").provider.list(operation, { timeoutMs: 3_000 });
  const effect =
    listing.read === "complete" ? listing.effects.find((one) => one.operationId === id) : undefined;
  if (effect === undefined) throw new Error("the provider shows nothing");
  return { operation, effect };
}

/** Two people close it as not carried out as asked. */
async function closedAsOther(id: OperationId): Promise<void> {
  const { operation, effect } = await proofOf(id);
  const probe = { says: "committed", effect, postcondition: "fails", differs: ["amount"] } as const;
  const ctx = w.worker("ops");
  const asked = await resolve(ctx, {
    operationId: id,
    expectedVersion: operation.version,
    verb: "reject",
    by: "U_ONC1",
    reason: "another amount",
    evidenceRef: effect.ref,
    probe,
    needsSecond: true,
    secondWithinMs: 60_000,
  });
  if (asked.outcome !== "needs_second") throw new Error(asked.outcome);
  const agreed = await secondResolve(ctx, {
    resolutionId: asked.resolution.id,
    by: "U_ONC2",
    verdict: "agree",
    note: null,
    probe,
  });
  expect(agreed).toMatchObject({ outcome: "applied", operation: { status: "REJECTED" } });
}

async function reopened(id: OperationId): Promise<void> {
  const { version } = await w.now(id);
  const again = await reopen(w.worker("ops"), {
    operationId: id,
    expectedVersion: version,
    by: "U_ONC1",
    reason: "a wrong click",
    evidenceRef: "ticket",
  });
  expect(again).toMatchObject({ outcome: "reopened" });
}

describe("the provider makes more than was asked for", () => {
  let id: OperationId;
  beforeEach(async () => {
    await w.order({ ref: "ORD-1", captured: 5_000 });
    w.control.arm({ kind: "wrong_answer", amount: 3_000 });
    id = await w.prepared("ORD-1", 2_000n);
  });

  it("the rest counts as gone with the answer, and a refund that no longer fits is not prepared", async () => {
    expect(await w.look(w.worker("w"), id)).toMatchObject({ status: "OUTCOME_UNKNOWN" });
    expect(await books()).toEqual({ reserved: 2_000, refunded: 0, elsewhere: 1_000 });
    expect(await w.work(w.worker("w"), id)).toMatchObject({ status: "QUARANTINED" });
    expect((await w.ask("ORD-1", 2_500n)).outcomes).toMatchObject([
      { outcome: "insufficient", leftMinor: 2_000n },
    ]);
    expect(await kinds()).toEqual(["made_differently"]);
    expect(await w.posts()).toHaveLength(1);
    await w.intact();
  });

  it("the sum is right whatever the case ends as, however often it is opened again, and whoever hears of it between", async () => {
    await w.work(w.worker("w"), id);
    const held = { reserved: 2_000, refunded: 0, elsewhere: 1_000 };
    const closed = { reserved: 0, refunded: 0, elsewhere: 3_000 };
    for (const step of [
      { make: async () => {}, is: held },
      { make: hearAll, is: held },
      { make: () => closedAsOther(id), is: closed },
      { make: hearAll, is: closed },
      { make: async () => void (await sweepOrphans(w.worker("s"))), is: closed },
      { make: () => reopened(id), is: held },
      { make: async () => void (await sweepOrphans(w.worker("s"))), is: held },
      { make: () => closedAsOther(id), is: closed },
      { make: () => reopened(id), is: held },
      { make: hearAll, is: held },
      { make: () => closedAsOther(id), is: closed },
    ]) {
      await step.make();
      expect(await books()).toEqual(step.is);
      await w.intact();
    }
    expect((await w.control.counts()).amounts).toEqual({ gbp: 3_000 });
    expect(await w.posts()).toHaveLength(1);
  });

  it("a person confirms while the provider cannot be read: the rest stays gone, and what it shows then opens the case again", async () => {
    await w.work(w.worker("w"), id);
    const { operation, effect } = await proofOf(id);
    const confirmed = (evidenceRef: string) =>
      resolve(w.worker("ops"), {
        operationId: id,
        expectedVersion: operation.version,
        verb: "confirm",
        by: "U_ONC1",
        reason: "seen in the dashboard",
        evidenceRef,
        probe: { says: "unknown", reason: "away" },
        needsSecond: false,
        secondWithinMs: 60_000,
      });
    // What is known of that reference is that it is another amount.
    expect(await confirmed(effect.ref)).toMatchObject({ outcome: "not_safe", code: "named_differs" });
    expect(await confirmed("their page says so")).toMatchObject({ outcome: "applied" });
    expect(await books()).toEqual({ reserved: 0, refunded: 2_000, elsewhere: 1_000 });
    await hearAll();
    await sweepOrphans(w.worker("s"));
    await w.look(w.worker("w"), id);
    expect(await w.now(id)).toMatchObject({ status: "QUARANTINED" });
    expect(await books()).toEqual({ reserved: 2_000, refunded: 0, elsewhere: 1_000 });
    expect(await kinds()).toEqual(["made_differently", "contradiction"]);
    await w.intact();
  });

  it("and takes it back: everything of it is free again", async () => {
    await w.work(w.worker("w"), id);
    await closedAsOther(id);
    const [effect] = await w.control.effects();
    await w.control.advanceRefund(effect?.id ?? "", { status: "failed" });
    await sweepOrphans(w.worker("s"));
    expect(await books()).toEqual({ reserved: 0, refunded: 0, elsewhere: 0 });
    await reopened(id);
    expect(await books()).toEqual({ reserved: 2_000, refunded: 0, elsewhere: 0 });
    await w.intact();
  });

  it("the last to write decides nothing: sweep, webhooks, a reading and two people at once", async () => {
    await w.work(w.worker("w"), id);
    for (let round = 0; round < 4; round += 1) {
      const balance = { paymentIntent: "pi_ORD-1", providerSubscription: null };
      await Promise.all([
        closedAsOther(id),
        sweepOrphans(w.worker("s")),
        hearAll(),
        refreshBalance(w.worker("r"), balance),
        refreshBalance(w.worker("q"), balance),
      ]);
      expect(await books(), `round ${round}`).toEqual({ reserved: 0, refunded: 0, elsewhere: 3_000 });
      await Promise.all([
        reopened(id),
        sweepOrphans(w.worker("s")),
        hearAll(),
        refreshBalance(w.worker("r"), balance),
      ]);
      expect(await books(), `round ${round}`).toEqual({ reserved: 2_000, refunded: 0, elsewhere: 1_000 });
    }
    await w.intact();
  });
});

describe("a refund in the dashboard that fails later, of which no webhook tells", () => {
  beforeEach(async () => {
    await w.order({ ref: "ORD-1", captured: 18_000 });
    await w.control.dashboardRefund({ paymentIntent: "pi_ORD-1", amount: 17_000 });
    await sweepOrphans(w.worker("s"));
    expect(await books()).toMatchObject({ elsewhere: 17_000 });
  });

  const fails = async (): Promise<string> => {
    const [effect] = await w.control.effects();
    await w.control.advanceRefund(effect?.id ?? "", { status: "failed" });
    return effect?.id ?? "";
  };

  it("is given back when the books are compared, told in the log and on the card that told of it", async () => {
    const ref = await fails();
    await sweepOrphans(w.worker("s"));
    expect(await books()).toMatchObject({ elsewhere: 0 });
    const [incident] = await incidents();
    const card = await readIncident(database.db, incident?.id ?? "");
    expect(card?.detail).toContainEqual(["Came to nothing since", expect.stringContaining(ref)]);
    expect(await kinds()).toEqual(["refunded_elsewhere"]);
    const events = await database.db.sql<{ minor: number }>(
      undefined,
      "SELECT (body::jsonb #>> '{data,minor}')::int AS minor FROM operation_events WHERE subject LIKE 'payment:%' ORDER BY seq",
    );
    expect(events.map(({ minor }) => minor)).toEqual([17_000, 0]);
    expect((await w.ask("ORD-1", 4_000n)).outcomes).toMatchObject([{ outcome: "prepared" }]);
    await w.intact();
  });

  it("is given back although it was made before the sweep looks back", async () => {
    await w.advance(DAYS_MS);
    await fails();
    expect(await sweepOrphans(w.worker("s"))).toMatchObject({ effects: 0, compared: 1 });
    expect(await books()).toMatchObject({ elsewhere: 0 });
    expect(await sweepOrphans(w.worker("s")), "once a day").toMatchObject({ compared: 0 });
  });

  it("does not count again by a list that was read before it failed", async () => {
    const ctx = w.worker("w");
    const before = await ctx.provider.list(
      { paymentIntent: "pi_ORD-1", providerSubscription: null },
      { timeoutMs: 3_000 },
    );
    await fails();
    await sweepOrphans(w.worker("s"));
    const late = { ...ctx, provider: { ...ctx.provider, list: async () => before } };
    await refreshBalance(late, { paymentIntent: "pi_ORD-1", providerSubscription: null });
    expect(await books()).toMatchObject({ elsewhere: 0 });
  });

  it("a second one that comes to the same sum is told again", async () => {
    await fails();
    await sweepOrphans(w.worker("s"));
    await w.control.dashboardRefund({ paymentIntent: "pi_ORD-1", amount: 17_000 });
    await sweepOrphans(w.worker("s"));
    expect(await books()).toMatchObject({ elsewhere: 17_000 });
    expect(await kinds()).toEqual(["refunded_elsewhere", "refunded_elsewhere"]);
  });
});

describe("what is older than the sweep looks back", () => {
  it("is found in its turn: a refund in the dashboard, and one of ours that failed", async () => {
    await w.order({ ref: "ORD-1", captured: 18_000 });
    const id = await w.prepared("ORD-1", 2_000n);
    expect(await w.work(w.worker("w"), id)).toMatchObject({ status: "CONFIRMED" });
    const [effect] = await w.control.effects();
    await w.control.dashboardRefund({ paymentIntent: "pi_ORD-1", amount: 1_000 });
    await w.advance(DAYS_MS);
    await w.control.advanceRefund(effect?.id ?? "", { status: "failed" });
    expect(await sweepOrphans(w.worker("s"))).toMatchObject({ effects: 0, compared: 1, missing: 1 });
    expect(await w.now(id)).toMatchObject({ status: "REVERSED" });
    expect(await books()).toEqual({ reserved: 0, refunded: 0, elsewhere: 1_000 });
    await w.intact();
  });
});

describe("money of another currency", () => {
  const left = async (): Promise<unknown> => (await w.ask("ORD-1", 1_000n)).outcomes;
  const closedFor = [
    { outcome: "insufficient", leftMinor: 0n, sentence: expect.stringMatching(/paid in GBP.*refund in JPY/) },
  ];

  it("is never added: nothing can be refunded, and the card names both, until the shop's currency is put right", async () => {
    await w.h.order({ ref: "ORD-1", captured: 18_000, currency: "GBP" });
    await w.control.seedPayment({ paymentIntent: "pi_ORD-1", amount: 18_000, currency: "JPY" });
    await w.control.dashboardRefund({ paymentIntent: "pi_ORD-1", amount: 10_000 });
    await sweepOrphans(w.worker("s"));
    expect(await books()).toEqual({ reserved: 0, refunded: 0, elsewhere: 0 });
    expect(await left()).toMatchObject(closedFor);
    expect(await kinds()).toEqual(["other_currency"]);
    const [incident] = await incidents();
    const detail = new Map((await readIncident(database.db, incident?.id ?? ""))?.detail);
    expect(detail.get("Provider shows")).toMatch(/^re_\w+ of ¥10,000 JPY$/);
    expect(detail.get("Paid")).toBe("£180.00 GBP");
    await w.intact();

    await w.h.order({ ref: "ORD-1", captured: 18_000, currency: "JPY" });
    expect(await sweepOrphans(w.worker("s")), "what the shop corrected is read at once").toMatchObject({
      compared: 1,
    });
    expect(await books()).toEqual({ reserved: 0, refunded: 0, elsewhere: 10_000 });
    await w.intact();
  });

  it("under an operation's id parks it and closes the payment for others; it is open again when that came to nothing", async () => {
    await w.order({ ref: "ORD-1", captured: 18_000 });
    w.control.arm({ kind: "wrong_answer", currency: "jpy" });
    const id = await w.prepared("ORD-1", 2_000n);
    expect(await w.work(w.worker("w"), id)).toMatchObject({ status: "QUARANTINED" });
    expect(await books()).toEqual({ reserved: 2_000, refunded: 0, elsewhere: 0 });
    expect(await left()).toMatchObject(closedFor);
    await closedAsOther(id);
    expect(await books()).toEqual({ reserved: 0, refunded: 0, elsewhere: 0 });
    expect(await left()).toMatchObject(closedFor);
    const [effect] = await w.control.effects();
    await w.control.advanceRefund(effect?.id ?? "", { status: "failed" });
    await sweepOrphans(w.worker("s"));
    expect(await left()).toMatchObject([{ outcome: "prepared" }]);
    await w.intact();
  });

  it("stops what was prepared before it was seen", async () => {
    await w.h.order({ ref: "ORD-1", captured: 18_000, currency: "GBP" });
    await w.control.seedPayment({ paymentIntent: "pi_ORD-1", amount: 18_000, currency: "JPY" });
    const id = await w.prepared("ORD-1", 2_000n);
    await w.control.dashboardRefund({ paymentIntent: "pi_ORD-1", amount: 100 });
    await sweepOrphans(w.worker("s"));
    expect(await w.look(w.worker("w"), id)).toMatchObject({ status: "VOIDED" });
    expect(await w.posts()).toEqual([]);
    expect(await books()).toEqual({ reserved: 0, refunded: 0, elsewhere: 0 });
    await w.intact();
  });
});

describe("a confirmed refund that goes missing twice", () => {
  it("is an incident of its own each time, and none while it stays away after a person has closed it", async () => {
    await w.order({ ref: "ORD-1", captured: 18_000 });
    const id = await w.prepared("ORD-1", 2_000n);
    await w.work(w.worker("w"), id);
    await w.advance(700_000);
    const hide = (): string => w.control.arm({ kind: "lying_read", lie: "hide" });
    const close = async (incident: string): Promise<void> => {
      await database.db.tx((tx) =>
        closeIncident(tx, w.worker("ops"), { id: incident, by: "U_ONC1", reason: "asked the provider" }),
      );
    };
    const first = hide();
    expect(await sweepOrphans(w.worker("s"))).toMatchObject({ missing: 1 });
    await close((await incidents())[0]?.id ?? "");
    expect(await sweepOrphans(w.worker("s")), "closed, and still away").toMatchObject({ missing: 0 });
    w.control.disarm(first);
    expect(await sweepOrphans(w.worker("s")), "there again").toMatchObject({ missing: 0 });
    hide();
    expect(await sweepOrphans(w.worker("s")), "away again").toMatchObject({ missing: 1 });
    expect(await sweepOrphans(w.worker("t"))).toMatchObject({ missing: 0 });
    expect((await incidents()).map(({ kind, status }) => `${kind} ${status}`)).toEqual([
      "missing_effect closed",
      "missing_effect open",
    ]);
    await w.intact();
  });
});

describe("a confirmed refund that a list hid for a while", () => {
  const away = async (): Promise<{ id: OperationId; hidden: string }> => {
    await w.order({ ref: "ORD-1", captured: 18_000 });
    const id = await w.prepared("ORD-1", 2_000n);
    await w.work(w.worker("w"), id);
    await w.advance(700_000);
    const hidden = w.control.arm({ kind: "lying_read", lie: "hide" });
    expect(await sweepOrphans(w.worker("s"))).toMatchObject({ missing: 1 });
    expect(await sweepOrphans(w.worker("s"))).toMatchObject({ missing: 0 });
    return { id, hidden };
  };

  it("shown again, the record closes the finding itself, and a later absence is one of its own", async () => {
    const { id, hidden } = await away();
    expect((await incidents()).map(({ status }) => status)).toEqual(["open"]);
    w.control.disarm(hidden);
    expect(await sweepOrphans(w.worker("s"))).toMatchObject({ missing: 0 });
    const [incident] = await incidents();
    const card = await readIncident(database.db, incident?.id ?? "");
    expect(card).toMatchObject({ status: "closed", closedBy: "system:reconcile" });
    expect(card?.closeReason).toContain((await w.now(id)).providerRef);
    expect(card?.closeReason).toContain("shows");
    w.control.arm({ kind: "lying_read", lie: "hide" });
    expect(await sweepOrphans(w.worker("s")), "away again").toMatchObject({ missing: 1 });
    expect((await incidents()).map(({ kind, status }) => `${kind} ${status}`)).toEqual([
      "missing_effect closed",
      "missing_effect open",
    ]);
    expect((await w.control.counts()).amounts).toEqual({ gbp: 2_000 });
    await w.intact();
  });

  it("a list alone closes nothing, where the provider does not show the refund itself", async () => {
    const { hidden } = await away();
    w.control.disarm(hidden);
    const ctx = w.worker("s");
    const read: typeof ctx.provider.read = async () => ({
      read: "complete",
      effects: [],
      balance: null,
      readAt: systemClock.now(),
    });
    await sweepOrphans({ ...ctx, provider: { ...ctx.provider, read } });
    expect((await incidents()).map(({ status }) => status)).toEqual(["open"]);
  });

  it("shown again with another amount, it stays with a person", async () => {
    const { hidden } = await away();
    w.control.disarm(hidden);
    const ctx = w.worker("s");
    const read: typeof ctx.provider.read = async (...asked) => {
      const reading = await ctx.provider.read(...asked);
      if (reading.read !== "complete") return reading;
      return { ...reading, effects: reading.effects.map((one) => ({ ...one, amountMinor: 100n })) };
    };
    await sweepOrphans({ ...ctx, provider: { ...ctx.provider, read } });
    expect((await incidents()).map(({ status }) => status)).toEqual(["open"]);
  });
});

describe("refunds that were seen elsewhere, that a list does not show and that the provider does not answer for", () => {
  it("are asked for within one call's time together, and still count", async () => {
    await w.order({ ref: "ORD-1", captured: 18_000 });
    for (const amount of [1_000, 1_100, 1_200]) {
      await w.control.dashboardRefund({ paymentIntent: "pi_ORD-1", amount });
    }
    const ctx = w.worker("w");
    await sweepOrphans(ctx);
    const asked: string[] = [];
    const hanging: ReconcileCtx = {
      ...ctx,
      timing: { ...ctx.timing, providerTimeoutMs: 50 },
      provider: {
        ...ctx.provider,
        list: async () => ({ read: "complete", effects: [], balance: null, readAt: systemClock.now() }),
        read: async (ref, { signal }) => {
          asked.push(ref);
          if (signal !== undefined && !signal.aborted) await once(signal, "abort");
          return { read: "failed", reason: "timeout", detail: "The provider did not answer in time." };
        },
      },
    };
    await refreshBalance(hanging, { paymentIntent: "pi_ORD-1", providerSubscription: null });
    expect(asked).toHaveLength(1);
    expect(await w.db.sql(undefined, "SELECT refunded_elsewhere FROM payments")).toEqual([
      { refunded_elsewhere: 3_300n },
    ]);
  });
});

describe("an effect that confirmed an operation and shows a larger amount later", () => {
  it("what is more counts as gone, on-call hears of it once, and the operation stays done", async () => {
    await w.order({ ref: "ORD-1", captured: 18_000 });
    const ctx = w.worker("w");
    const id = await w.prepared("ORD-1", 2_000n);
    expect(await w.work(ctx, id)).toMatchObject({ status: "CONFIRMED" });
    const growing: ReconcileCtx = {
      ...ctx,
      provider: {
        ...ctx.provider,
        list: async (...asked) => {
          const listing = await ctx.provider.list(...asked);
          if (listing.read !== "complete") return listing;
          return { ...listing, effects: listing.effects.map((one) => ({ ...one, amountMinor: 3_500n })) };
        },
      },
    };
    for (const reader of [ctx, growing, growing]) {
      await refreshBalance(reader, { paymentIntent: "pi_ORD-1", providerSubscription: null });
    }
    expect(await books()).toEqual({ reserved: 0, refunded: 2_000, elsewhere: 1_500 });
    expect(await kinds()).toEqual(["refunded_elsewhere"]);
    expect(await w.now(id)).toMatchObject({ status: "CONFIRMED" });
    await w.intact();
  });
});

describe("confirmed refunds that a list does not show and that the provider does not answer for", () => {
  it("are asked for within one call's time, and the next pass goes on with the others", async () => {
    await w.order({ ref: "ORD-1", captured: 18_000 });
    const ids: OperationId[] = [];
    for (const amount of [1_000n, 1_100n, 1_200n]) {
      const id = await w.prepared("ORD-1", amount);
      expect(await w.work(w.worker("w"), id)).toMatchObject({ status: "CONFIRMED" });
      ids.push(id);
    }
    const refs = await Promise.all(ids.map(async (id) => (await w.now(id)).providerRef ?? ""));
    await w.advance(700_000);
    const ctx = w.worker("s");
    const asked: string[] = [];
    const hanging: ReconcileCtx = {
      ...ctx,
      timing: { ...ctx.timing, providerTimeoutMs: 50 },
      provider: {
        ...ctx.provider,
        listSince: async () => ({ read: "complete", effects: [], balance: null, readAt: systemClock.now() }),
        list: async () => ({
          read: "failed",
          reason: "timeout",
          detail: "The provider did not answer in time.",
        }),
        read: async (ref, { signal }) => {
          asked.push(ref);
          if (signal !== undefined && !signal.aborted) await once(signal, "abort");
          return { read: "failed", reason: "timeout", detail: "The provider did not answer in time." };
        },
      },
    };
    const passes: string[][] = [];
    for (let pass = 0; pass < 4; pass += 1) {
      await sweepOrphans(hanging);
      passes.push(asked.splice(0));
    }
    const [oldest, middle, newest] = refs;
    expect(passes).toEqual([[newest], [middle], [oldest], [newest]]);
    expect(await kinds()).toEqual([]);
  });
});
