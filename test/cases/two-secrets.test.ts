/** Processes that seal with different secrets on one database, and a secret that changes while something waits to be sent. */
import { beforeEach, describe, expect, it } from "vitest";
import { type DispatchCtx, drive } from "../../src/dispatch/index.js";
import { type Seals, sealsWith } from "../../src/domain/seals.js";
import { recordPolicyActivated, tellUnknownPolicy, verifyAudit } from "../../src/ledger/index.js";
import { activatePolicy, readPolicyText } from "../../src/policy/index.js";
import { incidentCard } from "../../src/slack/cards/incident-card.js";
import { readIncident } from "../../src/slack/views/ops.js";
import { harness, POLICY } from "../approvals/harness.js";
import { moveClock, onlyApproval, operationAt } from "../approvals/steps.js";
import { type OpsWorld, withOpsWorld } from "../ops/ops-world.js";
import { withPaymentsSandbox } from "../payments/support.js";
import { writeByHand } from "../support/by-hand.js";
import { withDatabase } from "../support/database.js";

const database = withDatabase({ poolSize: 12 });
const payments = withPaymentsSandbox();
const build = withOpsWorld(payments);

const OURS = readPolicyText(POLICY, "policy.yaml");
const WIDE = readPolicyText(POLICY.replace("auto:  { GBP: 5000,", "auto:  { GBP: 90000,"), "wide.yaml");
const ONE = sealsWith({ secret: "the secret of one process" });
const OTHER = sealsWith({ secret: "the secret of another process" });

let w: OpsWorld;
beforeEach(async () => {
  w = await build(database.db);
});

/** What every start of a process does. */
const start = (seals: Seals, policy = OURS) =>
  activatePolicy(database.db, policy, recordPolicyActivated(seals));
const look = (seals: Seals) => tellUnknownPolicy(worker(seals));
const told = async (): Promise<number> =>
  (await database.db.sql(undefined, "SELECT 1 FROM operation_events WHERE subject = 'policy'")).length;
const worker = (seals: Seals): DispatchCtx => {
  const { approvals } = w.dispatch;
  return { ...w.dispatch, seals, approvals: { ...approvals, ledger: { ...approvals.ledger, seals } } };
};
const incidents = (): Promise<{ id: string; kind: string; detail: unknown }[]> =>
  database.db.sql(undefined, "SELECT id, kind, detail FROM incidents ORDER BY created_at, id");
const counts = () => payments.sandbox.control.counts();
const allowed = async (seals: Seals, amount: bigint) => {
  const world = await harness(database.db, seals);
  return operationAt(await world.turn(await world.ticket(), [{ order: "ORD-1", amount }]), 0);
};

describe("two processes of which neither knows the other's secret", () => {
  it("tell the policy once each, however often they start: the log does not grow by it", async () => {
    for (let round = 0; round < 5; round += 1) for (const seals of [ONE, OTHER]) await start(seals);
    expect(await told()).toBe(2);
  });

  it("on-call hears of it from the one whose word is not the last, once", async () => {
    await start(ONE);
    await look(ONE);
    expect(await incidents()).toEqual([]);
    await start(OTHER);
    for (let pass = 0; pass < 3; pass += 1) for (const seals of [ONE, OTHER]) await look(seals);
    const [found, ...more] = await incidents();
    expect(more).toEqual([]);
    expect(found?.kind).toBe("row_changed");
    const view = await readIncident(database.db, found?.id ?? "");
    if (view === null) throw new Error("no incident");
    const card = JSON.stringify(incidentCard(view).blocks);
    expect(card).toContain("SEAL_SECRET");
    expect(card).not.toContain("freeze switch was changed");
    expect(await verifyAudit(database.db, OTHER)).toMatchObject({
      broken: [{ what: "subject", where: "policy", seq: 1 }],
    });
  });

  it("each sends what it decided itself, and nothing that the other decided", async () => {
    for (const seals of [ONE, OTHER]) await start(seals);
    const own = await allowed(ONE, 2_000n);
    const others = await allowed(OTHER, 3_000n);
    expect(await drive(worker(ONE), own)).toMatchObject({ status: "CONFIRMED" });
    await drive(worker(ONE), others);
    expect(await w.now(others)).toMatchObject({ status: "VOIDED" });
    expect(await counts()).toMatchObject({ committed: 1, posts: 1 });
  });
});

describe("a secret that takes another's place", () => {
  const BEFORE = sealsWith({ secret: "before", accepted: ["after"] });
  const AFTER = sealsWith({ secret: "after", accepted: ["before"] });
  const LAST = sealsWith({ secret: "after" });

  it("processes of both start in turns: the policy is told once under each, and nobody is alarmed", async () => {
    for (let round = 0; round < 4; round += 1) {
      for (const seals of [BEFORE, AFTER]) {
        await start(seals);
        for (const looking of [BEFORE, AFTER]) await look(looking);
      }
    }
    expect(await told()).toBe(2);
    expect(await incidents()).toEqual([]);
    const id = await allowed(AFTER, 2_000n);
    await start(LAST);
    expect(await drive(worker(LAST), id)).toMatchObject({ status: "CONFIRMED" });
    expect(await told()).toBe(2);
    expect((await verifyAudit(database.db, AFTER)).broken).toEqual([]);
  });

  it("while what people approved cools off: sent once where the one before is accepted, not at all where it is not", async () => {
    const cooling = POLICY.replace(
      "totals: []",
      "totals: []\n    coolingOffMinutes: { GBP: { above: 10000, minutes: 10 } }",
    );
    const policy = readPolicyText(cooling, "cooling.yaml");
    for (const [seals, status] of [
      [AFTER, "CONFIRMED"],
      [LAST, "VOIDED"],
    ] as const) {
      const old = sealsWith({ secret: "before" });
      await start(old, policy);
      const world = await harness(database.db, old);
      // The harness puts a policy of its own in force, of which it tells nobody.
      await start(old, policy);
      const amount = status === "CONFIRMED" ? 18_000n : 19_000n;
      const held = await world.turn(await world.ticket(), [{ order: "ORD-1", amount }]);
      await world.click("U_SUP1", onlyApproval(held));
      await world.release(held);
      const id = operationAt(held, 0);
      await drive(worker(old), id);
      expect(await w.now(id)).toMatchObject({ status: "PREPARED" });
      await start(seals, policy);
      await moveClock(database.db, status === "CONFIRMED" ? 11 : 30);
      await drive(worker(seals), id);
      expect(await w.now(id)).toMatchObject({ status });
    }
    expect(await counts()).toMatchObject({ committed: 1, posts: 1 });
  });
});

describe("a policy that somebody wrote into rows and log", () => {
  const FORGED: Seals = { ...sealsWith({ secret: "of nobody" }), holds: () => true, policiesTold: false };

  it("is told to on-call before anything is decided under it", async () => {
    await start(ONE);
    await start(FORGED, WIDE);
    await look(ONE);
    expect(await incidents()).toMatchObject([{ kind: "row_changed", detail: { policy: WIDE.hash } }]);
  });

  it("ours of before, told again after another: the seal that it had does not cover it", async () => {
    await start(ONE, WIDE);
    await start(ONE, OURS);
    await start(FORGED, WIDE);
    const world = await harness(database.db, ONE);
    await start(FORGED, WIDE);
    const id = operationAt(await world.turn(await world.ticket(), [{ order: "ORD-1", amount: 18_000n }]), 0);
    await drive(worker(ONE), id);
    expect(await w.now(id)).toMatchObject({ status: "VOIDED" });
    expect(await counts()).toMatchObject({ committed: 0, posts: 0 });
  });

  it("an event that cannot be read is told, too, and keeps nobody from looking", async () => {
    await start(ONE);
    await writeByHand(
      database.db,
      null,
      "UPDATE operation_events SET body = 'not json' WHERE subject = 'policy'",
    );
    await look(ONE);
    await look(ONE);
    expect(await incidents()).toMatchObject([{ kind: "row_changed" }]);
  });
});
