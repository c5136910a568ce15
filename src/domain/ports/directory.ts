/** People as the identity provider (Slack) knows them. Unreadable is an answer of its own: whoever decides fails closed. */
export interface Person {
  userId: string;
  /** All user ids of this person that are known, `userId` among them. */
  ids: readonly string[];
  /** One value for one human, whatever ids they have. */
  personKey: string;
  teamId: string;
  displayName: string;
  standing: "member" | "guest" | "deactivated" | "bot" | "invited" | "stranger" | "external";
  /** Roles of the policy that this person has now, by list or user group. */
  roles: readonly string[];
  /** Roles whose groups could not be read, so that it is not known whether this person has them. Never among `roles`. */
  rolesUnreadable: readonly string[];
  /** Which list or group gave each role, and how old that reading is. */
  roleEvidence: { readonly [role: string]: string };
  fetchedAt: Date;
}

export type PersonReading = { ok: true; person: Person } | { ok: false; reason: string };

export interface Directory {
  /** Reads a person; what is served is at most `maxAgeMs` old. */
  person(userId: string, options: { maxAgeMs: number }): Promise<PersonReading>;
  /** User ids that hold the role now, or the reason why that cannot be known. */
  members(
    role: string,
    options: { maxAgeMs: number },
  ): Promise<{ ok: true; userIds: readonly string[] } | { ok: false; reason: string }>;
}
