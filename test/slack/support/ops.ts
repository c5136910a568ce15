/** On-call's use cases where a test does not care about them: everything is refused with a sentence. */
import type { OpsUseCases } from "../../../src/ops/index.js";

export function fakeOps(): OpsUseCases {
  const refused = async () => ({
    outcome: "refused" as const,
    reason: "not_in_role",
    sentence: "This needs somebody in the role oncall, and you are not in it.",
  });
  return {
    parse: (text) =>
      text.trim() === "help"
        ? { ok: true, command: { verb: "help" } }
        : { ok: false, sentence: "I do not know that.", suggestion: "/ops help" },
    list: refused,
    show: refused,
    events: refused,
    runs: refused,
    approvals: refused,
    health: refused,
    openResolution: refused,
    resolve: refused,
    second: refused,
    reopen: refused,
    freeze: refused,
    thaw: refused,
    secondThaw: refused,
    home: refused,
    resolution: async () => null,
    freezeState: async (kind) => ({
      kind,
      frozen: false,
      by: null,
      reason: null,
      at: null,
      thawAskedBy: null,
    }),
  };
}
