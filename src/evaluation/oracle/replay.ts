/**
 * Oracle replay: the known effects of each task as a planner's proposals, through the whole product. Right: each was made exactly
 * once and to the cent, at the provider, in the ledger and in the shop, and nothing else was; then what must not happen, which
 * must not even reach the provider.
 */
import type { Db } from "../../domain/ports/database.js";
import { createPayments, type Payments } from "../../payments/index.js";
import { readPolicyText } from "../../policy/index.js";
import { fileTicket } from "../../runs/index.js";
import {
  type PaymentsControl,
  type PaymentsSandbox,
  startPaymentsSandbox,
} from "../../sandbox/payments/index.js";
import { workUntilRest } from "../crew.js";
import { customerIdOf, type Desk, type DeskPorts, decideAll, openDesk } from "../tickets/desk.js";
import { stockProvider } from "../tickets/evaluate.js";
import { inRounds, paymentIntentOf, type Retail, type RetailTask, readRetail, retailShop } from "./retail.js";
import {
  againScript,
  rightScript,
  type Script,
  scriptMark,
  scriptPlanner,
  strangerScript,
  wrongStateScript,
} from "./scripts.js";

export interface OracleOptions {
  readonly ports: DeskPorts;
  readonly providerUrl: string;
  /** Folder with the retail data. */
  readonly dir: string;
  /** Every n-th task and customer; 1: all. */
  readonly every: number;
  readonly onProgress?: (done: string) => void;
}

export interface OracleReport {
  readonly tasks: number;
  /** Cancellations and returns of the file. */
  readonly effects: number;
  readonly refundedCents: number;
  /** Where provider, ledger or shop differ from the file, a sentence each. */
  readonly wrong: readonly string[];
  readonly mustNot: {
    /** Writes that were proposed although they must not happen. */
    readonly proposed: number;
    readonly held: number;
    readonly refused: number;
    /** Answered with what had been done before. */
    readonly repeated: number;
    /** Requests that reached the provider, and orders that changed. */
    readonly happened: readonly string[];
  };
  readonly right: boolean;
}

/** The agent does the small ones alone; people say yes to the others. */
const POLICY = `
version: 1
kinds:
  refund:
    orderStatuses: [delivered, cancelled]
    windowDays: 30
    auto: { USD: 60000 }
    never: { USD: 2000000 }
    approval: [{ upTo: { USD: 2000000 }, role: finance, approvers: 1 }]
    totals: [{ per: order, windowHours: 720, count: 1, then: hold }]
    coolingOffMinutes: {}
  cancel_order: { orderStatuses: [placed], auto: true, approval: [{ role: supervisor, approvers: 1 }] }
roles:
  filer: {}
  supervisor: { users: [U_SUP1] }
  finance: { users: [U_FIN1] }
  oncall: { users: [U_ONC1] }
`;
const SECRET_KEY = "sk_test_oracle";

export async function replayOracle(options: OracleOptions): Promise<OracleReport> {
  const retail = readRetail(options.dir);
  const sandbox = await startPaymentsSandbox({
    databaseUrl: options.providerUrl,
    port: 0,
    secretKey: SECRET_KEY,
  });
  const provider = createPayments({
    secretKey: SECRET_KEY,
    apiUrl: sandbox.url,
    clock: options.ports.clock,
  });
  try {
    const tasks = retail.tasks.filter((_, index) => index % options.every === 0);
    const sum = emptySum();
    for (const [index, round] of inRounds(tasks).entries()) {
      await playRound({ options, retail, sandbox, provider }, round, sum);
      options.onProgress?.(`round ${index + 1}: ${sum.tasks} of ${tasks.length} tasks`);
    }
    await playWrongStates({ options, retail, sandbox, provider }, sum);
    options.onProgress?.("orders in the wrong state: all proposed");
    return { ...sum, right: sum.tasks > 0 && sum.wrong.length === 0 && sum.mustNot.happened.length === 0 };
  } finally {
    await provider.close();
    await sandbox.stop();
  }
}

interface Sum {
  tasks: number;
  effects: number;
  refundedCents: number;
  readonly wrong: string[];
  readonly mustNot: { proposed: number; held: number; refused: number; repeated: number; happened: string[] };
}

const emptySum = (): Sum => ({
  tasks: 0,
  effects: 0,
  refundedCents: 0,
  wrong: [],
  mustNot: { proposed: 0, held: 0, refused: 0, repeated: 0, happened: [] },
});

interface Stage {
  readonly options: OracleOptions;
  readonly retail: Retail;
  readonly sandbox: PaymentsSandbox;
  readonly provider: Payments;
}

async function playRound(stage: Stage, tasks: readonly RetailTask[], sum: Sum): Promise<void> {
  const { retail, sandbox } = stage;
  const stranger = retail.customers.find(({ id }) => tasks.every((task) => task.customer !== id))?.id;
  if (stranger === undefined) throw new Error("every customer has a task in this round");
  const right = tasks.map((task) => rightScript(retail, task));
  const before = tasks.map((task) => strangerScript(retail, task, stranger));
  const after = tasks.map((task) => againScript(retail, task));
  const scripts = [...right, ...before, ...after];
  const customers = new Set([...tasks.map(({ customer }) => customer), stranger]);
  await atDesk(stage, customers, scripts, async (desk) => {
    const file = (some: readonly Script[]) => fileAll(stage, desk, some, scripts);
    await expectNothing(desk, sandbox.control, sum, async () => {
      await file(before);
      await workUntilRest(desk, nobody);
    });
    await file(right);
    await workUntilRest(desk, () => decideAll({ ...desk, decide: "approve" }));
    sum.tasks += tasks.length;
    await compare(desk.db, sandbox.control, retail, tasks, customers, sum);
    await expectNothing(desk, sandbox.control, sum, async () => {
      await file(after);
      await workUntilRest(desk, nobody);
    });
  });
}

const nobody = async (): Promise<number> => 0;

/** Every order that is not pending is to be cancelled, every one that is not delivered to be returned. */
async function playWrongStates(stage: Stage, sum: Sum): Promise<void> {
  const { retail, sandbox, options } = stage;
  const customers = retail.customers.filter((_, index) => index % options.every === 0).map(({ id }) => id);
  const scripts = customers.map((customer) =>
    wrongStateScript(
      customer,
      [...retail.orders.values()].filter((order) => order.customer === customer),
    ),
  );
  await atDesk(stage, new Set(customers), scripts, (desk) =>
    expectNothing(desk, sandbox.control, sum, async () => {
      await fileAll(stage, desk, scripts, scripts);
      await workUntilRest(desk, nobody);
    }),
  );
}

async function atDesk(
  { options, retail, sandbox, provider }: Stage,
  customers: ReadonlySet<string>,
  scripts: readonly Script[],
  play: (desk: Desk) => Promise<void>,
): Promise<void> {
  const shop = retailShop(retail, customers, options.ports.clock.now());
  await stockProvider(sandbox, shop);
  const desk = await openDesk({
    ports: options.ports,
    provider,
    planner: scriptPlanner(scripts),
    policy: readPolicyText(POLICY, "oracle policy"),
    shop: [shop],
    time: "jump",
  });
  try {
    await play(desk);
  } finally {
    await desk.close();
  }
}

async function fileAll(
  { options }: Stage,
  desk: Desk,
  some: readonly Script[],
  scripts: readonly Script[],
): Promise<void> {
  for (const script of some) {
    if (script.turns.every((turn) => turn.length === 0)) continue;
    await fileTicket(desk.runs, {
      source: "cli",
      dedupeKey: options.ports.ids.next("oracle_"),
      filer: "U_AGENT",
      text: scriptMark(scripts.indexOf(script)),
      customerId: await customerIdOf(desk.db, script.customer),
    });
  }
}

interface OrderRow {
  readonly ref: string;
  readonly status: string;
  readonly refunded: bigint;
  readonly reserved: bigint;
  readonly confirmed: bigint[];
}

const ORDERS = `SELECT o.ref, o.status, p.refunded, p.reserved,
    ARRAY(SELECT op.amount_minor FROM operations op WHERE op.order_id = o.id AND op.kind = 'refund' AND op.status = 'CONFIRMED') AS confirmed
  FROM orders o JOIN payments p ON p.order_id = o.id`;

/** Provider, ledger and shop, each held against the file: every order of the round, those that were to stay as they are too. */
async function compare(
  db: Db,
  control: PaymentsControl,
  retail: Retail,
  tasks: readonly RetailTask[],
  customers: ReadonlySet<string>,
  sum: Sum,
): Promise<void> {
  const wanted = new Map(tasks.flatMap(({ effects }) => effects).map((effect) => [effect.order, effect]));
  const made = new Map<string, number[]>();
  for (const { paymentIntent, amount } of await control.effects()) {
    made.set(paymentIntent, [...(made.get(paymentIntent) ?? []), amount]);
  }
  const rows = new Map(
    (await db.sql<OrderRow>("evaluation.oracle_orders", ORDERS)).map((row) => [row.ref, row]),
  );
  for (const order of [...retail.orders.values()].filter(({ customer }) => customers.has(customer))) {
    const effect = wanted.get(order.id);
    const cents = effect === undefined ? [] : [effect.refund_total_cents];
    const row = rows.get(order.id);
    const cancelled = effect?.type === "cancel_order" || order.status === "cancelled";
    const differs = (what: string, got: unknown, right: unknown): void => {
      if (String(got) !== String(right))
        sum.wrong.push(`${order.id}: ${what} is ${got}, the file says ${right}`);
    };
    differs("the provider's list of refunds", made.get(paymentIntentOf(order.id)) ?? [], cents);
    differs("the ledger's list of refunds", row?.confirmed, cents);
    differs("the payment's refunded amount", row?.refunded, cents[0] ?? 0);
    differs("the payment's reserved amount", row?.reserved, 0);
    differs("cancelled", row?.status === "cancelled", cancelled);
    if (effect !== undefined) sum.effects += 1;
    sum.refundedCents += cents[0] ?? 0;
  }
}

/** Plays what must come to nothing. Not one request may reach the provider, not one order may change. */
async function expectNothing(
  { db }: Desk,
  control: PaymentsControl,
  { mustNot }: Sum,
  play: () => Promise<void>,
): Promise<void> {
  const [posts, orders, calls] = [await postsOf(control), await statesOf(db), await writesOf(db)];
  await play();
  const after = await postsOf(control);
  if (after !== posts) mustNot.happened.push(`${after - posts} requests reached the provider`);
  for (const [ref, state] of await statesOf(db)) {
    if (orders.get(ref) !== state) mustNot.happened.push(`${ref} went from ${orders.get(ref)} to ${state}`);
  }
  const now = await writesOf(db);
  for (const key of ["proposed", "held", "refused", "repeated"] as const)
    mustNot[key] += now[key] - calls[key];
}

const postsOf = async (control: PaymentsControl): Promise<number> =>
  (await control.requests({ method: "POST" })).length;

async function statesOf(db: Db): Promise<Map<string, string>> {
  const rows = await db.sql<{ ref: string; state: string }>(
    "evaluation.oracle_states",
    "SELECT o.ref, o.status || ' ' || p.refunded AS state FROM orders o JOIN payments p ON p.order_id = o.id",
  );
  return new Map(rows.map(({ ref, state }) => [ref, state]));
}

interface Writes {
  readonly proposed: number;
  readonly held: number;
  readonly refused: number;
  readonly repeated: number;
}

async function writesOf(db: Db): Promise<Writes> {
  const [row] = await db.sql<Writes>(
    "evaluation.oracle_writes",
    `SELECT count(*)::int AS proposed, count(*) FILTER (WHERE state = 'held')::int AS held,
       count(*) FILTER (WHERE decision = 'refused')::int AS refused, count(*) FILTER (WHERE decision = 'same')::int AS repeated
     FROM tool_calls WHERE name IN ('issue_refund', 'cancel_order')`,
  );
  if (row === undefined) throw new Error("the database did not count");
  return row;
}
