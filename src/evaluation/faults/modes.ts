/**
 * What goes wrong: one entry for each fault of the matrix, played on the provider's sandbox. A mode knows nothing of the arm that
 * meets it.
 */
import { KEY_TTL_MS, LAG_MS } from "./contracts.js";
import type { World } from "./world.js";

export const MODE_NAMES = [
  "none",
  "lost-answer",
  "error-after-commit",
  "cut-answer",
  "stalled-answer",
  "garbage-answer",
  "late-commit",
  "hang-then-success",
  "redelivery",
  "stale-read",
  "refused-before-send",
  "drop-before-commit",
  "rate-limited",
  "key-in-use",
  "business-rejection",
  "key-conflict",
  "deploy-between-attempts",
  "key-expired",
  "key-expired-unsent",
  "probe-down",
  "probe-down-for-ever",
  "read-hides",
  "read-invents",
  "human-in-dashboard",
  "accepted-then-succeeded",
  "accepted-then-failed",
  "succeeded-then-failed",
  "wrong-amount",
  "wrong-answer",
  "webhook-overtakes",
  "denied",
  "undecided",
] as const;
export type ModeName = (typeof MODE_NAMES)[number];

/** Where a mode is armed. */
export interface Staging {
  readonly world: World;
  readonly paymentIntent: string;
  readonly amountMinor: number;
}

/** A mode in place. */
export interface Armed {
  /** The fault took effect. */
  fired(): Promise<boolean>;
  /** What happens once the first try is over, before anybody looks again. */
  beforeRecovery?(): Promise<void>;
  /** What happens once the arm has come to its end, much later. */
  afterEnd?(): Promise<void>;
  /** True: this connection is refused. Asked once for each send. */
  refusesConnection?(): boolean;
}

export interface FaultMode {
  /** For the report. */
  readonly what: string;
  /** The provider would do it, if asked undisturbed. Default true. */
  readonly impossible?: true;
  /** Deadline of one call to the provider, milliseconds of the machine's time. Default `CALL_MS`. */
  readonly timeoutMs?: number;
  /** The arm hears the provider's webhooks. */
  readonly webhooks?: true;
  /** It is above what the agent may do alone, and a person says no, or nobody says anything: nobody authorises it. */
  readonly unauthorised?: "denied" | "undecided";
  /** A request built after the first try would differ in what is not material. */
  readonly rebuilt?: true;
  arm(staging: Staging): Promise<Armed>;
}

/** Generous: only modes that make a caller wait shorten it. */
export const CALL_MS = 5_000;
const IMPATIENT_MS = 200;
/** A commit that comes late comes after this much of the world's time: after a first look, before any bound. */
const LATE_MS = 8_000;
const PENDING_MS = 150_000;
/** What a sandbox may hold back in its own time; `hurryProvider` ends it. */
const HELD_BACK_MS = 3_000_000;
const DAYS_MS = 3 * 24 * 3_600_000;

type Spec = Parameters<World["control"]["arm"]>[0];

/** A fault of the sandbox, as it stands in the list of `docs/payments-sandbox.md`. */
function sandboxFault(staging: Staging, spec: Spec): Armed & { id: string } {
  const { control } = staging.world;
  const id = control.arm({ ...spec, match: { ...spec.match, paymentIntent: staging.paymentIntent } });
  return { id, fired: async () => control.fired(id) > 0 };
}

const simple =
  (spec: Spec): FaultMode["arm"] =>
  async (staging) =>
    sandboxFault(staging, spec);

const posts = { method: "POST" } as const;

/** The fault is the missing authority: it is there from the start. */
const withoutAuthority = (unauthorised: "denied" | "undecided", what: string): FaultMode => ({
  what,
  impossible: true,
  unauthorised,
  arm: async () => ({ fired: async () => true }),
});

export const MODES: Readonly<Record<ModeName, FaultMode>> = {
  none: { what: "nothing goes wrong at the provider", arm: async () => ({ fired: async () => true }) },
  "lost-answer": { what: "committed, the answer is lost", arm: simple({ kind: "commit_then_drop" }) },
  "error-after-commit": { what: "committed, answered with 500", arm: simple({ kind: "commit_then_500" }) },
  "cut-answer": { what: "committed, half an answer", arm: simple({ kind: "commit_then_cut" }) },
  "stalled-answer": {
    what: "committed, the answer stops in the middle",
    timeoutMs: IMPATIENT_MS,
    arm: simple({ kind: "commit_then_stall" }),
  },
  "garbage-answer": {
    what: "committed, the answer is no JSON",
    arm: simple({ kind: "commit_then_garbage" }),
  },
  "late-commit": { what: "the connection breaks, the commit comes after a read-back", arm: armLateCommit },
  "hang-then-success": {
    what: "the provider hangs past the deadline and commits then",
    timeoutMs: IMPATIENT_MS,
    arm: async (staging) => {
      const armed = sandboxFault(staging, { kind: "hang_then_commit", delayMs: HELD_BACK_MS });
      return { ...armed, beforeRecovery: async () => commitLater(staging.world) };
    },
  },
  redelivery: {
    what: "the transport delivers the request twice",
    arm: simple({ kind: "redeliver", copies: 1, answer: "first" }),
  },
  "stale-read": {
    what: "the answer is lost and lists are two minutes old",
    arm: async (staging) => {
      const lost = sandboxFault(staging, { kind: "commit_then_drop" });
      sandboxFault(staging, { kind: "stale_read", lagMs: 2 * LAG_MS });
      return lost;
    },
  },
  "refused-before-send": { what: "the connection is refused", arm: armRefusedConnection },
  "drop-before-commit": {
    what: "the connection breaks before anything happens",
    arm: simple({ kind: "drop_before_commit" }),
  },
  "rate-limited": { what: "429 twice", arm: simple({ kind: "rate_limited", times: 2 }) },
  "key-in-use": { what: "409 though nothing runs", arm: simple({ kind: "key_in_use" }) },
  "business-rejection": {
    what: "the payment is disputed: refused",
    impossible: true,
    arm: async ({ world, paymentIntent }) => {
      await world.control.dispute(paymentIntent);
      return { fired: async () => (await world.control.requests({ ...posts, paymentIntent })).length > 0 };
    },
  },
  "key-conflict": {
    what: "the provider has another request under the key",
    impossible: true,
    arm: simple({ kind: "idempotency_error", times: null }),
  },
  "deploy-between-attempts": {
    what: "the answer is lost, and a new release would word the request differently",
    rebuilt: true,
    arm: simple({ kind: "commit_then_drop" }),
  },
  "key-expired": {
    what: "committed, the answer is lost, nobody looks before the key's life is over",
    arm: async (staging) => ({
      ...sandboxFault(staging, { kind: "commit_then_drop" }),
      beforeRecovery: () => staging.world.advance(KEY_TTL_MS + LAG_MS),
    }),
  },
  "key-expired-unsent": {
    what: "nothing happened, nobody looks before the key's life is over",
    arm: async (staging) => ({
      ...sandboxFault(staging, { kind: "drop_before_commit" }),
      beforeRecovery: () => staging.world.advance(KEY_TTL_MS + LAG_MS),
    }),
  },
  "probe-down": {
    what: "the answer is lost and the first three reads fail",
    arm: async (staging) => {
      sandboxFault(staging, { kind: "read_down", how: "500", times: 3 });
      return sandboxFault(staging, { kind: "commit_then_drop" });
    },
  },
  "probe-down-for-ever": {
    what: "the answer is lost and no read succeeds",
    arm: async (staging) => {
      sandboxFault(staging, { kind: "read_down", how: "drop" });
      return sandboxFault(staging, { kind: "commit_then_drop" });
    },
  },
  "read-hides": {
    what: "the answer is lost and lists never show the refund",
    arm: async (staging) => {
      const lost = sandboxFault(staging, { kind: "commit_then_drop" });
      const lying = sandboxFault(staging, { kind: "lying_read", lie: "hide" });
      return { ...lost, fired: async () => (await lost.fired()) && (await lying.fired()) };
    },
  },
  "read-invents": {
    what: "nothing happened and a list shows a refund that never was",
    arm: async (staging) => {
      sandboxFault(staging, { kind: "drop_before_commit" });
      return sandboxFault(staging, { kind: "lying_read", lie: "invent" });
    },
  },
  "human-in-dashboard": {
    what: "nothing happened, and a person refunds it in the provider's dashboard",
    arm: armHuman,
  },
  "accepted-then-succeeded": {
    what: "accepted as pending, paid out later",
    arm: (staging) => armPending(staging, "succeeded"),
  },
  "accepted-then-failed": {
    what: "accepted as pending, failed later",
    impossible: true,
    arm: (staging) => armPending(staging, "failed"),
  },
  "succeeded-then-failed": {
    what: "paid out, and taken back by the bank days later",
    impossible: true,
    webhooks: true,
    arm: armReversal,
  },
  "wrong-amount": {
    what: "the provider refunds another amount than asked for",
    arm: (staging) =>
      simple({ kind: "wrong_answer", amount: staging.amountMinor + 1, persist: true })(staging),
  },
  "wrong-answer": {
    what: "the answer names another amount than was refunded",
    arm: (staging) =>
      simple({ kind: "wrong_answer", amount: staging.amountMinor + 1, persist: false })(staging),
  },
  "webhook-overtakes": {
    what: "the webhooks come before the answer, three times each",
    webhooks: true,
    arm: async (staging) => {
      const { control } = staging.world;
      control.webhookMode({ extraCopies: 2 });
      const armed = sandboxFault(staging, { kind: "commit_then_hang", delayMs: 60 });
      return {
        ...armed,
        afterEnd: async () => {
          await control.flushWebhooks();
          control.webhookMode({ extraCopies: 0 });
        },
      };
    },
  },
  denied: withoutAuthority("denied", "above the agent's limit, and a supervisor says no"),
  undecided: withoutAuthority("undecided", "above the agent's limit, and nobody decides in time"),
};

/** Lets go of what the provider holds back, again and again: what is held back may only be sent after a crash. */
function commitLater(world: World): void {
  world.later(LATE_MS, async () => {
    await world.hurryProvider();
    commitLater(world);
  });
}

async function armLateCommit(staging: Staging): Promise<Armed> {
  const { world, paymentIntent } = staging;
  const armed = sandboxFault(staging, { kind: "late_commit", delayMs: HELD_BACK_MS, answer: "drop" });
  return { ...armed, beforeRecovery: async () => commitLater(world), fired: committedAfterAll };

  async function committedAfterAll(): Promise<boolean> {
    return (await armed.fired()) && (await world.control.effects({ paymentIntent })).length > 0;
  }
}

async function armRefusedConnection(): Promise<Armed> {
  let refused = false;
  return {
    refusesConnection: () => {
      if (refused) return false;
      refused = true;
      return true;
    },
    fired: async () => refused,
  };
}

async function armHuman(staging: Staging): Promise<Armed> {
  const { world, paymentIntent, amountMinor } = staging;
  sandboxFault(staging, { kind: "drop_before_commit" });
  let refunded = false;
  return {
    fired: async () => refunded,
    beforeRecovery: async () => {
      await world.control.dashboardRefund({ paymentIntent, amount: amountMinor });
      refunded = true;
      await world.advance(2 * LAG_MS);
    },
  };
}

async function armPending(staging: Staging, then: "succeeded" | "failed"): Promise<Armed> {
  const { world, paymentIntent } = staging;
  const armed = sandboxFault(staging, { kind: "outcome", status: "pending" });
  const moveOn = async (): Promise<void> => {
    for (const effect of await world.control.effects({ paymentIntent })) {
      if (effect.status === "pending") await world.control.advanceRefund(effect.id, { status: then });
    }
  };
  return { ...armed, beforeRecovery: async () => world.later(PENDING_MS, moveOn) };
}

async function armReversal(staging: Staging): Promise<Armed> {
  const { world, paymentIntent } = staging;
  let reversed = false;
  return {
    fired: async () => reversed,
    afterEnd: async () => {
      await world.advance(DAYS_MS);
      for (const effect of await world.control.effects({ paymentIntent })) {
        await world.control.advanceRefund(effect.id, { status: "failed" });
        reversed = true;
      }
      await world.control.flushWebhooks();
    },
  };
}
