/**
 * How long a row of the outbox belongs to one writer, in milliseconds: what a writer that died delays is at most this.
 *
 * A lease is taken for looking (directory, channel, earlier post) and taken anew before each write, for longer than the write can last.
 */
import { WRITE_TIMEOUT_MS } from "../web.js";

const MARGIN_MS = 5_000;

export const LOOK_LEASE_MS = 20_000;
export const WRITE_LEASE_MS = WRITE_TIMEOUT_MS + MARGIN_MS;
