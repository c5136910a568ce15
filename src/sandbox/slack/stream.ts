/** Live updates for one person's page, as server-sent events. */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { SandboxContext } from "./context.js";
import type { SlackSandboxControl, StreamEvent } from "./control-types.js";
import { eventsFor } from "./looking.js";
import { json } from "./reply.js";
import { findPerson } from "./workspace.js";

/** A comment frame this often keeps proxies and half-open sockets honest. */
const KEEP_ALIVE_MS = 15_000;

function frame(event: StreamEvent, seq: number): string {
  return `id: ${seq}\nevent: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`;
}

/** `?as=USER[&after=SEQ]`, or the Last-Event-ID of a reconnecting reader. */
export function openStream(
  ctx: SandboxContext,
  control: SlackSandboxControl,
  req: IncomingMessage,
  res: ServerResponse,
  url: URL,
): void {
  const as = url.searchParams.get("as") ?? "";
  const person = findPerson(ctx, as);
  if (!person) {
    json(res, 400, { ok: false, error: "invalid_request", message: `there is no person ${as}` });
    return;
  }
  res.writeHead(200, {
    "content-type": "text/event-stream; charset=utf-8",
    "cache-control": "no-store",
    connection: "keep-alive",
    "x-accel-buffering": "no",
  });
  res.write("retry: 1000\n\n");
  const last = req.headers["last-event-id"];
  const after = Number((typeof last === "string" ? last : url.searchParams.get("after")) ?? ctx.hub.seq);
  const missed = ctx.hub.since(after);
  if (missed === null) res.write(frame({ type: "reset" }, ctx.hub.seq));
  for (const { seq, change } of missed ?? []) {
    const connected = (): number => control.connection().connected;
    for (const event of eventsFor(ctx, person, change, connected)) res.write(frame(event, seq));
  }
  const end = control.subscribe(as, (event, seq) => res.write(frame(event, seq)));
  const quiet = ctx.clock.every(KEEP_ALIVE_MS, () => res.write(": still here\n\n"));
  res.on("close", () => {
    quiet();
    end();
  });
}
