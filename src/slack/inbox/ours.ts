/** Is a payload for our app and from our workspace? The signature or the socket proved who sent it; this proves for whom. */
import type { JsonObject } from "../../domain/json.js";
import type { SlackIdentity } from "../settings.js";
import type { Arrival } from "./arrival.js";

export type Belongs =
  | { readonly ok: true }
  | { readonly ok: false; readonly why: "foreign_app" | "foreign_team" | "no_app" | "no_team" };

/**
 * What Slack always says in a payload of this kind (facts §2, §5.1): one that does not say it is none of Slack's. Shortcuts were
 * documented without the app for years. What is answered without being stored may leave anything out: it can start nothing.
 */
const SAYS: Readonly<Record<Arrival["kind"], { readonly app: boolean; readonly team: boolean }>> = {
  message: { app: true, team: true },
  event: { app: true, team: true },
  action: { app: true, team: true },
  view: { app: true, team: true },
  command: { app: true, team: true },
  shortcut: { app: false, team: true },
  noise: { app: false, team: false },
  rate_limited: { app: false, team: false },
  closed: { app: false, team: false },
  options: { app: false, team: false },
  unreadable: { app: false, team: false },
};

/**
 * Slack Connect and org installs spell the team in different places (facts §5.1): an event belongs to us if any of them is ours. An
 * interaction carries the team of whoever clicked, who may be of another company: it is let in, and they are told why not. A team
 * that is null (an org install) is made up for by the person's own, or by the enterprise.
 */
export function belongsToUs(body: JsonObject, kind: Arrival["kind"], identity: SlackIdentity): Belongs {
  const appId = named(body["api_app_id"]);
  if (appId === null && SAYS[kind].app) return { ok: false, why: "no_app" };
  if (appId !== null && identity.appId !== null && appId !== identity.appId) {
    return { ok: false, why: "foreign_app" };
  }
  const isEvent = body["event"] !== undefined;
  const teams = isEvent ? teamsOfEvent(body) : teamsOfInteraction(body);
  if (teams.length === 0) return SAYS[kind].team ? { ok: false, why: "no_team" } : { ok: true };
  const mine =
    !isEvent ||
    teams.some(
      (team) =>
        team === identity.teamId || (identity.enterpriseId !== null && team === identity.enterpriseId),
    );
  return mine ? { ok: true } : { ok: false, why: "foreign_team" };
}

/** The person's own team, where the payload says it: with the user, flat in a command, else the one that they acted in. */
export function personTeam(body: JsonObject): string | null {
  const flat = body["command"] === undefined ? undefined : body["team_id"];
  return named(object(body["user"])?.["team_id"]) ?? named(flat) ?? named(object(body["team"])?.["id"]);
}

function teamsOfEvent(body: JsonObject): string[] {
  const authorizations = Array.isArray(body["authorizations"]) ? body["authorizations"] : [];
  return allNamed([
    body["team_id"],
    body["context_team_id"],
    body["enterprise_id"],
    ...authorizations.flatMap((item) => [object(item)?.["team_id"], object(item)?.["enterprise_id"]]),
  ]);
}

function teamsOfInteraction(body: JsonObject): string[] {
  return allNamed([
    body["team_id"],
    body["enterprise_id"],
    object(body["user"])?.["team_id"],
    object(body["team"])?.["id"],
    object(body["enterprise"])?.["id"],
    object(body["view"])?.["app_installed_team_id"],
  ]);
}

const allNamed = (values: readonly unknown[]): string[] =>
  values.map(named).filter((value): value is string => value !== null);

const named = (value: unknown): string | null => (typeof value === "string" && value !== "" ? value : null);

function object(value: unknown): JsonObject | null {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as JsonObject) : null;
}
