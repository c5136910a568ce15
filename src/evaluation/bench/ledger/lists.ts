/**
 * What the reconciler's scan, the lists and the gate's facts cost as the history grows: the product's own statements, explained by
 * the database under a plan that may and one that must not look at the parameters; the dearer of the two counts.
 */
import pg from "pg";
import { listPending } from "../../../approvals/index.js";
import { type OpenDb, openDb, PLAN_ONCE } from "../../../db/connect.js";
import type { OperationId } from "../../../domain/ids.js";
import type { Db } from "../../../domain/ports/database.js";
import {
  dueOperations,
  eventsOf,
  getOperation,
  listOperations,
  openCounts,
  takeDue,
} from "../../../ledger/index.js";
import { activatePolicy, makeJudge, readPolicyText } from "../../../policy/index.js";
import { BACKLOG, putBacklog, putHistory } from "./history.js";
import { machineOf } from "./machine.js";
import { benchPolicy, customerRef, filer, orderRef, paymentIntent } from "./premises.js";
import { listen, type Sent, wireText } from "./record.js";
import { type BenchPorts, productOn, seed } from "./scene.js";

export interface ReadCost {
  readonly size: number;
  readonly ms: number;
  /** Pages of 8 kB that were looked at, from memory or disk. */
  readonly buffers: number;
}

export interface ListsBench {
  readonly machine: string;
  readonly sizes: readonly number[];
  readonly reads: ReadonlyMap<string, readonly ReadCost[]>;
  readonly wrong: readonly string[];
}

/**
 * Bounded by the hours of its windows, not by a page: a window that few entries lie in has fewer minutes and hours to add up, so
 * its growth from a small history says nothing.
 */
export const FACTS = "the gate's facts, all totals";

const ORDERS = 2_000;
/** The backlog's numbers lie above every history. */
const BACKLOG_FROM = 100_000_000;
const SCAN = 50;

export async function runLists(
  ports: BenchPorts,
  url: string,
  options: { rows: readonly number[]; onSize?: (size: number) => void },
): Promise<ListsBench> {
  await seed(ports, url, { orders: ORDERS, lanes: 1 });
  const db = openDb({ url, applicationName: "countersign-bench", poolSize: 2 });
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  // Explained under the settings that the product's connections have.
  const explainer = new pg.Client({ connectionString: url, options: PLAN_ONCE });
  await explainer.connect();
  const reads = new Map<string, ReadCost[]>();
  const wrong: string[] = [];
  try {
    await client.query("SET statement_timeout = 0; SET synchronous_commit = off");
    await activatePolicy(db, readPolicyText(benchPolicy("totals"), "the benchmark's policy"));
    const filling = { sql: fillingOn(client) };
    await putBacklog(filling, BACKLOG_FROM);
    let filled = 0;
    for (const size of options.rows) {
      options.onSize?.(size);
      await putHistory(filling, filled + 1, size);
      filled = size;
      await client.query("VACUUM ANALYZE");
      for (const [what, read] of readsOf(ports, db, size)) {
        const sent: Sent[] = [];
        const found = await read(listen(db, sent, { undo: true }));
        if (!found) wrong.push(`${what} at ${size}: what should be found was not`);
        const costs = reads.get(what) ?? [];
        costs.push({ size, ...(await costOf(explainer, sent)) });
        reads.set(what, costs);
      }
    }
    return { machine: await machineOf(db), sizes: options.rows, reads, wrong };
  } finally {
    await explainer.end();
    await client.end();
    await db.close();
  }
}

/** On one connection: bulk loads take longer than the product's statements may. */
const fillingOn =
  (client: pg.Client) =>
  async <R>(_name: string | undefined, text: string, params?: readonly unknown[]): Promise<R[]> =>
    (await client.query(text, [...(params ?? [])])).rows as R[];

/** Each read of the product, and whether it found what is there. */
function readsOf(ports: BenchPorts, db: OpenDb, size: number): [string, (on: Db) => Promise<boolean>][] {
  const middle: OperationId = `op_${Math.ceil(size / 2)
    .toString(16)
    .padStart(32, "0")}`;
  const { ctx } = productOn(ports, db, "http://127.0.0.1:1");
  return [
    ["reconciler: what is due", async (on) => (await dueOperations(on, { limit: SCAN })).length === SCAN],
    [
      "reconciler: take what is due",
      async (on) => (await takeDue({ ...ctx, db: on }, { worker: "bench", limit: 1 })).length === 1,
    ],
    ["ops list", async (on) => (await listOperations(on, {})).rows.length === SCAN],
    [
      "ops list, deep in the history",
      async (on) => {
        const at = await getOperation(db, middle);
        if (at === null) return false;
        const cursor = Buffer.from(`${at.createdAt.toISOString()} ${at.id}`).toString("base64url");
        return (await listOperations(on, { cursor })).rows.length === SCAN;
      },
    ],
    [
      "ops list --status OUTCOME_UNKNOWN",
      async (on) => (await listOperations(on, { status: "OUTCOME_UNKNOWN" })).rows.length === SCAN,
    ],
    [
      "ops list --status QUARANTINED",
      async (on) => (await listOperations(on, { status: "QUARANTINED" })).rows.length === SCAN,
    ],
    [
      "ops list --status CONFIRMED",
      async (on) => (await listOperations(on, { status: "CONFIRMED" })).rows.length === SCAN,
    ],
    [
      "ops list --status REJECTED",
      async (on) =>
        (await listOperations(on, { status: "REJECTED" })).rows.every(({ status }) => status === "REJECTED"),
    ],
    [
      "ops show, ops events",
      async (on) => (await getOperation(on, middle)) !== null && (await eventsOf(on, middle)).length === 1,
    ],
    ["how many are open", async (on) => (await openCounts(on)).OUTCOME_UNKNOWN === BACKLOG.unknown],
    ["approvals list", async (on) => (await listPending(on)).approvals.length > 0],
    [FACTS, (on) => judged(on)],
  ];
}

async function judged(on: Db): Promise<boolean> {
  const judge = makeJudge();
  const n = 7;
  const [{ id } = { id: "" }] = await on.sql<{ id: string }>(
    "bench.order",
    "SELECT id FROM orders WHERE ref = $1",
    [orderRef(n)],
  );
  const judgement = await on.tx((tx) =>
    judge.judge(tx, {
      intent: {
        kind: "refund",
        customerRef: customerRef(n),
        orderRef: orderRef(n),
        subscriptionRef: null,
        amountMinor: 1n,
        currency: "GBP",
        atPeriodEnd: null,
        occurrence: 1,
      },
      refundScope: "amount",
      itemRefs: [],
      filers: [filer(n)],
      bindingConfirmed: true,
      customerId: "",
      orderId: id,
      paymentId: paymentIntent(n),
      subscriptionId: null,
      operationId: null,
      predecessorId: null,
    }),
  );
  return judgement.facts.totals.some(({ per, count }) => per === "shop" && count > 0);
}

/** Milliseconds and pages of everything that was sent. */
async function costOf(client: pg.Client, sent: readonly Sent[]): Promise<{ ms: number; buffers: number }> {
  const cost = { ms: 0, buffers: 0 };
  for (const one of sent) {
    if (one.is !== "statement") continue;
    const runs = [];
    for (const mode of ["force_custom_plan", "force_generic_plan"])
      runs.push(await explain(client, one, mode));
    cost.ms += Math.max(...runs.map(({ ms }) => ms));
    cost.buffers += Math.max(...runs.map(({ buffers }) => buffers));
  }
  return cost;
}

interface Explained {
  readonly "Execution Time": number;
  readonly "Planning Time": number;
  readonly Plan: { readonly "Shared Hit Blocks": number; readonly "Shared Read Blocks": number };
}

/** Explains it twice, undone both times; the first run only warms the cache. */
async function explain(
  client: pg.Client,
  one: Extract<Sent, { is: "statement" }>,
  mode: string,
): Promise<{ ms: number; buffers: number }> {
  const values = one.params.map((value) => {
    const text = wireText(value);
    return text === null ? "NULL" : pg.escapeLiteral(text);
  });
  const execute = `EXECUTE explained${values.length === 0 ? "" : `(${values.join(", ")})`}`;
  await client.query("BEGIN");
  try {
    await client.query(`SET LOCAL plan_cache_mode = ${mode}`);
    await client.query(`PREPARE explained AS ${one.text}`);
    let last: Explained | undefined;
    for (let run = 0; run < 2; run += 1) {
      await client.query("SAVEPOINT untouched");
      const { rows } = await client.query(`EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) ${execute}`);
      last = (rows[0] as { "QUERY PLAN": Explained[] } | undefined)?.["QUERY PLAN"][0];
      await client.query("ROLLBACK TO SAVEPOINT untouched");
    }
    await client.query("DEALLOCATE explained");
    if (last === undefined) throw new Error(`${one.name} was not explained`);
    return {
      ms: last["Execution Time"] + last["Planning Time"],
      buffers: last.Plan["Shared Hit Blocks"] + last.Plan["Shared Read Blocks"],
    };
  } finally {
    await client.query("ROLLBACK");
  }
}
