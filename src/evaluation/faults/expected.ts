/**
 * What must come out, written by hand: for each fault and provider, the ends that are right, and the harms that no client could
 * exclude there because the provider itself does not keep to its contract, or promises nothing.
 *
 * A letter is an end of our operation: C confirmed, R rejected, X reversed, V voided (truthfully not done, may be asked for
 * again), D denied, E expired undecided, Q quarantined (with a person). Where Q is missing, none may end quarantined; where it stands alone, all do. Three
 * columns, by what a crash takes with it: nothing (`kept`), that nothing was sent (`unsent`), the answer (`unsaid`); a fourth
 * where a crash of the reconciler, whose work is repeated, may end otherwise than `kept`. `-`: the fault cannot take effect there.
 */
import type { ContractName } from "./contracts.js";
import { type CrashPoint, lossOf } from "./crash-points.js";
import type { ModeName } from "./modes.js";
import type { Harm } from "./score.js";

export type EndLetter = "C" | "R" | "X" | "V" | "Q" | "D" | "E";

type Columns = Readonly<Record<ContractName, string>>;

const columns = (
  none: string,
  strong: string,
  eventual: string,
  key: string,
  keyTtl: string,
  keyTtlStrong: string,
): Columns => ({
  none,
  "strong-read": strong,
  "eventual-read": eventual,
  key,
  "key-ttl": keyTtl,
  "key-ttl-strong-read": keyTtlStrong,
});

/** kept, unsent, unsaid, and looking where it differs from kept. */
// biome-ignore format: a table
const ENDS: Readonly<Record<ModeName, Columns>> = {
  //                                  none      strong-read eventual-read key      key-ttl   key-ttl-strong-read
  "none":                    columns("C Q Q",   "C C C",    "C Q C",      "C C C", "C C C",  "C C C"),
  "lost-answer":             columns("Q - Q",   "C C C",    "C - C",      "C C C", "C C C",  "C C C"),
  "error-after-commit":      columns("Q - Q",   "C C C",    "C - C",      "C C C", "C C C",  "C C C"),
  "cut-answer":              columns("Q - Q",   "C C C",    "C - C",      "C C C", "C C C",  "C C C"),
  "stalled-answer":          columns("Q - Q",   "C C C",    "C - C",      "C C C", "C C C",  "C C C"),
  "garbage-answer":          columns("Q - Q",   "C C C",    "C - C",      "C C C", "C C C",  "C C C"),
  "late-commit":             columns("Q - Q",   "C C C",    "C - C",      "C C C", "C C C",  "C C C"),
  "hang-then-success":       columns("Q - Q",   "C C C",    "C - C",      "C C C", "C C C",  "C C C"),
  "redelivery":              columns("C - Q",   "C C Q",    "C - Q",      "C C C", "C C C",  "C C C"),
  "stale-read":              columns("- - -",   "C C C",    "C - C",      "C C C", "C C C",  "C C C"),
  "refused-before-send":     columns("C - Q",   "C C C",    "C - Q",      "C C C", "C C C",  "C C C"),
  "drop-before-commit":      columns("Q - Q",   "C C C",    "Q - Q",      "C C C", "C C C",  "C C C"),
  "rate-limited":            columns("C - Q",   "C C C",    "C - Q",      "C C C", "C C C",  "C C C"),
  "key-in-use":              columns("Q - Q",   "C C C",    "Q - Q",      "C C C", "C C C",  "C C C"),
  "business-rejection":      columns("R - Q",   "R R R",    "R - Q",      "R R R", "R R R",  "R R R"),
  "key-conflict":            columns("- - -",   "- - -",    "- - -",      "Q Q Q", "Q Q Q",  "Q Q Q"),
  "deploy-between-attempts": columns("Q - Q",   "C C C",    "C - C",      "C C C", "C C C",  "C C C"),
  "key-expired":             columns("Q - Q",   "C C C",    "C - C",      "C C C", "C - C",  "C - C"),
  "key-expired-unsent":      columns("Q - Q",   "C C C CQ", "Q - Q",      "C C C", "Q - Q",  "V - V"),
  "probe-down":              columns("Q - Q",   "C C C",    "C - C",      "C C C", "C C C",  "C C C"),
  "probe-down-for-ever":     columns("Q - Q",   "Q - Q",    "Q - Q",      "C C C", "C C C",  "C C C"),
  "read-hides":              columns("- - -",   "C C C",    "Q - Q",      "C C C", "C C C",  "C C C"),
  "read-invents":            columns("- - -",   "C C C",    "C - C",      "C C C", "C C C",  "C C C"),
  "human-in-dashboard":      columns("Q Q Q",   "Q Q Q",    "Q Q Q",      "Q Q Q", "Q Q Q",  "Q Q Q"),
  "accepted-then-succeeded": columns("Q - Q",   "C C C",    "C - C",      "C C C", "C C C",  "C C C"),
  "accepted-then-failed":    columns("Q - Q",   "R R R",    "R - R",      "R R R", "R R R",  "R R R"),
  "succeeded-then-failed":   columns("- - -",   "X X X",    "X - X",      "X X X", "X X X",  "X X X"),
  "wrong-amount":            columns("Q - Q",   "Q Q Q",    "Q - Q",      "Q Q Q", "Q Q Q",  "Q Q Q"),
  "wrong-answer":            columns("Q - Q",   "C C C",    "C - C",      "C C C", "C C C",  "C C C"),
  "webhook-overtakes":       columns("C - Q",   "C C C",    "C - C",      "C C C", "C C C",  "C C C"),
  "denied":                  columns("D - - -", "D - - -",  "D - - -",    "D - - -", "D - - -", "D - - -"),
  "undecided":               columns("E - - -", "E - - -",  "E - - -",    "E - - -", "E - - -", "E - - -"),
};

const COLUMN = { kept: 0, unsent: 1, unsaid: 2, looking: 3 } as const;

/** Right ends; null: the fault cannot take effect there. */
export function expectedEnds(mode: ModeName, contract: ContractName, crash: CrashPoint): string | null {
  const cells = ENDS[mode][contract].split(" ");
  const ends = cells[COLUMN[lossOf(crash)]] ?? cells[COLUMN.kept];
  return ends === undefined || ends === "-" ? null : ends;
}

export type NamedHarm = keyof Harm;

interface NotExcluded {
  readonly mode: ModeName;
  readonly contracts: readonly ContractName[];
  readonly harm: NamedHarm;
  readonly why: string;
}

const UNKEYED: readonly ContractName[] = ["none", "strong-read", "eventual-read"];

/**
 * Harms that no client of that provider could exclude. Where the provider can be read at all, each must be found afterwards and
 * reach a person.
 */
const NOT_EXCLUDED: readonly NotExcluded[] = [
  {
    mode: "redelivery",
    contracts: UNKEYED,
    harm: "duplicate",
    why: "without a key the provider takes the transport's copy for a second request",
  },
  {
    mode: "stale-read",
    contracts: ["strong-read"],
    harm: "duplicate",
    why: "the provider promises lists that are up to date and shows an old one",
  },
  {
    mode: "read-hides",
    contracts: ["strong-read"],
    harm: "duplicate",
    why: "the provider promises lists that are up to date and hides a refund",
  },
  {
    mode: "read-invents",
    contracts: ["strong-read", "eventual-read", "key", "key-ttl", "key-ttl-strong-read"],
    harm: "falseSuccess",
    why: "the provider shows a refund with our operation's id that it never made",
  },
];

/** Whether a client can read afterwards what the provider did. */
export const canBeNoticed = (contract: ContractName): boolean => contract !== "none";

/** Why this harm cannot be excluded here; null: it must not happen. */
export function notExcluded(mode: ModeName, contract: ContractName, harm: NamedHarm): string | null {
  const found = NOT_EXCLUDED.find(
    (entry) => entry.mode === mode && entry.harm === harm && entry.contracts.includes(contract),
  );
  return found?.why ?? null;
}
