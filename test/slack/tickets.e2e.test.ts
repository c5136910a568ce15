/** Tickets, through the real Bolt app on both of Slack's wires. */
import { afterEach, describe, expect, test } from "vitest";
import { withDatabase } from "../support/database.js";
import { waitFor } from "../support/wait.js";
import { answers, calls, everything, readable } from "./support/see.js";
import { loadShop } from "./support/shop.js";
import { startWorld, type World, type WorldOptions } from "./support/world.js";

const database = withDatabase();
let world: World | undefined;

afterEach(async () => {
  await world?.stop();
  world = undefined;
});

async function start(options: Omit<WorldOptions, "db">): Promise<World> {
  await loadShop(database.db);
  world = await startWorld({ db: database.db, ...options });
  return world;
}

const tickets = async (): Promise<
  { filer: string; filers: string[]; text: string; files: { name: string }[]; source: string }[]
> => database.db.sql(undefined, "SELECT filer, filers, text, files, source FROM tickets ORDER BY created_at");
const runCount = async (): Promise<number> =>
  Number((await database.db.sql<{ n: bigint }>(undefined, "SELECT count(*) AS n FROM runs"))[0]?.n);
const processed = async (): Promise<boolean> =>
  (await database.db.sql(undefined, "SELECT 1 FROM slack_inbox WHERE processed_at IS NULL")).length === 0;

async function post(w: World, as: string, text: string, more: object = {}): Promise<string> {
  const posted = await w.sandbox.control.post({ as, channel: "C_TICK", text, ...more });
  if (!posted.ok) throw new Error(posted.message);
  return posted.ts;
}

function event(ts: string, changes: object = {}, id = `Ev${ts}`) {
  return {
    type: "event_callback",
    team_id: "T_HOME",
    api_app_id: "A_CS",
    event_id: id,
    event_time: 1_796_000_000,
    event: {
      type: "message",
      channel: "C_TICK",
      channel_type: "channel",
      user: "U_AGENT",
      ts,
      event_ts: ts,
      text: "ORD-1001 came broken, $20 back please",
      ...changes,
    },
  };
}

describe.each(["socket", "http"] as const)("over %s", (mode) => {
  test("a person's message becomes one ticket, answered in its thread with the customer to confirm", async () => {
    const w = await start({ mode });
    const ts = await post(w, "U_AGENT", "refund tom.w@shop.example order ORD-10042, R&D jacket");
    const thread = await waitFor(() => {
      const found = w.sandbox.control.messages("U_AGENT", "C_TICK", { threadTs: ts });
      return found.length >= 3 ? found : null;
    });
    expect(thread.map(readable).join("\n")).toContain(
      "Tom Whitfield (CUS-7), by tom.w@shop.example, ORD-10042",
    );
    const [ticket] = await tickets();
    expect(ticket).toMatchObject({
      filer: "U_AGENT",
      source: "message",
      text: "refund tom.w@shop.example order ORD-10042, R&D jacket",
    });
  });

  test("the same event delivered four times is one ticket, one run, one greeting", async () => {
    const w = await start({ mode });
    for (let n = 0; n < 4; n += 1) await w.sandbox.control.injectEvent(event("1796000000.000100"));
    await waitFor(async () => (await tickets()).length === 1);
    await waitFor(() => calls(w.sandbox, "chat.postMessage").length >= 2);
    await w.sandbox.control.injectEvent(event("1796000000.000100"));
    await waitFor(processed);
    expect(await runCount()).toBe(1);
    expect(calls(w.sandbox, "chat.postMessage").length).toBe(2);
  });

  test("a mention in the tickets channel arrives as two events and is one ticket", async () => {
    const w = await start({ mode });
    await post(w, "U_AGENT", "@countersign refund ORD-10042");
    await waitFor(async () => (await tickets()).length > 0);
    await w.sandbox.control.idle();
    await waitFor(processed);
    expect((await tickets()).map(({ text }) => text)).toEqual(["refund ORD-10042"]);
  });

  test("Confirm by the filer confirms; by anybody else it is answered and changes nothing", async () => {
    const w = await start({ mode });
    const ts = await post(w, "U_AGENT", "refund order ORD-10042");
    const card = await waitFor(() =>
      w.sandbox.control
        .messages("U_AGENT", "C_TICK", { threadTs: ts })
        .find((one) => readable(one).includes("Is that right?")),
    );
    const at = { channel: "C_TICK", ts: card.ts };
    expect(await w.sandbox.control.click({ as: "U_SUP1", at, label: "Confirm" })).toMatchObject({ ok: true });
    await waitFor(() =>
      answers(w.sandbox, "U_SUP1", "C_TICK").some((text) => text.includes("Only the person who filed")),
    );
    expect(await w.sandbox.control.click({ as: "U_AGENT", at, label: "Confirm" })).toMatchObject({
      ok: true,
    });
    await waitFor(() =>
      w.sandbox.control
        .messages("U_AGENT", "C_TICK", { threadTs: ts })
        .some((one) => readable(one).includes("Confirmed by <@U_AGENT>")),
    );
    await waitFor(() =>
      answers(w.sandbox, "U_AGENT", "C_TICK")
        .join()
        .includes("Confirmed: this is about Tom Whitfield (CUS-7)."),
    );
  });
});

describe("what starts nothing", () => {
  const noise: [string, object][] = [
    ["our own post echoed", { user: "U_CS", bot_id: "B_CS", app_id: "A_CS", text: "hello" }],
    [
      "a preview added to our own post",
      {
        subtype: "message_changed",
        hidden: true,
        user: undefined,
        message: {
          ts: "1796000005.000100",
          bot_id: "B_CS",
          app_id: "A_CS",
          text: "same",
          attachments: [{ from_url: "https://x.example" }],
        },
        previous_message: { ts: "1796000005.000100", text: "same" },
      },
    ],
    [
      "an attachment added to a person's ticket",
      {
        subtype: "message_changed",
        hidden: true,
        message: { ts: "1796000005.000100", user: "U_AGENT", text: "same" },
      },
    ],
    ["a deleted message", { subtype: "message_deleted", deleted_ts: "1796000005.000100", user: undefined }],
    [
      "another app's message",
      { subtype: "bot_message", bot_id: "B_OTHER", user: undefined, text: "refund ORD-1001" },
    ],
    ["somebody joining", { subtype: "channel_join", text: "<@U_AGENT> has joined" }],
    [
      "a reply that was also sent to the channel",
      { subtype: "thread_broadcast", thread_ts: "1795999999.000100" },
    ],
    ["a reply in a thread that is no ticket", { thread_ts: "1795999999.000100" }],
  ];

  test.each(noise)("%s", async (_name, changes) => {
    const w = await start({ mode: "http" });
    const { acked } = await w.sandbox.control.injectEvent(event("1796000009.000200", changes));
    expect(acked).toBe(true);
    await waitFor(processed);
    await w.drain();
    expect(await tickets()).toEqual([]);
    expect(calls(w.sandbox, "chat.postMessage")).toEqual([]);
  });
});

describe("odd messages", () => {
  test("an event that only ever comes as a retry is a ticket like any other", async () => {
    const w = await start({ mode: "http", sandbox: { clock: { scale: 1000 } } });
    w.sandbox.control.addDeliveryFault({ kind: "drop", times: 2, type: "message" });
    await post(w, "U_AGENT", "refund ORD-10042");
    await waitFor(async () => (await tickets()).length === 1);
  });

  test("a screenshot with a text is a ticket that names the file; without one the thread asks", async () => {
    const w = await start({ mode: "socket" });
    const files = [{ name: "broken.png", mimetype: "image/png", size: 20_480 }];
    await post(w, "U_AGENT", "ORD-1001 arrived like this", { files });
    await waitFor(async () => (await tickets()).length === 1);
    expect((await tickets())[0]?.files).toMatchObject([{ name: "broken.png", mimetype: "image/png" }]);
    const blank = await post(w, "U_AGENT", "", { files });
    await waitFor(() =>
      w.sandbox.control
        .messages("U_AGENT", "C_TICK", { threadTs: blank })
        .some((one) => readable(one).includes("I see broken.png, but no text. What should be done?")),
    );
    expect(await runCount()).toBe(1);
  });

  test("a link in disguise of a phone number is read as typed", async () => {
    const w = await start({ mode: "http" });
    const text =
      "refund <mailto:tom.w@shop.example|tom.w@shop.example> order <tel:10042|ORD-10042> R&amp;D jacket";
    await w.sandbox.control.injectEvent(event("1796000000.000300", { text }));
    await waitFor(async () => (await tickets()).length === 1);
    expect((await tickets())[0]?.text).toBe("refund tom.w@shop.example order ORD-10042 R&D jacket");
  });

  test("a ticket that fits two customers lists both and asks", async () => {
    const w = await start({ mode: "http" });
    const ts = await post(w, "U_AGENT", "refund pat@shop.example please");
    const card = await waitFor(() =>
      w.sandbox.control
        .messages("U_AGENT", "C_TICK", { threadTs: ts })
        .find((one) => readable(one).includes("Which one is meant?")),
    );
    expect(readable(card)).toContain("Pat One (CUS-8)");
    expect(readable(card)).toContain("Pat Two (CUS-9)");
  });

  test.each([
    ["U_GUEST", "Guests cannot do this"],
    ["U_ULTRA", "Guests cannot do this"],
  ])("a ticket by %s is not filed, and they are told why", async (user, why) => {
    const w = await start({ mode: "http" });
    await w.sandbox.control.injectEvent(event("1796000000.000400", { user }));
    await waitFor(() => answers(w.sandbox, user, "C_TICK").some((text) => text.includes(why)));
    expect(await tickets()).toEqual([]);
  });

  test("forty thousand characters and three hundred lines of emoji are tickets and break nothing", async () => {
    const w = await start({ mode: "http" });
    await post(w, "U_AGENT", `refund ORD-10042 ${"<&>*_~` ".repeat(4_900)}`);
    await post(w, "U_AGENT", `refund ORD-10042 ${"😀👩‍👩‍👧‍👦\n".repeat(300)}`);
    await waitFor(async () => (await tickets()).length === 2);
    await waitFor(() => calls(w.sandbox, "chat.postMessage").length >= 4);
    expect(w.logs.filter(({ level }) => level === "error")).toEqual([]);
  });
});

describe("other doors", () => {
  test("/ticket opens a form; its ticket gets a message of its own, and the thread is there", async () => {
    const w = await start({ mode: "socket" });
    expect(
      await w.sandbox.control.command({
        as: "U_SUP1",
        channel: "C_APPR",
        command: "/ticket",
        text: "give it back",
      }),
    ).toMatchObject({ ok: true });
    const modal = await waitFor(() => w.sandbox.control.modals("U_SUP1")[0]);
    const values = { text: "Please refund the jacket", reference: "ORD-10042" };
    expect(await w.sandbox.control.submitView({ as: "U_SUP1", viewId: modal.id, values })).toMatchObject({
      ok: true,
    });
    const root = await waitFor(() =>
      w.sandbox.control
        .messages("U_AGENT", "C_TICK")
        .find((one) => readable(one).includes("Please refund the jacket")),
    );
    await waitFor(() =>
      w.sandbox.control
        .messages("U_AGENT", "C_TICK", { threadTs: root.ts })
        .some((one) => readable(one).includes("About Tom Whitfield (CUS-7).")),
    );
    expect(await tickets()).toMatchObject([{ filer: "U_SUP1", source: "form" }]);
    await waitFor(() => answers(w.sandbox, "U_SUP1", "C_APPR").some((text) => text.includes("Filed.")));
  });

  test.each(["U_GUEST", "U_ULTRA"])(
    "/ticket by the guest %s is refused at once, without a form",
    async (user) => {
      const w = await start({ mode: "http" });
      await w.sandbox.control.command({ as: user, channel: "C_TICK", command: "/ticket", text: "refund it" });
      await waitFor(() =>
        answers(w.sandbox, user, "C_TICK").some((text) =>
          /^Nothing can be filed\. Guests cannot do this/u.test(text),
        ),
      );
      expect(calls(w.sandbox, "views.open")).toEqual([]);
      expect(w.sandbox.control.modals(user)).toEqual([]);
    },
  );

  test("/ticket opens its form while Slack does not say who somebody is; whoever may not file is told at the submit", async () => {
    const w = await start({ mode: "http" });
    w.sandbox.control.addApiFault({ method: "users.info", kind: "delay", delayMs: 2_500, times: 1 });
    await w.sandbox.control.command({ as: "U_GUEST", channel: "C_TICK", command: "/ticket", text: "" });
    const modal = await waitFor(() => w.sandbox.control.modals("U_GUEST")[0]);
    expect(
      await w.sandbox.control.submitView({ as: "U_GUEST", viewId: modal.id, values: { text: "refund it" } }),
    ).toMatchObject({ ok: false, errors: { text: expect.stringContaining("Guests cannot do this") } });
    expect(await tickets()).toEqual([]);
  });

  test("a form that names nobody, or two people, stays open and says so", async () => {
    const w = await start({ mode: "http" });
    await w.sandbox.control.command({ as: "U_AGENT", channel: "C_TICK", command: "/ticket", text: "" });
    const modal = await waitFor(() => w.sandbox.control.modals("U_AGENT")[0]);
    const submit = (reference: string, text = "refund it") =>
      w.sandbox.control.submitView({ as: "U_AGENT", viewId: modal.id, values: { text, reference } });
    expect(await submit("ORD-404")).toMatchObject({
      ok: false,
      error: "view_errors",
      errors: { reference: expect.stringContaining("ORD-404") },
    });
    expect(await submit("pat@shop.example")).toMatchObject({
      ok: false,
      errors: { reference: expect.stringContaining("Pat One (CUS-8)") },
    });
    expect(await submit("", "\u200b \u3164")).toMatchObject({
      ok: false,
      errors: { text: expect.stringContaining("what should be done") },
    });
    expect(await submit("ORD-10042")).toMatchObject({ ok: true });
    await waitFor(async () => (await tickets()).length === 1);
  });

  test("whom a message mentions is a colleague in the ticket that the shortcut makes of it, whatever their name", async () => {
    const w = await start({ mode: "http" });
    const posted = await w.sandbox.control.post({
      as: "U_AGENT",
      channel: "C_GENERAL",
      text: "@noor and @nobody-here say: refund ORD-10042",
    });
    if (!posted.ok) throw new Error(posted.message);
    const shortcut = {
      as: "U_SUP1",
      callbackId: "resolve_with_countersign",
      message: { channel: "C_GENERAL", ts: posted.ts },
    };
    expect(await w.sandbox.control.shortcut(shortcut)).toMatchObject({ ok: true });
    const [ticket] = await waitFor(async () => {
      const rows = await tickets();
      return rows.length === 1 ? rows : null;
    });
    expect(ticket?.text).toBe("@colleague and @nobody-here say: refund ORD-10042");
  });

  test("the shortcut on a message that is a ticket makes whoever ran it a filer, too", async () => {
    const w = await start({ mode: "http" });
    const ts = await post(w, "U_AGENT", "refund ORD-10042");
    await waitFor(async () => (await tickets()).length === 1);
    const shortcut = {
      as: "U_SUP1",
      callbackId: "resolve_with_countersign",
      message: { channel: "C_TICK", ts },
    };
    expect(await w.sandbox.control.shortcut(shortcut)).toMatchObject({ ok: true });
    await waitFor(async () => (await tickets())[0]?.filers.includes("U_SUP1") === true);
    expect(await tickets()).toHaveLength(1);
    await waitFor(() =>
      answers(w.sandbox, "U_SUP1", "C_TICK").some((text) => text.includes("ticket already")),
    );
  });

  test("Stop by the filer asks the run to end; a reply of the filer is added, a stranger's is not", async () => {
    const w = await start({ mode: "http" });
    const ts = await post(w, "U_AGENT", "refund ORD-10042");
    const card = await waitFor(() =>
      w.sandbox.control
        .messages("U_AGENT", "C_TICK", { threadTs: ts })
        .find((one) => readable(one).includes("Stop")),
    );
    await w.sandbox.control.post({
      as: "U_AGENT",
      channel: "C_TICK",
      text: "approved! just do it",
      threadTs: ts,
    });
    await w.sandbox.control.post({ as: "U_AGENT2", channel: "C_TICK", text: "me too", threadTs: ts });
    const notes = () =>
      database.db.sql<{ author: string; text: string }>(
        undefined,
        "SELECT author, text FROM run_notes WHERE author LIKE 'U%'",
      );
    await waitFor(async () => (await notes()).length === 1);
    await waitFor(processed);
    expect(await notes()).toEqual([{ author: "U_AGENT", text: "approved! just do it" }]);
    await w.sandbox.control.click({ as: "U_AGENT2", at: { channel: "C_TICK", ts: card.ts }, label: "Stop" });
    await waitFor(() =>
      answers(w.sandbox, "U_AGENT2", "C_TICK").some((text) => text.includes("Only the person who filed")),
    );
    await w.sandbox.control.click({ as: "U_AGENT", at: { channel: "C_TICK", ts: card.ts }, label: "Stop" });
    await waitFor(() =>
      everything(w.sandbox, "U_AGENT", "C_TICK").some((one) =>
        readable(one).includes("stop asked for by <@U_AGENT>"),
      ),
    );
  });
});
