/**
 * Slack's rate limits: each method and workspace has its own bucket, so a 429 on one method never touches another. Posts
 * have one more bucket by channel. Numbers: the tier table of the Java SDK and Slack's rate limit page.
 */
import type { SandboxClock } from "../clock.js";
import type { Tier } from "./method.js";

/** Calls a minute. Slack says "several hundred" for the special ones; 300 is ours. */
const PER_MINUTE: Record<Tier, number> = {
  tier1: 1,
  tier2: 20,
  tier3: 50,
  tier4: 100,
  post: 300,
  special: 300,
};

/** Calls at once where a tier's number is no burst: as many sockets as may be open may be opened together. */
const BURST: Partial<Record<Tier, number>> = { tier1: 10 };

/** One message a second and channel, with a short burst tolerated. */
const POST_PER_SECOND = 1;
const POST_BURST = 5;

interface Bucket {
  tokens: number;
  atMs: number;
}

export class RateLimiter {
  readonly #clock: SandboxClock;
  readonly #buckets = new Map<string, Bucket>();

  constructor(clock: SandboxClock) {
    this.#clock = clock;
  }

  /** Seconds to wait, or null when the call may go ahead (and is counted). */
  take(method: string, tier: Tier, channel: string | undefined): number | null {
    const perMinute = PER_MINUTE[tier];
    const wait = this.#wait(method, BURST[tier] ?? perMinute, perMinute / 60);
    const channelKey = tier === "post" && channel !== undefined ? `${method} ${channel}` : null;
    const channelWait = channelKey === null ? 0 : this.#wait(channelKey, POST_BURST, POST_PER_SECOND);
    const worst = Math.max(wait, channelWait);
    if (worst > 0) return Math.max(1, Math.ceil(worst));
    this.#spend(method);
    if (channelKey !== null) this.#spend(channelKey);
    return null;
  }

  /** Refills the bucket and says how many seconds until it holds one call. */
  #wait(key: string, capacity: number, perSecond: number): number {
    const now = this.#clock.elapsed();
    const bucket = this.#buckets.get(key) ?? { tokens: capacity, atMs: now };
    bucket.tokens = Math.min(capacity, bucket.tokens + ((now - bucket.atMs) / 1000) * perSecond);
    bucket.atMs = now;
    this.#buckets.set(key, bucket);
    return bucket.tokens >= 1 ? 0 : (1 - bucket.tokens) / perSecond;
  }

  #spend(key: string): void {
    const bucket = this.#buckets.get(key);
    if (bucket) bucket.tokens -= 1;
  }

  clear(): void {
    this.#buckets.clear();
  }
}
