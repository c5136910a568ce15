import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  addMoney,
  compareMoney,
  currencyExponent,
  formatMajorUnits,
  formatMoney,
  MAX_AMOUNT_MINOR,
  money,
  moneyToJson,
  parseAmountMinor,
  repeatsAmount,
  subtractMoney,
} from "../../src/domain/money.js";

const currencies = fc.constantFrom("GBP", "USD", "JPY", "KWD", "EUR", "HUF", "SEK", "TND");
const amounts = fc.bigInt({ min: 0n, max: MAX_AMOUNT_MINOR });
const halves = fc.bigInt({ min: 0n, max: MAX_AMOUNT_MINOR / 2n });

describe("money, for any amount and currency", () => {
  it("survives the way to JSON and back without losing a unit", () => {
    fc.assert(
      fc.property(amounts, currencies, (amountMinor, currency) => {
        const text = JSON.stringify(moneyToJson(money(amountMinor, currency)));
        const back: unknown = JSON.parse(text);
        expect(parseAmountMinor((back as { amount: unknown }).amount)).toEqual({ ok: true, amountMinor });
      }),
    );
  });

  it("adds and takes away exactly", () => {
    fc.assert(
      fc.property(halves, halves, currencies, (x, y, currency) => {
        const a = money(x, currency);
        const b = money(y, currency);
        const sum = addMoney(a, b);
        expect(sum).toEqual(addMoney(b, a));
        expect(subtractMoney(sum, b)).toEqual(a);
        expect(compareMoney(sum, a)).toBe(y === 0n ? 0 : 1);
      }),
    );
  });

  it("is read back from what people see, digit by digit", () => {
    fc.assert(
      fc.property(amounts, currencies, (amountMinor, currency) => {
        const amount = money(amountMinor, currency);
        const digits = formatMoney(amount).replace(/\D/g, "");
        expect(BigInt(digits)).toBe(amountMinor);
        const [, fraction = ""] = formatMajorUnits(amount).split(".");
        expect(fraction.length).toBe(currencyExponent(currency));
        expect(repeatsAmount(formatMoney(amount), amount)).toBe(true);
      }),
    );
  });

  it("is repeated only by itself", () => {
    fc.assert(
      fc.property(amounts, amounts, currencies, (x, y, currency) => {
        fc.pre(x !== y);
        expect(repeatsAmount(formatMoney(money(x, currency)), money(y, currency))).toBe(false);
      }),
    );
  });

  it("never takes a number that is not whole", () => {
    fc.assert(
      fc.property(fc.double({ noInteger: true }), (value) => {
        expect(parseAmountMinor(value).ok).toBe(false);
      }),
    );
  });
});
