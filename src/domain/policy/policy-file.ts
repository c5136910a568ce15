/**
 * The policy file's schema (CONTRACT §8) and its reading into a `Policy`.
 *
 * 1. An unknown key is an error: a misspelt limit must not silently mean "no limit".
 * 2. Keys left out have the values of CONTRACT §8, except `auto`, `approval`, `totals` and `coolingOffMinutes`: left out
 *    they give no authority. A kind left out has no authority either, so everything of that kind is refused.
 * 3. `policyToFile(parsePolicyFile(x))` is a file that parses to the same policy.
 */
import { z } from "zod";
import { type Canonical, canonicalHash } from "../canonical.js";
import type { JsonObject } from "../json.js";
import { amountToJson, isCurrency } from "../money.js";
import { OPERATION_KINDS, type OperationKind } from "../operation.js";
import { ORDER_STATUSES, type OrderStatus } from "../order.js";
import { cutText } from "../text/cut.js";
import { missingRoles, type PolicyProblem, valueAt } from "./file-checks.js";
import {
  type ApprovalLine,
  type CoolingOff,
  FILER_ROLE,
  type KindRules,
  type Limit,
  ONCALL_ROLE,
  type Policy,
  type Role,
  TOTAL_PERS,
  type TotalRule,
} from "./policy.js";

const amountInMinorUnits = z
  .int({ error: "must be a whole number of minor units (5000 for 50.00)" })
  .nonnegative({ error: "must not be negative" })
  .transform((value) => BigInt(value));

const NO_CURRENCY = "is not a currency code (three capital letters, ISO 4217)";
const currencyCode = z.string().refine(isCurrency, { error: NO_CURRENCY });

const limit = z.record(currencyCode, amountInMinorUnits);
const minutes = z.number().positive({ error: "must be more than 0 minutes" }).max(5_256_000, {
  error: "must be less than ten years",
});
const windowHours = z.number().positive({ error: "must be more than 0 hours" }).max(87_600, {
  error: "must be less than ten years",
});
const count = z.int({ error: "must be a whole number" }).nonnegative({ error: "must not be negative" });
const roleName = z.string().regex(/^[A-Za-z][A-Za-z0-9_-]*$/, {
  error: "must be a role's name (letters, digits, - and _)",
});
const slackId = z.string().regex(/^\S+$/, { error: "must be a Slack id without spaces" });

const approvers = z
  .int({ error: "must be a whole number of people" })
  .min(1, { error: "must be at least 1 person" })
  .max(10, { error: "must be at most 10 people" });
const moneyLine = z.strictObject({ upTo: limit.optional(), role: roleName, approvers: approvers.default(1) });
const plainLine = z.strictObject({ role: roleName, approvers: approvers.default(1) });

/** Another mistake in the same map hides none of what is checked with this: the check must bear any values. */
const evenThen = { when: ({ value }: { value: unknown }) => typeof value === "object" && value !== null };

const total = z
  .strictObject({
    per: z.enum(TOTAL_PERS),
    windowHours: windowHours.optional(),
    count: count.optional(),
    amount: limit.optional(),
    then: z.enum(["hold", "refuse"]),
  })
  .refine((rule) => rule.count !== undefined || rule.amount !== undefined, {
    ...evenThen,
    error: "needs a count or an amount",
  })
  .refine((rule) => rule.per === "day" || rule.windowHours !== undefined, {
    ...evenThen,
    path: ["windowHours"],
    error: "is needed",
  })
  .refine((rule) => rule.per !== "day" || rule.windowHours === undefined || rule.windowHours === 24, {
    ...evenThen,
    path: ["windowHours"],
    error: "a day has 24 hours; leave it out",
  });
const plainTotal = total.refine((rule) => rule.amount === undefined, {
  ...evenThen,
  path: ["amount"],
  error: "this kind moves no money; count its operations instead",
});

const orderStatuses = z.array(z.enum(ORDER_STATUSES)).min(1, { error: "must name at least one status" });
const windowDays = z
  .number()
  .positive({ error: "must be more than 0 days" })
  .max(3_650, { error: "must be less than ten years" });
const noMoneyAuto = z.boolean({ error: "must be true or false: this kind moves no money" });

/** Not a union: there one wrong amount would hide the others of the same map. */
const autoMoney = z.unknown().transform((value, ctx): boolean | z.output<typeof limit> => {
  if (typeof value === "boolean") return value;
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    ctx.addIssue({ code: "custom", message: "must be true, false, or amounts by currency" });
    return z.NEVER;
  }
  const read = limit.safeParse(value, { error: plainMessage });
  if (read.success) return read.data;
  for (const { path, message } of read.error.issues.flatMap(problemsOf)) {
    ctx.addIssue({ code: "custom", path: [...path], message });
  }
  return z.NEVER;
});

const refundKind = z.strictObject({
  orderStatuses: orderStatuses.default(["delivered", "cancelled"]),
  windowDays: windowDays.default(30),
  auto: autoMoney.optional(),
  never: limit.default({ GBP: 200_000n, USD: 200_000n }),
  approval: z.array(moneyLine).default([]),
  confirmAmountAbove: limit.default({ GBP: 100_000n }),
  totals: z.array(total).default([]),
  coolingOffMinutes: z
    .record(currencyCode, z.strictObject({ above: amountInMinorUnits, minutes }))
    .default({}),
});
const cancelOrderKind = z.strictObject({
  orderStatuses: orderStatuses.default(["placed", "packed"]),
  windowDays: windowDays.optional(),
  auto: noMoneyAuto.optional(),
  approval: z.array(plainLine).default([]),
  totals: z.array(plainTotal).default([]),
});
const cancelSubscriptionKind = z.strictObject({
  auto: noMoneyAuto.optional(),
  approval: z.array(plainLine).default([]),
  totals: z.array(plainTotal).default([]),
});

const role = z.strictObject({
  usergroups: z.array(slackId).default([]),
  users: z.array(slackId).default([]),
  limit: limit.optional(),
});

const policyFile = z.strictObject({
  version: z.literal(1, { error: "must be 1" }).default(1),
  kinds: z
    .strictObject({
      refund: refundKind.prefault({}),
      cancel_order: cancelOrderKind.prefault({}),
      cancel_subscription: cancelSubscriptionKind.prefault({}),
    })
    .prefault({}),
  approvals: z
    .strictObject({
      selfApproval: z.boolean().default(false),
      expireAfterMinutes: minutes.default(1440),
      remindAfterMinutes: z.array(minutes).default([30, 240]),
      escalateTo: z.array(roleName).default(["finance", ONCALL_ROLE]),
    })
    .prefault({}),
  resolution: z
    .strictObject({
      resolverMayBeApprover: z.boolean().default(false),
      secondPersonAbove: limit.default({ GBP: 20_000n }),
      expireAfterMinutes: minutes.default(240),
    })
    .prefault({}),
  freeze: z
    .strictObject({
      thawByAnotherPerson: z.boolean().default(true),
      tripOn: z
        .strictObject({
          unknownPerHour: count.default(20),
          duplicates: count.default(1),
          orphans: count.default(1),
        })
        .prefault({}),
    })
    .prefault({}),
  roles: z.record(roleName, role.prefault({})).default({}),
});

/** CONTRACT §8 names these; a file that does not fill them leaves them without members. */
const ROLES_ALWAYS_THERE = [FILER_ROLE, "supervisor", "finance", ONCALL_ROLE] as const;

export type ParsedPolicy =
  | { readonly ok: true; readonly policy: Policy }
  | { readonly ok: false; readonly problems: readonly PolicyProblem[] };

/** Reads the file's content (parsed YAML or JSON). Names every problem with its path and, where there is one, the value that is wrong. */
export function parsePolicyFile(content: unknown): ParsedPolicy {
  if (content === null || content === undefined) {
    return { ok: false, problems: [{ path: [], message: "the policy file is empty" }] };
  }
  const parsed = policyFile.safeParse(content, { error: plainMessage });
  const roles = missingRoles(content, ROLES_ALWAYS_THERE);
  if (parsed.success && roles.length === 0) return { ok: true, policy: toPolicy(parsed.data) };
  const problems = parsed.success ? [] : parsed.error.issues.flatMap(problemsOf);
  return { ok: false, problems: [...problems, ...roles].map((problem) => withValue(content, problem)) };
}

/** The identity of a policy: SHA-256 over its canonical JSON, lower-case hex. Comments, order and defaults do not count. */
export const policyHash = (policy: Policy): string => canonicalHash(policy as unknown as Canonical);

/** The policy as file content (JSON): what is stored, and what `parsePolicyFile` reads back to the same policy. */
export function policyToFile(policy: Policy): JsonObject {
  return JSON.parse(
    JSON.stringify(
      {
        ...policy,
        kinds: Object.fromEntries(
          OPERATION_KINDS.map((kind) => [kind, kindToFile(kind, policy.kinds[kind])]),
        ),
      },
      (_key, value: unknown) => (typeof value === "bigint" ? amountToJson(value) : value),
    ),
  ) as JsonObject;
}

function kindToFile(kind: OperationKind, rules: KindRules): Partial<KindRules> {
  if (kind === "refund") return rules;
  const { orderStatuses, windowDays, auto, approval, totals } = rules;
  if (kind === "cancel_subscription") return { auto, approval, totals };
  return { orderStatuses, ...(windowDays === null ? {} : { windowDays }), auto, approval, totals };
}

type FileData = z.output<typeof policyFile>;

function toPolicy(file: FileData): Policy {
  const { refund, cancel_order, cancel_subscription } = file.kinds;
  return {
    version: 1,
    kinds: {
      refund: kindRules(refund),
      cancel_order: kindRules(cancel_order),
      cancel_subscription: kindRules(cancel_subscription),
    },
    approvals: {
      ...file.approvals,
      remindAfterMinutes: [...file.approvals.remindAfterMinutes].sort((a, b) => a - b),
    },
    resolution: file.resolution,
    freeze: file.freeze,
    roles: Object.fromEntries(
      [...new Set([...ROLES_ALWAYS_THERE, ...Object.keys(file.roles)])].map((name) => [
        name,
        toRole(file.roles[name]),
      ]),
    ),
  };
}

interface KindData {
  orderStatuses?: OrderStatus[];
  windowDays?: number | undefined;
  auto?: boolean | Limit | undefined;
  never?: Limit;
  approval: { upTo?: Limit | undefined; role: string; approvers: number }[];
  confirmAmountAbove?: Limit;
  totals: z.output<typeof total>[];
  coolingOffMinutes?: Record<string, CoolingOff>;
}

function kindRules(kind: KindData): KindRules {
  return {
    orderStatuses: kind.orderStatuses ?? [],
    windowDays: kind.windowDays ?? null,
    auto: kind.auto ?? false,
    never: kind.never ?? {},
    approval: kind.approval.map(toLine),
    confirmAmountAbove: kind.confirmAmountAbove ?? {},
    totals: kind.totals.map(toTotal),
    coolingOffMinutes: kind.coolingOffMinutes ?? {},
  };
}

function toLine(line: KindData["approval"][number]): ApprovalLine {
  const { role, approvers } = line;
  return line.upTo === undefined ? { role, approvers } : { upTo: line.upTo, role, approvers };
}

function toTotal(rule: z.output<typeof total>): TotalRule {
  return {
    per: rule.per,
    windowHours: rule.windowHours ?? 24,
    ...(rule.count === undefined ? {} : { count: rule.count }),
    ...(rule.amount === undefined ? {} : { amount: rule.amount }),
    then: rule.then,
  };
}

function toRole(data: z.output<typeof role> | undefined): Role {
  if (data === undefined) return { usergroups: [], users: [] };
  const { usergroups, users } = data;
  return data.limit === undefined ? { usergroups, users } : { usergroups, users, limit: data.limit };
}

const NO_KEY = "is not a key of the policy file here";

function problemsOf(issue: z.core.$ZodIssue): PolicyProblem[] {
  const path = issue.path.map((part) => (typeof part === "number" ? part : String(part)));
  switch (issue.code) {
    case "unrecognized_keys":
      return issue.keys.map((key) => ({
        path: [...path, key],
        message: NO_KEY,
      }));
    case "invalid_key":
      return [{ path, message: issue.issues[0]?.message ?? "is not allowed as a key" }];
    default:
      return [{ path, message: issue.message }];
  }
}

const TYPE_WORDS: Readonly<Record<string, string>> = {
  string: "text",
  number: "a number",
  int: "a whole number",
  boolean: "true or false",
  array: "a list",
  object: "keys with values",
  record: "keys with values",
};

/** For what the schema above has no words of its own. */
function plainMessage(issue: z.core.$ZodRawIssue): string | undefined {
  if (issue.code === "invalid_type") {
    return issue.input === undefined
      ? "is needed"
      : `must be ${TYPE_WORDS[issue.expected] ?? issue.expected}`;
  }
  return issue.code === "invalid_value" ? `must be one of ${issue.values.map(String).join(", ")}` : undefined;
}

const VALUE_MAX_CHARS = 60;

/** Quotes the value as the file has it, where the message does not name it already. */
export function withValue(content: unknown, problem: PolicyProblem): PolicyProblem {
  const value = valueAt(content, problem.path);
  const quoted = typeof value === "number" ? String(value) : JSON.stringify(value);
  if (problem.path.length === 0 || quoted === undefined || problem.message.includes(quoted)) return problem;
  // What is wrong is the key: its value is neither here nor there.
  if (problem.message === NO_KEY || problem.message === NO_CURRENCY) return problem;
  return { ...problem, message: `${problem.message}; it is ${cutText(quoted, VALUE_MAX_CHARS)}` };
}
