/**
 * Parameters of the endpoints, checked as Stripe checks them: unknown names are refused, numbers
 * are read or refused and never rounded. A refusal here happens before execution and stores nothing.
 */
import type { FormObject, FormValue } from "./form.js";
import { REFUND_REASONS } from "./records.js";
import { wireErrors } from "./wire-error.js";

/** Largest amount that Stripe documents for a charge, in minor units (eight digits). */
const MAX_AMOUNT = 99_999_999;
const METADATA_MAX_KEYS = 50;
const METADATA_MAX_KEY_LENGTH = 40;
const METADATA_MAX_VALUE_LENGTH = 500;

export interface CreateRefundParams {
  paymentIntent: string | null;
  charge: string | null;
  /** Minor units; null means everything that is left. */
  amount: number | null;
  reason: (typeof REFUND_REASONS)[number] | null;
  metadata: Record<string, string>;
  expand: string[];
}

export interface ListRefundParams {
  paymentIntent: string | null;
  charge: string | null;
  /** Unix seconds, inclusive or exclusive as named. */
  created: { gt?: number; gte?: number; lt?: number; lte?: number };
  limit: number;
  startingAfter: string | null;
  endingBefore: string | null;
  expand: string[];
}

const CREATE_REFUND_NAMES = new Set([
  "amount",
  "charge",
  "currency",
  "customer",
  "expand",
  "instructions_email",
  "metadata",
  "origin",
  "payment_intent",
  "reason",
  "refund_application_fee",
  "reverse_transfer",
]);

/** @throws WireError that is not `executed` */
export function readCreateRefund(form: FormObject): CreateRefundParams {
  refuseUnknown(form, CREATE_REFUND_NAMES);
  const paymentIntent = text(form, "payment_intent");
  const charge = text(form, "charge");
  if (form["origin"] !== undefined || form["customer"] !== undefined) {
    throw wireErrors.badValue("origin", "Refunds from a customer balance are not part of this sandbox.");
  }
  if (paymentIntent === null && charge === null) {
    throw wireErrors.missingParameter(
      "charge",
      "One of the following params should be provided for this request: payment_intent or charge.",
    );
  }
  if (paymentIntent !== null && charge !== null) throw wireErrors.exclusive("payment_intent", "charge");
  const reasonText = text(form, "reason");
  const reason = REFUND_REASONS.find((known) => known === reasonText) ?? null;
  if (reasonText !== null && reason === null) {
    throw wireErrors.badValue("reason", `Invalid reason: must be one of ${REFUND_REASONS.join(", ")}`);
  }
  return {
    paymentIntent,
    charge,
    amount: positiveAmount(form),
    reason,
    metadata: readMetadata(form),
    expand: readExpand(form, ["charge", "payment_intent"]),
  };
}

const LIST_REFUND_NAMES = new Set([
  "charge",
  "created",
  "ending_before",
  "expand",
  "limit",
  "payment_intent",
  "starting_after",
]);

/** @throws WireError that is not `executed` */
export function readListRefunds(form: FormObject): ListRefundParams {
  refuseUnknown(form, LIST_REFUND_NAMES);
  const limit = integer(form, "limit") ?? 10;
  if (limit < 1 || limit > 100) {
    throw wireErrors.badValue("limit", "This value must be between 1 and 100.");
  }
  const startingAfter = text(form, "starting_after");
  const endingBefore = text(form, "ending_before");
  if (startingAfter !== null && endingBefore !== null) {
    throw wireErrors.exclusive("starting_after", "ending_before");
  }
  return {
    paymentIntent: text(form, "payment_intent"),
    charge: text(form, "charge"),
    created: readCreated(form),
    limit,
    startingAfter,
    endingBefore,
    expand: readExpand(form, ["data.charge", "data.payment_intent"]),
  };
}

/** Reads the parameters of a read endpoint that takes only `expand`. */
export function readExpandOnly(form: FormObject, allowed: readonly string[]): string[] {
  refuseUnknown(form, new Set(["expand"]));
  return readExpand(form, allowed);
}

export interface UpdateSubscriptionParams {
  cancelAtPeriodEnd: boolean | null;
  metadata: Record<string, string>;
}

/** @throws WireError that is not `executed` */
export function readUpdateSubscription(form: FormObject): UpdateSubscriptionParams {
  refuseUnknown(form, new Set(["cancel_at_period_end", "cancellation_details", "expand", "metadata"]));
  const flag = text(form, "cancel_at_period_end");
  if (flag !== null && flag !== "true" && flag !== "false") {
    throw wireErrors.badValue("cancel_at_period_end", `Invalid boolean: ${flag}`);
  }
  return {
    cancelAtPeriodEnd: flag === null ? null : flag === "true",
    metadata: readMetadata(form),
  };
}

/** @throws WireError that is not `executed` */
export function checkCancelSubscription(form: FormObject): void {
  refuseUnknown(form, new Set(["cancellation_details", "expand", "invoice_now", "prorate"]));
}

function refuseUnknown(form: FormObject, known: ReadonlySet<string>): void {
  for (const name of Object.keys(form)) {
    if (!known.has(name)) throw wireErrors.unknownParameter(name);
  }
}

function text(form: FormObject, name: string): string | null {
  const value = form[name];
  if (value === undefined) return null;
  if (typeof value !== "string") throw wireErrors.badValue(name, `Invalid string: ${name}`);
  if (value === "") throw wireErrors.emptyParameter(name);
  return value;
}

function integer(form: FormObject, name: string): number | null {
  const value = text(form, name);
  if (value === null) return null;
  return integerOf(name, value);
}

function integerOf(name: string, value: string): number {
  if (!/^-?\d{1,15}$/.test(value)) throw wireErrors.notAnInteger(name, value);
  return Number(value);
}

function positiveAmount(form: FormObject): number | null {
  const amount = integer(form, "amount");
  if (amount === null) return null;
  if (amount < 1) throw wireErrors.notAnInteger("amount", String(amount));
  if (amount > MAX_AMOUNT) throw wireErrors.amountTooLarge();
  return amount;
}

function readMetadata(form: FormObject): Record<string, string> {
  const value = form["metadata"];
  if (value === undefined || value === "") return {};
  if (typeof value === "string" || Array.isArray(value)) {
    throw wireErrors.badValue("metadata", "Invalid object: metadata");
  }
  const entries: [string, string][] = [];
  for (const [key, entry] of Object.entries(value)) {
    if (typeof entry !== "string")
      throw wireErrors.badValue(`metadata[${key}]`, "Metadata values must be strings.");
    if (key.length > METADATA_MAX_KEY_LENGTH) {
      throw wireErrors.badValue(
        "metadata",
        `Metadata keys may have at most ${METADATA_MAX_KEY_LENGTH} characters.`,
      );
    }
    if (entry.length > METADATA_MAX_VALUE_LENGTH) {
      throw wireErrors.badValue(
        `metadata[${key}]`,
        `Metadata values may have at most ${METADATA_MAX_VALUE_LENGTH} characters.`,
      );
    }
    if (entry !== "") entries.push([key, entry]);
  }
  if (entries.length > METADATA_MAX_KEYS) {
    throw wireErrors.badValue("metadata", `Metadata may have at most ${METADATA_MAX_KEYS} keys.`);
  }
  return Object.fromEntries(entries);
}

function readExpand(form: FormObject, allowed: readonly string[]): string[] {
  const value: FormValue | undefined = form["expand"];
  if (value === undefined) return [];
  if (!Array.isArray(value)) throw wireErrors.badValue("expand", "Invalid array");
  return value.map((entry) => {
    if (typeof entry !== "string") throw wireErrors.badValue("expand", "Invalid string in expand");
    if (!allowed.includes(entry)) throw wireErrors.notExpandable(entry);
    return entry;
  });
}

function readCreated(form: FormObject): ListRefundParams["created"] {
  const value = form["created"];
  if (value === undefined) return {};
  if (typeof value === "string") {
    const exact = integerOf("created", value);
    return { gte: exact, lte: exact };
  }
  if (Array.isArray(value)) throw wireErrors.badValue("created", "Invalid object: created");
  const bounds: ListRefundParams["created"] = {};
  for (const [name, bound] of Object.entries(value)) {
    if (typeof bound !== "string") throw wireErrors.notAnInteger(`created[${name}]`, "object");
    const seconds = integerOf(`created[${name}]`, bound);
    if (name === "gt") bounds.gt = seconds;
    else if (name === "gte") bounds.gte = seconds;
    else if (name === "lt") bounds.lt = seconds;
    else if (name === "lte") bounds.lte = seconds;
    else throw wireErrors.unknownParameter(`created[${name}]`);
  }
  return bounds;
}
