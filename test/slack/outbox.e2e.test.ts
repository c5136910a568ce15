/** What leaves for Slack: once, in order, at Slack's pace, and in the end always right. */
import { afterEach, describe, expect, test } from "vitest";
import { systemIds } from "../../src/app/system.js";
import { armFailpoint, disarmFailpoints } from "../../src/domain/failpoints.js";
import type { TicketId } from "../../src/domain/ids.js";
import type { ThreadMessage } from "../../src/domain/ports/notices.js";
import { sendOutbox } from "../../src/slack/index.js";
import { WRITE_TIMEOUT_MS } from "../../src/slack/web.js";
import { withDatabase } from "../support/database.js";
import { barrier, waitFor } from "../support/wait.js";
import { type Held, hold, moveApproval, moveOperation } from "./support/held.js";
import { calls, readable } from "./support/see.js";
import { loadShop } from "./support/shop.js";
import { startWorld, type World, type WorldOptions } from "./support/world.js";

const database = withDatabase();
let world: World | undefined;

afterEach(async () => {
  await world?.stop();
  world = undefined;
});

async function start(options: Partial<WorldOptions> = {}): Promise<World> {
  await loadShop(database.db);
  world = await startWorld({ db: database.db, mode: "http", ...options });
  return world;
}

/** A ticket whose message stands in a channel where messages are no tickets by themselves: no run in sight. */
async function ticket(w: World): Promise<{ id: TicketId; ts: string }> {
  const posted = await w.sandbox.control.post({ as: "U_ONC1", channel: "C_OPS", text: "look at this" });
  if (!posted.ok) throw new Error(posted.message);
  const id: TicketId = systemIds.next("tkt_");
  await database.db.sql(
    undefined,
    `INSERT INTO tickets (id, source, channel_id, message_ts, thread_ts, filer, filers, text, text_hash, dedupe_key)
     VALUES ($1, 'shortcut', 'C_OPS', $2, $2, 'U_AGENT', '{U_AGENT}', 'x', 'x', $1)`,
    [id, posted.ts],
  );
  return { id, ts: posted.ts };
}

const say = (w: World, ticketId: TicketId, key: string, message: ThreadMessage): Promise<void> =>
  w.db.tx((tx) => w.notices.thread(tx, { ticketId, key, message }));
const sentence = (text: string): ThreadMessage => ({ type: "sentence", text });
const thread = (w: World, ts: string, as = "U_ONC1", channel = "C_OPS"): string[] =>
  w.sandbox.control.messages(as, channel, { threadTs: ts }).slice(1).map(readable);
const waiting = async (): Promise<number> =>
  Number(
    (
      await database.db.sql<{ n: bigint }>(
        undefined,
        "SELECT count(*) AS n FROM slack_outbox WHERE state = 'waiting'",
      )
    )[0]?.n,
  );

describe("posts in a thread", () => {
  test("leave once for each key, in the order in which they were written", async () => {
    const w = await start();
    const { id, ts } = await ticket(w);
    for (const n of [1, 2, 3, 3, 2, 1]) await say(w, id, `key${n}`, sentence(`number ${n}`));
    await waitFor(() => thread(w, ts).length === 3);
    expect(thread(w, ts)).toEqual(["number 1", "number 2", "number 3"]);
  });

  test("whose answer is lost are found by their metadata; no second copy", async () => {
    const w = await start();
    const { id, ts } = await ticket(w);
    w.sandbox.control.addApiFault({ method: "chat.postMessage", kind: "accept_then_drop", times: 2 });
    await say(w, id, "a", sentence("once"));
    await say(w, id, "b", sentence("then this"));
    await waitFor(async () => (await waiting()) === 0);
    expect(thread(w, ts)).toEqual(["once", "then this"]);
  });

  test("that never reached Slack are sent again", async () => {
    const w = await start();
    const { id, ts } = await ticket(w);
    w.sandbox.control.addApiFault({ method: "chat.postMessage", kind: "reset", times: 2 });
    await say(w, id, "a", sentence("in the end"));
    await waitFor(() => thread(w, ts).length === 1);
    expect(thread(w, ts)).toEqual(["in the end"]);
  });

  test("refused with ok: false are never taken for delivered", async () => {
    const w = await start();
    const { id, ts } = await ticket(w);
    w.sandbox.control.addApiFault({
      method: "chat.postMessage",
      kind: "error",
      error: "ratelimited",
      times: 1,
    });
    await say(w, id, "a", sentence("later"));
    // Until the refusal is written down, what is set below would be overwritten by it.
    await waitFor(
      async () =>
        (
          await database.db.sql(
            undefined,
            "SELECT 1 FROM slack_pace, slack_outbox o WHERE blocked_until > countersign_now() AND o.due_at > countersign_now()",
          )
        ).length > 0,
    );
    expect(calls(w.sandbox, "chat.postMessage")).toHaveLength(1);
    expect(await database.db.sql(undefined, "SELECT state FROM slack_outbox")).toEqual([
      { state: "waiting" },
    ]);
    // Slack named no time, so it is a long one; it is over now.
    await database.db.sql(
      undefined,
      "UPDATE slack_pace SET blocked_until = NULL, next_at = countersign_now(), urgent_at = countersign_now()",
    );
    await database.db.sql(undefined, "UPDATE slack_outbox SET due_at = countersign_now()");
    await waitFor(() => thread(w, ts).length === 1);
  });

  test("sent by two workers at once leave once", async () => {
    const w = await start({ still: true });
    const { id, ts } = await ticket(w);
    await say(w, id, "a", sentence("one"));
    const [row] = await database.db.sql<{ id: string }>(undefined, "SELECT id FROM slack_outbox");
    const ready = barrier(2);
    const send = async (): Promise<void> => {
      await ready();
      await sendOutbox(w.ctx, row?.id ?? "");
    };
    await Promise.all([send(), send()]);
    expect(thread(w, ts)).toEqual(["one"]);
  });

  test("of a worker that died between the call and the row are found by the next one", async () => {
    const w = await start({ still: true });
    const { id, ts } = await ticket(w);
    await say(w, id, "a", sentence("one"));
    await w.drain();
    await database.db.sql(
      undefined,
      "UPDATE slack_outbox SET state = 'waiting', message_ts = NULL, sent_at = NULL, attempt_at = countersign_now(), due_at = countersign_now(), lease_until = countersign_now() - interval '1 second'",
    );
    await w.drain();
    expect(thread(w, ts)).toEqual(["one"]);
    expect(await waiting()).toBe(0);
  });

  test("in one channel keep to about one a second, approvals before the backlog", async () => {
    const w = await start({ still: true, sandbox: { rateLimits: false } });
    const { id } = await ticket(w);
    for (let n = 0; n < 20; n += 1) {
      const other = await ticket(w);
      await say(w, other.id, "a", sentence(`number ${n}`));
    }
    await w.drain();
    await hold(w, { ticketId: id });
    await w.drain();
    const sent = w.sandbox.control.messages("U_ONC1", "C_OPS", { threadTs: (await tsOf(id)) ?? "" }).slice(1);
    expect(sent.map(readable).join()).toContain("£180.00 GBP");
    const due = await database.db.sql<{ s: number }>(
      undefined,
      "SELECT extract(epoch FROM due_at - countersign_now())::float8 AS s FROM slack_outbox WHERE state = 'waiting' ORDER BY due_at",
    );
    // What waits has turns of its own, about a second apart.
    const gaps = due.slice(1).map(({ s }, index) => s - (due[index]?.s ?? 0));
    expect(Math.min(...gaps)).toBeGreaterThan(0.9);
  });
});

const tsOf = async (id: TicketId): Promise<string | undefined> =>
  (
    await database.db.sql<{ thread_ts: string }>(undefined, "SELECT thread_ts FROM tickets WHERE id = $1", [
      id,
    ])
  )[0]?.thread_ts;

describe("the final state of a card", () => {
  const finalText = (w: World): string[] =>
    w.sandbox.control
      .messages("U_SUP1", "C_APPR")
      .map(readable)
      .filter((text) => /£180\.00 GBP[\s\S]*Refunded\./u.test(text));

  async function finish(w: World, held: Held): Promise<void> {
    await moveApproval(w, held, "APPROVED");
    await moveApproval(w, held, "RELEASED");
    await moveOperation(w, held, ["PREPARED", "DISPATCHED", "CONFIRMED"]);
  }

  test.each([
    ["HTTP 429", { kind: "ratelimited" as const, retryAfterSeconds: 1 }],
    ["ok: false", { kind: "error" as const, error: "internal_error" }],
    ["a reset", { kind: "reset" as const }],
    ["a lost answer", { kind: "accept_then_drop" as const }],
    ["HTTP 503", { kind: "http" as const, status: 503 }],
  ])("arrives in spite of %s on every edit for a while", async (_name, fault) => {
    const w = await start();
    const held = await hold(w);
    await waitFor(() => w.sandbox.control.messages("U_SUP1", "C_APPR").length === 1);
    w.sandbox.control.addApiFault({ method: "chat.update", times: 3, ...fault });
    await finish(w, held);
    await waitFor(() => finalText(w).length === 1, { timeoutMs: 45_000 });
    expect(w.sandbox.control.messages("U_SUP1", "C_APPR")).toHaveLength(1);
  });

  test("overtakes a live run whose edits Slack refuses for half a minute, and steps in between are merged (B10)", async () => {
    const w = await start();
    const posted = await w.sandbox.control.post({
      as: "U_AGENT",
      channel: "C_TICK",
      text: "refund ORD-10042",
    });
    await waitFor(
      async () =>
        (
          await database.db.sql(
            undefined,
            "SELECT 1 FROM slack_cards WHERE kind = 'run' AND message_ts IS NOT NULL",
          )
        ).length === 1,
    );
    const [run] = await database.db.sql<{ id: `run_${string}`; message_ts: string }>(
      undefined,
      "SELECT r.id, c.message_ts FROM runs r JOIN slack_cards c ON c.subject_id = r.id",
    );
    if (run === undefined || !posted.ok) throw new Error("no run");
    w.sandbox.control.addApiFault({
      method: "chat.update",
      kind: "ratelimited",
      retryAfterSeconds: 30,
      times: 1_000,
      channel: "C_TICK",
    });
    const held = await hold(w);
    for (let step = 1; step <= 12; step += 1) {
      await w.db.tx(async (tx) => {
        await tx.sql(undefined, "UPDATE runs SET steps_used = $2, version = version + 1 WHERE id = $1", [
          run.id,
          step,
        ]);
        await w.notices.touch(tx, { kind: "run", id: run.id });
      });
    }
    await finish(w, held);
    await waitFor(() => finalText(w).length === 1);
    const refused = calls(w.sandbox, "chat.update").filter(({ args }) => args["channel"] === "C_TICK");
    expect(refused.length).toBeLessThanOrEqual(2);
    w.sandbox.control.clearFaults();
    await database.db.sql(
      undefined,
      "UPDATE slack_pace SET blocked_until = NULL, next_at = countersign_now(), urgent_at = countersign_now()",
    );
    await database.db.sql(
      undefined,
      "UPDATE slack_cards SET due_at = countersign_now() WHERE due_at IS NOT NULL",
    );
    await waitFor(() =>
      thread(w, posted.ts, "U_AGENT", "C_TICK").some((text) => text.includes("step 12 of 12")),
    );
  });

  test("is reached by a card whose writer died with the lease", async () => {
    const w = await start({ still: true });
    const held = await hold(w);
    await w.drain();
    await finish(w, held);
    await database.db.sql(
      undefined,
      "UPDATE slack_cards SET lease_token = lease_token + 1, lease_until = countersign_now() + interval '1 hour'",
    );
    await w.drain();
    expect(finalText(w)).toEqual([]);
    await database.db.sql(
      undefined,
      "UPDATE slack_cards SET lease_until = countersign_now() - interval '1 second'",
    );
    await w.drain();
    expect(finalText(w)).toHaveLength(1);
  });
});

describe("while a write is on its way", () => {
  afterEach(disarmFailpoints);

  test("its row belongs to the writer for longer than the write can last, and nobody writes beside it", async () => {
    const left: number[] = [];
    const w = await start({ still: true });
    await hold(w);
    // The time for looking is nearly used up when the write begins.
    await database.db.sql(
      undefined,
      `CREATE FUNCTION test_nearly_over() RETURNS trigger LANGUAGE plpgsql AS $$
         BEGIN NEW.lease_until := countersign_now() + interval '2 seconds'; RETURN NEW; END $$;
       CREATE TRIGGER nearly_over BEFORE UPDATE ON slack_cards FOR EACH ROW
         WHEN (NEW.lease_token <> OLD.lease_token) EXECUTE FUNCTION test_nearly_over();
       CREATE TRIGGER nearly_over BEFORE UPDATE ON slack_outbox FOR EACH ROW
         WHEN (NEW.lease_token <> OLD.lease_token) EXECUTE FUNCTION test_nearly_over()`,
    );
    armFailpoint("slack.before_write", async () => {
      const rows = await database.db.sql<{ s: number }>(
        undefined,
        `SELECT extract(epoch FROM lease_until - countersign_now())::float8 AS s
           FROM (SELECT lease_until FROM slack_cards UNION ALL SELECT lease_until FROM slack_outbox) r WHERE lease_until IS NOT NULL`,
      );
      left.push(...rows.map(({ s }) => s));
    });
    try {
      await w.drain();
    } finally {
      await database.db.sql(
        undefined,
        "DROP TRIGGER nearly_over ON slack_cards; DROP TRIGGER nearly_over ON slack_outbox; DROP FUNCTION test_nearly_over",
      );
    }
    expect(left.length).toBeGreaterThan(0);
    expect(Math.max(...left)).toBeGreaterThan(WRITE_TIMEOUT_MS / 1_000);
  });
});

describe("a card that is posted again", () => {
  test("replaces the old one and does not pile up", async () => {
    const w = await start();
    const held = await hold(w);
    await database.db.sql(
      undefined,
      "UPDATE approvals SET state = 'APPROVED', version = version + 1 WHERE id = $1",
      [held.approvalId],
    );
    await database.db.sql(
      undefined,
      "UPDATE approvals SET state = 'RELEASED', version = version + 1 WHERE id = $1",
      [held.approvalId],
    );
    await moveOperation(w, held, ["PREPARED", "DISPATCHED", "OUTCOME_UNKNOWN", "RECONCILING", "QUARANTINED"]);
    const subject = { kind: "quarantine" as const, id: held.operationId };
    const open = () =>
      w.sandbox.control
        .messages("U_ONC1", "C_OPS")
        .filter((one) => readable(one).includes("Confirm committed"));
    for (let round = 1; round <= 3; round += 1) {
      await w.db.tx((tx) => w.notices.repost(tx, subject));
      await waitFor(
        () => w.sandbox.control.messages("U_ONC1", "C_OPS").length === round && open().length === 1,
        { what: `round ${round}` },
      );
    }
    expect(w.sandbox.control.messages("U_ONC1", "C_OPS").map((one) => one.text)).toEqual([
      "Posted again below.",
      "Posted again below.",
      expect.stringContaining("the outcome is not known"),
    ]);
    await moveOperation(w, held, ["CONFIRMED"]);
    await w.db.tx((tx) => w.notices.touch(tx, subject));
    await waitFor(() => open().length === 0);
    expect(
      readable(w.sandbox.control.messages("U_ONC1", "C_OPS").at(-1) ?? { text: "", blocks: [] }),
    ).toMatch(/£180\.00 GBP[\s\S]*Refunded\./u);
  });
});

describe("reminders", () => {
  test("ping the role, stand in the card's thread, and are quiet once it is decided", async () => {
    const w = await start({ still: true });
    const held = await hold(w);
    await w.drain();
    const remind = (number: number, escalatedTo: string | null) =>
      w.db.tx((tx) =>
        w.notices.approvers(tx, {
          approvalId: held.approvalId,
          key: `reminder:${number}`,
          message: { type: "approval_reminder", number, role: "supervisor", escalatedTo },
        }),
      );
    await remind(1, null);
    await waitFor(async () => {
      await w.drain();
      return (await waiting()) === 0;
    });
    const root = w.sandbox.control.messages("U_SUP1", "C_APPR")[0];
    const replies = w.sandbox.control.messages("U_SUP1", "C_APPR", { threadTs: root?.ts ?? "" }).slice(1);
    expect(replies.map(readable)).toEqual([
      expect.stringMatching(/^<!subteam\^S_SUP> Reminder: waits for supervisor\. Refund of £180\.00 GBP/),
    ]);
    expect(replies[0]?.mentionsMe).toBe(true);
    await moveApproval(w, held, "DENIED");
    await remind(2, "finance");
    await waitFor(async () => {
      await w.drain();
      return (await waiting()) === 0;
    });
    expect(w.sandbox.control.messages("U_SUP1", "C_APPR", { threadTs: root?.ts ?? "" })).toHaveLength(2);
  });
});

describe("what asks on-call to look after an approval", () => {
  test("is posted anew each time, and says how it ended once it has", async () => {
    const w = await start();
    const held = await hold(w);
    const posts = () => w.sandbox.control.messages("U_ONC1", "C_OPS").map(readable);
    const subject = { kind: "escalation" as const, id: held.approvalId };
    for (let round = 1; round <= 2; round += 1) {
      await w.db.tx((tx) => w.notices.repost(tx, subject));
      await waitFor(() => posts().length === round && posts().at(-1)?.includes("Still undecided"));
    }
    await waitFor(() => posts()[0]?.includes("Posted again below."));
    expect(posts()[1]).toMatch(
      /Still undecided: Refund of £180\.00 GBP on order ORD-10042 for Tom Whitfield \(CUS-7\)\. It waits for one person in the role supervisor, until .+\. Please find somebody who decides\.$/u,
    );
    await database.db.sql(
      undefined,
      "UPDATE approvals SET state = 'EXPIRED', decided_at = countersign_now(), version = version + 1 WHERE id = $1",
      [held.approvalId],
    );
    await w.db.tx((tx) => w.notices.touch(tx, { kind: "approval", id: held.approvalId }));
    await waitFor(() => !posts().some((text) => text.includes("Still undecided")));
    expect(posts()[1]).toMatch(
      /: nobody decided before .+; nothing was sent\. Nothing is left to do here\._?$/u,
    );
    expect(posts()).toHaveLength(2);
  });

  test("is not posted any more once it is decided", async () => {
    const w = await start({ still: true });
    const held = await hold(w);
    await w.db.tx((tx) => w.notices.repost(tx, { kind: "escalation", id: held.approvalId }));
    await moveApproval(w, held, "DENIED");
    await w.drain();
    expect(w.sandbox.control.messages("U_ONC1", "C_OPS")).toEqual([]);
    expect(
      await database.db.sql(undefined, "SELECT due_at FROM slack_cards WHERE kind = 'escalation'"),
    ).toEqual([{ due_at: null }]);
  });
});
