/**
 * The shop file (CONTRACT §7): what `shop import` reads. Amounts are integers of minor units; an error names its path in
 * the file. Keys that the format does not know change nothing and are listed, so that a misspelt one is seen.
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
  if (parsed.success) return { ok: true, file: parsed.data, ignoredKeys: ignoredKeys(content) };
  const problems = parsed.error.issues.map(({ path, message }) => ({ path: pathText(path), message }));
  return { ok: false, problems };
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

function ignoredKeys(content: unknown): string[] {
  const found: string[] = [];
  const visit = (value: unknown, shape: Shape, path: PropertyKey[]): void => {
    if (found.length >= MAX_IGNORED_LISTED || typeof value !== "object" || value === null) return;
    if (Array.isArray(value)) {
      value.forEach((each, index) => {
        visit(each, shape, [...path, index]);
      });
      return;
    }
    for (const [key, inner] of Object.entries(value)) {
      const known = Object.hasOwn(shape, key) ? shape[key] : undefined;
      if (known === undefined) found.push(pathText([...path, key]));
      else if (known !== null) visit(inner, known, [...path, key]);
    }
  };
  visit(content, FILE_KEYS, []);
  return found;
}
