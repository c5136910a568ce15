/** The stored form of bindings and changes. Written and read in this one place; a row that fits no shape throws. */
import { z } from "zod";
import type { ApprovalBinding, Change } from "../domain/approval.js";
import { type Canonical, canonicalHash } from "../domain/canonical.js";
import type { OperationId } from "../domain/ids.js";
import type { Json, JsonObject } from "../domain/json.js";
import { amountToJson } from "../domain/money.js";
import { OPERATION_KINDS } from "../domain/operation.js";

const minor = z.int().transform((value) => BigInt(value));
const operationId = z.string().transform((text) => text as OperationId);

const world = z.strictObject({
  customerRef: z.string(),
  ticketCustomerRef: z.string().nullable(),
  order: z
    .strictObject({ ref: z.string(), status: z.string(), currency: z.string(), customerRef: z.string() })
    .nullable(),
  payment: z
    .strictObject({
      capturedMinor: minor,
      refundableMinor: minor,
      currency: z.string(),
      spent: z
        .strictObject({ refundedMinor: minor, elsewhereMinor: minor, reservedMinor: minor })
        .exactOptional(),
    })
    .nullable(),
  subscription: z.strictObject({ ref: z.string(), status: z.string(), customerRef: z.string() }).nullable(),
});

const policy = z.strictObject({
  answer: z.enum(["allow", "hold"]),
  answerHash: z.string(),
  policyHash: z.string(),
  reasons: z.array(z.string()),
  role: z.string(),
  approvers: z.int().positive(),
  line: z.int().nonnegative(),
  isLastLine: z.boolean(),
  ladderMinor: minor,
  confirmAmount: z.boolean(),
  coolingOffMinutes: z.number().nonnegative(),
  selfApproval: z.boolean(),
});

const denied = z.strictObject({ by: z.string(), at: z.string(), note: z.string().nullable() });

const binding = z.strictObject({
  operationId,
  kind: z.enum(OPERATION_KINDS),
  customerRef: z.string(),
  customerName: z.string(),
  orderRef: z.string().nullable(),
  subscriptionRef: z.string().nullable(),
  itemRefs: z.array(z.string()),
  amountMinor: minor,
  currency: z.string(),
  atPeriodEnd: z.boolean().nullable(),
  occurrence: z.int().positive(),
  fingerprint: z.string(),
  filers: z.array(z.string()),
  bindingUnconfirmed: z.boolean(),
  world,
  policy,
  earlier: z.array(
    z.strictObject({
      operationId,
      status: z.string(),
      amountMinor: minor,
      currency: z.string(),
      at: z.string(),
      denied: denied.nullable(),
    }),
  ),
});

const text = { from: z.string(), to: z.string() };
const money = { fromMinor: minor, toMinor: minor, currency: z.string() };
const change = z.discriminatedUnion("what", [
  z.strictObject({ what: z.literal("order_status"), ...text }),
  z.strictObject({ what: z.literal("refundable"), ...money }),
  z.strictObject({ what: z.literal("captured"), ...money }),
  z.strictObject({ what: z.literal("order_customer"), ...text }),
  z.strictObject({ what: z.literal("order_currency"), ...text }),
  z.strictObject({ what: z.literal("customer"), ...text }),
  z.strictObject({ what: z.literal("subscription_status"), ...text }),
  z.strictObject({ what: z.literal("subscription_customer"), ...text }),
  z.strictObject({
    what: z.literal("missing"),
    thing: z.enum(["order", "payment", "subscription", "customer"]),
  }),
  z.strictObject({ what: z.literal("fingerprint"), ...text }),
  z.strictObject({ what: z.literal("amount"), ...money }),
  z.strictObject({ what: z.literal("occurrence"), from: z.int(), to: z.int() }),
  z.strictObject({ what: z.literal("policy"), ...text }),
  z.strictObject({ what: z.literal("policy_refuses"), sentence: z.string() }),
  z.strictObject({ what: z.literal("voter"), userId: z.string(), sentence: z.string() }),
  z.strictObject({ what: z.literal("votes"), given: z.int(), needed: z.int() }),
]);
const changes = z.array(change);

/** Plain JSON with amounts as integers of minor units. */
export function bindingToJson(value: ApprovalBinding): JsonObject {
  return plain(value) as JsonObject;
}

/** Throws when the stored value is no binding: a row that was altered is not guessed at. */
export const bindingFromJson = (value: unknown): ApprovalBinding => binding.parse(value);

export const changesToJson = (value: readonly Change[]): Json[] => plain(value) as Json[];
export const changesFromJson = (value: unknown): readonly Change[] => changes.parse(value);

/** SHA-256 over the canonical binding: a stored binding that was altered no longer has its hash. */
export const bindingHash = (value: ApprovalBinding): string => canonicalHash(value as unknown as Canonical);

function plain(value: unknown): Json {
  return JSON.parse(
    JSON.stringify(value, (_key, member: unknown) =>
      typeof member === "bigint" ? amountToJson(member) : member,
    ),
  ) as Json;
}
