import type { Tx } from "../db/connect.js";
import type { Notices } from "../domain/ports/notices.js";

/** Nobody reads along. */
export const silent: Notices<Tx> = {
  touch: async () => {},
  follow: async () => {},
  repost: async () => {},
  switchTurned: async () => {},
  thread: async () => {},
  ops: async () => {},
  approvers: async () => {},
};
