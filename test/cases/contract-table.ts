/**
 * What one look at an open refund comes to, written by hand from the design's recovery table: for each provider, each thing that
 * happened there, and each moment at which a worker looks. No entry was taken from a run.
 *
 * A letter is what the worker does at that look. `C` it confirms by what it read, `R` it rejects so, `S` it sends once more, `P` it
 * goes back to being prepared, `L` it looks again later, `Q` a person gets it. Only `S` is a request that could move money.
 */
import type { EffectContract } from "../../src/domain/contract.js";

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const LAG_MS = MINUTE_MS;
const BOUND_MS = MINUTE_MS;
export const KEY_TTL_MS = 24 * HOUR_MS;

export type Terms = Pick<
  EffectContract,
  "keyed" | "keyTtlMs" | "readback" | "inflightBoundMs" | "cancellable"
>;

const eventual = { kind: "eventual", lagMs: LAG_MS } as const;
const strong = { kind: "strong" } as const;
const terms = (
  key: number | "for ever" | null,
  readback: Terms["readback"],
  inflightBoundMs: number | null,
  cancellable = false,
): Terms => ({
  keyed: key !== null,
  keyTtlMs: typeof key === "number" ? key : null,
  readback,
  inflightBoundMs,
  cancellable,
});

export const PROVIDERS = {
  "key for ever, lagging list": terms("for ever", eventual, null),
  "key with a life, lagging list": terms(KEY_TTL_MS, eventual, null),
  "key with a life, lagging list, calls back": terms(KEY_TTL_MS, eventual, null, true),
  "key with a life, lagging list, bound": terms(KEY_TTL_MS, eventual, BOUND_MS),
  "key with a life, exact list": terms(KEY_TTL_MS, strong, null),
  "key with a life, exact list, bound": terms(KEY_TTL_MS, strong, BOUND_MS),
  "no key, no list": terms(null, { kind: "none" }, null),
  "no key, lagging list": terms(null, eventual, null),
  "no key, lagging list, bound": terms(null, eventual, BOUND_MS),
  "no key, exact list": terms(null, strong, null),
  "no key, exact list, bound": terms(null, strong, BOUND_MS),
  "no key, exact list, bound, calls back": terms(null, strong, BOUND_MS, true),
} as const satisfies Record<string, Terms>;
export type ProviderName = keyof typeof PROVIDERS;

/** When the worker looks, after the claim, and after how long an open outcome is a person's. */
export const MOMENTS = [
  { when: "at once", afterMs: 5_000, personAfterMs: HOUR_MS },
  { when: "once list and bound are past", afterMs: 3 * MINUTE_MS, personAfterMs: HOUR_MS },
  { when: "once it is a person's", afterMs: 2 * HOUR_MS, personAfterMs: HOUR_MS },
  { when: "once the key's life is over", afterMs: 25 * HOUR_MS, personAfterMs: 48 * HOUR_MS },
  { when: "once both are", afterMs: 25 * HOUR_MS, personAfterMs: HOUR_MS },
] as const;

/** What became of the one request that left, whose answer nobody got. */
export const HAPPENED = [
  "made",
  "made, no list to be had",
  "made otherwise",
  "made twice",
  "nothing",
  "nothing, no list to be had",
  "nothing, and a person made the same",
  "pending",
  "failed after all",
] as const;
export type Happened = (typeof HAPPENED)[number];

type Row = Readonly<Record<Happened, string>>;

const row = (
  made: string,
  madeUnseen: string,
  otherwise: string,
  twice: string,
  nothing: string,
  nothingUnseen: string,
  stranger: string,
  pending: string,
  failed: string,
): Row => ({
  made,
  "made, no list to be had": madeUnseen,
  "made otherwise": otherwise,
  "made twice": twice,
  nothing,
  "nothing, no list to be had": nothingUnseen,
  "nothing, and a person made the same": stranger,
  pending,
  "failed after all": failed,
});

/** One letter for each moment, in their order. */
// biome-ignore format: a table
export const EXPECTED: Readonly<Record<ProviderName, Row>> = {
  //                                               made     unseen   otherw.  twice    nothing  unseen   strange  pending  failed
  "key for ever, lagging list":                row("SCCCC", "SSSSS", "SQQQQ", "SQQQQ", "SSSSS", "SSSSS", "SQQQQ", "SLQLQ", "SRRRR"),
  "key with a life, lagging list":             row("SCCCC", "SSSLQ", "SQQQQ", "SQQQQ", "SSSLQ", "SSSLQ", "SQQQQ", "SLQLQ", "SRRRR"),
  "key with a life, lagging list, calls back": row("SCCCC", "SSSLQ", "SQQQQ", "SQQQQ", "SSSLQ", "SSSLQ", "SQQQQ", "SLQLQ", "SRRRR"),
  "key with a life, lagging list, bound":      row("SCCCC", "SSSLQ", "SQQQQ", "SQQQQ", "SSSLQ", "SSSLQ", "SQQQQ", "SLQLQ", "SRRRR"),
  "key with a life, exact list":               row("CCCCC", "SSSLQ", "QQQQQ", "QQQQQ", "SSSLQ", "SSSLQ", "QQQQQ", "LLQLQ", "RRRRR"),
  "key with a life, exact list, bound":        row("CCCCC", "SSSLQ", "QQQQQ", "QQQQQ", "SSSPP", "SSSLQ", "QQQQQ", "LLQLQ", "RRRRR"),
  "no key, no list":                           row("LLQLQ", "LLQLQ", "LLQLQ", "LLQLQ", "LLQLQ", "LLQLQ", "LLQLQ", "LLQLQ", "LLQLQ"),
  "no key, lagging list":                      row("LCCCC", "LLQLQ", "LQQQQ", "LQQQQ", "LLQLQ", "LLQLQ", "LQQQQ", "LLQLQ", "LRRRR"),
  "no key, lagging list, bound":               row("LCCCC", "LLQLQ", "LQQQQ", "LQQQQ", "LLQLQ", "LLQLQ", "LQQQQ", "LLQLQ", "LRRRR"),
  "no key, exact list":                        row("CCCCC", "LLQLQ", "QQQQQ", "QQQQQ", "LLQLQ", "LLQLQ", "QQQQQ", "LLQLQ", "RRRRR"),
  "no key, exact list, bound":                 row("CCCCC", "LLQLQ", "QQQQQ", "QQQQQ", "LSSSS", "LLQLQ", "QQQQQ", "LLQLQ", "RRRRR"),
  "no key, exact list, bound, calls back":     row("CCCCC", "LLQLQ", "QQQQQ", "QQQQQ", "LSSSS", "LLQLQ", "QQQQQ", "LLQLQ", "RRRRR"),
};
