/** What is done at the provider past the product. */
import type { House } from "./house.js";

/** Somebody else, who holds the provider's key, refunds in the name of an operation. */
export async function refundByHand(
  house: House,
  about: { payment: string; amount: number; names: string },
): Promise<void> {
  const { url } = house.world.payments;
  const answer = await fetch(`${url}/v1/refunds`, {
    method: "POST",
    headers: {
      authorization: `Bearer ${house.world.env["STRIPE_SECRET_KEY"] ?? ""}`,
      "content-type": "application/x-www-form-urlencoded",
      "idempotency-key": `by-hand-${about.names}`,
    },
    body: new URLSearchParams({
      payment_intent: about.payment,
      amount: String(about.amount),
      "metadata[operation_id]": about.names,
    }),
  });
  if (answer.status !== 200) throw new Error(`the refund by hand was answered with ${answer.status}`);
}
