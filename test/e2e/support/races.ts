/**
 * Two people at the same moment, against the whole product in two processes: one round of each race, counted in both books. The
 * orders are `withManyOrders`, £100.00 each.
 */
import { expect } from "vitest";
import { buttonLabels, NOT_NOW, type Thread } from "../../../src/app/demo/stage.js";
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

const TOO_LATE = /^Too late to deny: .*approved by (?:sam|<@U_SUP1>)/;

/** Two clicks at one moment, and what each was answered. */
interface Answers {
  readonly approver: string;
  readonly denier: string;
}

/** U_SUP1 approves while U_SUP2 submits the Deny form, each answered by one sentence in the thread or in the form. */
async function bothAtOnce({ stage, world }: House, thread: Thread): Promise<Answers> {
  const form = await stage.openForm("U_SUP2", thread, "Deny");
  const { channel, ts } = await stage.messageWith(thread, "Approve");
  const before = { U_SUP1: told(stage, "U_SUP1", thread), U_SUP2: told(stage, "U_SUP2", thread) };
  const [approve, deny] = await Promise.all([
    world.slack.control.click({ as: "U_SUP1", at: { channel, ts }, label: "Approve" }),
    world.slack.control.submitView({ as: "U_SUP2", viewId: form.id, values: { Note: "Normal wear." } }),
  ]);
  expect(approve.ok, JSON.stringify(approve)).toBe(true);
  const inForm = deny.ok ? undefined : Object.values(deny.errors ?? {}).join(" ");
  const answered = (who: keyof typeof before): Promise<string> =>
    stage.until(`${who} to be answered`, async () => stage.toldPrivately(who, thread).at(before[who]));
  const answers = { approver: await answered("U_SUP1"), denier: inForm ?? (await answered("U_SUP2")) };
  // Refused, or worked on for so long that the form only says so: either way it is still there.
  if (world.slack.control.modals("U_SUP2").length > 0)
    await world.slack.control.closeView({ as: "U_SUP2", viewId: form.id, all: true });
  return answers;
}

const told = (stage: House["stage"], who: string, thread: Thread): number =>
  stage.toldPrivately(who, thread).length;

/**
 * S-AP-3: one decision, and both read the same of it. `no race`: Slack did not say in time who one of the two is, they were told so, and
 * the other decided alone.
 */
export async function approveAgainstDeny(
  house: House,
  order: string,
): Promise<"denied" | "sent" | "no race"> {
  const { stage, db } = house;
  const thread = await held(house, order, "100.00");
  let answers = await bothAtOnce(house, thread);
  while (NOT_NOW.test(answers.approver) && NOT_NOW.test(answers.denier))
    answers = await bothAtOnce(house, thread);
  const { approver, denier } = answers;
  await runEnded(house, thread);
  const [operation, ...more] = await operationsOf(house, order);
  expect(more).toEqual([]);
  const [decided] = await db.sql<{ n: bigint; states: string[]; ends: bigint; incidents: bigint }>(
    "test.decided",
    `SELECT count(*) AS n, array_agg(state) AS states,
            (SELECT count(*) FROM operation_events WHERE operation_id = $1 AND to_status IN ('DENIED', 'DISPATCHED')) AS ends,
            (SELECT count(*) FROM incidents WHERE operation_id = $1) AS incidents
       FROM approvals WHERE operation_id = $1`,
    [operation?.id],
  );
  const sent = operation?.status === "CONFIRMED";
  if (!sent) expect(operation?.status).toBe("DENIED");
  // Nothing is wrong with any of it: on-call hears nothing.
  expect(decided).toEqual({ n: 1n, states: [sent ? "RELEASED" : "DENIED"], ends: 1n, incidents: 0n });
  expect(await committed(house, order)).toEqual(sent ? [10_000] : []);
  const raced = !NOT_NOW.test(approver) && !NOT_NOW.test(denier);
  if (raced) {
    expect(approver).toMatch(sent ? /^Approved/ : /^(?:Approved|Already denied by <@U_SUP2>)/);
    // Whoever came too late reads in the form what the card says; whoever was in time is told so.
    expect(denier).toMatch(sent ? TOO_LATE : approver.startsWith("Approved") ? /^Denied in time/ : /^Denied/);
  } else {
    expect(sent ? approver : denier).toMatch(sent ? /^Approved/ : /^Denied/);
  }
  const story = sent ? /Approved by <@U_SUP1>/ : /Denied by <@U_SUP2>/;
  await stage.until("every card to tell the same story", async () =>
    (await cardsAreClosed(house, order)).every((text) => story.test(text)),
  );
  return raced ? (sent ? "sent" : "denied") : "no race";
}

/** Plays rounds on the next orders until as many were races. */
export async function raceTimes(house: House, rounds: number, nextOrder: () => string): Promise<void> {
  for (let raced = 0; raced < rounds; )
    if ((await approveAgainstDeny(house, nextOrder())) !== "no race") raced += 1;
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
