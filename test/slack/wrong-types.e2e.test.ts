/** Signed requests whose fields have other types than Slack's or Stripe's: acknowledged with a line in the log, or refused; never an error of ours. */
import fc from "fast-check";
import { afterEach, describe, expect, test } from "vitest";
import { withDatabase } from "../support/database.js";
import { loadShop } from "./support/shop.js";
import { interactionForm, type Signed, sendSigned } from "./support/signed.js";
import { startWorld, type World } from "./support/world.js";

const database = withDatabase();
let world: World | undefined;

afterEach(async () => {
  await world?.stop();
  world = undefined;
});

const HOME = { api_app_id: "A_CS", team_id: "T_HOME", team: { id: "T_HOME", domain: "home" } };
const PERSON = { user: { id: "U_AGENT", team_id: "T_HOME" }, trigger_id: "1.2.x" };

type Payload = { [key: string]: fc.JsonValue };
const EVENT: Payload = {
  ...HOME,
  type: "event_callback",
  event_id: "Ev1",
  event_time: 1_796_000_000,
  authorizations: [{ team_id: "T_HOME" }],
  event: {
    type: "message",
    channel: "C_TICK",
    user: "U_AGENT",
    ts: "1796000000.000100",
    text: "hello",
    files: [],
  },
};
const HOME_OPENED: Payload = {
  ...EVENT,
  event: { type: "app_home_opened", user: "U_AGENT", channel: "D1", tab: "home", event_ts: "1.1" },
};
const CLICK: Payload = {
  ...HOME,
  ...PERSON,
  type: "block_actions",
  container: { type: "message", channel_id: "C_APPR", message_ts: "1.1" },
  channel: { id: "C_APPR" },
  message: { ts: "1.1", blocks: [] },
  response_url: "http://127.0.0.1:9/none",
  actions: [{ type: "button", action_id: "old.button", block_id: "b", value: "x", action_ts: "1.1" }],
};
const VIEW: Payload = {
  ...HOME,
  ...PERSON,
  type: "view_submission",
  view: {
    id: "V1",
    hash: "h",
    type: "modal",
    callback_id: "old.form",
    private_metadata: "{}",
    state: { values: {} },
  },
};
const SHORTCUT: Payload = {
  ...HOME,
  ...PERSON,
  type: "message_action",
  callback_id: "old.shortcut",
  channel: { id: "C_TICK" },
  message: { ts: "1.1", user: "U_AGENT", text: "hello" },
  action_ts: "1.1",
};
const COMMAND: Payload = {
  ...HOME,
  command: "/nothing",
  text: "help",
  user_id: "U_AGENT",
  channel_id: "C_TICK",
  trigger_id: "1.2.x",
};

const json = (payload: Payload): Signed => ({ body: JSON.stringify(payload) });
const KINDS: [what: string, payload: Payload, sent: (payload: Payload) => Signed][] = [
  ["events", EVENT, json],
  ["events of App Home", HOME_OPENED, json],
  ["clicks", CLICK, interactionForm],
  ["forms", VIEW, interactionForm],
  ["shortcuts", SHORTCUT, interactionForm],
  ["commands as JSON", COMMAND, json],
];

/** Every path to a member of it. */
const pathsOf = (value: unknown, at: readonly string[] = []): string[][] =>
  typeof value !== "object" || value === null
    ? []
    : Object.entries(value).flatMap(([key, member]) => [[...at, key], ...pathsOf(member, [...at, key])]);

function withValue(payload: Payload, path: readonly string[], value: fc.JsonValue): Payload {
  const copy = structuredClone(payload);
  let at = copy;
  for (const key of path.slice(0, -1)) at = at[key] as Payload;
  at[path.at(-1) ?? ""] = value;
  return copy;
}

/** Among any others, the values that code trips over when it makes a text or a key of them. */
const wrong = fc.oneof(
  fc.constantFrom<fc.JsonValue>(
    null,
    true,
    0,
    -1.5,
    "",
    [],
    {},
    [null],
    { toString: 1, valueOf: 2 },
    { toString: null },
    { length: 3 },
    { id: {} },
    "\u0000",
    "\ud800",
    "x".repeat(5_000),
  ),
  fc.jsonValue({ maxDepth: 2 }),
);

async function start(): Promise<World> {
  await loadShop(database.db);
  world = await startWorld({ db: database.db, mode: "http", still: true });
  return world;
}

describe("a signed payload with a field of another type", () => {
  test.each(KINDS)("of %s is never an error of ours", { timeout: 120_000 }, async (_what, payload, sent) => {
    const w = await start();
    const statusOf = async (changed: Payload): Promise<number> => (await sendSigned(w, sent(changed))).status;
    for (const path of pathsOf(payload)) {
      for (const value of [{ toString: 1, valueOf: 2 }, [], null]) {
        const status = await statusOf(withValue(payload, path, value));
        expect(status < 500 ? "fine" : `${status} for ${path.join(".")} = ${JSON.stringify(value)}`).toBe(
          "fine",
        );
      }
    }
    await fc.assert(
      fc.asyncProperty(fc.constantFrom(...pathsOf(payload)), wrong, async (path, value) => {
        expect(await statusOf(withValue(payload, path, value))).toBeLessThan(500);
      }),
      { numRuns: 150 },
    );
    await fc.assert(
      fc.asyncProperty(fc.jsonValue({ maxDepth: 3 }), async (value) => {
        expect((await sendSigned(w, { body: JSON.stringify(value) })).status).toBeLessThan(500);
        expect(
          (
            await sendSigned(w, {
              body: new URLSearchParams({ payload: JSON.stringify(value) }).toString(),
              type: "application/x-www-form-urlencoded",
            })
          ).status,
        ).toBeLessThan(500);
      }),
      { numRuns: 50 },
    );
  });

  test("an object as the type is acknowledged, said in the log, and stores nothing", async () => {
    const w = await start();
    const answer = await sendSigned(w, json({ ...EVENT, event: undefined as never, type: { toString: 1 } }));
    expect(answer.status).toBe(200);
    expect(await database.db.sql(undefined, "SELECT 1 FROM slack_inbox")).toEqual([]);
  });
});
