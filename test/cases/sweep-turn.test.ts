/** The turn in which payments are read whole: an outage in the middle, a provider that comes and goes, a row that breaks, a crash. */
import { beforeEach, describe, expect, it } from "vitest";
import type { Listing } from "../../src/domain/evidence.js";
import { type ReconcileCtx, sweepOrphans } from "../../src/reconcile/index.js";
import { waitFor } from "../support/wait.js";
import { database, kinds, w } from "./word-world.js";

const HOUR_MS = 3_600_000;
const DAYS_MS = 3 * 24 * HOUR_MS;
const MORE = Array.from({ length: 10 }, (_, at) => `ORD-${at + 3}`);
const ALL = ["ORD-1", "ORD-2", ...MORE].map((ref) => `pi_${ref}`);
const DOWN: Listing = { read: "failed", reason: "unreachable", detail: "it is down" };

/** Whether the n-th question since the start is answered. */
let answers: (nth: number, paymentIntent: string) => boolean | Promise<boolean>;
let asked: string[];
let read: string[];

beforeEach(async () => {
  for (const ref of MORE) await w.order({ ref, captured: 18_000 });
  await w.advance(DAYS_MS);
  asked = [];
  read = [];
  answers = () => true;
});

function worker(): ReconcileCtx {
  const ctx = w.worker("sweep");
  const { provider } = ctx;
  return {
    ...ctx,
    provider: {
      ...provider,
      list: async (target, options) => {
        const paymentIntent = target.paymentIntent ?? "";
        asked.push(paymentIntent);
        if (!(await answers(asked.length, paymentIntent))) return DOWN;
        const listing = await provider.list(target, options);
        read.push(paymentIntent);
        return listing;
      },
    },
  };
}

const sweep = () => sweepOrphans(worker());
const times = (of: readonly string[]): number[] => ALL.map((each) => of.filter((one) => one === each).length);
const once = ALL.map(() => 1);

/** As a row that somebody changed so that nothing can be counted on it. */
async function breaking(paymentIntent: string, meanwhile: () => Promise<void>): Promise<void> {
  const { pool } = database.db;
  await pool.query(
    `CREATE FUNCTION break_payment() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
       IF NEW.refunded_elsewhere <> OLD.refunded_elsewhere THEN RAISE EXCEPTION 'injected'; END IF; RETURN NEW; END $$;
     CREATE TRIGGER break_payment BEFORE UPDATE ON payments FOR EACH ROW WHEN (NEW.payment_intent = '${paymentIntent}')
       EXECUTE FUNCTION break_payment()`,
  );
  try {
    await meanwhile();
  } finally {
    await pool.query("DROP TRIGGER break_payment ON payments; DROP FUNCTION break_payment()");
  }
}

describe("payments in their turn", () => {
  it("are each read once a day", async () => {
    await sweep();
    await sweep();
    expect(times(read)).toEqual(once);
    await w.advance(24 * HOUR_MS + 1_000);
    await sweep();
    expect(times(read)).toEqual(ALL.map(() => 2));
  });

  it("an outage in the middle: two are asked in vain, all others at the next pass, those two an hour later; none is asked more", async () => {
    answers = (nth) => nth <= 4;
    expect(await sweep()).toMatchObject({ compared: 4 });
    expect(asked).toHaveLength(6);
    const vain = asked.filter((one) => !read.includes(one));
    answers = () => true;
    expect(await sweep()).toMatchObject({ compared: ALL.length - 6 });
    expect(await sweep()).toMatchObject({ compared: 0 });
    expect(asked.filter((one) => vain.includes(one))).toHaveLength(2);
    await w.advance(HOUR_MS + 1_000);
    expect(await sweep()).toMatchObject({ compared: 2 });
    expect(times(read)).toEqual(once);
  });

  it("an outage of hours: two questions a pass, and afterwards every payment is read", async () => {
    answers = () => false;
    for (let pass = 0; pass < 24; pass += 1) {
      await sweep();
      await w.advance(300_000);
    }
    expect(asked.length).toBeLessThanOrEqual(48);
    expect(read).toEqual([]);
    answers = () => true;
    for (let pass = 0; pass < 13; pass += 1) {
      await sweep();
      await w.advance(300_000);
    }
    expect(times(read)).toEqual(once);
  });

  it("a provider that comes and goes: every payment is read within hours, and none is asked more than once in one", async () => {
    answers = (nth) => nth % 2 === 0;
    for (let pass = 0; pass < 12 * 8; pass += 1) {
      await sweep();
      await w.advance(300_000);
    }
    expect(times(read)).toEqual(once);
    expect(Math.max(...times(asked))).toBeLessThanOrEqual(9);
  });

  it("one whose row takes nothing keeps no other from its turn, and is not counted as read", async () => {
    const broken = ALL[3] ?? "";
    await w.control.dashboardRefund({ paymentIntent: broken, amount: 1_000 });
    await w.control.dashboardRefund({ paymentIntent: ALL[7] ?? "", amount: 1_000 });
    await w.advance(DAYS_MS);
    await breaking(broken, async () => {
      for (let pass = 0; pass < 3; pass += 1) await sweep();
      expect(times(asked)).toEqual(once);
      expect(await kinds()).toEqual(["refunded_elsewhere"]);
    });
    await w.advance(HOUR_MS + 1_000);
    expect(await sweep()).toMatchObject({ compared: 1 });
    expect(await kinds()).toEqual(["refunded_elsewhere", "refunded_elsewhere"]);
  });

  it("one within the sweep's window, too: the others' refunds are counted all the same, and the pass does not call itself well", async () => {
    const [one = "", other = ""] = ALL;
    await breaking(one, async () => {
      await w.control.dashboardRefund({ paymentIntent: one, amount: 1_000 });
      await w.control.dashboardRefund({ paymentIntent: other, amount: 1_000 });
      await w.advance(60_000);
      await sweep();
      await w.control.dashboardRefund({ paymentIntent: other, amount: 500 });
      expect(await sweep()).toMatchObject({ read: true, broken: 1 });
      expect(await kinds()).toEqual(["refunded_elsewhere", "refunded_elsewhere"]);
    });
    expect(await sweep()).toMatchObject({ broken: 0 });
    expect(await kinds()).toHaveLength(3);
  });

  it("a process that dies in the middle: what it had not read has its turn within minutes, not in a day", async () => {
    answers = (nth) => (nth <= 3 ? true : new Promise<boolean>(() => {}));
    void sweep();
    await waitFor(() => asked.length === 4, { what: "the sweep to hang" });
    const before = [...read];
    answers = () => true;
    await w.advance(15 * 60_000);
    await sweep();
    expect(times(read).every((n) => n >= 1)).toBe(true);
    expect(before).toHaveLength(3);
  });
});
