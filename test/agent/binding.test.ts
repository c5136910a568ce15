/** A customer read from text: every write is held until the filer confirms, and not a moment longer for want of just that. */
import { describe, expect, test } from "vitest";
import { confirmBinding, threadReply } from "../../src/runs/index.js";
import { byTurn, says, use, uses } from "../support/messages-stub.js";
import { look, loopSuite, refund } from "./support/suite.js";

const suite = loopSuite();
const TEXT = "ORD-10050 and ORD-10042 arrived damaged, £20.00 and £180.00 back please";

const small = () => uses(refund("ORD-10050", 2_000));
const large = () => uses(refund("ORD-10042", 18_000));
const both = () => uses(refund("ORD-10050", 2_000), refund("ORD-10042", 18_000));
const story = (writes: () => ReturnType<typeof uses>) =>
  byTurn(
    () => uses(look("ORD-10050"), look("ORD-10042")),
    writes,
    () => says("Done."),
  );

async function filed(writes: () => ReturnType<typeof uses>, confirmGraceMs = 0) {
  const world = await suite.start({ confirmGraceMs });
  suite.stub.script(story(writes));
  const { run, ticket } = await world.file(TEXT);
  expect(ticket).toMatchObject({ binding: "unconfirmed", customerRef: "CUS-7" });
  await world.pump();
  const confirm = () => confirmBinding(world.ctx, { ticketId: ticket.id, by: "U_AGENT" });
  return { world, runId: run.id, confirm };
}

describe("before anybody confirms", () => {
  test("a run waits a moment for its filer, and a confirmation in that moment asks no supervisor", async () => {
    const { world, runId, confirm } = await filed(small, 3_600_000);
    expect((await world.view(runId)).run.state).toBe("awaiting_binding");
    expect(await world.operations()).toEqual([]);
    await confirm();
    await world.pump();
    expect((await world.view(runId)).run.state).toBe("resolved");
    expect((await world.operations()).map((operation) => operation.status)).toEqual(["CONFIRMED"]);
    expect(await suite.committed()).toBe(1);
  });

  test("then every write is held, whatever its amount; approving it confirms the customer for that operation alone", async () => {
    const { world, runId } = await filed(small);
    const [approval] = await world.pending();
    expect(approval?.binding).toMatchObject({ bindingUnconfirmed: true, amountMinor: 2_000n });
    expect(await suite.committed()).toBe(0);
    if (approval === undefined) throw new Error("nothing is held");
    await world.click("U_SUP1", approval);
    await world.pump();
    const view = await world.view(runId);
    expect(view.run).toMatchObject({ state: "resolved", ending: { verifiedSuccess: true } });
    expect(view.ticket.binding).toBe("unconfirmed");
    expect(await suite.committed()).toBe(1);
  });
});

describe("a confirmation that comes while writes are held", () => {
  test("lets go what only it was missing, without a supervisor", async () => {
    const { world, runId, confirm } = await filed(small);
    const [approval] = await world.pending();
    if (approval === undefined) throw new Error("nothing is held");
    await confirm();
    await world.pump();
    const { run, calls } = await world.view(runId);
    expect(run).toMatchObject({
      state: "resolved",
      ending: { verifiedSuccess: true, constraintsKept: true },
    });
    expect(calls.at(-1)?.result).toMatch(/^Refunded £20\.00 GBP/);
    expect((await world.operations()).map((operation) => operation.status)).toEqual(["VOIDED", "CONFIRMED"]);
    expect(await world.click("U_SUP1", approval)).toMatchObject({ outcome: "ended" });
    await world.pump();
    expect(await suite.committed()).toBe(1);
  });

  test("leaves the card of what needs an approval anyway as it is", async () => {
    const { world, runId, confirm } = await filed(large);
    const [before] = await world.pending();
    await confirm();
    await world.pump();
    expect((await world.view(runId)).run.state).toBe("awaiting_approval");
    expect((await world.pending()).map(({ id, cardVersion }) => [id, cardVersion])).toEqual([
      [before?.id, before?.cardVersion],
    ]);
    if (before === undefined) throw new Error("nothing is held");
    await world.click("U_SUP1", before);
    await world.pump();
    expect((await world.view(runId)).run.state).toBe("resolved");
    expect(await suite.committed()).toBe(1);
  });

  test("in a turn with both: nothing runs before the other is decided, then each once", async () => {
    const { world, runId, confirm } = await filed(both);
    expect(await world.pending()).toHaveLength(2);
    await confirm();
    await world.pump();
    const [left, ...more] = await world.pending();
    expect(more).toEqual([]);
    expect(left?.binding.amountMinor).toBe(18_000n);
    expect(await suite.committed()).toBe(0);
    if (left === undefined) throw new Error("nothing is held");
    await world.click("U_SUP1", left);
    await world.pump();
    expect((await world.view(runId)).run).toMatchObject({
      state: "resolved",
      ending: { verifiedSuccess: true },
    });
    expect((await suite.payments.sandbox.control.effects()).map((effect) => effect.amount).sort()).toEqual([
      18_000, 2_000,
    ]);
  });
});

test("a write that is parked for want of a customer may be held when the customer is known", async () => {
  const world = await suite.start();
  suite.stub.script(
    byTurn(
      () => uses(look("ORD-10042")),
      large,
      () => says("Done."),
    ),
  );
  const { run } = await world.file("A-4471 or ORD-10042, one of them is wrong: refund £180.00", {
    channelId: "C_TICK",
    messageTs: "8.1",
  });
  await world.pump();
  expect((await world.view(run.id)).run.state).toBe("awaiting_binding");
  const answer = await threadReply(world.ctx, {
    channelId: "C_TICK",
    threadTs: "8.1",
    author: "U_AGENT",
    text: "It is tom.w@shop.example",
    dedupeKey: "r8",
  });
  expect(answer).toMatchObject({ outcome: "candidates" });
  await world.pump();
  expect((await world.view(run.id)).run.state).toBe("awaiting_approval");
  expect(await world.pending()).toHaveLength(1);
});

test("a ticket that names nobody gets its answer; a later reply that names somebody begins a new run", async () => {
  const world = await suite.start();
  suite.stub.script(
    byTurn(
      () => uses(use("search_help_centre", { question: "refund" })),
      () => says("Which order?"),
    ),
  );
  const { run } = await world.file("Please refund the jacket", { channelId: "C_TICK", messageTs: "9.1" });
  await world.pump();
  expect((await world.view(run.id)).run.state).toBe("resolved");
  const reply = {
    channelId: "C_TICK",
    threadTs: "9.1",
    author: "U_AGENT",
    text: "ORD-10042 it is",
    dedupeKey: "r9",
  };
  const answer = await threadReply(world.ctx, reply);
  expect(answer).toMatchObject({ outcome: "started" });
  expect((await threadReply(world.ctx, reply)).outcome).not.toBe("started");
  if (answer.outcome !== "started") throw new Error("no run");
  await world.pump();
  expect((await world.view(answer.run.id)).ticket).toMatchObject({
    binding: "unconfirmed",
    customerRef: "CUS-7",
  });
});
