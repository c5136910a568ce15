/**
 * What a ticket may see and touch. Bound to a customer by code or by the filer, never by the model: no tool names a customer,
 * and whatever lies outside is answered with the same words whether it exists or not.
 */

import { ADVICE } from "../domain/text/advice.js";
import type { Ticket } from "../runs/index.js";

export type Scope =
  | { kind: "customer"; customerId: string; customerRef: string; confirmed: boolean }
  /** Nobody is bound: orders that the text itself names may be read, nothing may be written. */
  | { kind: "unbound"; orderRefs: ReadonlySet<string> };

export function scopeOf(ticket: Ticket): Scope {
  if (ticket.binding !== "none" && ticket.customerId !== null && ticket.customerRef !== null) {
    return {
      kind: "customer",
      customerId: ticket.customerId,
      customerRef: ticket.customerRef,
      confirmed: ticket.binding === "confirmed",
    };
  }
  const named = ticket.candidates.flatMap((candidate) =>
    candidate.via.filter((via) => via.kind === "order").map((via) => via.text.toUpperCase()),
  );
  return { kind: "unbound", orderRefs: new Set(named) };
}

/** May an order with this reference and owner be read? */
export function mayRead(scope: Scope, order: { ref: string; customerRef: string }): boolean {
  return scope.kind === "customer"
    ? order.customerRef === scope.customerRef
    : scope.orderRefs.has(order.ref.toUpperCase());
}

/**
 * A reference as the planner wrote it, for a sentence by code. What does not look like one is not repeated: whoever reads the sentence
 * must never take the planner's words in it for ours.
 */
export const namedBy = (reference: string): string =>
  /^[#\p{L}\p{N}][#\p{L}\p{N}_./-]{0,63}$/u.test(reference) ? reference : "of that name";

/** The one answer for an order that does not exist and for one of somebody else; true also while nobody is bound. */
export const outOfScope = (reference: string): string =>
  `There is no order ${namedBy(reference)} that this ticket may touch. ${ADVICE.checkReference}`;

/** As `outOfScope`, for subscriptions. */
export const subscriptionOutOfScope = (reference: string): string =>
  `There is no subscription ${namedBy(reference)} that this ticket may touch. ${ADVICE.checkReference}`;
