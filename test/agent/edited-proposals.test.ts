/** A call that waits for its siblings keeps its proposal in its row: what is written there by hand is no other effect. */
import { describe, expect, test } from "vitest";
import { byTurn, says, uses } from "../support/messages-stub.js";
import { look, loopSuite, refund } from "./support/suite.js";

const suite = loopSuite();

/** A first ticket that refunds £10.00, and a second one whose small refund waits for a larger one that is held. */
async function oneWaits() {
  const world = await suite.start();
  const script = (...minors: number[]) =>
    suite.stub.script(
      byTurn(
        () => uses(look("ORD-10042")),
        () => uses(...minors.map((minor) => refund("ORD-10042", minor))),
        () => says("Done."),
      ),
    );
  script(1_000);
  await world.fileConfirmed("ORD-10042 arrived torn, £10.00 back");
  await world.pump();
  expect(await suite.committed()).toBe(1);
  script(1_100, 4_500);
  const { runId } = await world.fileConfirmed("ORD-10042: more of it is torn");
  await world.pump();
  const ready = (await world.view(runId)).calls.find((call) => call.state === "ready");
  if (ready === undefined) throw new Error("nothing waits for its sibling");
  return { world, runId, callId: ready.id };
}

/** Changes the stored proposal, lets people approve the sibling, and says what the provider made in all. */
async function released(change: Record<string, unknown>, landing: Record<string, unknown> = {}) {
  const { world, runId, callId } = await oneWaits();
  await world.db.sql(
    undefined,
    `UPDATE tool_calls SET decision_detail = jsonb_set(jsonb_set(decision_detail,
       '{proposal,intent}', decision_detail -> 'proposal' -> 'intent' || $2::jsonb),
       '{proposal,landing}', decision_detail -> 'proposal' -> 'landing' || $3::jsonb) WHERE id = $1`,
    [callId, JSON.stringify(change), JSON.stringify(landing)],
  );
  const [approval] = await world.pending();
  if (approval === undefined) throw new Error("nothing is pending");
  await world.click("U_SUP1", approval);
  await world.pump();
  const amounts = (await suite.payments.sandbox.control.effects()).map(({ amount }) => amount);
  return { world, run: await world.view(runId), amounts: amounts.sort((a, b) => a - b) };
}

test("what was stored as it was computed goes with its sibling", async () => {
  expect((await released({})).amounts).toEqual([1_000, 1_100, 4_500]);
});

describe("a stored proposal that was changed by hand", () => {
  test.each([true, false])(
    "is no second refund by saying how a subscription ends (%s)",
    async (atPeriodEnd) => {
      const { amounts, run } = await released({ amountMinor: "1000", atPeriodEnd });
      expect(amounts).toEqual([1_000, 4_500]);
      expect(run.calls.at(1)).toMatchObject({ state: "done", isError: true, operationId: null });
      expect(run.run.state).toBe("resolved");
    },
  );

  test("is no second refund as an occurrence before the first", async () => {
    const { amounts } = await released({ amountMinor: "1000", occurrence: 0 });
    expect(amounts).toEqual([1_000, 4_500]);
  });

  test("is no refund beside every payment by naming a subscription", async () => {
    const { amounts } = await released(
      { amountMinor: "1200", orderRef: null, subscriptionRef: "SUB-1", currency: "GBP" },
      { providerSubscription: "sub_demo_1" },
    );
    expect(amounts).toEqual([1_000, 4_500]);
  });

  test("is no cancellation of another name by an amount", async () => {
    const { amounts, world } = await released({ kind: "cancel_order", amountMinor: "1" });
    expect(amounts).toEqual([1_000, 4_500]);
    expect((await world.operations()).map(({ kind }) => kind)).toEqual(["refund", "refund"]);
  });
});
