/** The balance of a payment that somebody changed in the database: nothing is sent on it, and what cannot be written down because of it is told. */
import { expect, it } from "vitest";
import { books, database, form, kinds, ops, w } from "./word-world.js";

const byHand = (change: string, payment = "pi_ORD-1"): Promise<unknown> =>
  database.db.sql(undefined, `UPDATE payments SET ${change} WHERE payment_intent = $1`, [payment]);

it("what was refunded set back to nothing: what is approved on that is not sent", async () => {
  await w.order({ ref: "ORD-9", captured: 5_000 });
  // The provider bounds nothing here.
  await w.control.seedPayment({ paymentIntent: "pi_ORD-9", amount: 50_000, currency: "GBP" });
  await w.work(w.worker("w"), await w.prepared("ORD-9", 4_000n));
  await byHand("refunded = 0", "pi_ORD-9");
  const held = await w.ask("ORD-9", 3_000n);
  const [approval] = held.approvals;
  const id = held.calls[0]?.operationId;
  if (approval === undefined || id === undefined) throw new Error("not held");
  await w.h.click("U_SUP1", approval, "approve");
  await w.h.release(held);
  expect(await w.work(w.worker("w"), id)).toMatchObject({ status: "VOIDED", attempts: 0 });
  expect(await w.posts()).toHaveLength(1);
  expect(await kinds()).toEqual(["row_changed"]);
});

it.each([
  ["what is set aside", "reserved = 0"],
  ["what was refunded", "refunded = 500"],
  ["what counts as refunded elsewhere", "refunded_elsewhere = 500"],
  ["the currency that closes it, set and taken away", "other_currency = NULL, refunded_elsewhere = 700"],
])("%s, changed before it is sent: it is not", async (_what, change) => {
  const id = await w.prepared("ORD-1", 2_000n);
  await byHand(change);
  const { status } = await w.look(w.worker("w"), id);
  expect(["PREPARED", "VOIDED"]).toContain(status);
  expect(await w.posts()).toEqual([]);
  expect(await kinds()).toEqual(["row_changed"]);
});

it.each(["another order's payment", "no payment"])(
  "set aside on %s by hand: it is not sent",
  async (which) => {
    const id = await w.prepared("ORD-1", 2_000n);
    const other =
      which === "no payment" ? "NULL" : "(SELECT id FROM payments WHERE payment_intent = 'pi_ORD-2')";
    await database.db.sql(undefined, `UPDATE operations SET payment_id = ${other} WHERE id = $1`, [id]);
    await w.look(w.worker("w"), id);
    expect(await w.posts()).toEqual([]);
    expect(await kinds()).toEqual(["row_changed"]);
  },
);

it("changed while its outcome is open: on-call hears why nothing can be written, and decides once it is mended", async () => {
  w.control.arm({ kind: "commit_then_drop", match: { method: "POST" } });
  const { id } = await w.look(w.worker("w"), await w.prepared("ORD-1", 2_000n));
  await byHand("reserved = 0");
  const parked = await w.work(w.worker("w"), id);
  expect(parked).toMatchObject({ status: "QUARANTINED" });
  expect(await kinds()).toEqual(["row_changed"]);
  const refused = await ops.resolve(form(parked, "their page"));
  expect(refused).toMatchObject({ outcome: "not_safe", operation: { status: "QUARANTINED" } });
  expect(
    JSON.stringify(refused, (_key, value) => (typeof value === "bigint" ? `${value}` : value)),
  ).toContain("was changed in the database, and does not hold this");
  await byHand("reserved = 2000");
  expect(await ops.resolve(form(parked, "their page"))).toMatchObject({
    outcome: "resolved",
    operation: { status: "CONFIRMED" },
  });
  expect(await books("ORD-1")).toEqual({ reserved: 0, refunded: 2_000, elsewhere: 0 });
  expect(await w.posts()).toHaveLength(1);
  await w.intact();
});
