/** A no that comes after the release and before the claim stops the operation, and the log that tells of both verifies. */
import { expect, it } from "vitest";
import { decide, undo } from "../../src/approvals/index.js";
import { verifyAudit } from "../../src/ledger/index.js";
import { withPaymentsSandbox } from "../payments/support.js";
import { withDatabase } from "../support/database.js";
import { withCaseWorld } from "./case-world.js";

const database = withDatabase();
const build = withCaseWorld(withPaymentsSandbox());

it.each(["undone by its voter", "denied by its voter", "denied by another"])(
  "released, then %s",
  async (how) => {
    const w = await build(database.db);
    await w.order({ ref: "ORD-1", captured: 20_000 });
    const held = await w.ask("ORD-1", 6_000n);
    const [approval] = held.approvals;
    const [call] = held.calls;
    if (approval === undefined || call?.operationId === undefined) throw new Error("not held");
    await w.h.click("U_SUP1", approval, "approve");
    await w.h.release(held);
    const approvalId = approval.id;
    const outcome =
      how === "undone by its voter"
        ? await undo(w.h.ctx, { approvalId, userId: "U_SUP1" })
        : await decide(w.h.ctx, {
            approvalId,
            cardVersion: approval.cardVersion,
            userId: how === "denied by another" ? "U_SUP2" : "U_SUP1",
            verdict: "deny",
            note: "no",
          });
    expect(outcome.outcome).toBe("denied");
    expect(await w.work(w.worker("w"), call.operationId)).toMatchObject({ status: "DENIED", attempts: 0 });
    expect(await w.committed()).toBe(0);
    expect((await verifyAudit(w.db)).broken).toEqual([]);
  },
);
