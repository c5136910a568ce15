import { beforeEach, describe, expect, it } from "vitest";
import { systemClock } from "../../src/app/system.js";
import { releaseTurn } from "../../src/approvals/index.js";
import { armFailpoint } from "../../src/domain/failpoints.js";
import { signatureHeader } from "../../src/sandbox/payments/index.js";
import { POLICY, turnCalls } from "../approvals/harness.js";
import { operationAt } from "../approvals/steps.js";
import { WEBHOOK_SECRET, withPaymentsSandbox } from "../payments/support.js";
import { withDatabase } from "../support/database.js";
import { waitFor } from "../support/wait.js";
import { type CaseWorld, withCaseWorld } from "./case-world.js";

const database = withDatabase({ poolSize: 20 });
const payments = withPaymentsSandbox();
const build = withCaseWorld(payments);
let w: CaseWorld;

beforeEach(async () => {
  w = await build(database.db);
  await w.order({ ref: "ORD-1001", captured: 7_900, currency: "USD" });
});

/** Bodies of the provider's events of these types, in the order in which it made them. */
async function eventBodies(...types: string[]): Promise<Buffer[]> {
  return (await w.control.events())
    .filter((event) => types.includes(event.type))
    .map((event) => Buffer.from(event.body));
}
const sign = (body: Buffer, seconds = Math.floor(systemClock.now().getTime() / 1000)): string =>
  signatureHeader(body.toString("utf8"), WEBHOOK_SECRET, seconds);

describe("S-PAY-1: the answer is lost", () => {
  it.each([
    ["with one worker", null],
    ["with a worker that dies after the answer", "dispatch.after_send"],
    ["with a worker that dies in its second try", "reconcile.after_resend_claimed"],
  ] as const)(
    "%s, one refund is made, under one key, and nobody reads that it failed",
    async (_how, crash) => {
      w.control.arm({ kind: "commit_then_drop" });
      w.control.arm({ kind: "stale_read", lagMs: 60_000 });
      const id = await w.prepared("ORD-1001", 2_000n);
      const disarm = crash === null ? () => {} : armFailpoint(crash, () => Promise.reject(new Error("died")));
      const first = w.worker("first");
      for (let looks = 0; looks < 2; looks += 1) {
        await w.look(first, id).catch(() => {});
        if ((await w.now(id)).status === "CONFIRMED") break;
        expect(await w.balance("ORD-1001")).toMatchObject({ reserved: 2_000, refunded: 0 });
        await w.advance(first.timing.leaseMs);
      }
      disarm();
      const done = await w.work(w.worker("second"), id);

      expect(done).toMatchObject({ status: "CONFIRMED" });
      expect(done.providerRef).toMatch(/^re_/);
      expect(await w.committed()).toBe(1);
      expect(new Set((await w.posts()).map((post) => post.key)).size).toBe(1);
      expect(await w.balance("ORD-1001")).toMatchObject({ reserved: 0, refunded: 2_000 });
      const path = await w.path(id);
      expect(path.indexOf("DISPATCHED")).toBeLessThan(path.indexOf("OUTCOME_UNKNOWN"));
      expect(path.at(-1)).toBe("CONFIRMED");
      expect(path).not.toContain("REJECTED");
      const told = await w.told();
      expect(told).toHaveLength(2);
      expect(told[0]).toBe("operation_being_checked");
      expect(told[1]).toContain("Refunded $20.00");
      expect(told.join(" ")).not.toMatch(/fail|not carried out/i);
      await w.intact();
    },
  );
});

describe("S-PAY-2: yen", () => {
  it("are refunded as yen where the policy names them, and held where it does not", async () => {
    await w.order({ ref: "ORD-JP1", captured: 9_899, currency: "JPY" });
    const held = await w.ask("ORD-JP1", 9_899n);
    expect(held.outcomes[0]?.outcome).toBe("held");
    const [judged] = held.outcomes;
    const rules = judged?.outcome === "held" ? (judged.judgement?.rules ?? []) : [];
    expect(rules.map((rule) => rule.sentence).join(" ")).toContain("JPY has no limit");
    expect(await w.posts()).toEqual([]);

    await w.order({ ref: "ORD-JP2", captured: 9_899, currency: "JPY" });
    await w.h.policy(
      POLICY.replace("auto:  { GBP: 5000,", "auto:  { JPY: 20000, GBP: 5000,").replace(
        "never: { GBP",
        "never: { JPY: 200000, GBP",
      ),
    );
    const id = await w.prepared("ORD-JP2", 9_899n);
    expect((await w.work(w.worker("w"), id)).status).toBe("CONFIRMED");
    expect((await w.posts()).map((post) => post.amount)).toEqual(["9899"]);
    expect((await w.told()).join(" ")).toContain("9,899");
    expect((await w.told()).join(" ")).not.toContain("98.99");
  });
});

describe("S-PAY-3: accepted is not done", () => {
  it.each(["pending", "requires_action"] as const)(
    "a refund that is %s is neither confirmed nor rejected; its webhook confirms it, once",
    async (status) => {
      w.control.arm({ kind: "outcome", status, pendingReason: "insufficient_funds" });
      const ctx = w.worker("w");
      const id = await w.prepared("ORD-1001", 2_000n);
      expect((await w.look(ctx, id)).status).toBe("OUTCOME_UNKNOWN");
      await w.advance(30_000);
      expect((await w.look(ctx, id)).status).toBe("OUTCOME_UNKNOWN");
      expect(await w.balance("ORD-1001")).toMatchObject({ reserved: 2_000, refunded: 0 });
      expect((await w.told()).join(" ")).not.toMatch(/refunded \$/i);

      const [effect] = await w.control.effects();
      await w.control.advanceRefund(effect?.id ?? "", { status: "succeeded" });
      for (const body of await eventBodies("refund.updated")) {
        for (let copy = 0; copy < 3; copy += 1) expect(await w.hear(ctx, body, sign(body))).toBe(200);
      }
      expect((await w.work(ctx, id)).status).toBe("CONFIRMED");
      expect(await w.balance("ORD-1001")).toMatchObject({ reserved: 0, refunded: 2_000 });
      expect((await w.path(id)).filter((to) => to === "CONFIRMED")).toHaveLength(1);
      expect(await w.committed()).toBe(1);
      expect(await w.posts()).toHaveLength(1);
      await w.intact();
    },
  );

  it("what stays pending too long goes to a person with its reason, still reserved", async () => {
    w.control.arm({ kind: "outcome", status: "pending", pendingReason: "insufficient_funds" });
    const id = await w.prepared("ORD-1001", 2_000n);
    const parked = await w.work(w.worker("w"), id);
    expect(parked.status).toBe("QUARANTINED");
    expect(parked.quarantineReason).toContain("insufficient_funds");
    expect(w.h.shown.touched).toContainEqual({ kind: "quarantine", id });
    expect(await w.balance("ORD-1001")).toMatchObject({ reserved: 2_000, refunded: 0 });
    expect(await w.posts()).toHaveLength(1);
  });
});

describe("S-PAY-4: the webhook overtakes the answer", () => {
  it("and comes three times: one settle, one refund in the books", async () => {
    const hang = w.control.arm({ kind: "commit_then_hang", delayMs: 60_000 });
    const ctx = w.worker("w", database.openAnother());
    const id = await w.prepared("ORD-1001", 2_000n);
    const driving = w.look(ctx, id);
    await waitFor(() => w.control.fired(hang) > 0, { what: "the commit" });
    const bodies = await waitFor(async () => {
      const made = await eventBodies("refund.created", "charge.refunded");
      return made.length === 2 ? made : false;
    });
    const web = w.worker("web");
    for (const body of bodies) expect(await w.hear(web, body, sign(body))).toBe(200);
    await w.control.hurry();
    await driving;
    for (const body of [...bodies, ...bodies]) expect(await w.hear(web, body, sign(body))).toBe(200);

    expect((await w.work(web, id)).status).toBe("CONFIRMED");
    expect((await w.path(id)).filter((to) => to === "CONFIRMED")).toHaveLength(1);
    expect(await w.balance("ORD-1001")).toMatchObject({ reserved: 0, refunded: 2_000 });
    expect(await w.committed()).toBe(1);
    await w.intact();
  });

  it("a forged, an old and an unsigned one are turned away, and nothing of them is kept", async () => {
    const ctx = w.worker("w");
    const id = await w.prepared("ORD-1001", 2_000n);
    await w.look(ctx, id);
    const [body] = await eventBodies("refund.created");
    if (body === undefined) throw new Error("no event");
    const before = await w.now(id);
    const seconds = Math.floor(systemClock.now().getTime() / 1000);
    expect(await w.hear(ctx, body, signatureHeader(body.toString(), "whsec_other", seconds))).toBe(400);
    expect(await w.hear(ctx, body, sign(body, seconds - 600))).toBe(400);
    expect(await w.hear(ctx, body, undefined)).toBe(400);
    expect(await w.hear(ctx, Buffer.from(`${body.toString()} `), sign(body))).toBe(400);
    expect(await w.db.sql(undefined, "SELECT 1 FROM provider_webhooks")).toEqual([]);
    expect(await w.now(id)).toEqual(before);
  });
});

describe("S-PAY-5: refunded elsewhere, or disputed", () => {
  it("what was refunded elsewhere is a refusal with its reason, and the next try is stopped before it is sent", async () => {
    await w.control.dashboardRefund({ paymentIntent: "pi_ORD-1001" });
    const id = await w.prepared("ORD-1001", 2_000n);
    const ended = await w.work(w.worker("w"), id);
    expect(ended).toMatchObject({ status: "REJECTED", result: { code: "charge_already_refunded" } });
    expect(await w.posts()).toHaveLength(1);
    expect(await w.balance("ORD-1001")).toMatchObject({ reserved: 0, refunded: 0 });
    expect((await w.told()).join(" ")).not.toMatch(/refunded \$/i);
    const again = await w.ask("ORD-1001", 2_100n);
    expect(["insufficient", "refused"]).toContain(again.outcomes[0]?.outcome);
    expect(await w.posts()).toHaveLength(1);
  });

  it("a disputed payment is refused once, released, and neither tried again nor given to a person", async () => {
    await w.control.dispute("pi_ORD-1001");
    const id = await w.prepared("ORD-1001", 2_000n);
    const ended = await w.work(w.worker("w"), id);
    expect(ended).toMatchObject({ status: "REJECTED", result: { code: "charge_disputed" } });
    expect(await w.posts()).toHaveLength(1);
    expect(await w.balance("ORD-1001")).toMatchObject({ reserved: 0, refunded: 0 });
    expect(await w.path(id)).not.toContain("QUARANTINED");
  });
});

describe("S-PAY-6: two partial refunds that together exceed the payment", () => {
  it("approved at once by two people and carried out by two processes, one is made and the other says what is left", async () => {
    const other = database.openAnother();
    for (let round = 0; round < 10; round += 1) {
      const order = `ORD-P${round}`;
      await w.order({ ref: order, captured: 10_000 });
      const [first, second] = [await w.ask(order, 6_000n), await w.ask(order, 7_000n)];
      await Promise.all([
        w.h.click("U_SUP1", first.approvals[0] ?? "apr_"),
        w.h.click("U_SUP2", second.approvals[0] ?? "apr_"),
      ]);
      const elsewhere = w.h.elsewhere(other);
      const [a, b] = [operationAt(first, 0), operationAt(second, 0)];
      const [left, right] = [w.worker("a"), w.worker("b", other)];
      await Promise.all([
        w.h.release(first).then(() => w.look(left, a)),
        releaseTurn(elsewhere, {
          runId: second.runId,
          turnId: second.turnId,
          calls: turnCalls(second),
        }).then(() => w.look(right, b)),
      ]);
      const ends = [await w.now(a), await w.now(b)];
      expect(ends.map((end) => end.status).toSorted()).toEqual(["CONFIRMED", "VOIDED"]);
      const loser = ends.find((end) => end.status === "VOIDED");
      expect(loser?.result?.detail.toLowerCase()).toMatch(/only £(30|40)\.00/);
      const made = await w.control.effects({ paymentIntent: `pi_${order}` });
      expect(made).toHaveLength(1);
      const { reserved, refunded } = await w.balance(order);
      expect(reserved).toBe(0);
      expect([6_000, 7_000]).toContain(refunded);
    }
    await w.intact();
  });
});

describe("S-PAY-7: 409 and 429", () => {
  it("a key in use leaves the outcome open, and the same key is asked again", async () => {
    w.control.arm({ kind: "late_commit", delayMs: 3_000_000, answer: "409" });
    const ctx = w.worker("w");
    const id = await w.prepared("ORD-1001", 2_000n);
    expect((await w.look(ctx, id)).status).toBe("OUTCOME_UNKNOWN");
    await w.advance(2_000);
    await w.control.hurry();
    expect((await w.work(ctx, id)).status).toBe("CONFIRMED");
    expect(await w.committed()).toBe(1);
    expect(new Set((await w.posts()).map((post) => post.key)).size).toBe(1);
  });

  it("a definitive 429 is not executed: tried again after a while, never unknown, and nobody reads of a failure", async () => {
    w.control.arm({ kind: "rate_limited", code: "lock_timeout", times: 2 });
    const id = await w.prepared("ORD-1001", 2_000n);
    expect((await w.work(w.worker("w"), id)).status).toBe("CONFIRMED");
    expect(await w.path(id)).toEqual([
      "PREPARED",
      "DISPATCHED",
      "PREPARED",
      "DISPATCHED",
      "PREPARED",
      "DISPATCHED",
      "CONFIRMED",
    ]);
    const posts = await w.posts();
    expect(posts).toHaveLength(3);
    expect(new Set(posts.map((post) => post.key)).size).toBe(1);
    expect(await w.told()).toEqual([expect.stringContaining("Refunded $20.00")]);
    expect(await w.committed()).toBe(1);
  });
});

it("a 429 that asks for days is asked again within hours, while the key still lives", async () => {
  w.control.arm({ kind: "rate_limited", code: "rate_limit", retryAfterSeconds: 900_000 });
  const id = await w.prepared("ORD-1001", 2_000n);
  expect((await w.work(w.worker("w"), id)).status).toBe("CONFIRMED");
  expect(await w.committed()).toBe(1);
});

describe("S-PAY-8: no amount is computed in floating point", () => {
  it.each([
    [14_505n, "14505"],
    [820n, "820"],
    [499n, "499"],
  ])("%d minor units leave as %s", async (amount, wire) => {
    await w.order({ ref: "ORD-GBP", captured: 20_000 });
    await w.h.policy(POLICY.replace("auto:  { GBP: 5000,", "auto:  { GBP: 20000,"));
    const id = await w.prepared("ORD-GBP", amount);
    await w.work(w.worker("w"), id);
    expect((await w.posts()).map((post) => post.amount)).toEqual([wire]);
  });
});

describe("S-PAY-9: same key, other body", () => {
  /** What a deploy, a renamed customer and a rewritten reason would change. */
  async function changeWhatIsNotMaterial(): Promise<void> {
    await w.db.sql(undefined, "UPDATE customers SET name = 'Renamed'");
    await w.db.sql(undefined, "UPDATE tickets SET text = 'rewritten'");
  }

  it("the stored request is sent again, parameter for parameter, whatever a new release would say", async () => {
    w.control.arm({ kind: "commit_then_drop" });
    const id = await w.prepared("ORD-1001", 2_000n);
    await w.look(w.worker("old"), id);
    await changeWhatIsNotMaterial();
    w.control.arm({ kind: "read_down", how: "drop", times: 1 });
    const released = w.worker("new");
    const reworded = {
      ...released,
      provider: {
        ...released.provider,
        buildRequest: () => {
          throw new Error("a request is built once");
        },
      },
    };
    expect((await w.work(reworded, id)).status).toBe("CONFIRMED");
    const posts = await w.posts();
    expect(posts.length).toBeGreaterThan(1);
    expect(new Set(posts.map((post) => post.body)).size).toBe(1);
    expect(new Set(posts.map((post) => post.key)).size).toBe(1);
    expect(await w.committed()).toBe(1);
  });

  it("where the provider refuses the key all the same, the list decides", async () => {
    w.control.arm({ kind: "commit_then_drop" });
    const id = await w.prepared("ORD-1001", 2_000n);
    await w.look(w.worker("w"), id);
    w.control.arm({ kind: "idempotency_error", times: null });
    w.control.arm({ kind: "read_down", how: "drop", times: 2 });
    const done = await w.work(w.worker("w"), id);
    expect(done.status).toBe("CONFIRMED");
    expect(await w.path(id)).not.toContain("REJECTED");
    expect(new Set((await w.posts()).map((post) => post.key)).size).toBe(1);
    expect(await w.committed()).toBe(1);
  });

  it("and where the list shows nothing, a person does, with what the provider said differs", async () => {
    w.control.arm({ kind: "drop_before_commit" });
    const id = await w.prepared("ORD-1001", 2_000n);
    await w.look(w.worker("w"), id);
    w.control.arm({ kind: "idempotency_error", times: null });
    const parked = await w.work(w.worker("w"), id);
    expect(parked.status).toBe("QUARANTINED");
    expect(parked.quarantineReason).toContain("key_conflict");
    expect(parked.quarantineReason).toMatch(/amount/);
    expect(w.h.shown.touched).toContainEqual({ kind: "quarantine", id });
    expect(await w.path(id)).not.toContain("REJECTED");
    expect(new Set((await w.posts()).map((post) => post.key)).size).toBe(1);
    expect(await w.committed()).toBe(0);
    expect(await w.balance("ORD-1001")).toMatchObject({ reserved: 2_000, refunded: 0 });
  });
});

describe("a row that somebody changes in the database before it is sent", () => {
  it.each([
    ["where the money goes", "payment_intent = 'pi_another'", "VOIDED"],
    ["under which key", "idempotency_key = 'mine'", "VOIDED"],
    // What it holds no longer fits its payment: nothing is released by a figure that nobody decided.
    ["how much", "amount_minor = 7900", "PREPARED"],
  ])("%s: is not sent, and on-call hears of it", async (_what, change, end) => {
    const id = await w.prepared("ORD-1001", 2_000n);
    await database.db.sql(undefined, "ALTER TABLE operations DISABLE TRIGGER operations_guard");
    await database.db.sql(undefined, `UPDATE operations SET ${change} WHERE id = $1`, [id]);
    await database.db.sql(undefined, "ALTER TABLE operations ENABLE TRIGGER operations_guard");
    await w.look(w.worker("first"), id);
    expect((await w.now(id)).status).toBe(end);
    expect(await w.posts()).toEqual([]);
    expect(await w.committed()).toBe(0);
    const incidents = await database.db.sql(undefined, "SELECT kind, operation_id FROM incidents");
    expect(incidents).toEqual([{ kind: "row_changed", operation_id: id }]);
  });
});
