/** A line of a list says what somebody needs who chooses by it: until when it rests, and which of several it is. */
import { beforeEach, describe, expect, it } from "vitest";
import { find } from "../../src/app/commands/ops.js";
import { theOnlyOne } from "../../src/ops/index.js";
import { opsHealth, opsList } from "../../src/slack/cards/ops-views.js";
import { localTime } from "../../src/slack/text/time.js";
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

async function rests(id: string, minutes: number): Promise<Date> {
  const [row] = await database.db.sql<{ at: Date }>(
    undefined,
    "UPDATE operations SET not_before = countersign_now() + make_interval(mins => $2) WHERE id = $1 RETURNING not_before AS at",
    [id, minutes],
  );
  if (row === undefined) throw new Error(`no operation ${id}`);
  return row.at;
}

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

/** Health tells times to the minute. */
const minute = (at: Date): string => localTime(new Date(Math.floor(at.getTime() / 60_000) * 60_000));

describe("what is cooling off", () => {
  it("stands in the list and in health with the time before which it is not sent", async () => {
    const first = await w.prepared(6_000n);
    expect(await health()).not.toContain("Cooling off");
    expect(await listed()).not.toContain("cooling off");
    const firstAt = await rests(first, 10);
    expect(await health()).toContain(`Cooling off: 1 operation, not sent before ${minute(firstAt)}.`);
    const last = await w.prepared(7_000n);
    const lastAt = await rests(last, 20);
    expect(await health()).toContain(
      `Cooling off: 2 operations, the first not sent before ${minute(firstAt)}, the last not before ${minute(lastAt)}.`,
    );
    const lines = await listed();
    for (const at of [firstAt, lastAt])
      expect(lines).toContain(`not sent before ${localTime(at)} (cooling off)`);
  });

  it("is not called so once its time has come or it has left", async () => {
    const id = await w.prepared(6_000n);
    await rests(id, 10);
    await moveClock(w.h.db, 11);
    expect(await health()).not.toContain("Cooling off");
    const sent = expectStatus(await w.sent(1_000n), "CONFIRMED");
    await rests(sent.id, 10);
    expect(await health()).not.toContain("Cooling off");
    expect((await listed()).split("cooling off")).toHaveLength(2);
  });
});

describe("the beginning of several ids, in the shell", () => {
  it("names each with its state, amount and order", async () => {
    const done = expectStatus(await w.sent(1_000n), "CONFIRMED");
    const waits = await w.prepared(6_000n);
    let common = "op_";
    while (done.id.startsWith(common) && waits.startsWith(common)) common = waits.slice(0, common.length + 1);
    const refused = await find(database.db, common.slice(0, -1)).then(
      () => "found one",
      (error: unknown) => String(error),
    );
    expect(refused).toContain(`${done.id}  CONFIRMED  refund £10.00 GBP on ORD-1, `);
    expect(refused).toContain(`${waits}  PREPARED  refund £60.00 GBP on ORD-1, `);
    expect(refused).toMatch(/UTC/u);
  });
});

describe("what is frozen", () => {
  it("stands above the list, with who did it and why", async () => {
    expect(await listed()).not.toContain("frozen");
    const frozen = await w.ops.freeze({
      userId: "U_ONC1",
      kind: "refund",
      reason: "The provider answers oddly",
    });
    expect(frozen.outcome).toBe("frozen");
    expect(await listed()).toMatch(
      /• \*refund operations\* frozen by <@U_ONC1>, .+: The provider answers oddly/iu,
    );
  });
});

describe("an order's name, for who only looks", () => {
  it("means the operation that went on where another was given up for it, and none where two are live", async () => {
    const first = await w.now(await w.prepared(6_000n));
    const later = {
      ...first,
      id: `${first.id.slice(0, -1)}${first.id.endsWith("f") ? "g" : "f"}` as typeof first.id,
    };
    const givenUp = { ...first, status: "VOIDED" as const };
    expect(theOnlyOne([later, givenUp], "ord-1")).toBe(later);
    expect(theOnlyOne([later, first], "ord-1")).toBeNull();
    expect(theOnlyOne([later, { ...givenUp, key: "another" as typeof first.key }], "ord-1")).toBeNull();
    expect(theOnlyOne([givenUp], "ord-1")).toBe(givenUp);
  });
});
