/** The live stream: server-sent events of one person, applied to the store. */
/** @import { StreamEvent } from "../slack/control-types.js" */
import { store } from "./store.js";
import { toast } from "./ui/toasts.js";

const TYPES = /** @type {const} */ ([
  "message",
  "message_deleted",
  "channel",
  "modals",
  "home",
  "people",
  "toast",
  "notify",
  "connection",
  "journal",
  "faults",
  "reset",
]);
const JOURNAL_KEPT = 800;

/** @type {EventSource | null} */
let source = null;
let reload = () => {};

/** @param {number} after @param {() => void} onReset reads everything again */
export function openLive(after, onReset) {
  source?.close();
  reload = onReset;
  source = new EventSource(`/sandbox/stream?as=${encodeURIComponent(store.as)}&after=${after}`);
  for (const type of TYPES) {
    source.addEventListener(type, (event) => take(/** @type {StreamEvent} */ (JSON.parse(event.data))));
  }
  source.addEventListener("error", () => document.body.toggleAttribute("data-offline", true));
  source.addEventListener("open", () => document.body.removeAttribute("data-offline"));
}

/** @param {StreamEvent} event */
function take(event) {
  const workspace = store.workspace;
  if (workspace === null) return;
  switch (event.type) {
    case "message":
      store.keepLive(event.message);
      store.emit("message", { channel: event.message.channel, ts: event.message.ts });
      return;
    case "message_deleted":
      store.dropLive(event.channel, event.ts);
      store.emit("message", { channel: event.channel, ts: event.ts });
      return;
    case "channel": {
      const at = workspace.channels.findIndex((c) => c.id === event.channel.id);
      if (at === -1) workspace.channels.push(event.channel);
      else workspace.channels[at] = event.channel;
      store.emit("channels", { channel: event.channel.id });
      return;
    }
    case "modals":
      workspace.modals = event.modals;
      store.emit("modals");
      return;
    case "home":
      workspace.home = event.home;
      store.emit("home");
      return;
    case "people": {
      workspace.people = event.people;
      workspace.userGroups = event.userGroups;
      workspace.me = event.people.find((p) => p.id === store.as) ?? workspace.me;
      store.emit("people");
      return;
    }
    case "toast":
      toast(event.message, { kind: "error", code: event.error });
      return;
    case "notify": {
      const channel = store.channel(event.channel);
      if (store.place.kind === "channel" && store.place.channel === event.channel) return;
      const where =
        channel === undefined ? "" : channel.kind === "dm" ? " in a direct message" : ` in #${channel.name}`;
      toast(`You are mentioned${where}.`, { kind: "info", channel: event.channel });
      return;
    }
    case "connection":
      workspace.connection = event.connection;
      store.emit("connection");
      return;
    case "journal":
      store.journal.push(event.entry);
      if (store.journal.length > JOURNAL_KEPT) store.journal.splice(0, store.journal.length - JOURNAL_KEPT);
      store.emit("journal", { entry: event.entry });
      return;
    case "faults":
      store.faults = event.faults;
      store.emit("faults");
      return;
    case "reset":
      reload();
      return;
  }
}
