/**
 * Which places a scenario passes, written by hand: a worker can only die where it comes by. Cells whose crash point is never passed
 * are not in the plan; a test plays those that were taken out and sees that none of them fires.
 *
 * A letter says what the reconciler does after the first try. `S`: it looks, sends again under the same key or because nothing can
 * have happened, and that attempt's answer settles it. `L`: it looks and settles by what it reads, or by what it cannot read, and
 * never sends again. `B`: both, at different looks. `.`: the first try's own answer settled it, so nobody looks. `-`: the fault cannot
 * take effect there (see `expected.ts`), or nothing was ever sent.
 */
import { CONTRACT_NAMES, type ContractName } from "./contracts.js";
import type { CrashPoint } from "./crash-points.js";
import type { ModeName } from "./modes.js";

/** One letter for each provider, in the order of `CONTRACT_NAMES`. */
// biome-ignore format: a table
const RECONCILER: Readonly<Record<ModeName, string>> = {
  //                          none, strong-read, eventual-read, key, key-ttl, key-ttl-strong-read
  // Committed, and nobody heard of it. Without a key only reading settles it. A list that lags does not show it yet, so a keyed
  // request goes out again and is answered as the first; an exact list shows it at the first look.
  "lost-answer":             "LLLSSL",
  "cut-answer":              "LLLSSL",
  "stalled-answer":          "LLLSSL",
  "garbage-answer":          "LLLSSL",
  "wrong-answer":            "LLLSSL",
  "deploy-between-attempts": "LLLSSL",
  // The same, but what is answered under the key again says no more than before: reading settles it after all.
  "error-after-commit":      "LLLBBL",
  "accepted-then-succeeded": "LLLBBL",
  "accepted-then-failed":    "LLLBBL",
  "wrong-amount":            "LLLBBL",
  // Not committed at the first look: a keyed request goes out again; an exact list shows the late one to who looks once more.
  "late-commit":             "LLLSSB",
  "hang-then-success":       "LLLSSB",
  // Nothing is shown, or can be read: who has a key sends again; without one a list that must be right is taken for proof once the
  // bound has passed, and any other list never.
  "stale-read":              "-BLSSS",
  "read-hides":              "-BLSSS",
  "drop-before-commit":      "LBLSSS",
  "key-in-use":              "LBLSSS",
  "probe-down":              "LLLSSS",
  "probe-down-for-ever":     "LLLSSS",
  // The first look comes after the key's life. What lives for ever is sent again; so is what a list proves not to have happened, if no
  // key was ever promised.
  "key-expired":             "LLLLLL",
  "key-expired-unsent":      "LSLSLL",
  // Reading decides at the first look: a person gets it, or what was invented is believed.
  "key-conflict":            "---LLL",
  "human-in-dashboard":      "LLLLLL",
  "read-invents":            "-LLLLL",
  // The answer to the first try, or its webhook, is the end.
  "none":                    "......",
  "redelivery":              "......",
  "refused-before-send":     "......",
  "rate-limited":            "......",
  "business-rejection":      "......",
  "succeeded-then-failed":   "-.....",
  "webhook-overtakes":       "......",
  // Nobody authorised it: it is never claimed.
  "denied":                  "------",
  "undecided":               "------",
};

/** Letters of the table that pass each place of the reconciler. */
const PASSES = {
  "reconcile.after_take": "LSB",
  "reconcile.after_probe": "LSB",
  "reconcile.after_resend_claimed": "SB",
  "reconcile.after_settle": "LB",
} as const satisfies Partial<Record<CrashPoint, string>>;

const ofReconciler = (crash: CrashPoint): crash is keyof typeof PASSES => crash in PASSES;

/** Places that only a claimed operation passes. */
const AFTER_A_CLAIM: ReadonlySet<CrashPoint> = new Set(["dispatch.before_claim", "dispatch.after_settle"]);

/** Whether the worker comes by this place under this fault at this provider. */
export function passes(mode: ModeName, contract: ContractName, crash: CrashPoint): boolean {
  if (ofReconciler(crash)) {
    const letter = RECONCILER[mode][CONTRACT_NAMES.indexOf(contract)] ?? "-";
    return PASSES[crash].includes(letter);
  }
  const neverClaimed = mode === "denied" || mode === "undecided";
  return !(neverClaimed && AFTER_A_CLAIM.has(crash));
}
