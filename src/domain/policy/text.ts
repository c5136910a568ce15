/** Words for the gate's sentences. */
import { formatMoney } from "../money.js";
import { counted } from "../text/counted.js";

/** An amount as people read it. Sums may lie above what a single `Money` may be; they are still said exactly. */
export const amountText = (amountMinor: bigint, currency: string): string =>
  formatMoney({ amountMinor, currency });

/** "30 days", "24 hours", "1.5 hours", "90 seconds": a length of time given in hours. */
export function durationText(hours: number): string {
  if (hours >= 48 && hours % 24 === 0) return counted(hours / 24, "day");
  if (hours >= 1) return counted(round(hours), "hour");
  const minutes = hours * 60;
  return minutes >= 1 ? counted(round(minutes), "minute") : counted(round(minutes * 60), "second");
}

/** "a", "a or b", "a, b and c". */
export function listText(words: readonly string[], join: "or" | "and" = "or"): string {
  if (words.length <= 1) return words.join("");
  return `${words.slice(0, -1).join(", ")} ${join} ${words.at(-1)}`;
}

const round = (value: number): number => Math.round(value * 100) / 100;
