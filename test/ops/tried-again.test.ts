/** What the provider did not take, for now: told as tried, in every place, and never as cooling off or as not sent before. */
import { beforeEach, describe, expect, it } from "vitest";
import { takeSnapshot } from "../../src/app/compose/snapshot.js";
import { undo } from "../../src/approvals/index.js";
import { drive } from "../../src/dispatch/index.js";
import type { ApprovalId } from "../../src/domain/ids.js";
import type { Operation } from "../../src/domain/operation.js";
import { freeze } from "../../src/ledger/index.js";
import { approvalCard } from "../../src/slack/cards/approval-card.js";
import { decideSentence } from "../../src/slack/cards/decide-sentences.js";
import { opsHealth, opsList, opsShow } from "../../src/slack/cards/ops-views.js";
import { outcomeOf, standingOf } from "../../src/slack/cards/sentences.js";
import { readApprovalView } from "../../src/slack/views/approval.js";
import { readOperation } from "../../src/slack/views/operation.js";
import { moveClock } from "../approvals/steps.js";
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

const TRIED = "The provider asks us to slow down: tried 3 times, certainly nothing carried out";

/** Three tries, each answered with a 429. */
async function slowedDown(): Promise<Operation> {
  payments.sandbox.control.arm({ kind: "rate_limited", times: null });
  const { id } = await w.sent();
  for (let tries = 1; tries < 3; tries += 1) {
    await moveClock(w.h.db, 60 * tries);
    await drive(w.dispatch, id);
  }
  const operation = expectStatus(await w.now(id), "PREPARED");
  expect(operation.attempts).toBe(3);
  expect((await payments.sandbox.control.counts()).refunds).toBe(0);
  return operation;
}

const approvalOf = ({ approvalId }: Operation): ApprovalId => {
  if (approvalId === null) throw new Error("it has no approval");
  return approvalId;
};

async function listed(): Promise<string> {
  const view = await w.ops.list({ userId: "U_ONC1", status: null });
  if (view.outcome !== "list") throw new Error(view.outcome);
  return JSON.stringify(opsList(view, null).blocks);
}

async function health(): Promise<string> {
  const view = await w.ops.health({ userId: "U_ONC1" });
  if (view.outcome !== "health") throw new Error(view.outcome);
  return JSON.stringify(opsHealth(view, new Date(0)).blocks);
}

async function shown(ref: string): Promise<string> {
  const view = await w.ops.show({ userId: "U_ONC1", ref });
  if (view.outcome !== "operation") throw new Error(view.outcome);
  return JSON.stringify(opsShow(view).blocks);
}

async function card(operation: Operation): Promise<string> {
  const view = await readApprovalView(w.h.db, approvalOf(operation));
  return JSON.stringify(view === null ? [] : approvalCard(view).blocks);
}

async function facts({ id }: Operation) {
  const operation = await readOperation(w.h.db, id);
  if (operation === null) throw new Error(`no operation ${id}`);
  return operation;
}

describe("what the provider answers with 'slow down'", () => {
  it("is told as tried so many times in list, show, card and thread", async () => {
    const operation = await slowedDown();
    const thread = await facts(operation);
    const told = [
      await listed(),
      await shown(operation.id),
      await card(operation),
      outcomeOf(thread),
      standingOf(thread),
    ];
    for (const text of told) {
      expect(text.toLowerCase()).toContain(TRIED.toLowerCase());
      expect(text).toMatch(/[Tt]ried again at /u);
      expect(text).not.toMatch(/cooling off|not sent/iu);
    }
    expect(told[2]).toContain("Undo approval");
    expect(told[2]).toContain("what was undone cannot be approved again");
  });

  it("is counted apart from what cools off, in health and in the metrics", async () => {
    await slowedDown();
    const text = await health();
    expect(text).not.toContain("Cooling off");
    expect(text).toContain(
      "Tried and not taken by the provider, certainly not carried out: 1 operation, since ",
    );
    const snapshot = () => takeSnapshot(w.h.db, { depth: async () => null }, { slack: () => true });
    expect((await snapshot()).oldestTriedAgeMs).toBeGreaterThan(110 * 60_000);
    await freeze(w.dispatch, { kind: "refund", by: "U_ONC1", reason: "" });
    expect((await snapshot()).oldestTriedAgeMs).toBe(0);
  });

  it("and is undone then says that it was tried, and that nothing was carried out", async () => {
    const operation = await slowedDown();
    const approvalId = approvalOf(operation);
    const outcome = await undo(w.h.ctx, { approvalId, userId: "U_SUP1" });
    expect(decideSentence(outcome)).toMatch(/stopped after 3 tries; nothing was carried out\.$/u);
    const denied = expectStatus(await w.now(operation.id), "DENIED");
    expect((await payments.sandbox.control.counts()).refunds).toBe(0);
    const again = decideSentence(await undo(w.h.ctx, { approvalId, userId: "U_SUP1" }));
    const told = [await card(denied), outcomeOf(await facts(denied)), again];
    for (const text of told) {
      expect(text).toContain("Tried 3 times; nothing was carried out.");
      expect(text).not.toMatch(/Nothing was sent|before it was sent|before anything was sent/u);
    }
    expect(await shown(operation.id)).not.toContain("may be sent again");
  });
});
