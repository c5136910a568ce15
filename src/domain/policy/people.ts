/**
 * Who may file, decide, resolve, freeze and thaw. Pure: the caller reads people and their groups from Slack at the moment
 * of the click and hands them in; what could not be read is refused with a sentence.
 */
import type { Person, PersonReading } from "../ports/directory.js";
import type { ApprovalNeed } from "./answer.js";
import { limitFor } from "./ladder.js";
import { FILER_ROLE, type Limit, ONCALL_ROLE, type Policy } from "./policy.js";
import { amountText } from "./text.js";

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

export interface RoleMembership {
  /** Roles that the person has. */
  readonly roles: readonly string[];
  /** Roles whose user groups could not be read and that the person does not have by list. */
  readonly rolesUnreadable: readonly string[];
  /** For each role that the person has: the list or user group that gave it. */
  readonly roleEvidence: Readonly<Record<string, string>>;
}

/**
 * Membership of one person in every role of the policy. `groupMembers` gives a user group's members, or "unreadable";
 * being listed by id settles it whatever the groups say.
 */
export function rolesOf(
  policy: Policy,
  ids: readonly string[],
  groupMembers: (usergroup: string) => readonly string[] | "unreadable",
): RoleMembership {
  const roles: string[] = [];
  const rolesUnreadable: string[] = [];
  const roleEvidence: Record<string, string> = {};
  for (const [name, role] of Object.entries(policy.roles)) {
    const groups = role.usergroups.map((id) => ({ id, members: groupMembers(id) }));
    const listed = role.users.find((user) => ids.includes(user));
    const group = groups.find(
      ({ members }) => members !== "unreadable" && members.some((user) => ids.includes(user)),
    );
    if (listed !== undefined || group !== undefined) {
      roles.push(name);
      roleEvidence[name] = listed === undefined ? `user group ${group?.id ?? ""}` : `list, as ${listed}`;
    } else if (groups.some(({ members }) => members === "unreadable")) rolesUnreadable.push(name);
  }
  return { roles, rolesUnreadable, roleEvidence };
}

/** May file tickets, and confirm or change what they are bound to. */
export function mayFile(reading: PersonReading, policy: Policy): May {
  return judged(reading, (person) => (isOpenToAll(policy) ? undefined : inRole(person, FILER_ROLE)));
}

export interface Decision {
  readonly need: Pick<ApprovalNeed, "role" | "isLastLine" | "ladderMinor" | "selfApproval">;
  /** 0n for effects that move no money. */
  readonly amountMinor: bigint;
  readonly currency: string;
  /** Slack user ids that count as filer. */
  readonly filers: readonly string[];
  /** `personKey`s of the people who voted on this approval already. */
  readonly voters: readonly string[];
}

/**
 * May approve or deny this operation now: active full member, not the filer (unless the policy allows it), in the line's
 * role, within that role's money limit, one vote. The limit binds what the order comes to with this amount, so that
 * splitting does not stretch it. A role whose limit does not name the currency may decide only on the last line.
 */
export function mayDecide(reading: PersonReading, decision: Decision, policy: Policy): May {
  const { need } = decision;
  return judged(
    reading,
    (person) =>
      notFiler(person, decision, need.selfApproval) ??
      inRole(person, need.role) ??
      withinLimit(decision, policy.roles[need.role]?.limit) ??
      notVoted(person, decision),
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
    people
      .filter((person) => mayDecide({ ok: true, person }, decision, policy).may)
      .map((person) => person.personKey),
  ).size;
  if (able >= approvers) return { possible: true };
  const { role } = decision.need;
  const anybody = people.some((person) => person.roles.includes(role) && person.standing === "member");
  if (!anybody) {
    const sentence = `Nobody is in the role ${role}, so nobody can approve this. Add somebody to the role in the policy file or its user group.`;
    return { possible: false, sentence };
  }
  const needed = `${approvers} ${approvers === 1 ? "person" : "people"}`;
  const there = `there ${able === 1 ? "is" : "are"} ${able}`;
  const sentence = `This needs ${needed} of the role ${role} who did not file it and whose limit covers it; ${there}. Add somebody to the role, or raise its limit in the policy file.`;
  return { possible: false, sentence };
}

export interface Resolution {
  readonly verb: "confirm" | "reject" | "retry";
  readonly filers: readonly string[];
  /** Slack user ids of those who approved the operation. */
  readonly approvedBy: readonly string[];
}

type ResolutionPeople = Omit<Resolution, "verb">;

/** May resolve a quarantined operation: on-call, never the filer, nor an approver of it unless the policy allows that. */
export function mayResolve(reading: PersonReading, resolution: ResolutionPeople, policy: Policy): May {
  return judged(
    reading,
    (person) =>
      inRole(person, ONCALL_ROLE) ??
      notFiler(person, resolution, false) ??
      notApprover(person, resolution, policy),
  );
}

/** May be the second of two who resolve: as the first, and somebody else. `first` is the first one's `personKey`. */
export function mayAgree(
  reading: PersonReading,
  first: string,
  resolution: ResolutionPeople,
  policy: Policy,
): May {
  return judged(
    reading,
    (person) =>
      inRole(person, ONCALL_ROLE) ??
      (person.personKey === first
        ? refuse("same_person", "A second person must agree; you asked for this yourself.")
        : undefined) ??
      notFiler(person, resolution, false) ??
      notApprover(person, resolution, policy),
  );
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

/** May use `/ops`, look and freeze. */
export function mayFreeze(reading: PersonReading): May {
  return judged(reading, (person) => inRole(person, ONCALL_ROLE));
}

/** May thaw what `frozenBy` froze (a `personKey`; null: it tripped by itself) without another person's agreement. */
export function mayThaw(reading: PersonReading, frozenBy: string | null, policy: Policy): May {
  return judged(
    reading,
    (person) =>
      inRole(person, ONCALL_ROLE) ??
      (policy.freeze.thawByAnotherPerson && person.personKey === frozenBy
        ? refuse("same_person", "You froze this, so somebody else must agree before it is thawed.")
        : undefined),
  );
}

const OK: May = { may: true };

function refuse(reason: Refusal, sentence: string): May {
  return { may: false, reason, sentence };
}

/** First whether it is known who this is and whether they are an active full member, then the rules of the case. */
function judged(reading: PersonReading, rules: (person: Person) => May | undefined): May {
  if (!reading.ok) return refuse("unreadable", UNREADABLE);
  return standing(reading.person) ?? rules(reading.person) ?? OK;
}

function isOpenToAll(policy: Policy): boolean {
  const role = policy.roles[FILER_ROLE];
  return role === undefined || (role.users.length === 0 && role.usergroups.length === 0);
}

const UNREADABLE =
  "Slack could not be asked who you are just now, so nothing was changed. Please try again in a minute.";

const STANDING_SENTENCES: Readonly<Record<Exclude<Person["standing"], "member">, string>> = {
  guest: "Guests cannot do this; it needs a full member of this workspace.",
  bot: "Apps cannot do this; it needs a person.",
  deactivated: "This account is deactivated.",
  invited: "This account has not joined the workspace yet.",
  stranger: "This person is not known in this workspace.",
  external: "Members of another workspace cannot do this.",
};

function standing({ standing: is }: Person): May | undefined {
  return is === "member" ? undefined : refuse("standing", STANDING_SENTENCES[is]);
}

function inRole(person: Person, role: string): May | undefined {
  if (person.roles.includes(role)) return undefined;
  if (person.rolesUnreadable.includes(role)) {
    const sentence = `Slack could not be asked just now whether you are in the role ${role}, so nothing was changed. Please try again in a minute.`;
    return refuse("unreadable", sentence);
  }
  return refuse("not_in_role", `This needs somebody in the role ${role}, and you are not in it.`);
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
  if (!decision.voters.includes(person.personKey)) return undefined;
  return refuse("already_voted", "You have already decided on this.");
}
