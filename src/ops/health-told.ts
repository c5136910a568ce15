/** What `/ops health` says, as plain text: Slack and the shell tell the same. Pure; times are in UTC and say so. */
import { frozenWords } from "../domain/frozen.js";
import { formatMoney } from "../domain/money.js";
import { type Operation, stateWords } from "../domain/operation.js";
import { unknownSinceLabel } from "../domain/quarantine-words.js";
import { counted } from "../domain/text/counted.js";
import { listOf } from "../domain/text/list-of.js";
import { utcTime } from "../domain/text/utc-time.js";
import type { HealthView } from "./types.js";

export interface HealthTold {
  /** What does not work, what is not sent and what waits for a person, before any "healthy". */
  readonly title: string;
  readonly facts: readonly string[];
  /** Rows that are due and wait for a worker, a line for each table that has some. */
  readonly backlog: readonly string[];
}

/** Ids stand between backticks. */
export function healthTold(view: HealthView): HealthTold {
  const since = view.oldestPendingAt === null ? "" : `, oldest since ${utcTime(view.oldestPendingAt)}`;
  return {
    title: healthTitle(view),
    facts: [
      `Open: ${countsText(view.counts)}.`,
      ...coolingFacts(view.coolingOff),
      ...triedFacts(view.triedAgain),
      `Approvals that wait: ${view.pendingApprovals}${since}.`,
      oldestText(view.oldestUnknown),
      `Open incidents: ${view.openIncidents}.`,
    ],
    backlog: view.backlog
      .filter(({ due }) => due > 0)
      .map(
        ({ what, due, oldestDueAt }) =>
          `${what}: ${due} due${oldestDueAt === null ? "" : `, oldest since ${utcTime(oldestDueAt)}`}`,
      ),
  };
}

/** The one line that everybody reads. */
function healthTitle({ parts, frozen: switches, counts, openIncidents }: HealthView): string {
  const away = parts.some(({ ok }) => !ok);
  const frozen = switches.filter((state) => state.frozen);
  const held = frozen.some(({ kind }) => kind === "all")
    ? frozenWords("all")
    : listOf(frozen.map(({ kind }) => frozenWords(kind)));
  const parked = counts.QUARANTINED ?? 0;
  const waits = [
    ...(parked === 0 ? [] : [`${counted(parked, "operation")} with a person`]),
    ...(openIncidents === 0 ? [] : [counted(openIncidents, "open incident")]),
  ].join(", ");
  const before = [away ? "Not all parts work" : "", held, waits].filter((part) => part !== "");
  const whole = parts.every(({ looked }) => looked !== false);
  if (before.length === 0) return whole ? "Healthy" : "What was looked at is healthy";
  const rest = whole ? "All parts are there" : "The parts that were looked at are there";
  return [...before, ...(away ? [] : [rest])].join(". ");
}

/** "1 quarantined, 2 outcome unknown". */
export function countsText(counts: HealthView["counts"]): string {
  const parts = Object.entries(counts)
    .filter(([, count]) => count > 0)
    .map(([status, count]) => `${count} ${stateWords(status)}`);
  return parts.length === 0 ? "nothing open" : parts.join(", ");
}

function coolingFacts(cooling: HealthView["coolingOff"]): string[] {
  if (cooling === null) return [];
  const { count, firstUntil, lastUntil } = cooling;
  return count === 1
    ? [`Cooling off: 1 operation, not sent before ${utcTime(lastUntil)}.`]
    : [
        `Cooling off: ${count} operations, the first not sent before ${utcTime(firstUntil)}, the last not before ${utcTime(lastUntil)}.`,
      ];
}

const triedFacts = (tried: HealthView["triedAgain"]): string[] =>
  tried === null
    ? []
    : [
        `Tried and not taken by the provider, certainly not carried out: ${counted(tried.count, "operation")}, since ${utcTime(tried.since)}. Each is tried again by itself.`,
      ];

/** Which it is, and from when it counts: one that was opened again counts from then, and says so. */
function oldestText(operation: Operation | null): string {
  if (operation === null || operation.unknownSince === null) return "Nothing is unknown.";
  const since = unknownSinceLabel(operation.quarantineReason).toLowerCase();
  return `Oldest that is not settled: ${shortOf(operation)} \`${operation.id}\`, ${since} ${utcTime(operation.unknownSince)}.`;
}

/** "refund £180.00 GBP ORD-10042" */
export function shortOf({
  kind,
  amountMinor,
  currency,
  orderRef,
  subscriptionRef,
}: Pick<Operation, "kind" | "amountMinor" | "currency" | "orderRef" | "subscriptionRef">): string {
  const amount = kind === "refund" ? ` ${formatMoney({ amountMinor, currency })}` : "";
  return `${kind.replaceAll("_", " ")}${amount} ${orderRef ?? subscriptionRef ?? ""}`.trimEnd();
}
