/** Holds our episodes against the table that was written by hand. */

import { canBeNoticed, type EndLetter, expectedEnds, type NamedHarm, notExcluded } from "./expected.js";
import type { Episode, MatrixRun } from "./matrix.js";

export interface Violation {
  readonly scenario: Episode["scenario"];
  readonly problem: string;
}

const HARMS: readonly NamedHarm[] = ["duplicate", "lost", "falseSuccess", "unauthorised", "stuck"];

const LETTERS: Readonly<Record<string, EndLetter>> = {
  CONFIRMED: "C",
  REJECTED: "R",
  REVERSED: "X",
  VOIDED: "V",
  QUARANTINED: "Q",
  DENIED: "D",
  EXPIRED: "E",
};

/** Everything that is wrong with our arm; empty: as it should be. Pure. */
export function violations(run: MatrixRun): Violation[] {
  return run.episodes.filter(({ arm }) => arm === "ours").flatMap(problemsOf);
}

function problemsOf(episode: Episode): Violation[] {
  const { scenario } = episode;
  const harms = HARMS.filter(
    (harm) => episode.score[harm] && notExcluded(scenario.mode, scenario.contract, harm) === null,
  );
  const ends = expectedEnds(scenario.mode, scenario.contract, scenario.crash) ?? "";
  const letter = LETTERS[episode.end];
  const wrongEnd =
    letter === undefined || !ends.includes(letter) ? [`ended ${episode.end}, right would be ${ends}`] : [];
  const unnoticed =
    episode.noticed === false && canBeNoticed(scenario.contract) ? ["harmed, and nobody was told"] : [];
  return [...harms, ...wrongEnd, ...unnoticed, ...episode.broken].map((problem) => ({ scenario, problem }));
}
