/** Socket Mode through everything that Slack and networks do to a socket; the defects of the packages that are designed around (facts §1.7). */
import { setTimeout as delay } from "node:timers/promises";
import { afterEach, describe, expect, test } from "vitest";
import { withDatabase } from "../support/database.js";
import { waitFor } from "../support/wait.js";
import { calls } from "./support/see.js";
import { loadShop } from "./support/shop.js";
import { startWorld, type World, type WorldOptions } from "./support/world.js";

const database = withDatabase();
let world: World | undefined;
const escaped: unknown[] = [];
const note = (reason: unknown): void => {
  escaped.push(reason);
};

afterEach(async () => {
  await world?.stop();
  world = undefined;
  process.off("unhandledRejection", note);
  expect(escaped.splice(0)).toEqual([]);
});

async function start(options: Partial<WorldOptions> = {}): Promise<World> {
  process.on("unhandledRejection", note);
  await loadShop(database.db);
  world = await startWorld({ db: database.db, mode: "socket", ...options });
  await waitFor(() => world?.slack.health().sockets === 2);
  return world;
}

const ticketTexts = async (): Promise<string[]> =>
  (await database.db.sql<{ text: string }>(undefined, "SELECT text FROM tickets ORDER BY text")).map(
    ({ text }) => text,
  );

/** Posts numbered tickets at an even pace until told to stop; gives back how many. */
function keepPosting(w: World): () => Promise<number> {
  let n = 0;
  let going = true;
  const running = (async () => {
    while (going) {
      n += 1;
      await delay(30);
      await w.sandbox.control.post({
        as: "U_AGENT",
        channel: "C_TICK",
        text: `ticket ${String(n).padStart(4, "0")}`,
      });
    }
  })();
  return async () => {
    going = false;
    await running;
    return n;
  };
}

async function allArrived(count: number): Promise<void> {
  await waitFor(async () => (await ticketTexts()).length >= count, {
    timeoutMs: 60_000,
    what: `${count} tickets`,
  });
  const texts = await ticketTexts();
  expect(new Set(texts).size).toBe(texts.length);
  expect(texts).toHaveLength(count);
}

describe("a payload that nests far deeper than any of Slack's", () => {
  test("is neither stored nor acknowledged, and the socket lives on", async () => {
    const w = await start({ sandbox: { settings: { socketRedeliveryMs: 100 } } });
    let deep: object = {};
    for (let level = 0; level < 500; level += 1) deep = { deep };
    const message = {
      type: "message",
      channel: "C_TICK",
      user: "U_AGENT",
      ts: "1796000000.000100",
      text: "deep",
    };
    expect((await w.sandbox.control.injectEvent({ ...message, blocks: [deep] } as never)).acked).toBe(false);
    await w.sandbox.control.post({ as: "U_AGENT", channel: "C_TICK", text: "ticket after it" });
    await waitFor(async () => (await ticketTexts()).length > 0);
    expect(await ticketTexts()).toEqual(["ticket after it"]);
    expect(await database.db.sql(undefined, "SELECT kind FROM slack_inbox")).toHaveLength(1);
    expect(w.slack.health().sockets).toBe(2);
  });
});

describe("two sockets", () => {
  test.each(["refresh", "warning"] as const)(
    "keep every event through a %s of both, each event once (B1)",
    async (kind) => {
      const w = await start();
      const stop = keepPosting(w);
      await waitFor(async () => (await ticketTexts()).length >= 5);
      w.sandbox.control.socket({ kind, connection: 0 });
      w.sandbox.control.socket({ kind, connection: 1 });
      await waitFor(async () => (await ticketTexts()).length >= 15, { timeoutMs: 60_000 });
      await allArrived(await stop());
      await waitFor(() => w.slack.health().sockets === 2);
    },
  );

  test("come back at once when both are cut; what was not acknowledged arrives after all", async () => {
    const w = await start({ start: { socketTiming: { backoffBaseMs: 20 } } });
    w.sandbox.control.addDeliveryFault({ kind: "delay", times: 1, delayMs: 50, type: "message" });
    await w.sandbox.control.post({ as: "U_AGENT", channel: "C_TICK", text: "before" });
    w.sandbox.control.socket({ kind: "kill" });
    await waitFor(() => w.slack.health().sockets === 2);
    await w.sandbox.control.post({ as: "U_AGENT", channel: "C_TICK", text: "after" });
    await waitFor(async () => (await ticketTexts()).includes("after"));
  });

  test("of a peer that never ends its side are replaced all the same (B1, B6)", async () => {
    const w = await start({ start: { socketTiming: { closePatienceMs: 200 } } });
    w.sandbox.control.socket({ kind: "rude" });
    w.sandbox.control.socket({ kind: "refresh", connection: 0 });
    w.sandbox.control.socket({ kind: "refresh", connection: 1 });
    await w.sandbox.control.post({ as: "U_AGENT", channel: "C_TICK", text: "after the rude goodbye" });
    await allArrived(1);
    w.sandbox.control.socket({ kind: "polite" });
  });

  test("outlive events that Slack dropped: an envelope without an event does not end the process (B2)", async () => {
    const w = await start();
    await w.sandbox.control.injectAppRateLimited();
    await waitFor(() => w.logs.some(({ message }) => message.startsWith("Slack dropped events")));
    expect(w.slack.health().sockets).toBe(2);
    await w.sandbox.control.post({ as: "U_AGENT", channel: "C_TICK", text: "still here" });
    await allArrived(1);
  });

  test("come back after the link was disabled for a while, whatever the openings answer meanwhile (B3)", async () => {
    const w = await start({
      start: { socketTiming: { backoffBaseMs: 20, backoffMaxMs: 200 } },
      // More openings than tier 1 grants: what is looked at here is what each of them answers.
      sandbox: { settings: { connectionTier: "tier3" } },
    });
    for (const fault of [
      { kind: "error" as const, error: "invalid_auth" },
      { kind: "http" as const, status: 500 },
      { kind: "ratelimited" as const, retryAfterSeconds: 1 },
      { kind: "reset" as const },
    ]) {
      w.sandbox.control.addApiFault({ method: "apps.connections.open", times: 2, ...fault });
    }
    w.sandbox.control.socket({ kind: "link_disabled" });
    await waitFor(() => w.slack.health().sockets === 0);
    expect(w.slack.health().connected).toBe(false);
    w.sandbox.control.socket({ kind: "enable" });
    await waitFor(() => w.slack.health().sockets === 2, { timeoutMs: 60_000 });
    expect(w.slack.health()).toMatchObject({ connected: true, mode: "socket" });
  });

  test("wait as long as Slack asks before another is opened, and work on the one that is open", async () => {
    const w = await start({ start: { socketTiming: { backoffBaseMs: 20, backoffMaxMs: 50 } } });
    const opened = (): number => calls(w.sandbox, "apps.connections.open").length;
    const before = opened();
    w.sandbox.control.addApiFault({
      method: "apps.connections.open",
      kind: "ratelimited",
      retryAfterSeconds: 2,
      times: 1,
    });
    w.sandbox.control.socket({ kind: "kill", connection: 0 });
    await waitFor(() => opened() === before + 1);
    const asked = performance.now();
    expect(w.slack.health()).toMatchObject({ connected: true, sockets: 1 });
    await w.sandbox.control.post({ as: "U_AGENT", channel: "C_TICK", text: "on one socket" });
    await allArrived(1);
    await waitFor(() => w.slack.health().sockets === 2);
    expect(performance.now() - asked).toBeGreaterThan(1_900);
    expect(opened()).toBe(before + 2);
  });

  test("that fall silent are found out by their missing pongs and replaced (B15, B16)", async () => {
    const w = await start({ start: { socketTiming: { clientPingTimeoutMs: 400, closePatienceMs: 200 } } });
    w.sandbox.control.socket({ kind: "deaf" });
    await waitFor(() => w.slack.health().sockets < 2);
    w.sandbox.control.socket({ kind: "polite" });
    await waitFor(() => w.slack.health().sockets === 2);
    // Health says how old the newest socket is and when Slack was last heard.
    expect(w.slack.health().detail).toMatch(/^2 connections, the newest \d+ s old; last heard \d+ s ago\.$/);
    await w.sandbox.control.post({ as: "U_AGENT", channel: "C_TICK", text: "heard again" });
    await allArrived(1);
  });

  test("stop within the bound and leave nothing open, also in the middle of a reconnect (B4, B13)", async () => {
    const w = await start({ start: { socketTiming: { closePatienceMs: 500 } } });
    w.sandbox.control.addApiFault({ method: "apps.connections.open", kind: "hang", times: 2 });
    w.sandbox.control.socket({ kind: "kill" });
    const before = performance.now();
    await w.slack.stop();
    expect(performance.now() - before).toBeLessThan(9_000);
    await waitFor(() => w.sandbox.control.connection().connected === 0);
  });

  test("acknowledge once whatever the listeners do, and a failing acknowledgement breaks nothing (B11)", async () => {
    const w = await start();
    const stop = keepPosting(w);
    await waitFor(async () => (await ticketTexts()).length >= 3);
    w.sandbox.control.socket({ kind: "kill", connection: 0 });
    await waitFor(async () => (await ticketTexts()).length >= 8, { timeoutMs: 60_000 });
    await allArrived(await stop());
  });
});

describe("a start", () => {
  test("with a refused app token ends with the name of the variable", async () => {
    await loadShop(database.db);
    await expect(
      startWorld({
        db: database.db,
        mode: "socket",
        config: { transport: { mode: "socket", appToken: "xapp-wrong" } },
      }),
    ).rejects.toThrow(/SLACK_APP_TOKEN \(invalid_auth\)/);
  });

  test.each(["socket", "http"] as const)(
    "over %s with a refused bot token ends with the name of the variable (B12)",
    async (mode) => {
      await loadShop(database.db);
      await expect(startWorld({ db: database.db, mode, config: { botToken: "xoxb-wrong" } })).rejects.toThrow(
        /SLACK_BOT_TOKEN \(invalid_auth\)/,
      );
    },
  );

  test("before Slack answers waits for it and then works", async () => {
    await loadShop(database.db);
    process.on("unhandledRejection", note);
    world = await startWorld({
      db: database.db,
      mode: "socket",
      faults: [
        { method: "auth.test", kind: "reset", times: 2 },
        { method: "apps.connections.open", kind: "http", status: 503, times: 2 },
      ],
      start: { socketTiming: { backoffBaseMs: 20 } },
    });
    const w = world;
    await waitFor(() => w.slack.health().connected);
    await w.sandbox.control.post({ as: "U_AGENT", channel: "C_TICK", text: "hello" });
    await allArrived(1);
  });

  test("takes the bot token for the Web API and the app token for the socket, never one for the other (B8)", async () => {
    const w = await start();
    const opened = w.sandbox.control
      .journal(0, 1_000)
      .filter((entry) => entry.kind === "api" && entry.method === "apps.connections.open");
    expect(opened.length).toBeGreaterThanOrEqual(2);
    expect(opened.every((entry) => entry.kind === "api" && (entry.response as { ok: boolean }).ok)).toBe(
      true,
    );
  });
});
