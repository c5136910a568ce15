/**
 * What was sent and is proven not carried out each time: it is PREPARED again, and tried again by itself. Pure; times in UTC.
 *
 * It is not cooling off, and nobody may read that it was not sent: it was, and nothing came of it.
 */
import type { OperationStatus } from "./operation.js";
import { capital, uncapital } from "./text/capital.js";
import { utcTime } from "./text/utc-time.js";

export interface Tried {
  readonly status: OperationStatus;
  /** How often it was begun. */
  readonly attempts: number;
  /** Before this it is not tried again. */
  readonly notBefore: Date | null;
}

/** PREPARED means that no attempt may have committed; with attempts, all of them came to nothing. */
export const isTriedAgain = ({ status, attempts }: Pick<Tried, "status" | "attempts">): boolean =>
  status === "PREPARED" && attempts > 0;

/** Codes of an attempt's answer by which the provider asks for fewer requests (HTTP 429). */
export const SLOW_DOWN: readonly string[] = ["rate_limit", "lock_timeout"];

/** "tried once", "tried 3 times" */
export const timesTried = (attempts: number): string =>
  attempts === 1 ? "tried once" : `tried ${attempts} times`;

/** Two sentences: "The provider asks us to slow down: tried 3 times, certainly nothing carried out. Tried again at …." */
export const triedSentences = (tried: Tried, slowedDown: boolean): string =>
  `${triedWords(tried, slowedDown)}. ${capital(next(tried))}.`;

/** The same as a part of a line: "the provider asks us to slow down: tried 3 times, certainly nothing carried out, tried again at …" */
export const triedPart = (tried: Tried, slowedDown: boolean, time: (at: Date) => string = utcTime): string =>
  `${uncapital(triedWords(tried, slowedDown))}, ${next(tried, time)}`;

const triedWords = ({ attempts }: Pick<Tried, "attempts">, slowedDown: boolean): string =>
  `${slowedDown ? "The provider asks us to slow down" : "Not taken by the provider yet"}: ${timesTried(attempts)}, certainly nothing carried out`;

/** Of what ended without an effect: "Nothing was sent.", or how often it was tried. */
export const nothingDone = (attempts: number): string =>
  attempts === 0 ? "Nothing was sent." : `${capital(timesTried(attempts))}; nothing was carried out.`;

const next = ({ notBefore }: Tried, time: (at: Date) => string = utcTime): string =>
  notBefore === null ? "tried again as soon as a worker takes it" : `tried again at ${time(notBefore)}`;
