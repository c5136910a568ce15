/**
 * What the provider has shown of an operation once, and does not list or cannot list now: it is asked for by itself, so that nothing is
 * rejected by a list that is behind; and what nobody could read when the operation was parked settles it once it can be read.
 */
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Operation } from "../../src/domain/operation.js";
import { eventsOf } from "../../src/ledger/index.js";
import {
  type ReconcileCtx,
  reconcileOne,
  repostQuarantined,
  sweepOrphans,
} from "../../src/reconcile/index.js";
import { balanceOf, moveClock } from "../approvals/steps.js";
import { form } from "../ops/forms.js";
import { expectStatus, type OpsWorld, withOpsWorld } from "../ops/ops-world.js";
import { withPaymentsSandbox } from "../payments/support.js";
import { withDatabase } from "../support/database.js";

const database = withDatabase();
const payments = withPaymentsSandbox();
const build = withOpsWorld(payments);
const { AMOUNT, HOUR } = { AMOUNT: 18_000, HOUR: 61 };
const LIST = { method: "GET", path: "/v1/refunds", paymentIntent: "pi_1" } as const;
const ONE = { method: "GET", path: "/v1/refunds/*" } as const;

let w: OpsWorld;
let sweeper: ReconcileCtx;
let down: string;
beforeEach(async () => {
  w = await build(database.db);
  sweeper = {
    ...w.reconcile,
    reconcile: { ...w.reconcile.reconcile, orphanWindowMs: 30 * 86_400_000, orphanLagMs: 0 },
  };
});
afterEach(() => payments.sandbox.control.disarmAll());

/** Made, every answer lost, its payment not readable until a person was asked; the list of everything showed it meanwhile. */
async function parked(): Promise<Operation> {
  const { control } = payments.sandbox;
  control.arm({ kind: "commit_then_drop", onReplay: true, times: null });
  down = control.arm({ kind: "read_down", match: LIST });
  const operation = expectStatus(await w.sent(BigInt(AMOUNT)), "OUTCOME_UNKNOWN");
  expect(await sweepOrphans(sweeper)).toMatchObject({ read: true, effects: 1 });
  for (let look = 1; look < 8 && (await w.now(operation.id)).status !== "QUARANTINED"; look += 1) {
    await moveClock(database.db, HOUR * look);
    await reconcileOne(w.reconcile, operation.id, "due");
  }
  return expectStatus(await w.now(operation.id), "QUARANTINED");
}

const made = async (): Promise<{ committed: number; ref: string | undefined }> => {
  const [effect] = await payments.sandbox.control.effects();
  return { committed: (await payments.sandbox.control.counts()).committed, ref: effect?.id };
};

const settledByIt = async ({ id }: Operation): Promise<void> => {
  const { committed, ref } = await made();
  expect(committed).toBe(1);
  expect(await w.now(id)).toMatchObject({ status: "CONFIRMED", providerRef: ref });
  expect(await balanceOf(database.db, "ORD-1")).toMatchObject({ reserved: 0, refunded: AMOUNT });
};

const eventCount = async ({ id }: Operation): Promise<number> => (await eventsOf(database.db, id)).length;

describe("a refund that was seen, and that the payment's list does not show", () => {
  it("is asked for by itself: nobody rejects it", async () => {
    const operation = await parked();
    payments.sandbox.control.disarm(down);
    payments.sandbox.control.arm({ kind: "lying_read", lie: "hide", match: LIST });
    expect(await w.ops.resolve(form(operation, "reject"))).toMatchObject({ outcome: "settled_by_evidence" });
    await settledByIt(operation);
  });

  it("and that cannot be read by itself either: it is not rejected, and its money stays set aside", async () => {
    const operation = await parked();
    const { control } = payments.sandbox;
    control.disarm(down);
    control.arm({ kind: "lying_read", lie: "hide", match: LIST });
    control.arm({ kind: "read_down", match: ONE });
    const { ref } = await made();
    expect(await w.ops.resolve(form(operation, "reject"))).toMatchObject({
      outcome: "not_safe",
      sentence: expect.stringContaining(`${ref} was shown before, is not listed, and could not be read`),
    });
    expect(await w.now(operation.id)).toMatchObject({ status: "QUARANTINED" });
    expect(await balanceOf(database.db, "ORD-1")).toMatchObject({ reserved: AMOUNT, refunded: 0 });
  });

  it("nothing is sent again by such a list", async () => {
    const operation = await parked();
    const { control } = payments.sandbox;
    control.disarm(down);
    control.arm({ kind: "lying_read", lie: "hide", match: LIST });
    control.arm({ kind: "read_down", match: ONE });
    const before = (await control.counts()).posts;
    expect(await sweepOrphans(sweeper)).toMatchObject({ read: true });
    await reconcileOne(w.reconcile, operation.id, "due");
    expect((await control.counts()).posts).toBe(before);
    expect(await w.now(operation.id)).toMatchObject({ status: "QUARANTINED" });
  });
});

describe("what could not be read when it was parked", () => {
  it("the card names what was seen", async () => {
    const operation = await parked();
    const { ref } = await made();
    expect(operation.quarantineReason).toContain(`the provider has shown ${ref} of £180.00 GBP (succeeded)`);
  });

  it("settles by the next list once the payment can be read", async () => {
    const operation = await parked();
    payments.sandbox.control.disarm(down);
    await sweepOrphans(sweeper);
    await reconcileOne(w.reconcile, operation.id, "due");
    await settledByIt(operation);
  });

  it("settles when its card would come again, and no person is asked", async () => {
    const operation = await parked();
    payments.sandbox.control.disarm(down);
    await moveClock(database.db, HOUR * 20);
    w.h.shown.touched.length = 0;
    expect(await repostQuarantined(w.reconcile, operation.id)).toBe(false);
    await settledByIt(operation);
  });

  it("as long as it cannot be read, lists that show it again move nothing, and the card comes again in its time", async () => {
    const operation = await parked();
    const before = await eventCount(operation);
    for (let pass = 0; pass < 3; pass += 1) {
      await sweepOrphans(sweeper);
      await reconcileOne(w.reconcile, operation.id, "due");
    }
    expect(await eventCount(operation)).toBe(before);
    expect(await repostQuarantined(w.reconcile, operation.id)).toBe(false);
    await moveClock(database.db, HOUR * 20);
    expect(await repostQuarantined(w.reconcile, operation.id)).toBe(true);
    expect(await eventCount(operation)).toBe(before);
  });
});
