/** The run in numbers and ratios. Pure. */
import { FACTS, type ListsBench, type ReadCost } from "./lists.js";
import { type MeasuredArm, median, rate } from "./measure.js";
import { ARMS, type ArmName, type LedgerBench } from "./run.js";

export interface ArmReport {
  readonly arm: ArmName;
  /** Median of the rounds. */
  readonly perSecond: number;
  readonly rounds: readonly number[];
  /** Processor time of the client for one operation; null: another program's. */
  readonly clientCpuMs: number | null;
  /** Processor time of the database's whole server for one operation; null: it does not run here. */
  readonly serverCpuMs: number | null;
  /** Bytes of the server's log for one operation. */
  readonly walBytes: number;
}

export interface RatioReport {
  readonly what: string;
  readonly ratio: number;
  readonly goal: number;
  readonly met: boolean;
}

export interface LedgerBenchReport {
  readonly machine: string;
  readonly arms: readonly ArmReport[];
  readonly ratios: readonly RatioReport[];
  readonly roundTrips: LedgerBench["roundTrips"];
  /** What a reader needs to judge a missed goal, in whole sentences. */
  readonly notes: readonly string[];
  readonly leftOut: LedgerBench["leftOut"];
  readonly wrong: readonly string[];
}

/** Ratios of the goals: the product's arm, the arm beside it, and what is to be reached. */
const GOALS: readonly { readonly of: ArmName; readonly to: ArmName; readonly goal: number }[] = [
  { of: "product, no totals", to: "pgbench, no totals", goal: 0.5 },
  { of: "product, no totals", to: "bare driver, no totals", goal: 0.7 },
  { of: "product, totals", to: "pgbench, totals", goal: 0.5 },
  { of: "product, totals", to: "bare driver, totals", goal: 0.7 },
  { of: "product with HTTP call, no totals", to: "durable execution with HTTP call", goal: 4 },
  { of: "product with HTTP call, totals", to: "durable execution with HTTP call", goal: 4 },
];

export function ledgerBenchReport(bench: LedgerBench): LedgerBenchReport {
  const arms = ARMS.flatMap((arm) => {
    const measured = bench.measured.get(arm);
    return measured === undefined ? [] : [armReport(arm, measured)];
  });
  const speed = (arm: ArmName): number | undefined => arms.find((one) => one.arm === arm)?.perSecond;
  const ratios = GOALS.flatMap(({ of, to, goal }) => {
    const [ours, theirs] = [speed(of), speed(to)];
    if (ours === undefined || theirs === undefined) return [];
    const ratio = ours / theirs;
    return [{ what: `${of} / ${to}`, ratio, goal, met: ratio >= goal }];
  });
  return {
    machine: bench.machine,
    arms,
    ratios,
    roundTrips: bench.roundTrips,
    notes: ratios.some(({ met }) => !met) ? notesOn(speed) : [],
    leftOut: bench.leftOut,
    wrong: bench.wrong,
  };
}

/**
 * Why the goal beside durable execution is out of reach: the product's statements, sent by a client that costs nothing and without
 * any call, are what no client of this ledger can pass.
 */
function notesOn(speed: (arm: ArmName) => number | undefined): string[] {
  const durable = speed("durable execution with HTTP call");
  if (durable === undefined) return [];
  const times = (arm: ArmName): string | null => {
    const is = speed(arm);
    return is === undefined ? null : (is / durable).toFixed(1);
  };
  const [bare, totals] = [times("pgbench, no totals"), times("pgbench, totals")];
  const least = times("two bare commits with HTTP call");
  const library = times("two bare commits with the provider's library");
  return [
    ...(bare === null || totals === null
      ? []
      : [
          `The ledger's own statements, sent by pgbench and with no call, are ${bare} times durable execution without totals and ${totals} times with them: no client of these statements can be faster than that beside it.`,
        ]),
    ...(least === null
      ? []
      : [
          `Two bare commits around the call are ${least} times durable execution. What lies between is what the ledger keeps and they do not: the reservation, the totals, the attempt, the evidence, and a chained event for each step.`,
        ]),
    ...(library === null
      ? []
      : [
          `The same two commits around the provider's own library, which the product sends with, are ${library} times: what the ledger keeps can only take away from that.`,
        ]),
  ];
}

function armReport(arm: ArmName, measured: readonly MeasuredArm[]): ArmReport {
  const cpu = measured.flatMap(({ cpuMs, operations }) => (cpuMs === null ? [] : [cpuMs / operations]));
  const server = measured.flatMap(({ server: { cpuMs }, operations }) =>
    cpuMs === null ? [] : [cpuMs / operations],
  );
  return {
    arm,
    perSecond: median(measured.map(rate)),
    rounds: measured.map(rate),
    clientCpuMs: cpu.length === 0 ? null : median(cpu),
    serverCpuMs: server.length === 0 ? null : median(server),
    walBytes: median(measured.map(({ server: { walBytes }, operations }) => walBytes / operations)),
  };
}

export interface ListsReport {
  readonly machine: string;
  readonly sizes: readonly number[];
  readonly goal: number;
  readonly reads: readonly {
    readonly what: string;
    readonly at: readonly ReadCost[];
    /** Buffers at the largest size over buffers at the smallest. */
    readonly growth: number;
    /** null: no goal is set for it. */
    readonly met: boolean | null;
  }[];
  readonly wrong: readonly string[];
}

/** Reads may touch so many times the buffers at the largest size that they touch at the smallest. */
const GROWTH_GOAL = 2;

export function listsReport(bench: ListsBench): ListsReport {
  const reads = [...bench.reads].map(([what, at]) => {
    const [first, last] = [at[0]?.buffers ?? 0, at.at(-1)?.buffers ?? 0];
    const growth = last / Math.max(1, first);
    return { what, at, growth, met: what === FACTS ? null : growth <= GROWTH_GOAL };
  });
  return {
    machine: bench.machine,
    sizes: bench.sizes,
    goal: GROWTH_GOAL,
    reads,
    wrong: [
      ...bench.wrong,
      ...reads
        .filter(({ met }) => met === false)
        .map(
          ({ what, growth }) =>
            `${what}: ${growth.toFixed(2)} times the buffers, at most ${GROWTH_GOAL} is the goal`,
        ),
    ],
  };
}
