/**
 * The shop file (CONTRACT §7): what `shop import` reads. Amounts are integers of minor units; an error names its path in
 * the file. A key at the top that the format does not know is an error, and so is one below that reads like a misspelt one: what it holds
 * would be lost. Other keys of other people's exports change nothing and are listed.
 */
import { z } from "zod";
import { isCurrency } from "../domain/money.js";
import { ORDER_STATUSES } from "../domain/order.js";
import { normalEmail } from "../domain/text/references.js";

const ref = z
  .string()
  .max(64, { error: "must be at most 64 characters" })
  .regex(/^\S(?:[^\p{Cc}]*\S)?$/u, { error: "must not be empty, nor begin or end with a space" });
const words = (max: number) => z.string().max(max, { error: `must be at most ${max} characters` });
const amount = z
  .int({ error: "must be a whole number of minor units" })
  .nonnegative({ error: "must not be negative" });
const currency = z
  .string()
  .refine(isCurrency, { error: "is not a currency code (three capital letters, ISO 4217)" });

/** A day (UTC) or a time with its zone. A time without a zone means something else on every machine, so it is refused. */
const time = z
  .string()
  .refine(
    (text) =>
      /^\d{4}-\d{2}-\d{2}(?:T\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?:Z|[+-]\d{2}:?\d{2}))?$/.test(text) &&
      !Number.isNaN(Date.parse(text)),
    { error: "must be a time with its zone, like 2026-11-02T09:00:00Z" },
  )
  .transform((text) => new Date(text).toISOString());

const customer = z.object({ ref, name: words(200), email: words(320).transform((text) => text.trim()) });
const item = z.object({
  ref,
  sku: words(100).default(""),
  name: words(300).default(""),
  quantity: z.int().min(1, { error: "must be at least 1" }).max(1_000_000).default(1),
  unitAmount: amount,
});
const shipment = z.object({
  carrier: words(100).default(""),
  tracking: words(200).default(""),
  status: words(100).default(""),
  updatedAt: time.optional(),
});
const order = z.object({
  ref,
  customer: ref,
  status: z.enum(ORDER_STATUSES),
  currency,
  placedAt: time.nullish(),
  deliveredAt: time.nullish(),
  cancelledAt: time.nullish(),
  items: z.array(item).default([]),
  shippingAmount: amount.default(0),
  payment: z.object({ paymentIntent: ref.max(255), captured: amount }).nullish(),
  shipments: z.array(shipment).default([]),
});
const subscription = z.object({
  ref,
  customer: ref,
  plan: words(200).default(""),
  status: words(40).min(1),
  providerRef: ref.max(255),
  currentPeriodEnd: time.nullish(),
});
const helpArticle = z.object({ slug: ref, title: words(300).min(1), body: words(100_000) });

const shopFile = z
  .object({
    customers: z.array(customer).default([]),
    orders: z.array(order).default([]),
    subscriptions: z.array(subscription).default([]),
    helpArticles: z.array(helpArticle).default([]),
  })
  .superRefine((file, ctx) => {
    const once = (name: string, values: readonly (readonly [string, PropertyKey[]])[]): void => {
      const seen = new Set<string>();
      for (const [value, path] of values) {
        if (seen.has(value))
          ctx.addIssue({ code: "custom", path, message: `${name} "${value}" is there twice` });
        seen.add(value);
      }
    };
    once(
      "customer",
      file.customers.map(({ ref: value }, i) => [value, ["customers", i, "ref"]]),
    );
    once(
      "order",
      file.orders.map(({ ref: value }, i) => [value, ["orders", i, "ref"]]),
    );
    once(
      "subscription",
      file.subscriptions.map(({ ref: value }, i) => [value, ["subscriptions", i, "ref"]]),
    );
    once(
      "help article",
      file.helpArticles.map(({ slug }, i) => [slug, ["helpArticles", i, "slug"]]),
    );
    once(
      "payment",
      file.orders.flatMap(({ payment }, i) =>
        payment ? [[payment.paymentIntent, ["orders", i, "payment", "paymentIntent"]] as const] : [],
      ),
    );
    once(
      "provider reference",
      file.subscriptions.map(({ providerRef }, i) => [providerRef, ["subscriptions", i, "providerRef"]]),
    );
    file.orders.forEach(({ items, shipments }, i) => {
      once(
        "item",
        items.map(({ ref: value }, j) => [value, ["orders", i, "items", j, "ref"]]),
      );
      once(
        "shipment",
        shipments.map(({ tracking }, j) => [tracking, ["orders", i, "shipments", j, "tracking"]]),
      );
    });
  });

/** A shop file as it is read: defaults filled in, times as ISO text in UTC, amounts as safe integers of minor units. */
export type ShopFile = z.output<typeof shopFile>;
/** What may be written into a shop file. */
export type ShopFileInput = z.input<typeof shopFile>;

export interface ShopProblem {
  /** Place in the file, like `orders[2].items[0].unitAmount`. */
  readonly path: string;
  readonly message: string;
}

export type ParsedShopFile =
  | { readonly ok: true; readonly file: ShopFile; readonly ignoredKeys: readonly string[] }
  | { readonly ok: false; readonly problems: readonly ShopProblem[] };

/** Reads parsed JSON. Names every problem, each with its path. */
export function parseShopFile(content: unknown): ParsedShopFile {
  const parsed = shopFile.safeParse(content);
  const { misspelt, ignored } = unknownKeys(content);
  const nothing = parsed.success && misspelt.length === 0 && Object.keys(content ?? {}).length === 0;
  const problems = [
    ...(nothing ? [{ path: pathText([]), message: `has none of ${listOf(Object.keys(FILE_KEYS))}` }] : []),
    ...(parsed.error?.issues ?? []).map(({ path, message }) => ({ path: pathText(path), message })),
    ...misspelt,
  ];
  return parsed.success && problems.length === 0
    ? { ok: true, file: parsed.data, ignoredKeys: ignored }
    : { ok: false, problems };
}

/** `orders[2].items[0].unitAmount`; "the file" for the root. */
export function pathText(path: readonly PropertyKey[]): string {
  const text = path.map((part) => (typeof part === "number" ? `[${part}]` : `.${String(part)}`)).join("");
  return text === "" ? "the file" : text.replace(/^\./, "");
}

/** The form in which a customer's address is looked up. */
export const emailKey = normalEmail;

type Shape = { readonly [key: string]: Shape | null };
const keysOf = (schema: z.ZodObject): Shape =>
  Object.fromEntries(Object.keys(schema.shape).map((key) => [key, null]));
const ORDER_KEYS: Shape = {
  ...keysOf(order),
  items: keysOf(item),
  shipments: keysOf(shipment),
  payment: { paymentIntent: null, captured: null },
};
const FILE_KEYS: Shape = {
  customers: keysOf(customer),
  orders: ORDER_KEYS,
  subscriptions: keysOf(subscription),
  helpArticles: keysOf(helpArticle),
};
const MAX_IGNORED_LISTED = 20;
/** More wrong letters than this are another word. */
const MISSPELT_LETTERS = 2;

const listOf = (keys: readonly string[]): string => keys.map((key) => `"${key}"`).join(", ");

/** Keys that the format does not know: those that lose what they hold, and those of somebody else. */
function unknownKeys(content: unknown): { misspelt: ShopProblem[]; ignored: string[] } {
  const misspelt: ShopProblem[] = [];
  const ignored: string[] = [];
  const visit = (value: unknown, shape: Shape, path: PropertyKey[]): void => {
    if (typeof value !== "object" || value === null) return;
    if (Array.isArray(value)) {
      value.forEach((each, index) => {
        visit(each, shape, [...path, index]);
      });
      return;
    }
    const absent = Object.keys(shape).filter((key) => Reflect.get(value, key) === undefined);
    for (const [key, inner] of Object.entries(value)) {
      const known = Object.hasOwn(shape, key) ? shape[key] : undefined;
      if (known !== undefined) {
        if (known !== null) visit(inner, known, [...path, key]);
        continue;
      }
      const meant = absent.find((one) => readsLike(key, one));
      const place = pathText([...path, key]);
      if (meant !== undefined)
        misspelt.push({ path: place, message: `is no key of the format: "${meant}" is` });
      else if (path.length === 0) {
        misspelt.push({ path: place, message: `is no key of the format: ${listOf(Object.keys(shape))} are` });
      } else if (ignored.length < MAX_IGNORED_LISTED) ignored.push(place);
    }
  };
  visit(content, FILE_KEYS, []);
  return { misspelt, ignored };
}

/** "delivered_at", "DeliveredAt" and "deliverdAt" read like deliveredAt; a short key must be the same but for its case. */
function readsLike(key: string, known: string): boolean {
  const plain = (text: string): string => text.toLowerCase().replace(/[_\s-]/g, "");
  const [a, b] = [plain(key), plain(known)];
  return a === b || (b.length > 2 * MISSPELT_LETTERS && wrongLetters(a, b) <= MISSPELT_LETTERS);
}

/** Letters to add, leave out or change (Levenshtein), for words whose lengths differ by little. */
function wrongLetters(a: string, b: string): number {
  if (Math.abs(a.length - b.length) > MISSPELT_LETTERS) return Number.POSITIVE_INFINITY;
  let row = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (const [i, letter] of [...a].entries()) {
    const next = [i + 1];
    for (const [j, other] of [...b].entries()) {
      const changed = (row[j] ?? 0) + (letter === other ? 0 : 1);
      next.push(Math.min(changed, (row[j + 1] ?? 0) + 1, (next[j] ?? 0) + 1));
    }
    row = next;
  }
  return row[b.length] ?? 0;
}
