import { beforeEach, describe, expect, it } from "vitest";
import { readVoters, replaceDrifted, stillHolds } from "../../src/approvals/index.js";
import type { Change } from "../../src/domain/approval.js";
import { getOperation } from "../../src/ledger/index.js";
import { withDatabase } from "../support/database.js";
import { type Harness, type Held, harness, POLICY } from "./harness.js";
import { approvalNow, balanceOf, current, onlyApproval, operationAt, statusOf } from "./steps.js";

const database = withDatabase();
let h: Harness;

beforeEach(async () => {
  h = await harness(database.db);
  await h.order({ ref: "ORD-1", captured: 18_000 });
  await h.order({ ref: "ORD-9", captured: 50_000, customer: "CUS-8" });
});

/** One way in which the world moves on between card and dispatch. */
interface Drift {
  readonly name: string;
  readonly happen: (h: Harness, held: Held) => Promise<unknown>;
  readonly says: readonly Change["what"][];
  /** A new card follows; otherwise the operation is void with a sentence. */
  readonly asksAgain: boolean;
}

const sql = (text: string) => (world: Harness) => world.db.sql(undefined, text);

const DRIFTS: readonly Drift[] = [
  {
    name: "the order was sent back",
    happen: sql(
      "UPDATE orders SET status = 'cancelled', cancelled_at = countersign_now() WHERE ref = 'ORD-1'",
    ),
    says: ["order_status"],
    asksAgain: true,
  },
  {
    name: "the order is in a state in which nothing is refunded",
    happen: sql("UPDATE orders SET status = 'dispatched' WHERE ref = 'ORD-1'"),
    says: ["order_status", "policy_refuses"],
    asksAgain: false,
  },
  {
    name: "part of it was refunded elsewhere",
    happen: sql(
      "UPDATE payments SET refunded_elsewhere = 2000 FROM orders o WHERE o.id = order_id AND o.ref = 'ORD-1'",
    ),
    says: ["refundable"],
    asksAgain: true,
  },
  {
    name: "so much was refunded elsewhere that it no longer fits",
    happen: sql(
      "UPDATE payments SET refunded_elsewhere = 17000 FROM orders o WHERE o.id = order_id AND o.ref = 'ORD-1'",
    ),
    says: ["refundable", "policy_refuses"],
    asksAgain: false,
  },
  {
    name: "an import corrected what was paid",
    happen: (world) => world.order({ ref: "ORD-1", captured: 17_000 }),
    says: ["captured", "refundable"],
    asksAgain: true,
  },
  {
    name: "the order moved to another customer",
    happen: sql(
      "UPDATE orders SET customer_id = (SELECT id FROM customers WHERE ref = 'CUS-8') WHERE ref = 'ORD-1'",
    ),
    says: ["order_customer"],
    asksAgain: false,
  },
  {
    name: "the ticket was bound to another customer",
    happen: (world, held) =>
      world.db.sql(
        undefined,
        "UPDATE tickets SET customer_id = (SELECT id FROM customers WHERE ref = 'CUS-8') WHERE id = $1",
        [held.ticketId],
      ),
    says: ["customer"],
    asksAgain: false,
  },
  {
    name: "the money would go to another payment",
    happen: sql(
      "UPDATE payments SET payment_intent = 'pi_other' FROM orders o WHERE o.id = order_id AND o.ref = 'ORD-1'",
    ),
    says: ["fingerprint"],
    asksAgain: false,
  },
  {
    name: "the currency in the operation's row was altered",
    happen: async (world, held) => {
      await tamper(world, `UPDATE operations SET currency = 'USD' WHERE id = '${operationAt(held, 0)}'`);
    },
    says: ["amount", "fingerprint"],
    asksAgain: false,
  },
  {
    name: "the amount in the approval's row was altered",
    happen: async (world, held) => {
      const id = onlyApproval(held).id;
      await tamper(
        world,
        `UPDATE approvals SET binding = jsonb_set(binding, '{amountMinor}', '1000') WHERE id = '${id}'`,
      );
    },
    says: ["fingerprint", "amount"],
    asksAgain: false,
  },
  {
    name: "it was made a further occurrence",
    happen: async (world, held) => {
      await tamper(world, `UPDATE operations SET occurrence = 2 WHERE id = '${operationAt(held, 0)}'`);
    },
    says: ["occurrence", "fingerprint"],
    asksAgain: false,
  },
  {
    name: "the policy now asks for other people",
    happen: (world) =>
      world.policy(
        POLICY.replace(
          "upTo: { GBP: 50000, USD: 50000 }, role: supervisor",
          "upTo: { GBP: 9999 }, role: supervisor",
        ),
      ),
    says: ["policy"],
    asksAgain: true,
  },
  {
    name: "the policy now asks for more people",
    happen: (world) =>
      world.policy(
        POLICY.replace("role: supervisor, approvers: 1 }\n", "role: supervisor, approvers: 2 }\n"),
      ),
    says: ["policy"],
    asksAgain: true,
  },
  {
    name: "the policy would now allow it alone",
    happen: (world) => world.policy(POLICY.replace("auto:  { GBP: 5000", "auto:  { GBP: 20000")),
    says: ["policy"],
    asksAgain: true,
  },
  {
    name: "the policy now refuses it, whoever asks",
    happen: (world) => world.policy(POLICY.replace("never: { GBP: 200000", "never: { GBP: 9999")),
    says: ["policy_refuses"],
    asksAgain: false,
  },
  {
    name: "the approver left the role",
    happen: async (world) => world.people.all.set("U_SUP1", { roles: [] }),
    says: ["voter"],
    asksAgain: true,
  },
  {
    name: "the approver's account was closed",
    happen: async (world) =>
      world.people.all.set("U_SUP1", { roles: ["supervisor"], standing: "deactivated" }),
    says: ["voter"],
    asksAgain: true,
  },
  {
    name: "the approver now counts as filer",
    happen: (world, held) =>
      world.db.sql(undefined, "UPDATE operations SET filers = filers || '{U_SUP1}' WHERE id = $1", [
        operationAt(held, 0),
      ]),
    says: ["voter"],
    asksAgain: true,
  },
  {
    name: "the limit of the approver's role was lowered",
    happen: (world) =>
      world.policy(POLICY.replace("limit: { GBP: 50000, USD: 50000 }", "limit: { GBP: 9999 }")),
    says: ["voter"],
    asksAgain: true,
  },
];

/** As somebody with the database's own password could. */
async function tamper(world: Harness, statement: string): Promise<void> {
  await world.db.tx(async (tx) => {
    await tx.sql(undefined, "SET LOCAL session_replication_role = replica");
    await tx.sql(undefined, statement);
  });
}

async function held(): Promise<Held> {
  return h.turn(await h.ticket(), [{ order: "ORD-1", amount: 10_000n }]);
}

async function expectDied(turn: Held): Promise<void> {
  const old = await approvalNow(h.db, onlyApproval(turn).id);
  expect([old.state, old.endCode]).toEqual(["VOIDED", "drift"]);
  expect(old.endDetail).toMatch(/\S/);
  const posts = h.shown.thread.filter(({ message }) => message.type === "approval_voided");
  expect(posts).toHaveLength(1);
}

describe("the world moves on between card and click: nothing is dispatched, the approval dies", () => {
  it.each(DRIFTS.map((drift) => [drift.name, drift] as const))("%s", async (_name, drift) => {
    const turn = await held();
    await drift.happen(h, turn);
    await h.click("U_SUP1", onlyApproval(turn)); // may be refused: then the vote below is what drifts
    const approval = await approvalNow(h.db, onlyApproval(turn).id);
    if (approval.state === "PENDING") {
      expect(drift.says).toEqual(["voter"]);
      return;
    }
    const release = await h.release(turn);
    await expectDied(turn);
    const [now] = await current(h.db, turn);
    if (drift.asksAgain) {
      expect(release).toMatchObject({ outcome: "still_held", rearmed: [now?.id] });
      expect(now?.state).toBe("PENDING");
      expect(now?.changes.map((change) => change.what)).toEqual(drift.says);
      expect(await statusOf(h.db, operationAt(turn, 0))).toBe("AWAITING_APPROVAL");
    } else {
      expect(release).toMatchObject({ outcome: "released", calls: [{ outcome: "ended" }] });
      expect(await statusOf(h.db, operationAt(turn, 0))).toBe("VOIDED");
    }
    expect((await balanceOf(h.db, "ORD-1")).reserved).toBe(0);
  });
});

describe("the world moves on between click and release", () => {
  it.each(DRIFTS.map((drift) => [drift.name, drift] as const))("%s", async (_name, drift) => {
    const turn = await held();
    await h.click("U_SUP1", onlyApproval(turn));
    await drift.happen(h, turn);
    const release = await h.release(turn);
    await expectDied(turn);
    const [now] = await current(h.db, turn);
    if (!drift.asksAgain) {
      expect(release).toMatchObject({ outcome: "released", calls: [{ outcome: "ended" }] });
      expect(await statusOf(h.db, operationAt(turn, 0))).toBe("VOIDED");
      return;
    }
    expect(release).toMatchObject({ outcome: "still_held", rearmed: [now?.id] });
    expect(now?.changes.map((change) => change.what)).toEqual(drift.says);
    expect(now?.binding.amountMinor).toBe(10_000n);
    // Asked again under the present world, it can be approved and released.
    for (const userId of ["U_SUP1", "U_SUP2", "U_FIN1", "U_FIN2"]) {
      if (now !== undefined) await h.click(userId, now);
    }
    const [after] = await current(h.db, turn);
    if (after?.state === "APPROVED") expect((await h.release(turn)).outcome).toBe("released");
    else expect(drift.name).toBe("the limit of the approver's role was lowered");
  });
});

describe("the world moves on between release and claim", () => {
  it.each(DRIFTS.map((drift) => [drift.name, drift] as const))("%s", async (_name, drift) => {
    const turn = await held();
    await h.click("U_SUP1", onlyApproval(turn));
    expect((await h.release(turn)).outcome).toBe("released");
    const operationId = operationAt(turn, 0);
    expect(await look(operationId)).toEqual({ holds: true });
    await drift.happen(h, turn);
    expect(await look(operationId)).toMatchObject({ holds: false, code: "drift" });
    const replaced = await replaceDrifted(h.ctx, { operationId });
    await expectDied(turn);
    expect(replaced).toMatchObject({
      outcome: "replaced",
      operation: { status: "VOIDED", result: { code: "drift" } },
    });
    expect((await balanceOf(h.db, "ORD-1")).reserved).toBe(0);
    if (replaced.outcome !== "replaced") return;
    if (!drift.asksAgain) {
      expect(replaced.successor).toBeNull();
      return;
    }
    expect(replaced.approval?.state).toBe("PENDING");
    expect(replaced.approval?.changes.map((change) => change.what)).toEqual(drift.says);
    expect(replaced.successor).toMatchObject({ status: "AWAITING_APPROVAL", amountMinor: 10_000n });
    expect(h.shown.successors).toEqual([{ from: operationId, to: replaced.successor?.id }]);
    expect(await replaceDrifted(h.ctx, { operationId })).toMatchObject({ outcome: "unchanged" });
  });

  it("nothing moved: the last look holds, and nothing is replaced", async () => {
    const turn = await held();
    await h.click("U_SUP1", onlyApproval(turn));
    await h.release(turn);
    expect(await replaceDrifted(h.ctx, { operationId: operationAt(turn, 0) })).toMatchObject({
      outcome: "unchanged",
    });
    expect(await statusOf(h.db, operationAt(turn, 0))).toBe("PREPARED");
  });

  it("people cannot be read at the claim: not sent, and not voided", async () => {
    const turn = await held();
    await h.click("U_SUP1", onlyApproval(turn));
    await h.release(turn);
    h.people.away = true;
    expect(await look(operationAt(turn, 0))).toMatchObject({ holds: false, code: "voters_unreadable" });
    expect(await replaceDrifted(h.ctx, { operationId: operationAt(turn, 0) })).toMatchObject({
      outcome: "unchanged",
    });
  });

  async function look(operationId: ReturnType<typeof operationAt>) {
    const voters = await readVoters(h.ctx, operationId);
    return h.db.tx(async (tx) => {
      const operation = await getOperation(tx, operationId);
      if (operation === null) throw new Error("gone");
      return stillHolds(tx, h.ctx, { operation, voters });
    });
  }
});
