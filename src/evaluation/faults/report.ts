/** The run in numbers: for each arm, for each cell, as JSON and as text. Pure. */
import { ARM_NAMES, type ArmName } from "../arms/arm.js";
import { CONTRACT_NAMES, type ContractName } from "./contracts.js";
import { notExcluded } from "./expected.js";
import { allCells, type Episode, type MatrixRun } from "./matrix.js";
import { MODE_NAMES, type ModeName } from "./modes.js";
import type { Cell } from "./scenario.js";
import { type Violation, violations } from "./verdict.js";

export interface Tally {
  episodes: number;
  duplicates: number;
  lost: number;
  falseSuccess: number;
  unauthorised: number;
  stuck: number;
  /** With a person. */
  quarantined: number;
  /** Truthfully ended without an effect that the provider would have made. */
  undone: number;
  /** Episodes that do not count: fault or crash had no occasion to happen. */
  notFired?: number;
}

export interface CellReport {
  mode: ModeName;
  contract: ContractName;
  /** Harms that no client of this provider could exclude here, with the reason. */
  notExcluded: Record<string, string>;
  /** How each episode of ours ended. */
  ends: Record<string, number>;
  arms: Record<ArmName, Tally>;
}

/** Cells: fault × provider × crash point, for ours. */
export interface Coverage {
  /** Those in which the fault can take effect. */
  cells: number;
  /** Those that the plan reached. */
  played: number;
  /** Those in which fault and crash both happened at least once. */
  fired: number;
  /** Played, and never fired: `fault/provider/crash point`. */
  neverFired: string[];
}

export interface MatrixReport {
  seed: number;
  arms: Record<ArmName, Tally>;
  coverage: Coverage;
  cells: CellReport[];
  violations: { mode: string; contract: string; crash: string; problem: string }[];
  audit: readonly string[];
  right: boolean;
}

const none = (): Tally => ({
  episodes: 0,
  duplicates: 0,
  lost: 0,
  falseSuccess: 0,
  unauthorised: 0,
  stuck: 0,
  quarantined: 0,
  undone: 0,
});

function tally(episodes: readonly Episode[]): Tally {
  const sum = none();
  for (const { score } of episodes) {
    sum.episodes += 1;
    sum.duplicates += Number(score.duplicate);
    sum.lost += Number(score.lost);
    sum.falseSuccess += Number(score.falseSuccess);
    sum.unauthorised += Number(score.unauthorised);
    sum.stuck += Number(score.stuck);
    sum.quarantined += Number(score.quarantined);
    sum.undone += Number(score.undone);
  }
  return sum;
}

const byArm = (episodes: readonly Episode[]): Record<ArmName, Tally> =>
  Object.fromEntries(
    ARM_NAMES.map((name) => [name, tally(episodes.filter(({ arm }) => arm === name))]),
  ) as Record<ArmName, Tally>;

const cellName = ({ mode, contract, crash }: Cell): string => `${mode}/${contract}/${crash}`;

function coverage(run: MatrixRun): Coverage {
  const ofOurs = (scenarios: readonly { arm: ArmName; scenario: Cell }[]): Set<string> =>
    new Set(scenarios.filter(({ arm }) => arm === "ours").map(({ scenario }) => cellName(scenario)));
  const fired = ofOurs(run.episodes);
  const neverFired = [...ofOurs(run.notFired)].filter((cell) => !fired.has(cell)).sort();
  return {
    cells: allCells().length,
    played: fired.size + neverFired.length,
    fired: fired.size,
    neverFired,
  };
}

export function matrixReport(run: MatrixRun): MatrixReport {
  const wrong = violations(run);
  const arms = byArm(run.episodes);
  for (const name of ARM_NAMES) arms[name].notFired = run.notFired.filter(({ arm }) => arm === name).length;
  return {
    seed: run.seed,
    arms,
    coverage: coverage(run),
    cells: MODE_NAMES.flatMap((mode) => CONTRACT_NAMES.flatMap((contract) => cellOf(run, mode, contract))),
    violations: wrong.map(({ scenario, problem }: Violation) => ({
      mode: scenario.mode,
      contract: scenario.contract,
      crash: scenario.crash,
      problem,
    })),
    audit: run.auditProblems,
    right: wrong.length === 0 && run.auditProblems.length === 0 && arms.ours.episodes > 0,
  };
}

function cellOf(run: MatrixRun, mode: ModeName, contract: ContractName): CellReport[] {
  const episodes = run.episodes.filter(
    ({ scenario }) => scenario.mode === mode && scenario.contract === contract,
  );
  if (episodes.length === 0) return [];
  const ends: Record<string, number> = {};
  for (const { arm, end } of episodes) if (arm === "ours") ends[end] = (ends[end] ?? 0) + 1;
  const reasons = (["duplicate", "falseSuccess"] as const).flatMap((harm) => {
    const why = notExcluded(mode, contract, harm);
    return why === null ? [] : [[harm, why] as const];
  });
  return [{ mode, contract, notExcluded: Object.fromEntries(reasons), ends, arms: byArm(episodes) }];
}

const HEADINGS = ["episodes", "duplicates", "lost", "false success", "unauthorised", "stuck"] as const;
const FIELDS = ["episodes", "duplicates", "lost", "falseSuccess", "unauthorised", "stuck"] as const;

/** Rows of cells, headings first: one table for the arms, one for the cells of the matrix. */
export function reportTables(report: MatrixReport): { arms: string[][]; cells: string[][] } {
  const arms = [
    ["arm", ...HEADINGS, "with a person", "truthfully undone"],
    ...ARM_NAMES.map((name) => {
      const sum = report.arms[name];
      return [name, ...FIELDS.map((field) => `${sum[field]}`), `${sum.quarantined}`, `${sum.undone}`];
    }),
  ];
  const cells = [
    ["fault", "provider", ...ARM_NAMES, "ends of ours"],
    ...report.cells.map((cell) => [
      cell.mode,
      cell.contract,
      ...ARM_NAMES.map((name) => harmText(cell.arms[name])),
      Object.entries(cell.ends)
        .map(([end, count]) => `${end} ${count}`)
        .join(", "),
    ]),
  ];
  return { arms, cells };
}

const EXCUSED = [
  ["duplicate", "duplicates", "duplicate", "duplicates"],
  ["falseSuccess", "falseSuccess", "false success", "false successes"],
] as const;

/**
 * What the table counts against ours although the verdict is "nothing wrong": harms that no client of such a provider could
 * exclude, and why. A line for each reason; empty when there was none.
 */
export function excusedLines(report: Pick<MatrixReport, "cells">): string[] {
  const counts = new Map<string, { count: number; one: string; more: string; why: string }>();
  for (const cell of report.cells) {
    for (const [harm, field, one, more] of EXCUSED) {
      const why = cell.notExcluded[harm];
      const count = cell.arms.ours[field];
      if (why === undefined || count === 0) continue;
      const key = `${one}: ${why}`;
      counts.set(key, { count: (counts.get(key)?.count ?? 0) + count, one, more, why });
    }
  }
  return [...counts.values()].map(
    ({ count, one, more, why }) =>
      `Of ours, ${count} ${count === 1 ? one : more} that no client could have prevented: ${why}.`,
  );
}

/** `2/5 dup`: of five episodes two ended with a duplicate; `0/5` without harm. */
function harmText(sum: Tally): string {
  if (sum.episodes === 0) return "-";
  const harms = [
    [sum.duplicates, "dup"],
    [sum.lost, "lost"],
    [sum.falseSuccess, "false"],
    [sum.unauthorised, "unauth"],
    [sum.stuck, "stuck"],
  ] as const;
  const named = harms.filter(([count]) => count > 0).map(([count, word]) => `${count} ${word}`);
  return named.length === 0 ? `0/${sum.episodes}` : `${named.join(" ")} /${sum.episodes}`;
}
