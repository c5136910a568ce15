/** Passes control calls on to the payments sandbox, so that the page talks to one origin only. */
import { type IncomingMessage, request, type ServerResponse } from "node:http";
import { json } from "./reply.js";

/** `rest` is the path below `/sandbox/payments/`, with its query. */
export function passOn(req: IncomingMessage, res: ServerResponse, base: string, rest: string): void {
  const target = new URL(rest, base.endsWith("/") ? base : `${base}/`);
  const { host: _host, origin: _origin, connection: _connection, ...headers } = req.headers;
  const onward = request(target, { method: req.method ?? "GET", headers: { ...headers, host: target.host } });
  onward.on("error", () => {
    json(res, 502, {
      ok: false,
      error: "payments_unreachable",
      message: "the payments sandbox does not answer",
    });
  });
  onward.on("response", (answer) => {
    res.writeHead(answer.statusCode ?? 502, {
      "content-type": answer.headers["content-type"] ?? "application/json",
      "cache-control": "no-store",
    });
    answer.pipe(res);
  });
  res.on("close", () => onward.destroy());
  req.pipe(onward);
}
