/** One schema per kind of variable. Messages complete the sentence "VARIABLE …" and never repeat a secret's value. */
import { z } from "zod";

const DAY_MS = 86_400_000;
/** Longest duration that a variable may ask for: beyond it a typing error is likelier than a wish. */
const LONGEST_MS = 400 * DAY_MS;
const MICRO_DIGITS = 6;

export const text = z.string();

/** Decimal digits only: `1e3`, `0x10`, `10s` and `1.5` are refused rather than guessed. */
export const integer = (least: number, most: number) =>
  z
    .string()
    .regex(/^\d{1,15}$/, "must be a whole number in digits")
    .transform(Number)
    .refine((value) => value >= least && value <= most, `must be between ${least} and ${most}`);

export const milliseconds = (least = 1) =>
  z
    .string()
    .regex(/^\d{1,15}$/, "must be a whole number of milliseconds in digits")
    .transform(Number)
    .refine(
      (value) => value >= least && value <= LONGEST_MS,
      `must be between ${least} and ${LONGEST_MS} milliseconds`,
    );

/** US dollars with at most six decimals, as micro dollars. */
export const usd = z
  .string()
  .regex(/^\d{1,9}(\.\d{1,6})?$/, "must be an amount of US dollars like 2.50")
  .transform((value) => {
    const [whole = "0", fraction = ""] = value.split(".");
    return BigInt(whole) * 1_000_000n + BigInt(fraction.padEnd(MICRO_DIGITS, "0"));
  });

/** `MODEL=INPUT/OUTPUT` in US dollars for a million tokens, several separated by commas: `claude-sonnet-5-5=3/15,claude-haiku=1/5`. */
export const modelPrices = z
  .string()
  .regex(
    /^[\w.:@-]+=\d{1,6}(\.\d{1,6})?\/\d{1,6}(\.\d{1,6})?(\s*,\s*[\w.:@-]+=\d{1,6}(\.\d{1,6})?\/\d{1,6}(\.\d{1,6})?)*$/,
    "must be like claude-sonnet-5-5=3/15: US dollars for a million input and output tokens, several separated by commas",
  )
  .transform((value) =>
    value.split(",").map((entry) => {
      const [model = "", prices = ""] = entry.trim().split("=");
      const [input = "0", output = "0"] = prices.split("/");
      return { model, inputMicroUsd: usd.parse(input), outputMicroUsd: usd.parse(output) };
    }),
  );

const url = (protocols: readonly string[], what: string) =>
  z.string().refine((value) => {
    const parsed = URL.canParse(value) ? new URL(value) : undefined;
    return parsed !== undefined && protocols.includes(parsed.protocol) && parsed.host !== "";
  }, `must be ${what}`);

/** PostgreSQL's URLs may leave the host out (a local socket). */
export const postgresUrl = z.string().refine((value) => {
  const parsed = URL.canParse(value) ? new URL(value) : undefined;
  return parsed !== undefined && ["postgres:", "postgresql:"].includes(parsed.protocol);
}, "must be a URL like postgresql://user:password@host:5432/database");

export const redisUrl = url(["redis:", "rediss:"], "a URL like redis://host:6379");

const httpUrl = url(["http:", "https:"], "a URL that begins with http:// or https://");

/** Slack's client appends method names: the base ends with a slash, whatever was written. */
export const slackApiUrl = httpUrl.transform((value) => (value.endsWith("/") ? value : `${value}/`));

export const baseUrl = httpUrl.transform((value) => value.replace(/\/+$/, ""));

export const channelId = z
  .string()
  .regex(/^[A-Za-z0-9_-]+$/, "must be a channel id like C0123456789, not a name");

/** Secrets with blanks or line breaks inside were pasted wrongly; HTTP headers could not carry them. */
export const secret = z.string().regex(/^[\x21-\x7e]+$/, "must be without blanks and line breaks");

/** A key of our own making: long enough that nobody finds it by trying. */
export const sealSecret = secret.min(32, "must have at least 32 characters");

/** Several of them, or Slack's tokens, separated by commas. */
export const sealSecrets = z
  .string()
  .refine(
    (value) => value.split(",").every((each) => /^[\x21-\x7e]{20,}$/.test(each.trim())),
    "must be secrets of at least 20 characters, without blanks, separated by commas",
  );

/** Slack's tokens say what they are; one of another kind, or a half, would be refused only by Slack, after everything else. */
export const slackToken = (kind: "xoxb" | "xapp") =>
  secret.refine((value) => value.includes(`${kind}-`), `must be a token that begins with ${kind}-`);
