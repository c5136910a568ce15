/**
 * What a job may be: a wake-up that names one row. Jobs carry no facts, so a lost, repeated, late or foreign job changes
 * nothing: whoever gets it reads the row, and finds nothing to do if someone was faster.
 */
import { z } from "zod";
import { WAKE_KINDS, type WakeKind } from "../domain/ports/wake.js";

/**
 * Queues by what their work waits for: a slow model never stands before money, Slack's pace before neither, and nothing before an
 * acknowledged click.
 */
export const LANES = {
  runs: ["run"],
  effects: ["operation", "webhook"],
  arrivals: ["inbox", "approval"],
  posts: ["outbox", "card"],
} as const satisfies Record<string, readonly WakeKind[]>;
export type Lane = keyof typeof LANES;
export const LANE_NAMES = Object.keys(LANES) as Lane[];

const LANE_OF: Readonly<Record<WakeKind, Lane>> = {
  run: "runs",
  operation: "effects",
  webhook: "effects",
  inbox: "arrivals",
  approval: "arrivals",
  outbox: "posts",
  card: "posts",
};

/** The queue on which a kind travels. */
export const laneOf = (kind: WakeKind): Lane => LANE_OF[kind];

/** A job is tried once and kept nowhere: what must be tried again is due again in its row, and the sweeper finds it. */
export const JOB_OPTIONS = { attempts: 1, removeOnComplete: true, removeOnFail: true } as const;

const jobSchema = z.object({ kind: z.enum(WAKE_KINDS), id: z.string().min(1).max(200) });
export type WakeJob = z.infer<typeof jobSchema>;

/** Reads a job; null for anything that is not one of ours. */
export function readJob(name: string, data: unknown): WakeJob | null {
  const id = typeof data === "object" && data !== null && "id" in data ? data.id : undefined;
  const parsed = jobSchema.safeParse({ kind: name, id });
  return parsed.success ? parsed.data : null;
}
