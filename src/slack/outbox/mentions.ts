import type { Policy } from "../../domain/policy/policy.js";
import { mentionGroup, mentionUser } from "../text/safe.js";

/** More mentions than this are noise. */
const MENTIONS_MAX = 6;

/** Whom a role pings: its user groups, else its listed people. */
export function mentionsOf(policy: Policy, role: string): string {
  const members = policy.roles[role];
  if (members === undefined) return "";
  const groups = members.usergroups.map(mentionGroup);
  const people = groups.length > 0 ? [] : members.users.map(mentionUser);
  return [...groups, ...people].slice(0, MENTIONS_MAX).join(" ");
}
