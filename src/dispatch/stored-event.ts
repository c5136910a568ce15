/** A webhook as it lies in `provider_webhooks.payload`. */
import { z } from "zod";
import type { JsonObject } from "../domain/json.js";
import type { ProviderEvent } from "../domain/ports/payment-provider.js";

const storedSchema = z.object({
  id: z.string(),
  type: z.string(),
  objectId: z.string().nullable(),
  paymentIntent: z.string().nullable(),
  subscription: z.string().nullable(),
  operationId: z.string().nullable(),
  payload: z.record(z.string(), z.json()),
});

/** The event as plain JSON. */
export function storedEvent(event: ProviderEvent): JsonObject {
  return {
    id: event.id,
    type: event.type,
    objectId: event.objectId,
    paymentIntent: event.paymentIntent,
    subscription: event.subscription,
    operationId: event.operationId,
    payload: event.payload,
  };
}

/** @throws ZodError when the row holds something else */
export function readStored(value: unknown): ProviderEvent {
  return storedSchema.parse(value);
}
