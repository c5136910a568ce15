import { beforeEach, describe, expect, it } from "vitest";
import { drive } from "../../src/dispatch/index.js";
import { endStaleThaws, openIncident } from "../../src/ledger/index.js";
import { checkTrips } from "../../src/ops/index.js";
import { readIncident } from "../../src/slack/views/ops.js";
import { POLICY } from "../approvals/harness.js";
import { moveClock, onlyApproval } from "../approvals/steps.js";
import { withPaymentsSandbox } from "../payments/support.js";
import { writeByHand } from "../support/by-hand.js";
import { withDatabase } from "../support/database.js";
import { waitFor } from "../support/wait.js";
import { expectStatus, type OpsWorld, withOpsWorld } from "./ops-world.js";

const database = withDatabase({ poolSize: 12 });
const payments = withPaymentsSandbox();
const build = withOpsWorld(payments);
let w: OpsWorld;

beforeEach(async () => {
  w = await build(database.db);
});

const freeze = (kind: "all" | "refund" | "cancel_order" = "refund", userId = "U_ONC1") =>
  w.ops.freeze({ userId, kind, reason: "provider is odd" });

describe("freeze", () => {
  it("nothing new leaves after the answer, what is under way is named, and everything goes on after the thaw", async () => {
    payments.sandbox.control.arm({ kind: "commit_then_drop" });
    const open = expectStatus(await w.sent(1_000n), "OUTCOME_UNKNOWN");
    const waiting = await w.prepared(6_000n);
    const frozen = await freeze();
    expect(frozen).toMatchObject({
      outcome: "frozen",
      already: false,
      state: { by: "U_ONC1", reason: "provider is odd" },
    });
    if (frozen.outcome === "frozen") expect(frozen.inFlight.map(({ id }) => id)).toEqual([open.id]);
    expect((await drive(w.dispatch, waiting)).status).toBe("PREPARED");
    expect(await payments.sandbox.control.counts()).toMatchObject({ posts: 1 });
    expect(await freeze()).toMatchObject({ outcome: "frozen", already: true });
    expect(w.h.shown.ops.filter(({ message }) => message.type === "frozen")).toHaveLength(1);

    expect(await w.ops.thaw({ userId: "U_ONC2", kind: "refund" })).toMatchObject({ outcome: "thawed" });
    expect((await drive(w.dispatch, waiting)).status).toBe("CONFIRMED");
  });

  it("a command that is taken a second time turns no switch a second time, whatever became of it since", async () => {
    const command = "1.2.freeze";
    const typed = () =>
      w.ops.freeze({ userId: "U_ONC1", kind: "refund", reason: "provider is odd", command });
    expect(await typed()).toMatchObject({ outcome: "frozen", already: false });
    expect(await typed()).toMatchObject({ outcome: "frozen", already: true });
    const thaw = () => w.ops.thaw({ userId: "U_ONC2", kind: "refund", command: "1.2.thaw" });
    expect(await thaw()).toMatchObject({ outcome: "thawed" });
    expect(await typed()).toMatchObject({ outcome: "invalid", sentence: expect.stringContaining("before") });
    expect((await drive(w.dispatch, await w.prepared(6_000n))).status).toBe("CONFIRMED");

    expect(await freeze()).toMatchObject({ outcome: "frozen", already: false });
    expect(await thaw()).toMatchObject({ outcome: "gone", state: { frozen: true } });
    expect((await drive(w.dispatch, await w.prepared(7_000n))).status).toBe("PREPARED");
    expect(w.h.shown.ops.filter(({ message }) => message.type === "frozen")).toHaveLength(2);
  });

  it("a thaw that was typed before the freeze does not lift it, nor ask for that; typed again it does", async () => {
    const typedAt = new Date(Date.now() - 1_000);
    await freeze("refund", "U_ONC1");
    for (const userId of ["U_ONC1", "U_ONC2"])
      expect(await w.ops.thaw({ userId, kind: "refund", command: `1.3.${userId}`, typedAt })).toMatchObject({
        outcome: "gone",
        sentence: expect.stringContaining("frozen after you typed this"),
        state: { frozen: true, thawAskedBy: null },
      });
    expect((await drive(w.dispatch, await w.prepared(6_000n))).status).toBe("PREPARED");
    const [{ now } = { now: new Date(0) }] = await w.h.db.sql<{ now: Date }>(
      undefined,
      "SELECT countersign_now() + interval '1 second' AS now",
    );
    expect(
      await w.ops.thaw({ userId: "U_ONC2", kind: "refund", command: "1.4.again", typedAt: now }),
    ).toMatchObject({ outcome: "thawed" });
  });

  it("a thaw by another person that meets a later freeze of their own is judged anew: it takes a second person", async () => {
    await freeze("refund", "U_ONC1");
    // Between the look at the switch and its turning.
    const thawing: ReturnType<typeof w.ops.thaw>[] = [];
    await database.db.tx(async (tx) => {
      await tx.sql(undefined, "SELECT 1 FROM freeze_switches WHERE kind = 'refund' FOR UPDATE");
      thawing.push(w.ops.thaw({ userId: "U_ONC2", kind: "refund" }));
      await waitFor(
        async () => {
          const [row] = await database.db.sql<{ waiting: number }>(
            undefined,
            `SELECT count(*)::int AS waiting FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`,
          );
          return (row?.waiting ?? 0) >= 1;
        },
        { what: "the thaw to wait for the switch" },
      );
      await tx.sql(
        undefined,
        "UPDATE freeze_switches SET by = 'U_ONC2', at = countersign_now(), version = version + 2 WHERE kind = 'refund'",
      );
    });
    expect(await Promise.all(thawing)).toMatchObject([
      { outcome: "needs_second", state: { frozen: true, by: "U_ONC2" } },
    ]);
  });

  it("two thaws at the same time are one; a thaw and a freeze leave what the later one says", async () => {
    await freeze("refund", "U_ONC1");
    const both = await Promise.all(
      ["1.5.a", "1.5.b"].map((command) => w.ops.thaw({ userId: "U_ONC2", kind: "refund", command })),
    );
    expect(both.map(({ outcome }) => outcome).sort()).toEqual(["not_frozen", "thawed"]);
    expect(w.h.shown.ops.filter(({ message }) => message.type === "thawed")).toHaveLength(1);
    for (let round = 0; round < 10; round += 1) {
      await freeze("refund", "U_ONC1");
      const [thawn] = await Promise.all([
        w.ops.thaw({ userId: "U_ONC2", kind: "refund", command: `1.6.${round}` }),
        w.ops.freeze({ userId: "U_ONC1", kind: "refund", reason: "again", command: `1.7.${round}` }),
      ]);
      const { frozen } = await w.ops.freezeState("refund");
      const [last] = await w.h.db.sql<{ type: string }>(
        undefined,
        "SELECT type FROM operation_events WHERE subject = 'freeze:refund' ORDER BY seq DESC LIMIT 1",
      );
      expect(frozen).toBe(last?.type === "freeze");
      expect(thawn.outcome).toBe("thawed");
    }
  });

  it("an earlier event of the switch that somebody made unreadable keeps nobody from freezing", async () => {
    await w.ops.freeze({ userId: "U_ONC1", kind: "refund", reason: "a drill", command: "1.2.drill" });
    await w.ops.thaw({ userId: "U_ONC2", kind: "refund", command: "1.2.over" });
    await writeByHand(
      database.db,
      null,
      "UPDATE operation_events SET body = 'not json' WHERE subject = 'freeze:refund' AND type = 'freeze'",
    );
    expect(
      await w.ops.freeze({ userId: "U_ONC1", kind: "refund", reason: "for real", command: "1.2.real" }),
    ).toMatchObject({ outcome: "frozen", already: false });
    expect((await drive(w.dispatch, await w.prepared(6_000n))).status).toBe("PREPARED");
  });

  it("a thaw asked for by a command that is taken a second time is asked for once", async () => {
    await freeze();
    const ask = () => w.ops.thaw({ userId: "U_ONC1", kind: "refund", command: "1.2.ask" });
    const first = await ask();
    expect(first).toMatchObject({ outcome: "needs_second" });
    expect(await ask()).toEqual(first);
    expect(await w.ops.thaw({ userId: "U_ONC2", kind: "refund", command: "1.2.other" })).toMatchObject({
      outcome: "thawed",
    });
    await freeze();
    expect(await ask()).toMatchObject({ outcome: "gone", state: { frozen: true, thawAskedBy: null } });
  });

  it("of one kind leaves the others alone; of all stops each", async () => {
    await freeze("cancel_order");
    expect((await drive(w.dispatch, await w.prepared(6_000n))).status).toBe("CONFIRMED");
    await freeze("all");
    expect((await drive(w.dispatch, await w.prepared(7_000n))).status).toBe("PREPARED");
  });

  it("a thaw says what is still frozen by a switch of its own, to who thawed and in the channel", async () => {
    await w.ops.freeze({ userId: "U_ONC1", kind: "all", reason: "a drill" });
    await w.ops.freeze({ userId: "U_ONC1", kind: "refund", reason: "a drill" });
    const thawed = await w.ops.thaw({ userId: "U_ONC2", kind: "all" });
    expect(thawed).toMatchObject({ outcome: "thawed", stillFrozen: ["refund"] });
    expect(w.h.shown.ops.at(-1)?.message).toMatchObject({ type: "thawed", stillFrozen: ["refund"] });
    expect(await w.ops.thaw({ userId: "U_ONC2", kind: "refund" })).toMatchObject({ stillFrozen: [] });
  });

  it("needs a reason and the on-call role", async () => {
    expect(await w.ops.freeze({ userId: "U_ONC1", kind: "all", reason: " " })).toMatchObject({
      outcome: "invalid",
    });
    expect(await freeze("all", "U_SUP1")).toMatchObject({ outcome: "refused", reason: "not_in_role" });
    expect((await w.ops.freezeState("all")).frozen).toBe(false);
  });
});

describe("what a freeze holds back", () => {
  it("is shown anew when the switch turns and when it turns back, and only then", async () => {
    await freeze("cancel_order");
    await freeze("refund");
    // Frozen already: nothing new to say.
    await freeze("refund");
    await w.ops.thaw({ userId: "U_ONC2", kind: "refund" });
    await w.ops.thaw({ userId: "U_ONC2", kind: "refund" });
    await freeze("all");
    expect(w.h.shown.switched).toEqual(["cancel_order", "refund", "refund", "all"]);
  });

  it("is told to whoever completes an approval meanwhile", async () => {
    const click = async (kind: "refund" | "cancel_order", amount: bigint) => {
      const held = await w.h.turn(await w.h.ticket(), [{ order: "ORD-1", amount }]);
      await freeze(kind);
      return w.h.click("U_SUP1", onlyApproval(held));
    };
    expect(await click("cancel_order", 18_000n)).toMatchObject({ outcome: "approved", frozen: null });
    expect(await click("refund", 19_000n)).toMatchObject({
      outcome: "approved",
      frozen: { kind: "refund", by: "U_ONC1", since: expect.any(Date), reason: expect.any(String) },
    });
  });
});

describe("thaw by another person than freeze, where the policy says so", () => {
  /** Who froze asks for the thaw; the switch as the card shows it. */
  async function asked(): Promise<{ kind: "refund"; version: number }> {
    const outcome = await w.ops.thaw({ userId: "U_ONC1", kind: "refund" });
    expect(outcome).toMatchObject({ outcome: "needs_second", state: { thawAskedBy: "U_ONC1" } });
    return { kind: "refund", version: (await w.ops.freezeState("refund")).version };
  }
  const endings = () =>
    w.h.shown.ops.map(({ message }) => message).filter(({ type }) => type === "thaw_request_ended");

  it("who froze asks, another agrees", async () => {
    await freeze();
    const card = await asked();
    expect(w.h.shown.touched).toContainEqual({ kind: "thaw", id: "refund" });
    expect(await w.ops.secondThaw({ userId: "U_ONC1", ...card, verdict: "agree" })).toMatchObject({
      outcome: "refused",
      reason: "same_person",
    });
    expect(await w.ops.secondThaw({ userId: "U_SUP1", ...card, verdict: "agree" })).toMatchObject({
      outcome: "refused",
      reason: "not_in_role",
    });
    expect(await w.ops.secondThaw({ userId: "U_ONC2", ...card, verdict: "agree" })).toMatchObject({
      outcome: "thawed",
    });
    expect(await w.ops.secondThaw({ userId: "U_ONC2", ...card, verdict: "agree" })).toMatchObject({
      outcome: "not_frozen",
    });
  });

  it("a disagreement ends the request and is said; it takes a new one to thaw", async () => {
    await freeze();
    const card = await asked();
    expect(await w.ops.secondThaw({ userId: "U_ONC2", ...card, verdict: "disagree" })).toMatchObject({
      outcome: "kept_frozen",
      state: { frozen: true, thawAskedBy: null },
    });
    expect(endings()).toEqual([
      { type: "thaw_request_ended", kind: "refund", by: "U_ONC1", refusedBy: "U_ONC2" },
    ]);
    expect(await w.ops.secondThaw({ userId: "U_ONC2", ...card, verdict: "agree" })).toMatchObject({
      outcome: "gone",
      sentence: expect.stringContaining("no longer open"),
    });
    expect((await w.ops.freezeState("refund")).frozen).toBe(true);
    expect(await w.ops.secondThaw({ userId: "U_ONC2", ...(await asked()), verdict: "agree" })).toMatchObject({
      outcome: "thawed",
    });
  });

  it("a request that nobody answers runs out after the policy's time, at the click and by the sweep", async () => {
    await w.h.policy(`${POLICY}resolution: { expireAfterMinutes: 30 }\n`);
    await freeze();
    const card = await asked();
    await moveClock(w.h.db, 29);
    expect(await endStaleThaws(w.dispatch)).toBe(0);
    await moveClock(w.h.db, 31);
    expect(await w.ops.secondThaw({ userId: "U_ONC2", ...card, verdict: "agree" })).toMatchObject({
      outcome: "gone",
    });
    expect((await w.ops.freezeState("refund")).frozen).toBe(true);
    expect(await endStaleThaws(w.dispatch)).toBe(1);
    expect(await w.ops.freezeState("refund")).toMatchObject({ thawAskedBy: null, thawExpiresAt: null });
    expect(endings()).toEqual([
      { type: "thaw_request_ended", kind: "refund", by: "U_ONC1", refusedBy: null },
    ]);
  });

  it("Agree on the card of an earlier freeze does not thaw the present one", async () => {
    await freeze();
    const old = await asked();
    await w.ops.thaw({ userId: "U_ONC2", kind: "refund" });
    await freeze();
    await asked();
    expect(await w.ops.secondThaw({ userId: "U_ONC2", ...old, verdict: "agree" })).toMatchObject({
      outcome: "gone",
    });
    expect(await w.ops.freezeState("refund")).toMatchObject({ frozen: true, thawAskedBy: "U_ONC1" });
  });

  it("not asked for: who froze thaws alone", async () => {
    await w.h.policy(`${POLICY}freeze: { thawByAnotherPerson: false }\n`);
    await freeze();
    expect(await w.ops.thaw({ userId: "U_ONC1", kind: "refund" })).toMatchObject({ outcome: "thawed" });
    expect(await w.ops.thaw({ userId: "U_ONC1", kind: "refund" })).toMatchObject({ outcome: "not_frozen" });
  });
});

describe("the switch trips by itself", () => {
  it("when unknown outcomes reach the line; a thaw is the word that they are understood", async () => {
    await w.h.policy(`${POLICY}freeze: { tripOn: { unknownPerHour: 2 } }\n`);
    payments.sandbox.control.arm({ kind: "commit_then_drop", times: 3 });
    expectStatus(await w.sent(1_000n), "OUTCOME_UNKNOWN");
    expect(await checkTrips(w.ctx)).toEqual([]);
    expectStatus(await w.sent(2_000n), "OUTCOME_UNKNOWN");
    expect(await checkTrips(w.ctx)).toMatchObject([{ kind: "refund" }]);
    expect(await w.ops.freezeState("refund")).toMatchObject({ frozen: true, by: "system:trip" });
    expect(await checkTrips(w.ctx)).toEqual([]);
    const incidents = await w.h.db.sql<{ id: string; kind: string }>(
      undefined,
      "SELECT id, kind FROM incidents",
    );
    expect(incidents.map((each) => each.kind)).toEqual(["freeze_tripped"]);
    const id = incidents[0]?.id ?? "";
    expect((await readIncident(w.h.db, id))?.thawed).toBeUndefined();

    w.h.shown.touched.length = 0;
    expect(await w.ops.thaw({ userId: "U_ONC1", kind: "refund" })).toMatchObject({ outcome: "thawed" });
    expect(w.h.shown.touched, "its card follows the switch").toContainEqual({ kind: "incident", id });
    expect((await readIncident(w.h.db, id))?.thawed).toMatchObject({ by: "slack:U_ONC1" });
    expect(await checkTrips(w.ctx)).toEqual([]);
    expectStatus(await w.sent(3_000n), "OUTCOME_UNKNOWN");
    expect(await checkTrips(w.ctx)).toEqual([]);
  });

  it.each(["orphan_effect", "duplicate_effect"] as const)(
    "at one %s, and then for everything",
    async (kind) => {
      await w.h.db.tx((tx) =>
        openIncident(tx, w.dispatch, {
          kind,
          dedupeKey: "x",
          operationId: null,
          paymentId: null,
          detail: {},
        }),
      );
      expect(await checkTrips(w.ctx)).toMatchObject([{ kind: "all" }]);
      expect((await drive(w.dispatch, await w.prepared())).status).toBe("PREPARED");
    },
  );
});
