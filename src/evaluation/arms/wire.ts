/** The provider's wire as a plain client speaks it: one request, one reading of the answer. */
import { request } from "undici";
import { z } from "zod";
import { CALL_MS } from "../faults/modes.js";
import type { Stage } from "./arm.js";

/** `unclear`: it may or may not have happened; a plain client takes it for a failure. */
export type Answer = "done" | "refused" | "unclear";

const HTTP_CONFLICT = 409;
const HTTP_TOO_MANY = 429;

export async function postRefund(
  stage: Stage,
  how: { key: string | undefined; refused: boolean },
): Promise<Answer> {
  if (how.refused) return "unclear";
  const { world, scenario, paymentIntent, mode } = stage;
  const form = new URLSearchParams({
    payment_intent: paymentIntent,
    amount: String(scenario.amountMinor),
    "metadata[order]": stage.orderRef,
  });
  if (mode.rebuilt === true) form.set("metadata[at]", String(world.elapsedMs()));
  const timeout = mode.timeoutMs ?? CALL_MS;
  try {
    const answer = await request(`${world.wire.url}/v1/refunds`, {
      method: "POST",
      headers: {
        authorization: `Bearer ${world.wire.secretKey}`,
        "content-type": "application/x-www-form-urlencoded",
        ...(how.key === undefined ? {} : { "idempotency-key": how.key }),
      },
      body: form.toString(),
      headersTimeout: timeout,
      bodyTimeout: timeout,
    });
    const text = await answer.body.text();
    if (answer.statusCode >= 200 && answer.statusCode < 300) {
      JSON.parse(text);
      return "done";
    }
    const definite =
      answer.statusCode < 500 && answer.statusCode !== HTTP_CONFLICT && answer.statusCode !== HTTP_TOO_MANY;
    return definite ? "refused" : "unclear";
  } catch {
    return "unclear";
  }
}

const listSchema = z.object({ data: z.array(z.object({ amount: z.number(), status: z.string() })) });

/** Whether the provider's list shows a refund of this amount; null: it could not be read. */
export async function findRefund(stage: Stage): Promise<boolean | null> {
  const { world, scenario, paymentIntent, mode } = stage;
  const timeout = mode.timeoutMs ?? CALL_MS;
  try {
    const answer = await request(
      `${world.wire.url}/v1/refunds?payment_intent=${encodeURIComponent(paymentIntent)}&limit=100`,
      {
        headers: { authorization: `Bearer ${world.wire.secretKey}` },
        headersTimeout: timeout,
        bodyTimeout: timeout,
      },
    );
    const text = await answer.body.text();
    if (answer.statusCode !== 200) return null;
    const { data } = listSchema.parse(JSON.parse(text));
    return data.some(
      (refund) =>
        refund.amount === scenario.amountMinor && refund.status !== "failed" && refund.status !== "canceled",
    );
  } catch {
    return null;
  }
}
