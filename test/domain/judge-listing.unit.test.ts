import { describe, expect, it } from "vitest";
import type { Listing, ProviderEffect } from "../../src/domain/evidence.js";
import type { OperationId } from "../../src/domain/ids.js";
import { judgeListing, type ListingContext } from "../../src/domain/judge-listing.js";

const AT = new Date("2026-11-29T12:00:00Z");
const OURS: OperationId = "op_ours";
const operation = {
  id: OURS,
  kind: "refund",
  amountMinor: 6000n,
  currency: "GBP",
  paymentIntent: "pi_1",
  providerSubscription: null,
  atPeriodEnd: null,
} as const;

const refund = (part: Partial<ProviderEffect>): ProviderEffect => ({
  ref: "re_1",
  kind: "refund",
  target: "pi_1",
  amountMinor: 6000n,
  currency: "GBP",
  status: "succeeded",
  pendingReason: null,
  failureReason: null,
  operationId: OURS,
  createdAt: AT,
  ...part,
});
const list = (...effects: ProviderEffect[]): Listing => ({
  read: "complete",
  effects,
  balance: null,
  readAt: AT,
});
const context = (part: Partial<ListingContext> = {}): ListingContext => ({
  known: new Map(),
  operations: new Set([OURS]),
  seenBefore: new Set(),
  capturedMinor: 10_000n,
  ...part,
});

describe("a provider's list, judged for one operation", () => {
  it("that cannot be read says nothing", () => {
    const listing: Listing = { read: "failed", reason: "timeout", detail: "10000 ms" };
    expect(judgeListing(operation, listing, context())).toMatchObject({ says: "unknown" });
  });

  it("is committed only by the effect that carries our id, with amount, currency, payment and state as asked", () => {
    expect(judgeListing(operation, list(refund({})), context())).toMatchObject({
      says: "committed",
      postcondition: "holds",
    });
    for (const [part, differs] of [
      [{ amountMinor: 5999n }, "amount"],
      [{ currency: "USD" }, "currency"],
      [{ target: "pi_2" }, "payment"],
    ] as const) {
      expect(judgeListing(operation, list(refund(part)), context())).toMatchObject({
        says: "committed",
        postcondition: "fails",
        differs: [differs],
      });
    }
  });

  it("never lets one effect confirm two operations", () => {
    const known = new Map([["re_1", "op_other" as OperationId]]);
    expect(judgeListing(operation, list(refund({})), context({ known }))).toMatchObject({
      postcondition: "fails",
      differs: ["operation"],
    });
  });

  it("with two effects of ours is a duplicate, unless one of them came to nothing", () => {
    const second = refund({ ref: "re_2" });
    expect(judgeListing(operation, list(refund({}), second), context()).says).toBe("duplicate");
    expect(judgeListing(operation, list(refund({ status: "failed" }), second), context())).toMatchObject({
      says: "committed",
      effect: { ref: "re_2" },
    });
  });

  it("holds a pending effect open and a failed one proven", () => {
    const pending = refund({ status: "pending", pendingReason: "insufficient_funds" });
    expect(judgeListing(operation, list(pending), context())).toMatchObject({
      says: "pending",
      reason: "insufficient_funds",
    });
    expect(judgeListing(operation, list(refund({ status: "requires_action" })), context()).says).toBe(
      "pending",
    );
    const failed = refund({ status: "failed", failureReason: "declined" });
    expect(judgeListing(operation, list(failed), context())).toMatchObject({
      says: "failed_at_provider",
      code: "declined",
    });
    expect(judgeListing(operation, list(refund({ status: "odd" })), context()).says).toBe("unknown");
  });

  it("with nothing of ours is absent, and other operations' effects explain themselves", () => {
    expect(judgeListing(operation, list(), context()).says).toBe("absent");
    const known = new Map([["re_9", "op_other" as OperationId]]);
    const recorded = refund({ ref: "re_9", operationId: null });
    expect(judgeListing(operation, list(recorded), context({ known })).says).toBe("absent");
    const unrecorded = refund({ ref: "re_8", operationId: "op_other" });
    const operations = new Set<OperationId>([OURS, "op_other"]);
    expect(judgeListing(operation, list(unrecorded), context({ operations })).says).toBe("absent");
  });

  it("with a stranger of the same amount stops everything, even if it names an operation that is not ours", () => {
    for (const operationId of [null, "op_elsewhere"]) {
      const stranger = refund({ ref: "re_s", operationId });
      expect(judgeListing(operation, list(stranger), context())).toMatchObject({
        says: "unattributed",
        effects: [{ ref: "re_s" }],
      });
    }
  });

  it("with a stranger of another amount stops only when the balance no longer holds ours", () => {
    const small = refund({ ref: "re_s", operationId: null, amountMinor: 1000n });
    expect(judgeListing(operation, list(small), context()).says).toBe("absent");
    const large = refund({ ref: "re_s", operationId: null, amountMinor: 5000n });
    expect(judgeListing(operation, list(large), context()).says).toBe("unattributed");
    const stated: Listing = {
      ...list(large),
      balance: { capturedMinor: 50_000n, refundedMinor: 5000n, currency: "GBP", disputed: false },
    } as Listing;
    expect(judgeListing(operation, stated, context()).says).toBe("absent");
  });

  it("does not stop for what came to nothing or was there before we began", () => {
    const dead = refund({ ref: "re_d", operationId: null, status: "canceled" });
    expect(judgeListing(operation, list(dead), context()).says).toBe("absent");
    const old = refund({ ref: "re_o", operationId: null });
    expect(judgeListing(operation, list(old), context({ seenBefore: new Set(["re_o"]) })).says).toBe(
      "absent",
    );
  });
});

describe("a subscription, judged by its state", () => {
  const cancel = {
    ...operation,
    kind: "cancel_subscription",
    amountMinor: 0n,
    currency: "",
    paymentIntent: null,
    providerSubscription: "sub_1",
    atPeriodEnd: false,
  } as const;
  const state = (status: string, target = "sub_1"): ProviderEffect =>
    refund({ ref: target, kind: "subscription_cancellation", target, amountMinor: 0n, currency: "", status });

  it("cancelled is cancelled, whoever asked; ending with its period is not cancelled at once", () => {
    expect(judgeListing(cancel, list(state("canceled")), context())).toMatchObject({
      postcondition: "holds",
    });
    expect(judgeListing(cancel, list(state("cancel_at_period_end")), context()).says).toBe("absent");
    expect(judgeListing(cancel, list(state("canceled", "sub_2")), context()).says).toBe("absent");
    const later = { ...cancel, atPeriodEnd: true };
    expect(judgeListing(later, list(state("cancel_at_period_end")), context())).toMatchObject({
      postcondition: "holds",
    });
    expect(judgeListing(later, list(state("canceled")), context())).toMatchObject({ postcondition: "holds" });
  });
});
