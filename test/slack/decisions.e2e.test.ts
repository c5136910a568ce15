/**
 * The decision table over Slack's wire: every row is a signed click (and, where a form stands behind the button, a signed
 * submission) into the real Bolt app, with the workspace as the directory of people. What each row must come to is the table's;
 * here it is read off the sentence that the person gets and off the rows of the database.
 */
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ACTIONS, INPUTS, VIEWS } from "../../src/slack/actions.js";
import { expectOnlyWhatIsAllowed, insertCase, type Stand, standOf } from "../approvals/decision-cases.js";
import { cardOf } from "../approvals/decision-situations.js";
import { type DecisionRow, decisionRows } from "../approvals/decision-table.js";
import { policyOf } from "../domain/policy/contract-policy.js";
import { withDatabase } from "../support/database.js";
import { waitFor } from "../support/wait.js";
import { loadShop } from "./support/shop.js";
import { interactionForm, sendSigned } from "./support/signed.js";
import { CARD_TS, standCard } from "./support/standing-card.js";
import { startWorld, type World } from "./support/world.js";

/** What a person reads, by the table's word for it; written from CONTRACT §4, not from the code that says it. */
const SENTENCES: Readonly<Record<string, RegExp>> = {
  approved: /^Approved: .+ (checked once more and then sent|nothing is sent before)\.$/,
  recorded: /^Your approval is recorded: .+ One more person is needed before anything is sent\.$/,
  denied: /^Denied: .+ Nothing is sent\.$/,
  "denied-late": /^Denied in time: .+ is stopped before it was sent\.$/,
  "taken-back": /^Taken back: .+ had been approved, and is stopped before it was sent\.$/,
  already_voted: /^You approved this already, .+ One more person is needed/,
  already_sent: /^Too late to deny: .+ was approved by (<@U_\w+>|and| )+, .+ Nothing was changed\.$/,
  stale_card: /^This is an older card of .+ Nothing was changed\./,
  bad_suggestion: /./,
  repeat_amount: /^This needs the amount typed again: /,
  "ended:APPROVED": /^Already approved by (<@U_\w+>|and| )+, .+ It has not been sent yet\./,
  "ended:RELEASED": /^Already approved by (<@U_\w+>|and| )+, .+ It has /,
  "ended:DENIED": /^Already denied by <@U_\w+>, .+ Nothing was sent\./,
  "ended:EXPIRED": /^Too late: this expired .+ because nobody had decided\. Nothing was sent/,
  "ended:VOIDED": /^No longer valid: .+ Nothing was sent\.$/,
  "refused:not_in_role": /^This needs somebody in the role \w+, and you are not in it\./,
  "refused:is_filer": /^You asked for this yourself, so somebody else must decide\./,
  "refused:over_limit": /(is above the limit of the role|^The limit of the role \w+ does not name)/,
  "refused:standing":
    /^(Guests cannot do this|Apps cannot do this|This account is deactivated|This account has not joined|This person is not known|Members of another workspace cannot do this)/,
  "refused:unreadable": /could not be (asked|read)/,
};

/** Two accounts of one human share the organisation's id; the policy names it, as an administrator would. */
const policy = (selfApproval: boolean) =>
  policyOf({
    version: 1,
    kinds: {
      refund: {
        auto: { GBP: 5000 },
        approval: [
          { upTo: { GBP: 50000, USD: 50000 }, role: "supervisor", approvers: 1 },
          { upTo: { GBP: 200000, USD: 200000 }, role: "finance", approvers: 2 },
        ],
      },
      cancel_order: { auto: false, approval: [{ role: "supervisor", approvers: 1 }] },
      cancel_subscription: { auto: false, approval: [{ role: "supervisor", approvers: 1 }] },
    },
    approvals: { selfApproval },
    roles: {
      supervisor: {
        usergroups: ["S_SUP"],
        users: [
          ...["U_SUP1", "U_SUP2", "U_BOTH", "W_SAM"],
          ...["U_GUEST", "U_BOT", "U_GONE", "U_INVITED", "U_STRANGER", "U_EXTERN"],
        ],
        limit: { GBP: 50000, USD: 50000 },
      },
      finance: { usergroups: ["S_FIN"], users: ["U_FIN1", "U_FIN2", "U_BOTH", "W_FIONA", "U_GUEST"] },
      oncall: { users: ["U_ONC1", "U_ONC2"] },
    },
  });

const ORGANISATION: Readonly<Record<string, string>> = {
  U_SUP1: "W_SAM",
  U_ALT1: "W_SAM",
  U_FIN1: "W_FIONA",
  U_FINALT: "W_FIONA",
};
const personKeyOf = (user: string): string =>
  ORGANISATION[user] === undefined ? `T_HOME:${user}` : `E_ORG:${ORGANISATION[user]}`;

/** The card on the screen; a row's `card=0` is the one before it, `card=2` one that does not exist yet. */
const SHOWN = 2;

const database = withDatabase({ reset: "never" });
let hooks: Server;
/** What came to a response_url, by its path. */
const told = new Map<string, string>();

beforeAll(async () => {
  await loadShop(database.db);
  await database.db.sql(
    undefined,
    "UPDATE payments SET captured = 100000000 WHERE payment_intent = 'pi_ORD-10042'",
  );
  await database.db.sql(
    undefined,
    "INSERT INTO policy_versions (hash, text_hash, body, parsed) VALUES ('p', 'p', '', '{}')",
  );
  hooks = createServer((req, res) => {
    let body = "";
    req.setEncoding("utf8");
    req.on("data", (part: string) => {
      body += part;
    });
    req.on("end", () => {
      told.set(req.url ?? "", (JSON.parse(body) as { text: string }).text);
      res.end("ok");
    });
  });
  await new Promise<void>((resolve) => hooks.listen(0, "127.0.0.1", resolve));
});
afterAll(async () => {
  hooks.closeAllConnections();
  await new Promise((resolve) => hooks.close(resolve));
});

/** The workspace with everybody whom the table names. U_LOST is in it nowhere. */
async function open(mode: "http" | "socket"): Promise<World> {
  const world = await startWorld({ db: database.db, mode, still: true, sandbox: { rateLimits: false } });
  const { control } = world.sandbox;
  for (const [id, kind] of [
    ["U_BOTH", "member"],
    ["U_OTHER", "member"],
    ["U_ALT1", "member"],
    ["U_FINALT", "member"],
    ["U_EXTERN", "external"],
  ] as const) {
    const name = id.slice(2).toLowerCase();
    await control.addPerson({ id, name, realName: name, kind, channels: ["C_APPR"] });
  }
  await control.addPerson({ id: "U_NOGROUP", name: "nogroup", realName: "nogroup", channels: ["C_APPR"] });
  for (const [user, enterpriseUserId] of Object.entries(ORGANISATION)) {
    await control.changePerson({ user, enterpriseUserId });
  }
  for (const group of ["S_SUP", "S_FIN"]) await control.setUserGroup(group, { users: [] });
  // They filed: that is when the app reads a filer for the first time.
  await world.directory.person("U_SUP1", { maxAgeMs: 0 });
  return world;
}

/** How one payload reaches the app: signed by us over HTTP, or as an envelope over the socket. */
type Wire = (world: World, payload: Record<string, unknown>) => Promise<unknown>;

const signed: Wire = async (world, payload) => {
  const answer = await sendSigned(world, interactionForm(payload));
  expect(answer.status).toBe(200);
  return answer.body === "" ? null : (JSON.parse(answer.body) as unknown);
};
const enveloped: Wire = async (world, payload) => {
  const answer = await world.sandbox.control.injectInteraction(JSON.parse(JSON.stringify(payload)));
  expect(answer.acked).toBe(true);
  return answer.response;
};

type Answer = { readonly said: string } | { readonly form: Form };

let clicks = 0;

async function click(world: World, wire: Wire, row: DecisionRow, value: string): Promise<Answer> {
  clicks += 1;
  await standCard(database.db, value.split(".")[0] ?? "");
  const path = `/hooks/${clicks}`;
  const { port } = hooks.address() as AddressInfo;
  const before = lastCall(world);
  const actionId = { approve: ACTIONS.approve, deny: ACTIONS.deny, undo: ACTIONS.undo }[row.click.verb];
  await wire(world, {
    type: "block_actions",
    api_app_id: "A_CS",
    team: { id: "T_HOME", domain: "northwind" },
    user: personOf(row.person),
    channel: { id: "C_APPR" },
    container: { type: "message", channel_id: "C_APPR", message_ts: CARD_TS },
    message: { ts: CARD_TS },
    trigger_id: world.sandbox.control.issueTrigger(row.person),
    response_url: `http://127.0.0.1:${port}${path}`,
    actions: [
      { type: "button", action_id: actionId, block_id: "decide", value, action_ts: `1796000100.${clicks}` },
    ],
  });
  return waitFor(
    () => {
      const said = told.get(path);
      if (said !== undefined) return { said };
      const form = formOpened(world, before);
      return form === undefined ? null : { form };
    },
    { everyMs: 4, what: "an answer to the click" },
  );
}

const personOf = (id: string): object =>
  // Slack does not name a stranger's workspace in every payload; users.info does.
  id === "U_EXTERN" ? { id, team_id: "T_EXT" } : id === "U_STRANGER" ? { id } : { id, team_id: "T_HOME" };

interface Form {
  readonly callback_id: string;
  readonly private_metadata: string;
}

const lastCall = (world: World): number => world.sandbox.control.journal(0, 1).at(-1)?.seq ?? 0;

function formOpened(world: World, after: number): Form | undefined {
  return world.sandbox.control.journal(after, 1_000).flatMap((entry) => {
    const opened = entry.kind === "api" && entry.method === "views.open" && entry.fault === null;
    return opened ? [entry.args["view"] as unknown as Form] : [];
  })[0];
}

/** Submits a form as this person filled it in; resolves to the sentence that came of it, in the form or as a message. */
async function submit(
  world: World,
  wire: Wire,
  row: DecisionRow,
  form: Form,
  values: Readonly<Record<string, string>>,
): Promise<string> {
  clicks += 1;
  const after = lastCall(world);
  const state = Object.entries(values).map(([block, value]) => [
    block,
    { [block]: { type: "plain_text_input", value } },
  ]);
  const response = (await wire(world, {
    type: "view_submission",
    api_app_id: "A_CS",
    team: { id: "T_HOME", domain: "northwind" },
    user: personOf(row.person),
    view: {
      id: `V_${clicks}`,
      hash: `h${clicks}`,
      type: "modal",
      ...form,
      state: { values: Object.fromEntries(state) },
    },
  })) as { errors?: Record<string, string> } | null;
  if (response?.errors !== undefined) return Object.values(response.errors).join(" ");
  return waitFor(
    () =>
      world.sandbox.control.journal(after, 1_000).flatMap((entry) => {
        if (entry.kind !== "api") return [];
        const to = entry.method === "chat.postEphemeral" ? entry.args["user"] : entry.args["channel"];
        return entry.method.startsWith("chat.post") && to === row.person ? [String(entry.args["text"])] : [];
      })[0],
    { everyMs: 4, what: "an answer to the form" },
  );
}

/** The form that somebody would submit who made it up, or who kept it open since the button was still good. */
const forged = (callback_id: string, about: string): Form => ({
  callback_id,
  private_metadata: JSON.stringify({
    about,
    place: { channelId: "C_APPR", messageTs: CARD_TS, threadTs: null, home: false },
  }),
});

/** Names stand as text in a form, and as mentions in a message. */
const mentions = (text: string): string => text.replace(/(by|and) @?([\w]+)(?=,| and)/gu, "$1 <@U_$2>");

function expectSaid(row: DecisionRow, text: string): void {
  const takenBack = row.expected === "denied-late" && row.click.verb === "undo";
  const sentence = SENTENCES[takenBack ? "taken-back" : row.expected];
  if (sentence === undefined) throw new Error(`no sentence for ${row.expected}`);
  expect(mentions(text)).toMatch(sentence);
}

/** What the person types, for the row's verb. */
function valuesOf(row: DecisionRow): Record<string, string> {
  if (row.click.verb === "approve") return { [INPUTS.amount.block]: row.click.amount ?? "" };
  const { suggest } = row.click;
  const smaller: Record<string, string> = suggest === null ? {} : { [INPUTS.smaller.block]: pounds(suggest) };
  return { [INPUTS.note.block]: "Not like this.", ...smaller };
}

function pounds(minor: bigint): string {
  const digits = String(minor < 0n ? -minor : minor).padStart(3, "0");
  return `${minor < 0n ? "-" : ""}${digits.slice(0, -2)}.${digits.slice(-2)}`;
}

async function play(world: World, wire: Wire, row: DecisionRow): Promise<void> {
  const { db } = database;
  world.policy = policy(cardOf(row.card).selfNow);
  const unreadable = row.person === "U_NOGROUP";
  if (unreadable) {
    await db.sql(undefined, "DELETE FROM slack_groups");
    const fault = { method: "usergroups.users.list", kind: "error", error: "internal_error" } as const;
    world.sandbox.control.addApiFault({ ...fault, times: 1_000 });
  }
  const id = await insertCase(db, row, { personKeyOf, cardVersion: SHOWN });
  const value = `${id}.${(row.click.card ?? 1) + SHOWN - 1}`;
  const before = await standOf(db, id);
  const first = await click(world, wire, row, value);
  if ("form" in first) {
    expect((await standOf(db, id)).approval.votes, "a form decides nothing").toEqual(before.approval.votes);
    if (row.expected !== "repeat_amount" || row.click.amount !== null) {
      expectSaid(row, await submit(world, wire, row, first.form, valuesOf(row)));
    }
  } else {
    expectSaid(row, first.said);
    if (!CHANGING.has(row.expected)) await again(world, wire, row, value, await standOf(db, id));
  }
  expectOnlyWhatIsAllowed(row, before, await standOf(db, id));
  if (unreadable) world.sandbox.control.clearFaults();
}

const CHANGING: ReadonlySet<string> = new Set(["approved", "recorded", "denied", "denied-late"]);

/** Refused at the button: a form that is submitted without it is refused as well, for the same reason. */
async function again(
  world: World,
  wire: Wire,
  row: DecisionRow,
  value: string,
  before: Stand,
): Promise<void> {
  if (row.click.verb === "undo") return;
  const callback = row.click.verb === "deny" ? VIEWS.deny : VIEWS.approveAmount;
  const said = await submit(world, wire, row, forged(callback, value), valuesOf(row));
  expectSaid(row, said);
  expect((await standOf(database.db, before.approval.id)).approval.votes).toEqual(before.approval.votes);
}

describe("every row of the decision table, as signed requests", () => {
  let world: World;
  beforeAll(async () => {
    world = await open("http");
  });
  afterAll(() => world.stop());

  test.each(decisionRows().map((row) => [row.line, row] as const))("%s", async (_line, row) => {
    await play(world, signed, row);
  });
});

describe("one row of each kind, in Socket Mode", () => {
  let world: World;
  beforeAll(async () => {
    world = await open("socket");
  });
  afterAll(() => world.stop());

  const kinds = new Map(decisionRows().map((row) => [`${row.click.verb} ${row.expected}`, row]));
  test.each([...kinds.values()].map((row) => [row.line, row] as const))("%s", async (_line, row) => {
    await play(world, enveloped, row);
  });
});
