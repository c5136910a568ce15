/** A JSON answer; nothing when the connection is gone or answered already. */
import type { ServerResponse } from "node:http";

export function json(res: ServerResponse, status: number, body: unknown): void {
  if (res.destroyed || res.headersSent) return;
  res.writeHead(status, { "content-type": "application/json; charset=utf-8", "cache-control": "no-store" });
  res.end(JSON.stringify(body ?? { ok: true }));
}
