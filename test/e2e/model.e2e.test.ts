/** The real model client against a stand-in that refuses a wrong history, the loop carried on by another process. */
import { describe, expect, it } from "vitest";
import { byTurn, type MessagesStub, says, startMessagesStub, use, uses } from "../support/messages-stub.js";
import { withDatabases } from "./support/databases.js";
import { type House, inHouse } from "./support/house.js";
import { NOTHING_COUNTED } from "./support/nothing-counted.js";

const databases = withDatabases();
const LONG_MS = 240_000;

const look = (order: string) => use("get_order", { order_reference: order });
const refund = (order: string, minor: number) =>
  use("issue_refund", {
    order_reference: order,
    scope: "amount",
    item_references: [],
    amount_minor: minor,
    reason: "The item arrived torn.",
  });

async function withModel(run: (house: House, stub: MessagesStub) => Promise<void>): Promise<void> {
  const stub = await startMessagesStub();
  try {
    const env = { PLANNER: "model", ANTHROPIC_API_KEY: "sk-ant-test", ANTHROPIC_BASE_URL: stub.url };
    await inHouse(databases, { policy: { text: NOTHING_COUNTED }, env }, (house) => run(house, stub));
    expect(
      stub.refused.map(({ problem }) => problem),
      "requests that the real service refuses",
    ).toEqual([]);
  } finally {
    await stub.close();
  }
}

const amounts = async (house: House): Promise<number[]> =>
  (await house.world.payments.control.effects()).map(({ amount }) => amount).sort((a, b) => a - b);

describe("S-AG-3: one call of the turn is held", () => {
  it(
    "nothing runs before the decision; another process makes both refunds, each once",
    { timeout: LONG_MS },
    () =>
      withModel(async (house, stub) => {
        const { stage } = house;
        stub.script(
          byTurn(
            () => uses(look("ORD-10050"), look("ORD-10042")),
            () => uses(refund("ORD-10050", 2_000), refund("ORD-10042", 18_000)),
            () => says("Done."),
          ),
        );
        await stage.start();
        const thread = await stage.file(
          "U_AGENT",
          "ORD-10050 and ORD-10042 of Tom Whitfield arrived damaged.",
        );
        await stage.confirmBinding(thread);
        await stage.runIn(thread, "awaiting_approval");
        await stage.messageWith(thread, "Approve");
        expect(await amounts(house)).toEqual([]);
        await stage.stop();
        await stage.start();
        await stage.approve("U_SUP1", thread);
        await stage.runIn(thread, "resolved");
        expect(await amounts(house)).toEqual([2_000, 18_000]);
        const last = stub.requests.at(-1)?.body.messages.at(-1);
        const results = Array.isArray(last?.content)
          ? last.content.filter(({ type }) => type === "tool_result")
          : [];
        expect(results).toHaveLength(2);
        await house.assertAuditIntact();
      }),
  );
});

describe("S-AP-4: what ran is what was approved", () => {
  it(
    "the approved amount is paid once; a larger one needs finance; another customer's order is refused",
    { timeout: LONG_MS },
    () =>
      withModel(async (house, stub) => {
        const { stage, db } = house;
        stub.script(
          byTurn(
            () => uses(look("ORD-10042")),
            () => uses(refund("ORD-10042", 8_000)),
            () => uses(refund("ORD-10042", 10_000)),
            () => uses(refund("ORD-2001", 8_000)),
            () => says("Done."),
          ),
        );
        await stage.start();
        const thread = await stage.file("U_AGENT", "ORD-10042 of Tom Whitfield arrived damaged.");
        await stage.confirmBinding(thread);
        await stage.approve("U_SUP1", thread);
        await stage.until("the approved refund", async () => (await amounts(house)).length === 1);
        await stage.until("a second operation that waits", async () =>
          (await stage.operations()).some(
            (operation) => operation.amountMinor === 10_000n && operation.status === "AWAITING_APPROVAL",
          ),
        );
        expect(await amounts(house)).toEqual([8_000]);
        await stage.deny("U_SUP1", thread, "Once is enough.");
        await stage.runIn(thread, "resolved");
        expect(await amounts(house)).toEqual([8_000]);
        const fingerprints = await db.sql<{ n: bigint }>(
          "test.fingerprints",
          `SELECT count(DISTINCT o.fingerprint) AS n FROM approvals a JOIN operations o ON o.id = a.operation_id GROUP BY a.id`,
        );
        expect(fingerprints.every(({ n }) => n === 1n)).toBe(true);
        expect((await stage.operations()).every(({ orderRef }) => orderRef === "ORD-10042")).toBe(true);
        await house.assertAuditIntact();
      }),
  );
});
