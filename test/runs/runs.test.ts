/** Tickets and runs as rows: one origin is one ticket, one ticket one run, one driver at a time, spend bounded across workers. */
import { beforeEach, describe, expect, test } from "vitest";
import { buildConversation } from "../../src/agent/history.js";
import { identify } from "../../src/app/compose/shop-reads.js";
import { systemClock, systemIds } from "../../src/app/system.js";
import { setClockOffset } from "../../src/db/clock.js";
import type { OperationId, RunId } from "../../src/domain/ids.js";
import type { Db, Tx } from "../../src/domain/ports/database.js";
import type { CardSubject, Notices, ThreadMessage } from "../../src/domain/ports/notices.js";
import {
  changeBinding,
  confirmBinding,
  endRun,
  failReservation,
  fileTicket,
  finishCall,
  getRun,
  giveBack,
  LeaseLost,
  leaseRun,
  listRuns,
  moveTurn,
  type NewTurn,
  type RunLease,
  type RunsCtx,
  recordTurn,
  renewLease,
  requestCancel,
  reserveCall,
  runsOfFiler,
  setTicketThread,
  spentToday,
  startRun,
  threadReply,
  ticketOfThread,
  viewRun,
  wakeRun,
  wakeWaitingRuns,
} from "../../src/runs/index.js";
import { demoShop, importShop } from "../../src/shop/index.js";
import { withDatabase } from "../support/database.js";

const database = withDatabase();
let posts: ThreadMessage[];
let touched: CardSubject[];
let ctx: RunsCtx;

function contextOn(db: Db): RunsCtx {
  const notices: Notices<Tx> = {
    touch: async (tx, subject) => tx.afterCommit(() => void touched.push(subject)),
    follow: async () => {},
    repost: async () => {},
    switchTurned: async () => {},
    thread: async (tx, { message }) => tx.afterCommit(() => void posts.push(message)),
    ops: async () => {},
    approvers: async () => {},
  };
  return {
    db,
    ids: systemIds,
    notices,
    wake: async () => {},
    identify,
    newRuns: {
      planner: "scripted",
      model: null,
      budgets: { maxSteps: 3, maxCostMicroUsd: null, deadlineMs: 60_000 },
    },
  };
}

beforeEach(async () => {
  posts = [];
  touched = [];
  ctx = contextOn(database.db);
  await importShop(
    { db: database.db, ids: systemIds, onBelowReserved: async () => {} },
    { content: demoShop({ today: systemClock.now() }) },
  );
});

let count = 0;
async function filed(
  text = "ORD-1001 came broken",
  asking: { filer?: string; filers?: readonly string[] } = {},
): Promise<{ runId: RunId; ticketId: `tkt_${string}` }> {
  count += 1;
  const answer = await fileTicket(ctx, {
    source: "message",
    dedupeKey: `k${count}`,
    channelId: "C1",
    messageTs: `1.${count}`,
    filer: "U_AGENT",
    text,
    ...asking,
  });
  if (answer.outcome !== "filed" || answer.run === null) throw new Error(answer.outcome);
  return { runId: answer.run.id, ticketId: answer.ticket.id };
}

async function leased(runId: RunId, holder = "w1", leaseMs = 30_000): Promise<RunLease> {
  const lease = await leaseRun(database.db, { runId, holder, leaseMs });
  if (lease === null) throw new Error("not leased");
  return lease;
}

const NO_COST = { estimateMicroUsd: 0n, dailyMaxMicroUsd: null, turnSeq: 1, noteIds: [] };
const turn = (more: Partial<NewTurn> = {}): NewTurn => ({
  seq: 1,
  state: "recorded",
  content: [{ type: "tool_use", id: "toolu_1", name: "get_order", input: {} }],
  stopReason: "tool_use",
  stopDetails: null,
  model: "m",
  usage: {},
  inputTokens: 10,
  outputTokens: 5,
  costMicroUsd: 70n,
  requestHash: "h",
  calls: [{ toolUseId: "toolu_1", name: "get_order", input: {} }],
  ...more,
});

describe("a long text", () => {
  const wall = (length: number) => "All my love. ".repeat(4_000).slice(0, length);

  test("is read alike by whoever finds the customer and by the planner, up to what a Slack message holds", async () => {
    const text = `${wall(39_900)}\nRefund £20.00 on ORD-10042`;
    const { runId } = await filed(text);
    const view = await viewRun(database.db, runId);
    expect(view?.ticket).toMatchObject({ customerRef: "CUS-7", binding: "unconfirmed", text });
    if (view === null) throw new Error("no run");
    const [told] = buildConversation(view).messages;
    expect(told?.content[0]?.["text"]).toContain("Refund £20.00 on ORD-10042");
    expect(posts).toEqual([]);
  });

  test("beyond that is cut for both, and the thread says so; so it is with a reply", async () => {
    const { ticketId, runId } = await filed(`${wall(40_000)}\nRefund £20.00 on ORD-10042`);
    const view = await viewRun(database.db, runId);
    expect(view?.ticket).toMatchObject({ customerRef: null, binding: "none" });
    expect(view?.ticket.text).toHaveLength(40_000);
    expect(posts.map(leftOut)).toEqual(["its last 27 were not read"]);
    const reply = {
      channelId: "C1",
      threadTs: view?.ticket.threadTs ?? "",
      author: "U_AGENT",
      dedupeKey: `r${ticketId}`,
    };
    const long = await threadReply(ctx, { ...reply, text: `ORD-10042 ${wall(40_000)}` });
    expect(long.outcome).toBe("candidates");
    expect(posts.map(leftOut)).toEqual(["its last 27 were not read", "its last 10 were not read"]);
    expect((await viewRun(database.db, runId))?.ticket.customerRef).toBe("CUS-7");
  });

  const leftOut = (post: ThreadMessage) =>
    post.type === "sentence" ? /its last \d+ were not read/.exec(post.text)?.[0] : post.type;
});

describe("filing", () => {
  test("the same message delivered twenty times at once is one ticket with one run", async () => {
    const filing = {
      source: "message" as const,
      dedupeKey: "same",
      channelId: "C1",
      messageTs: "9.9",
      filer: "U1",
      text: "ORD-1001",
    };
    const answers = await Promise.all(Array.from({ length: 20 }, () => fileTicket(ctx, filing)));
    expect(answers.filter((answer) => answer.outcome === "filed")).toHaveLength(1);
    expect(answers.filter((answer) => answer.outcome === "duplicate")).toHaveLength(19);
    expect(new Set(answers.map((answer) => answer.ticket.id)).size).toBe(1);
    expect((await listRuns(database.db, {})).runs).toHaveLength(1);
  });

  test("a shortcut on a message that is a ticket makes whoever used it a filer, and nothing else", async () => {
    await fileTicket(ctx, {
      source: "message",
      dedupeKey: "m",
      channelId: "C1",
      messageTs: "2.2",
      filer: "U1",
      text: "ORD-1001",
    });
    const again = await fileTicket(ctx, {
      source: "shortcut",
      dedupeKey: "s",
      channelId: "C1",
      messageTs: "2.2",
      filer: "U_SUP1",
      filers: ["U1"],
      text: "ORD-1001",
    });
    expect(again).toMatchObject({ outcome: "duplicate", ticket: { filer: "U1", filers: ["U1", "U_SUP1"] } });
  });

  test.each([
    ["ORD-1001 came broken", "unconfirmed", "CUS-3"],
    ["it is for alice@shop.example, order A-4471", "unconfirmed", "CUS-1"],
    ["alice@shop.example, order B-9001", "none", null],
    ["refund pat@shop.example", "none", null],
    ["ORD-99999 is broken", "none", null],
    ["my jacket is broken", "none", null],
  ])("%s: bound %s", async (text, binding, customer) => {
    const { ticketId } = await filed(text);
    const [row] = await database.db.sql<{ binding: string; ref: string | null }>(
      undefined,
      "SELECT t.binding, c.ref FROM tickets t LEFT JOIN customers c ON c.id = t.customer_id WHERE t.id = $1",
      [ticketId],
    );
    expect(row).toEqual({ binding, ref: customer });
    expect(touched).toContainEqual({ kind: "binding", id: ticketId });
  });

  test("a wall of text and of emoji is a ticket like any other", async () => {
    const { runId } = await filed(`${"😀👩‍👩‍👧‍👦\n".repeat(300)}${"x".repeat(40_000)}`);
    expect((await getRun(database.db, runId))?.state).toBe("queued");
  });

  test("a form's ticket finds its thread when its message has been posted, once", async () => {
    const answer = await fileTicket(ctx, {
      source: "form",
      dedupeKey: "V1",
      filer: "U1",
      text: "ORD-1001",
      channelId: "C1",
    });
    const thread = { ticketId: answer.ticket.id, channelId: "C1", messageTs: "5.5" };
    await database.db.tx((tx) => setTicketThread(tx, thread));
    await database.db.tx((tx) => setTicketThread(tx, { ...thread, messageTs: "6.6" }));
    expect((await ticketOfThread(database.db, { channelId: "C1", threadTs: "5.5" }))?.id).toBe(
      answer.ticket.id,
    );
    expect(await ticketOfThread(database.db, { channelId: "C1", threadTs: "6.6" })).toBeNull();
  });
});

describe("one run for a ticket", () => {
  test("is kept by the database, however many start at once", async () => {
    const { ticketId, runId } = await filed();
    const started = await Promise.all(Array.from({ length: 8 }, () => startRun(ctx, { ticket: ticketId })));
    expect(started.every((answer) => answer.outcome === "active" && answer.run.id === runId)).toBe(true);
  });
});

describe("a lease", () => {
  test("is taken by one of many, and again only when it has run out", async () => {
    const { runId } = await filed();
    const takers = await Promise.all(
      Array.from({ length: 8 }, (_, index) =>
        leaseRun(database.db, { runId, holder: `w${index}`, leaseMs: 60_000 }),
      ),
    );
    expect(takers.filter((lease) => lease !== null)).toHaveLength(1);
    expect(await leaseRun(database.db, { runId, holder: "late", leaseMs: 60_000 })).toBeNull();
    await setClockOffset(database.db, 61_000);
    const next = await leased(runId, "later");
    expect(next.token).toBe((takers.find((lease) => lease !== null)?.token ?? 0n) + 1n);
  });

  test("that was lost writes nothing any more: no turn, no result, no state, no end", async () => {
    const { runId } = await filed();
    const { db } = database;
    const old = await leased(runId, "paused", 1_000);
    await reserveCall(db, old, NO_COST);
    await db.tx((tx) => recordTurn(tx, ctx, old, turn()));
    const [written] = (await viewRun(db, runId))?.turns ?? [];
    if (written === undefined) throw new Error("no turn");
    await setClockOffset(db, 2_000);
    const fresh = await leased(runId, "rival");
    expect(await renewLease(db, old, 1_000)).toBe("lost");
    await expect(reserveCall(db, old, NO_COST)).rejects.toThrow(LeaseLost);
    await expect(db.tx((tx) => recordTurn(tx, ctx, old, turn({ seq: 2 })))).rejects.toThrow(LeaseLost);
    await expect(db.tx((tx) => moveTurn(tx, old, { turnId: written.id, to: "released" }))).rejects.toThrow(
      LeaseLost,
    );
    await expect(giveBack(db, old, { to: "queued", dueInMs: 0, clock: "stops" })).rejects.toThrow(LeaseLost);
    await expect(
      db.tx((tx) => endRun(tx, old, { state: "resolved", code: "x", detail: "", plannerSuccess: true })),
    ).rejects.toThrow(LeaseLost);
    expect(await renewLease(db, fresh, 1_000)).toBe("held");
    expect((await viewRun(db, runId))?.turns).toHaveLength(1);
  });

  test("of a run that is ended by force is lost with it", async () => {
    const { runId, ticketId } = await filed("ORD-10042");
    const lease = await leased(runId);
    await reserveCall(database.db, lease, NO_COST);
    await changeBinding(ctx, { ticketId, by: "U_AGENT", customerRef: "CUS-1" });
    expect((await getRun(database.db, runId))?.state).toBe("cancelled");
    await expect(database.db.tx((tx) => recordTurn(tx, ctx, lease, turn()))).rejects.toThrow(LeaseLost);
  });

  test("is not given back over news that came meanwhile", async () => {
    const { runId } = await filed();
    const lease = await leased(runId);
    await database.db.tx(async (tx) => wakeRun(tx, runId));
    expect(await giveBack(database.db, lease, { to: "waiting", dueInMs: 3_600_000, clock: "stops" })).toEqual(
      { dueNow: true },
    );
    const again = await leased(runId);
    expect(await giveBack(database.db, again, { to: "waiting", dueInMs: 3_600_000, clock: "stops" })).toEqual(
      { dueNow: false },
    );
  });

  test("an illegal step is a defect and no lost lease", async () => {
    const { runId } = await filed();
    const lease = await leased(runId);
    await giveBack(database.db, lease, { to: "awaiting_binding", dueInMs: 0, clock: "stops" });
    const next = await leased(runId);
    await expect(
      giveBack(database.db, next, { to: "awaiting_approval", dueInMs: 0, clock: "stops" }),
    ).rejects.toThrow(/awaiting_binding to awaiting_approval is no step/);
  });

  test("a backoff is not shortened by news, and its time counts; a person's time does not", async () => {
    const { runId } = await filed();
    const lease = await leased(runId);
    await giveBack(database.db, lease, { to: "queued", dueInMs: 50_000, clock: "runs" });
    await database.db.tx(async (tx) => wakeRun(tx, runId));
    expect(await leaseRun(database.db, { runId, holder: "w", leaseMs: 1_000 })).toBeNull();
    await setClockOffset(database.db, 50_500);
    const next = await leased(runId);
    expect((await getRun(database.db, runId))?.activeMs).toBeGreaterThanOrEqual(50_000);
    await giveBack(database.db, next, { to: "awaiting_approval", dueInMs: 0, clock: "stops" });
    await setClockOffset(database.db, 9_000_000);
    expect((await getRun(database.db, runId))?.activeMs).toBeLessThan(60_000);
  });
});

describe("spend", () => {
  test("of a call that died with its worker counts as spent, once", async () => {
    const { runId } = await filed();
    const lease = await leased(runId, "dies", 1_000);
    await reserveCall(database.db, lease, { ...NO_COST, estimateMicroUsd: 900n });
    await setClockOffset(database.db, 2_000);
    const next = await leased(runId, "next", 1_000);
    expect((await getRun(database.db, runId))?.costUsedMicroUsd).toBe(900n);
    expect(await spentToday(database.db)).toEqual({ spentMicroUsd: 900n, reservedMicroUsd: 0n });
    await reserveCall(database.db, next, { ...NO_COST, estimateMicroUsd: 100n });
    await database.db.tx((tx) => recordTurn(tx, ctx, next, turn({ costMicroUsd: 60n })));
    expect(await spentToday(database.db)).toEqual({ spentMicroUsd: 960n, reservedMicroUsd: 0n });
    expect((await getRun(database.db, runId))?.costUsedMicroUsd).toBe(960n);
  });

  test("of the day is never passed by fifty runs at once with room for three", async () => {
    const runs = await Promise.all(Array.from({ length: 50 }, () => filed()));
    const leases = await Promise.all(runs.map(({ runId }) => leased(runId)));
    const call = { ...NO_COST, estimateMicroUsd: 100n, dailyMaxMicroUsd: 350n };
    const answers = await Promise.all(leases.map((lease) => reserveCall(database.db, lease, call)));
    expect(answers.filter((answer) => answer.ok)).toHaveLength(3);
    expect(answers.filter((answer) => !answer.ok && answer.budget === "daily")).toHaveLength(47);
    expect(await spentToday(database.db)).toEqual({ spentMicroUsd: 0n, reservedMicroUsd: 300n });
    const refused = runs[answers.findIndex((answer) => !answer.ok)];
    expect((await getRun(database.db, refused?.runId ?? "run_"))?.stepsUsed).toBe(0);
  });

  test("of a call that was refused before it ran is given back with its step", async () => {
    const { runId } = await filed();
    const lease = await leased(runId);
    await reserveCall(database.db, lease, { ...NO_COST, estimateMicroUsd: 500n });
    expect(await database.db.tx((tx) => failReservation(tx, lease, { billed: false }))).toEqual({
      failures: 1,
    });
    expect(await getRun(database.db, runId)).toMatchObject({
      stepsUsed: 0,
      costUsedMicroUsd: 0n,
      modelFailures: 1,
    });
    expect(await spentToday(database.db)).toEqual({ spentMicroUsd: 0n, reservedMicroUsd: 0n });
  });

  test("steps end at their limit", async () => {
    const { runId } = await filed();
    const lease = await leased(runId);
    for (let step = 0; step < 3; step += 1)
      expect((await reserveCall(database.db, lease, NO_COST)).ok).toBe(true);
    expect(await reserveCall(database.db, lease, NO_COST)).toEqual({
      ok: false,
      budget: "steps",
      used: 3n,
      limit: 3n,
    });
  });
});

describe("results", () => {
  test("a call has one, and keeps it", async () => {
    const { runId } = await filed();
    const lease = await leased(runId);
    await reserveCall(database.db, lease, NO_COST);
    await database.db.tx((tx) => recordTurn(tx, ctx, lease, turn()));
    const call = (await viewRun(database.db, runId))?.calls[0];
    if (call === undefined) throw new Error("no call");
    const finish = (result: string) =>
      database.db.tx((tx) => finishCall(tx, { callId: call.id, result, resultJson: null, isError: false }));
    expect(await finish("first")).toBe(true);
    expect(await finish("second")).toBe(false);
    expect((await viewRun(database.db, runId))?.calls[0]?.result).toBe("first");
  });

  test("an end of an operation makes exactly the runs due that still wait for it", async () => {
    const one = await filed();
    const two = await filed();
    const operationId = systemIds.next("op_") as OperationId;
    for (const { runId } of [one, two]) {
      const lease = await leased(runId);
      await reserveCall(database.db, lease, NO_COST);
      await database.db.tx((tx) => recordTurn(tx, ctx, lease, turn()));
      await giveBack(database.db, lease, { to: "waiting", dueInMs: 3_600_000, clock: "stops" });
    }
    await database.db.sql(undefined, "UPDATE tool_calls SET operation_id = $1, state = 'waiting'", [
      operationId,
    ]);
    await database.db.sql(
      undefined,
      "UPDATE tool_calls SET state = 'done', result = 'x', is_error = false WHERE run_id = $1",
      [two.runId],
    );
    expect(await database.db.tx((tx) => wakeWaitingRuns(tx, operationId))).toEqual([one.runId]);
  });
});

describe("people", () => {
  test("only filers confirm, change and stop; confirming twice changes nothing", async () => {
    const { runId, ticketId } = await filed();
    expect(await confirmBinding(ctx, { ticketId, by: "U_OTHER" })).toMatchObject({ code: "not_filer" });
    expect(await changeBinding(ctx, { ticketId, by: "U_AGENT", customerRef: "CUS-404" })).toMatchObject({
      code: "no_such_customer",
    });
    expect(await confirmBinding(ctx, { ticketId, by: "U_AGENT" })).toMatchObject({ outcome: "bound" });
    expect(await confirmBinding(ctx, { ticketId, by: "U_AGENT" })).toMatchObject({ outcome: "unchanged" });
    expect(await requestCancel(ctx, { runId, by: "U_OTHER" })).toMatchObject({ code: "not_filer" });
    expect(await requestCancel(ctx, { runId, by: "U_ONC1", asOperator: true })).toMatchObject({
      outcome: "requested",
    });
  });

  test("nothing can be confirmed where nobody was found", async () => {
    const { ticketId } = await filed("my jacket is broken");
    expect(await confirmBinding(ctx, { ticketId, by: "U_AGENT" })).toMatchObject({
      code: "nothing_to_confirm",
    });
  });
});

describe("lists", () => {
  test("go through everything once, newest first, also when something is added meanwhile", async () => {
    const runs: RunId[] = [];
    for (let index = 0; index < 7; index += 1) runs.push((await filed()).runId);
    const seen: string[] = [];
    let cursor: string | null = null;
    do {
      const page: Awaited<ReturnType<typeof listRuns>> = await listRuns(database.db, { limit: 3, cursor });
      seen.push(...page.runs.map(({ run }) => run.id));
      cursor = page.next;
      await filed();
    } while (cursor !== null);
    expect(seen).toEqual([...runs].reverse());
    await expect(listRuns(database.db, { cursor: "nonsense", limit: 1 })).rejects.toMatchObject({
      code: "bad_cursor",
    });
  });

  test("a person's own are what they filed and what they asked for with others, the newest ones first", async () => {
    const mine = await filed("torn", { filer: "U_MINE" });
    const withOthers = await filed("torn", { filer: "U_OTHER", filers: ["U_MINE"] });
    await filed("torn", { filer: "U_OTHER" });
    const newest = await filed("torn", { filer: "U_MINE", filers: ["U_OTHER"] });
    const of = async (person: string, limit = 10): Promise<string[]> =>
      (await runsOfFiler(database.db, person, limit)).map(({ run }) => run.id);
    expect(await of("U_MINE")).toEqual([newest.runId, withOthers.runId, mine.runId]);
    expect(await of("U_MINE", 2)).toEqual([newest.runId, withOthers.runId]);
    expect(await of("U_NOBODY")).toEqual([]);
  });
});
