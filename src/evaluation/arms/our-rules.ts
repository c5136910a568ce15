/** Rules that the product sets itself, looked at from outside after each episode. */
import { holdingOf } from "../../domain/holding.js";
import type { Operation } from "../../domain/operation.js";
import { eventsOf } from "../../ledger/index.js";
import type { Stage } from "./arm.js";

export interface RuleReport {
  readonly broken: readonly string[];
  readonly askedBeyond: boolean;
}

export async function brokenRules(stage: Stage, operation: Operation): Promise<RuleReport> {
  const { world, scenario, paymentIntent } = stage;
  const posts = await world.control.requests({ method: "POST", path: "/v1/refunds", paymentIntent });
  const keys = new Set(posts.map((post) => post.idempotencyKey));
  const bodies = new Set(posts.map((post) => JSON.stringify(post.params)));
  const broken = [
    ...(keys.size > 1 ? ["the key changed between attempts"] : []),
    ...(bodies.size > 1 ? ["the request changed between attempts"] : []),
    ...(await balanceProblems(stage, operation)),
    ...(await eventProblems(stage, operation)),
  ];
  const askedBeyond = posts.some((post) => post.params["amount"] !== String(scenario.amountMinor));
  return { broken, askedBeyond };
}

/** $1 payment intent. */
const BALANCE = "SELECT reserved, refunded FROM payments WHERE payment_intent = $1";

async function balanceProblems(
  { world, scenario, paymentIntent }: Stage,
  operation: Operation,
): Promise<string[]> {
  const [balance] = await world.db.sql<{ reserved: bigint; refunded: bigint }>(
    "evaluation.balance",
    BALANCE,
    [paymentIntent],
  );
  if (balance === undefined) return ["the payment is gone"];
  const amount = BigInt(scenario.amountMinor);
  const holding = holdingOf(operation.status);
  const right = {
    reserved: holding === "reserved" ? amount : 0n,
    refunded: holding === "refunded" ? amount : 0n,
  };
  return balance.reserved === right.reserved && balance.refunded === right.refunded
    ? []
    : [`${operation.status} with reserved ${balance.reserved} and refunded ${balance.refunded} of ${amount}`];
}

async function eventProblems({ world }: Stage, operation: Operation): Promise<string[]> {
  const events = await eventsOf(world.db, operation.id);
  const last = events.findLast((event) => event.to !== null);
  const settled = events.filter((event) => event.to === "CONFIRMED");
  return [
    ...(last?.to === operation.status ? [] : [`the last event says ${last?.to ?? "nothing"}`]),
    ...(settled.length > 1 ? ["confirmed more than once"] : []),
  ];
}
