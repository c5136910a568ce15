/**
 * What a valid policy file probably did not mean to say: lines that nothing reaches, limits that nobody can sign, roles without
 * members. Notices never stop anything; they are shown by `policy check` and at the start.
 */
import { OPERATION_KINDS, type OperationKind } from "../operation.js";
import { limitFor } from "./ladder.js";
import { FILER_ROLE, type KindRules, ONCALL_ROLE, type Policy } from "./policy.js";
import { amountText, listText } from "./text.js";

/** Sentences, each beginning with the place in the file. Empty: nothing to say. */
export function policyNotices(policy: Policy): readonly string[] {
  return [
    ...OPERATION_KINDS.flatMap((kind) => kindNotices(kind, policy.kinds[kind], policy)),
    ...roleNotices(policy),
  ];
}

/** The keys and indexes that a notice begins with: `kinds.refund.approval[1]: …`. */
export const noticePath = (notice: string): readonly (string | number)[] =>
  (/^[^:\s]+/.exec(notice)?.[0].match(/[^.[\]]+/g) ?? []).map((part) =>
    /^\d+$/.test(part) ? Number(part) : part,
  );

function kindNotices(kind: OperationKind, rules: KindRules, policy: Policy): string[] {
  const at = `kinds.${kind}`;
  const said: string[] = [];
  const nobodyAlone = rules.auto === false;
  if (rules.approval.length === 0) {
    said.push(
      nobodyAlone
        ? `${at}: without auto and approval everything of this kind is refused`
        : `${at}.approval: there is no line, so whatever would need an approval is refused`,
    );
  }
  const open = rules.approval.findIndex((line) => line.upTo === undefined);
  if (open >= 0 && open < rules.approval.length - 1) {
    said.push(`${at}.approval[${open}]: it covers everything, so the lines after it are never reached`);
  }
  if (kind === "refund") said.push(...moneyNotices(at, rules, policy));
  return said;
}

function moneyNotices(at: string, rules: KindRules, policy: Policy): string[] {
  const said: string[] = [];
  for (const currency of currenciesOf(rules)) {
    const never = limitFor(rules.never, currency);
    const auto = typeof rules.auto === "object" ? limitFor(rules.auto, currency) : undefined;
    if (typeof rules.auto === "object" && auto === undefined) {
      said.push(
        `${at}.auto: it does not name ${currency}, so every refund in ${currency} goes to the last approval line (${currency}: 0 would let the first line decide)`,
      );
    }
    if (never === undefined) {
      said.push(
        `${at}.never: it does not name ${currency}, so no amount in ${currency} is refused for its size`,
      );
    }
    if (auto !== undefined && never !== undefined && auto > never) {
      said.push(`${at}.auto: ${amountText(auto, currency)} is above never (${amountText(never, currency)})`);
    }
    said.push(...lineNotices(at, rules, policy, currency));
  }
  return said;
}

function lineNotices(at: string, rules: KindRules, policy: Policy, currency: string): string[] {
  const said: string[] = [];
  let covered: bigint | undefined;
  rules.approval.forEach(({ upTo, role }, index) => {
    const limit = upTo === undefined ? undefined : limitFor(upTo, currency);
    if (limit === undefined) return;
    const line = `${at}.approval[${index}]`;
    if (covered !== undefined && limit <= covered) {
      said.push(
        `${line}: a line before it covers ${amountText(limit, currency)} already, so it is never reached in ${currency}`,
      );
    }
    const sign = policy.roles[role]?.limit;
    const signable = sign === undefined ? undefined : limitFor(sign, currency);
    if (sign !== undefined && signable === undefined && index < rules.approval.length - 1) {
      said.push(`${line}: the limit of the role ${role} does not name ${currency}, so nobody can sign there`);
    }
    if (signable !== undefined && signable < limit) {
      said.push(
        `${line}: it reaches ${amountText(limit, currency)}, but the role ${role} may sign only up to ${amountText(signable, currency)}`,
      );
    }
    covered = covered === undefined || limit > covered ? limit : covered;
  });
  const never = limitFor(rules.never, currency);
  const last = rules.approval.at(-1)?.upTo;
  const top = last === undefined ? undefined : limitFor(last, currency);
  if (never !== undefined && top !== undefined && top < never) {
    said.push(
      `${at}.approval: the last line ends at ${amountText(top, currency)}, so what lies between that and never (${amountText(never, currency)}) is refused`,
    );
  }
  return said;
}

function currenciesOf(rules: KindRules): string[] {
  const limits = [rules.never, ...(typeof rules.auto === "object" ? [rules.auto] : [])];
  for (const line of rules.approval) if (line.upTo !== undefined) limits.push(line.upTo);
  return [...new Set(limits.flatMap((limit) => Object.keys(limit)))].sort();
}

function roleNotices(policy: Policy): string[] {
  const needed = new Map<string, number>();
  for (const kind of OPERATION_KINDS) {
    for (const { role, approvers } of policy.kinds[kind].approval) {
      needed.set(role, Math.max(needed.get(role) ?? 0, approvers));
    }
  }
  for (const role of [...policy.approvals.escalateTo, ONCALL_ROLE]) needed.set(role, needed.get(role) ?? 1);
  const said: string[] = [];
  for (const [name, people] of needed) {
    const role = policy.roles[name];
    if (name === FILER_ROLE || role === undefined || role.usergroups.length > 0) continue;
    if (role.users.length === 0) said.push(`roles.${name}: nobody is in it`);
    else if (role.users.length < people) {
      said.push(
        `roles.${name}: ${people} people must approve, but only ${listText(role.users, "and")} ${role.users.length === 1 ? "is" : "are"} in it`,
      );
    }
  }
  return said;
}
