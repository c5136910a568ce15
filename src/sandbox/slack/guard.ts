/**
 * Keeps other websites out. The sandbox listens on this machine only, but any page in the person's browser can send
 * requests here.
 *
 * 1. `Host` must be a name of this machine with our port: otherwise a rebound DNS name would reach us.
 * 2. An `Origin`, where there is one, must be our own page. Programs send none.
 * 3. `Sec-Fetch-Site`, where there is one on a control call, must not be cross-site: covers reads that carry no Origin.
 * 4. Control calls that change something carry JSON: a foreign page cannot send that without asking first, and is refused.
 */
import type { IncomingMessage } from "node:http";

const NAMES = ["127.0.0.1", "localhost", "[::1]"];

/** Null when the request may pass, else why not. */
export function refusal(req: IncomingMessage, port: number, isControl: boolean): string | null {
  const hosts = NAMES.map((name) => `${name}:${port}`);
  const host = req.headers.host ?? "";
  if (!hosts.includes(host)) return `host ${JSON.stringify(host)} is not this machine`;
  const origin = req.headers.origin;
  if (origin !== undefined && !hosts.some((name) => origin === `http://${name}`)) {
    return `origin ${JSON.stringify(origin)} is not this page`;
  }
  if (!isControl) return null;
  const site = req.headers["sec-fetch-site"];
  if (site === "cross-site" || site === "same-site") return "called from another site";
  if (req.method === "POST" && !(req.headers["content-type"] ?? "").startsWith("application/json")) {
    return "a control call needs Content-Type: application/json";
  }
  return null;
}

/** Headers of the page: no foreign script, no framing, nothing to leak. */
export const PAGE_HEADERS = {
  "content-security-policy":
    "default-src 'self'; img-src 'self' data:; style-src 'self' 'unsafe-inline'; connect-src 'self'; object-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  "x-content-type-options": "nosniff",
  "referrer-policy": "no-referrer",
  "cross-origin-resource-policy": "same-origin",
  "cross-origin-opener-policy": "same-origin",
} as const;
