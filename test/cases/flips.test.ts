/**
 * What the provider shows now as failed and now as made, and what had ended and is open again: it ends by what is shown or is with a person,
 * never with nobody, and no machine sends it again.
 */
import { describe, expect, it } from "vitest";
import type { Operation } from "../../src/domain/operation.js";
import { quarantineWords } from "../../src/domain/quarantine-words.js";
import { sendIfAuthorised, sweepOrphans } from "../../src/reconcile/index.js";
import { books, database, effectsOf, form, hearAll, kinds, ops, refundUnder, w } from "./word-world.js";

/** Its answer is lost, and it has failed at the provider. */
async function failedUnheard(): Promise<{ operation: Operation; ref: string }> {
  w.control.arm({ kind: "commit_then_drop", match: { method: "POST" } });
  const operation = await w.look(w.worker("w"), await w.prepared("ORD-1", 2_000n));
  const [effect] = await w.control.effects();
  const ref = effect?.id ?? "";
  await w.control.advanceRefund(ref, { status: "failed" });
  return { operation, ref };
}

describe("a refund that failed and is made after all", () => {
  it("while its outcome is open: a person decides, and may confirm it", async () => {
    const { operation, ref } = await failedUnheard();
    await hearAll();
    await w.control.advanceRefund(ref, { status: "succeeded" });
    const parked = await w.work(w.worker("w"), operation.id);
    expect(parked).toMatchObject({ status: "QUARANTINED" });
    expect(quarantineWords(parked.quarantineReason ?? "")).toContain(
      `${ref} of £20.00 GBP is succeeded, and the provider had told that it failed.`,
    );
    expect(await ops.resolve(form(parked, ref))).toMatchObject({
      outcome: "resolved",
      operation: { status: "CONFIRMED", providerRef: ref },
    });
    expect(await books("ORD-1")).toEqual({ reserved: 0, refunded: 2_000, elsewhere: 0 });
    expect(await w.posts()).toHaveLength(1);
    await w.intact();
  });

  it("after it ended as rejected: it is with a person, and further news leaves it there", async () => {
    const { operation, ref } = await failedUnheard();
    const ctx = w.worker("w");
    expect(await w.work(ctx, operation.id)).toMatchObject({ status: "REJECTED" });
    await w.control.advanceRefund(ref, { status: "pending" });
    await sweepOrphans(ctx);
    expect(await w.now(operation.id)).toMatchObject({ status: "QUARANTINED" });
    await w.control.advanceRefund(ref, { status: "succeeded" });
    await hearAll();
    expect(await w.look(ctx, operation.id)).toMatchObject({ status: "QUARANTINED" });
    expect(await kinds()).toEqual(["contradiction"]);
    expect(await books("ORD-1")).toEqual({ reserved: 2_000, refunded: 0, elsewhere: 0 });
  });

  it("known as made elsewhere by a row that somebody wrote: it is with a person in the end", async () => {
    w.control.arm({ kind: "commit_then_drop", match: { method: "POST" } });
    const { id } = await w.look(w.worker("w"), await w.prepared("ORD-1", 2_000n));
    const [ref = ""] = await effectsOf(id);
    await database.db.sql(
      undefined,
      `INSERT INTO provider_evidence (id, dedupe_key, source, provider_ref, payload, at)
       VALUES ('evd_by_hand', 'by hand', 'sweep', $1, '{}', countersign_now() - interval '1 day')`,
      [ref],
    );
    expect(await w.work(w.worker("w"), id)).toMatchObject({ status: "QUARANTINED" });
    expect(await w.posts()).toHaveLength(1);
  });
});

/** Sent twice without effect, then nobody worked for two hours: with a person, and its key is safe for a day. */
async function parkedEarly(): Promise<Operation> {
  const down = w.control.arm({ kind: "read_down", how: "drop" });
  const lost = w.control.arm({ kind: "drop_before_commit", times: null });
  const ctx = w.worker("w");
  const id = await w.prepared("ORD-1", 2_000n);
  await w.look(ctx, id);
  await w.advance(2 * 3_600_000);
  await w.look(ctx, id);
  expect(await w.work(ctx, id)).toMatchObject({ status: "QUARANTINED", attempts: 2 });
  w.control.disarm(lost);
  w.control.disarm(down);
  return w.now(id);
}

/** News about the operation that shows nothing of it on its own payment. */
async function news(operation: Operation): Promise<string> {
  const ref = await refundUnder(operation.id, "ORD-2", 700);
  await hearAll();
  return ref;
}

/** `ref`: what the provider shows under its id on another payment. */
async function nothingSent(operation: Operation, ref: string): Promise<void> {
  await staysParked(
    operation,
    `The provider made something else than was asked for: ${ref} of £7.00 GBP on pi_ORD-2 (differs in payment, amount).`,
  );
}

async function staysParked(operation: Operation, why: string): Promise<void> {
  const ctx = w.worker("w");
  for (let looks = 0; looks < 3; looks += 1) {
    await w.look(ctx, operation.id);
    await w.advance(60_000);
  }
  expect(await w.control.effects({ paymentIntent: "pi_ORD-1" })).toEqual([]);
  const parked = await w.now(operation.id);
  expect(parked).toMatchObject({ status: "QUARANTINED", attempts: 2 });
  expect(quarantineWords(parked.quarantineReason ?? "")).toBe(why);
  expect(await books("ORD-1")).toMatchObject({ reserved: 2_000, refunded: 0 });
}

describe("what had ended is not sent again by a machine", () => {
  it("confirmed on a person's word, opened again, and then there is news", async () => {
    const operation = await parkedEarly();
    expect(await ops.resolve(form(operation, "bank transfer 4711"))).toMatchObject({
      outcome: "resolved",
      operation: { status: "CONFIRMED" },
    });
    const { id } = operation;
    const again = {
      ref: id,
      userId: "U_ONC2",
      reason: "another transfer",
      evidenceRef: "bank transfer 4712",
    };
    expect(await ops.reopen(again)).toMatchObject({ outcome: "reopened" });
    await nothingSent(operation, await news(operation));
  });

  it("opened again by a person, and what is shown of it on another payment comes to nothing", async () => {
    const operation = await parkedEarly();
    const asked = await ops.resolve({ ...form(operation, "the provider's page"), verb: "reject" });
    if (asked.outcome !== "needs_second") throw new Error(asked.outcome);
    const agreed = { resolutionId: asked.resolution.id, userId: "U_ONC2", verdict: "agree" } as const;
    expect(await ops.second({ ...agreed, note: null })).toMatchObject({ operation: { status: "REJECTED" } });
    const again = { ref: operation.id, userId: "U_ONC2", reason: "a wrong click", evidenceRef: "note" };
    expect(await ops.reopen(again)).toMatchObject({ outcome: "reopened" });
    w.control.arm({ kind: "outcome", status: "pending" });
    const ref = await refundUnder(operation.id, "ORD-2", 700);
    await hearAll();
    await w.control.advanceRefund(ref, { status: "failed" });
    await hearAll();
    await w.work(w.worker("w"), operation.id);
    await staysParked(
      operation,
      "It had ended before, so it is not sent again unless a person authorises that.",
    );
  });

  it("rejected by people, shown on another payment, and then there is news: rejected it stays", async () => {
    const operation = await parkedEarly();
    const asked = await ops.resolve({ ...form(operation, "the provider's page"), verb: "reject" });
    if (asked.outcome !== "needs_second") throw new Error(asked.outcome);
    const agreed = { resolutionId: asked.resolution.id, userId: "U_ONC2", verdict: "agree" } as const;
    expect(await ops.second({ ...agreed, note: null })).toMatchObject({ operation: { status: "REJECTED" } });
    w.control.arm({ kind: "outcome", status: "pending" });
    const ref = await refundUnder(operation.id, "ORD-2", 700);
    await hearAll();
    await w.control.advanceRefund(ref, { status: "succeeded" });
    await hearAll();
    await w.look(w.worker("w"), operation.id);
    expect(await w.now(operation.id)).toMatchObject({ status: "REJECTED", attempts: 2 });
    expect(await w.control.effects({ paymentIntent: "pi_ORD-1" })).toEqual([]);
    expect(await books("ORD-1")).toMatchObject({ reserved: 0, refunded: 0 });
    expect(await books("ORD-2")).toMatchObject({ elsewhere: 700 });
  });

  it("what opened it again and is hidden for a moment settles it, and nothing is sent", async () => {
    const operation = await parkedEarly();
    expect(await ops.resolve(form(operation, "re_byhand"))).toMatchObject({ outcome: "resolved" });
    const ref = await refundUnder(operation.id, "ORD-1", 2_000);
    await hearAll();
    expect(await w.now(operation.id)).toMatchObject({ status: "QUARANTINED" });
    const hidden = w.control.arm({ kind: "lying_read", lie: "hide" });
    const before = (await w.posts()).length;
    await w.look(w.worker("w"), operation.id);
    w.control.disarm(hidden);
    await w.advance(60_000);
    expect(await w.look(w.worker("w"), operation.id)).toMatchObject({
      status: "CONFIRMED",
      providerRef: ref,
    });
    expect(await w.posts()).toHaveLength(before);
    expect(await effectsOf(operation.id)).toEqual([ref]);
  });

  it("a person who authorises it sends it, once, and what becomes of that is looked up as ever", async () => {
    const operation = await parkedEarly();
    const { id } = operation;
    expect(await ops.resolve(form(operation, "bank transfer 4711"))).toMatchObject({ outcome: "resolved" });
    const again = { ref: id, userId: "U_ONC2", reason: "never arrived", evidenceRef: "bank" };
    expect(await ops.reopen(again)).toMatchObject({ outcome: "reopened" });
    const asked = await ops.resolve({ ...form(operation, "bank"), verb: "retry" });
    if (asked.outcome === "needs_second") {
      const agreed = { resolutionId: asked.resolution.id, userId: "U_ONC2", verdict: "agree" } as const;
      await ops.second({ ...agreed, note: null });
    }
    const lost = w.control.arm({ kind: "drop_before_commit" });
    await sendIfAuthorised(w.worker("w"), id);
    expect(w.control.fired(lost)).toBe(1);
    expect(await w.work(w.worker("w"), id)).toMatchObject({ status: "CONFIRMED", attempts: 4 });
    expect(await effectsOf(id)).toHaveLength(1);
    await w.intact();
  });
});
