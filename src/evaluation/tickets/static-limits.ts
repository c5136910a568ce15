/**
 * The policy, simulated on either side of each of its limits: what is allowed, held for whom, refused. No key, no database, no
 * shop: facts are made up so that nothing else speaks.
 */
import type { OperationKind } from "../../domain/operation.js";
import { evaluate } from "../../domain/policy/evaluate.js";
import type { Facts, Proposal, TotalFact } from "../../domain/policy/facts.js";
import type { KindRules, Limit, Policy, TotalRule } from "../../domain/policy/policy.js";

export interface LimitCheck {
  readonly limit: string;
  readonly at: string;
  /** `allow`, `hold ROLE×N` or `refuse`. */
  readonly answer: string;
  readonly wanted: string;
  readonly right: boolean;
}

const DAY_MS = 86_400_000;
const HOUR_MS = 3_600_000;
/** More than any limit: what is left to refund never stands in the way. */
const PLENTY = 10n ** 12n;

/** Every limit of the policy, looked at on both sides. Pure. */
export function checkLimits(policy: Policy, now: Date): LimitCheck[] {
  return (Object.keys(policy.kinds) as OperationKind[]).flatMap((kind) => kindChecks(policy, kind, now));
}

interface Case {
  readonly limit: string;
  readonly at: string;
  readonly proposal: Partial<Proposal>;
  readonly facts?: Partial<Facts>;
  readonly wanted: string;
}

function kindChecks(policy: Policy, kind: OperationKind, now: Date): LimitCheck[] {
  const rules = policy.kinds[kind];
  const cases: readonly Case[] = [
    ...amountCases(kind, rules),
    ...windowCases(kind, rules, now),
    ...totalCases(kind, rules),
    ...statusCases(kind, rules, now),
  ];
  return cases.map((one) => {
    const proposal: Proposal = {
      kind,
      amountMinor: kind === "refund" ? 1n : 0n,
      currency: currencyOf(rules),
      occurrence: 1,
      ...one.proposal,
    };
    const answer = answerText(policy, proposal, { ...calmFacts(kind, rules, proposal, now), ...one.facts });
    return {
      limit: `${kind}: ${one.limit}`,
      at: one.at,
      answer,
      wanted: one.wanted,
      right: answer === one.wanted,
    };
  });
}

const currencyOf = (rules: KindRules): string =>
  typeof rules.auto === "object" ? (Object.keys(rules.auto)[0] ?? "GBP") : "GBP";

/** Facts in which no rule but the one under test has anything against it. */
function calmFacts(kind: OperationKind, rules: KindRules, proposal: Proposal, now: Date): Facts {
  const hourAgo = new Date(now.getTime() - HOUR_MS);
  return {
    now,
    bindingConfirmed: true,
    order:
      kind === "cancel_subscription"
        ? null
        : {
            ref: "ORD-X",
            status: rules.orderStatuses[0] ?? "delivered",
            currency: proposal.currency,
            placedAt: hourAgo,
            deliveredAt: hourAgo,
            cancelledAt: null,
          },
    spentOnOrderMinor: 0n,
    refundableMinor: kind === "refund" ? PLENTY : null,
    linesTaken: [],
    totals: rules.totals.map((rule) => totalFact(rule, 0, 0n)),
    denied: null,
  };
}

const totalFact = (rule: TotalRule, count: number, amountMinor: bigint): TotalFact => ({
  per: rule.per,
  windowHours: rule.windowHours,
  scope: `${rule.per}:X`,
  count,
  amountMinor,
});

function answerText(policy: Policy, proposal: Proposal, facts: Facts): string {
  const answer = evaluate(proposal, facts, policy);
  return answer.answer === "hold"
    ? `hold ${answer.approval.role}×${answer.approval.approvers}`
    : answer.answer;
}

/** What the ladder must answer for a sum, read off the file by hand's rules: first line that covers it; never, then refuse. */
function ladder(rules: KindRules, currency: string, minor: bigint): string {
  if (minor > (rules.never[currency] ?? PLENTY)) return "refuse";
  if (typeof rules.auto === "object" && minor <= (rules.auto[currency] ?? -1n)) return "allow";
  const line =
    rules.approval.find(({ upTo }) => upTo === undefined || minor <= (upTo[currency] ?? -1n)) ?? null;
  return line === null ? "refuse" : `hold ${line.role}×${line.approvers}`;
}

function amountCases(kind: OperationKind, rules: KindRules): Case[] {
  if (kind !== "refund") return [];
  const limits: [string, Limit][] = [
    ...(typeof rules.auto === "object" ? [["auto", rules.auto] as [string, Limit]] : []),
    ...rules.approval.flatMap(({ upTo, role }): [string, Limit][] =>
      upTo === undefined ? [] : [[`line of ${role}`, upTo]],
    ),
    ["never", rules.never],
  ];
  return limits.flatMap(([name, limit]) =>
    Object.entries(limit).flatMap(([currency, minor]) =>
      [minor, minor + 1n]
        // A sum that a total of the same size would stop is that total's case.
        .filter((amount) => amount > 0n && totalsLeave(rules, currency, amount))
        .map((amount) => ({
          limit: `${name} ${currency}`,
          at: `${amount} ${currency}`,
          proposal: { amountMinor: amount, currency },
          wanted: ladder(rules, currency, amount),
        })),
    ),
  );
}

const totalsLeave = (rules: KindRules, currency: string, amount: bigint): boolean =>
  rules.totals.every((rule) => {
    const room = rule.amount?.[currency];
    return room === undefined || amount <= room || rule.then === "hold";
  });

function windowCases(kind: OperationKind, rules: KindRules, now: Date): Case[] {
  if (rules.windowDays === null || kind === "cancel_subscription") return [];
  const old = (days: number): Partial<Facts> => {
    const at = new Date(now.getTime() - days * DAY_MS);
    return {
      order: {
        ref: "ORD-X",
        status: rules.orderStatuses[0] ?? "delivered",
        currency: currencyOf(rules),
        placedAt: at,
        deliveredAt: at,
        cancelledAt: null,
      },
    };
  };
  const inside = kind === "refund" ? ladder(rules, currencyOf(rules), 1n) : plain(rules);
  return [
    {
      limit: "window",
      at: "an hour before its end",
      proposal: {},
      facts: old(rules.windowDays - 1 / 24),
      wanted: inside,
    },
    {
      limit: "window",
      at: "an hour after its end",
      proposal: {},
      facts: old(rules.windowDays + 1 / 24),
      wanted: "refuse",
    },
  ];
}

const plain = (rules: KindRules): string => {
  if (rules.auto === true) return "allow";
  const [line] = rules.approval;
  return line === undefined ? "refuse" : `hold ${line.role}×${line.approvers}`;
};

function totalCases(kind: OperationKind, rules: KindRules): Case[] {
  const base = kind === "refund" ? ladder(rules, currencyOf(rules), 1n) : plain(rules);
  const [firstLine] = rules.approval;
  const beyond = (rule: TotalRule): string =>
    rule.then === "refuse" || firstLine === undefined
      ? "refuse"
      : `hold ${firstLine.role}×${firstLine.approvers}`;
  const others = (rule: TotalRule): TotalFact[] =>
    rules.totals.filter((one) => one !== rule).map((one) => totalFact(one, 0, 0n));
  return rules.totals.flatMap((rule) => {
    const name = `total per ${rule.per} in ${rule.windowHours} h`;
    const currency = currencyOf(rules);
    const counted: Case[] =
      rule.count === undefined
        ? []
        : [rule.count - 1, rule.count].map((count) => ({
            limit: `${name}, count`,
            at: `${count} before it`,
            proposal: {},
            facts: { totals: [...others(rule), totalFact(rule, count, 0n)] },
            wanted: count < (rule.count ?? 0) ? base : beyond(rule),
          }));
    const room = rule.amount?.[currency];
    const summed: Case[] =
      room === undefined
        ? []
        : [room - 1n, room].map((sum) => ({
            limit: `${name}, amount ${currency}`,
            at: `${sum} before it`,
            proposal: {},
            facts: { totals: [...others(rule), totalFact(rule, 0, sum)] },
            wanted: sum < room ? base : beyond(rule),
          }));
    return [...counted, ...summed];
  });
}

const STATUSES = ["placed", "packed", "dispatched", "delivered", "cancelled", "returned"] as const;

function statusCases(kind: OperationKind, rules: KindRules, now: Date): Case[] {
  if (kind === "cancel_subscription") return [];
  const inside = kind === "refund" ? ladder(rules, currencyOf(rules), 1n) : plain(rules);
  const [firstLine] = rules.approval;
  const held = firstLine === undefined ? "refuse" : `hold ${firstLine.role}×${firstLine.approvers}`;
  return STATUSES.map((status) => ({
    limit: "order status",
    at: status,
    proposal: {},
    facts: {
      order: {
        ref: "ORD-X",
        status,
        currency: currencyOf(rules),
        placedAt: now,
        deliveredAt: status === "delivered" ? now : null,
        cancelledAt: status === "cancelled" ? now : null,
      },
    },
    wanted: !rules.orderStatuses.includes(status)
      ? "refuse"
      : kind === "refund" && status === "cancelled"
        ? held
        : inside,
  }));
}
