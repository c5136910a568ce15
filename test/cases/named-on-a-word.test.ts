/** What a person named when they confirmed: once that end is taken back, where it is something else, or is not done yet. */

import { describe, expect, it } from "vitest";
import { probe } from "../../src/dispatch/index.js";
import type { OperationId } from "../../src/domain/ids.js";
import type { Operation } from "../../src/domain/operation.js";
import { prepareTurn, resolve } from "../../src/ledger/index.js";
import { reconcileOne, sweepOrphans } from "../../src/reconcile/index.js";
import { POLICY } from "../approvals/harness.js";
import { SECRET_KEY } from "../payments/support.js";
import { refund } from "../support/ledger-world.js";
import {
  besideStranger,
  books,
  cardOf,
  confirmed,
  confirmedUnasked,
  database,
  effectsOf,
  form,
  hearAll,
  incidents,
  kinds,
  LAG_MS,
  ops,
  parked,
  payments,
  refundUnder,
  signed,
  w,
} from "./word-world.js";

describe("what a person named, once that end is taken back", () => {
  const openedAgain = async (id: OperationId): Promise<void> => {
    const request = { ref: id, userId: "U_ONC1", reason: "a wrong click", evidenceRef: "note" };
    expect(await ops.reopen(request)).toMatchObject({ outcome: "reopened" });
  };
  const says = async (id: OperationId) => (await probe(w.worker("p"), await w.now(id))).evidence.says;

  it.each(["it was shown to them", "the provider could not be asked"])(
    "is as strange as before, and nothing is sent beside it: %s",
    async (asked) => {
      const { operation, stranger } = await besideStranger();
      const before = await books("ORD-1");
      if (asked === "it was shown to them") await confirmed(operation, stranger);
      else await confirmedUnasked(operation, stranger);
      expect(await books("ORD-1")).toEqual({ reserved: 0, refunded: 2_000, elsewhere: 0 });
      await openedAgain(operation.id);
      expect(await says(operation.id)).toBe("unattributed");
      expect(await books("ORD-1")).toEqual(before);
      expect(await ops.resolve({ ...form(operation, "note"), verb: "retry" })).toMatchObject({
        outcome: "not_safe",
        probe: { says: "unattributed" },
      });
      await reconcileOne(w.worker("w"), operation.id, "evidence");
      expect(await w.now(operation.id)).toMatchObject({
        status: "QUARANTINED",
        attempts: operation.attempts,
      });
      expect(await w.committed()).toBe(1);
      expect(await w.posts()).toHaveLength(1);
      // It may be named again.
      await confirmed(operation, stranger);
      expect(await books("ORD-1")).toEqual({ reserved: 0, refunded: 2_000, elsewhere: 0 });
      await w.intact();
    },
  );

  it("hides it from no other operation", async () => {
    const operation = await parked("ORD-1", false);
    const other = await parked("ORD-1", false, 2_001n);
    await w.control.dashboardRefund({ paymentIntent: "pi_ORD-1", amount: 2_001 });
    const [made] = await w.control.effects();
    await confirmedUnasked(operation, made?.id ?? "");
    await openedAgain(operation.id);
    expect(await says(other.id)).toBe("unattributed");
    await confirmed(other, made?.id ?? "");
    await w.advance(LAG_MS);
    expect(await sweepOrphans(w.worker("s"))).toMatchObject({ orphans: 0, missing: 0 });
    expect(await kinds()).not.toContain("missing_effect");
  });
});

describe("what is named is not what was asked for", () => {
  it("carries the operation's id with another amount: the case is open again, and what was made is told", async () => {
    const operation = await parked("ORD-1", false);
    const ref = await refundUnder(operation.id, "ORD-1", 9_000);
    await confirmedUnasked(operation, ref);
    await w.advance(LAG_MS);
    await sweepOrphans(w.worker("s"));
    await w.look(w.worker("w"), operation.id);
    const now = await w.now(operation.id);
    expect(now).toMatchObject({ status: "QUARANTINED", resolvedByPerson: false });
    expect(now.quarantineReason).toContain(`postcondition_failed: ${ref} of £90.00 GBP`);
    expect((await kinds()).sort()).toEqual(["contradiction", "made_differently"]);
    expect(await cardOf("contradiction")).toContain(ref);
    expect(await books("ORD-1")).toEqual({ reserved: 2_000, refunded: 0, elsewhere: 7_000 });
    await w.intact();
  });

  it("a webhook tells of it: the same, once", async () => {
    const operation = await parked("ORD-1", false);
    await confirmedUnasked(operation, await refundUnder(operation.id, "ORD-1", 1_000));
    await hearAll();
    await hearAll();
    expect(await w.now(operation.id)).toMatchObject({ status: "QUARANTINED" });
    expect(await kinds()).toContain("contradiction");
    await w.look(w.worker("w"), operation.id);
    await hearAll();
    expect((await kinds()).sort()).toEqual(["contradiction", "made_differently"]);
    await w.intact();
  });

  it("carries the operation's id on another payment: the case is open again", async () => {
    const operation = await parked("ORD-1", false);
    await confirmedUnasked(operation, await refundUnder(operation.id, "ORD-2", 2_000));
    await w.advance(LAG_MS);
    await sweepOrphans(w.worker("s"));
    expect(await w.now(operation.id)).toMatchObject({ status: "QUARANTINED" });
    expect((await kinds()).sort()).toEqual(["contradiction", "made_differently", "refunded_elsewhere"]);
    expect(await cardOf("contradiction")).toContain("payment");
    await w.intact();
  });

  it("and nothing is sent because of that", async () => {
    const { operation, stranger } = await besideStranger();
    await w.control.advanceRefund(stranger, { status: "failed" });
    await confirmedUnasked(operation, await refundUnder(operation.id, "ORD-2", 2_000));
    await hearAll();
    await w.advance(LAG_MS);
    await sweepOrphans(w.worker("s"));
    await w.look(w.worker("w"), operation.id);
    expect(await w.now(operation.id)).toMatchObject({ status: "QUARANTINED", attempts: operation.attempts });
    expect((await w.posts()).filter(({ key }) => key?.startsWith("countersign-"))).toHaveLength(1);
    expect(await kinds()).toContain("contradiction");
  });

  it("a provider that leaves the payment out of a refund says nothing against it", async () => {
    const operation = await parked("ORD-1", true);
    const [ref = ""] = await effectsOf(operation.id);
    await confirmedUnasked(operation, ref);
    const ctx = w.worker("s");
    const read: typeof ctx.provider.read = async (named, options) => {
      const reading = await ctx.provider.read(named, options);
      return reading.read === "complete"
        ? { ...reading, effects: reading.effects.map((one) => ({ ...one, target: "" })) }
        : reading;
    };
    for (const { body } of await w.control.events()) {
      const raw = Buffer.from(body);
      expect(await w.hear({ ...ctx, provider: { ...ctx.provider, read } }, raw, signed(raw))).toBe(200);
    }
    expect(await w.now(operation.id)).toMatchObject({ status: "CONFIRMED", providerRef: ref });
    expect(await kinds()).toEqual([]);
  });

  it("another reference was named, and what carries the id is on another payment: the same", async () => {
    const { operation, stranger } = await besideStranger();
    await w.control.advanceRefund(stranger, { status: "failed" });
    await refundUnder(operation.id, "ORD-2", 2_000);
    await confirmedUnasked(operation, "re_typo");
    await sweepOrphans(w.worker("s"));
    await w.look(w.worker("w"), operation.id);
    expect(await w.now(operation.id)).toMatchObject({ status: "QUARANTINED", attempts: operation.attempts });
    expect(await kinds()).toContain("contradiction");
  });

  it.each(["ORD-1", "EUR"])(
    "a stranger of another amount or currency (%s) confirms nothing",
    async (what) => {
      const operation = await parked("ORD-1", false);
      const amount = what === "ORD-1" ? 17_000 : 2_000;
      await w.control.dashboardRefund({ paymentIntent: "pi_ORD-1", amount });
      const [made] = await w.control.effects();
      const ctx = w.worker("ops");
      const { evidence } = await probe(ctx, operation);
      if (evidence.says !== "unattributed") throw new Error(evidence.says);
      const effects =
        what === "EUR" ? evidence.effects.map((one) => ({ ...one, currency: "EUR" })) : evidence.effects;
      const outcome = await resolve(ctx, {
        operationId: operation.id,
        expectedVersion: operation.version,
        verb: "confirm",
        by: "U_ONC1",
        reason: "seen",
        evidenceRef: made?.id ?? "",
        probe: { says: "unattributed", effects },
        needsSecond: false,
        secondWithinMs: 60_000,
      });
      expect(outcome).toMatchObject({ outcome: "not_safe", code: "named_differs" });
      expect(await w.now(operation.id)).toMatchObject({ status: "QUARANTINED", providerRef: null });
      await w.intact();
    },
  );

  it("the form says so beside its field", async () => {
    const operation = await parked("ORD-1", false);
    await w.control.dashboardRefund({ paymentIntent: "pi_ORD-1", amount: 17_000 });
    const [made] = await w.control.effects();
    expect(await ops.resolve(form(operation, made?.id ?? ""))).toMatchObject({
      outcome: "invalid",
      field: "evidence",
      sentence: expect.stringContaining("not what was asked for"),
    });
  });

  it("was known as refunded elsewhere before the operation was sent: told as missing", async () => {
    await w.control.dashboardRefund({ paymentIntent: "pi_ORD-1", amount: 2_000 });
    const [made] = await w.control.effects();
    await sweepOrphans(w.worker("s"));
    const operation = await parked("ORD-1", false);
    await confirmed(operation, made?.id ?? "");
    await w.advance(LAG_MS);
    expect(await sweepOrphans(w.worker("s"))).toMatchObject({ missing: 1 });
    expect(await cardOf("missing_effect")).toContain("before this was sent");
    expect(await w.committed()).toBe(1);
  });

  it("several are named: none is taken for meant", async () => {
    const operation = await parked("ORD-1", false);
    expect(await ops.resolve(form(operation, "not re_first but re_second"))).toMatchObject({
      outcome: "invalid",
      field: "evidence",
    });
    expect(await w.now(operation.id)).toMatchObject({ status: "QUARANTINED", providerRef: null });
    await confirmed(operation, "re_second, and once more: re_second");
    expect(await w.now(operation.id)).toMatchObject({ providerRef: "re_second" });
  });
});

describe("a subscription that was said to be cancelled", () => {
  async function saidCancelled(): Promise<Operation> {
    await w.h.policy(
      POLICY.replace("cancel_subscription: { auto: false", "cancel_subscription: { auto: true"),
    );
    await database.db.sql(
      undefined,
      `INSERT INTO subscriptions (id, ref, customer_id, plan, status, provider_ref)
       SELECT 'sub-row', 'SUB-1', id, 'monthly', 'active', 'sub_one' FROM customers WHERE ref = 'CUS-7'`,
    );
    await w.control.seedSubscription({ id: "sub_one" });
    const run = await w.h.ticket();
    const ctx = w.worker("ops");
    const wanted = refund(run, 0n, {
      kind: "cancel_subscription",
      customerRef: "CUS-7",
      orderRef: null,
      subscriptionRef: "SUB-1",
      atPeriodEnd: false,
    });
    const proposal = {
      ...wanted,
      refundScope: null,
      landing: { paymentIntent: null, providerSubscription: "sub_one" },
    };
    const [call] = await database.db.tx((tx) =>
      prepareTurn(tx, ctx, {
        calls: [{ callId: proposal.callId, proposal }],
        judge: w.h.ctx.judge,
        onHold: async () => {},
      }),
    );
    if (call?.outcome !== "prepared") throw new Error(call?.outcome);
    const lost = w.control.arm({ kind: "drop_before_commit", times: null });
    const operation = await w.work(w.worker("w"), call.operation.id);
    w.control.disarm(lost);
    await confirmed(operation, "they say it is cancelled");
    return operation;
  }

  it("and is not: told once", async () => {
    const operation = await saidCancelled();
    expect(await sweepOrphans(w.worker("s"))).toMatchObject({ missing: 0 });
    await w.advance(LAG_MS);
    expect(await sweepOrphans(w.worker("s"))).toMatchObject({ missing: 1 });
    expect(await sweepOrphans(w.worker("t"))).toMatchObject({ missing: 0 });
    expect(await incidents()).toMatchObject([{ kind: "missing_effect", operation: operation.id }]);
    const card = await cardOf("missing_effect");
    expect(card).toContain("not cancelled");
    expect(card).not.toContain("money");
    expect((await w.control.counts()).cancellations).toBe(0);
    await w.intact();
  });

  it("and is, after it was told that it is not: the record closes the finding itself", async () => {
    await saidCancelled();
    await w.advance(LAG_MS);
    expect(await sweepOrphans(w.worker("s"))).toMatchObject({ missing: 1 });
    const answer = await fetch(`${payments.sandbox.url}/v1/subscriptions/sub_one`, {
      method: "DELETE",
      headers: { authorization: `Bearer ${SECRET_KEY}` },
    });
    expect(answer.status).toBe(200);
    expect(await sweepOrphans(w.worker("s"))).toMatchObject({ missing: 0 });
    expect(await incidents()).toMatchObject([{ kind: "missing_effect", status: "closed" }]);
  });

  it("and is: nothing is found", async () => {
    await saidCancelled();
    const answer = await fetch(`${payments.sandbox.url}/v1/subscriptions/sub_one`, {
      method: "DELETE",
      headers: { authorization: `Bearer ${SECRET_KEY}` },
    });
    expect(answer.status).toBe(200);
    await w.advance(LAG_MS);
    expect(await sweepOrphans(w.worker("s"))).toMatchObject({ missing: 0 });
    expect(await kinds()).toEqual([]);
  });
});

describe("the right reference was given, and the provider has not ended it", () => {
  it.each(["a webhook", "a sweep"])(
    "%s shows it as pending: it is awaited, and then it is done",
    async (how) => {
      const operation = await parked("ORD-1", true);
      const [ref = ""] = await effectsOf(operation.id);
      await w.control.advanceRefund(ref, { status: "pending" });
      await confirmedUnasked(operation, ref);
      if (how === "a webhook") await hearAll();
      else {
        await w.advance(LAG_MS);
        await sweepOrphans(w.worker("s"));
      }
      expect(await w.now(operation.id)).toMatchObject({ status: "QUARANTINED", resolvedByPerson: false });
      expect(await kinds()).toEqual(["contradiction"]);
      expect(await cardOf("contradiction")).toContain("pending");
      expect(await w.look(w.worker("w"), operation.id)).not.toMatchObject({ status: "CONFIRMED" });
      await w.control.advanceRefund(ref, { status: "succeeded" });
      await hearAll();
      await w.work(w.worker("w"), operation.id);
      expect(await w.now(operation.id)).toMatchObject({
        status: "CONFIRMED",
        providerRef: ref,
        result: { code: "confirmed" },
      });
      expect(await kinds()).toEqual(["contradiction"]);
      expect(await w.committed()).toBe(1);
      await w.intact();
    },
  );
});

describe("a refund without an id was named, and it comes to nothing", () => {
  it("as long as it is pending it stays what was named, and no more than that", async () => {
    const { operation, stranger } = await besideStranger();
    await w.control.advanceRefund(stranger, { status: "pending" });
    await confirmedUnasked(operation, stranger);
    await w.advance(LAG_MS);
    await sweepOrphans(w.worker("s"));
    expect(await w.now(operation.id)).toMatchObject({ status: "CONFIRMED", providerRef: stranger });
    expect(
      await database.db.sql(undefined, "SELECT 1 FROM provider_evidence WHERE operation_id = $1", [
        operation.id,
      ]),
    ).toEqual([]);
  });

  it.each(["shown to them", "while nobody could be asked"])(
    "a webhook tells of it (%s): taken back",
    async (how) => {
      const { operation, stranger } = await besideStranger();
      if (how === "shown to them") await confirmed(operation, stranger);
      else await confirmedUnasked(operation, stranger);
      await w.control.advanceRefund(stranger, { status: "failed" });
      await hearAll();
      await hearAll();
      expect(await w.now(operation.id)).toMatchObject({ status: "REVERSED" });
      expect(await books("ORD-1")).toEqual({ reserved: 0, refunded: 0, elsewhere: 0 });
      expect((await kinds()).filter((kind) => kind === "reversed")).toHaveLength(1);
      await w.intact();
    },
  );
});
