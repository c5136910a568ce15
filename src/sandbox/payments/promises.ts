/**
 * What this provider keeps to. The defaults are Stripe's; tests of recovery set others, because recovery is derived from a
 * provider's promises and must hold for a provider that gives fewer.
 */
import { z } from "zod";

export const promisesSchema = z.strictObject({
  /** False: `Idempotency-Key` means nothing, and a repeated request is a second effect. */
  keyed: z.boolean(),
  /** Life of a key, milliseconds. */
  keyTtlMs: z.int().positive(),
  /** `strong`: at once; a lag in milliseconds; `none`: there is nothing to read effects from. */
  readback: z.union([z.enum(["strong", "none"]), z.strictObject({ lagMs: z.int().min(0) })]),
  /** No late commit comes later than this after its request, milliseconds; null: no bound. */
  inflightBoundMs: z.int().min(0).nullable(),
});
export type ProviderPromises = z.output<typeof promisesSchema>;

const DAY_MS = 24 * 3600 * 1000;

export const STRIPE_PROMISES: ProviderPromises = {
  keyed: true,
  keyTtlMs: DAY_MS,
  readback: "strong",
  inflightBoundMs: null,
};
