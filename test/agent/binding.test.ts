/** A customer read from text: every write is held until the filer confirms, and not a moment longer for want of just that. */
import { describe, expect, test } from "vitest";
import { askedAgain } from "../../src/ledger/index.js";
import { confirmBinding, threadReply, traceRun } from "../../src/runs/index.js";
import { bindingStandingOf } from "../../src/slack/views/binding.js";
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
    const { ticket } = await world.view(runId);
    expect(await bindingStandingOf(world.db, ticket.id)).toEqual({
      ended: false,
      approved: false,
      waits: ["Refund on order ORD-10050"],
    });
    expect(await suite.committed()).toBe(0);
    if (approval === undefined) throw new Error("nothing is held");
    await world.click("U_SUP1", approval);
    await world.pump();
    const view = await world.view(runId);
    expect(view.run).toMatchObject({ state: "resolved", ending: { verifiedSuccess: true } });
    expect(view.ticket.binding).toBe("unconfirmed");
    // What the ticket's card says of it in the end.
    expect(await bindingStandingOf(world.db, view.ticket.id)).toEqual({
      ended: true,
      approved: true,
      waits: [],
    });
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
    const operations = await world.operations();
    expect(operations.map((operation) => operation.status)).toEqual(["VOIDED", "CONFIRMED"]);
    // On-call's list says that one follows the other.
    const [letGo, done] = operations;
    if (letGo === undefined || done === undefined) throw new Error("two operations were made");
    const again = [...(await askedAgain(world.db, [done, letGo]))].map(([from, to]) => [from, to.id]);
    expect(again).toEqual([[letGo.id, done.id]]);
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

describe("a ticket that names nobody the shop knows", () => {
  const reply = (threadTs: string, dedupeKey: string, text: string) => ({
    channelId: "C_TICK",
    threadTs,
    author: "U_AGENT",
    text,
    dedupeKey,
  });

  test("waits for its filer while the model asks, and goes on with the answer", async () => {
    const world = await suite.start();
    suite.stub.script(
      byTurn(
        () => uses(use("search_help_centre", { question: "refund" })),
        () => says("Which order?"),
        () => uses(look("ORD-10042")),
        () => says("Found it. It is delivered."),
      ),
    );
    const { run } = await world.file("Please refund the jacket", { channelId: "C_TICK", messageTs: "9.1" });
    await world.pump();
    expect((await world.view(run.id)).run).toMatchObject({ state: "awaiting_binding", ending: null });
    expect(await traceRun(world.db, run.id)).toMatchObject({
      waits_for: expect.stringMatching(/filer.*which customer/i),
    });
    const answer = await threadReply(world.ctx, reply("9.1", "r9", "ORD-10042 it is"));
    expect(answer).toMatchObject({ outcome: "candidates", runId: run.id });
    await world.pump();
    expect((await world.view(run.id)).run.state).toBe("resolved");
    expect((await world.view(run.id)).ticket).toMatchObject({
      binding: "unconfirmed",
      customerRef: "CUS-7",
    });
  });

  test("but an order that is not there waits too, whether the answer is a question or not", async () => {
    const world = await suite.start();
    suite.stub.script(
      byTurn(
        () => uses(look("ORD-999999")),
        () => says("I found no such order."),
      ),
    );
    const { run } = await world.file("ORD-999999 arrived torn, refund it please");
    await world.pump();
    expect((await world.view(run.id)).run.state).toBe("awaiting_binding");
  });

  test("but asks a general question has its answer and ends", async () => {
    const world = await suite.start();
    suite.stub.script(
      byTurn(
        () => uses(use("search_help_centre", { question: "returns" })),
        () => says("Thirty days."),
      ),
    );
    const { run } = await world.file("How long can a customer return something?");
    await world.pump();
    expect((await world.view(run.id)).run.state).toBe("resolved");
  });
});

test("a model that ends with a question about a known customer, having done nothing, is not finished: a person is asked, and the filer's answer begins anew", async () => {
  const world = await suite.start();
  suite.stub.script(
    byTurn(
      () => uses(look("ORD-10042")),
      () => says("Which of the two lines is torn? 「どちら」？"),
    ),
  );
  const { run, ticket } = await world.file("ORD-10042: refund what is torn", {
    channelId: "C_TICK",
    messageTs: "9.3",
  });
  await confirmBinding(world.ctx, { ticketId: ticket.id, by: "U_AGENT" });
  await world.pump();
  expect((await world.view(run.id)).run).toMatchObject({
    state: "escalated",
    ending: { code: "asked_back", plannerSuccess: false },
  });
  const answer = { channelId: "C_TICK", threadTs: "9.3", author: "U_AGENT", dedupeKey: "r93" };
  expect((await threadReply(world.ctx, { ...answer, author: "U_OTHER", text: "x" })).outcome).toBe("ignored");
  const started = await threadReply(world.ctx, { ...answer, text: "The jacket, nothing else." });
  expect(started.outcome).toBe("started");
  expect((await threadReply(world.ctx, { ...answer, text: "The jacket, nothing else." })).outcome).not.toBe(
    "started",
  );
  if (started.outcome !== "started") throw new Error("no run");
  suite.stub.script(() => says("Thank you, noted."));
  await world.pump();
  expect((await world.view(started.run.id)).run.state).toBe("resolved");
  expect(JSON.stringify(suite.stub.requests.at(-1)?.body.messages)).toContain("The jacket, nothing else.");
});
