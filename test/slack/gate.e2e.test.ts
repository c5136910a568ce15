/** What is let in, what is refused, and what happens while the database is away. */
import pg from "pg";
import { afterEach, describe, expect, test } from "vitest";
import { openDb } from "../../src/db/connect.js";
import { INBOX_LEASE_MS, storeArrival } from "../../src/slack/inbox/store.js";
import { withDatabase } from "../support/database.js";
import { waitFor } from "../support/wait.js";
import { hold } from "./support/held.js";
import { answers, calls, readable } from "./support/see.js";
import { loadShop } from "./support/shop.js";
import { interactionForm, type Signed, sendSigned } from "./support/signed.js";
import { withoutDatabase } from "./support/without-database.js";
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

const send = async (w: World, sent: Signed): Promise<number> => (await sendSigned(w, sent)).status;

const event = (changes: object = {}): string =>
  JSON.stringify({
    type: "event_callback",
    team_id: "T_HOME",
    api_app_id: "A_CS",
    event_id: "Ev001",
    event_time: 1_796_000_000,
    event: {
      type: "message",
      channel: "C_TICK",
      user: "U_AGENT",
      ts: "1796000000.000100",
      text: "refund ORD-10042",
    },
    ...changes,
  });
const click = (): object => ({
  type: "block_actions",
  api_app_id: "A_CS",
  team: { id: "T_HOME", domain: "home" },
  user: { id: "U_SUP1", team_id: "T_HOME" },
  actions: [{ action_id: "old.button", value: "x", action_ts: "1.1" }],
  trigger_id: "t",
});
const submission = (): object => ({
  type: "view_submission",
  api_app_id: "A_CS",
  team: { id: "T_HOME", domain: "home" },
  user: { id: "U_ONC1", team_id: "T_HOME" },
  view: { id: "V1", callback_id: "old.form", state: { values: {} } },
});
const command = (more: Record<string, string>, without?: "api_app_id" | "team_id"): Signed => ({
  body: new URLSearchParams(
    Object.entries({
      command: "/nothing",
      text: "",
      user_id: "U_AGENT",
      team_id: "T_HOME",
      channel_id: "C_TICK",
      api_app_id: "A_CS",
      trigger_id: "1.2.x",
      ...more,
    }).filter(([key]) => key !== without),
  ).toString(),
  type: "application/x-www-form-urlencoded",
});
const stored = async (): Promise<number> =>
  Number((await database.db.sql<{ n: bigint }>(undefined, "SELECT count(*) AS n FROM slack_inbox"))[0]?.n);

describe("a request", () => {
  const MINUTE = 60_000;
  test.each([
    ["six minutes old", { atMs: Date.now() - 6 * MINUTE }],
    ["six minutes ahead", { atMs: Date.now() + 6 * MINUTE }],
    ["signed with another secret", { secret: "other" }],
    ["without a timestamp", { headers: { "x-slack-request-timestamp": "" } }],
    ["with two timestamps", { headers: { "x-slack-request-timestamp": "1796000000, 1796000000" } }],
  ])("%s is refused and not stored", async (_name, changes) => {
    const w = await start();
    const status = await send(w, { body: event(), ...changes });
    expect(status).toBeGreaterThanOrEqual(400);
    expect(status).toBeLessThan(500);
    expect(await stored()).toBe(0);
  });

  test("is answered on a connection that is not closed under the next: a load balancer keeps one for a minute", async () => {
    const w = await start();
    expect((await sendSigned(w, { body: event() })).keepsSeconds).toBeGreaterThan(60);
  });

  test.each([
    ["of another app", { api_app_id: "A_OTHER" }],
    ["of another workspace", { team_id: "T_OTHER" }],
  ])("%s is refused and not stored", async (_name, changes) => {
    const w = await start();
    expect(await send(w, { body: event(changes) })).toBe(403);
    expect(await stored()).toBe(0);
  });

  test.each([
    ["an app", { api_app_id: undefined }],
    ["a workspace", { team_id: undefined }],
    ["a workspace, beside empty authorisations", { team_id: undefined, authorizations: [] }],
  ])("of an event that names not even %s is refused and not stored", async (_name, changes) => {
    const w = await start();
    expect(await send(w, { body: event(changes) })).toBe(403);
    expect(await stored()).toBe(0);
  });

  test.each<[string, Signed]>([
    ["an action that names no app", interactionForm({ ...click(), api_app_id: undefined })],
    [
      "an action that names no workspace",
      interactionForm({ ...click(), team: null, user: { id: "U_SUP1" } }),
    ],
    ["a form that names no app", interactionForm({ ...submission(), api_app_id: undefined })],
    [
      "a form that names no workspace",
      interactionForm({ ...submission(), team: null, user: { id: "U_ONC1" } }),
    ],
    ["a command that names no app", command({}, "api_app_id")],
    ["a command that names no workspace", command({}, "team_id")],
    [
      "a shortcut that names no workspace",
      interactionForm({ type: "shortcut", callback_id: "x", user: { id: "U_AGENT" }, trigger_id: "t" }),
    ],
  ])("of %s is refused and not stored", async (_name, sent) => {
    const w = await start();
    expect(await send(w, sent)).toBe(403);
    expect(await stored()).toBe(0);
  });

  const ORG = { team: null, enterprise: { id: "E_ORG", name: "Northwind" }, is_enterprise_install: true };
  test.each<[string, Signed]>([
    ["an action", interactionForm({ ...click(), ...ORG })],
    [
      "an action whose person has no workspace",
      interactionForm({ ...click(), ...ORG, user: { id: "U_SUP1" } }),
    ],
    ["a form", interactionForm({ ...submission(), ...ORG })],
    ["a command", command({ enterprise_id: "E_ORG", is_enterprise_install: "true" }, "team_id")],
    [
      "a shortcut that names no app",
      interactionForm({
        type: "shortcut",
        callback_id: "x",
        user: { id: "U_AGENT" },
        trigger_id: "t",
        ...ORG,
      }),
    ],
  ])("of an installation for the whole organisation, %s without a team, is let in", async (_name, sent) => {
    const w = await start();
    expect(await send(w, sent)).toBe(200);
    expect(await stored()).toBe(1);
  });

  const deep = (levels: number): string => `${'{"a":'.repeat(levels)}1${"}".repeat(levels)}`;
  test.each<[string, Signed]>([
    ["an event", { body: event().replace(/\}$/u, `,"deep":${deep(50_000)}}`) }],
    [
      "an event's message",
      { body: event().replace('"text":', `"blocks":${"[".repeat(50_000)}${"]".repeat(50_000)},"text":`) },
    ],
    ["an unknown document", { body: deep(50_000) }],
    [
      "a click",
      {
        body: new URLSearchParams({
          payload: JSON.stringify(click()).replace(/\}$/u, `,"deep":${deep(50_000)}}`),
        }).toString(),
        type: "application/x-www-form-urlencoded",
      },
    ],
  ])(
    "of %s that nests 50,000 deep is refused for good and not stored, and the next one is read",
    async (_name, sent) => {
      const w = await start();
      const answer = await sendSigned(w, sent);
      expect(answer.status).toBe(400);
      expect(answer.noRetry).toBe(true);
      expect(await stored()).toBe(0);
      expect(await send(w, { body: event() })).toBe(200);
      expect(await stored()).toBe(1);
    },
  );

  test("of an event that reached a shared channel through another company is ours when the app is authorised by us", async () => {
    const w = await start();
    const body = event({
      team_id: "T_EXT",
      authorizations: [{ team_id: "T_HOME", user_id: "U_CS", is_bot: true }],
    });
    expect(await send(w, { body })).toBe(200);
    expect(await stored()).toBe(1);
  });

  test.each<[string, Signed]>([
    ["a JSON body that is null", { body: " null\n" }],
    ["a form whose payload is null", { body: "payload=null", type: "application/x-www-form-urlencoded" }],
  ])("with %s is refused, and the next one is read", async (_name, request) => {
    const w = await start();
    expect(await send(w, request)).toBe(400);
    expect(await send(w, { body: event() })).toBe(200);
    expect(await stored()).toBe(1);
  });

  test("larger than four megabytes is refused", async () => {
    const w = await start();
    expect(await send(w, { body: event({ padding: "x".repeat(5 * 1024 * 1024) }) })).toBe(413);
    expect(await stored()).toBe(0);
  });

  test.each([
    ["NUL", "nul \0 here", "nul \ufffd here"],
    ["half an emoji", "cut \ud83d here", "cut \ufffd here"],
    ["a whole emoji", "fine \u{1f600} here", "fine \u{1f600} here"],
    ["the letters of an escape", "typed \\u0000 here", "typed \\u0000 here"],
  ])("whose text holds %s is stored with all that can be read", async (_name, sent, kept) => {
    const w = await start();
    const [message] = [{ ...JSON.parse(event()).event, text: sent }];
    expect(await send(w, { body: event({ event: message }) })).toBe(200);
    const rows = await database.db.sql<{ text: string }>(
      undefined,
      "SELECT body->'event'->>'text' AS text FROM slack_inbox",
    );
    expect(rows.map((row) => row.text)).toEqual([kept]);
  });

  test("of a message whose fields are of other types than Slack's is acknowledged and remembered nowhere", async () => {
    const w = await start();
    const strange = { ...JSON.parse(event()).event, ts: 123, text: 5 };
    expect(await send(w, { body: event({ event: strange }) })).toBe(200);
    expect(await stored()).toBe(0);
  });

  test("with a charset in its form content type is read like one without", async () => {
    const w = await start();
    const sent = { ...command({}), type: "application/x-www-form-urlencoded; charset=utf-8" };
    expect(await send(w, sent)).toBe(200);
  });

  test.each([
    ["an unknown kind of payload", { type: "something_new", user: { id: "U_AGENT" } }],
    [
      "an action of a card that is no longer made",
      {
        type: "block_actions",
        user: { id: "U_AGENT", team_id: "T_HOME" },
        actions: [{ action_id: "old.button", value: "x", action_ts: "1.1" }],
        trigger_id: "t",
      },
    ],
    [
      "an action without an id",
      {
        type: "block_actions",
        user: { id: "U_AGENT", team_id: "T_HOME" },
        actions: [{ type: "button" }],
        trigger_id: "t2",
      },
    ],
    [
      "a form that is no longer made",
      {
        type: "view_submission",
        user: { id: "U_AGENT", team_id: "T_HOME" },
        view: { id: "V1", callback_id: "old.form", state: { values: {} } },
      },
    ],
    [
      "a closed form",
      { type: "view_closed", user: { id: "U_AGENT" }, view: { id: "V1", callback_id: "old.form" } },
    ],
    [
      "a menu that wants options",
      {
        type: "block_suggestion",
        user: { id: "U_AGENT" },
        action_id: "x",
        block_id: "b",
        value: "v",
        team: { id: "T_HOME" },
      },
    ],
    [
      "a global shortcut",
      {
        type: "shortcut",
        callback_id: "old",
        user: { id: "U_AGENT" },
        team: { id: "T_HOME" },
        trigger_id: "t3",
      },
    ],
  ])("with %s is acknowledged at once", async (_name, payload) => {
    const w = await start();
    const before = performance.now();
    const body = new URLSearchParams({
      payload: JSON.stringify({ api_app_id: "A_CS", ...payload }),
    }).toString();
    expect(await send(w, { body, type: "application/x-www-form-urlencoded" })).toBe(200);
    expect(performance.now() - before).toBeLessThan(2_900);
  });

  test("that is dropped by Slack's own limit is acknowledged and logged, and the process lives", async () => {
    const w = await start();
    expect(
      await send(w, {
        body: JSON.stringify({
          type: "app_rate_limited",
          team_id: "T_HOME",
          api_app_id: "A_CS",
          minute_rate_limited: 1,
        }),
      }),
    ).toBe(200);
    expect(w.logs.some(({ message }) => message.startsWith("Slack dropped events"))).toBe(true);
  });

  test("to another path is handed to its route, and to no path is not found", async () => {
    const w = await start({
      start: { routes: { "GET /healthz": (_req, res) => void res.writeHead(200).end("ok") } },
    });
    const get = async (path: string) => (await fetch(`http://127.0.0.1:${w.slack.port}${path}`)).status;
    expect(await get("/healthz?x=1")).toBe(200);
    expect(await get("/slack/events")).toBe(404);
    expect(await get("/nothing")).toBe(404);
  });
});

describe("while the database is away", () => {
  test("an event is not acknowledged, comes again, and becomes a ticket", async () => {
    const w = await start({ sandbox: { clock: { scale: 50 } } });
    await withoutDatabase(database.url, async () => {
      expect(
        await send(w, {
          body: event({
            event_id: "Ev9",
            event: {
              type: "message",
              channel: "C_TICK",
              user: "U_AGENT",
              ts: "1796000000.000900",
              text: "x",
            },
          }),
        }),
      ).toBe(503);
      const posted = w.sandbox.control.post({ as: "U_AGENT", channel: "C_TICK", text: "refund ORD-10042" });
      await waitFor(() =>
        w.sandbox.control
          .journal(0, 1000)
          .some(
            (entry) =>
              entry.kind === "delivery" && entry.type === "message" && entry.outcome === "http_error",
          ),
      );
      await posted;
    });
    await waitFor(async () => (await database.db.sql(undefined, "SELECT 1 FROM tickets")).length === 1, {
      timeoutMs: 60_000,
    });
  });

  test("a click is answered with a sentence and nothing is recorded, then or later", async () => {
    const w = await start();
    await hold(w);
    const card = await waitFor(() =>
      w.sandbox.control.messages("U_SUP1", "C_APPR").find((one) => readable(one).includes("Amount")),
    );
    await withoutDatabase(database.url, async () => {
      await w.sandbox.control.click({
        as: "U_SUP1",
        at: { channel: "C_APPR", ts: card.ts },
        label: "Approve",
      });
      await waitFor(() =>
        answers(w.sandbox, "U_SUP1", "C_APPR").some((text) => text.includes("nothing was recorded")),
      );
      const command = await w.sandbox.control.command({
        as: "U_ONC1",
        channel: "C_OPS",
        command: "/ops",
        text: "list",
      });
      expect(command.ok).toBe(true);
      await waitFor(() =>
        answers(w.sandbox, "U_ONC1", "C_OPS").some((text) => text.includes("nothing was recorded")),
      );
    });
    expect(await stored()).toBe(0);
    expect(await database.db.sql(undefined, "SELECT 1 FROM votes")).toEqual([]);
  });

  test("a form stays open and says so", async () => {
    const w = await start();
    await w.sandbox.control.command({ as: "U_AGENT", channel: "C_TICK", command: "/ticket", text: "" });
    const modal = await waitFor(() => w.sandbox.control.modals("U_AGENT")[0]);
    const submit = () =>
      w.sandbox.control.submitView({ as: "U_AGENT", viewId: modal.id, values: { text: "refund ORD-10042" } });
    await withoutDatabase(database.url, async () => {
      expect(await submit()).toMatchObject({
        ok: false,
        error: "view_errors",
        errors: { text: expect.stringContaining("nothing was recorded") },
      });
    });
    expect(await submit()).toMatchObject({ ok: true });
    await waitFor(async () => (await database.db.sql(undefined, "SELECT 1 FROM tickets")).length === 1);
  });

  test('slow beyond Slack\'s patience, a click that was answered with "not recorded" leaves no row that acts later', async () => {
    const w = await start();
    await hold(w);
    const card = await waitFor(() =>
      w.sandbox.control.messages("U_SUP1", "C_APPR").find((one) => readable(one).includes("Amount")),
    );
    const blocker = new pg.Client({ connectionString: database.url });
    await blocker.connect();
    await blocker.query("BEGIN; LOCK TABLE slack_inbox IN ACCESS EXCLUSIVE MODE");
    await w.sandbox.control.click({ as: "U_SUP1", at: { channel: "C_APPR", ts: card.ts }, label: "Approve" });
    await waitFor(() =>
      answers(w.sandbox, "U_SUP1", "C_APPR").some((text) => text.includes("nothing was recorded")),
    );
    await blocker.query("COMMIT");
    await blocker.end();
    await waitFor(async () => (await stored()) === 0);
    expect(await database.db.sql(undefined, "SELECT 1 FROM votes")).toEqual([]);
  });
});

describe("while every connection waits for somebody else", () => {
  test("what arrives is stored and acknowledged all the same", async () => {
    const arrivals = openDb({ url: database.url, applicationName: "test-arrivals", poolSize: 1 });
    const blocker = new pg.Client({ connectionString: database.url });
    await blocker.connect();
    try {
      const w = await start({ arrivals, still: true });
      await blocker.query("SELECT pg_advisory_lock(7)");
      const waiting = Array.from({ length: 30 }, () =>
        database.db.sql("test.wait", "SELECT pg_advisory_lock_shared(7)"),
      );
      await waitFor(() => database.db.pool.waitingCount > 0);
      expect(await send(w, { body: event() })).toBe(200);
      const { rows } = await blocker.query("SELECT kind FROM slack_inbox");
      expect(rows).toEqual([{ kind: "message" }]);
      await blocker.query("SELECT pg_advisory_unlock(7)");
      await Promise.all(waiting);
    } finally {
      await blocker.end();
      await arrivals.close();
    }
  });
});

describe("a click whose handling takes longer than its lease", () => {
  test("is not taken over from the process that works on it: decided once, answered once", async () => {
    let [begun, release] = [0, (): void => {}];
    const held = new Promise<void>((resolve) => {
      release = resolve;
    });
    const w = await start({
      aroundDecide: async (decide) => {
        begun += 1;
        await held;
        return decide();
      },
    });
    await hold(w);
    const card = await waitFor(() =>
      w.sandbox.control.messages("U_SUP1", "C_APPR").find((one) => readable(one).includes("Amount")),
    );
    const clicked = w.sandbox.control.click({
      as: "U_SUP1",
      at: { channel: "C_APPR", ts: card.ts },
      label: "Approve",
    });
    // Its first lease is over by the database's clock; the pump has offered the row all the time.
    await waitFor(
      async () =>
        (
          await database.db.sql(
            undefined,
            "SELECT 1 FROM slack_inbox WHERE kind = 'action' AND countersign_now() > received_at + make_interval(secs => $1 * 1.5)",
            [INBOX_LEASE_MS / 1_000],
          )
        ).length === 1,
      { timeoutMs: 60_000 },
    );
    await w.drain();
    expect(begun).toBe(1);
    release();
    await clicked;
    await waitFor(() => answers(w.sandbox, "U_SUP1", "C_APPR").length > 0);
    await waitFor(
      async () =>
        (await database.db.sql(undefined, "SELECT 1 FROM slack_inbox WHERE processed_at IS NULL")).length ===
        0,
    );
    expect(begun).toBe(1);
    expect(await database.db.sql(undefined, "SELECT user_id FROM votes")).toEqual([{ user_id: "U_SUP1" }]);
    expect(
      await database.db.sql(undefined, "SELECT lease_token FROM slack_inbox WHERE kind = 'action'"),
    ).toEqual([{ lease_token: 1n }]);
  });
});

/** A supervisor's click on Approve, as it is stored. */
const approveAt = (held: { approvalId: string }, messageTs: string) => ({
  type: "block_actions",
  api_app_id: "A_CS",
  user: { id: "U_SUP1", team_id: "T_HOME" },
  team: { id: "T_HOME" },
  channel: { id: "C_APPR" },
  container: { type: "message", channel_id: "C_APPR", message_ts: messageTs },
  actions: [{ action_id: "approval.approve", value: `${held.approvalId}.1`, action_ts: "1.1" }],
});

/** A card that waits, and a click on it that was stored and that nobody works on any more. */
async function clickLeftBehind(): Promise<World> {
  const w = await start({ still: true });
  const held = await hold(w);
  await w.drain();
  const card = await waitFor(() =>
    w.sandbox.control.messages("U_SUP1", "C_APPR").find((one) => readable(one).includes("Amount")),
  );
  const body = approveAt(held, card.ts);
  await storeArrival(w.ctx, { id: "inb_1", key: "k", kind: "action", body, retryNum: null, leased: true });
  await database.db.sql(
    undefined,
    "UPDATE slack_inbox SET lease_until = countersign_now() - interval '1 second', due_at = countersign_now() WHERE id = 'inb_1'",
  );
  return w;
}

describe("a process that dies after the acknowledgement", () => {
  test("leaves a click that another one finishes, with its answer", async () => {
    const w = await clickLeftBehind();
    await w.drain();
    expect(await database.db.sql(undefined, "SELECT user_id FROM votes")).toEqual([{ user_id: "U_SUP1" }]);
    expect(answers(w.sandbox, "U_SUP1", "C_APPR").join()).toContain("Approved: Refund of £180.00 GBP");
    await w.drain();
    expect(answers(w.sandbox, "U_SUP1", "C_APPR")).toHaveLength(1);
  });
});

describe("a click that was written into the table, and not clicked", () => {
  test.each([
    ["without a seal", "U_SUP1", "UPDATE slack_inbox SET seal = NULL WHERE id = 'inb_1'"],
    [
      "with a seal of its own making",
      "U_SUP1",
      "UPDATE slack_inbox SET seal = repeat('0', 64) WHERE id = 'inb_1'",
    ],
    ["under another id", "U_SUP1", "UPDATE slack_inbox SET id = 'inb_2' WHERE id = 'inb_1'"],
    [
      "as another person",
      "U_SUP2",
      `UPDATE slack_inbox SET body = jsonb_set(body, '{user,id}', '"U_SUP2"') WHERE id = 'inb_1'`,
    ],
    ["as another kind", "U_SUP1", "UPDATE slack_inbox SET kind = 'view' WHERE id = 'inb_1'"],
  ])("%s decides nothing, and whoever it names hears of it once", async (_how, named, forge) => {
    const w = await clickLeftBehind();
    await database.db.sql(undefined, forge);
    await w.drain();
    expect(await database.db.sql(undefined, "SELECT user_id FROM votes")).toEqual([]);
    expect(
      await database.db.sql(undefined, "SELECT last_error FROM slack_inbox WHERE id IN ('inb_1', 'inb_2')"),
    ).toEqual([{ last_error: "refused: it is not what came from Slack" }]);
    expect(await database.db.sql(undefined, "SELECT state FROM approvals")).toEqual([{ state: "PENDING" }]);
    await w.drain();
    const told = calls(w.sandbox, "chat.postMessage").filter(({ args }) =>
      String(args["text"]).includes("in your name"),
    );
    expect(told.map(({ args }) => args["channel"])).toEqual([named]);
  });
});
