/** People of the evaluation, as a directory would describe them: who files, who approves, who is on call. */
import type { Clock } from "../domain/ports/clock.js";
import type { Directory, Person } from "../domain/ports/directory.js";

export const APPROVERS = ["U_SUP1", "U_SUP2", "U_FIN1", "U_FIN2"] as const;

const ROLES: Readonly<Record<string, readonly string[]>> = {
  U_AGENT: [],
  U_AGENT2: [],
  U_SUP1: ["supervisor"],
  U_SUP2: ["supervisor"],
  U_FIN1: ["finance"],
  U_FIN2: ["finance"],
  U_ONC1: ["oncall"],
  U_ONC2: ["oncall"],
};

export function evaluationPeople(clock: Clock): Directory {
  const describe = (userId: string, roles: readonly string[]): Person => ({
    userId,
    ids: [userId],
    personKey: `person:${userId}`,
    teamId: "T_EVALUATION",
    displayName: userId,
    standing: "member",
    roles,
    rolesUnreadable: [],
    roleEvidence: Object.fromEntries(roles.map((role) => [role, "evaluation"])),
    fetchedAt: clock.now(),
  });
  return {
    person: async (userId) => {
      const roles = ROLES[userId];
      return roles === undefined
        ? { ok: false, reason: `nobody is called ${userId}` }
        : { ok: true, person: describe(userId, roles) };
    },
    members: async (role) => ({
      ok: true,
      userIds: Object.keys(ROLES).filter((userId) => ROLES[userId]?.includes(role) === true),
    }),
  };
}
