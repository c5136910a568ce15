/** The control API in process: acts as people, reads what they see, administers, switches faults. */
import { actor, Refusal } from "./acting.js";
import {
  addPerson,
  archiveChannel,
  changePerson,
  installationChanged,
  removeMessage,
  setMember,
  setUserGroup,
  shareChannel,
} from "./administering.js";
import { isObject } from "./blocks/check.js";
import type { SandboxContext } from "./context.js";
import type {
  ActResult,
  ClockChange,
  Json,
  JsonObject,
  SettingsChange,
  SlackSandboxControl,
} from "./control-types.js";
import type { Dispatcher } from "./delivery/dispatcher.js";
import type { HttpTransport } from "./delivery/http-transport.js";
import type { SocketTransport } from "./delivery/socket-transport.js";
import {
  personClicks,
  personCloses,
  personCommands,
  personOpensHome,
  personSubmits,
  personUsesShortcut,
} from "./interacting.js";
import {
  clockView,
  connectionView,
  eventsFor,
  homeFor,
  messagesFor,
  modalsFor,
  workspaceView,
} from "./looking.js";
import type { Person } from "./model.js";
import { personDeletes, personEdits, personPosts, personReacts, personReads } from "./person-messages.js";
import { issueTrigger } from "./triggers.js";
import { findView } from "./views.js";
import { directMessage, findPerson } from "./workspace.js";

export interface ControlParts {
  http: HttpTransport;
  socket: SocketTransport;
  dispatcher: Dispatcher;
  reset: () => Promise<void>;
}

function looker(ctx: SandboxContext, id: string): Person {
  const person = findPerson(ctx, id);
  if (!person) throw new RangeError(`there is no person ${id}`);
  return person;
}

export function createControl(ctx: SandboxContext, parts: ControlParts): SlackSandboxControl {
  const watching = new Set<() => void>();
  const connected = (): number =>
    ctx.settings.mode === "socket" ? parts.socket.connected() : parts.http.connected();

  /** Runs one act of a person; refusals become answers, everything is in the journal. */
  async function act<T extends object>(
    what: string,
    as: string,
    request: object,
    run: () => T | Promise<T> | void | Promise<void>,
  ): Promise<ActResult<T>> {
    const result = await ctx.work.run(async (): Promise<ActResult<T>> => {
      try {
        const value = await run();
        return { ok: true, ...(value ?? ({} as T)) };
      } catch (error) {
        if (!(error instanceof Refusal)) throw error;
        return { ok: false, error: error.code, message: error.message };
      }
    });
    ctx.journal.add({ kind: "act", as, what, request: request as Json, result: result as Json });
    return result;
  }

  async function admin(what: string, request: object, run: () => void): Promise<void> {
    run();
    ctx.journal.add({ kind: "admin", what, request: request as Json });
  }

  return {
    state: (as) => workspaceView(ctx, looker(ctx, as), connected()),
    messages: (as, channel, options) => messagesFor(ctx, looker(ctx, as), channel, options),
    modals: (as) => modalsFor(ctx, as),
    home: (as) => homeFor(ctx, as),

    post: (r) => act("post", r.as, r, () => personPosts(ctx, r)),
    edit: (r) => act("edit", r.as, r, () => personEdits(ctx, r)),
    deleteMessage: (r) => act("delete", r.as, r, () => personDeletes(ctx, r)),
    react: (r) => act("react", r.as, r, () => personReacts(ctx, r)),
    click: (r) => act("click", r.as, r, () => personClicks(ctx, r)),
    submitView: async (r) => {
      const result = await act("submit-view", r.as, r, () => personSubmits(ctx, r));
      const errors = findView(ctx, r.viewId)?.errors;
      return result.ok || !errors ? result : { ...result, errors };
    },
    closeView: (r) => act("close-view", r.as, r, () => personCloses(ctx, r)),
    command: (r) => act("command", r.as, r, () => personCommands(ctx, r)),
    shortcut: (r) => act("shortcut", r.as, r, () => personUsesShortcut(ctx, r)),
    openHome: (r) => act("open-home", r.as, r, () => personOpensHome(ctx, r)),
    openDm: (as) => act("open-dm", as, { as }, () => ({ channel: directMessage(ctx, actor(ctx, as).id).id })),
    markRead: (r) => act("read", r.as, r, () => personReads(ctx, r)),

    changePerson: (change) => admin("person", change, () => changePerson(ctx, change)),
    addPerson: (person) => admin("add-person", person, () => addPerson(ctx, person)),
    setUserGroup: (id, change) => admin("user-group", { id, ...change }, () => setUserGroup(ctx, id, change)),
    shareChannel: (channel, on) =>
      admin("share-channel", { channel, on }, () => shareChannel(ctx, channel, on)),
    archiveChannel: (channel, on) =>
      admin("archive-channel", { channel, on }, () => archiveChannel(ctx, channel, on)),
    setMember: (channel, user, on) =>
      admin("member", { channel, user, on }, () => setMember(ctx, channel, user, on)),
    removeMessage: (channel, ts) =>
      admin("remove-message", { channel, ts }, () => removeMessage(ctx, channel, ts)),

    addApiFault: (fault) => ctx.faults.addApi(fault),
    addDeliveryFault: (fault) => ctx.faults.addDelivery(fault),
    clearFaults: (id) => ctx.faults.clear(id),
    faults: () => ctx.faults.list(),
    socket: (fault) => parts.socket.fault(fault),
    injectEvent: (event) => injectEvent(ctx, parts, event),
    injectInteraction: (payload) => injectInteraction(ctx, parts, payload),
    issueTrigger: (as) => issueTrigger(ctx, as, null),
    injectAppRateLimited: async () => {
      await ctx.work.run(() => parts.dispatcher.body(appRateLimited(ctx)));
    },

    clock: (change) => {
      if (change) changeClock(ctx, change);
      return clockView(ctx);
    },
    settings: (change) => {
      if (change) changeSettings(ctx, change);
      return { ...ctx.settings };
    },
    connection: () => connectionView(ctx, connected()),
    verifyRequestUrl: (url) => {
      if (url !== undefined) ctx.requestUrl = url;
      return parts.http.verify();
    },

    journal: (after, limit) => ctx.journal.read(after, limit),
    subscribe: (as, listener) => {
      const end = ctx.hub.listen((change, seq) => {
        const person = findPerson(ctx, as);
        if (!person) return;
        for (const event of eventsFor(ctx, person, change, connected)) listener(event, seq);
      });
      watching.add(end);
      return () => {
        watching.delete(end);
        end();
      };
    },
    watchers: () => watching.size,
    idle: () => ctx.work.idle(),
    reset: parts.reset,
  };
}

async function injectEvent(
  ctx: SandboxContext,
  parts: ControlParts,
  event: JsonObject,
): Promise<{ eventId: string; acked: boolean }> {
  const whole = event["type"] === "event_callback";
  const eventId = whole && typeof event["event_id"] === "string" ? event["event_id"] : ctx.ids.id("Ev");
  const body: JsonObject = whole
    ? { event_id: eventId, ...event }
    : {
        token: ctx.tokens.verification,
        team_id: ctx.team.id,
        api_app_id: ctx.app.id,
        type: "event_callback",
        event_id: eventId,
        event_time: Math.floor(ctx.clock.now() / 1000),
        authorizations: [],
        is_ext_shared_channel: false,
        event,
      };
  const acked = await ctx.work.run(() => parts.dispatcher.body(body));
  return { eventId, acked };
}

function appRateLimited(ctx: SandboxContext): JsonObject {
  return {
    token: ctx.tokens.verification,
    type: "app_rate_limited",
    team_id: ctx.team.id,
    minute_rate_limited: Math.floor(ctx.clock.now() / 1000),
    api_app_id: ctx.app.id,
  };
}

function changeClock(ctx: SandboxContext, change: ClockChange): void {
  if (change.scale !== undefined) {
    if (!(change.scale > 0)) throw new RangeError("scale must be positive");
    ctx.clock.setScale(change.scale);
  }
  if (change.signatureSkewMs !== undefined) ctx.clock.signatureSkewMs = change.signatureSkewMs;
  if (change.advanceMs !== undefined) {
    if (change.advanceMs < 0) throw new RangeError("the clock only goes forward");
    ctx.clock.advance(change.advanceMs);
  }
}

function changeSettings(ctx: SandboxContext, change: SettingsChange): void {
  const { requestUrl, ...settings } = change;
  if (requestUrl !== undefined) ctx.requestUrl = requestUrl;
  const before = ctx.settings.installation;
  ctx.settings = { ...ctx.settings, ...settings };
  if (ctx.settings.installation !== before) installationChanged(ctx, ctx.settings.installation);
  ctx.hub.emit({ type: "connection" });
}

async function injectInteraction(
  ctx: SandboxContext,
  parts: ControlParts,
  payload: JsonObject,
): Promise<{ acked: boolean; response: Json }> {
  const { user, type } = payload;
  const by = isObject(user) && typeof user["id"] === "string" ? user["id"] : "";
  const body: JsonObject = {
    api_app_id: ctx.app.id,
    team: { id: ctx.team.id, domain: ctx.team.domain },
    trigger_id: issueTrigger(ctx, by, null),
    ...payload,
  };
  const result = await ctx.work.run(() => parts.dispatcher.interaction("interactive", String(type), body));
  return result.acked
    ? { acked: true, response: (result.body ?? null) as Json }
    : { acked: false, response: null };
}
