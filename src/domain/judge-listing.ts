/**
 * From the provider's list of one target to evidence about one operation.
 *
 * 1. An effect is ours when it carries our operation's id, and only then; amount and time prove nothing.
 * 2. An effect that no operation explains stops the sending when it could be this one done by somebody else: same amount, or
 *    the balance no longer holds ours, or cannot be compared because its money is of another currency.
 * 3. What was listed before our first attempt began cannot be ours.
 * 4. A subscription's state is the effect: cancelled is cancelled, whoever asked.
 */
import { differsFromAsked, sameCurrency } from "./as-asked.js";
import { type Evidence, isDead, type Listing, type ProviderEffect } from "./evidence.js";
import type { OperationId } from "./ids.js";
import type { Operation } from "./operation.js";

/** What the ledger knows about the target. */
export interface ListingContext {
  /** Provider references that operations of ours explain. */
  readonly known: ReadonlyMap<string, OperationId>;
  /** Ids of our operations on this target, whatever became of them. */
  readonly operations: ReadonlySet<OperationId>;
  /** References that were seen and recorded before this operation's first attempt. */
  readonly seenBefore: ReadonlySet<string>;
  /** Minor units; null when unknown or not about money. The provider's own figure wins. */
  readonly capturedMinor: bigint | null;
}

type Subject = Pick<
  Operation,
  "id" | "kind" | "amountMinor" | "currency" | "paymentIntent" | "providerSubscription" | "atPeriodEnd"
>;

export function judgeListing(operation: Subject, listing: Listing, context: ListingContext): Evidence {
  if (listing.read === "failed") return { says: "unknown", reason: `${listing.reason}: ${listing.detail}` };
  if (operation.kind === "cancel_subscription") return judgeSubscription(operation, listing.effects);
  return judgeRefunds(operation, listing, context);
}

const PENDING: ReadonlySet<string> = new Set(["pending", "requires_action"]);

function judgeRefunds(
  operation: Subject,
  listing: Extract<Listing, { read: "complete" }>,
  context: ListingContext,
): Evidence {
  const ours = listing.effects.filter((effect) => effect.operationId === operation.id);
  const alive = ours.filter((effect) => !isDead(effect));
  if (alive.length > 1) return { says: "duplicate", effects: alive };
  const [effect] = alive;
  if (effect !== undefined) return judgeEffect(operation, effect, context);

  const strangers = listing.effects.filter((other) => isStranger(operation, other, context));
  const suspicious = strangers.filter(
    (other) => other.amountMinor === operation.amountMinor && sameCurrency(other, operation),
  );
  if (suspicious.length > 0) return { says: "unattributed", effects: suspicious };
  // Money of another currency cannot be compared: it might be all of it.
  const incomparable = strangers.some((other) => !sameCurrency(other, operation));
  if (incomparable || (strangers.length > 0 && !balanceHolds(operation, listing, context))) {
    return { says: "unattributed", effects: strangers };
  }

  const [dead] = ours;
  if (dead !== undefined) {
    const differs = differences(operation, dead, context);
    if (differs.length > 0) {
      return {
        says: "unknown",
        reason: `${dead.ref} is ${dead.status} and differs in ${differs.join(", ")}`,
      };
    }
    return { says: "failed_at_provider", effect: dead, code: dead.failureReason ?? dead.status };
  }
  return { says: "absent" };
}

/** The postcondition: the effect is what was asked for, and final. */
export function judgeEffect(
  operation: Subject,
  effect: ProviderEffect,
  context: Pick<ListingContext, "known">,
): Evidence {
  const differs = differences(operation, effect, context);
  if (differs.length > 0) return { says: "committed", effect, postcondition: "fails", differs };
  if (effect.status === "succeeded") return { says: "committed", effect, postcondition: "holds" };
  if (PENDING.has(effect.status)) {
    return { says: "pending", effect, reason: effect.pendingReason ?? effect.status };
  }
  if (isDead(effect)) {
    return { says: "failed_at_provider", effect, code: effect.failureReason ?? effect.status };
  }
  return { says: "unknown", reason: `${effect.ref} has the state "${effect.status}"` };
}

/** Material fields in which an effect is not the one that was asked for. */
function differences(
  operation: Subject,
  effect: ProviderEffect,
  context: Pick<ListingContext, "known">,
): string[] {
  const owner = context.known.get(effect.ref);
  return [
    ...differsFromAsked(operation, effect),
    ...(owner === undefined || owner === operation.id ? [] : ["operation"]),
  ];
}

function isStranger(operation: Subject, effect: ProviderEffect, context: ListingContext): boolean {
  if (isDead(effect) || context.seenBefore.has(effect.ref)) return false;
  if (effect.operationId === operation.id || context.known.has(effect.ref)) return false;
  return !(context.operations as ReadonlySet<string>).has(effect.operationId ?? "");
}

function balanceHolds(
  operation: Subject,
  listing: Extract<Listing, { read: "complete" }>,
  context: ListingContext,
): boolean {
  const { balance } = listing;
  if (balance !== null && !sameCurrency(balance, operation)) return false;
  const captured = balance?.capturedMinor ?? context.capturedMinor;
  if (captured === null) return true;
  const alive = listing.effects.filter((effect) => !isDead(effect));
  if (alive.some((effect) => !sameCurrency(effect, operation))) return false;
  const listed = alive.reduce((sum, effect) => sum + effect.amountMinor, 0n);
  return listed + operation.amountMinor <= captured;
}

function judgeSubscription(operation: Subject, effects: readonly ProviderEffect[]): Evidence {
  const here = effects.filter(
    (effect) =>
      effect.kind === "subscription_cancellation" && effect.target === operation.providerSubscription,
  );
  const wanted = here.find(
    // Ended is more than asked for where the end of the period was asked for, and where that end has come it is the same.
    (effect) => effect.status === "canceled" || operation.atPeriodEnd === true,
  );
  return wanted === undefined
    ? { says: "absent" }
    : { says: "committed", effect: wanted, postcondition: "holds" };
}
