/** The real clock and the real source of ids: the only place of the product that reads the time or rolls dice. */
import { randomInt } from "node:crypto";
import { v7 } from "uuid";
import type { Clock, Ids } from "../domain/ports/clock.js";

const RANDOM_STEPS = 2 ** 47;

/** Wall clock of this host. Never used for leases: those are judged by the database's clock. */
export const systemClock: Clock = { now: () => new Date() };

/** Time-ordered ids and uniform jitter from the system's secure random source. */
export const systemIds: Ids = {
  next: <P extends string>(prefix: P): `${P}${string}` => `${prefix}${v7().replaceAll("-", "")}`,
  random: () => randomInt(RANDOM_STEPS) / RANDOM_STEPS,
};
