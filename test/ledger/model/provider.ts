/**
 * A provider that keeps its own books, as small as it can be: keys with a life, a balance, effects in the order they were made.
 * What it committed is counted here, independently of what the ledger believes.
 */
import type { AttemptOutcome, Listing, ProviderEffect } from "../../../src/domain/evidence.js";
import type { Operation } from "../../../src/domain/operation.js";

/** What happens to one request on its way. */
export const MODES = [
  "ok",
  "lost_after_commit",
  "lost_before_commit",
  "arrives_later",
  "busy",
  "refused",
  "pending",
] as const;
export type Mode = (typeof MODES)[number];

interface Stored {
  at: number;
  outcome: AttemptOutcome;
}

export class ModelProvider {
  readonly effects: ProviderEffect[] = [];
  /** Requests that were sent and have not arrived yet. */
  readonly inTheAir: Operation[] = [];
  received = 0;
  private readonly keys = new Map<string, Stored>();
  private readonly captured: bigint;
  private readonly keyTtlMs: number;
  private readonly now: () => number;

  constructor(captured: bigint, keyTtlMs: number, now: () => number) {
    this.captured = captured;
    this.keyTtlMs = keyTtlMs;
    this.now = now;
  }

  /** What the sender hears. */
  send(operation: Operation, mode: Mode): AttemptOutcome {
    this.received += 1;
    switch (mode) {
      case "ok":
        return this.arrive(operation, "succeeded");
      case "pending":
        return this.arrive(operation, "pending");
      case "lost_after_commit":
        this.arrive(operation, "succeeded");
        return LOST;
      case "lost_before_commit":
        return LOST;
      case "arrives_later":
        this.inTheAir.push(operation);
        return LOST;
      case "busy":
        return { verdict: "not_executed", code: "rate_limit", detail: "busy", retryAfterMs: null };
      case "refused":
        return this.arrive(operation, "refused");
    }
  }

  /** The request reaches the provider: replayed under a known key, else executed. */
  arrive(operation: Operation, how: "succeeded" | "pending" | "refused"): AttemptOutcome {
    const known = this.keys.get(operation.idempotencyKey);
    if (known !== undefined && this.now() - known.at < this.keyTtlMs) return known.outcome;
    if (how === "refused" || this.left() < operation.amountMinor) {
      return { verdict: "rejected", code: "charge_disputed", detail: "refused", httpStatus: 400 };
    }
    const effect = this.commit(operation.amountMinor, operation.id, how);
    const outcome: AttemptOutcome =
      how === "pending"
        ? { verdict: "pending", effect, reason: "processing", requestId: null }
        : { verdict: "committed", effect, requestId: null, replayed: false };
    this.keys.set(operation.idempotencyKey, { at: this.now(), outcome });
    return outcome;
  }

  /** Somebody refunds in the provider's own dashboard. */
  byHand(amountMinor: bigint): void {
    if (this.left() >= amountMinor) this.commit(amountMinor, null, "succeeded");
  }

  /** A request that is still on its way after this long never arrives. */
  dropWhatIsInTheAir(): void {
    this.inTheAir.length = 0;
  }

  /** Something that was sent for it may still commit: it is on its way, and its key is not known here. */
  mayStillCommit(operation: Operation): boolean {
    const waits = this.inTheAir.some(({ id }) => id === operation.id);
    const known = this.keys.get(operation.idempotencyKey);
    return waits && (known === undefined || this.now() - known.at >= this.keyTtlMs);
  }

  change(effect: ProviderEffect, status: "succeeded" | "failed"): ProviderEffect {
    const index = this.effects.findIndex(({ ref }) => ref === effect.ref);
    const changed = { ...effect, status, failureReason: status === "failed" ? "declined" : null };
    this.effects[index] = changed;
    return changed;
  }

  list(): Listing {
    return { read: "complete", effects: [...this.effects], balance: null, readAt: new Date(this.now()) };
  }

  alive(operationId: string | null): ProviderEffect[] {
    return this.effects.filter((effect) => effect.status !== "failed" && effect.operationId === operationId);
  }

  private left(): bigint {
    const spent = this.effects
      .filter(({ status }) => status !== "failed")
      .reduce((sum, { amountMinor }) => sum + amountMinor, 0n);
    return this.captured - spent;
  }

  private commit(amountMinor: bigint, operationId: string | null, status: string): ProviderEffect {
    const effect: ProviderEffect = {
      ref: `re_${this.effects.length + 1}`,
      kind: "refund",
      target: "pi_1",
      amountMinor,
      currency: "GBP",
      status,
      pendingReason: null,
      failureReason: null,
      operationId,
      createdAt: new Date(this.now()),
    };
    this.effects.push(effect);
    return effect;
  }
}

const LOST: AttemptOutcome = {
  verdict: "unknown",
  code: "connection_lost",
  detail: "no answer",
  httpStatus: null,
};
