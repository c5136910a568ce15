/** Rows of evidence that somebody wrote or deleted by hand: they explain nobody's refund, and nothing is sent because of them. */
import { describe, expect, it } from "vitest";
import { sweepOrphans } from "../../src/reconcile/index.js";
import { onlyApproval, operationAt } from "../approvals/steps.js";
import { writeByHand } from "../support/by-hand.js";
import { books, database, kinds, LAG_MS, w } from "./word-world.js";

/** Sent once without effect; then a person refunds the same amount by hand. Returns the operation and that refund. */
async function besideStranger() {
  const lost = w.control.arm({ kind: "drop_before_commit", times: null });
  const id = await w.prepared("ORD-1", 2_000n);
  await w.look(w.worker("w"), id);
  w.control.disarm(lost);
  const { id: stranger } = await w.control.dashboardRefund({ paymentIntent: "pi_ORD-1", amount: 2_000 });
  return { id, stranger };
}

const evidence = (ref: string, payload: object): Promise<void> =>
  writeByHand(
    database.db,
    `forged:${ref}`,
    `INSERT INTO provider_evidence (id, dedupe_key, source, provider_ref, payload, at)
     VALUES ($1, 'elsewhere:${ref}', 'sweep', '${ref}', '${JSON.stringify(payload)}', '2020-01-01')`,
  );
const asSeen = (ref: string) => ({
  ref,
  paymentIntent: "pi_ORD-1",
  amount: 2_000,
  currency: "GBP",
  operation: null,
  createdAt: "2020-01-01T00:00:00Z",
});

describe("a refund by a stranger of the amount of an operation whose outcome is open", () => {
  it.each([
    ["said to be seen long ago", asSeen],
    ["said to be seen long ago, in a row of nonsense", () => ({ nonsense: true })],
  ] as const)("%s: nothing is sent again, a person decides", async (_how, payload) => {
    const { id, stranger } = await besideStranger();
    const before = (await w.posts()).length;
    await evidence(stranger, payload(stranger));
    expect(await w.work(w.worker("w"), id)).toMatchObject({
      status: "QUARANTINED",
      quarantineReason: expect.stringContaining("unattributed_effect"),
    });
    expect(await w.posts()).toHaveLength(before);
    expect(await w.committed()).toBe(1);
    await w.intact();
  });

  it("seen before the operation was asked for, as the log tells: it is no reason to stop", async () => {
    await w.control.dashboardRefund({ paymentIntent: "pi_ORD-1", amount: 2_000 });
    await w.advance(LAG_MS);
    await sweepOrphans(w.worker("sweep"));
    const lost = w.control.arm({ kind: "drop_before_commit", times: null });
    const id = await w.prepared("ORD-1", 2_000n);
    await w.look(w.worker("w"), id);
    w.control.disarm(lost);
    expect(await w.work(w.worker("w"), id)).toMatchObject({ status: "CONFIRMED" });
    expect(await w.committed()).toBe(2);
  });
});

describe("a refund by a stranger that is said to have failed", () => {
  it("counts all the same: the provider is asked for it, and what is not left is not sent", async () => {
    const { id: stranger } = await w.control.dashboardRefund({ paymentIntent: "pi_ORD-1", amount: 2_000 });
    await evidence(stranger, { ...asSeen(stranger), status: "failed" });
    const held = await w.ask("ORD-1", 18_000n);
    await w.h.click("U_SUP1", onlyApproval(held));
    await w.h.release(held);
    expect(await w.work(w.worker("w"), operationAt(held, 0))).toMatchObject({ status: "VOIDED" });
    expect(await w.posts()).toEqual([]);
    expect(await books("ORD-1")).toEqual({ reserved: 0, refunded: 0, elsewhere: 2_000 });
    expect(await kinds()).toEqual(["refunded_elsewhere"]);
  });
});

describe("evidence that was deleted", () => {
  it("of a refund made elsewhere: it counts all the same, once, when the list is read again", async () => {
    await w.control.dashboardRefund({ paymentIntent: "pi_ORD-1", amount: 2_000 });
    await w.advance(LAG_MS);
    await sweepOrphans(w.worker("sweep"));
    expect((await books("ORD-1"))?.elsewhere).toBe(2_000);
    await writeByHand(database.db, null, "DELETE FROM provider_evidence");
    await w.advance(LAG_MS);
    await sweepOrphans(w.worker("sweep"));
    expect(await books("ORD-1")).toEqual({ reserved: 0, refunded: 0, elsewhere: 2_000 });
    expect(await kinds()).toEqual(["refunded_elsewhere"]);
    await w.intact();
  });

  it("of an operation's own effect: it stays confirmed, and no second refund is told or sent", async () => {
    const id = await w.prepared("ORD-1", 2_000n);
    expect(await w.work(w.worker("w"), id)).toMatchObject({ status: "CONFIRMED" });
    await writeByHand(database.db, null, "DELETE FROM provider_evidence");
    await w.advance(LAG_MS);
    await sweepOrphans(w.worker("sweep"));
    expect(await w.now(id)).toMatchObject({ status: "CONFIRMED" });
    expect(await books("ORD-1")).toEqual({ reserved: 0, refunded: 2_000, elsewhere: 0 });
    expect(await kinds()).toEqual([]);
    expect(await w.committed()).toBe(1);
  });

  it("of an operation that is open: the provider is asked anew", async () => {
    const lost = w.control.arm({ kind: "commit_then_drop" });
    const id = await w.prepared("ORD-1", 2_000n);
    await w.look(w.worker("w"), id);
    w.control.disarm(lost);
    await writeByHand(database.db, null, "DELETE FROM provider_evidence");
    expect(await w.work(w.worker("w"), id)).toMatchObject({ status: "CONFIRMED" });
    expect(await w.committed()).toBe(1);
    expect(await w.posts()).toHaveLength(1);
  });
});
