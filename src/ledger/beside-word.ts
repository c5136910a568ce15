/** An effect that the provider shows of an operation which a person has confirmed by naming another: theirs was no known effect. */
import type { Tx } from "../db/connect.js";
import type { ProviderEffect } from "../domain/evidence.js";
import type { Operation } from "../domain/operation.js";
import type { LedgerCtx } from "./context.js";
import { recordEvidence } from "./evidence.js";
import type { EvidenceSource } from "./types.js";

/** What such a contradiction says. */
export const besideWordText = ({ ref, status }: ProviderEffect): string =>
  `Confirmed on a person's word, but the provider shows ${ref} as ${status}.`;

/** Call after it was parked: with this a reconciler takes it at once, and settles it by what the provider shows. */
export async function noteBesideWord(
  tx: Tx,
  ctx: LedgerCtx,
  parked: Operation,
  effect: ProviderEffect,
  source: EvidenceSource,
): Promise<void> {
  await recordEvidence(tx, ctx, {
    operationId: parked.id,
    source,
    providerRef: effect.ref,
    dedupeKey: `beside_word:${parked.id}:${parked.version}:${effect.ref}`,
    payload: {
      ref: effect.ref,
      target: effect.target,
      status: effect.status,
      amount: Number(effect.amountMinor),
      currency: effect.currency,
    },
  });
  tx.afterCommit(() => void ctx.wake("operation", parked.id));
}
