/**
 * Confirmed on a person's word alone: what they wrote is no known effect. The provider's list of the payment says whether it is true, by
 * the operation's own id; what it shows instead settles the case, and what it does not show at all is told once.
 */
import { beforeEach, describe, expect, it } from "vitest";
import { systemClock } from "../../src/app/system.js";
import { judgeBesideWord, probe } from "../../src/dispatch/index.js";
import type { OperationId } from "../../src/domain/ids.js";
import type { Operation } from "../../src/domain/operation.js";
import { closeIncident, prepareTurn, resolve, secondResolve } from "../../src/ledger/index.js";
import { checkTrips, type OpsUseCases, opsUseCases } from "../../src/ops/index.js";
import { reconcileOne, sweepOrphans } from "../../src/reconcile/index.js";
import { signatureHeader } from "../../src/sandbox/payments/index.js";
import { incidentCard } from "../../src/slack/cards/incident-card.js";
import { readIncident } from "../../src/slack/views/ops.js";
import { POLICY } from "../approvals/harness.js";
import { SECRET_KEY, WEBHOOK_SECRET, withPaymentsSandbox } from "../payments/support.js";
import { withDatabase } from "../support/database.js";
import { refund } from "../support/ledger-world.js";
import { type CaseWorld, withCaseWorld } from "./case-world.js";

const database = withDatabase();
const payments = withPaymentsSandbox();
const build = withCaseWorld(payments);
const LAG_MS = 700_000;
let w: CaseWorld;
let ops: OpsUseCases;

beforeEach(async () => {
  w = await build(database.db);
  for (const ref of ["ORD-1", "ORD-2"]) await w.order({ ref, captured: 18_000 });
  const ctx = w.worker("ops");
  ops = opsUseCases({
    db: w.db,
    ledger: ctx,
    directory: w.h.people,
    notices: w.h.ctx.notices,
    activePolicy: w.h.ctx.activePolicy,
    log: w.h.ctx.log,
    maxAttempts: 8,
    probe: async (operation) => (await probe(ctx, operation)).evidence,
    reconcile: (id) => reconcileOne(ctx, id, "evidence"),
    healthParts: async () => [],
  });
});

/** Sent, its outcome unknown for too long. `made`: the provider did it all the same. */
async function parked(order: string, made: boolean, amount = 2_000n): Promise<Operation> {
  const down = w.control.arm({ kind: "read_down", how: "drop" });
  const lost = w.control.arm(
    made
      ? { kind: "commit_then_drop", onReplay: true, times: null }
      : { kind: "drop_before_commit", times: null },
  );
  const operation = await w.work(w.worker("w"), await w.prepared(order, amount));
  w.control.disarm(lost);
  w.control.disarm(down);
  expect(operation.status).toBe("QUARANTINED");
  return operation;
}

/** Sent once without effect, and parked beside a refund of the same amount that somebody made by hand. */
async function besideStranger(): Promise<{ operation: Operation; stranger: string }> {
  const lost = w.control.arm({ kind: "drop_before_commit", times: null });
  const id = await w.prepared("ORD-1", 2_000n);
  await w.look(w.worker("w"), id);
  w.control.disarm(lost);
  await w.control.dashboardRefund({ paymentIntent: "pi_ORD-1", amount: 2_000 });
  const [made] = await w.control.effects();
  const operation = await w.work(w.worker("w"), id);
  expect(operation.quarantineReason).toContain("unattributed_effect");
  return { operation, stranger: made?.id ?? "" };
}

const form = ({ id }: Operation, evidenceRef: string) =>
  ({ ref: id, verb: "confirm", userId: "U_ONC1", reason: "They say it is done.", evidenceRef }) as const;

async function confirmed(operation: Operation, evidence: string): Promise<void> {
  const outcome = await ops.resolve(form(operation, evidence));
  expect(outcome).toMatchObject({ outcome: "resolved", operation: { status: "CONFIRMED" } });
}

/** As `confirmed`, while the provider cannot be read. */
async function confirmedUnasked(operation: Operation, evidence: string): Promise<void> {
  const down = w.control.arm({ kind: "read_down", how: "drop" });
  await confirmed(operation, evidence);
  w.control.disarm(down);
}

const incidents = (): Promise<{ id: string; kind: string; status: string; operation: string }[]> =>
  database.db.sql(
    undefined,
    "SELECT id, kind, status, operation_id AS operation FROM incidents ORDER BY created_at, id",
  );
const kinds = async (): Promise<string[]> => (await incidents()).map(({ kind }) => kind);

async function cardOf(kind: string): Promise<string> {
  const found = (await incidents()).find((one) => one.kind === kind);
  const view = await readIncident(database.db, found?.id ?? "");
  if (view === null) throw new Error(`no ${kind}`);
  return JSON.stringify(incidentCard(view).blocks);
}

const books = async (order: string) => {
  const [row] = await database.db.sql<{ reserved: number; refunded: number; elsewhere: number }>(
    undefined,
    `SELECT reserved::int, refunded::int, refunded_elsewhere::int AS elsewhere FROM payments WHERE payment_intent = $1`,
    [`pi_${order}`],
  );
  return row;
};

const effectsOf = async (id: OperationId): Promise<string[]> =>
  (await w.control.effects()).filter((one) => one.operationId === id).map((one) => one.id);

async function refundUnder(operationId: string, order: string, amount: number): Promise<string> {
  const answer = await fetch(`${payments.sandbox.url}/v1/refunds`, {
    method: "POST",
    headers: { authorization: `Bearer ${SECRET_KEY}`, "content-type": "application/x-www-form-urlencoded" },
    body: new URLSearchParams({
      payment_intent: `pi_${order}`,
      amount: String(amount),
      "metadata[operation_id]": operationId,
    }),
  });
  expect(answer.status).toBe(200);
  const { id } = (await answer.json()) as { id: string };
  return id;
}

const signed = (body: Buffer): string =>
  signatureHeader(body.toString("utf8"), WEBHOOK_SECRET, Math.floor(systemClock.now().getTime() / 1000));

async function hearAll(): Promise<void> {
  for (const { body } of await w.control.events()) {
    const raw = Buffer.from(body);
    expect(await w.hear(w.worker("app"), raw, signed(raw))).toBe(200);
  }
}

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
    expect(await kinds()).toEqual(["contradiction"]);
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
