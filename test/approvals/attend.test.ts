import { beforeEach, describe, expect, it } from "vitest";
import { attendDue, attendOne, listPending, pendingFor } from "../../src/approvals/index.js";
import { withDatabase } from "../support/database.js";
import { type Harness, harness, POLICY } from "./harness.js";
import { approvalNow, moveClock, onlyApproval } from "./steps.js";

const database = withDatabase();
let h: Harness;

beforeEach(async () => {
  h = await harness(database.db);
  await h.order({ ref: "ORD-1", captured: 18_000 });
  await h.order({ ref: "ORD-2", captured: 100_000 });
});

const refund = async (order = "ORD-1", amount = 18_000n, filers?: readonly string[]) =>
  h.turn(await h.ticket(filers === undefined ? {} : { filers }), [{ order, amount }]);

const reminders = () => h.shown.approvers.filter(({ message }) => message.type === "approval_reminder");

describe("a gate that nobody can satisfy is said when it is armed", () => {
  it.each<[string, () => void, string]>([
    [
      "nobody is in the role",
      () => {
        h.people.all.delete("U_SUP1");
        h.people.all.delete("U_SUP2");
      },
      "Nobody is in the role supervisor",
    ],
    ["the only member filed it", () => h.people.all.delete("U_SUP2"), "there are 0"],
    [
      "all members are guests",
      () => {
        for (const id of ["U_SUP1", "U_SUP2"])
          h.people.all.set(id, { roles: ["supervisor"], standing: "guest" });
      },
      "Nobody is in the role supervisor",
    ],
  ])("%s", async (_title, change, sentence) => {
    change();
    const held = await refund("ORD-1", 18_000n, ["U_SUP1"]);
    await attendDue(h.ctx, { limit: 10 });
    expect((await approvalNow(h.db, onlyApproval(held).id)).gate).toMatchObject({
      satisfiable: false,
      sentence: expect.stringContaining(sentence),
    });
    expect(h.shown.thread.map(({ message }) => message.type)).toContain("gate_unsatisfiable");
    expect(h.shown.approvers.map(({ message }) => message.type)).toEqual(["gate_unsatisfiable"]);
  });

  it("one of two needed is missing", async () => {
    h.people.all.delete("U_FIN2");
    const held = await refund("ORD-2", 80_000n);
    await attendDue(h.ctx, { limit: 10 });
    expect((await approvalNow(h.db, onlyApproval(held).id)).gate).toMatchObject({ satisfiable: false });
  });

  it("the only other member asks for the same: the card says who asks, and that nobody is left", async () => {
    const held = await refund("ORD-1", 18_000n, ["U_SUP1"]);
    const { id } = onlyApproval(held);
    await attendDue(h.ctx, { limit: 10 });
    expect((await approvalNow(h.db, id)).gate).toEqual({ satisfiable: true });
    h.shown.touched.length = 0;
    h.shown.woken.length = 0;
    expect((await refund("ORD-1", 18_000n, ["U_SUP2"])).outcomes).toMatchObject([{ outcome: "same" }]);
    expect(h.shown.touched).toContainEqual({ kind: "approval", id });
    expect(h.shown.woken).toContainEqual({ kind: "approval", id });
    await attendOne(h.ctx, id);
    expect((await approvalNow(h.db, id)).gate).toMatchObject({ satisfiable: false });
    expect(h.shown.approvers.map(({ message }) => message.type)).toEqual(["gate_unsatisfiable"]);
  });

  it("somebody is added to the role later: the card says so no longer, and it is said once", async () => {
    h.people.all.delete("U_SUP1");
    h.people.all.delete("U_SUP2");
    const held = await refund();
    await attendDue(h.ctx, { limit: 10 });
    h.people.all.set("U_SUP1", { roles: ["supervisor"] });
    await moveClock(h.db, 11);
    await attendDue(h.ctx, { limit: 10 });
    expect((await approvalNow(h.db, onlyApproval(held).id)).gate).toEqual({ satisfiable: true });
    expect(h.shown.thread.filter(({ message }) => message.type === "gate_unsatisfiable")).toHaveLength(1);
  });

  it("Slack cannot be asked: nothing is claimed, and it is asked again", async () => {
    h.people.away = true;
    const held = await refund();
    await attendDue(h.ctx, { limit: 10 });
    expect((await approvalNow(h.db, onlyApproval(held).id)).gate).toBeNull();
    h.people.away = false;
    await moveClock(h.db, 2);
    await attendDue(h.ctx, { limit: 10 });
    expect((await approvalNow(h.db, onlyApproval(held).id)).gate).toEqual({ satisfiable: true });
  });
});

describe("nobody forgets", () => {
  it("reminds at the policy's times, turns to the next role, then to on-call, and then is quiet until the deadline", async () => {
    await refund();
    await attendDue(h.ctx, { limit: 10 });
    expect(reminders()).toEqual([]);
    await moveClock(h.db, 31);
    await attendDue(h.ctx, { limit: 10 });
    await attendDue(h.ctx, { limit: 10 });
    expect(reminders().map(({ message }) => message)).toEqual([
      { type: "approval_reminder", number: 1, role: "supervisor", escalatedTo: "finance" },
    ]);
    await moveClock(h.db, 241);
    await attendDue(h.ctx, { limit: 10 });
    expect(reminders()[1]?.message).toMatchObject({ number: 2, escalatedTo: "oncall" });
    expect(h.shown.touched.filter(({ kind }) => kind === "escalation")).toHaveLength(1);
    await moveClock(h.db, 1_000);
    expect(await attendDue(h.ctx, { limit: 10 })).toBe(0);
    expect(reminders()).toHaveLength(2);
  });

  it("after a pause of the scheduler only the present reminder is sent", async () => {
    await refund();
    await moveClock(h.db, 300);
    await attendDue(h.ctx, { limit: 10 });
    expect(reminders().map(({ key }) => key.split(":").at(-1))).toEqual(["2"]);
  });

  it("is quiet once decided", async () => {
    const held = await refund();
    await attendDue(h.ctx, { limit: 10 });
    await h.click("U_SUP1", onlyApproval(held));
    await moveClock(h.db, 300);
    expect(await attendDue(h.ctx, { limit: 10 })).toBe(0);
    await attendOne(h.ctx, onlyApproval(held).id);
    expect(reminders()).toEqual([]);
  });

  it("two sweeps at once remind once", async () => {
    await refund();
    await moveClock(h.db, 31);
    await Promise.all([
      attendDue(h.ctx, { limit: 10 }),
      attendDue(h.elsewhere(database.openAnother()), { limit: 10 }),
    ]);
    expect(new Set(reminders().map(({ key }) => key)).size).toBe(1);
  });

  it("one approval that cannot be attended to does not hide the others", async () => {
    const first = await refund();
    const second = await refund("ORD-2", 30_000n);
    await h.db.tx(async (tx) => {
      await tx.sql(undefined, "SET LOCAL session_replication_role = replica");
      await tx.sql(undefined, `UPDATE approvals SET binding = '{}' WHERE id = $1`, [onlyApproval(first).id]);
    });
    await attendDue(h.ctx, { limit: 10 });
    expect((await approvalNow(h.db, onlyApproval(second).id)).gate).toEqual({ satisfiable: true });
    expect(await attendDue(h.ctx, { limit: 10 })).toBe(0);
  });
});

describe("lists", () => {
  it("pages through what is pending by deadline, each once, and leaves out what is overdue", async () => {
    await h.policy(
      POLICY.replace("never: { GBP: 200000", "never: { GBP: 20000000").replace(
        "upTo: { GBP: 50000",
        "upTo: { GBP: 5000000",
      ),
    );
    await h.order({ ref: "ORD-3", captured: 10_000_000 });
    for (let index = 0; index < 7; index += 1) await refund("ORD-3", BigInt(10_000 + index));
    const seen: string[] = [];
    let cursor: string | null = null;
    do {
      const page: Awaited<ReturnType<typeof listPending>> = await listPending(h.db, { limit: 3, cursor });
      seen.push(...page.approvals.map(({ approval }) => approval.id));
      cursor = page.next;
    } while (cursor !== null);
    expect(new Set(seen).size).toBe(7);
    expect(seen).toHaveLength(7);
    await moveClock(h.db, 24 * 60 + 1);
    expect((await listPending(h.db)).approvals).toEqual([]);
  });

  it("shows a person what they may decide: their role, within its limit, not their own, not what they voted on", async () => {
    await refund("ORD-1", 18_000n);
    await refund("ORD-2", 30_000n, ["U_SUP1"]);
    const finance = await refund("ORD-2", 80_001n);
    const amounts = async (userId: string) => {
      const list = await pendingFor(h.ctx, { userId });
      return list.ok
        ? list.approvals.map(({ approval }) => Number(approval.binding.amountMinor))
        : list.reason;
    };
    expect(await amounts("U_SUP1")).toEqual([18_000]);
    expect(await amounts("U_SUP2")).toEqual([18_000, 30_000]);
    expect(await amounts("U_FIN1")).toEqual([80_001]);
    expect(await amounts("U_OTHER")).toEqual([]);
    await h.click("U_FIN1", onlyApproval(finance));
    expect(await amounts("U_FIN1")).toEqual([]);
    expect(await amounts("U_FIN2")).toEqual([80_001]);
    h.people.away = true;
    expect(await amounts("U_SUP1")).toBe("Slack did not answer");
  });
});
