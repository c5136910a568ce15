/** A run of the matrix as another process hands it over. */
import { z } from "zod";
import { ARM_NAMES } from "../arms/arm.js";
import { CONTRACT_NAMES } from "./contracts.js";
import { CRASH_POINTS } from "./crash-points.js";
import type { MatrixRun } from "./matrix.js";
import { MODE_NAMES } from "./modes.js";

const scenario = z.object({
  index: z.int(),
  mode: z.enum(MODE_NAMES),
  contract: z.enum(CONTRACT_NAMES),
  crash: z.enum(CRASH_POINTS),
  amountMinor: z.int(),
});

const score = z.object({
  duplicate: z.boolean(),
  lost: z.boolean(),
  falseSuccess: z.boolean(),
  unauthorised: z.boolean(),
  stuck: z.boolean(),
  undone: z.boolean(),
  quarantined: z.boolean(),
});

const arm = z.enum(ARM_NAMES);

export const matrixRunSchema: z.ZodType<MatrixRun> = z.object({
  seed: z.int(),
  episodes: z.array(
    z.object({
      arm,
      scenario,
      end: z.string(),
      score,
      broken: z.array(z.string()),
      noticed: z.boolean().nullable(),
    }),
  ),
  notFired: z.array(z.object({ arm, scenario })),
  auditProblems: z.array(z.string()),
});
