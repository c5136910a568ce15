import { beforeEach, describe, expect, it } from "vitest";
import { bindingWasConfirmed, decide } from "../../src/approvals/index.js";
import { CommitUnknownError } from "../../src/db/connect.js";
import { APPROVAL_TRANSITIONS } from "../../src/domain/approval.js";
import { withDatabase } from "../support/database.js";
import { type Harness, harness } from "./harness.js";
import { approvalNow, onlyApproval, operationAt, statusOf } from "./steps.js";

const database = withDatabase();
let h: Harness;

beforeEach(async () => {
  h = await harness(database.db);
  await h.order({ ref: "ORD-1", captured: 18_000 });
});

const held = async () => h.turn(await h.ticket(), [{ order: "ORD-1", amount: 18_000n }]);

/** Raises an SQLSTATE the first `times` times that a table is written to (S-DB-2). */
async function breakWrites(table: string, sqlstate: string, times: number): Promise<() => Promise<void>> {
  const { db } = h;
  await db.sql(undefined, "CREATE SEQUENCE breaks");
  await db.sql(
    undefined,
    `CREATE FUNCTION break_write() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
       IF nextval('breaks') <= ${times} THEN RAISE EXCEPTION 'injected' USING ERRCODE = '${sqlstate}'; END IF; RETURN NEW; END $$`,
  );
  await db.sql(
    undefined,
    `CREATE TRIGGER break_write BEFORE INSERT OR UPDATE ON ${table} FOR EACH ROW EXECUTE FUNCTION break_write()`,
  );
  return async () => {
    await db.sql(undefined, `DROP TRIGGER break_write ON ${table}`);
    await db.sql(undefined, "DROP FUNCTION break_write");
    await db.sql(undefined, "DROP SEQUENCE breaks");
  };
}

describe("the answer to a vote's COMMIT is lost", () => {
  /** The first transactions happen, and nobody is told. */
  const unheard = (times: number, then?: Error) => {
    let lost = 0;
    const { ctx } = h;
    const tx: typeof ctx.db.tx = async (fn, options) => {
      if (lost >= times && then !== undefined) throw then;
      const value = await ctx.db.tx(fn, options);
      lost += 1;
      if (lost <= times) throw new CommitUnknownError(new Error("connection lost"));
      return value;
    };
    return { ...ctx, db: { ...ctx.db, tx } };
  };
  const click = (approvalId: string) => ({
    approvalId,
    cardVersion: 1,
    userId: "U_SUP1",
    verdict: "approve" as const,
  });

  it("the same click finds it: the person is told that it counts, once", async () => {
    const turn = await held();
    const { id } = onlyApproval(turn);
    expect(await decide(unheard(1), click(id))).toMatchObject({
      outcome: "ended",
      approval: { state: "APPROVED" },
    });
    expect((await approvalNow(h.db, id)).votes).toHaveLength(1);
  });

  it("and nothing can be asked any more: nobody is told that it was not recorded", async () => {
    const turn = await held();
    const { id } = onlyApproval(turn);
    const outcome = await decide(unheard(1, new Error("the database is away")), click(id));
    expect(outcome).toMatchObject({
      outcome: "try_again",
      sentence: expect.stringContaining("not known yet"),
    });
    expect((await approvalNow(h.db, id)).state).toBe("APPROVED");
  });
});

describe("a click meets a deadlock or a serialization failure (S-DB-2)", () => {
  it.each([
    ["40P01", "votes"],
    ["40001", "votes"],
    ["40P01", "approvals"],
    ["40001", "approvals"],
  ])("%s on %s once: retried, and counted once", async (sqlstate, table) => {
    const turn = await held();
    const mend = await breakWrites(table, sqlstate, 1);
    try {
      expect(await h.click("U_SUP1", onlyApproval(turn))).toMatchObject({ outcome: "approved" });
    } finally {
      await mend();
    }
    expect((await approvalNow(h.db, onlyApproval(turn).id)).votes).toHaveLength(1);
  });

  it.each(["40P01", "40001"])(
    "%s again and again: nothing is recorded and the person is asked to click again",
    async (sqlstate) => {
      const turn = await held();
      const before = await approvalNow(h.db, onlyApproval(turn).id);
      const mend = await breakWrites("approvals", sqlstate, 1_000);
      try {
        for (const verdict of ["approve", "deny"] as const) {
          expect(await h.click("U_SUP1", onlyApproval(turn), verdict)).toMatchObject({
            outcome: "try_again",
          });
        }
      } finally {
        await mend();
      }
      expect(await approvalNow(h.db, onlyApproval(turn).id)).toEqual(before);
      expect(await statusOf(h.db, operationAt(turn, 0))).toBe("AWAITING_APPROVAL");
      expect(await h.click("U_SUP1", onlyApproval(turn))).toMatchObject({ outcome: "approved" });
    },
  );
});

describe("a person is at most 5 s old when the vote is written", () => {
  /** A process clock that jumps while people are read. */
  function jumping(jumps: number) {
    let left = jumps;
    let offset = 0;
    h.people.beforeAnswer = async () => {
      if (left > 0) offset += 10_000;
      left -= 1;
    };
    return { ...h.ctx, clock: { now: () => new Date(h.ctx.clock.now().getTime() + offset) } };
  }
  const click = (approvalId: string) => ({
    approvalId,
    cardVersion: 1,
    userId: "U_SUP1",
    verdict: "approve" as const,
  });

  it("a reading that grew old is made again, and a role lost meanwhile does not sign", async () => {
    const turn = await held();
    const ctx = jumping(1);
    expect(await decide(ctx, click(onlyApproval(turn).id))).toMatchObject({ outcome: "approved" });
    expect(h.people.reads).toBe(2);

    const other = await h.turn(await h.ticket(), [{ order: "ORD-1", amount: 7_000n }]);
    const again = jumping(1);
    const inner = h.people.beforeAnswer;
    h.people.beforeAnswer = async (userId) => {
      await inner?.(userId);
      if (h.people.reads === 4) h.people.all.set("U_SUP1", { roles: [] });
    };
    expect(await decide(again, click(onlyApproval(other).id))).toMatchObject({
      outcome: "refused",
      reason: "not_in_role",
    });
  });

  it("people that always take too long to read: nothing is recorded", async () => {
    const turn = await held();
    expect(await decide(jumping(1_000), click(onlyApproval(turn).id))).toMatchObject({
      outcome: "try_again",
    });
    expect((await approvalNow(h.db, onlyApproval(turn).id)).votes).toEqual([]);
  });
});

describe("what the database itself keeps", () => {
  it("its table of transitions is the program's", async () => {
    const rows = await h.db.sql<{ from_state: string; to_state: string }>(
      undefined,
      "SELECT from_state, to_state FROM approval_transitions",
    );
    const table = Object.entries(APPROVAL_TRANSITIONS).flatMap(([from, tos]) =>
      tos.map((to) => `${from}>${to}`),
    );
    expect(rows.map((row) => `${row.from_state}>${row.to_state}`).toSorted()).toEqual(table.toSorted());
  });

  it.each([
    [
      "an illegal move",
      "UPDATE approvals SET state = 'RELEASED', version = version + 1",
      "approvals_transition_is_legal",
    ],
    ["a move without a new version", "UPDATE approvals SET state = 'APPROVED'", "approvals_version_grows"],
    ["another binding", "UPDATE approvals SET binding = '{}'", "approvals_binding_is_fixed"],
    ["another role", "UPDATE approvals SET role = 'nobody'", "approvals_binding_is_fixed"],
    ["fewer approvers", "UPDATE approvals SET approvers_needed = 0 + 7", "approvals_binding_is_fixed"],
  ])("refuses %s", async (_title, statement, constraint) => {
    await held();
    await expect(h.db.sql(undefined, statement)).rejects.toMatchObject({ constraint });
  });

  it("two open approvals of one operation, and two votes of one person, cannot be written", async () => {
    const turn = await held();
    const copy = `INSERT INTO approvals (id, operation_id, state, binding, binding_hash, policy_hash, answer_hash, role, approvers_needed, expires_at)
      SELECT 'apr_copy', operation_id, 'PENDING', binding, binding_hash, policy_hash, answer_hash, role, 1, expires_at FROM approvals`;
    await expect(h.db.sql(undefined, copy)).rejects.toMatchObject({
      constraint: "approvals_one_open_per_operation",
    });
    await h.click("U_SUP1", onlyApproval(turn));
    const vote =
      "INSERT INTO votes (id, approval_id, person, user_id, verdict, role, card_version) SELECT 'v', approval_id, person, 'U_X', 'approve', role, 1 FROM votes";
    await expect(h.db.sql(undefined, vote)).rejects.toMatchObject({ constraint: "votes_one_per_person" });
  });

  it("a click on something that is no approval is answered", async () => {
    for (const approvalId of ["", "apr_x", `apr_${"0".repeat(32)}`, "op_1", "'; --"]) {
      expect(await h.click("U_SUP1", approvalId as `apr_${string}`)).toEqual({ outcome: "not_found" });
    }
  });
});

describe("the customer is confirmed while the policy's answer was spoilt in the database", () => {
  it.each(["7", '"text"', "null", "{}", '[7, null, "hold"]', '{"verdict": "hold", "rule": "binding"}'])(
    "rules %s: nothing breaks, and the card stands",
    async (rules) => {
      const held = await h.turn(await h.ticket({ confirmed: false }), [{ order: "ORD-1", amount: 2_000n }]);
      const { id } = onlyApproval(held);
      await h.db.sql(undefined, "UPDATE tickets SET binding = 'confirmed'");
      await h.db.sql(
        undefined,
        "UPDATE operations SET decision = jsonb_set(decision, '{rules}', $1::jsonb)",
        [rules],
      );
      const confirmed = h.db.tx((tx) => bindingWasConfirmed(tx, h.ctx, held));
      await expect(confirmed).resolves.toEqual([]);
      expect(await approvalNow(h.db, id)).toMatchObject({ state: "PENDING" });
      expect(await statusOf(h.db, operationAt(held, 0))).toBe("AWAITING_APPROVAL");
    },
  );
});
