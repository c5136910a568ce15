/** The table of right ends is held against every episode: whichever cell is wrong, the run is not right, and the command exits 1. */
import { describe, expect, it } from "vitest";
import { expectedEnds, notExcluded } from "../../src/evaluation/faults/expected.js";
import { allCells, type Episode, type MatrixRun, mergeRuns } from "../../src/evaluation/faults/matrix.js";
import { excusedLines, matrixReport } from "../../src/evaluation/faults/report.js";
import type { Cell } from "../../src/evaluation/faults/scenario.js";
import { violations } from "../../src/evaluation/faults/verdict.js";

const STATUS = {
  C: "CONFIRMED",
  R: "REJECTED",
  X: "REVERSED",
  V: "VOIDED",
  Q: "QUARANTINED",
  D: "DENIED",
  E: "EXPIRED",
} as const;
type Letter = keyof typeof STATUS;
const LETTERS = Object.keys(STATUS) as Letter[];
const HARMS = ["duplicate", "lost", "falseSuccess", "unauthorised", "stuck"] as const;
const HARMLESS: Episode["score"] = {
  duplicate: false,
  lost: false,
  falseSuccess: false,
  unauthorised: false,
  stuck: false,
  undone: false,
  quarantined: false,
};

const episode = (cell: Cell, end: string, score: Partial<Episode["score"]> = {}): Episode => ({
  arm: "ours",
  scenario: { ...cell, index: 0, amountMinor: 500 },
  end,
  score: { ...HARMLESS, ...score },
  broken: [],
  noticed: null,
});
const run = (...episodes: Episode[]): MatrixRun => ({ seed: 1, episodes, notFired: [], auditProblems: [] });
const isRight = (one: Episode): boolean => violations(run(one)).length === 0;
const rightLetters = (cell: Cell): string => expectedEnds(cell.mode, cell.contract, cell.crash) ?? "";
const rightEnd = (cell: Cell): string => STATUS[(rightLetters(cell)[0] ?? "C") as Letter];

const CELLS = allCells();

describe("the table of right ends", () => {
  it("has an end for every cell, and a person alone only where nothing is promised or proven", () => {
    for (const cell of CELLS) expect(rightLetters(cell), JSON.stringify(cell)).toMatch(/^[CRXVQDE]+$/);
    const alone = CELLS.filter((cell) => rightLetters(cell) === "Q");
    expect(alone.length / CELLS.length, "quarantining everything would fail").toBeLessThan(0.3);
  });

  it("in whichever cell an episode ends otherwise, the run is wrong", () => {
    let wrong = 0;
    for (const cell of CELLS) {
      for (const letter of LETTERS) {
        const right = rightLetters(cell).includes(letter);
        wrong += Number(!right);
        if (isRight(episode(cell, STATUS[letter])) !== right) {
          throw new Error(
            `${JSON.stringify(cell)} ending ${letter} is taken for ${right ? "wrong" : "right"}`,
          );
        }
      }
    }
    expect(wrong).toBeGreaterThan(5 * CELLS.length);
  });

  it("in whichever cell a harm happens that a client could exclude, the run is wrong", () => {
    let tolerated = 0;
    for (const cell of CELLS) {
      for (const harm of HARMS) {
        const excused = notExcluded(cell.mode, cell.contract, harm) !== null;
        tolerated += Number(excused);
        if (isRight(episode(cell, rightEnd(cell), { [harm]: true })) !== excused) {
          throw new Error(`${harm} in ${JSON.stringify(cell)}`);
        }
      }
    }
    expect(tolerated).toBeGreaterThan(0);
    expect(tolerated).toBeLessThan(CELLS.length / 10);
  });

  it("a run without an episode of ours, or with a broken log, is not right", () => {
    const [cell] = CELLS;
    if (cell === undefined) throw new Error("no cell");
    expect(matrixReport(run(episode(cell, rightEnd(cell)))).right).toBe(true);
    expect(matrixReport(run(episode(cell, rightEnd(cell), { lost: true }))).right).toBe(false);
    expect(matrixReport(run()).right).toBe(false);
    expect(matrixReport({ ...run(episode(cell, rightEnd(cell))), auditProblems: ["x"] }).right).toBe(false);
  });
});

describe("what several worlds played", () => {
  const cells = CELLS.slice(0, 9);
  const episodes = cells.map((cell, index) => ({
    ...episode(cell, rightEnd(cell)),
    scenario: { ...cell, index, amountMinor: 500 },
  }));

  it("is put together in the plan's order, however it was shared out", () => {
    const shares = [0, 1, 2].map((index) => run(...episodes.filter((_, at) => at % 3 === index)));
    expect(mergeRuns(shares)).toEqual(run(...episodes));
    expect(mergeRuns([...shares].reverse())).toEqual(run(...episodes));
  });

  it("of different plans is refused", () => {
    expect(() => mergeRuns([run(), { ...run(), seed: 2 }])).toThrow("different plans");
    expect(() => mergeRuns([])).toThrow("no run");
  });
});

describe("what the table counts against ours beside nothing wrong", () => {
  const invented = CELLS.find(({ mode, contract }) => mode === "read-invents" && contract === "key");

  it("is told with the reason why no client could have prevented it", () => {
    if (invented === undefined) throw new Error("the cell is gone");
    const harmed = { ...episode(invented, rightEnd(invented), { falseSuccess: true }), noticed: true };
    const report = matrixReport(run(harmed, harmed));
    expect(report).toMatchObject({ right: true, arms: { ours: { falseSuccess: 2 } } });
    expect(excusedLines(report)).toEqual([
      "Of ours, 2 false successes that no client could have prevented: the provider shows a refund with our operation's id that it never made.",
    ]);
  });

  it("is nothing where nothing was counted", () => {
    if (invented === undefined) throw new Error("the cell is gone");
    expect(excusedLines(matrixReport(run(episode(invented, rightEnd(invented)))))).toEqual([]);
  });
});
