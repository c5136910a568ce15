/**
 * Two people at the same moment, against the whole product in two processes: one round of each race, counted in both books. The
 * orders are `withManyOrders`, £100.00 each.
 */
import { expect } from "vitest";
import { buttonLabels, type Thread } from "../../../src/app/demo/stage.js";
import type { House } from "./house.js";

export interface Operation {
  readonly id: string;
  readonly status: string;
  readonly approvalId: string | null;
}

export const operationsOf = (house: House, order: string): Promise<Operation[]> =>
  house.db.sql<Operation>(
    "test.operations_of",
    `SELECT id, status, approval_id AS "approvalId" FROM operations WHERE order_ref = $1 ORDER BY created_at, id`,
    [order],
  );

/** A refund of an order, filed, confirmed and held. */
export async function held(house: House, order: string, pounds: string): Promise<Thread> {
  const { stage } = house;
  const thread = await stage.file(
    "U_AGENT",
    `The jacket of order ${order} is torn. Please refund £${pounds}.`,
  );
  await stage.confirmBinding(thread);
  await stage.runIn(thread, "awaiting_approval");
  return thread;
}

export async function cardIn(house: House, thread: Thread): Promise<{ channel: string; ts: string }> {
  const { channel, ts } = await house.stage.messageWith(thread, "Approve");
  return { channel, ts };
}

/** What the provider has really made of this order's payment. */
export const committed = async (house: House, order: string): Promise<number[]> =>
  (await house.world.payments.control.effects({ paymentIntent: `pi_many_${order.slice(4)}` })).map(
    (effect) => effect.amount,
  );

/** Every message in the approvals channel that showed this order's approval has lost its buttons. */
export async function cardsAreClosed({ stage, world }: House, order: string): Promise<string[]> {
  return stage.until(`the cards of ${order} to be closed`, async () => {
    const cards = world.slack.control
      .messages("U_SUP1", "C_APPR")
      .filter((message) => message.text.includes(order));
    return cards.length > 0 &&
      cards.every((message) => buttonLabels(message).every((label) => !/^(Approve|Deny)/.test(label)))
      ? cards.map((message) => message.text)
      : null;
  });
}

const runEnded = (house: House, thread: Thread): Promise<unknown> =>
  house.stage.runIn(thread, "resolved", "escalated");

/** S-AP-3: U_SUP1 approves while U_SUP2 submits the Deny form. One decision, and both read the same of it. */
export async function approveAgainstDeny(house: House, order: string): Promise<"denied" | "sent"> {
  const { stage, world, db } = house;
  const thread = await held(house, order, "100.00");
  const at = await cardIn(house, thread);
  await world.slack.control.click({ as: "U_SUP2", at, label: "Deny" });
  const form = await stage.until("the form of U_SUP2", async () =>
    world.slack.control.modals("U_SUP2").at(-1),
  );
  const [approve, deny] = await Promise.all([
    world.slack.control.click({ as: "U_SUP1", at, label: "Approve" }),
    world.slack.control.submitView({ as: "U_SUP2", viewId: form.id, values: { Note: "Normal wear." } }),
  ]);
  expect(approve.ok).toBe(true);
  await runEnded(house, thread);
  if (!deny.ok) await world.slack.control.closeView({ as: "U_SUP2", viewId: form.id, all: true });
  const [operation, ...more] = await operationsOf(house, order);
  expect(more).toEqual([]);
  const [decided] = await db.sql<{ n: bigint; states: string[]; ends: bigint }>(
    "test.decided",
    `SELECT count(*) AS n, array_agg(state) AS states,
            (SELECT count(*) FROM operation_events WHERE operation_id = $1 AND to_status IN ('DENIED', 'DISPATCHED')) AS ends
       FROM approvals WHERE operation_id = $1`,
    [operation?.id],
  );
  const sent = operation?.status === "CONFIRMED";
  if (!sent) expect(operation?.status).toBe("DENIED");
  expect(decided).toEqual({ n: 1n, states: [sent ? "RELEASED" : "DENIED"], ends: 1n });
  expect(await committed(house, order)).toEqual(sent ? [10_000] : []);
  // Whoever came too late reads in the form what the card says; whoever was in time is told so.
  if (!deny.ok) expect(JSON.stringify(deny.errors)).toMatch(/Too late to deny: .*approved by sam/);
  expect(deny.ok).toBe(!sent);
  await stage.until("U_SUP1 to be answered", async () =>
    stage
      .toldPrivately("U_SUP1", thread)
      .some((text) => (sent ? /^Approved/ : /^(Approved|Already denied)/).test(text)),
  );
  const story = sent ? /Approved by <@U_SUP1>/ : /Denied by <@U_SUP2>/;
  await stage.until("every card to tell the same story", async () =>
    (await cardsAreClosed(house, order)).every((text) => story.test(text)),
  );
  return sent ? "sent" : "denied";
}

/** S-PAY-6: £60 and £70 of one payment of £100, approved by two people at once. Exactly one is made; the other is told what is left. */
export async function twoRefundsOfOne(house: House, order: string): Promise<void> {
  const { db, stage } = house;
  const sixty = await held(house, order, "60.00");
  const seventy = await held(house, order, "70.00");
  await Promise.all([cardIn(house, sixty), cardIn(house, seventy)]);
  await Promise.all([stage.approve("U_SUP1", sixty), stage.approve("U_SUP2", seventy)]);
  await Promise.all([runEnded(house, sixty), runEnded(house, seventy)]);
  const operations = await operationsOf(house, order);
  expect(operations.filter(({ status }) => status === "CONFIRMED")).toHaveLength(1);
  expect(operations.filter(({ status }) => status === "VOIDED")).toHaveLength(operations.length - 1);
  const made = await committed(house, order);
  expect(made).toHaveLength(1);
  const [payment] = await db.sql<{ reserved: bigint; refunded: bigint }>(
    "test.payment_of",
    "SELECT p.reserved, p.refunded FROM payments p JOIN orders o ON o.id = p.order_id WHERE o.ref = $1",
    [order],
  );
  expect(payment).toMatchObject({ reserved: 0n, refunded: BigInt(made[0] ?? 0) });
  const loser = made[0] === 6_000 ? seventy : sixty;
  const left = made[0] === 6_000 ? "£40.00" : "£30.00";
  await stage.until(`the thread to say that only ${left} is left`, async () =>
    stage.threadMessages(loser).some((message) => JSON.stringify(message).includes(`nly ${left}`)),
  );
}
