/** A retry that two people authorised, and what happened at the provider between their word and the sending. */
import { beforeEach, describe, expect, it } from "vitest";
import type { Operation } from "../../src/domain/operation.js";
import { appliedRetry, dueOperations, freeze, thaw, verifyAudit } from "../../src/ledger/index.js";
import { sendIfAuthorised } from "../../src/reconcile/index.js";
import { moveClock } from "../approvals/steps.js";
import { form } from "../ops/forms.js";
import { expectStatus, type OpsWorld, withOpsWorld } from "../ops/ops-world.js";
import { withPaymentsSandbox } from "../payments/support.js";
import { countersOf } from "../support/counters.js";
import { withDatabase } from "../support/database.js";

const database = withDatabase();
const payments = withPaymentsSandbox();
const build = withOpsWorld(payments);
const { posts, committed } = countersOf(database, payments);
let w: OpsWorld;

beforeEach(async () => {
  w = await build(database.db);
});

/** Nothing of it was done, and two people have said that it is sent once more. */
async function authorised(): Promise<Operation> {
  payments.sandbox.control.arm({ kind: "drop_before_commit" });
  const operation = expectStatus(await w.quarantined(), "QUARANTINED");
  const first = await w.ops.resolve(form(operation, "retry"));
  if (first.outcome !== "needs_second") throw new Error(first.outcome);
  const second = await w.ops.second({
    resolutionId: first.resolution.id,
    userId: "U_ONC2",
    verdict: "agree",
  });
  if (second.outcome !== "resolved") throw new Error(second.outcome);
  return w.now(operation.id);
}

describe("before it is sent the provider is looked at", () => {
  it("nothing is there: it is sent, once", async () => {
    const { id } = await authorised();
    expect(
      await Promise.all([sendIfAuthorised(w.reconcile, id), sendIfAuthorised(w.reconcile, id)]),
    ).toContain(true);
    expect(await sendIfAuthorised(w.reconcile, id)).toBe(false);
    expect(await w.now(id)).toMatchObject({ status: "CONFIRMED" });
    expect(await committed()).toBe(1);
  });

  it("somebody has refunded the same amount by hand: it is not sent, and a person has it again", async () => {
    const { id, attempts } = await authorised();
    const before = await posts();
    const made = await payments.sandbox.control.dashboardRefund({ paymentIntent: "pi_1", amount: 18_000 });
    await sendIfAuthorised(w.reconcile, id);
    const now = await w.now(id);
    expect(now).toMatchObject({ status: "QUARANTINED", attempts });
    expect(now.quarantineReason).toContain(made.id);
    expect(await sendIfAuthorised(w.reconcile, id)).toBe(false);
    expect(await posts()).toBe(before);
    expect(await committed()).toBe(1);
    expect((await verifyAudit(database.db)).broken).toEqual([]);
  });

  it("it cannot be read: what two people said holds", async () => {
    const { id } = await authorised();
    const down = payments.sandbox.control.arm({ kind: "read_down", how: "500" });
    expect(await sendIfAuthorised(w.reconcile, id)).toBe(true);
    payments.sandbox.control.disarm(down);
    expect(await w.now(id)).toMatchObject({ status: "CONFIRMED" });
    expect(await committed()).toBe(1);
  });
});

it("what a freeze has kept past the life of its key is never sent, and a person has it again", async () => {
  const { id, attempts } = await authorised();
  await freeze(w.dispatch, { kind: "all", by: "U_ONC1", reason: "odd refunds" });
  expect(await sendIfAuthorised(w.reconcile, id)).toBe(false);
  await moveClock(database.db, 60 * 40);
  expect(await sendIfAuthorised(w.reconcile, id)).toBe(false);
  await thaw(w.dispatch, { kind: "all", by: "U_ONC2" });
  await sendIfAuthorised(w.reconcile, id);
  expect(await w.now(id)).toMatchObject({ status: "QUARANTINED", attempts });
  expect(await appliedRetry(database.db, id)).toBeNull();
  await moveClock(database.db, 60 * 50);
  expect(await dueOperations(database.db, { limit: 10 })).toMatchObject([{ id, quarantine: "repost" }]);
  expect(await committed()).toBe(0);
});
