/** What people fill in when they decide about an operation. */
import type { Operation } from "../../src/domain/operation.js";

export const form = (operation: Operation, verb: "confirm" | "reject" | "retry", userId = "U_ONC1") => ({
  ref: operation.id,
  verb,
  userId,
  reason: "Looked at it in the dashboard.",
  evidenceRef: "https://dashboard.example/re_1",
});
