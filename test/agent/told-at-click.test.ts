/**
 * What whoever clicks last is told is how the approval stands when they read it: also where the release that their click began found
 * something that no longer holds, theirs or a sibling's.
 */
import { expect, test } from "vitest";
import { releasingAtOnce } from "../../src/app/compose/at-once.js";
import { type DecideOutcome, decide } from "../../src/approvals/index.js";
import type { Approval } from "../../src/domain/approval.js";
import { decideSentence } from "../../src/slack/cards/decide-sentences.js";
import { byTurn, says, uses } from "../support/messages-stub.js";
import { look, loopSuite, refund } from "./support/suite.js";
import { POLICY } from "./support/world.js";

const suite = loopSuite();
const TWO_PEOPLE = POLICY.replace("role: supervisor, approvers: 1 }\n", "role: supervisor, approvers: 2 }\n");

async function held(policy: string, ...writes: readonly (readonly [string, number])[]) {
  const world = await suite.start({ policy });
  suite.stub.script(
    byTurn(
      () => uses(look("ORD-10042"), look("ORD-10050")),
      () => uses(...writes.map(([order, minor]) => refund(order, minor))),
      () => says("Done."),
    ),
  );
  await world.fileConfirmed("ORD-10042 and ORD-10050 arrived torn");
  await world.pump();
  const pending = await world.pending();
  const on = (order: string): Approval =>
    pending.find(({ binding }) => binding.orderRef === order) ?? expect.fail(`nothing waits on ${order}`);
  const use = releasingAtOnce(
    { approvals: world.approvals, agent: { ...world.ctx, wake: async () => {} } },
    decide,
  );
  const approve = (userId: string, { id, cardVersion }: Approval): Promise<DecideOutcome> =>
    use({ approvalId: id, cardVersion, userId, verdict: "approve" });
  const refundedElsewhere = (order: string, minor: number): Promise<unknown> =>
    world.db.sql(
      undefined,
      "UPDATE payments p SET refunded_elsewhere = $2 FROM orders o WHERE o.id = p.order_id AND o.ref = $1",
      [order, minor],
    );
  return { world, on, approve, refundedElsewhere };
}

test("two people are needed, and the second one's release finds that it no longer holds: both hear what is true", async () => {
  const { world, on, approve, refundedElsewhere } = await held(TWO_PEOPLE, ["ORD-10042", 18_000]);
  const approval = on("ORD-10042");
  await refundedElsewhere("ORD-10042", 10_000);
  const told = await Promise.all([approve("U_SUP1", approval), approve("U_SUP2", approval)]);
  const sentences = told.map(decideSentence).sort();
  expect(sentences[0]).toMatch(/^Your approval is recorded, and nothing was sent: .* no longer holds\. /);
  expect(sentences[1]).toMatch(
    /^Your approval is recorded: .* One more person is needed before anything is sent\.$/,
  );
  await world.pump();
  expect(await suite.committed()).toBe(0);
});

test("two clicks at once where one is needed and nothing holds: neither reads that it is sent", async () => {
  const { world, on, approve, refundedElsewhere } = await held(POLICY, ["ORD-10042", 18_000]);
  const approval = on("ORD-10042");
  await refundedElsewhere("ORD-10042", 10_000);
  const told = await Promise.all([approve("U_SUP1", approval), approve("U_SUP2", approval)]);
  for (const sentence of told.map(decideSentence)) {
    expect(sentence).toContain("no longer");
    expect(sentence).not.toContain("then sent");
  }
  await world.pump();
  expect(await suite.committed()).toBe(0);
});

test("what asks anew is named as that", async () => {
  const { world, on, approve, refundedElsewhere } = await held(POLICY, ["ORD-10042", 6_000]);
  await refundedElsewhere("ORD-10042", 1_000);
  const told = await approve("U_SUP1", on("ORD-10042"));
  const [fresh] = await world.pending();
  expect(fresh?.predecessorId).toBe(on("ORD-10042").id);
  expect(told).toMatchObject({ outcome: "approved", approval: { state: "VOIDED" }, successorId: fresh?.id });
  expect(decideSentence(told)).toMatch(/A newer card asks again\.$/);
});

test.each(["U_SUP1", "U_SUP2"])(
  "a sibling that must be asked about again holds back what is approved: %s, who clicks last, is told that it waits",
  async (last) => {
    const { world, on, approve, refundedElsewhere } = await held(
      POLICY,
      ["ORD-10042", 6_000],
      ["ORD-10050", 7_000],
    );
    expect(await approve("U_SUP1", on("ORD-10042"))).toMatchObject({ outcome: "approved", waitsFor: 1 });
    await refundedElsewhere("ORD-10042", 1_000);
    const told = await approve(last, on("ORD-10050"));
    expect(told).toMatchObject({ outcome: "approved", approval: { state: "APPROVED" }, waitsFor: 1 });
    expect(decideSentence(told)).toContain("It waits for one other decision of the same step");
    expect((await world.pending()).map(({ predecessorId }) => predecessorId)).toEqual([on("ORD-10042").id]);
    expect(await suite.committed()).toBe(0);
  },
);
