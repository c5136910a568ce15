/** The cards of findings follow what came of them: what counts again, what is a duplicate of ours, what is shown again. */
import { beforeEach, describe, expect, it } from "vitest";
import type { OperationId } from "../../src/domain/ids.js";
import { closeIncident, openIncident } from "../../src/ledger/index.js";
import { sweepOrphans } from "../../src/reconcile/index.js";
import { incidentCard } from "../../src/slack/cards/incident-card.js";
import { readIncident } from "../../src/slack/views/ops.js";
import { SECRET_KEY, withPaymentsSandbox } from "../payments/support.js";
import { withDatabase } from "../support/database.js";
import { type CaseWorld, withCaseWorld } from "./case-world.js";

const database = withDatabase();
const payments = withPaymentsSandbox();
const build = withCaseWorld(payments);
let w: CaseWorld;

beforeEach(async () => {
  w = await build(database.db);
});

const incidents = (): Promise<{ id: string; kind: string; status: string }[]> =>
  database.db.sql(undefined, "SELECT id, kind, status FROM incidents ORDER BY created_at, id");
const listed = async (): Promise<string[]> =>
  (await incidents()).map(({ kind, status }) => `${kind} ${status}`);
const sweep = () => sweepOrphans(w.worker("s"));

async function elsewhere(): Promise<number> {
  const [row] = await database.db.sql<{ minor: number }>(
    undefined,
    "SELECT refunded_elsewhere::int AS minor FROM payments",
  );
  return row?.minor ?? -1;
}

async function cardOf(id: string | undefined): Promise<string> {
  const view = await readIncident(database.db, id ?? "");
  if (view === null) throw new Error("no such incident");
  return JSON.stringify(incidentCard(view));
}

const closed = (id: string): Promise<boolean> =>
  database.db.tx((tx) =>
    closeIncident(tx, w.worker("ops"), { id, by: "U_ONC1", reason: "it came to nothing" }),
  );

describe("a refund made elsewhere that a list hides for a while", () => {
  beforeEach(async () => {
    await w.order({ ref: "ORD-1", captured: 18_000 });
    await w.control.dashboardRefund({ paymentIntent: "pi_ORD-1", amount: 5_000 });
    await sweep();
    const hidden = w.control.arm({ kind: "lying_read", lie: "hide" });
    await w.advance(25 * 3_600_000);
    await sweep();
    expect(await elsewhere()).toBe(0);
    w.control.disarm(hidden);
  });

  it("away: its card says that it does not count", async () => {
    expect(await cardOf((await incidents())[0]?.id)).toContain("does not count any more");
  });

  it("shown again, it counts again, its card says so, and it is told of once", async () => {
    w.h.shown.touched.length = 0;
    await w.advance(25 * 3_600_000);
    await sweep();
    expect(await elsewhere()).toBe(5_000);
    expect(await listed()).toEqual(["refunded_elsewhere open"]);
    const [incident] = await incidents();
    const card = await cardOf(incident?.id);
    expect(card).not.toContain("Came to nothing since");
    expect(card).toContain("shown again, and counts again");
    expect(w.h.shown.touched).toContainEqual({ kind: "incident", id: incident?.id });
    await w.intact();
  });

  it("shown again after a person closed the finding, it is told anew", async () => {
    await closed((await incidents())[0]?.id ?? "");
    await w.advance(25 * 3_600_000);
    await sweep();
    expect(await elsewhere()).toBe(5_000);
    expect(await listed()).toEqual(["refunded_elsewhere closed", "refunded_elsewhere open"]);
  });

  it("shown again beside a new one, the new one is told of", async () => {
    await w.control.dashboardRefund({ paymentIntent: "pi_ORD-1", amount: 1_000 });
    await w.advance(25 * 3_600_000);
    await sweep();
    expect(await elsewhere()).toBe(6_000);
    expect(await listed()).toEqual(["refunded_elsewhere open", "refunded_elsewhere open"]);
  });
});

it("a refund made elsewhere that failed and is made after all counts again", async () => {
  await w.order({ ref: "ORD-1", captured: 18_000 });
  await w.control.dashboardRefund({ paymentIntent: "pi_ORD-1", amount: 5_000 });
  await sweep();
  const [made] = await w.control.effects();
  const counts = [];
  for (const status of ["failed", "succeeded", "failed", "succeeded"] as const) {
    await w.control.advanceRefund(made?.id ?? "", { status });
    await w.advance(25 * 3_600_000);
    await sweep();
    counts.push(await elsewhere());
  }
  expect(counts).toEqual([0, 5_000, 0, 5_000]);
  await w.intact();
});

describe("several findings about one payment", () => {
  it("what is left is told with its time, and every open card is made anew when the sum changes", async () => {
    await w.order({ ref: "ORD-1", captured: 18_000 });
    await w.control.dashboardRefund({ paymentIntent: "pi_ORD-1", amount: 5_000 });
    await sweep();
    await w.control.dashboardRefund({ paymentIntent: "pi_ORD-1", amount: 1_000 });
    w.h.shown.touched.length = 0;
    await sweep();
    const found = await incidents();
    expect(found).toHaveLength(2);
    for (const { id } of found) {
      expect(w.h.shown.touched).toContainEqual({ kind: "incident", id });
      expect(await cardOf(id)).toMatch(/Left to refund\*.{0,80}£120\.00 GBP, as of .{5,90} UTC/u);
    }
  });
});

describe("a second refund under the id of one of ours", () => {
  const second = async (id: OperationId): Promise<string> => {
    const before = new Set((await w.control.effects()).map((effect) => effect.id));
    const response = await fetch(`${payments.sandbox.url}/v1/refunds`, {
      method: "POST",
      headers: {
        authorization: `Bearer ${SECRET_KEY}`,
        "content-type": "application/x-www-form-urlencoded",
        "idempotency-key": `another:${id}`,
      },
      body: new URLSearchParams({
        payment_intent: "pi_ORD-1",
        amount: "2000",
        "metadata[operation_id]": id,
      }),
    });
    expect(response.status).toBe(200);
    const made = (await w.control.effects()).find((effect) => !before.has(effect.id));
    return made?.id ?? "";
  };

  it.each(["before", "after", "none"] as const)(
    "is a duplicate and nothing else, with one made elsewhere: %s",
    async (other) => {
      await w.order({ ref: "ORD-1", captured: 18_000 });
      const id = await w.prepared("ORD-1", 2_000n);
      expect(await w.work(w.worker("w"), id)).toMatchObject({ status: "CONFIRMED" });
      if (other === "before") {
        await w.control.dashboardRefund({ paymentIntent: "pi_ORD-1", amount: 500 });
        await sweep();
      }
      const ref = await second(id);
      if (other === "after") await w.control.dashboardRefund({ paymentIntent: "pi_ORD-1", amount: 500 });
      await w.advance(700_000);
      await sweep();
      await sweep();
      expect(await elsewhere()).toBe(other === "none" ? 2_000 : 2_500);
      expect((await listed()).sort()).toEqual(
        other === "none" ? ["duplicate_effect open"] : ["duplicate_effect open", "refunded_elsewhere open"],
      );
      for (const { id: incident, kind } of await incidents()) {
        const card = await cardOf(incident);
        if (kind === "duplicate_effect") expect(card).toContain(ref);
        else {
          expect(card).not.toContain(ref);
          expect(card).toMatch(/Refunded elsewhere\*.{0,80}£5\.00 GBP/u);
        }
      }
      await w.intact();
    },
  );

  it("a card of before that names nothing else points to the duplicate", async () => {
    await w.order({ ref: "ORD-1", captured: 18_000 });
    const id = await w.prepared("ORD-1", 2_000n);
    await w.work(w.worker("w"), id);
    const ref = await second(id);
    await w.advance(700_000);
    await sweep();
    const [duplicate] = await incidents();
    const [payment] = await database.db.sql<{ id: string }>(undefined, "SELECT id FROM payments");
    const told = await database.db.tx((tx) =>
      openIncident(tx, w.worker("s"), {
        kind: "refunded_elsewhere",
        dedupeKey: "elsewhere:before",
        operationId: null,
        paymentId: payment?.id ?? "",
        detail: { refundedElsewhere: 2_000, before: 0, effects: [ref] },
      }),
    );
    const card = await cardOf(told.id);
    expect(card).toContain(`${ref}: ${id}, told in ${duplicate?.id}`);
    expect(card).not.toContain("outside Countersign");
    expect(card).not.toContain("Nothing: the balance");
    expect(card).toContain("a second refund under the id of one of ours");
  });
});
