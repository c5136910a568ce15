/** What a request ends in, before it becomes bytes. */
import type { WireObject } from "./objects.js";
import { type WireError, wireErrors } from "./wire-error.js";

export interface Reply {
  status: number;
  body: string;
  headers: Record<string, string>;
}

/** What the caller gets to see on the socket. */
export type Delivery =
  | { kind: "reply"; reply: Reply }
  | { kind: "drop"; close: "reset" | "close" }
  /** Headers and half the body; then silence, or the end of the connection. */
  | { kind: "half"; reply: Reply; ending: "silence" | "reset" | "close" }
  | { kind: "silence" };

export const replyWith = (reply: Reply): Delivery => ({ kind: "reply", reply });

export const okReply = (body: WireObject): Reply => ({
  status: 200,
  body: JSON.stringify(body, null, 2),
  headers: {},
});

export const errorReply = (error: WireError): Reply => ({
  status: error.status,
  body: JSON.stringify(error.body, null, 2),
  headers: {},
});

export const serverErrorReply = (): Reply => errorReply(wireErrors.serverError());

/** An answer that is no JSON, as proxies send it. */
export const garbageReply = (status: number): Reply => ({
  status,
  body: "<html><body><h1>Bad Gateway</h1></body></html>",
  headers: { "content-type": "text/html" },
});
