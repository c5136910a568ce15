/** The run in numbers and ratios. Pure. */
import { FACTS, type ListsBench, type ReadCost } from "./lists.js";
import { type Measured, median, rate } from "./measure.js";
import { ARMS, type ArmName, type LedgerBench } from "./run.js";

export interface ArmReport {
  readonly arm: ArmName;
  /** Median of the rounds. */
  readonly perSecond: number;
  readonly rounds: readonly number[];
  /** Processor time of the client for one operation; null: another program's. */
  readonly clientCpuMs: number | null;
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
    leftOut: bench.leftOut,
    wrong: bench.wrong,
  };
}

function armReport(arm: ArmName, measured: readonly Measured[]): ArmReport {
  const cpu = measured.flatMap(({ cpuMs, operations }) => (cpuMs === null ? [] : [cpuMs / operations]));
  return {
    arm,
    perSecond: median(measured.map(rate)),
    rounds: measured.map(rate),
    clientCpuMs: cpu.length === 0 ? null : median(cpu),
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
