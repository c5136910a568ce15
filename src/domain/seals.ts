/**
 * Seals: that a row was written by a process that knows a secret of ours, and what it said then. Whoever can write the database alone
 * makes none, and one that was copied holds only for what it was made for.
 *
 * 1. What is sealed is canonical text with its kind at the head: a seal of one kind is none of another.
 * 2. The secret is compared in this process and is never part of a statement.
 */
import { createHmac, timingSafeEqual } from "node:crypto";
import { type Canonical, canonicalJson } from "./canonical.js";
import { CountersignError } from "./errors.js";

/** What a seal is of. */
export type SealedKind = "arrival" | "vote" | "resolution" | "operation" | "policy";

export interface Seals {
  /** @throws CountersignError `no_seal_secret` in a process that has none */
  make(kind: SealedKind, parts: readonly Canonical[]): string;
  /** Whether this seal was made of just these parts. null: there is none, and it does not hold. */
  holds(kind: SealedKind, parts: readonly Canonical[], seal: string | null): boolean;
  /** The log is told, sealed, of every policy that is in force: what was decided under one that it does not know is nobody's. */
  readonly policiesTold: boolean;
}

/**
 * `secret` makes seals; those of `accepted` hold as well, while one secret takes another's place. `policiesTold`: not, where what is
 * only played has a policy of which nobody tells the log.
 */
export function sealsWith({
  secret,
  accepted = [],
  policiesTold = true,
}: {
  readonly secret: string;
  readonly accepted?: readonly string[];
  readonly policiesTold?: boolean;
}): Seals {
  const known = [secret, ...accepted];
  return {
    make: (kind, parts) => sealText(secret, kind, parts),
    holds: (kind, parts, seal) =>
      seal !== null && known.some((each) => isSame(seal, sealText(each, kind, parts))),
    policiesTold,
  };
}

/** Of a process that decides and sends nothing: it makes none, and none holds. */
export const NO_SEALS: Seals = {
  make: () => {
    throw new CountersignError(
      "no_seal_secret",
      "nothing is decided in a process that has no secret to seal it with",
    );
  },
  holds: () => false,
  policiesTold: true,
};

function sealText(secret: string, kind: SealedKind, parts: readonly Canonical[]): string {
  const text = canonicalJson([`countersign ${kind}`, ...parts]);
  return createHmac("sha256", secret).update(text, "utf8").digest("hex");
}

function isSame(given: string, expected: string): boolean {
  const one = Buffer.from(given, "utf8");
  const other = Buffer.from(expected, "utf8");
  return one.length === other.length && timingSafeEqual(one, other);
}
