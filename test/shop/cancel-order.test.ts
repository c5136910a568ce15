import { describe, expect, it } from "vitest";
import { cancelOrder, getOrder, type LocalEffectResult } from "../../src/shop/index.js";
import { withDatabase } from "../support/database.js";
import { barrier } from "../support/wait.js";
import { load, oneOrder } from "./shop-context.js";

const pg = withDatabase();
const cancel = (
  orderRef: string,
  from?: Parameters<typeof cancelOrder>[0]["from"],
): Promise<LocalEffectResult> =>
  pg.db.tx(cancelOrder(from === undefined ? { orderRef } : { orderRef, from }));

describe("cancelling an order", () => {
  it.each(["placed", "packed"])("that is %s, once", async (status) => {
    await load(pg.db, oneOrder({ status }));
    expect(await cancel("ORD-1")).toEqual({ ok: true, ref: "order:ORD-1" });
    expect(await getOrder(pg.db, "ORD-1")).toMatchObject({
      status: "cancelled",
      version: 2n,
      cancelledAt: expect.any(Date),
    });
    expect(await cancel("ORD-1")).toMatchObject({ ok: false, code: "already_cancelled" });
  });

  it.each(["dispatched", "delivered", "returned"] as const)(
    "that is %s does nothing, even if a policy allows it",
    async (status) => {
      await load(pg.db, oneOrder({ status }));
      const before = await getOrder(pg.db, "ORD-1");
      expect(await cancel("ORD-1")).toEqual({
        ok: false,
        code: "order_status",
        detail: `Order ORD-1 is ${status} and can no longer be cancelled.`,
      });
      expect(await cancel("ORD-1", [status])).toMatchObject({ ok: false, code: "order_status" });
      expect(await getOrder(pg.db, "ORD-1")).toEqual(before);
    },
  );

  it("keeps to the statuses that the policy allows", async () => {
    await load(pg.db, oneOrder({ status: "packed" }));
    expect(await cancel("ORD-1", ["placed"])).toMatchObject({ ok: false, code: "order_status" });
    expect(await cancel("ORD-2")).toMatchObject({ ok: false, code: "order_not_found" });
  });

  it("waits for a dispatch that is being written, and then does not cancel (S-AP-1)", async () => {
    await load(pg.db, oneOrder({ status: "packed" }));
    const written = barrier(2);
    const rival = pg.db.tx(async (tx) => {
      await tx.sql(undefined, "UPDATE orders SET status = 'dispatched' WHERE ref = 'ORD-1'");
      await written();
    });
    const cancelling = pg.db.tx(async (tx) => {
      await written();
      return cancelOrder({ orderRef: "ORD-1" })(tx);
    });
    await rival;
    expect(await cancelling).toMatchObject({ ok: false, code: "order_status" });
    expect((await getOrder(pg.db, "ORD-1"))?.status).toBe("dispatched");
  });
});
