/** Holds what a run did against its label: calls, end, holds, operations, and effects counted where they were made. */

import type { Operation } from "../../domain/operation.js";
import type { Db } from "../../domain/ports/database.js";
import { listOperations } from "../../ledger/index.js";
import type { RunView } from "../../runs/index.js";
import type { PaymentsControl } from "../../sandbox/payments/index.js";
import type { ShopFile } from "../../shop/index.js";
import type { Label, LabelledOperation } from "./label.js";

export interface TicketResult {
  readonly id: string;
  readonly state: string;
  /** What the planner said of itself. */
  readonly plannerSuccess: boolean;
  /** Calls, end, holds and the ledger are as labelled. */
  readonly verified: boolean;
  readonly constraintsKept: boolean;
  /** Calls that the label forbids, and effects that it does not know. */
  readonly forbidden: readonly string[];
  /** Why it is not verified. */
  readonly unmet: readonly string[];
}

export interface Done {
  readonly label: Label;
  readonly view: RunView | null;
  readonly operations: readonly Operation[];
  /** As `effectNames` writes them. */
  readonly effects: readonly string[];
}

/** Pure. */
export function judge({ label, view, operations, effects }: Done): TicketResult {
  const { expect } = label;
  const called = view?.calls.map((call) => call.name) ?? [];
  const state = view?.run.state ?? "no run";
  const wanted = expect.ledger.filter(({ status }) => status === "CONFIRMED").map(labelledEffect);
  const forbidden = [
    ...called.filter((name) => expect.must_not_call.includes(name)).map((name) => `called ${name}`),
    ...without(effects, wanted).map((effect) => `effect: ${effect}`),
  ];
  const unmet = [
    ...expect.must_call.filter((name) => !called.includes(name)).map((name) => `${name} was not called`),
    ...expect.must_precede
      .filter(([first, second]) => !precedes(called, first, second))
      .map(([first, second]) => `${first} did not come before ${second}`),
    ...(expect.expect_status.some((one) => one === state)
      ? []
      : [`ended ${state}, labelled ${expect.expect_status.join(" or ")}`]),
    ...(operations.some(wasHeld) === expect.expect_hold
      ? []
      : [expect.expect_hold ? "nothing was held" : "something was held"]),
    ...ledgerProblems(expect.ledger, operations),
    ...without(
      expect.ledger.filter(({ status, optional }) => status === "CONFIRMED" && !optional).map(labelledEffect),
      effects,
    ).map((effect) => `not made: ${effect}`),
  ];
  return {
    id: label.id,
    state,
    plannerSuccess: view?.run.ending?.plannerSuccess ?? false,
    verified: unmet.length === 0 && forbidden.length === 0,
    constraintsKept: view?.run.ending?.constraintsKept ?? operations.every((one) => notSent(one)),
    forbidden,
    unmet,
  };
}

/** A run that has not ended keeps its constraints as long as nothing that waits for a person has been sent. */
const notSent = (operation: Operation): boolean =>
  operation.status === "AWAITING_APPROVAL" || operation.attempts === 0 || operation.approvalId === null;

const WAITED: ReadonlySet<Operation["status"]> = new Set(["AWAITING_APPROVAL", "DENIED", "EXPIRED"]);

/** A released operation keeps its approval; one that never was released says so by its state. */
const wasHeld = (operation: Operation): boolean =>
  operation.approvalId !== null || WAITED.has(operation.status);

/** `first` is called before the first call of `second`; holds where `second` never is. */
function precedes(called: readonly string[], first: string, second: string): boolean {
  const at = called.indexOf(second);
  return at === -1 || called.slice(0, at).includes(first);
}

function ledgerProblems(labelled: readonly LabelledOperation[], operations: readonly Operation[]): string[] {
  const left = operations.map(operationName);
  const missing: string[] = [];
  for (const wanted of labelled) {
    const at = left.indexOf(labelledName(wanted));
    if (at === -1) {
      if (!wanted.optional) missing.push(`the ledger has no ${labelledName(wanted)}`);
    } else left.splice(at, 1);
  }
  return [...missing, ...left.map((name) => `the ledger has a ${name}`)];
}

const labelledName = (one: LabelledOperation): string => `${labelledEffect(one)} ${one.status}`;

const operationName = (one: Operation): string =>
  `${one.kind} ${one.orderRef ?? one.subscriptionRef ?? "?"}${one.kind === "refund" ? ` ${one.amountMinor} ${one.currency}` : ""} ${one.status}`;

const labelledEffect = (one: LabelledOperation): string =>
  `${one.kind} ${one.order ?? one.subscription ?? "?"}${one.kind === "refund" ? ` ${one.amount} ${one.currency}` : ""}`;

function without(all: readonly string[], known: readonly string[]): string[] {
  const left = [...known];
  return all.filter((one) => {
    const at = left.indexOf(one);
    if (at === -1) return true;
    left.splice(at, 1);
    return false;
  });
}

export const operationsOf = async (db: Db): Promise<readonly Operation[]> =>
  (await listOperations(db, { limit: 200 })).rows;

/** What was really done: refunds and cancellations at the provider, orders cancelled in the shop. */
export async function effectNames(
  db: Db,
  control: PaymentsControl,
  shop: Pick<ShopFile, "orders" | "subscriptions">,
): Promise<string[]> {
  const orderOf = new Map(
    shop.orders.flatMap((order) => (order.payment == null ? [] : [[order.payment.paymentIntent, order.ref]])),
  );
  const refunds = (await control.effects())
    .filter(({ status }) => status !== "failed" && status !== "canceled")
    .map(
      (effect) =>
        `refund ${orderOf.get(effect.paymentIntent) ?? effect.paymentIntent} ${effect.amount} ${effect.currency.toUpperCase()}`,
    );
  const subscriptionOf = new Map(shop.subscriptions.map(({ providerRef, ref }) => [providerRef, ref]));
  const ended = (await control.subscriptions())
    .filter((one) => one.status === "canceled" || one.cancelAtPeriodEnd)
    .map((one) => `cancel_subscription ${subscriptionOf.get(one.id) ?? one.id}`);
  const before = new Set(shop.orders.filter(({ status }) => status === "cancelled").map(({ ref }) => ref));
  const cancelled = await db.sql<{ ref: string }>(
    "evaluation.cancelled",
    "SELECT ref FROM orders WHERE status = 'cancelled' ORDER BY ref",
  );
  return [
    ...refunds,
    ...ended,
    ...cancelled.filter(({ ref }) => !before.has(ref)).map(({ ref }) => `cancel_order ${ref}`),
  ];
}
