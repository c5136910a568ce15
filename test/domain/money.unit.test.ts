import { describe, expect, it } from "vitest";
import {
  addMoney,
  amountToJson,
  compareMoney,
  currencyExponent,
  formatMoney,
  isCurrency,
  MAX_AMOUNT_MINOR,
  MoneyError,
  money,
  moneyToJson,
  parseAmountMinor,
  parseAmountText,
  repeatsAmount,
  sameMoney,
  subtractMoney,
} from "../../src/domain/money.js";

describe("an amount of money", () => {
  it("is refused when the currency is unknown, in lower case or not a code", () => {
    for (const currency of ["", "gbp", "GB", "POUND", "ZZZ", "£", "GBP "]) {
      expect(() => money(1n, currency)).toThrow(MoneyError);
      expect(isCurrency(currency)).toBe(false);
    }
  });

  it("is refused when negative or larger than a JSON integer can say", () => {
    expect(() => money(-1n, "GBP")).toThrow(/negative/);
    expect(() => money(MAX_AMOUNT_MINOR + 1n, "GBP")).toThrow(/too large/);
    expect(moneyToJson(money(MAX_AMOUNT_MINOR, "GBP"))).toEqual({
      amount: 9007199254740991,
      currency: "GBP",
    });
    expect(() => amountToJson(MAX_AMOUNT_MINOR + 1n)).toThrow(MoneyError);
  });

  it("never meets another currency", () => {
    const pound = money(100n, "GBP");
    const dollar = money(100n, "USD");
    for (const combine of [addMoney, subtractMoney, compareMoney]) {
      expect(() => combine(pound, dollar)).toThrow(/cannot be combined/);
    }
    expect(sameMoney(pound, dollar)).toBe(false);
  });

  it("does not go below zero", () => {
    expect(() => subtractMoney(money(99n, "GBP"), money(100n, "GBP"))).toThrow(
      /£1.00 GBP is more than £0.99 GBP/,
    );
  });
});

describe("the digits of a currency", () => {
  it.each([
    ["JPY", 0],
    ["KRW", 0],
    ["VND", 0],
    ["MGA", 0],
    ["GBP", 2],
    ["USD", 2],
    ["EUR", 2],
    ["KWD", 3],
    ["BHD", 3],
    ["TND", 3],
  ])("%s has %i", (currency, digits) => {
    expect(currencyExponent(currency)).toBe(digits);
  });

  it.each(["HUF", "COP", "IDR", "PKR", "ALL", "LAK"])(
    "%s keeps the two digits of ISO 4217 although shops no longer use coins",
    (currency) => {
      expect(currencyExponent(currency)).toBe(2);
    },
  );
});

describe("money as people read it", () => {
  it.each([
    [18000n, "GBP", "£180.00 GBP"],
    [7900n, "USD", "$79.00 USD"],
    [9899n, "JPY", "¥9,899 JPY"],
    [1234n, "KWD", "1.234 KWD"],
    [5n, "KWD", "0.005 KWD"],
    [0n, "GBP", "£0.00 GBP"],
    [7n, "GBP", "£0.07 GBP"],
    [123456789n, "EUR", "€1,234,567.89 EUR"],
    [100000n, "SEK", "1,000.00 SEK"],
    [100000n, "CHF", "1,000.00 CHF"],
    [14505n, "GBP", "£145.05 GBP"],
  ])("%s %s reads %s", (amountMinor, currency, text) => {
    expect(formatMoney(money(amountMinor, currency))).toBe(text);
  });
});

describe("an amount from outside (S-PAY-8)", () => {
  it.each([
    "145.05",
    "1e3",
    "100",
    145.05,
    -2000,
    0.1,
    Number.NaN,
    Number.POSITIVE_INFINITY,
    2 ** 53,
    null,
    undefined,
    true,
    [100],
    {},
    -1n,
    MAX_AMOUNT_MINOR + 1n,
  ])("refuses %s and never rounds it", (value) => {
    const parsed = parseAmountMinor(value);
    expect(parsed.ok).toBe(false);
    if (!parsed.ok) expect(parsed.sentence).toMatch(/^The amount/);
  });

  it("takes whole numbers as they are, zero included", () => {
    expect(parseAmountMinor(14505)).toEqual({ ok: true, amountMinor: 14505n });
    expect(parseAmountMinor(0)).toEqual({ ok: true, amountMinor: 0n });
    expect(parseAmountMinor(Number.MAX_SAFE_INTEGER)).toEqual({ ok: true, amountMinor: MAX_AMOUNT_MINOR });
  });

  it.each(["", " 1", "1 ", "+1", "-1", "1.0", "1e3", "0x10", "1,000", "１２", "9007199254740992"])(
    'refuses the text "%s"',
    (text) => {
      expect(parseAmountText(text).ok).toBe(false);
    },
  );

  it("takes digits", () => {
    expect(parseAmountText("14505")).toEqual({ ok: true, amountMinor: 14505n });
  });
});

describe("an approver who repeats the amount", () => {
  it.each([
    "1250",
    "1,250",
    "1250.00",
    "1,250.00",
    "£1,250.00",
    "£1,250.00 GBP",
    "gbp 1250.00",
    " 1 250.00 ",
  ])('is understood as £1,250.00 by "%s"', (typed) => {
    expect(repeatsAmount(typed, money(125000n, "GBP"))).toBe(true);
  });

  it.each([
    "",
    "125000",
    "1250.0",
    "1250.001",
    "1.250,00",
    "1,25",
    "12,50",
    "$1250",
    "1250 USD",
    "-1250",
    "1250.50",
    "01250",
    "1250.",
  ])('is not understood as £1,250.00 by "%s"', (typed) => {
    expect(repeatsAmount(typed, money(125000n, "GBP"))).toBe(false);
  });

  it("repeats yen without decimals", () => {
    expect(repeatsAmount("9,899", money(9899n, "JPY"))).toBe(true);
    expect(repeatsAmount("¥9899", money(9899n, "JPY"))).toBe(true);
    expect(repeatsAmount("98.99", money(9899n, "JPY"))).toBe(false);
    expect(repeatsAmount("9899.00", money(9899n, "JPY"))).toBe(false);
  });
});
