/** What can still be refunded on an order once this is, and how that comes about; by the balance when the card was made. Plain text. */
import type { Approval, WorldSnapshot } from "../../domain/approval.js";
import { beyondWords, leftWords } from "../../domain/approval-words.js";
import { formatMoney } from "../../domain/money.js";

type Payment = NonNullable<WorldSnapshot["payment"]>;

const REFUNDED = "refunded before";

/** "£90.00 GBP", "= £180.00 GBP paid", "− £30.00 GBP refunded before", "− £60.00 GBP this": a line each. null: no money of an order. `onWordMinor`: of the refunded, what only on-call vouches for. */
export function leftLines({ binding }: Approval, onWordMinor = 0n): readonly string[] | null {
  const { payment } = binding.world;
  if (payment === null || binding.kind !== "refund") return null;
  const { capturedMinor, refundableMinor, currency } = payment;
  const of = (amountMinor: bigint): string => formatMoney({ amountMinor, currency });
  const before = [
    `= ${of(capturedMinor)} paid`,
    ...spentBefore(payment).map(([minor, what]) => {
      const word = what === REFUNDED && onWordMinor > 0n ? (onWordMinor < minor ? onWordMinor : minor) : 0n;
      return `− ${of(minor)} ${what}${word === 0n ? "" : ` (of it ${of(word)} by on-call's word alone)`}`;
    }),
  ];
  const after = refundableMinor - binding.amountMinor;
  if (currency === binding.currency && after >= 0n)
    return [of(after), ...before, `− ${of(binding.amountMinor)} this`];
  const left = leftWords(refundableMinor, currency);
  return [
    `not possible: ${refundableMinor > 0n ? "only " : ""}${left} is left now${beyondWords(refundableMinor, currency)}`,
    ...before,
  ];
}

/** What of it cannot be refunded any more, each with what it was; where that was not written down, the sum alone. */
function spentBefore({ capturedMinor, refundableMinor, spent }: Payment): (readonly [bigint, string])[] {
  const all = capturedMinor - refundableMinor;
  if (spent === undefined) return all > 0n ? [[all, "refunded or set aside before"]] : [];
  const { refundedMinor, elsewhereMinor, reservedMinor } = spent;
  const parts: (readonly [bigint, string])[] = [
    [refundedMinor, REFUNDED],
    [elsewhereMinor, "refunded elsewhere"],
    [reservedMinor, "set aside for other requests"],
    // A refund in another currency lets nothing be refunded.
    [all - refundedMinor - elsewhereMinor - reservedMinor, "not to be refunded now"],
  ];
  return parts.filter(([minor]) => minor > 0n);
}
