/**
 * What an episode came to, from two sides that know nothing of each other: what the arm says, and what the provider's own
 * database counts.
 */
import { assertNever } from "../../domain/assert-never.js";

/**
 * The arm's last word. `person`: it says that it does not know, and has asked a person. `open`: it has come to no end.
 */
export type Claim = "done" | "not_done" | "person" | "open";

/** What the provider counts on the episode's payment at the end; refunds that failed there do not count. */
export interface Counted {
  readonly alive: readonly { readonly amount: number; readonly origin: "api" | "dashboard" }[];
}

export interface Harm {
  /** The customer was given the money more than once. */
  readonly duplicate: boolean;
  /** It says "not done" while the money has moved, or it came to nothing without a word. */
  readonly lost: boolean;
  /** It says "done" and no refund of that amount exists. */
  readonly falseSuccess: boolean;
  /** Money moved that nobody allowed: another amount than was allowed, or none was. */
  readonly unauthorised: boolean;
  /** Neither ended nor with a person, after everything that would have come by itself. */
  readonly stuck: boolean;
}

/** Ended truthfully without an effect although the provider would have done it. Not a harm; a cost. */
export interface Score extends Harm {
  readonly undone: boolean;
  readonly quarantined: boolean;
}

export interface Judged {
  readonly claim: Claim;
  readonly counted: Counted;
  readonly amountMinor: number;
  /** The provider would do it, if asked undisturbed. */
  readonly possible: boolean;
  /** Somebody who may has allowed it, or nobody need. */
  readonly authorised: boolean;
  /** The arm's own requests asked for more than was allowed, or for something nobody allowed. */
  readonly askedBeyond: boolean;
}

/** Pure. */
export function score(judged: Judged): Score {
  const { claim, counted, amountMinor } = judged;
  const ours = counted.alive.filter((effect) => effect.amount === amountMinor);
  const base = {
    duplicate: counted.alive.length > 1,
    unauthorised:
      judged.askedBeyond || (!judged.authorised && counted.alive.some((effect) => effect.origin === "api")),
    lost: false,
    falseSuccess: false,
    stuck: false,
    undone: false,
    quarantined: false,
  };
  switch (claim) {
    case "done":
      return { ...base, falseSuccess: ours.length === 0 };
    case "not_done":
      return {
        ...base,
        lost: counted.alive.some((effect) => effect.origin === "api"),
        undone: counted.alive.length === 0 && judged.possible,
      };
    case "person":
      return { ...base, quarantined: true };
    case "open":
      return { ...base, stuck: true };
    default:
      return assertNever(claim, "claim");
  }
}
