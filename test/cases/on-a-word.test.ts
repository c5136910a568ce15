/**
 * Confirmed on a person's word alone: what they wrote is no known effect. The provider's list of the payment says whether it is true, by
 * the operation's own id; what it shows instead settles the case, and what it does not show at all is told once.
 */
import { describe, expect, it } from "vitest";
import { judgeBesideWord } from "../../src/dispatch/index.js";
import type { OperationId } from "../../src/domain/ids.js";
import type { Operation } from "../../src/domain/operation.js";
import { closeIncident, resolve, secondResolve } from "../../src/ledger/index.js";
import { checkTrips } from "../../src/ops/index.js";
import { reconcileOne, sweepOrphans } from "../../src/reconcile/index.js";
import {
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
  refundUnder,
  w,
} from "./word-world.js";

describe("confirmed on a word while the provider shows nothing of it", () => {
  const told = async (operation: Operation, evidence: string): Promise<void> => {
    expect(await sweepOrphans(w.worker("s")), "before its time").toMatchObject({ missing: 0 });
    await w.advance(LAG_MS);
    expect(await sweepOrphans(w.worker("s"))).toMatchObject({ read: true, missing: 1 });
    expect(await sweepOrphans(w.worker("t"))).toMatchObject({ missing: 0 });
    expect((await incidents()).filter(({ kind }) => kind === "missing_effect")).toMatchObject([
      { operation: operation.id },
    ]);
    const card = await cardOf("missing_effect");
    expect(card).toContain(evidence);
    expect(card).toContain("a person's word");
    expect(card).toContain("Open again");
    expect(card).not.toContain("Provider reference");
    expect(await w.now(operation.id)).toMatchObject({ status: "CONFIRMED" });
    expect(await effectsOf(operation.id)).toEqual([]);
    await w.intact();
  };

  it.each(["TCK-9", "customer says so", "re_neverMade", "sub_neverMade", "Statement of 3 May, line 12"])(
    "with the evidence %s: one incident, which says whose word it is",
    async (evidence) => {
      const operation = await parked("ORD-1", false);
      await confirmed(operation, evidence);
      await told(operation, evidence);
      expect(await w.committed()).toBe(0);
      // No text that a person wrote stays in the log.
      expect(
        await database.db.sql(undefined, "SELECT body FROM operation_events WHERE body LIKE $1", [
          `%${evidence}%`,
        ]),
      ).toEqual([]);
    },
  );

  it("with the reference of another payment's refund: it is alive, and not this one's", async () => {
    const operation = await parked("ORD-1", false);
    await w.control.dashboardRefund({ paymentIntent: "pi_ORD-2", amount: 2_000 });
    const [foreign] = await w.control.effects();
    await confirmed(operation, foreign?.id ?? "");
    await told(operation, foreign?.id ?? "");
    expect(await w.committed()).toBe(1);
  });

  it("with another operation's reference that the ledger did not hold yet", async () => {
    const operation = await parked("ORD-1", false);
    const other = await parked("ORD-2", true);
    const [ref = ""] = await effectsOf(other.id);
    await confirmed(operation, ref);
    // Its own operation is confirmed by it all the same.
    await reconcileOne(w.worker("w"), other.id, "evidence");
    expect(await w.now(other.id)).toMatchObject({ status: "CONFIRMED", providerRef: ref });
    await told(operation, ref);
    expect(await w.committed()).toBe(1);
  });

  it("closed, opened again and confirmed on another word: told anew", async () => {
    const operation = await parked("ORD-1", false);
    await confirmed(operation, "TCK-9");
    await told(operation, "TCK-9");
    const [first] = await incidents();
    await database.db.tx((tx) =>
      closeIncident(tx, w.worker("ops"), { id: first?.id ?? "", by: "U_ONC1", reason: "looked" }),
    );
    expect(await sweepOrphans(w.worker("s"))).toMatchObject({ missing: 0 });
    const request = { ref: operation.id, userId: "U_ONC1", reason: "a wrong click", evidenceRef: "note" };
    expect(await ops.reopen(request)).toMatchObject({ outcome: "reopened" });
    await confirmed(operation, "TCK-10");
    await w.advance(LAG_MS);
    expect(await sweepOrphans(w.worker("s"))).toMatchObject({ missing: 1 });
    expect(await kinds()).toEqual(["missing_effect", "missing_effect"]);
    await w.intact();
  });

  it("says nothing where it was opened again while the list was read", async () => {
    const operation = await parked("ORD-1", false);
    await confirmed(operation, "TCK-9");
    await w.advance(LAG_MS);
    const ctx = w.worker("s");
    const request = { ref: operation.id, userId: "U_ONC1", reason: "a wrong click", evidenceRef: "note" };
    const list: typeof ctx.provider.list = async (target, options) => {
      const listing = await ctx.provider.list(target, options);
      await ops.reopen(request);
      return listing;
    };
    await sweepOrphans({ ...ctx, provider: { ...ctx.provider, list } });
    expect(await w.now(operation.id)).toMatchObject({ status: "QUARANTINED" });
    expect(await kinds()).toEqual([]);
  });

  it("says nothing while the list cannot be read", async () => {
    const operation = await parked("ORD-1", false);
    await confirmed(operation, "TCK-9");
    await w.advance(LAG_MS);
    const ctx = w.worker("s");
    const unread = { read: "failed", reason: "timeout", detail: "no answer" } as const;
    await sweepOrphans({ ...ctx, provider: { ...ctx.provider, list: async () => unread } });
    expect(await kinds()).toEqual([]);
  });

  it("missed while the provider hid what was meant: shown again, the record closes the finding itself", async () => {
    const operation = await parked("ORD-1", false);
    await w.control.dashboardRefund({ paymentIntent: "pi_ORD-1", amount: 2_000 });
    const [made] = await w.control.effects();
    await confirmedUnasked(operation, made?.id ?? "");
    await w.advance(LAG_MS);
    const hidden = w.control.arm({ kind: "lying_read", lie: "hide" });
    expect(await sweepOrphans(w.worker("s"))).toMatchObject({ missing: 1 });
    expect(await sweepOrphans(w.worker("s"))).toMatchObject({ missing: 0 });
    expect(await incidents()).toMatchObject([{ kind: "missing_effect", status: "open" }]);
    w.control.disarm(hidden);
    expect(await sweepOrphans(w.worker("s"))).toMatchObject({ missing: 0 });
    expect(await incidents()).toMatchObject([{ kind: "missing_effect", status: "closed" }]);
    expect(await cardOf("missing_effect")).toContain(`shows ${made?.id}`);
    expect(await w.now(operation.id)).toMatchObject({
      status: "CONFIRMED",
      result: { code: "confirmed_unasked" },
    });
    w.control.arm({ kind: "lying_read", lie: "hide" });
    expect(await sweepOrphans(w.worker("s")), "away again").toMatchObject({ missing: 1 });
    expect(await sweepOrphans(w.worker("s"))).toMatchObject({ missing: 0 });
    expect((await incidents()).map(({ status }) => status)).toEqual(["closed", "open"]);
    await w.intact();
  });

  it("missed while the provider could not be asked again: the finding stays open", async () => {
    const operation = await parked("ORD-1", false);
    await confirmed(operation, "TCK-9");
    await told(operation, "TCK-9");
    const ctx = w.worker("s");
    const unread = { read: "failed", reason: "timeout", detail: "no answer" } as const;
    await sweepOrphans({ ...ctx, provider: { ...ctx.provider, list: async () => unread } });
    expect(await incidents()).toMatchObject([{ kind: "missing_effect", status: "open" }]);
  });

  it("is settled where a refund that carries no id, of this payment and amount, was meant", async () => {
    const operation = await parked("ORD-1", false);
    await w.control.dashboardRefund({ paymentIntent: "pi_ORD-1", amount: 2_000 });
    const [made] = await w.control.effects();
    await confirmedUnasked(operation, made?.id ?? "");
    await w.advance(LAG_MS);
    expect(await sweepOrphans(w.worker("s"))).toMatchObject({ missing: 0 });
    expect(await kinds()).toEqual([]);
  });
});

describe("confirmed by a reference that is another operation's own effect", () => {
  it("is refused with that operation's name, and nothing moves", async () => {
    const operation = await parked("ORD-1", false);
    const other = await w.work(w.worker("w"), await w.prepared("ORD-2", 2_000n));
    const outcome = await ops.resolve(form(operation, `seen: ${other.providerRef}`));
    expect(outcome).toMatchObject({
      outcome: "invalid",
      field: "evidence",
      sentence: expect.stringContaining(other.id),
    });
    expect(await w.now(operation.id)).toMatchObject({ status: "QUARANTINED", providerRef: null });
    expect(
      await database.db.sql(undefined, "SELECT id FROM operations WHERE provider_ref = $1", [
        other.providerRef,
      ]),
    ).toEqual([{ id: other.id }]);
    expect(await w.committed()).toBe(1);
    await w.intact();
  });

  it("is refused to the second person too, where it became another's meanwhile", async () => {
    const operation = await parked("ORD-1", false);
    const other = await parked("ORD-2", true);
    const [ref = ""] = await effectsOf(other.id);
    const ctx = w.worker("ops");
    const asked = await resolve(ctx, {
      operationId: operation.id,
      expectedVersion: operation.version,
      verb: "confirm",
      by: "U_ONC1",
      reason: "seen",
      evidenceRef: ref,
      probe: { says: "absent" },
      needsSecond: true,
      secondWithinMs: 60_000,
    });
    if (asked.outcome !== "needs_second") throw new Error(asked.outcome);
    await reconcileOne(w.worker("w"), other.id, "evidence");
    const agreed = await secondResolve(ctx, {
      resolutionId: asked.resolution.id,
      by: "U_ONC2",
      verdict: "agree",
      note: null,
      probe: { says: "absent" },
    });
    expect(agreed).toMatchObject({ outcome: "not_safe", code: "anothers_effect", other: other.id });
    expect(await w.now(operation.id)).toMatchObject({ status: "QUARANTINED" });
    await w.intact();
  });

  it("two people at two operations with one reference: one of them is refused", async () => {
    const [one, two] = [await parked("ORD-1", false), await parked("ORD-2", false)];
    const outcomes = await Promise.all([
      ops.resolve(form(one, "re_shared")),
      ops.resolve(form(two, "re_shared")),
    ]);
    expect(outcomes.map(({ outcome }) => outcome).sort()).toEqual(["invalid", "resolved"]);
  });

  it("a ticket's number is no reference: it may stand for several", async () => {
    const [one, two] = [await parked("ORD-1", false), await parked("ORD-2", false)];
    await confirmed(one, "TCK-9");
    await confirmed(two, "TCK-9");
  });
});

describe("a refund on a word, and the same money refunded by hand in the dashboard", () => {
  it("is more than was paid: the card names the word, and says when opening it again has put it right", async () => {
    const operation = await parked("ORD-1", false, 4_000n);
    await confirmedUnasked(operation, "re_told");
    await w.control.dashboardRefund({ paymentIntent: "pi_ORD-1", amount: 16_000 });
    await w.advance(LAG_MS);
    await sweepOrphans(w.worker("s"));
    expect(await kinds()).toContain("overdrawn");
    const card = await cardOf("overdrawn");
    expect(card).toContain(`(\`${operation.id}\`) rests on a person's word alone`);
    expect(card).toContain("nothing: £20.00 GBP more than was paid is refunded or set aside");
    await ops.reopen({ ref: operation.id, userId: "U_ONC1", reason: "not there", evidenceRef: "dashboard" });
    const asked = await ops.resolve({ ...form(operation, "dashboard"), verb: "reject" });
    if (asked.outcome !== "needs_second") throw new Error(asked.outcome);
    const agreed = { resolutionId: asked.resolution.id, userId: "U_ONC2", verdict: "agree" } as const;
    expect(await ops.second(agreed)).toMatchObject({
      outcome: "resolved",
      operation: { status: "REJECTED" },
    });
    const after = await cardOf("overdrawn");
    expect(after).toContain("It no longer is.");
    expect(after).toContain("£20.00 GBP");
    expect(await w.committed()).toBe(1);
    expect(await books("ORD-1")).toEqual({ reserved: 0, refunded: 0, elsewhere: 16_000 });
  });
});

describe("a wrong reference given while the provider could not be read", () => {
  /** What the provider showed is judged by the reconciler, as a wake-up does. */
  const corrected = async (id: OperationId, ref: string): Promise<void> => {
    expect(await w.now(id)).toMatchObject({ status: "QUARANTINED" });
    await w.look(w.worker("w"), id);
    expect(await w.now(id)).toMatchObject({
      status: "CONFIRMED",
      providerRef: ref,
      resolvedByPerson: false,
      result: { code: "confirmed", providerRef: ref },
    });
    expect(await kinds()).toEqual(["contradiction"]);
    // The record closes it: nobody has to find out that there is nothing left to do.
    expect(await database.db.sql(undefined, "SELECT status, closed_by, close_reason FROM incidents")).toEqual(
      [
        {
          status: "closed",
          closed_by: "system:reconcile",
          close_reason: `Settled: the provider shows ${ref}, and it is confirmed by that, no longer on a person's word.`,
        },
      ],
    );
    expect(await cardOf("contradiction")).toContain("Closed by Countersign itself");
    expect(await ops.incidents({ userId: "U_ONC1" })).toMatchObject({ incidents: [] });
    expect(await checkTrips({ ...w.h.ctx, ledger: w.worker("ops") })).toEqual([]);
    expect(await books("ORD-1")).toEqual({ reserved: 0, refunded: 2_000, elsewhere: 0 });
    expect(await w.committed()).toBe(1);
    await w.intact();
  };

  it.each(["re_typo", "TCK-9"])(
    "%s: a sweep finds the one effect, and it is the operation's",
    async (word) => {
      const operation = await parked("ORD-1", true);
      await confirmedUnasked(operation, word);
      const [ref = ""] = await effectsOf(operation.id);
      const before = (await w.told()).length;
      await sweepOrphans(w.worker("s"));
      await corrected(operation.id, ref);
      // The thread hears that it was opened again, and what it is now: no more on a word.
      const heard = (await w.told()).slice(before);
      expect(heard).toHaveLength(2);
      expect(heard.at(-1)).not.toContain("on-call's word");
      await sweepOrphans(w.worker("s"));
      await w.advance(LAG_MS);
      expect(await sweepOrphans(w.worker("s"))).toMatchObject({ orphans: 0, missing: 0 });
      expect(await kinds()).toEqual(["contradiction"]);
      const card = await cardOf("contradiction");
      expect(card).toContain("a person's word");
      expect(card).toContain(word);
    },
  );

  it("a webhook tells of the one effect: the same", async () => {
    const operation = await parked("ORD-1", true);
    await confirmedUnasked(operation, "re_typo");
    const [ref = ""] = await effectsOf(operation.id);
    await hearAll();
    await corrected(operation.id, ref);
    await hearAll();
    expect(await kinds()).toEqual(["contradiction"]);
  });

  it("whoever read it before it was corrected does not open it again", async () => {
    const operation = await parked("ORD-1", true);
    await confirmedUnasked(operation, "re_typo");
    const [ref = ""] = await effectsOf(operation.id);
    const before = await w.now(operation.id);
    await hearAll();
    await corrected(operation.id, ref);
    const ctx = w.worker("slow");
    const listing = await ctx.provider.read(ref, { timeoutMs: 3_000 });
    const shown = listing.read === "complete" ? listing.effects[0] : undefined;
    if (shown === undefined) throw new Error("the provider shows nothing");
    await judgeBesideWord(ctx, before, shown, "webhook");
    expect(await w.now(operation.id)).toMatchObject({ status: "CONFIRMED", providerRef: ref });
    expect(await kinds()).toEqual(["contradiction"]);
  });

  it("the payment is read whole, days later: the same", async () => {
    const operation = await parked("ORD-1", true);
    await confirmedUnasked(operation, "re_typo");
    const [ref = ""] = await effectsOf(operation.id);
    await w.advance(3 * 24 * 3_600_000);
    await sweepOrphans(w.worker("s"));
    await corrected(operation.id, ref);
  });

  it("another operation's refund was named, and its own is shown: each has its own", async () => {
    const operation = await parked("ORD-1", true);
    const other = await parked("ORD-2", true);
    const [[mine = ""], [its = ""]] = [await effectsOf(operation.id), await effectsOf(other.id)];
    await confirmedUnasked(operation, its);
    await sweepOrphans(w.worker("s"));
    await w.look(w.worker("w"), operation.id);
    await reconcileOne(w.worker("w"), other.id, "evidence");
    expect(await w.now(operation.id)).toMatchObject({ status: "CONFIRMED", providerRef: mine });
    expect(await w.now(other.id)).toMatchObject({ status: "CONFIRMED", providerRef: its });
    expect(await kinds()).toEqual(["contradiction"]);
    expect(await w.committed()).toBe(2);
    await w.intact();
  });

  it.each(["ORD-1", "ORD-2"])(
    "two were named for each other, the other of %s: each has its own",
    async (order) => {
      const operation = await parked("ORD-1", true);
      const other = await parked(order, true, 2_001n);
      const [[mine = ""], [its = ""]] = [await effectsOf(operation.id), await effectsOf(other.id)];
      await confirmedUnasked(operation, its);
      await confirmedUnasked(other, mine);
      await sweepOrphans(w.worker("s"));
      await w.look(w.worker("w"), operation.id);
      await w.look(w.worker("w"), other.id);
      expect(await w.now(operation.id)).toMatchObject({ status: "CONFIRMED", providerRef: mine });
      expect(await w.now(other.id)).toMatchObject({ status: "CONFIRMED", providerRef: its });
      await w.advance(LAG_MS);
      expect(await sweepOrphans(w.worker("s"))).toMatchObject({ orphans: 0, missing: 0 });
      const refunded = order === "ORD-1" ? 4_001 : 2_000;
      expect(await books("ORD-1")).toEqual({ reserved: 0, refunded, elsewhere: 0 });
      expect(await kinds()).toEqual(["contradiction", "contradiction"]);
      expect(await w.committed()).toBe(2);
      await w.intact();
    },
  );

  it("another's refund on the same payment was named: its money is counted once", async () => {
    const operation = await parked("ORD-1", true);
    const other = await parked("ORD-1", false, 1_000n);
    const [ref = ""] = await effectsOf(operation.id);
    await confirmedUnasked(other, ref);
    await sweepOrphans(w.worker("s"));
    expect(await books("ORD-1")).toEqual({ reserved: 2_000, refunded: 1_000, elsewhere: 0 });
    await reconcileOne(w.worker("w"), operation.id, "evidence");
    expect(await w.now(operation.id)).toMatchObject({ status: "CONFIRMED", providerRef: ref });
    await w.advance(LAG_MS);
    expect(await sweepOrphans(w.worker("s"))).toMatchObject({ missing: 1 });
    expect(await books("ORD-1")).toEqual({ reserved: 0, refunded: 3_000, elsewhere: 0 });
    expect(await incidents()).toMatchObject([{ kind: "missing_effect", operation: other.id }]);
    expect(await w.committed()).toBe(1);
    await w.intact();
  });

  it("the right reference was given, and it fails there later: taken back", async () => {
    const operation = await parked("ORD-1", true);
    const [ref = ""] = await effectsOf(operation.id);
    await confirmedUnasked(operation, ref);
    await w.control.advanceRefund(ref, { status: "failed" });
    await w.advance(LAG_MS);
    await sweepOrphans(w.worker("s"));
    expect(await w.now(operation.id)).toMatchObject({ status: "REVERSED" });
    expect(await kinds()).toEqual(["reversed"]);
    await w.intact();
  });

  it("the right reference was given: nothing is found", async () => {
    const operation = await parked("ORD-1", true);
    const [ref = ""] = await effectsOf(operation.id);
    await confirmedUnasked(operation, ref);
    await hearAll();
    await w.advance(LAG_MS);
    expect(await sweepOrphans(w.worker("s"))).toMatchObject({ orphans: 0, missing: 0 });
    expect(await kinds()).toEqual([]);
    expect(await w.now(operation.id)).toMatchObject({ status: "CONFIRMED", providerRef: ref });
  });
});

describe("two effects at the provider of an operation that was confirmed on a word", () => {
  it.each(["the first", "the second"])("%s was named: the other is a duplicate", async (named) => {
    const operation = await parked("ORD-1", true);
    const [first = ""] = await effectsOf(operation.id);
    const second = await refundUnder(operation.id, "ORD-1", 2_000);
    await confirmedUnasked(operation, named === "the first" ? first : second);
    await sweepOrphans(w.worker("s"));
    await hearAll();
    expect(await kinds()).toEqual(["duplicate_effect"]);
    expect(await books("ORD-1")).toEqual({ reserved: 0, refunded: 2_000, elsewhere: 2_000 });
    expect(await w.committed()).toBe(2);
    await w.intact();
  });

  it("neither was named: a person has it again, and the duplicate is told", async () => {
    const operation = await parked("ORD-1", true);
    await refundUnder(operation.id, "ORD-1", 2_000);
    await confirmedUnasked(operation, "re_typo");
    await sweepOrphans(w.worker("s"));
    expect(await w.look(w.worker("w"), operation.id)).toMatchObject({ status: "QUARANTINED" });
    expect((await kinds()).sort()).toEqual(["contradiction", "duplicate_effect"]);
    expect(await w.committed()).toBe(2);
    await w.intact();
  });
});
