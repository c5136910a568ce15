/**
 * States that no machine settles, forced behind the provider's wire, with only `/ops` and the cards to go by: what they say is true,
 * what they offer ends it, and the provider's count is right.
 */
import { describe, expect, it } from "vitest";
import { withManyOrders } from "../../src/app/demo/many-orders.js";
import { buttonLabels, type Thread } from "../../src/app/demo/stage.js";
import { setClockOffset } from "../../src/db/clock.js";
import { readable } from "../slack/support/see.js";
import { refundByHand } from "./support/by-hand.js";
import { withDatabases } from "./support/databases.js";
import { type House, type HouseOptions, inHouse } from "./support/house.js";
import { KILLED_BY_THEIR_OWN_TEST } from "./support/kill-list.js";
import { NOTHING_COUNTED } from "./support/nothing-counted.js";
import { onCall } from "./support/on-call.js";

const databases = withDatabases();
const LONG_MS = 180_000;
const WORLD: HouseOptions = {
  policy: { text: NOTHING_COUNTED },
  changeShop: (shop) => withManyOrders(shop, 5),
  env: { QUARANTINE_AFTER_MS: "1500" },
};

/** So that an answer can be waited for while somebody looks. */
const PATIENT = { PROVIDER_TIMEOUT_MS: "30000", LEASE_MS: "40000" };

interface Row {
  readonly id: string;
  readonly status: string;
}

async function inStatus(house: House, order: string, status: string): Promise<Row> {
  return house.stage.until(`${order} in ${status}`, async () => {
    const [row] = await house.db.sql<{ id: string; status: string }>(
      "test.of_order",
      "SELECT id, status FROM operations WHERE order_ref = $1 ORDER BY created_at DESC LIMIT 1",
      [order],
    );
    return row?.status === status ? row : null;
  });
}

async function held(house: House, order: string): Promise<Thread> {
  const { stage } = house;
  const thread = await stage.file("U_AGENT", `Order ${order}: it arrived torn. Please refund the £180.00.`);
  await stage.confirmBinding(thread);
  await stage.messageWith(thread, "Approve");
  return thread;
}

const incident = (house: House, kind: string): Promise<string> =>
  house.stage.until(`an incident of the kind ${kind}`, async () => {
    const [row] = await house.db.sql<{ id: string }>(
      "test.incident",
      "SELECT id FROM incidents WHERE kind = $1",
      [kind],
    );
    return row?.id;
  });

const effects = async (house: House): Promise<number[]> =>
  (await house.world.payments.control.effects()).map(({ amount }) => amount);

describe("in quarantine, and nothing at the provider", () => {
  it(
    "two people let it be sent again: it happens once, and every card about it ends with that",
    { timeout: LONG_MS },
    () =>
      inHouse(databases, { ...WORLD, env: { ...WORLD.env, ...PATIENT } }, async (house) => {
        const { stage, world } = house;
        const desk = onCall(house);
        await stage.start();
        world.payments.control.setWebhook(null);
        const thread = await held(house, "ORD-7001");
        const lost = stage.fault({ kind: "drop_before_commit", times: null });
        const down = stage.fault({ kind: "read_down", how: "500", times: null });
        await stage.approve("U_SUP1", thread);
        const { id } = await inStatus(house, "ORD-7001", "QUARANTINED");
        world.payments.control.disarm(lost);
        world.payments.control.disarm(down);
        await desk.press("U_ONC1", "Authorise retry", id);
        await desk.fill("U_ONC1");
        await desk.card("A second person is needed: authorise retry");
        expect(await desk.ops("U_ONC2", `show ${id}`)).toMatch(
          /\*Authorise retry\* was asked for by <@U_ONC1>.* waits for a second person/,
        );
        expect(await effects(house)).toEqual([]);
        stage.fault({ kind: "hang_then_commit", delayMs: 600_000 });
        await desk.press("U_ONC2", "Agree", "authorise retry");
        await inStatus(house, "ORD-7001", "DISPATCHED");
        await desk.cardSays("Being sent again: not settled yet", id);
        await world.payments.control.hurry();
        await inStatus(house, "ORD-7001", "CONFIRMED");
        const settled = await desk.cardSays(id, "Refunded");
        await stage.until("the operation's card to be settled", async () => {
          const card = await desk.card("Look it up by");
          return readable(card).startsWith("Settled\n") && buttonLabels(card).length === 0;
        });
        expect(settled.text).toMatch(/^Refunded|^\*Authorise retry\*/);
        expect(buttonLabels(await desk.card("Retry authorised"))).toEqual([]);
        expect(await desk.card("by <@U_ONC1>, agreed by <@U_ONC2>")).toBeDefined();
        await stage.runIn(thread, "resolved");
        expect(desk.channel()).not.toMatch(/the answer is not there yet|On-call has the case/);
        expect(await effects(house)).toEqual([18_000]);
        const sent = await world.payments.control.requests({ method: "POST" });
        expect(new Set(sent.map(({ idempotencyKey }) => idempotencyKey)).size).toBe(1);
        await house.assertAuditIntact();
      }),
  );

  it(
    "two people reject it, and it turns up after all: open again with its evidence, which confirms it",
    { timeout: LONG_MS },
    () =>
      inHouse(databases, WORLD, async (house) => {
        const { stage, world } = house;
        const desk = onCall(house);
        await stage.start();
        world.payments.control.setWebhook(null);
        const thread = await held(house, "ORD-7001");
        stage.fault({ kind: "drop_before_commit" });
        // Refused ever after, and never the same answer twice: nothing is proven of the first attempt.
        const refuses = stage.fault({ kind: "refuse", code: "charge_disputed", store: false, times: null });
        await stage.approve("U_SUP1", thread);
        const { id } = await inStatus(house, "ORD-7001", "QUARANTINED");
        expect(readable(await desk.card(id))).toContain("It could not be proven for every attempt");
        expect(await desk.ops("U_ONC1", `events ${id}`)).toContain(
          "Attempt 2 was not carried out, but an earlier one may have been",
        );
        world.payments.control.disarm(refuses);
        await desk.press("U_ONC1", "Reject", id);
        await desk.fill("U_ONC1");
        await desk.press("U_ONC2", "Agree", "reject");
        await inStatus(house, "ORD-7001", "REJECTED");
        await stage.runIn(thread, "escalated");
        const runSays = (standing: string): Promise<true> =>
          stage.until(
            `the run's message to say "${standing}"`,
            async () =>
              stage
                .threadMessages(thread)
                .some((one) => readable(one).includes(`Refund on order ORD-7001 – ${standing}`)) || undefined,
          );
        await runSays(
          "not carried out, by on-call's word alone: the provider did not show it, which is no proof",
        );
        const heard = await stage.until("the thread to hear who rejected it", async () => {
          const all = stage.threadMessages(thread).map(readable).join("\n");
          return all.includes("Rejected by <@U_ONC1> and <@U_ONC2>.") ? all : undefined;
        });
        expect(heard).not.toMatch(/No money moved|The provider refused/u);
        await refundByHand(house, { payment: "pi_many_7001", amount: 18_000, names: id });
        await incident(house, "contradiction");
        await inStatus(house, "ORD-7001", "QUARANTINED");
        const again = await desk.cardSays(id, "Before this: *Rejected* by <@U_ONC1>, agreed by <@U_ONC2>");
        await runSays("evidence against how it ended, with on-call");
        expect(readable(again)).toContain("Evidence came that contradicts how it had ended.");
        const shown = await desk.ops("U_ONC1", `show ${id}`);
        expect(shown).toMatch(
          /Incident: Contradicting evidence · ORD-7001 · £180\.00 GBP (?:· (?:re|pi)_\w+ )?`inc_/,
        );
        // What was read before the effect came is no answer any more.
        expect(shown).not.toContain("The provider shows nothing of it");
        await desk.press("U_ONC2", "Confirm committed", id);
        await desk.fill("U_ONC2");
        await inStatus(house, "ORD-7001", "CONFIRMED");
        await runSays("done");
        expect(await effects(house)).toEqual([18_000]);
        const finding = await stage.until("the incident's card to say that it is settled", async () => {
          const card = readable(await desk.card("Incident: contradicting evidence"));
          return card.includes("has been settled since") ? card : undefined;
        });
        expect(finding).toMatch(/\*State now\*\s+done/u);
        expect(finding).not.toContain("Decide it anew");
        await house.assertAuditIntact();
      }),
  );
});

describe("the books do not agree", () => {
  it(
    "an effect that no operation explains: told, everything frozen by itself, what waits goes on after the thaw",
    {
      timeout: LONG_MS,
    },
    () =>
      inHouse(databases, WORLD, async (house) => {
        const { stage } = house;
        const desk = onCall(house);
        await stage.start();
        await refundByHand(house, { payment: "pi_many_7002", amount: 4_200, names: `op_${"0".repeat(31)}1` });
        await incident(house, "orphan_effect");
        expect(readable(await desk.card("Incident: effect without an operation"))).toMatch(
          /£42\.00 GBP[\s\S]*What to do/,
        );
        await incident(house, "freeze_tripped");
        expect(readable(await desk.card("Incident: frozen automatically"))).toContain("*Frozen*\neverything");
        const thread = await held(house, "ORD-7001");
        await stage.approve("U_SUP1", thread);
        const { id } = await inStatus(house, "ORD-7001", "PREPARED");
        expect(await desk.ops("U_ONC1", `show ${id}`)).toContain(
          "It is not sent as long as this holds: Sending of everything is frozen since",
        );
        const health = await desk.ops("U_ONC1", "health");
        expect(health).toContain("Sending of everything is frozen");
        expect(health).toContain("1 effect that no operation explains");
        expect(await desk.ops("U_ONC1", "freeze")).toMatch(
          /^Frozen already: everything since .* by Countersign itself/,
        );
        expect(await effects(house)).toEqual([4_200]);
        expect(await desk.ops("U_ONC1", "thaw")).toContain("What waited goes on.");
        await inStatus(house, "ORD-7001", "CONFIRMED");
        for (const kind of ["orphan_effect", "freeze_tripped"]) {
          await desk.ops("U_ONC1", "incidents");
          const found = await incident(house, kind);
          await desk.press("U_ONC1", "Close", found);
          await desk.fill("U_ONC1", { Reason: "A script of finance." });
          await stage.until(
            "the card to have no button",
            async () => buttonLabels(await desk.card(found)).length === 0,
          );
        }
        expect(await desk.ops("U_ONC1", "incidents")).toContain("No incident is open.");
        expect(await effects(house)).toEqual([4_200, 18_000]);
        await house.assertAuditIntact();
      }),
  );

  it(
    "a confirmed operation whose effect is missing: told with its reference, and its operation names the finding",
    {
      timeout: LONG_MS,
    },
    () =>
      inHouse(databases, WORLD, async (house) => {
        const { stage, db } = house;
        const desk = onCall(house);
        await stage.start();
        const thread = await held(house, "ORD-7001");
        await stage.approve("U_SUP1", thread);
        const { id } = await inStatus(house, "ORD-7001", "CONFIRMED");
        await stage.runIn(thread, "resolved");
        stage.fault({ kind: "lying_read", lie: "hide", times: null });
        // Older than the provider's list may lag.
        await setClockOffset(db, 11 * 60_000);
        await incident(house, "missing_effect");
        const [effect] = await house.world.payments.control.effects();
        expect(readable(await desk.card("confirmed operation without an effect"))).toContain(effect?.id);
        expect(await desk.ops("U_ONC1", `show ${id}`)).toContain(
          "Incident: Confirmed operation without an effect",
        );
        await inStatus(house, "ORD-7001", "CONFIRMED");
        expect(await effects(house)).toEqual([18_000]);
        await house.assertAuditIntact();
      }),
  );
});

describe("a freeze whose process dies before any card says so", () => {
  it.each(KILLED_BY_THEIR_OWN_TEST)(
    "%s: nothing is sent, and after the next start the cards say it",
    {
      timeout: LONG_MS,
    },
    (name) =>
      inHouse(databases, WORLD, async (house) => {
        const { stage, world, db } = house;
        await stage.start({ COUNTERSIGN_FAILPOINTS: `${name}=kill@1` });
        const thread = await held(house, "ORD-7001");
        await world.slack.control.command({
          as: "U_ONC1",
          channel: "C_OPS",
          command: "/ops",
          text: "freeze refund it smells",
        });
        await stage.productEnded();
        expect(
          await db.sql("test.frozen", "SELECT kind FROM freeze_switches WHERE frozen AND cards_behind"),
        ).toEqual([{ kind: "refund" }]);
        await stage.start();
        await stage.until("the approval's card to say that refunds are frozen", async () =>
          stage.threadMessages(thread).some((one) => readable(one).includes("Refunds are frozen")),
        );
        await stage.until(
          "the switch to be shown",
          async () =>
            (await db.sql("test.behind", "SELECT 1 FROM freeze_switches WHERE cards_behind")).length === 0,
        );
        await stage.approve("U_SUP1", thread);
        await inStatus(house, "ORD-7001", "PREPARED");
        expect(await effects(house)).toEqual([]);
        await onCall(house).ops("U_ONC2", "thaw refund");
        await inStatus(house, "ORD-7001", "CONFIRMED");
        expect(await effects(house)).toEqual([18_000]);
        await house.assertAuditIntact();
      }),
  );
});
