/** Whether those who said yes may still say it. Read outside transactions, judged inside. */
import type { Approval, Change } from "../domain/approval.js";
import { mayVote } from "../domain/approval-click.js";
import type { Policy } from "../domain/policy/policy.js";
import type { Directory, PersonReading } from "../domain/ports/directory.js";
import type { Seals } from "../domain/seals.js";
import { isSealed } from "./seals.js";
import type { VoterReadings } from "./types.js";

/** User ids of everybody who said yes. */
export const yesVoters = (approval: Approval): string[] =>
  approval.votes.filter((vote) => vote.verdict === "approve").map((vote) => vote.userId);

/** Reads people, at most `maxAgeMs` old, each once. */
export async function readPeople(
  directory: Directory,
  userIds: Iterable<string>,
  maxAgeMs: number,
): Promise<VoterReadings> {
  const ids = [...new Set(userIds)];
  const readings = await Promise.all(
    ids.map(async (id): Promise<[string, PersonReading]> => [id, await directory.person(id, { maxAgeMs })]),
  );
  return new Map(readings);
}

export type VotersCheck =
  | { readonly stand: true }
  /** Too few votes still count; each that does not is a change. */
  | { readonly stand: false; readonly changes: readonly Change[] }
  /** It cannot be known now whether enough votes count. */
  | { readonly stand: "unreadable"; readonly reason: string };

const UNSEALED = "it bears no seal of this app, so that nothing shows that they gave it.";

/** Whose yes nobody sealed: it was written by somebody else, or before there were seals, and counts for nothing. */
export const unsealedYes = (approval: Approval, seals: Seals): string[] =>
  approval.votes
    .filter((vote) => vote.verdict === "approve" && !isSealed(seals, approval, vote))
    .map(({ userId }) => userId);

/**
 * Judges the votes of a complete approval again. A vote of somebody who has left the role, lost the limit or standing, or has
 * become a filer no longer counts. Enough others: nothing has changed, unless one of them is nobody's.
 */
export function checkVoters(
  approval: Approval,
  present: { readonly filers: readonly string[]; readonly policy: Policy; readonly seals: Seals },
  readings: VoterReadings,
): VotersCheck {
  const counting = new Set<string>();
  const lost: Change[] = [];
  const unsealed = unsealedYes(approval, present.seals);
  let unreadable: string | null = null;
  for (const vote of approval.votes.filter((each) => each.verdict === "approve")) {
    if (unsealed.includes(vote.userId)) {
      lost.push({ what: "voter", userId: vote.userId, sentence: UNSEALED });
      continue;
    }
    const reading = readings.get(vote.userId) ?? { ok: false, reason: "not read" };
    const may = mayVote({ approval, reading, ...present }, []);
    if (may.may) counting.add(vote.person);
    else if (may.reason === "unreadable") unreadable = reading.ok ? may.sentence : reading.reason;
    else lost.push({ what: "voter", userId: vote.userId, sentence: lostSentence(may.reason, approval.role) });
  }
  if (counting.size >= approval.approversNeeded && unsealed.length === 0) return { stand: true };
  if (unreadable !== null) return { stand: "unreadable", reason: unreadable };
  if (lost.length > 0) return { stand: false, changes: lost };
  // Nobody's vote was lost, so that it was never complete: a row that was changed by hand.
  return {
    stand: false,
    changes: [{ what: "votes", given: counting.size, needed: approval.approversNeeded }],
  };
}

/** The gate's own sentences speak to the person who clicks; here they are about somebody else. */
function lostSentence(reason: string, role: string): string {
  switch (reason) {
    case "not_in_role":
      return `they are no longer in the role ${role}.`;
    case "over_limit":
      return `the limit of the role ${role} no longer covers it.`;
    case "is_filer":
      return "they are among those who asked for it.";
    default:
      return "they are no longer an active full member of the workspace.";
  }
}
