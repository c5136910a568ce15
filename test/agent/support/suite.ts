/** What every file about the loop sets up: database, provider, stand-in model, world; and that the history was never refused. */
import { afterEach, beforeEach, expect } from "vitest";
import type { Approval } from "../../../src/domain/approval.js";
import type { RunId } from "../../../src/domain/ids.js";
import { withPaymentsSandbox } from "../../payments/support.js";
import { type TestDatabase, withDatabase } from "../../support/database.js";
import {
  type Block,
  byTurn,
  type MessagesStub,
  says,
  startMessagesStub,
  use,
  uses,
} from "../../support/messages-stub.js";
import { type AgentWorld, agentWorld, stockShop, stubPlanner, type WorldOptions } from "./world.js";

export interface Suite {
  readonly stub: MessagesStub;
  readonly world: AgentWorld;
  readonly database: TestDatabase;
  readonly payments: ReturnType<typeof withPaymentsSandbox>;
  start(more?: Partial<WorldOptions>): Promise<AgentWorld>;
  /** Refunds that the provider really made. */
  committed(): Promise<number>;
}

export function loopSuite(): Suite {
  const database = withDatabase();
  const payments = withPaymentsSandbox();
  let stub: MessagesStub | undefined;
  let worlds: AgentWorld[] = [];
  beforeEach(async () => {
    stub = await startMessagesStub();
    await stockShop(database.db, payments.sandbox.control);
  });
  afterEach(async () => {
    await Promise.all(worlds.map((world) => world.close()));
    worlds = [];
    await stub?.close();
    expect(stub?.refused.map((request) => request.problem)).toEqual([]);
  });
  const open = (): MessagesStub => {
    if (stub === undefined) throw new Error("the stand-in exists only inside tests");
    return stub;
  };
  return {
    database,
    payments,
    get stub() {
      return open();
    },
    get world() {
      const last = worlds.at(-1);
      if (last === undefined) throw new Error("no world was started");
      return last;
    },
    start: async (more = {}) => {
      const world = await agentWorld({
        db: database.db,
        control: payments.sandbox.control,
        paymentsUrl: payments.sandbox.url,
        planner: stubPlanner(open()),
        ...more,
      });
      worlds.push(world);
      return world;
    },
    committed: async () => (await payments.sandbox.control.counts()).committed,
  };
}

export const look = (order: string): Block => use("get_order", { order_reference: order });

export const refund = (order: string, minor: number, reason = "it arrived broken"): Block =>
  use("issue_refund", {
    order_reference: order,
    scope: "amount",
    item_references: [],
    amount_minor: minor,
    reason,
  });

export interface HeldRun {
  readonly world: AgentWorld;
  readonly runId: RunId;
  readonly approval: Approval;
}

/** A run whose only write, a refund of £180.00, waits for one supervisor. */
export async function heldRefund(suite: Suite): Promise<HeldRun> {
  const world = await suite.start();
  suite.stub.script(
    byTurn(
      () => uses(look("ORD-10042")),
      () => uses(refund("ORD-10042", 18_000)),
      () => says("Done."),
    ),
  );
  const { runId } = await world.fileConfirmed("ORD-10042 arrived torn, £180.00 back");
  await world.pump();
  const [approval] = await world.pending();
  if (approval === undefined) throw new Error("nothing is pending");
  return { world, runId, approval };
}
