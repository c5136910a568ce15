/**
 * All arms in one run: in turn, the order reversed each round, every arm on a fresh copy of one database. Only what stands in one
 * run is compared.
 */
import type { Operation } from "../../../domain/operation.js";
import type { ReconcileCtx } from "../../../reconcile/index.js";
import { runBareDriver } from "./bare-driver.js";
import { adapterCalls, bareCalls, type Calls, type Floor, openFloor } from "./floor.js";
import { machineOf } from "./machine.js";
import { atCost, inLanes, type MeasuredArm } from "./measure.js";
import { pgbenchVersion, runPgbench } from "./pgbench.js";
import { type Owner, SPARE_ORDERS, type Totals } from "./premises.js";
import { carryOut } from "./product.js";
import { checkNames, record, roundTrips, type Step } from "./record.js";
import {
  type BenchDatabases,
  type BenchPorts,
  productOn,
  providerOn,
  type Seeded,
  seed,
  withCopy,
} from "./scene.js";
import { type DurableExecution, openDurableExecution } from "./start-durable-execution.js";
import { type ProviderStub, startProviderStub } from "./start-provider-stub.js";
import { wrongWith } from "./verify.js";

export const ARMS = [
  "product, no totals",
  "bare driver, no totals",
  "pgbench, no totals",
  "product, totals",
  "bare driver, totals",
  "pgbench, totals",
  "product with HTTP call, no totals",
  "product with HTTP call, totals",
  "durable execution with HTTP call",
  "two bare commits with HTTP call",
  "two bare commits with the provider's library",
] as const;
export type ArmName = (typeof ARMS)[number];

export interface LedgerBench {
  /** Every round's result of each arm that took part. */
  readonly measured: ReadonlyMap<ArmName, readonly MeasuredArm[]>;
  readonly leftOut: readonly { readonly arm: string; readonly why: string }[];
  /** What is not as it must be after an arm; empty: nothing. */
  readonly wrong: readonly string[];
  readonly machine: string;
  /** How often the product waits for the database in one operation. */
  readonly roundTrips: Readonly<Record<Totals, number>>;
}

export interface LedgerBenchOptions {
  readonly seconds: number;
  readonly rounds: number;
  readonly lanes: number;
  readonly onArm?: (arm: ArmName, round: number) => void;
}

/** More than any arm carries out in a second on one machine. */
const MOST_PER_SECOND = 4_000;

export async function runLedgerBench(
  ports: BenchPorts,
  databases: BenchDatabases,
  options: LedgerBenchOptions,
): Promise<LedgerBench> {
  const orders = Math.ceil((options.seconds + 1) * MOST_PER_SECOND);
  const seeded = await seed(ports, databases.ledgerUrl, { orders, lanes: options.lanes });
  const stub = await startProviderStub();
  try {
    return await new Bench({ ports, databases, options, seeded, stub }).run();
  } finally {
    await stub.stop();
  }
}

interface Parts {
  readonly ports: BenchPorts;
  readonly databases: BenchDatabases;
  readonly options: LedgerBenchOptions;
  readonly seeded: Seeded;
  readonly stub: ProviderStub;
}

/** One run: what it has measured so far. */
class Bench {
  readonly #parts: Parts;
  readonly #measured = new Map<ArmName, MeasuredArm[]>();
  readonly #wrong: string[] = [];
  /** One that the product has carried out. */
  #like: Operation | null = null;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  async run(): Promise<LedgerBench> {
    const { databases, options, stub } = this.#parts;
    const leftOut: { arm: string; why: string }[] = [];
    const templates = { none: await this.#record("none"), totals: await this.#record("totals") };
    const pgbench = await pgbenchVersion();
    if (pgbench === null) leftOut.push({ arm: "pgbench", why: "the program is not on this machine" });
    const durable = await openDurableExecution(databases.providerUrl, stub.url);
    if (durable === null)
      leftOut.push({ arm: "durable execution", why: "@dbos-inc/dbos-sdk is not installed" });
    const floors: readonly (readonly [ArmName, Floor])[] = [
      ["two bare commits with HTTP call", await this.#openFloor(bareCalls(stub.url))],
      ["two bare commits with the provider's library", await this.#openFloor(this.#adapterCalls())],
    ];
    const plays: [ArmName, () => Promise<MeasuredArm>][] = [];
    for (const totals of ["none", "totals"] as const) {
      const end = totals === "none" ? "no totals" : "totals";
      plays.push([`product, ${end}`, () => this.#product(`product, ${end}`, totals, "nobody")]);
      plays.push([`bare driver, ${end}`, () => this.#bare(`bare driver, ${end}`, totals, templates[totals])]);
      if (pgbench !== null) {
        plays.push([`pgbench, ${end}`, () => this.#pgbench(`pgbench, ${end}`, totals, templates[totals])]);
      }
      const wired: ArmName = `product with HTTP call, ${end}`;
      plays.push([wired, () => this.#product(wired, totals, "wire")]);
    }
    if (durable !== null) {
      plays.push(["durable execution with HTTP call", () => this.#durable(durable)]);
    }
    for (const [arm, floor] of floors) plays.push([arm, () => this.#floor(arm, floor)]);
    try {
      // Round 0 warms up code and caches and is not counted.
      for (let round = 0; round <= options.rounds; round += 1) {
        for (const [arm, play] of round % 2 === 1 ? plays : [...plays].reverse()) {
          options.onArm?.(arm, round);
          const result = await play();
          if (round > 0) this.#measured.set(arm, [...(this.#measured.get(arm) ?? []), result]);
        }
      }
    } finally {
      for (const [, floor] of floors) await floor.close();
      await durable?.close();
    }
    return {
      measured: this.#measured,
      leftOut,
      wrong: this.#wrong,
      machine: await withCopy(databases, "none", (db) => machineOf(db), 1),
      roundTrips: { none: roundTrips(templates.none), totals: roundTrips(templates.totals) },
    };
  }

  /** The statements of one operation, once everything that is read only once has been read. */
  #record(totals: Totals): Promise<Step[]> {
    const { ports, databases, seeded, stub } = this.#parts;
    const [first, second] = [seeded.orders, seeded.orders + SPARE_ORDERS - 1];
    const owner = this.#owner(0);
    return withCopy(
      databases,
      totals,
      async (db) => {
        await checkNames(db, second);
        const product = productOn(ports, db, stub.url);
        try {
          this.#like = await carryOut(product.ctx, first, owner, "nobody");
          return await record(db, ports.ids, { n: second, owner }, (recorder) =>
            carryOut({ ...product.ctx, ...recorder }, second, owner, "nobody"),
          );
        } finally {
          await product.close();
        }
      },
      2,
    );
  }

  #product(arm: ArmName, totals: Totals, asking: "nobody" | "wire"): Promise<MeasuredArm> {
    const { ports, databases, options, seeded, stub } = this.#parts;
    return withCopy(
      databases,
      totals,
      async (db, url) => {
        const before = await stub.made();
        const product = productOn(ports, db, stub.url);
        try {
          const measured = await atCost(url, () =>
            inLanes({ ...options, most: seeded.orders }, (n, lane) =>
              this.#carryOut(product.ctx, n, lane, asking),
            ),
          );
          await this.#check(arm, () => wrongWith(db, measured.operations, true));
          const asked = (await stub.made()) - before;
          const right = asking === "wire" ? measured.operations : 0;
          if (asked !== right)
            this.#wrong.push(`${arm}: the provider made ${asked} refunds, ${right} would be right`);
          return measured;
        } finally {
          await product.close();
        }
      },
      options.lanes,
    );
  }

  #carryOut(ctx: ReconcileCtx, n: number, lane: number, asking: "nobody" | "wire"): Promise<unknown> {
    return carryOut(ctx, n, this.#owner(lane), asking);
  }

  #bare(arm: ArmName, totals: Totals, steps: readonly Step[]): Promise<MeasuredArm> {
    const { databases, options, seeded } = this.#parts;
    return withCopy(
      databases,
      totals,
      async (db, url) => {
        const measured = await atCost(url, () =>
          runBareDriver(url, steps, { ...options, most: seeded.orders, owners: seeded.owners }),
        );
        await this.#check(arm, () => wrongWith(db, measured.operations, false));
        return measured;
      },
      2,
    );
  }

  #pgbench(arm: ArmName, totals: Totals, steps: readonly Step[]): Promise<MeasuredArm> {
    const { databases, options } = this.#parts;
    return withCopy(
      databases,
      totals,
      async (db, url) => {
        const measured = await atCost(url, () => runPgbench(url, steps, { ...options, threads: 1 }));
        await this.#check(arm, () => wrongWith(db, measured.operations, false));
        return measured;
      },
      2,
    );
  }

  async #durable(durable: DurableExecution): Promise<MeasuredArm> {
    const { options, seeded, stub, databases } = this.#parts;
    const [made, succeeded] = [await stub.made(), await durable.succeeded()];
    const { lanes, seconds } = options;
    const measured = await atCost(databases.providerUrl, () =>
      durable.run({ lanes, seconds, most: seeded.orders }),
    );
    const counts = [(await stub.made()) - made, (await durable.succeeded()) - succeeded];
    if (counts.some((count) => count !== measured.operations)) {
      this.#wrong.push(
        `durable execution: ${measured.operations} workflows, ${counts[0]} calls, ${counts[1]} succeeded`,
      );
    }
    return measured;
  }

  #openFloor(calls: Calls): Promise<Floor> {
    return openFloor(this.#parts.databases.providerUrl, calls, this.#parts.options.lanes);
  }

  #adapterCalls(): Calls {
    const { ports, stub } = this.#parts;
    if (this.#like === null) throw new Error("no operation was recorded yet");
    return adapterCalls(providerOn(ports, stub.url), this.#like);
  }

  async #floor(arm: ArmName, floor: Floor): Promise<MeasuredArm> {
    const { options, seeded, stub, databases } = this.#parts;
    const [made, recorded] = [await stub.made(), await floor.recorded()];
    const measured = await atCost(databases.providerUrl, () =>
      floor.run({ ...options, most: seeded.orders }),
    );
    const counts = [(await stub.made()) - made, (await floor.recorded()) - recorded];
    if (counts.some((count) => count !== measured.operations)) {
      this.#wrong.push(`${arm}: ${measured.operations} rows, ${counts[0]} calls, ${counts[1]} recorded`);
    }
    return measured;
  }

  async #check(arm: ArmName, look: () => Promise<string[]>): Promise<void> {
    this.#wrong.push(...(await look()).map((problem) => `${arm}: ${problem}`));
  }

  #owner(lane: number): Owner {
    const owner = this.#parts.seeded.owners[lane];
    if (owner === undefined) throw new Error(`lane ${lane} has no run`);
    return owner;
  }
}
