/**
 * The control API over HTTP, below `/sandbox/`. Reading is GET, everything else POST with a JSON body; the guard before
 * this has checked Host, Origin and content type.
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { z } from "zod";
import type { SandboxContext } from "./context.js";
import * as schema from "./control-schema.js";
import type { ProductReadPort, SlackSandboxControl } from "./control-types.js";
import { json } from "./reply.js";
import { openStream } from "./stream.js";
import { readBody } from "./web-api/parse.js";

type Post = (body: unknown) => Promise<unknown>;
type Get = (query: URLSearchParams) => unknown | Promise<unknown>;

/** A POST route: checks the body, answers what `run` gives, or `{ ok: true }`. */
function post<T>(shape: z.ZodType<T>, run: (body: T) => unknown): Post {
  return async (body) => (await run(shape.parse(body))) ?? { ok: true };
}

function postRoutes(control: SlackSandboxControl): Record<string, Post> {
  return {
    "act/post": post(schema.postRequest, control.post),
    "act/edit": post(schema.editRequest, control.edit),
    "act/delete": post(schema.messageRef, control.deleteMessage),
    "act/react": post(schema.reactRequest, control.react),
    "act/click": post(schema.clickRequest, control.click),
    "act/submit-view": post(schema.submitViewRequest, control.submitView),
    "act/close-view": post(schema.closeViewRequest, control.closeView),
    "act/command": post(schema.commandRequest, control.command),
    "act/shortcut": post(schema.shortcutRequest, control.shortcut),
    "act/open-home": post(schema.openHomeRequest, control.openHome),
    "act/open-dm": post(schema.asRequest, ({ as }) => control.openDm(as)),
    "act/read": post(schema.markReadRequest, control.markRead),

    "admin/person": post(schema.personChange, control.changePerson),
    "admin/add-person": post(schema.newPerson, control.addPerson),
    "admin/user-group": post(schema.userGroupChange, ({ id, ...change }) => control.setUserGroup(id, change)),
    "admin/share-channel": post(schema.channelSwitch, (b) => control.shareChannel(b.channel, b.on)),
    "admin/archive-channel": post(schema.channelSwitch, (b) => control.archiveChannel(b.channel, b.on)),
    "admin/member": post(schema.memberSwitch, (b) => control.setMember(b.channel, b.user, b.on)),
    "admin/remove-message": post(schema.messageSpot, (b) => control.removeMessage(b.channel, b.ts)),
    "admin/reset": post(schema.nothing, () => control.reset()),

    "faults/api": post(schema.apiFault, (f) => ({ ok: true, id: control.addApiFault(f) })),
    "faults/delivery": post(schema.deliveryFault, (f) => ({ ok: true, id: control.addDeliveryFault(f) })),
    "faults/clear": post(schema.faultId, ({ id }) => control.clearFaults(id)),
    "faults/socket": post(schema.socketFault, control.socket),
    "inject/event": post(schema.anyEvent, control.injectEvent),
    "inject/interaction": post(schema.anyEvent, control.injectInteraction),
    "inject/trigger": post(schema.asRequest, async ({ as }) => ({ triggerId: control.issueTrigger(as) })),
    "inject/app-rate-limited": post(schema.nothing, control.injectAppRateLimited),
    clock: post(schema.clockChange, control.clock),
    settings: post(schema.settingsChange, control.settings),
    "verify-request-url": post(schema.urlRequest, async ({ url }) => ({
      ok: await control.verifyRequestUrl(url),
    })),
    idle: post(schema.nothing, control.idle),
  };
}

function need(query: URLSearchParams, name: string): string {
  const value = query.get(name);
  if (value === null || value === "") throw new RangeError(`the query needs ${name}`);
  return value;
}

function getRoutes(control: SlackSandboxControl, port: ProductReadPort | undefined): Record<string, Get> {
  return {
    state: (q) => control.state(need(q, "as")),
    messages: (q) => {
      const threadTs = q.get("threadTs");
      return {
        messages: control.messages(need(q, "as"), need(q, "channel"), {
          ...(threadTs === null ? {} : { threadTs }),
          ephemeral: q.get("ephemeral") === "1",
        }),
      };
    },
    modals: (q) => ({ modals: control.modals(need(q, "as")) }),
    home: (q) => ({ home: control.home(need(q, "as")) }),
    journal: (q) => ({
      entries: control.journal(Number(q.get("after") ?? 0), Number(q.get("limit") ?? 500)),
    }),
    faults: () => ({ faults: control.faults() }),
    clock: () => control.clock(),
    settings: () => control.settings(),
    connection: () => control.connection(),
    ...(port ? { "inspector/operations": async () => ({ operations: await port.operations() }) } : {}),
  };
}

export interface ControlHttp {
  /** `path` is what follows `/sandbox/`. */
  handle(req: IncomingMessage, res: ServerResponse, path: string, url: URL): Promise<void>;
}

export function createControlHttp(
  ctx: SandboxContext,
  control: SlackSandboxControl,
  port: ProductReadPort | undefined,
): ControlHttp {
  const posts = postRoutes(control);
  const gets = getRoutes(control, port);
  return {
    async handle(req, res, path, url) {
      if (req.method === "GET" && path === "stream") {
        openStream(ctx, control, req, res, url);
        return;
      }
      try {
        if (req.method === "GET" && Object.hasOwn(gets, path)) {
          json(res, 200, await gets[path]?.(url.searchParams));
        } else if (req.method === "POST" && Object.hasOwn(posts, path)) {
          json(res, 200, await posts[path]?.(parse(await readBody(req))));
        } else {
          json(res, 404, { ok: false, error: "unknown_route", message: `no ${req.method} /sandbox/${path}` });
        }
      } catch (error) {
        const message = problem(error);
        if (message === null) throw error;
        json(res, 400, { ok: false, error: "invalid_request", message });
      }
    },
  };
}

function parse(body: string): unknown {
  return body.trim() === "" ? {} : JSON.parse(body);
}

/** A sentence for what the caller did wrong; null for what is our own fault. */
function problem(error: unknown): string | null {
  if (error instanceof RangeError) return error.message;
  if (error instanceof SyntaxError) return "the body is not JSON";
  if (error instanceof Error && error.name === "$ZodError") return error.message;
  if (error instanceof Error && error.name === "ZodError") return error.message;
  return null;
}
