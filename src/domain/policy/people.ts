/**
 * Who may file, decide, resolve, freeze and thaw. Pure: the caller reads people and their groups from Slack at the moment
 * of the click and hands them in; what could not be read is refused with a sentence.
 */
import type { ApprovalNeed } from "./answer.js";
import { limitFor } from "./ladder.js";
import { FILER_ROLE, type Limit, ONCALL_ROLE, type Policy } from "./policy.js";
import { amountText } from "./text.js";

/** What Slack says about a user right now. Only `member` (active, full, of our workspace, a person) may act. */
export const STANDINGS = [
  "member",
  "guest",
  "bot",
  "deactivated",
  "invited",
  "stranger",
  "other_workspace",
  "unreadable",
] as const;
export type Standing = (typeof STANDINGS)[number];

/** Whether somebody is in a role; `unknown` when a user group could not be read. */
export type Membership = "yes" | "no" | "unknown";

export interface Person {
  /** One name for one person, whatever their ids. */
  readonly key: string;
  /** All Slack user ids of this person. */
  readonly ids: readonly string[];
  readonly standing: Standing;
  /** By role name, as `rolesOf` answers. */
  readonly roles: Readonly<Record<string, Membership>>;
}

export type May =
  | { readonly may: true }
  | { readonly may: false; readonly reason: Refusal; readonly sentence: string };

export type Refusal =
  | "standing"
  | "unreadable"
  | "not_in_role"
  | "over_limit"
  | "is_filer"
  | "is_approver"
  | "already_voted"
  | "same_person";

/**
 * Membership of one person in every role of the policy. `groupMembers` gives a user group's members, or "unreadable";
 * being listed by id settles it whatever the groups say.
 */
export function rolesOf(
  policy: Policy,
  ids: readonly string[],
  groupMembers: (usergroup: string) => readonly string[] | "unreadable",
): Readonly<Record<string, Membership>> {
  const answer = Object.entries(policy.roles).map(([name, role]): [string, Membership] => {
    if (role.users.some((user) => ids.includes(user))) return [name, "yes"];
    const groups = role.usergroups.map(groupMembers);
    if (groups.some((group) => group !== "unreadable" && group.some((user) => ids.includes(user))))
      return [name, "yes"];
    return [name, groups.includes("unreadable") ? "unknown" : "no"];
  });
  return Object.fromEntries(answer);
}

/** May file tickets, and confirm or change what they are bound to. */
export function mayFile(person: Person, policy: Policy): May {
  return standing(person) ?? (isOpenToAll(policy) ? OK : inRole(person, FILER_ROLE)) ?? OK;
}

export interface Decision {
  readonly need: Pick<ApprovalNeed, "role" | "isLastLine" | "ladderMinor" | "selfApproval">;
  /** 0n for effects that move no money. */
  readonly amountMinor: bigint;
  readonly currency: string;
  /** Slack user ids that count as filer. */
  readonly filers: readonly string[];
  /** `key`s of the people who voted on this approval already. */
  readonly voters: readonly string[];
}

/**
 * May approve or deny this operation now: active full member, not the filer (unless the policy allows it), in the line's
 * role, within that role's money limit, one vote. The limit binds what the order comes to with this amount, so that
 * splitting does not stretch it. A role whose limit does not name the currency may decide only on the last line.
 */
export function mayDecide(person: Person, decision: Decision, policy: Policy): May {
  const { need } = decision;
  return (
    standing(person) ??
    notFiler(person, decision, need.selfApproval) ??
    inRole(person, need.role) ??
    withinLimit(decision, policy.roles[need.role]?.limit) ??
    notVoted(person, decision) ??
    OK
  );
}

/** Whether enough of `people` could approve this, so that a gate nobody can satisfy is said when it is armed. */
export function canBeDecided(
  people: readonly Person[],
  decision: Decision,
  approvers: number,
  policy: Policy,
): { readonly possible: true } | { readonly possible: false; readonly sentence: string } {
  const able = new Set(
    people.filter((person) => mayDecide(person, decision, policy).may).map((person) => person.key),
  );
  if (able.size >= approvers) return { possible: true };
  const { role } = decision.need;
  const members = people.filter((person) => person.roles[role] === "yes" && person.standing === "member");
  const sentence =
    members.length === 0
      ? `Nobody is in the role ${role}, so nobody can approve this. Add somebody to the role in the policy file or its user group.`
      : `This needs ${approvers} ${approvers === 1 ? "person" : "people"} of the role ${role} who did not file it and whose limit covers it; there ${able.size === 1 ? "is" : "are"} ${able.size}. Add somebody to the role, or raise its limit in the policy file.`;
  return { possible: false, sentence };
}

export interface Resolution {
  readonly verb: "confirm" | "reject" | "retry";
  readonly filers: readonly string[];
  /** Slack user ids of those who approved the operation. */
  readonly approvedBy: readonly string[];
}

/** May resolve a quarantined operation: on-call, never the filer, nor an approver of it unless the policy allows that. */
export function mayResolve(person: Person, resolution: Omit<Resolution, "verb">, policy: Policy): May {
  return (
    mayOperate(person) ?? notFiler(person, resolution, false) ?? notApprover(person, resolution, policy) ?? OK
  );
}

/** May be the second of two who resolve: as the first, and somebody else. `first` is the first one's `key`. */
export function mayAgree(
  person: Person,
  first: string,
  resolution: Omit<Resolution, "verb">,
  policy: Policy,
): May {
  const same: May | undefined =
    person.key === first
      ? refuse("same_person", "A second person must agree; you asked for this yourself.")
      : undefined;
  return mayOperate(person) ?? same ?? mayResolve(person, resolution, policy);
}

/**
 * How many people a resolution takes. `noBound`: an attempt may still commit and the provider publishes no bound for it;
 * then rejecting and retrying take two. An amount above `secondPersonAbove` takes two for every verb; in a currency that
 * this limit does not name, only what could release or repeat money does.
 */
export function resolversNeeded(
  resolution: Pick<Resolution, "verb"> & {
    readonly amountMinor: bigint;
    readonly currency: string;
    readonly noBound: boolean;
  },
  policy: Policy,
): 1 | 2 {
  const { verb, amountMinor, currency, noBound } = resolution;
  if (noBound && verb !== "confirm") return 2;
  if (amountMinor === 0n) return 1;
  const limit = limitFor(policy.resolution.secondPersonAbove, currency);
  if (limit === undefined) return verb === "confirm" ? 1 : 2;
  return amountMinor > limit ? 2 : 1;
}

/** May use `/ops` and freeze. */
export function mayFreeze(person: Person): May {
  return mayOperate(person) ?? OK;
}

/** May thaw what `frozenBy` froze (a person's `key`; null: it tripped by itself) without another person's agreement. */
export function mayThaw(person: Person, frozenBy: string | null, policy: Policy): May {
  const same =
    policy.freeze.thawByAnotherPerson && person.key === frozenBy
      ? refuse("same_person", "You froze this, so somebody else must agree before it is thawed.")
      : undefined;
  return mayOperate(person) ?? same ?? OK;
}

const OK: May = { may: true };

function refuse(reason: Refusal, sentence: string): May {
  return { may: false, reason, sentence };
}

function mayOperate(person: Person): May | undefined {
  return standing(person) ?? inRole(person, ONCALL_ROLE);
}

function isOpenToAll(policy: Policy): boolean {
  const role = policy.roles[FILER_ROLE];
  return role === undefined || (role.users.length === 0 && role.usergroups.length === 0);
}

const STANDING_SENTENCES: Readonly<Record<Exclude<Standing, "member">, string>> = {
  guest: "Guests cannot do this; it needs a full member of this workspace.",
  bot: "Apps cannot do this; it needs a person.",
  deactivated: "This account is deactivated.",
  invited: "This account has not joined the workspace yet.",
  stranger: "This person is not known in this workspace.",
  other_workspace: "Members of another workspace cannot do this.",
  unreadable:
    "Slack could not be asked who you are just now, so nothing was changed. Please try again in a minute.",
};

function standing(person: Person): May | undefined {
  if (person.standing === "member") return undefined;
  const reason = person.standing === "unreadable" ? "unreadable" : "standing";
  return refuse(reason, STANDING_SENTENCES[person.standing]);
}

function inRole(person: Person, role: string): May | undefined {
  switch (Object.hasOwn(person.roles, role) ? person.roles[role] : "no") {
    case "yes":
      return undefined;
    case "unknown":
      return refuse(
        "unreadable",
        `Slack could not be asked just now whether you are in the role ${role}, so nothing was changed. Please try again in a minute.`,
      );
    default:
      return refuse("not_in_role", `This needs somebody in the role ${role}, and you are not in it.`);
  }
}

function notFiler(
  person: Person,
  { filers }: { readonly filers: readonly string[] },
  allowed: boolean,
): May | undefined {
  if (allowed || !filers.some((filer) => person.ids.includes(filer))) return undefined;
  return refuse("is_filer", "You asked for this yourself, so somebody else must decide.");
}

function notApprover(
  person: Person,
  { approvedBy }: { readonly approvedBy: readonly string[] },
  policy: Policy,
): May | undefined {
  if (policy.resolution.resolverMayBeApprover) return undefined;
  if (!approvedBy.some((approver) => person.ids.includes(approver))) return undefined;
  return refuse("is_approver", "You approved this operation, so somebody else must resolve it.");
}

function withinLimit(decision: Decision, limit: Limit | undefined): May | undefined {
  const { need, amountMinor, currency } = decision;
  if (limit === undefined || amountMinor === 0n) return undefined;
  const upTo = limitFor(limit, currency);
  if (upTo === undefined) {
    if (need.isLastLine) return undefined;
    return refuse("over_limit", `The limit of the role ${need.role} does not name ${currency}.`);
  }
  if (need.ladderMinor <= upTo) return undefined;
  const sentence = `${amountText(need.ladderMinor, currency)} is above the limit of the role ${need.role} (${amountText(upTo, currency)}).`;
  return refuse("over_limit", sentence);
}

function notVoted(person: Person, decision: Decision): May | undefined {
  if (!decision.voters.includes(person.key)) return undefined;
  return refuse("already_voted", "You have already decided on this.");
}
