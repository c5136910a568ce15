/** Plays every labelled ticket with a planner and judges each; or looks at the labels and the policy without playing any. */
import type { Planner } from "../../agent/index.js";
import type { Policy } from "../../domain/policy/policy.js";
import { createPayments, type Payments } from "../../payments/index.js";
import type { LoadedPolicy } from "../../policy/index.js";
import { type PaymentsSandbox, startPaymentsSandbox } from "../../sandbox/payments/index.js";
import { demoShop, type ShopFile } from "../../shop/index.js";
import { type DeskPorts, openDesk } from "./desk.js";
import { effectNames, judge, operationsOf, type TicketResult } from "./judge.js";
import { type Label, loadLabels, shopOf } from "./label.js";
import { labelProblems } from "./static-labels.js";
import { checkLimits, type LimitCheck } from "./static-limits.js";

export interface StaticReport {
  readonly labels: number;
  readonly problems: readonly string[];
  readonly limits: readonly LimitCheck[];
  readonly right: boolean;
}

/** No key, no database: the label set, and the policy on either side of each of its limits. */
export function evaluateStatic(policy: Policy, today: Date): StaticReport {
  const labels = loadLabels();
  const problems = labels.flatMap((label) => labelProblems([label], shopFor(label, today), policy));
  const limits = checkLimits(policy, today);
  return {
    labels: labels.length,
    problems,
    limits,
    right: problems.length === 0 && limits.length > 0 && limits.every(({ right }) => right),
  };
}

export interface PlayedReport {
  readonly planner: string;
  readonly tickets: readonly TicketResult[];
  /** Of all tickets, 0 to 1. */
  readonly rates: {
    readonly plannerSuccess: number;
    readonly verified: number;
    readonly constraintsKept: number;
  };
  readonly forbidden: number;
}

export interface PlayOptions {
  readonly ports: DeskPorts;
  /** Any database for the provider. */
  readonly providerUrl: string;
  readonly planner: Planner;
  readonly policy: LoadedPolicy;
  readonly time: "jump" | "wait";
  readonly only?: readonly string[];
  readonly onTicket?: (result: TicketResult) => void;
}

const SECRET_KEY = "sk_test_evaluation";

export async function evaluateTickets(options: PlayOptions): Promise<PlayedReport> {
  const { ports } = options;
  const sandbox = await startPaymentsSandbox({
    databaseUrl: options.providerUrl,
    port: 0,
    secretKey: SECRET_KEY,
  });
  const provider = createPayments({ secretKey: SECRET_KEY, apiUrl: sandbox.url, clock: ports.clock });
  try {
    const tickets: TicketResult[] = [];
    for (const label of loadLabels().filter(({ id }) => options.only?.includes(id) ?? true)) {
      const result = await play(options, { sandbox, provider }, label);
      tickets.push(result);
      options.onTicket?.(result);
    }
    return playedReport(options.planner.name, tickets);
  } finally {
    await provider.close();
    await sandbox.stop();
  }
}

async function play(
  options: PlayOptions,
  { sandbox, provider }: { sandbox: PaymentsSandbox; provider: Payments },
  label: Label,
): Promise<TicketResult> {
  const today = options.ports.clock.now();
  const shop = shopFor(label, today);
  await stockProvider(sandbox, shop);
  const more = shopOf(label, today);
  const desk = await openDesk({
    ports: options.ports,
    provider,
    planner: options.planner,
    policy: options.policy,
    shop: [demoShop({ today }), ...(more === null ? [] : [more])],
    time: options.time,
  });
  try {
    const view = await desk.handle({
      text: label.text,
      filer: label.filer,
      confirm: label.confirm,
      decide: label.decide,
      ...(label.customer === undefined ? {} : { customer: label.customer }),
    });
    return judge({
      label,
      view,
      operations: await operationsOf(desk.db),
      effects: await effectNames(desk.db, sandbox.control, shop),
    });
  } finally {
    await desk.close();
  }
}

/** The demo shop with what the label adds to it. */
function shopFor(label: Label, today: Date): Pick<ShopFile, "orders" | "subscriptions" | "customers"> {
  const shop = demoShop({ today });
  const more = shopOf(label, today) as { orders?: ShopFile["orders"] } | null;
  return { ...shop, orders: [...shop.orders, ...(more?.orders ?? [])] };
}

/** The provider knows the payments and subscriptions of the shop, and nothing else. */
export async function stockProvider(sandbox: PaymentsSandbox, shop: PaidShop): Promise<void> {
  await sandbox.control.reset();
  await seedProvider(sandbox.control, shop);
}

interface PaidShop {
  readonly orders?:
    | readonly {
        readonly payment?: { readonly paymentIntent: string; readonly captured: number } | null | undefined;
        readonly currency: string;
      }[]
    | undefined;
  readonly subscriptions?: readonly { readonly providerRef: string }[] | undefined;
}

/** Makes the payments and subscriptions of a shop known to the provider, beside what it knows. */
export async function seedProvider(
  control: PaymentsSandbox["control"],
  { orders = [], subscriptions = [] }: PaidShop,
): Promise<void> {
  for (const { payment, currency } of orders) {
    if (payment == null) continue;
    await control.seedPayment({
      paymentIntent: payment.paymentIntent,
      amount: payment.captured,
      currency,
    });
  }
  for (const { providerRef } of subscriptions) await control.seedSubscription({ id: providerRef });
}

function playedReport(planner: string, tickets: readonly TicketResult[]): PlayedReport {
  const rate = (of: (result: TicketResult) => boolean): number =>
    tickets.length === 0 ? 0 : tickets.filter(of).length / tickets.length;
  return {
    planner,
    tickets,
    rates: {
      plannerSuccess: rate((result) => result.plannerSuccess),
      verified: rate((result) => result.verified),
      constraintsKept: rate((result) => result.constraintsKept),
    },
    forbidden: tickets.reduce((sum, result) => sum + result.forbidden.length, 0),
  };
}
