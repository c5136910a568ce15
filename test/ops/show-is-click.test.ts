/** What `/ops show` offers is what a form then takes, with as many people: whatever the provider shows, and while it cannot be asked. */
import { beforeEach, describe, expect, it } from "vitest";
import type { OperationId } from "../../src/domain/ids.js";
import type { Operation } from "../../src/domain/operation.js";
import { freeze, getResolution, thaw } from "../../src/ledger/index.js";
import type { ResolveVerb } from "../../src/ops/index.js";
import { reconcileOne } from "../../src/reconcile/index.js";
import { moveClock } from "../approvals/steps.js";
import { SECRET_KEY, withPaymentsSandbox } from "../payments/support.js";
import { withDatabase } from "../support/database.js";
import { expectStatus, type OpsWorld, withOpsWorld } from "./ops-world.js";

const database = withDatabase();
const payments = withPaymentsSandbox();
const build = withOpsWorld(payments);
const AMOUNT = 18_000;
let w: OpsWorld;

beforeEach(async () => {
  w = await build(database.db);
});

/** Sent, nothing of it done, and with a person. */
async function parked(): Promise<Operation> {
  payments.sandbox.control.arm({ kind: "drop_before_commit" });
  return expectStatus(await w.quarantined(), "QUARANTINED");
}

async function refundUnder({ id }: Operation, amount = AMOUNT): Promise<string> {
  const answer = await fetch(`${payments.sandbox.url}/v1/refunds`, {
    method: "POST",
    headers: { authorization: `Bearer ${SECRET_KEY}`, "content-type": "application/x-www-form-urlencoded" },
    body: new URLSearchParams({
      payment_intent: "pi_1",
      amount: String(amount),
      "metadata[operation_id]": id,
    }),
  });
  expect(answer.status).toBe(200);
  return ((await answer.json()) as { id: string }).id;
}

async function byHand(amount = AMOUNT): Promise<string> {
  return (await payments.sandbox.control.dashboardRefund({ paymentIntent: "pi_1", amount })).id;
}

async function advanced(ref: string, status: "pending" | "failed"): Promise<string> {
  await payments.sandbox.control.advanceRefund(ref, { status });
  return ref;
}

/** A reconciler has seen what is shown, and parked it by that. */
async function seen(id: OperationId): Promise<void> {
  for (let look = 1; look <= 3; look += 1) {
    await moveClock(database.db, 61 * (5 + look));
    await reconcileOne(w.reconcile, id, "evidence");
    if ((await w.now(id)).status === "QUARANTINED") return;
  }
  throw new Error("it was not parked again");
}

const away = (): string => payments.sandbox.control.arm({ kind: "read_down", how: "500" });

/** What is made of a parked operation; the reference that a person then has at hand. */
type Make = (operation: Operation) => Promise<string>;
const CASES: Readonly<Record<string, Make>> = {
  "nothing is shown": async () => "note",
  "its own is shown": (operation) => refundUnder(operation),
  "its own of another amount": (operation) => refundUnder(operation, AMOUNT - 1),
  "its own is pending": async (operation) => advanced(await refundUnder(operation), "pending"),
  "its own failed": async (operation) => advanced(await refundUnder(operation), "failed"),
  "two of its own": async (operation) => {
    await refundUnder(operation);
    return refundUnder(operation);
  },
  "a stranger of its amount": () => byHand(),
  "a stranger of another amount beside which it does not fit": () => byHand(90_000),
  "its key is over": async () => {
    await moveClock(database.db, 60 * 25);
    return "note";
  },
  "its kind is frozen": async () => {
    await freeze(w.dispatch, { kind: "refund", by: "U_ONC1", reason: "odd refunds" });
    return "note";
  },
};
const PARKED_BY: Readonly<Record<string, Make>> = {
  nothing: async () => "note",
  "its own of another amount": (operation) => refundUnder(operation, AMOUNT - 1),
  "its own that is pending": async (operation) => advanced(await refundUnder(operation), "pending"),
  "two of its own": async (operation) => {
    await refundUnder(operation);
    return refundUnder(operation);
  },
  "a stranger of its amount": () => byHand(),
};

async function expectAlike(operation: Operation, verb: ResolveVerb, ref: string): Promise<void> {
  const view = await w.ops.show({ userId: "U_ONC1", ref: operation.id });
  if (view.outcome !== "operation") throw new Error(view.outcome);
  const said = view.safe.find((each) => each.verb === verb);
  const before = await payments.sandbox.control.counts();
  const click = await w.ops.resolve({
    ref: operation.id,
    verb,
    userId: "U_ONC1",
    reason: "r",
    evidenceRef: ref,
  });
  const people = click.outcome === "resolved" ? 1 : click.outcome === "needs_second" ? 2 : null;
  expect({ people }, JSON.stringify(click.outcome)).toEqual({
    people: said?.possible === true ? said.people : null,
  });
  expect((await payments.sandbox.control.counts()).committed).toBe(before.committed);
}

const VERBS = ["confirm", "reject", "retry"] as const;
describe.each(Object.keys(CASES))("%s", (name) => {
  it.each(VERBS)("%s", async (verb) => {
    const operation = await parked();
    const ref = await CASES[name]?.(operation);
    await expectAlike(operation, verb, ref ?? "");
  });
});

describe.each(Object.keys(PARKED_BY))("the provider is away, and it was parked by %s", (name) => {
  it.each(VERBS)("%s", async (verb) => {
    const operation = await parked();
    const ref = await PARKED_BY[name]?.(operation);
    if (name !== "nothing") await seen(operation.id);
    away();
    await expectAlike(operation, verb, ref ?? "");
  });
});

describe("the second person's answer", () => {
  const asked = async (operation: Operation): Promise<string> => {
    const first = await w.ops.resolve({
      ref: operation.id,
      verb: "retry",
      userId: "U_ONC1",
      reason: "r",
      evidenceRef: "note",
    });
    if (first.outcome !== "needs_second") throw new Error(first.outcome);
    return first.resolution.id;
  };
  const agreed = (resolutionId: string) => w.ops.second({ resolutionId, userId: "U_ONC2", verdict: "agree" });

  it("waits for the provider where what it showed last forbids it", async () => {
    const operation = await parked();
    const stranger = await byHand();
    await seen(operation.id);
    await advanced(stranger, "failed");
    const id = await asked(operation);
    const down = away();
    expect(await agreed(id)).toMatchObject({
      outcome: "not_safe",
      sentence: expect.stringContaining(stranger),
    });
    expect(await getResolution(database.db, id)).toMatchObject({ state: "proposed" });
    payments.sandbox.control.disarm(down);
    expect(await agreed(id)).toMatchObject({ outcome: "resolved" });
  });

  it("waits for the thaw", async () => {
    const id = await asked(await parked());
    await freeze(w.dispatch, { kind: "all", by: "U_ONC1", reason: "odd refunds" });
    expect(await agreed(id)).toMatchObject({
      outcome: "not_safe",
      sentence: expect.stringContaining("frozen"),
    });
    await thaw(w.dispatch, { kind: "all", by: "U_ONC2" });
    expect(await agreed(id)).toMatchObject({ outcome: "resolved" });
  });
});
