/** Is a payload for our app and from our workspace? The signature or the socket proved who sent it; this proves for whom. */
import type { JsonObject } from "../../domain/json.js";
import type { SlackIdentity } from "../settings.js";

export type Belongs =
  | { readonly ok: true }
  | { readonly ok: false; readonly why: "foreign_app" | "foreign_team" };

/**
 * Slack Connect and org installs spell the team in different places (facts §5.1): an event belongs to us if any of them is ours. An
 * interaction carries the team of whoever clicked, who may be of another company: it is let in, and they are told why not.
 */
export function belongsToUs(body: JsonObject, identity: SlackIdentity): Belongs {
  const appId = body["api_app_id"];
  if (identity.appId !== null && typeof appId === "string" && appId !== identity.appId) {
    return { ok: false, why: "foreign_app" };
  }
  const teams = body["event"] === undefined ? [] : teamsNamed(body);
  if (teams.length === 0) return { ok: true };
  const mine = teams.some(
    (team) => team === identity.teamId || (identity.enterpriseId !== null && team === identity.enterpriseId),
  );
  return mine ? { ok: true } : { ok: false, why: "foreign_team" };
}

/** The person's own team, where the payload says it: with the user, or flat in a command. */
export function personTeam(body: JsonObject): string | null {
  const user = object(body["user"]);
  const team = user?.["team_id"] ?? (body["command"] === undefined ? undefined : body["team_id"]);
  return typeof team === "string" && team !== "" ? team : null;
}

function teamsNamed(body: JsonObject): string[] {
  const authorizations = Array.isArray(body["authorizations"]) ? body["authorizations"] : [];
  const values = [
    body["team_id"],
    body["context_team_id"],
    body["enterprise_id"],
    ...authorizations.flatMap((item) => [object(item)?.["team_id"], object(item)?.["enterprise_id"]]),
  ];
  return values.filter((value): value is string => typeof value === "string" && value !== "");
}

function object(value: unknown): JsonObject | null {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as JsonObject) : null;
}
