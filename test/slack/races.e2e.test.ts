/**
 * S-AP-3 over the wire, fifty times: Approve by one person and the submitted Deny form of another leave in the same moment. One
 * decision and one end in the audit each time, and both people are told the same story.
 */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ACTIONS, INPUTS, VIEWS } from "../../src/slack/actions.js";
import { withDatabase } from "../support/database.js";
import { waitFor } from "../support/wait.js";
import { type Held, hold } from "./support/held.js";
import { loadShop } from "./support/shop.js";
import { interactionForm, sendSigned } from "./support/signed.js";
import { CARD_TS, standCard } from "./support/standing-card.js";
import { startWorld, type World } from "./support/world.js";

const ROUNDS = 50;
const database = withDatabase({ reset: "never" });
let world: World;

beforeAll(async () => {
  await loadShop(database.db);
  world = await startWorld({ db: database.db, mode: "http", still: true, sandbox: { rateLimits: false } });
  // Both are known: the race is between the two clicks, not between two readings of people.
  for (const user of ["U_SUP1", "U_SUP2"]) await world.directory.person(user, { maxAgeMs: 0 });
});
afterAll(() => world.stop());

const about = ({ approvalId }: Held): string => `${approvalId}.1`;
const common = (user: string) => ({
  api_app_id: "A_CS",
  team: { id: "T_HOME", domain: "northwind" },
  user: { id: user, team_id: "T_HOME" },
});

const approve = (user: string, held: Held, round: number) =>
  sendSigned(
    world,
    interactionForm({
      type: "block_actions",
      ...common(user),
      channel: { id: "C_APPR" },
      container: { type: "message", channel_id: "C_APPR", message_ts: CARD_TS },
      message: { ts: CARD_TS },
      trigger_id: world.sandbox.control.issueTrigger(user),
      actions: [
        {
          type: "button",
          action_id: ACTIONS.approve,
          block_id: "decide",
          value: about(held),
          action_ts: `1796000100.${round}`,
        },
      ],
    }),
  );

const deny = (user: string, held: Held, round: number) =>
  sendSigned(
    world,
    interactionForm({
      type: "view_submission",
      ...common(user),
      view: {
        id: `V_RACE_${round}`,
        hash: `h${round}`,
        type: "modal",
        callback_id: VIEWS.deny,
        private_metadata: JSON.stringify({
          about: about(held),
          place: { channelId: "C_APPR", messageTs: CARD_TS, threadTs: null, home: false },
        }),
        state: {
          values: {
            [INPUTS.note.block]: {
              [INPUTS.note.action]: { type: "plain_text_input", value: "Normal wear." },
            },
          },
        },
      },
    }),
  );

/** What this person was told since a call of the journal, as a message of their own. */
function told(user: string, after: number): string[] {
  return world.sandbox.control.journal(after, 1_000).flatMap((entry) => {
    if (entry.kind !== "api" || entry.method !== "chat.postEphemeral") return [];
    return entry.args["user"] === user ? [String(entry.args["text"])] : [];
  });
}

interface Round {
  readonly state: string;
  readonly status: string;
  readonly ends: number;
  readonly approver: string;
  readonly denier: string;
}

async function race(round: number): Promise<Round> {
  const held = await hold(world);
  await standCard(database.db, held.approvalId);
  const after = world.sandbox.control.journal(0, 1).at(-1)?.seq ?? 0;
  const [first, second] = round % 2 === 0 ? ([approve, deny] as const) : ([deny, approve] as const);
  const people = round % 2 === 0 ? (["U_SUP1", "U_SUP2"] as const) : (["U_SUP2", "U_SUP1"] as const);
  const answers = await Promise.all([first(people[0], held, round), second(people[1], held, round)]);
  expect(answers.map(({ status }) => status)).toEqual([200, 200]);
  const approver = await waitFor(() => told("U_SUP1", after)[0], {
    everyMs: 4,
    what: "the approver's answer",
  });
  const denier = await waitFor(() => told("U_SUP2", after)[0], { everyMs: 4, what: "the denier's answer" });
  const [row] = await database.db.sql<{ state: string; status: string; ends: bigint }>(
    undefined,
    `SELECT a.state, o.status, (SELECT count(*) FROM operation_events e WHERE e.operation_id = o.id AND e.to_status = 'DENIED') AS ends
       FROM approvals a JOIN operations o ON o.id = a.operation_id WHERE a.id = $1`,
    [held.approvalId],
  );
  return { state: row?.state ?? "", status: row?.status ?? "", ends: Number(row?.ends), approver, denier };
}

describe("S-AP-3: Approve and the submitted Deny form in the same moment", () => {
  test(`${ROUNDS} times: one decision, one end in the audit, one story`, async () => {
    for (let round = 0; round < ROUNDS; round += 1) {
      const { state, status, ends, approver, denier } = await race(round);
      // Nothing had been sent, so the no wins whichever came first.
      expect([state, status, ends], `round ${round}`).toEqual(["DENIED", "DENIED", 1]);
      if (denier.startsWith("Denied in time")) {
        expect(approver).toMatch(/^Approved: Refund of £180\.00 GBP/);
        expect(denier).toMatch(/had been approved, and is stopped before it was sent/);
      } else {
        expect(denier).toMatch(/^Denied: Refund of £180\.00 GBP .+ Nothing is sent\.$/);
        expect(approver).toMatch(/^Already denied by <@U_SUP2>, .+ Nothing was sent\. Note: Normal wear\.$/);
      }
    }
  }, 120_000);

  test("after the deadline, no sweep running: refused at the click, EXPIRED and not DENIED, and the form is told the same", async () => {
    const held = await hold(world, { expiresIn: -1 });
    await standCard(database.db, held.approvalId);
    const after = world.sandbox.control.journal(0, 1).at(-1)?.seq ?? 0;
    await approve("U_SUP1", held, ROUNDS);
    await waitFor(() => told("U_SUP1", after)[0], { everyMs: 4, what: "an answer" });
    expect(told("U_SUP1", after)[0]).toMatch(
      /^Too late: this expired .+ because nobody had decided\. Nothing was sent/,
    );
    const late = await deny("U_SUP2", held, ROUNDS);
    expect(late.body).toMatch(/Too late: this expired/);
    const [row] = await database.db.sql<{ state: string; end_code: string; status: string; votes: bigint }>(
      undefined,
      `SELECT a.state, a.end_code, o.status, (SELECT count(*) FROM votes v WHERE v.approval_id = a.id) AS votes
         FROM approvals a JOIN operations o ON o.id = a.operation_id WHERE a.id = $1`,
      [held.approvalId],
    );
    expect(row).toEqual({ state: "EXPIRED", end_code: "expired", status: "EXPIRED", votes: 0n });
  });
});
