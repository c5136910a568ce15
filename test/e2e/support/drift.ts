/**
 * The world moves on between card and click, and between click and dispatch, in each of ten ways, over Slack's wire and against the
 * provider's own count: nothing is sent, the approval is void, and the thread says what changed; where the wish can still be
 * carried out, exactly one new card asks again (S-AP-1 and its variants). Posts are paced, about one a second and channel: this takes
 * minutes and is played on demand (`npm run test:kills`).
 */
import { writeFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { withManyOrders } from "../../../src/app/demo/many-orders.js";
import { buttonLabels, type Thread } from "../../../src/app/demo/stage.js";
import type { MessageView } from "../../../src/sandbox/slack/control-types.js";
import type { ShopFile } from "../../../src/shop/index.js";
import { waitFor } from "../../support/wait.js";
import { withDatabases } from "./databases.js";
import { type House, openHouse } from "./house.js";

const POLICY = `version: 1
kinds:
  refund:
    orderStatuses: [delivered, cancelled]
    windowDays: 30
    auto: { GBP: 5000 }
    approval: [{ upTo: { GBP: 50000 }, role: supervisor, approvers: 1 }]
  cancel_order: { orderStatuses: [placed, packed], auto: false, approval: [{ role: supervisor, approvers: 1 }] }
  cancel_subscription: { auto: false, approval: [{ role: supervisor, approvers: 1 }] }
roles:
  filer: {}
  supervisor: { usergroups: [S_SUP], limit: { GBP: 50000 } }
  oncall: { usergroups: [S_ONC] }
`;
/** A second supervisor is wanted for one kind alone: its answer changes, no other does. */
const stricter = (kind: string, policy: string): string =>
  policy
    .split("\n")
    .map((line) => (line.includes(`${kind}:`) ? line.replace("approvers: 1", "approvers: 2") : line))
    .join("\n");

type Gap = "between card and click" | "between click and dispatch";
const GAPS: readonly Gap[] = ["between card and click", "between click and dispatch"];

interface Drift {
  readonly what: string;
  /** SQL on the order's rows; $1 its reference, $2 the ticket's message. Or the policy file. */
  readonly happens: string | "policy";
  readonly says: RegExp;
  readonly asksAgain: boolean;
  /** Both, where left out. */
  readonly gaps?: readonly Gap[];
}

const payment = (set: string): string =>
  `UPDATE payments SET ${set} FROM orders o WHERE o.id = order_id AND o.ref = $1`;

const DRIFTS: readonly Drift[] = [
  {
    what: "the amount left no longer covers it",
    happens: payment("captured = 9000"),
    says: /only £90\.00 GBP is left to refund on this order/,
    asksAgain: false,
  },
  {
    what: "the refundable balance shrank",
    happens: payment("refunded_elsewhere = 2000"),
    says: /Left to refund before this: £180\.00 GBP → £160\.00 GBP/,
    asksAgain: true,
    // Before the first send the provider's own list is read, and puts a number right that only we had wrong.
    gaps: ["between card and click"],
  },
  {
    what: "what was paid was corrected",
    happens: payment("captured = 17000"),
    says: /Paid: £180\.00 GBP → £170\.00 GBP/,
    asksAgain: true,
  },
  {
    what: "the order was cancelled",
    happens: "UPDATE orders SET status = 'cancelled', cancelled_at = countersign_now() WHERE ref = $1",
    says: /Order status: delivered → cancelled/,
    asksAgain: true,
  },
  {
    what: "the order is on its way again",
    happens: "UPDATE orders SET status = 'dispatched' WHERE ref = $1",
    says: /The order was delivered and is now dispatched/,
    asksAgain: false,
  },
  {
    what: "the order moved to another customer",
    happens: "UPDATE orders SET customer_id = (SELECT id FROM customers WHERE ref = 'CUS-1') WHERE ref = $1",
    says: /The order belonged to CUS-\d+ and now belongs to CUS-1/,
    asksAgain: false,
  },
  {
    what: "the ticket is about another customer",
    happens:
      "UPDATE tickets SET customer_id = (SELECT id FROM customers WHERE ref = 'CUS-1') WHERE message_ts = $2 AND $1 <> ''",
    says: /This was about customer CUS-\d+ and is now about CUS-1/,
    asksAgain: false,
  },
  {
    what: "the order's currency changed",
    happens: "UPDATE orders SET currency = 'EUR' WHERE ref = $1",
    says: /The order was in GBP and is now in EUR/,
    asksAgain: false,
  },
  {
    what: "the money would go to another payment",
    happens: payment("payment_intent = payment_intent || '_moved'"),
    says: /Where the money would go, or another detail that was approved, is no longer the same/,
    asksAgain: false,
  },
  {
    what: "it was made another occurrence",
    happens: "UPDATE operations SET occurrence = 2 WHERE order_ref = $1",
    says: /This was number 1 of its kind and is now number 2/,
    asksAgain: false,
    // Before it leaves, a row that is not the one that was decided on is stopped as such, whatever the approval says.
    gaps: ["between card and click"],
  },
  {
    what: "the policy asks for more people",
    happens: "policy",
    says: /Policy: .*one person.*2 people/,
    asksAgain: true,
  },
];

interface Case extends Drift {
  readonly gap: Gap;
  readonly ref: string;
  readonly text: string;
}

/** Both gaps of the chosen drifts, each on an order of its own. */
function casesOf(drifts: readonly Drift[]): readonly Case[] {
  return GAPS.flatMap((gap, g) =>
    drifts.flatMap((drift, n): Case[] => {
      if (drift.gaps?.includes(gap) === false) return [];
      if (drift.happens !== "policy") {
        const ref = `ORD-${7001 + g * drifts.length + n}`;
        return [{ ...drift, gap, ref, text: `The jacket of order ${ref} is torn. Please refund £100.00.` }];
      }
      const [ref, text] =
        g === 0 ? ["A-4471", "Please cancel order A-4471."] : ["SUB-1", "Please cancel subscription SUB-1."];
      return [{ ...drift, gap, ref, text }];
    }),
  );
}

const threads = new Map<string, Thread>();
let house: House;
let policy = POLICY;
/** Each press is a click of its own to Slack. */
let presses = 100_000;

/** Declares the tests of these drifts. Call once, at the top of a file; all when none are named. */
export function playDrifts(chosen?: readonly string[]): void {
  const CASES = casesOf(DRIFTS.filter(({ what }) => chosen?.includes(what) ?? true));
  const databases = withDatabases();

  beforeAll(async () => {
    house = await openHouse(databases, {
      transport: "http",
      policy: { text: POLICY },
      changeShop: (shop): ShopFile => withManyOrders(shop, GAPS.length * DRIFTS.length),
    });
    await house.stage.start();
    await Promise.all(CASES.map(fileAndHold));
    await ops("U_ONC1", "freeze all while the world moves");
    await moveOn(CASES.filter(({ gap }) => gap === "between card and click"));
    await Promise.all(CASES.map(approve));
    await Promise.all(CASES.filter(({ gap }) => gap === "between card and click").map(isVoid));
    await Promise.all(CASES.filter(({ gap }) => gap === "between click and dispatch").map(isPrepared));
    await moveOn(CASES.filter(({ gap }) => gap === "between click and dispatch"));
    await ops("U_ONC2", "thaw all");
    await Promise.all(CASES.map(isVoid));
    await waitFor(allIsPosted, { timeoutMs: POSTING_MS, everyMs: 250, what: "everything to be posted" });
  }, 720_000);
  afterAll(() => house.close());

  describe.each(GAPS)("%s", (gap) => {
    it.each(CASES.filter((one) => one.gap === gap).map((one) => [one.what, one] as const))(
      "%s",
      async (_what, one) => {
        const { stage } = house;
        const thread = threads.get(one.ref);
        if (thread === undefined) throw new Error("no thread");
        const asking = () =>
          stage
            .threadMessages(thread)
            .filter((message) => buttonLabels(message).some((label) => label.startsWith("Approve")));
        await stage.until("the thread to say what changed", async () => {
          const told = stage.threadMessages(thread).some((message) => /no longer valid/.test(message.text));
          return told && asking().length === (one.asksAgain ? 1 : 0);
        });
        const said = stage.threadMessages(thread).map(blocksOf).join("\n");
        expect(said).toMatch(one.says);
        const [first, successor, ...more] = await rowsOf(one);
        expect(more).toEqual([]);
        expect([first?.states[0], first?.ends[0]]).toEqual(["VOIDED", "drift"]);
        const now = successor ?? first;
        if (one.asksAgain) {
          const [card] = asking();
          expect(card === undefined ? "" : blocksOf(card)).toMatch(/Changed since the last card/);
          expect(card === undefined ? "" : blocksOf(card)).toMatch(one.says);
          expect([now?.status, now?.states.at(-1)]).toEqual(["AWAITING_APPROVAL", "PENDING"]);
        } else {
          expect(first?.status).toBe("VOIDED");
          expect(successor).toBeUndefined();
        }
      },
    );
  });

  describe("after all of it", () => {
    it("the provider was asked for nothing, nothing is reserved, and no order was cancelled here", async () => {
      const counts = await house.world.payments.control.counts();
      expect(counts).toMatchObject({ committed: 0, posts: 0, cancellations: 0 });
      const [reserved] = await house.db.sql<{ n: bigint }>(
        "test.reserved",
        "SELECT coalesce(sum(reserved), 0) AS n FROM payments",
      );
      expect(Number(reserved?.n)).toBe(0);
      const [order] = await house.db.sql<{ status: string }>(
        "test.order",
        "SELECT status FROM orders WHERE ref = 'A-4471'",
      );
      expect(order?.status).toBe("packed");
    });
  });
}

/** Posts leave about one a second and channel. A Home that somebody may have open is looked at again and again. */
const POSTING_MS = 400_000;

async function allIsPosted(): Promise<boolean> {
  const [left] = await house.db.sql<{ n: bigint }>(
    "test.unposted",
    `SELECT (SELECT count(*) FROM slack_outbox WHERE state = 'waiting')
          + (SELECT count(*) FROM slack_cards WHERE due_at IS NOT NULL AND state = 'live' AND kind <> 'home') AS n`,
  );
  return left?.n === 0n;
}

async function fileAndHold(one: Case): Promise<void> {
  const thread = await house.stage.file("U_AGENT", one.text);
  threads.set(one.ref, thread);
  const [ticket] = await house.stage.until(`the ticket about ${one.ref}`, async () => {
    const found = await house.db.sql<{ id: string }>(
      "test.ticket",
      "SELECT id FROM tickets WHERE message_ts = $1 AND binding = 'unconfirmed'",
      [thread.ts],
    );
    return found.length === 1 ? found : null;
  });
  await press("U_AGENT", "binding.confirm", ticket?.id ?? "");
  await house.stage.runIn(thread, "awaiting_approval");
}

/** A click in App Home as Slack sends it. Cards come about one a second; a person who had to wait for each would take minutes. */
async function press(user: string, action: string, value: string): Promise<void> {
  presses += 1;
  const clicked = await house.world.slack.control.injectInteraction({
    type: "block_actions",
    api_app_id: "A_CS",
    team: { id: "T_HOME", domain: "northwind" },
    user: { id: user, team_id: "T_HOME" },
    container: { type: "view", view_id: `V${user}` },
    view: { id: `V${user}`, type: "home" },
    actions: [
      { type: "button", action_id: action, block_id: "b", value, action_ts: `1796000100.${presses}` },
    ],
  });
  expect(clicked.acked).toBe(true);
}

async function ops(as: string, text: string): Promise<void> {
  // A switch may be turned twice: whoever was not answered in three seconds types it again, and nobody else.
  await house.stage.until(`/ops ${text} to be answered`, async () => {
    const sent = await house.world.slack.control.command({ as, channel: "C_OPS", command: "/ops", text });
    if (!sent.ok && sent.error !== "operation_timeout") throw new Error(sent.message);
    return sent.ok;
  });
  const word = text.startsWith("freeze") ? "Frozen: everything" : "Thawed: everything";
  await house.stage.until(word, async () =>
    house.world.slack.control
      .messages(as, "C_OPS", { ephemeral: true })
      .some((message) => message.text.startsWith(word)),
  );
}

async function moveOn(cases: readonly Case[]): Promise<void> {
  for (const one of cases) {
    if (one.happens === "policy")
      await changePolicy(one.ref === "SUB-1" ? "cancel_subscription" : "cancel_order");
    else {
      const statement = one.happens;
      await house.db.tx(async (tx) => {
        // As somebody with the database's own password could.
        await tx.sql(undefined, "SET LOCAL session_replication_role = replica");
        const parameters = statement.includes("$2") ? [one.ref, threads.get(one.ref)?.ts] : [one.ref];
        expect(await tx.sql(undefined, `${statement} RETURNING 1`, parameters)).toHaveLength(1);
      });
    }
  }
}

async function changePolicy(kind: string): Promise<void> {
  const active = async (): Promise<string> =>
    (await house.db.sql<{ hash: string }>("test.active", "SELECT hash FROM active_policy"))[0]?.hash ?? "";
  const before = await active();
  policy = stricter(kind, policy);
  writeFileSync(house.policyFile, policy);
  await house.stage.until("the changed policy to be in force", async () => (await active()) !== before);
}

async function approve(one: Case): Promise<void> {
  const [approval] = await house.db.sql<{ id: string }>(
    "test.approval",
    `SELECT a.id FROM approvals a JOIN operations o ON o.id = a.operation_id
      WHERE coalesce(o.order_ref, o.subscription_ref) = $1 AND a.state = 'PENDING'`,
    [one.ref],
  );
  await press("U_SUP1", "approval.approve", `${approval?.id ?? ""}.1`);
}

interface Row {
  readonly status: string;
  readonly states: string[];
  readonly ends: (string | null)[];
}

/** Operations of the case, oldest first, with their approvals. */
const rowsOf = ({ ref }: Case): Promise<Row[]> =>
  house.db.sql<Row>(
    "test.rows",
    `SELECT o.status, array_agg(a.state ORDER BY a.created_at, a.id) AS states, array_agg(a.end_code ORDER BY a.created_at, a.id) AS ends
       FROM operations o JOIN approvals a ON a.operation_id = o.id
      WHERE coalesce(o.order_ref, o.subscription_ref) = $1 GROUP BY o.id, o.status, o.created_at ORDER BY o.created_at, o.id`,
    [ref],
  );

async function isVoid(one: Case): Promise<void> {
  await house.stage.until(`${one.what} (${one.gap}): the approval to be void`, async () =>
    (await rowsOf(one)).some(({ states }) => states[0] === "VOIDED"),
  );
}

async function isPrepared(one: Case): Promise<void> {
  await house.stage.until(`${one.ref} to be prepared and held back by the freeze`, async () =>
    (await rowsOf(one)).some(({ status }) => status === "PREPARED"),
  );
}

const blocksOf = (message: MessageView): string => JSON.stringify(message.blocks);
