/** Random commands for the ledger, as data: they print themselves and shrink. */
import fc from "fast-check";
import { MODES, type Mode } from "./provider.js";

export type Command =
  | { do: "propose"; pounds: number; held: boolean }
  | { do: "one_attempt"; pounds: number; mode: Mode }
  | { do: "next_attempt"; pick: number; mode: Mode }
  | { do: "repeat"; pick: number }
  | { do: "further"; pick: number }
  | { do: "release" | "deny" | "expire" | "void"; pick: number }
  | { do: "abandon"; pick: number }
  | { do: "claim"; pick: number }
  | { do: "send"; pick: number; mode: Mode }
  | { do: "answer" | "crash" | "renew"; pick: number }
  | { do: "arrive"; pick: number }
  | { do: "reconcile"; limit: number }
  | { do: "pending_ends"; pick: number; well: boolean }
  | { do: "bank_returns"; pick: number }
  | { do: "webhook"; pick: number }
  | { do: "by_hand"; pounds: number }
  | { do: "elsewhere" }
  | { do: "resolve"; pick: number; verb: "confirm" | "reject" | "retry"; agree: boolean }
  | { do: "send_authorised"; pick: number }
  | { do: "time"; ms: number }
  | { do: "freeze" | "thaw" };

const pick = fc.nat({ max: 7 });
const SECOND = 1_000;
const HOUR = 3_600_000;

const weighted: { weight: number; arbitrary: fc.Arbitrary<Command> }[] = [
  {
    weight: 6,
    arbitrary: fc.record({
      do: fc.constant("propose" as const),
      pounds: fc.constantFrom(1, 2, 5, 20, 45, 60),
      held: fc.boolean(),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant("one_attempt" as const),
      pounds: fc.constantFrom(1, 2, 5, 20),
      mode: fc.constantFrom(...MODES, "arrives_later" as const),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant("next_attempt" as const),
      pick,
      mode: fc.constantFrom(...MODES, "refused" as const),
    }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("repeat" as const), pick }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("further" as const), pick }) },
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constantFrom(
        "release" as const,
        "release" as const,
        "deny" as const,
        "expire" as const,
        "void" as const,
      ),
      pick,
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("abandon" as const), pick }) },
  { weight: 7, arbitrary: fc.record({ do: fc.constant("claim" as const), pick }) },
  {
    weight: 8,
    arbitrary: fc.record({ do: fc.constant("send" as const), pick, mode: fc.constantFrom(...MODES) }),
  },
  {
    weight: 7,
    arbitrary: fc.record({
      do: fc.constantFrom(
        "answer" as const,
        "answer" as const,
        "answer" as const,
        "crash" as const,
        "renew" as const,
      ),
      pick,
    }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("arrive" as const), pick }) },
  {
    weight: 6,
    arbitrary: fc.record({ do: fc.constant("reconcile" as const), limit: fc.integer({ min: 1, max: 3 }) }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("pending_ends" as const), pick, well: fc.boolean() }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("bank_returns" as const), pick }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant("webhook" as const), pick }) },
  {
    weight: 1,
    arbitrary: fc.record({ do: fc.constant("by_hand" as const), pounds: fc.constantFrom(1, 2, 5, 20) }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("elsewhere" as const) }) },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant("resolve" as const),
      pick,
      verb: fc.constantFrom("confirm" as const, "reject" as const, "retry" as const),
      agree: fc.boolean(),
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("send_authorised" as const), pick }) },
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant("time" as const),
      ms: fc.constantFrom(SECOND, 31 * SECOND, 31 * SECOND, HOUR, 25 * HOUR),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ do: fc.constantFrom("freeze" as const, "thaw" as const, "thaw" as const) }),
  },
];

/** Sequences of commands. */
export const sequences = (maxLength: number): fc.Arbitrary<Command[]> =>
  fc.array(fc.oneof(...weighted), { minLength: 5, maxLength, size: "max" });
