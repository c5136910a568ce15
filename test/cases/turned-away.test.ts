/** Approved, sent, turned away by the provider before it did anything, and let go before the next try: an honest story from end to end. */
import { beforeEach, expect, it } from "vitest";
import { undo } from "../../src/approvals/index.js";
import { verifyAudit } from "../../src/ledger/index.js";
import { type Held, POLICY } from "../approvals/harness.js";
import { onlyApproval, operationAt } from "../approvals/steps.js";
import { withPaymentsSandbox } from "../payments/support.js";
import { withDatabase } from "../support/database.js";
import { type CaseWorld, withCaseWorld } from "./case-world.js";

const database = withDatabase();
const build = withCaseWorld(withPaymentsSandbox());

let w: CaseWorld;
beforeEach(async () => {
  w = await build(database.db);
  await w.order({ ref: "ORD-1", captured: 100_000 });
});

/** An approved refund that the provider was too busy for. */
async function turnedAway(): Promise<Held> {
  const held = await w.ask("ORD-1", 18_000n);
  await w.h.click("U_SUP1", onlyApproval(held));
  await w.h.release(held);
  w.control.arm({ kind: "rate_limited" });
  await w.look(w.worker("w"), operationAt(held, 0));
  expect(await w.now(operationAt(held, 0))).toMatchObject({ status: "PREPARED", attempts: 1 });
  return held;
}

const LET_GO: [string, string, (held: Held) => Promise<unknown>][] = [
  ["by Undo", "DENIED", (held) => undo(w.h.ctx, { approvalId: onlyApproval(held).id, userId: "U_SUP1" })],
  ["by a late no", "DENIED", (held) => w.h.click("U_SUP2", onlyApproval(held), "deny")],
  [
    "by a policy that asks for more",
    "VOIDED",
    async (held) => {
      await w.h.policy(
        POLICY.replace(
          "role: supervisor, approvers: 1 }\n      -",
          "role: supervisor, approvers: 2 }\n      -",
        ),
      );
      await w.advance(60_000);
      await w.look(w.worker("w"), operationAt(held, 0));
    },
  ],
];

it.each(LET_GO)("let go %s: nothing is sent, and the audit finds nothing", async (_how, status, letGo) => {
  const held = await turnedAway();
  await letGo(held);
  expect(await w.now(operationAt(held, 0))).toMatchObject({ status, attempts: 1 });
  expect(await w.committed()).toBe(0);
  expect((await verifyAudit(database.db)).broken).toEqual([]);
});

it("an approval that is made denied by hand after its refund was sent is found", async () => {
  const held = await turnedAway();
  expect(await w.work(w.worker("w"), operationAt(held, 0))).toMatchObject({ status: "CONFIRMED" });
  await database.db.tx(async (tx) => {
    await tx.sql(undefined, "SET LOCAL session_replication_role = replica");
    await tx.sql(undefined, "UPDATE approvals SET state = 'DENIED'");
  });
  expect((await verifyAudit(database.db)).broken.map(({ problem }) => problem)).toContain(
    "its approval is not released, or gone, and it was sent",
  );
});
