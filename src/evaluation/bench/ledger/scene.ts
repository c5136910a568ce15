/** The benchmark's database: seeded once, copied for every arm, so that all begin from the same rows. */
import { type OpenDb, openDb } from "../../../db/connect.js";
import type { Clock, Ids } from "../../../domain/ports/clock.js";
import type { Logger } from "../../../domain/ports/logger.js";
import { createPayments } from "../../../payments/index.js";
import { activatePolicy, readPolicyText } from "../../../policy/index.js";
import type { ReconcileCtx } from "../../../reconcile/index.js";
import { importShop } from "../../../shop/index.js";
import { fileOwner } from "../../arms/owner.js";
import { providerContract } from "../../faults/contracts.js";
import { inProcessProduct } from "../../product.js";
import { inLanes } from "./measure.js";
import { benchPolicy, benchShop, EARLIER_ORDERS, type Owner, SPARE_ORDERS, type Totals } from "./premises.js";
import { carryOut } from "./product.js";

const EARLIER_SECONDS_AT_MOST = 300;

export interface BenchPorts {
  readonly ids: Ids;
  readonly clock: Clock;
  readonly log: Logger;
}

/** Databases to work on; see `withThrowAwayDatabases`. */
export interface BenchDatabases {
  readonly ledgerUrl: string;
  readonly providerUrl: string;
  freshLedger(): Promise<{ readonly url: string; release(): Promise<void> }>;
}

export interface Seeded {
  /** Orders that an arm may use up; a few more are there for the recording. */
  readonly orders: number;
  /** One for each lane. */
  readonly owners: readonly Owner[];
}

/** Ids that follow from their order, so that statements replayed without the program can name the rows. */
export function countedIds(): Ids {
  const counts = new Map<string, number>();
  return {
    next: <P extends string>(prefix: P): `${P}${string}` => {
      const n = counts.get(prefix) ?? 0;
      counts.set(prefix, n + 1);
      return `${prefix}${String(n).padStart(6, "0")}`;
    },
    random: () => 0.5,
  };
}

/** Fills the database that the arms' copies are made of. Nobody may be connected to it afterwards. */
export async function seed(
  ports: BenchPorts,
  url: string,
  size: { orders: number; lanes: number },
): Promise<Seeded> {
  const db = openDb({ url, applicationName: "countersign-bench" });
  try {
    const ids = countedIds();
    await importShop(
      { db, ids, onBelowReserved: async () => {} },
      { content: benchShop(size.orders + SPARE_ORDERS + EARLIER_ORDERS, ports.clock.now()) },
    );
    const owners: Owner[] = [];
    for (let lane = 0; lane < size.lanes; lane += 1) owners.push(await fileOwner({ db, ports: { ids } }));
    await carryOutEarlier(ports, db, size.orders + SPARE_ORDERS, owners);
    await db.pool.query("ANALYZE");
    return { orders: size.orders, owners };
  } finally {
    await db.close();
  }
}

/**
 * A ledger in use has operations, and its statements are planned for that: on an empty one the planner would choose to read whole
 * tables, which costs the more the longer an arm runs.
 */
async function carryOutEarlier(
  ports: BenchPorts,
  db: OpenDb,
  first: number,
  owners: readonly Owner[],
): Promise<void> {
  await activatePolicy(db, readPolicyText(benchPolicy("totals"), "the benchmark's policy"));
  const product = productOn(ports, db, "http://127.0.0.1:9");
  try {
    const asked = { lanes: owners.length, seconds: EARLIER_SECONDS_AT_MOST, most: EARLIER_ORDERS };
    const { operations } = await inLanes(asked, async (n, lane) => {
      const owner = owners[lane];
      if (owner === undefined) throw new Error(`lane ${lane} has no run`);
      await carryOut(product.ctx, first + n, owner, "nobody");
    });
    if (operations < EARLIER_ORDERS) throw new Error(`only ${operations} operations in the time for them`);
  } finally {
    await product.close();
  }
}

/** A copy for one arm, under a policy that counts totals or does not. */
export async function withCopy<T>(
  databases: BenchDatabases,
  totals: Totals,
  work: (db: OpenDb, url: string) => Promise<T>,
  poolSize: number,
): Promise<T> {
  const copy = await databases.freshLedger();
  try {
    const db = openDb({ url: copy.url, applicationName: "countersign-bench", poolSize });
    try {
      await activatePolicy(db, readPolicyText(benchPolicy(totals), "the benchmark's policy"));
      return await work(db, copy.url);
    } finally {
      await db.close();
    }
  } finally {
    await copy.release();
  }
}

const CALL_MS = 10_000;

/** The product's adapter against `apiUrl`. */
export const providerOn = (ports: BenchPorts, apiUrl: string): ReturnType<typeof createPayments> =>
  createPayments({ secretKey: "sk_test_bench", apiUrl, clock: ports.clock });

/** The product's own context on this database, with the adapter of the product against `apiUrl`. */
export function productOn(
  ports: BenchPorts,
  db: OpenDb,
  apiUrl: string,
): { ctx: ReconcileCtx; close(): Promise<void> } {
  const provider = providerOn(ports, apiUrl);
  const ctx = inProcessProduct({
    db,
    ...ports,
    provider,
    verifyWebhook: () => ({ ok: false, reason: "no_signature" }),
    refundContract: providerContract("key-ttl").ledger,
    providerTimeoutMs: CALL_MS,
    worker: "bench",
    onCard: () => {},
  });
  return { ctx, close: () => provider.close() };
}
