/** The approval ladder: which line an amount needs. */

import type { ApprovalLine, KindRules, Limit } from "./policy.js";
import { amountText } from "./text.js";

/** What `limit` says about `currency`; undefined when it does not name it. */
export function limitFor(limit: Limit, currency: string): bigint | undefined {
  return Object.hasOwn(limit, currency) ? limit[currency] : undefined;
}

export type LineChoice =
  | {
      readonly found: true;
      readonly line: ApprovalLine;
      readonly index: number;
      readonly isLastLine: boolean;
    }
  | { readonly found: false; readonly sentence: string };

/**
 * The first line that covers `ladderMinor` (this amount plus what is already reserved or refunded on the order in the
 * window). A currency that `auto` or the lines do not name goes to the last line. Never a line for more than the last one
 * allows. `currency` is "" for effects that move no money.
 */
export function chooseLine(rules: KindRules, currency: string, ladderMinor: bigint): LineChoice {
  const lines = rules.approval;
  const last = lines.at(-1);
  if (last === undefined)
    return { found: false, sentence: "The policy names nobody who could approve this." };
  const lastChoice = { found: true, line: last, index: lines.length - 1, isLastLine: true } as const;
  if (typeof rules.auto === "object" && limitFor(rules.auto, currency) === undefined) return lastChoice;
  const index = lines.findIndex((line) => covers(line, currency, ladderMinor));
  const line = lines[index];
  if (line !== undefined) return { found: true, line, index, isLastLine: index === lines.length - 1 };
  if (last.upTo !== undefined && limitFor(last.upTo, currency) === undefined) return lastChoice;
  return {
    found: false,
    sentence: `${amountText(ladderMinor, currency)} is more than anybody may approve.`,
  };
}

function covers(line: ApprovalLine, currency: string, ladderMinor: bigint): boolean {
  if (line.upTo === undefined) return true;
  const upTo = limitFor(line.upTo, currency);
  return upTo !== undefined && ladderMinor <= upTo;
}
