/** A proposal that waits for its siblings, as it is stored with its call. Amounts are kept as digits. */
import { z } from "zod";
import type { CallId, OperationId, RunId, TicketId } from "../domain/ids.js";
import type { JsonObject } from "../domain/json.js";
import { OPERATION_KINDS } from "../domain/operation.js";
import type { Proposal } from "./ports.js";

const SCHEMA = z.object({
  intent: z.object({
    kind: z.enum(OPERATION_KINDS),
    customerRef: z.string(),
    orderRef: z.string().nullable(),
    subscriptionRef: z.string().nullable(),
    amountMinor: z.string().regex(/^\d+$/).transform(BigInt),
    currency: z.string(),
    atPeriodEnd: z.boolean().nullable(),
    occurrence: z.int(),
  }),
  landing: z.object({ paymentIntent: z.string().nullable(), providerSubscription: z.string().nullable() }),
  itemRefs: z.array(z.string()),
  refundScope: z.enum(["everything_left", "items", "amount"]).nullable(),
  reason: z.string(),
  further: z.object({ askedBy: z.string(), of: z.string() }).optional(),
});

export function proposalToJson(proposal: Proposal): JsonObject {
  const { intent, landing, itemRefs, refundScope, reason, further } = proposal;
  return {
    intent: { ...intent, amountMinor: intent.amountMinor.toString() },
    landing: { ...landing },
    itemRefs: [...itemRefs],
    refundScope,
    reason,
    ...(further === undefined ? {} : { further: { ...further } }),
  };
}

/** Throws when what is stored is no proposal. */
export function proposalFromJson(
  stored: unknown,
  about: {
    callId: CallId;
    runId: RunId;
    ticketId: TicketId;
    ticketTextHash: string;
    filers: readonly string[];
    bindingConfirmed: boolean;
  },
): Proposal {
  const { further, ...rest } = SCHEMA.parse(stored);
  return {
    ...rest,
    ...about,
    ...(further === undefined
      ? {}
      : { further: { askedBy: further.askedBy, of: further.of as OperationId } }),
  };
}
