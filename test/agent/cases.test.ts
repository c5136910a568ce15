/** Failure cases of agent loops from public reports, with the right values as they are written there. */
import { describe, expect, test } from "vitest";
import { changeBinding, fileTicket, threadReply } from "../../src/runs/index.js";
import { byTurn, inOrder, says, text, use, uses } from "../support/messages-stub.js";
import { look, loopSuite, refund } from "./support/suite.js";

const suite = loopSuite();

describe("S-AG-2: cut at max_tokens inside the amount", () => {
  const cut = (block = use("issue_refund", { order_reference: "ORD-1001", scope: "amount" })) => ({
    play: "reply" as const,
    content: [text("Refunding now."), block],
    stop_reason: "max_tokens",
    usage: { input_tokens: 900, output_tokens: 1024 },
  });

  test("no tool runs, one larger try is made, then the run has a named end", async () => {
    const world = await suite.start();
    suite.stub.script(
      inOrder(cut(), { ...cut(), rawInputs: { 1: '{"order_reference":"ORD-1001","amount_minor":2' } }),
    );
    const { runId } = await world.fileConfirmed("ORD-1001 came broken, $20 back please");
    await world.pump();
    const { run, calls } = await world.view(runId);
    expect(run).toMatchObject({ state: "escalated", ending: { code: "cut_off" } });
    expect(calls).toEqual([]);
    expect(await world.operations()).toEqual([]);
    expect(suite.stub.requests.map((request) => request.body.max_tokens)).toEqual([1024, 4096]);
    expect(await suite.committed()).toBe(0);
  });

  test("the larger try that fits is used", async () => {
    const world = await suite.start();
    suite.stub.script(inOrder(cut(), uses(look("ORD-1001")), uses(refund("ORD-1001", 2_000)), says("Done.")));
    const { runId } = await world.fileConfirmed("ORD-1001 came broken, $20 back please");
    await world.pump();
    expect((await world.view(runId)).run.state).toBe("resolved");
    expect(suite.stub.requests.map((request) => request.body.max_tokens)).toEqual([1024, 4096, 1024, 1024]);
    expect(await suite.committed()).toBe(1);
  });

  test("an absent amount never means everything, even where the reply says that it stopped for its tools", async () => {
    const world = await suite.start();
    const without = use("issue_refund", { order_reference: "ORD-1001", scope: "amount" });
    suite.stub.script(inOrder(uses(look("ORD-1001")), uses(without), says("Sorry.")));
    const { runId } = await world.fileConfirmed("ORD-1001 came broken");
    await world.pump();
    expect((await world.view(runId)).calls[1]).toMatchObject({ decision: "invalid", isError: true });
    expect(await suite.committed()).toBe(0);
  });
});

describe("S-AG-3: one call of the turn needs an approval", () => {
  test("nothing runs before the decision; then each approved effect once, every call with its own result", async () => {
    const world = await suite.start();
    suite.stub.script(
      byTurn(
        () => uses(look("ORD-10050"), look("ORD-10042")),
        () => uses(refund("ORD-10050", 2_000), refund("ORD-10042", 18_000)),
        () => says("Done."),
      ),
    );
    const { runId } = await world.fileConfirmed("ORD-10050 and ORD-10042 arrived damaged");
    await world.pump();
    expect((await world.view(runId)).run.state).toBe("awaiting_approval");
    expect(await suite.committed()).toBe(0);
    expect((await world.view(runId)).calls.map((call) => call.state)).toEqual([
      "done",
      "done",
      "ready",
      "held",
    ]);
    const elsewhere = await suite.start({ worker: "ten-minutes-later" });
    const [approval] = await elsewhere.pending();
    if (approval === undefined) throw new Error("nothing is pending");
    await elsewhere.click("U_SUP1", approval);
    await elsewhere.pump();
    const { run, calls } = await elsewhere.view(runId);
    expect(run.state).toBe("resolved");
    expect(calls.slice(2).map((call) => call.result?.slice(0, 22))).toEqual([
      "Refunded £20.00 GBP on",
      "Refunded £180.00 GBP o",
    ]);
    expect(await suite.committed()).toBe(2);
    expect(suite.stub.requests).toHaveLength(3);
  });

  test("three held calls, decided in the order 3, 1, 2, one of them denied", async () => {
    const world = await suite.start();
    suite.stub.script(
      byTurn(
        () => uses(look("ORD-10042"), look("ORD-10050")),
        () => uses(refund("ORD-10042", 6_000), refund("ORD-10042", 7_000), refund("ORD-10050", 8_000)),
        () => says("Done."),
      ),
    );
    const { runId } = await world.fileConfirmed("ORD-10042 and ORD-10050 arrived damaged");
    await world.pump();
    const { calls: held } = await world.view(runId);
    const approvals = await world.pending();
    const of = (position: number) => {
      const found = approvals.find((one) => one.operationId === held[position + 2]?.operationId);
      if (found === undefined) throw new Error(`no approval for call ${position}`);
      return found;
    };
    await world.click("U_SUP1", of(2));
    await world.pump();
    await world.click("U_SUP1", of(0), "deny", { note: "not this one" });
    await world.pump();
    expect(await suite.committed()).toBe(0);
    await world.click("U_SUP2", of(1));
    await world.pump();
    const { run, calls } = await world.view(runId);
    expect(run.state).toBe("resolved");
    expect(calls.slice(2).map((call) => call.isError)).toEqual([true, false, false]);
    expect(calls[2]?.result).toMatch(/not this one/);
    expect((await suite.payments.sandbox.control.effects()).map((effect) => effect.amount).sort()).toEqual([
      7_000, 8_000,
    ]);
  });
});

describe("S-AG-4: empty text blocks", () => {
  test("an end without content is a named end", async () => {
    const world = await suite.start();
    suite.stub.script(() => ({ play: "reply", content: [], stop_reason: "end_turn" }));
    const { runId } = await world.fileConfirmed("ORD-1001 came broken");
    await world.pump();
    expect((await world.view(runId)).run).toMatchObject({
      state: "escalated",
      ending: { code: "empty_reply" },
    });
  });

  test("no later request holds a blank text block, and an empty end after results is an end", async () => {
    const world = await suite.start();
    suite.stub.script(
      inOrder(
        { play: "reply", content: [text(""), text("  \n"), look("ORD-1001")], stop_reason: "tool_use" },
        { play: "reply", content: [text("")], stop_reason: "end_turn" },
      ),
    );
    const { runId } = await world.fileConfirmed("ORD-1001 came broken");
    await world.pump();
    expect((await world.view(runId)).run).toMatchObject({ state: "resolved" });
    expect(JSON.stringify(suite.stub.requests.at(-1)?.body.messages)).not.toMatch(/"text":"\s*"/);
    expect(world.says("model_says")).toEqual([]);
  });

  test("a ticket of three spaces gets a question, not a run; the filer's answer starts it", async () => {
    const world = await suite.start();
    suite.stub.script(() => says("Noted."));
    const asked = await fileTicket(world.ctx, {
      source: "message",
      dedupeKey: "blank",
      channelId: "C_TICK",
      messageTs: "1.1",
      filer: "U_AGENT",
      text: " \u200b  ",
    });
    expect(asked.outcome).toBe("asked");
    expect(world.says("ask")).toHaveLength(1);
    await world.pump();
    expect(suite.stub.requests).toHaveLength(0);
    const reply = {
      channelId: "C_TICK",
      threadTs: "1.1",
      author: "U_AGENT",
      text: "ORD-1001 is broken",
      dedupeKey: "r1",
    };
    expect((await threadReply(world.ctx, { ...reply, author: "U_OTHER" })).outcome).toBe("ignored");
    const started = await threadReply(world.ctx, reply);
    expect(started.outcome).toBe("started");
    expect(await threadReply(world.ctx, reply)).toMatchObject({ outcome: "ignored", why: "seen_before" });
    await world.pump();
    expect(suite.stub.requests).toHaveLength(1);
  });
});

describe("S-AG-5: the same failing call forever", () => {
  test("ends as escalated, spend booked, and says what it was stuck on", async () => {
    const world = await suite.start();
    suite.stub.script(() => uses(look("ORD-999")));
    const { runId } = await world.fileConfirmed("ORD-1001 came broken");
    await world.pump();
    const { run } = await world.view(runId);
    expect(run).toMatchObject({ state: "escalated", ending: { code: "stuck" } });
    expect(run.ending?.detail).toMatch(
      /get_order \(ORD-999\).*There is no order ORD-999 that this ticket may touch\.$/,
    );
    expect(run.stepsUsed).toBeLessThan(12);
    expect(run.costUsedMicroUsd).toBeGreaterThan(0n);
    expect(world.says("run_ended")).toHaveLength(1);
  });

  test("alternating between two calls ends too", async () => {
    const world = await suite.start();
    suite.stub.script(({ number }) => uses(look(number % 2 === 0 ? "ORD-998" : "ORD-999")));
    const { runId } = await world.fileConfirmed("ORD-1001 came broken");
    await world.pump();
    expect((await world.view(runId)).run).toMatchObject({ state: "escalated", ending: { code: "stuck" } });
  });

  test("a refund that the provider refuses, with other words each time, made one operation and one request", async () => {
    const world = await suite.start();
    suite.payments.sandbox.control.arm({ kind: "refuse", code: "charge_disputed", times: null } as never);
    suite.stub.script(({ number }) =>
      number === 1 ? uses(look("ORD-1001")) : uses(refund("ORD-1001", 2_000, `reason number ${number}`)),
    );
    const { runId } = await world.fileConfirmed("ORD-1001 came broken");
    await world.pump();
    const { run } = await world.view(runId);
    expect(run).toMatchObject({ state: "escalated", ending: { code: "stuck" } });
    expect(await world.operations()).toHaveLength(1);
    expect(await suite.payments.sandbox.control.requests({ method: "POST" })).toHaveLength(1);
  });

  test("ever new failing calls end with the budget", async () => {
    const world = await suite.start();
    suite.stub.script(({ number }) => uses(look(`ORD-9${number}`)));
    const { runId } = await world.fileConfirmed("ORD-1001 came broken");
    await world.pump();
    const { run } = await world.view(runId);
    expect(run).toMatchObject({ state: "budget_exhausted", ending: { code: "steps" }, stepsUsed: 12 });
    expect(run.ending?.detail).toMatch(
      /All 12 model calls.*Nothing was changed\. Last answered with: There is no order ORD-912/,
    );
    expect(suite.stub.requests).toHaveLength(12);
  });
});

describe("S-AG-6: a ticket that names several people", () => {
  test("binds nobody, reads only what it names, parks a write, and after the choice refuses the other's order", async () => {
    const world = await suite.start();
    suite.stub.script(
      byTurn(
        () => uses(look("A-4471"), look("B-9001"), look("ORD-2001")),
        () =>
          uses(
            use("cancel_order", { order_reference: "A-4471", reason: "wrong" }),
            use("cancel_order", { order_reference: "B-9001", reason: "wrong" }),
          ),
        () => says("Done."),
      ),
    );
    const { run, ticket } = await world.file("A-4471 and B-9001 both wrong, cancel both");
    expect(ticket).toMatchObject({ binding: "none", customerId: null });
    expect(ticket.candidates.map((one) => one.customerRef).sort()).toEqual(["CUS-1", "CUS-2"]);
    await world.pump();
    const parked = await world.view(run.id);
    expect(parked.run.state).toBe("awaiting_binding");
    expect(parked.calls.map((call) => call.isError)).toEqual([false, false, true, null, null]);
    expect(await world.operations()).toEqual([]);
    expect(world.touched).toContainEqual({ kind: "binding", id: ticket.id });

    expect(
      await changeBinding(world.ctx, { ticketId: ticket.id, by: "U_OTHER", customerRef: "CUS-1" }),
    ).toMatchObject({
      code: "not_filer",
    });
    expect(
      (await changeBinding(world.ctx, { ticketId: ticket.id, by: "U_AGENT", customerRef: "CUS-1" })).outcome,
    ).toBe("bound");
    await world.pump();
    const { calls, run: ended } = await world.view(run.id);
    expect(ended.state).toBe("resolved");
    expect(calls[3]?.result).toMatch(/Order A-4471 is cancelled/);
    expect(calls[4]).toMatchObject({ decision: "refused", isError: true, operationId: null });
    expect(calls[4]?.result).toMatch(/There is no order B-9001 that this ticket may touch/);
  });

  test("an address that two customers share binds nobody; a model that only asks waits for the answer and goes on with it", async () => {
    const world = await suite.start();
    suite.stub.script(
      byTurn(
        () => uses(use("find_customer", { query: "pat@shop.example" })),
        () => says("Which Pat is meant?"),
        () => says("Thank you."),
      ),
    );
    const { run, ticket } = await world.file("refund pat@shop.example");
    await world.pump();
    expect((await world.view(run.id)).run.state).toBe("awaiting_binding");
    expect(suite.stub.requests).toHaveLength(2);
    expect(JSON.stringify(suite.stub.requests[1]?.body.messages)).toMatch(/p…@shop\.example/);
    await changeBinding(world.ctx, { ticketId: ticket.id, by: "U_AGENT", customerRef: "CUS-8" });
    await world.pump();
    expect((await world.view(run.id)).run.state).toBe("resolved");
    expect(JSON.stringify(suite.stub.requests[2]?.body.messages.at(-1))).toMatch(
      /confirmed.*CUS-8 \(Pat Riley\)/,
    );
  });
});

describe("S-AP-4: what runs is what was approved", () => {
  test("a call that grows after the approval is another operation; another customer's order is refused", async () => {
    const world = await suite.start();
    suite.stub.script(
      byTurn(
        () => uses(look("ORD-BIG")),
        () => uses(refund("ORD-BIG", 18_000)),
        () => uses(refund("ORD-BIG", 180_000), refund("ORD-10042", 18_000)),
        () => says("Done."),
      ),
    );
    const { runId } = await world.fileConfirmed("ORD-BIG arrived torn, £180.00 back please");
    await world.pump();
    const [first] = await world.pending();
    if (first === undefined) throw new Error("nothing is pending");
    await world.click("U_SUP1", first);
    await world.pump();
    expect((await suite.payments.sandbox.control.effects()).map((effect) => effect.amount)).toEqual([18_000]);
    const [second, ...more] = await world.pending();
    expect(more).toEqual([]);
    expect(second).toMatchObject({
      role: "finance",
      binding: { amountMinor: 180_000n, orderRef: "ORD-BIG" },
    });
    const { calls, run } = await world.view(runId);
    expect(run.state).toBe("awaiting_approval");
    expect(calls.at(-1)).toMatchObject({ decision: "refused", operationId: null });
    expect(calls.at(-1)?.result).toMatch(/There is no order ORD-10042/);
    expect(new Set((await world.operations()).map((operation) => operation.fingerprint)).size).toBe(2);
  });
});
