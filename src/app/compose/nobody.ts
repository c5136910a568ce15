/** A directory for commands without Slack: nobody can be read, so nobody decides. */
import type { Directory } from "../../domain/ports/directory.js";

export const nobody: Directory = {
  person: async () => ({ ok: false, reason: "this command does not know Slack" }),
  members: async () => ({ ok: false, reason: "this command does not know Slack" }),
};
