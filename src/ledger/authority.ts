/**
 * The last word before anything leaves: whether the log tells what the row says. Whoever changes rows by hand cannot write the log
 * alike, so that a status, a count of attempts, the birth of a key, a policy, a time to undo, an approval or a vote that the log does
 * not know sends nothing. And whether people, or the policy, decided it through a process of ours: the log's hashes hold no secret, so
 * that who can write all of the database can write a log that fits; the seal of what lets money leave they cannot make.
 */
import type { SqlRunner } from "../db/connect.js";
import { isUnreadableValue } from "../db/sqlstate.js";
import type { OperationId } from "../domain/ids.js";
import type { Json } from "../domain/json.js";
import type { Operation } from "../domain/operation.js";
import type { Seals } from "../domain/seals.js";
import { auditedOperation } from "./audit.js";
import { isShortSince } from "./audit-blocks.js";
import {
  type AuditedEvent,
  type AuditedOperation,
  checkOperation,
  coolingOffEnd,
  dataOf,
  decidedBy,
  NOT_CANONICAL,
} from "./audit-check.js";
import { chainOfSubject } from "./audit-subjects.js";
import { type Release, releaseOf } from "./authority-release.js";
import {
  answerHolds,
  resolutionHolds,
  UNSEALED_OPERATION,
  UNSEALED_POLICY,
  UNSEALED_RESOLUTION,
  UNSEALED_VOTE,
  voteHolds,
} from "./decision-seals.js";
import { isPolicyOurs } from "./policy-told.js";
import { getResolution } from "./resolution-rows.js";

export interface Authority {
  /** The row as it was judged; null: it is gone. */
  readonly operation: Operation | null;
  /** What the log does not tell, a sentence each; empty: it may be sent. */
  readonly problems: readonly string[];
  /** By the log nothing of it has left that may have committed: it may be ended as unsent. */
  readonly unsent: boolean;
}

/** The row may move between two readings, by an Undo for one; more often than this it does not. */
const READINGS = 5;

/** What the log tells of an operation that is about to be sent. */
export async function authorityOf(
  { db: on, seals }: { readonly db: SqlRunner; readonly seals: Seals },
  id: OperationId,
): Promise<Authority> {
  for (let reading = 1; ; reading += 1) {
    const audited = await auditedOperation(on, id);
    if (audited === null) return { operation: null, problems: ["it is gone"], unsent: false };
    const { operation, events } = audited;
    const short = await endsTooEarly(on, events);
    const own = [
      ...checkOperation(audited).map(({ problem }) => problem),
      ...(short ? ["events were taken out of the log since its last one"] : []),
      ...earlyClaims(events),
      ...retryProblems(events),
      ...(await retrySealProblems(on, seals, audited)),
      ...(await policySealProblems(on, seals, audited)),
      ...answerProblems(seals, audited),
    ];
    // What was never held has nobody's approval to look for; a release that was taken out of the log is in what the chain says.
    const release = events.findLast(({ type }) => type === "release");
    const readable = !own.includes(NOT_CANONICAL);
    const approvals =
      !readable || release === undefined ? [] : await approvalProblems(on, seals, operation, release);
    if (approvals === "moved" && reading < READINGS) continue;
    const problems = [...own, ...(approvals === "moved" ? ["it does not stand still"] : approvals)];
    return { operation, problems: [...new Set(problems)], unsent: !short && isUnsent(audited) };
  }
}

/** PREPARED, or claimed just now from there, by as many events as the row counts. */
function isUnsent({ events, eventCount, headHash }: AuditedOperation): boolean {
  const last = events.at(-1);
  if (last === undefined || events.length !== eventCount || last.hash !== headHash) return false;
  return (last.type === "claim" ? events.at(-2) : last)?.to === "PREPARED";
}

/** What was claimed within this long after the event before is in no block that could tell of more. */
const SEALED_AFTER_MS = 5_000;

/** Its log may end too early, and its row with it: what was sealed since counts the events that are gone. */
async function endsTooEarly(on: SqlRunner, events: readonly AuditedEvent[]): Promise<boolean> {
  // Who joins it leaves an event, too, and takes it nowhere.
  const course = events.filter(({ from, to }) => from !== to);
  const last = course.at(-1);
  const sends = last?.type === "claim" || last?.type === "resend";
  const before = sends ? course.at(-2) : last;
  if (last === undefined || before === undefined) return false;
  if (sends && Date.parse(last.at) - Date.parse(before.at) < SEALED_AFTER_MS) return false;
  return isShortSince(on, before.id);
}

/** Claimed before its cooling-off was over. */
function earlyClaims(events: readonly AuditedEvent[]): string[] {
  const decided = decidedBy(events);
  const end = coolingOffEnd(decided);
  if (decided === undefined || end === null) return [];
  const early = events.some(
    ({ type, seq, at }) => type === "claim" && seq > decided.seq && Date.parse(at) < end,
  );
  return early ? ["it was claimed before its cooling-off was over"] : [];
}

/** What is sent again by a person's word: the log has their word for it, given as it stood, and used by nothing else. */
function retryProblems(events: readonly AuditedEvent[]): string[] {
  // Others may have joined since.
  const at = events.findLastIndex(({ type }) => type === "claim" || type === "resend");
  const resolution = dataOf(events[at])["resolution"];
  if (resolution === undefined) return [];
  const before = events.slice(0, at);
  const stood = before.slice(before.findLastIndex(({ from, to }) => from !== to) + 1);
  return stood.some(authorises(resolution))
    ? []
    : ["the log does not tell that a person authorised sending it again"];
}

const authorises =
  (resolution: Json) =>
  (event: AuditedEvent): boolean => {
    const { resolution: given, verb } = dataOf(event);
    return given === resolution && verb === "retry";
  };

/** The word that a sending again goes by is people's, and was given at this point of its course. */
async function retrySealProblems(
  on: SqlRunner,
  seals: Seals,
  { operation, events }: AuditedOperation,
): Promise<string[]> {
  const last = events.findLast(({ type }) => type === "claim" || type === "resend");
  const id = dataOf(last)["resolution"];
  if (id === undefined) return [];
  const given = await getResolution(on, String(id));
  const told = events.findLast(authorises(id));
  const fits =
    given !== null &&
    given.operationId === operation.id &&
    given.verb === "retry" &&
    given.state === "applied" &&
    given.operationVersion === BigInt(told?.seq ?? -1) &&
    resolutionHolds(seals, given);
  return fits ? [] : [UNSEALED_RESOLUTION];
}

/** The policy that it was decided under is one that a process of ours put in force. */
async function policySealProblems(
  on: SqlRunner,
  seals: Seals,
  { policyEvent, policiesTold }: AuditedOperation,
): Promise<string[]> {
  const sealed =
    policyEvent === null ? !(policiesTold || seals.policiesTold) : await isPolicyOurs(on, seals, policyEvent);
  return sealed ? [] : [UNSEALED_POLICY];
}

/** It was the policy, asked by a process of ours, that let it go, and by the approval that released it where one did. */
const answerProblems = (seals: Seals, { operation, seal }: AuditedOperation): string[] =>
  answerHolds(seals, operation, seal) ? [] : [UNSEALED_OPERATION];

async function approvalProblems(
  on: SqlRunner,
  seals: Seals,
  operation: Operation,
  release: AuditedEvent,
): Promise<readonly string[] | "moved"> {
  const { id, version } = operation;
  const approval = dataOf(release)["approval"];
  if (typeof approval !== "string") return ["the log names no approval that released it"];
  const chain = await chainOfSubject(on, `approval:${approval}`);
  // What is no content of an event cannot be compared with rows.
  if (chain.includes(NOT_CANONICAL)) return chain;
  let released: Release | null;
  try {
    released = await releaseOf(on, id, approval);
  } catch (error) {
    if (!isUnreadableValue(error)) throw error;
    return [...chain, "what the log tells of its approvals cannot be read"];
  }
  if (released === null || released.version !== version) return "moved";
  return [...chain, ...releaseProblems(released), ...voteProblems(seals, operation, approval, released)];
}

function releaseProblems({ gone, open, unasked, few, problems }: Release): string[] {
  if (gone) return ["the approval that released it is gone"];
  return [
    ...(open ? ["the approval that released it is not released"] : []),
    ...(unasked ? ["the log does not tell that its approval was asked for"] : []),
    ...(few ? ["the log does not tell of the votes that it takes"] : []),
    ...problems,
  ];
}

/** As many people as it takes said yes to just this, and no yes is anybody else's. */
function voteProblems(
  seals: Seals,
  { id, fingerprint }: Operation,
  approvalId: string,
  { bound, yes }: Release,
): string[] {
  // That it is gone is told by itself.
  if (bound === null) return [];
  const sealed = yes.filter(({ seal, ...vote }) =>
    voteHolds(seals, { approvalId, operationId: id, fingerprint, ...bound, ...vote }, seal),
  );
  const people = new Set(sealed.map(({ person }) => person)).size;
  return sealed.length === yes.length && people >= bound.approvers ? [] : [UNSEALED_VOTE];
}
