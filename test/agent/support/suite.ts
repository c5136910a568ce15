/** What every file about the loop sets up: database, provider, stand-in model, world; and that the history was never refused. */
import { afterEach, beforeEach, expect } from "vitest";
import { withPaymentsSandbox } from "../../payments/support.js";
import { type TestDatabase, withDatabase } from "../../support/database.js";
import { type Block, type MessagesStub, startMessagesStub, use } from "../../support/messages-stub.js";
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
