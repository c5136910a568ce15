/** What `/ops show` tells stands once, whole, and leads to whoever filed it. */
import { beforeEach, describe, expect, it } from "vitest";
import { showText } from "../../src/app/commands/show-text.js";
import type { OperationView } from "../../src/ops/index.js";
import { opsShow } from "../../src/slack/cards/ops-views.js";
import { withPaymentsSandbox } from "../payments/support.js";
import { withDatabase } from "../support/database.js";
import { expectStatus, type OpsWorld, withOpsWorld } from "./ops-world.js";

const database = withDatabase();
const payments = withPaymentsSandbox();
const build = withOpsWorld(payments);
let w: OpsWorld;

beforeEach(async () => {
  w = await build(database.db);
});

async function look(ref: string): Promise<OperationView> {
  const view = await w.ops.show({ userId: "U_ONC1", ref });
  if (view.outcome !== "operation") throw new Error(view.outcome);
  return view;
}

const times = (text: string, part: string): number => text.split(part).length - 1;

describe("/ops show", () => {
  it("of what is pending at the provider tells what it shows once, and what to do once and whole", async () => {
    payments.sandbox.control.arm({ kind: "outcome", status: "pending" });
    const { id } = expectStatus(await w.sent(), "OUTCOME_UNKNOWN");
    const view = await look(id);
    const shown = view.lastLook?.sentence ?? "";
    expect(shown).not.toBe("");
    const text = JSON.stringify(opsShow(view).blocks);
    expect(times(text, shown.slice(0, 60))).toBeLessThanOrEqual(1);
    expect(times(text, "Wait: when the provider tells that it succeeded or failed")).toBe(1);
    expect(text).toContain("shows no day by which to expect it, or that day is over.");
  });

  it("tells what was refunded elsewhere on its payment, with the amount", async () => {
    const { id } = expectStatus(await w.sent(), "CONFIRMED");
    expect(JSON.stringify(opsShow(await look(id)).blocks)).not.toContain("Refunded elsewhere");
    await database.db.sql(
      undefined,
      "UPDATE payments SET refunded_elsewhere = 2000 WHERE payment_intent = 'pi_1'",
    );
    const view = await look("ORD-1");
    expect(JSON.stringify(opsShow(view).blocks)).toMatch(/Refunded elsewhere.+£20\.00 GBP on its payment/u);
    expect(showText(view).join("\n")).toMatch(/refunded elsewhere +£20\.00 GBP on its payment/u);
  });

  it("leads to the ticket's thread", async () => {
    const { id } = await w.sent();
    const message = { channelId: "C_TICK", ts: "1796000000.000100" };
    const ticket = { id: `tkt_${"0".repeat(32)}`, ref: null, message } as const;
    const text = JSON.stringify(
      opsShow(await look(id), { ticket, workspace: "https://s.slack.com/" }).blocks,
    );
    expect(text).toContain("<https://s.slack.com/archives/C_TICK/p1796000000000100|the ticket's thread>");
  });
});
