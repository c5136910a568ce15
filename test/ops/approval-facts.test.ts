/** What an approval's card says of decisions before it: an approval that was taken back, and money that only on-call vouches for. */
import { beforeEach, describe, expect, it } from "vitest";
import { undo } from "../../src/approvals/index.js";
import { approvalCard, approvalText } from "../../src/slack/cards/approval-card.js";
import { readApprovalView } from "../../src/slack/views/approval.js";
import { onlyApproval } from "../approvals/steps.js";
import { withPaymentsSandbox } from "../payments/support.js";
import { writeByHand } from "../support/by-hand.js";
import { withDatabase } from "../support/database.js";
import { form } from "./forms.js";
import { expectStatus, type OpsWorld, withOpsWorld } from "./ops-world.js";

const database = withDatabase();
const payments = withPaymentsSandbox();
const build = withOpsWorld(payments);
let w: OpsWorld;

beforeEach(async () => {
  w = await build(database.db);
});

async function card(id: Parameters<typeof readApprovalView>[1]): Promise<{ blocks: string; text: string }> {
  const view = await readApprovalView(w.h.db, id);
  if (view === null) throw new Error("no card");
  return { blocks: JSON.stringify(approvalCard(view).blocks), text: approvalText(view) };
}

describe("an approval's card", () => {
  it("one of two takes their approval back: it says that they had approved, and when both was", async () => {
    const held = await w.h.turn(await w.h.ticket(), [{ order: "ORD-1", amount: 60_000n }]);
    const approval = onlyApproval(held);
    expect(await w.h.click("U_FIN1", approval)).toMatchObject({ outcome: "recorded" });
    expect(await w.h.click("U_FIN2", approval)).toMatchObject({ outcome: "approved" });
    expect(await undo(w.h.ctx, { approvalId: approval.id, userId: "U_FIN2" })).toMatchObject({
      outcome: "denied",
      approval: { state: "DENIED", endCode: "undone" },
    });
    const { blocks, text } = await card(approval.id);
    expect(blocks).toMatch(/\*Approved\* by <@U_FIN1> \(finance\), <!date/u);
    expect(blocks).toMatch(
      /\*Approved\* by <@U_FIN2> \(finance\), <!date[^>]*>, and \*took it back\*, <!date[^>]*>/u,
    );
    expect(blocks).not.toContain("*Denied* by");
    expect(text).toMatch(/Approved by <@U_FIN2>, .* UTC, and took it back, .* UTC\./u);
  });

  it("what the log tells of a vote cannot be read: the card is there all the same", async () => {
    const held = await w.h.turn(await w.h.ticket(), [{ order: "ORD-1", amount: 60_000n }]);
    const approval = onlyApproval(held);
    await w.h.click("U_FIN1", approval);
    await w.h.click("U_FIN1", approval, "deny");
    await writeByHand(
      w.h.db,
      `approval:${approval.id}`,
      "UPDATE operation_events SET body = 'spoilt' WHERE subject = $1 AND type = 'voted'",
    );
    expect((await card(approval.id)).blocks).toMatch(/\*Denied\* by <@U_FIN1> \(finance\)/u);
  });

  it("a plain no of somebody who never approved stays a no", async () => {
    const held = await w.h.turn(await w.h.ticket(), [{ order: "ORD-1", amount: 60_000n }]);
    const approval = onlyApproval(held);
    await w.h.click("U_FIN1", approval);
    await w.h.click("U_FIN2", approval, "deny");
    expect((await card(approval.id)).blocks).toMatch(/\*Denied\* by <@U_FIN2> \(finance\), <!date[^>]*>"/u);
  });

  it("what was refunded before by on-call's word alone is marked, as it was when the card was made", async () => {
    payments.sandbox.control.arm({ kind: "drop_before_commit" });
    const operation = expectStatus(await w.quarantined(18_000n), "QUARANTINED");
    const before = await w.h.turn(await w.h.ticket(), [{ order: "ORD-1", amount: 7_000n }]);
    expect(await w.ops.resolve(form(operation, "confirm"))).toMatchObject({ outcome: "resolved" });
    const held = await w.h.turn(await w.h.ticket(), [{ order: "ORD-1", amount: 6_000n }]);
    expect((await card(onlyApproval(held).id)).blocks).toContain(
      "− £180.00 GBP refunded before (of it £180.00 GBP by on-call's word alone)",
    );
    expect((await card(onlyApproval(before).id)).blocks).not.toContain("by on-call's word alone)");
  });
});
