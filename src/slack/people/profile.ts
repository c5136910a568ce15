/** What users.info says about a person, reduced to what decides their standing. */
import type { UsersInfoResponse } from "@slack/web-api";
import type { Person } from "../../domain/ports/directory.js";
import type { SlackIdentity } from "../settings.js";

export interface Profile {
  readonly id: string;
  readonly teamId: string;
  readonly enterpriseId: string | null;
  readonly enterpriseUserId: string | null;
  /** Workspaces of the enterprise that the person belongs to. */
  readonly enterpriseTeams: readonly string[];
  readonly displayName: string;
  readonly deleted: boolean;
  readonly bot: boolean;
  readonly guest: boolean;
  readonly invited: boolean;
  readonly stranger: boolean;
}

type User = NonNullable<UsersInfoResponse["user"]>;

/** Throws when Slack's answer does not say who this is or where they belong. */
export function profileOf(user: User | undefined, askedFor: string): Profile {
  if (user === undefined) throw new Error("users.info names no user");
  const teamId = user.team_id ?? user.profile?.team;
  if (teamId === undefined) throw new Error("users.info names no workspace");
  const shown = [user.profile?.display_name, user.real_name, user.profile?.real_name, user.name];
  const more = user as User & { is_workflow_bot?: boolean };
  return {
    id: user.id ?? askedFor,
    teamId,
    enterpriseId: user.enterprise_user?.enterprise_id ?? null,
    enterpriseUserId: user.enterprise_user?.id ?? null,
    enterpriseTeams: user.enterprise_user?.teams ?? [],
    displayName: shown.find((name) => name !== undefined && name.trim() !== "") ?? askedFor,
    deleted: user.deleted === true,
    // Slackbot says of itself that it is no bot.
    bot: user.is_bot === true || more.is_workflow_bot === true || user.id === "USLACKBOT",
    guest: user.is_restricted === true || user.is_ultra_restricted === true,
    invited: user.is_invited_user === true,
    stranger: user.is_stranger === true,
  };
}

/**
 * Where somebody stands with our workspace; the first that applies. `is_stranger: false` says nothing: a member of another
 * company in a shared channel has it too, so workspaces are compared (facts §5.3).
 */
export function standingOf(
  person: Profile,
  us: Pick<SlackIdentity, "teamId" | "enterpriseId" | "isEnterpriseInstall">,
): Person["standing"] {
  if (person.deleted) return "deactivated";
  if (person.bot) return "bot";
  if (person.stranger) return "stranger";
  if (!belongs(person, us)) return "external";
  if (person.invited) return "invited";
  if (person.guest) return "guest";
  return "member";
}

function belongs(
  person: Profile,
  us: Pick<SlackIdentity, "teamId" | "enterpriseId" | "isEnterpriseInstall">,
): boolean {
  if (person.teamId === us.teamId || person.enterpriseTeams.includes(us.teamId)) return true;
  return us.isEnterpriseInstall && us.enterpriseId !== null && person.enterpriseId === us.enterpriseId;
}
