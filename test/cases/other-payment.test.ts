/**
 * The provider makes the refund on another payment than was asked for: nobody here has what was asked for, somebody else has it. It is with
 * a person at once, never confirmed, and closed once for good; the other payment counts what left it.
 */
import { beforeEach, describe, expect, it } from "vitest";
import { refreshBalance } from "../../src/dispatch/index.js";
import type { OperationId } from "../../src/domain/ids.js";
import type { Operation } from "../../src/domain/operation.js";
import { reconcileOne, sweepOrphans } from "../../src/reconcile/index.js";
import { incidentCard } from "../../src/slack/cards/incident-card.js";
import { quarantineCard } from "../../src/slack/cards/ops-cards.js";
import { readIncident, readQuarantine } from "../../src/slack/views/ops.js";
import {
  books,
  cardOf,
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
  refundUnder,
  w,
} from "./word-world.js";

const BOTH = ["made_differently", "refunded_elsewhere"];
beforeEach(async () => {
  await database.db.sql(
    undefined,
    "INSERT INTO customers (id, ref, name, email, email_normal) VALUES ('cus-9', 'CUS-9', 'Mia Nash', 'mia@shop.example', 'mia@shop.example')",
  );
  await database.db.sql(undefined, "UPDATE orders SET customer_id = 'cus-9' WHERE ref = 'ORD-2'");
});

const found = async (): Promise<string[]> => (await kinds()).sort();
const onOther = () => w.control.arm({ kind: "wrong_answer", paymentIntent: "pi_ORD-2" });

/** The verbs of the card in the ops channel. */
async function onCard(id: OperationId): Promise<string[]> {
  const view = await readQuarantine(database.db, id);
  if (view === null) throw new Error("no card");
  const text = JSON.stringify(quarantineCard(view).blocks);
  return ["Confirm committed", "Reject", "Authorise retry"].filter((verb) =>
    text.includes(`"text":"${verb}"`),
  );
}

/** The verbs that `/ops show` says are possible. */
async function inShow(id: OperationId): Promise<string[]> {
  const view = await ops.show({ userId: "U_ONC1", ref: id });
  if (view.outcome !== "operation") throw new Error(view.outcome);
  return view.safe.filter(({ possible }) => possible).map(({ verb }) => verb);
}

async function rejected(id: OperationId, evidenceRef = "the provider's page"): Promise<Operation> {
  const asked = await ops.resolve({
    ref: id,
    verb: "reject",
    userId: "U_ONC1",
    reason: "not there",
    evidenceRef,
  });
  if (asked.outcome !== "needs_second") throw new Error(JSON.stringify(asked.outcome));
  const agreed = await ops.second({
    resolutionId: asked.resolution.id,
    userId: "U_ONC2",
    verdict: "agree",
    note: "",
  });
  if (agreed.outcome !== "resolved") throw new Error(agreed.outcome);
  return w.now(id);
}

/** Everything by which the provider could tell of it once more. */
async function toldAgain(): Promise<void> {
  await hearAll();
  await w.advance(LAG_MS);
  await sweepOrphans(w.worker("s"));
  await hearAll();
  await sweepOrphans(w.worker("t"));
}

/** Once: on the other payment as made elsewhere, and nowhere else. */
async function countedOnce(reserved: number): Promise<void> {
  expect(await books("ORD-1")).toEqual({ reserved, refunded: 0, elsewhere: 0 });
  expect(await books("ORD-2")).toEqual({ reserved: 0, refunded: 0, elsewhere: 2_000 });
}

/** With a person as what it is, whoever told of it. */
async function withAPerson(id: OperationId, ref: string): Promise<void> {
  const now = await w.now(id);
  expect(now).toMatchObject({ status: "QUARANTINED", providerRef: null });
  expect(now.quarantineReason).toMatch(
    new RegExp(`^postcondition_failed: ${ref} of £20\\.00 GBP on pi_ORD-2 `, "u"),
  );
  expect(await onCard(id)).toEqual(["Reject"]);
  expect(await inShow(id)).toEqual(["reject"]);
}

describe("the answer names another payment, and the refund is there", () => {
  it("is with a person at once, is sent once, and both orders' findings are told", async () => {
    onOther();
    const id = await w.prepared("ORD-1", 2_000n);
    await w.look(w.worker("w"), id);
    expect(await books("ORD-2"), "counts with the answer").toMatchObject({ elsewhere: 2_000 });
    await w.look(w.worker("w"), id);
    const [ref = ""] = await effectsOf(id);
    await withAPerson(id, ref);
    expect(await found()).toEqual(BOTH);
    expect(await w.posts()).toHaveLength(1);
    await countedOnce(2_000);
    const card = await cardOf("made_differently");
    for (const fact of ["pi_ORD-1", "pi_ORD-2", "ORD-2", "Mia Nash"]) expect(card).toContain(fact);
    const other = await cardOf("refunded_elsewhere");
    for (const fact of ["ORD-2", ref, id]) expect(other).toContain(fact);
    expect(other).not.toContain("outside Countersign");
    expect((await w.told()).at(-1)).toContain("pi_ORD-2");
    await w.intact();
  });

  it("whatever tells of it again changes nothing, and nothing is sent", async () => {
    onOther();
    const id = await w.prepared("ORD-1", 2_000n);
    await w.work(w.worker("w"), id);
    const before = await incidents();
    await toldAgain();
    await w.look(w.worker("w"), id);
    expect(await incidents()).toEqual(before);
    expect(await w.posts()).toHaveLength(1);
    await countedOnce(2_000);
  });

  it("is confirmed by nobody: not with its reference, and not with any other", async () => {
    onOther();
    const id = await w.prepared("ORD-1", 2_000n);
    const operation = await w.work(w.worker("w"), id);
    const [ref = ""] = await effectsOf(id);
    for (const evidence of [ref, "seen on their page"]) {
      const outcome = await ops.resolve(form(operation, evidence));
      expect(outcome).toMatchObject({
        outcome: "not_safe",
        sentence: expect.stringMatching(/on pi_ORD-2.*never confirmed/u),
      });
    }
    expect(await w.now(id)).toMatchObject({ status: "QUARANTINED", providerRef: null });
  });

  it.each(["cannot be asked", "shows nothing of it"])("nor where the provider %s", async (how) => {
    onOther();
    const id = await w.prepared("ORD-1", 2_000n);
    const operation = await w.work(w.worker("w"), id);
    const [ref = ""] = await effectsOf(id);
    w.control.arm(
      how === "cannot be asked" ? { kind: "read_down", how: "drop" } : { kind: "lying_read", lie: "hide" },
    );
    const outcome = await ops.resolve(form(operation, ref));
    expect(["invalid", "not_safe"]).toContain(outcome.outcome);
    expect(JSON.stringify("sentence" in outcome ? outcome.sentence : "")).toMatch(/not what was asked for/u);
    expect(await w.now(id)).toMatchObject({ status: "QUARANTINED", providerRef: null });
  });

  it("two people close it once: the money set aside is free, and nothing opens it again", async () => {
    onOther();
    const id = await w.prepared("ORD-1", 2_000n);
    await w.work(w.worker("w"), id);
    const [ref = ""] = await effectsOf(id);
    const closed = await rejected(id);
    expect(closed).toMatchObject({
      status: "REJECTED",
      result: { code: "made_differently", providerRef: ref, detail: expect.stringContaining("pi_ORD-2") },
    });
    await countedOnce(0);
    const before = await incidents();
    await toldAgain();
    expect(await w.now(id)).toMatchObject({ status: "REJECTED", version: closed.version });
    expect(await incidents()).toEqual(before);
    expect((await w.told()).at(-1)).toMatch(/not carried out as asked: .*pi_ORD-2/u);
    await countedOnce(0);
    await w.intact();
  });

  it("opened again by a person, it is found again as what it is, and closed again", async () => {
    onOther();
    const id = await w.prepared("ORD-1", 2_000n);
    await w.work(w.worker("w"), id);
    await rejected(id);
    const request = { ref: id, userId: "U_ONC1", reason: "a wrong click", evidenceRef: "note" };
    expect(await ops.reopen(request)).toMatchObject({ outcome: "reopened" });
    expect(await inShow(id)).toEqual(["reject"]);
    await countedOnce(2_000);
    expect(await rejected(id)).toMatchObject({ status: "REJECTED", result: { code: "made_differently" } });
    await countedOnce(0);
    expect(await w.posts()).toHaveLength(1);
  });

  it("came to nothing there: nothing counts, and it is closed as not carried out", async () => {
    onOther();
    const id = await w.prepared("ORD-1", 2_000n);
    await w.work(w.worker("w"), id);
    const [ref = ""] = await effectsOf(id);
    await w.control.advanceRefund(ref, { status: "failed" });
    await hearAll();
    expect(await books("ORD-2")).toMatchObject({ elsewhere: 0 });
    const outcome = await ops.resolve(form(await w.now(id), ref));
    expect(outcome.outcome).toMatch(/invalid|not_safe/u);
    expect(await rejected(id)).toMatchObject({ status: "REJECTED" });
    expect(await books("ORD-1")).toEqual({ reserved: 0, refunded: 0, elsewhere: 0 });
  });

  it("only the answer was wrong: it is confirmed by the list, and nothing is left of it elsewhere", async () => {
    w.control.arm({ kind: "wrong_answer", paymentIntent: "pi_ORD-2", persist: false });
    const id = await w.prepared("ORD-1", 2_000n);
    expect(await w.work(w.worker("w"), id)).toMatchObject({ status: "CONFIRMED" });
    await w.advance(LAG_MS);
    await sweepOrphans(w.worker("s"));
    await hearAll();
    expect(await books("ORD-1")).toEqual({ reserved: 0, refunded: 2_000, elsewhere: 0 });
    expect(await w.committed()).toBe(1);
  });
});

describe("no answer came, and something else tells that the refund is on another payment", () => {
  /** Sent, and the provider made it elsewhere and said nothing. */
  async function unanswered(): Promise<{ id: OperationId; ref: string }> {
    const lost = w.control.arm({ kind: "drop_before_commit", times: null });
    const id = await w.prepared("ORD-1", 2_000n);
    await w.look(w.worker("w"), id);
    w.control.disarm(lost);
    return { id, ref: await refundUnder(id, "ORD-2", 2_000) };
  }

  it.each(["a webhook", "the list of everything", "the other payment's list"])(
    "%s: the same",
    async (how) => {
      const { id, ref } = await unanswered();
      if (how === "a webhook") await hearAll();
      else if (how === "the list of everything") await sweepOrphans(w.worker("s"));
      else await refreshBalance(w.worker("s"), { paymentIntent: "pi_ORD-2", providerSubscription: null });
      await reconcileOne(w.worker("w"), id, "evidence");
      await withAPerson(id, ref);
      expect(await found()).toEqual(BOTH);
      expect(await w.committed()).toBe(1);
      await countedOnce(2_000);
      await toldAgain();
      expect(await found()).toEqual(BOTH);
      await w.intact();
    },
  );

  it("parked as unknown meanwhile: the same", async () => {
    const { id } = await parked("ORD-1", false);
    const ref = await refundUnder(id, "ORD-2", 2_000);
    await hearAll();
    await reconcileOne(w.worker("w"), id, "evidence");
    await withAPerson(id, ref);
    expect(await found()).toEqual(BOTH);
  });
});

describe("it had ended", () => {
  it.each(["a webhook", "a sweep"])(
    "as not carried out, which stays true: %s opens nothing again, and both orders' findings are told once",
    async (how) => {
      const { id } = await parked("ORD-1", false);
      const closed = await rejected(id);
      const told = (await w.told()).length;
      await refundUnder(id, "ORD-2", 2_000);
      if (how === "a webhook") await hearAll();
      else await sweepOrphans(w.worker("s"));
      await toldAgain();
      expect(await w.now(id)).toMatchObject({ status: "REJECTED", version: closed.version });
      expect(await found()).toEqual(BOTH);
      expect(await w.told()).toHaveLength(told);
      await countedOnce(0);
      await w.intact();
    },
  );

  it("as not carried out, and another amount is on its own payment: open again, and only Reject is offered", async () => {
    const { id } = await parked("ORD-1", false);
    await rejected(id);
    const ref = await refundUnder(id, "ORD-1", 3_000);
    await hearAll();
    const now = await w.now(id);
    expect(now).toMatchObject({ status: "QUARANTINED" });
    expect(await onCard(id)).toEqual(["Reject"]);
    expect(await inShow(id)).toEqual(["reject"]);
    expect(await found()).toEqual(["contradiction", "made_differently"]);
    const closed = await rejected(id);
    expect(closed).toMatchObject({ result: { code: "made_differently", providerRef: ref } });
    await toldAgain();
    expect(await w.now(id)).toMatchObject({ status: "REJECTED", version: closed.version });
    expect(await books("ORD-1")).toEqual({ reserved: 0, refunded: 0, elsewhere: 3_000 });
  });

  it("as done on a person's word: open again as what it is, and only Reject is offered", async () => {
    const operation = await parked("ORD-1", false);
    const ref = await refundUnder(operation.id, "ORD-2", 2_000);
    await confirmedUnasked(operation, ref);
    await hearAll();
    await w.advance(LAG_MS);
    await sweepOrphans(w.worker("s"));
    expect(await onCard(operation.id)).toEqual(["Reject"]);
    await w.look(w.worker("w"), operation.id);
    expect(await onCard(operation.id)).toEqual(["Reject"]);
    expect(await inShow(operation.id)).toEqual(["reject"]);
    expect(await found()).toEqual(["contradiction", ...BOTH]);
    const closed = await rejected(operation.id);
    await toldAgain();
    expect(await w.now(operation.id)).toMatchObject({ status: "REJECTED", version: closed.version });
    await countedOnce(0);
  });

  it("as done: a second one on another payment is a duplicate, and counts there", async () => {
    const id = await w.prepared("ORD-1", 2_000n);
    expect(await w.work(w.worker("w"), id)).toMatchObject({ status: "CONFIRMED" });
    await refundUnder(id, "ORD-2", 2_000);
    await toldAgain();
    expect(await w.now(id)).toMatchObject({ status: "CONFIRMED" });
    expect(await found()).toEqual(["duplicate_effect", "refunded_elsewhere"]);
    expect(await books("ORD-1")).toEqual({ reserved: 0, refunded: 2_000, elsewhere: 0 });
    expect(await books("ORD-2")).toEqual({ reserved: 0, refunded: 0, elsewhere: 2_000 });
  });
});

describe("the answer comes after its worker lost the lease", () => {
  /** Sent by a worker that hears the answer, and takes it up only after `meanwhile`. */
  async function answeredLate(meanwhile: (id: OperationId) => Promise<void>): Promise<OperationId> {
    onOther();
    const id = await w.prepared("ORD-1", 2_000n);
    const slow = w.worker("slow");
    const execute: typeof slow.provider.execute = async (...sent) => {
      const outcome = await slow.provider.execute(...sent);
      await meanwhile(id);
      return outcome;
    };
    await w.look({ ...slow, provider: { ...slow.provider, execute } }, id);
    return id;
  }

  /** Nobody else hears of it: it is parked as unknown. */
  async function parkedMeanwhile(id: OperationId): Promise<void> {
    await w.advance(60_000);
    const lost = w.control.arm({ kind: "drop_before_commit", times: null });
    expect(await w.work(w.worker("w"), id)).toMatchObject({ status: "QUARANTINED" });
    w.control.disarm(lost);
  }

  it("with a person as unknown by then: it is found as what it is", async () => {
    const id = await answeredLate(parkedMeanwhile);
    await reconcileOne(w.worker("w"), id, "evidence");
    const [ref = ""] = await effectsOf(id);
    await withAPerson(id, ref);
    expect(await found()).toEqual(BOTH);
    await countedOnce(2_000);
    await w.intact();
  });

  it("rejected by then, which stays true: both orders' findings are told, and nothing is opened again", async () => {
    const id = await answeredLate(async (one) => {
      await parkedMeanwhile(one);
      await rejected(one);
    });
    expect(await w.now(id)).toMatchObject({ status: "REJECTED" });
    expect(await found()).toEqual(BOTH);
    await toldAgain();
    expect(await w.now(id)).toMatchObject({ status: "REJECTED" });
    expect(await found()).toEqual(BOTH);
    await countedOnce(0);
    await w.intact();
  });

  it("closed by then as made differently: the same effect is no news", async () => {
    const id = await answeredLate(async (one) => {
      await w.advance(60_000);
      await w.work(w.worker("w"), one);
      await rejected(one);
    });
    expect(await w.now(id)).toMatchObject({ status: "REJECTED", result: { code: "made_differently" } });
    expect(await found()).toEqual(BOTH);
    await countedOnce(0);
    await w.intact();
  });
});

it("an open refund of the same amount on the other payment is not taken for it on its finding's card", async () => {
  await database.db.sql(
    undefined,
    "UPDATE orders SET customer_id = (SELECT id FROM customers WHERE ref = 'CUS-7') WHERE ref = 'ORD-2'",
  );
  const other = await parked("ORD-2", false);
  onOther();
  const id = await w.prepared("ORD-1", 2_000n);
  await w.work(w.worker("w"), id);
  expect(await found()).toEqual(BOTH);
  const card = await cardOf("refunded_elsewhere");
  expect(card).toContain(id);
  expect(card).not.toContain(other.id);
});

describe("another currency", () => {
  it("is confirmed by nobody with a reference that is known as that, also where the list shows nothing", async () => {
    w.control.arm({ kind: "wrong_answer", currency: "eur" });
    const id = await w.prepared("ORD-1", 2_000n);
    const operation = await w.work(w.worker("w"), id);
    expect(operation.quarantineReason).toContain("postcondition_failed");
    const [ref = ""] = await effectsOf(id);
    w.control.arm({ kind: "lying_read", lie: "hide" });
    expect(await ops.resolve(form(operation, ref))).toMatchObject({ outcome: "invalid", field: "evidence" });
    expect(await w.now(id)).toMatchObject({ status: "QUARANTINED", providerRef: null });
  });
});

it("an incident of another payment that the shop does not know names that payment", async () => {
  await w.control.seedPayment({ paymentIntent: "pi_nobody", amount: 18_000, currency: "GBP" });
  w.control.arm({ kind: "wrong_answer", paymentIntent: "pi_nobody" });
  const id = await w.prepared("ORD-1", 2_000n);
  await w.work(w.worker("w"), id);
  expect(await kinds()).toEqual(["made_differently"]);
  const [incident] = await incidents();
  const view = await readIncident(database.db, incident?.id ?? "");
  if (view === null) throw new Error("no incident");
  expect(JSON.stringify(incidentCard(view).blocks)).toContain("pi_nobody");
});
