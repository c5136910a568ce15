/** No planner is configured: every run ends `failed` and says exactly what to set. */
import type { Planner } from "../planner.js";

export const noPlanner = (whatToSet: string): Planner => ({
  name: "none",
  model: null,
  plan: () =>
    Promise.resolve({
      ok: false,
      failure: { next: "give_up", code: "no_planner", detail: whatToSet },
    }),
});
