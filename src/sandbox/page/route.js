/** Where the page looks, kept in the address: a link opens the same place as the same person. */
/** @import { JournalEntry, MessageView, WorkspaceView, ActiveFault } from "../slack/control-types.js" */
/** @import { Place } from "./store.js" */
import { act, get } from "./api.js";
import { openLive } from "./live.js";
import { store } from "./store.js";
import { toast } from "./ui/toasts.js";

const NARROW = window.matchMedia("(max-width: 720px)");
const REMEMBERED = "sandbox-person";

export const isNarrow = () => NARROW.matches;

/** Reads the address, loads the person's workspace, follows it live. */
export async function start() {
  const params = new URLSearchParams(location.search);
  store.as = params.get("as") ?? localStorage.getItem(REMEMBERED) ?? store.as;
  store.inspectorOpen = params.has("inspector");
  await loadWorkspace();
  await openFromAddress();
  document.body.toggleAttribute("data-ready", true);
  window.addEventListener("popstate", () => void openFromAddress());
  NARROW.addEventListener("change", () => {
    if (!isNarrow() && store.place.kind === "list") void openFirstChannel();
  });
}

async function loadWorkspace() {
  /** @type {WorkspaceView} */
  let workspace;
  try {
    workspace = /** @type {WorkspaceView} */ (await get(`state?as=${encodeURIComponent(store.as)}`));
  } catch (error) {
    if (store.as === "U_AGENT") throw error;
    toast(error instanceof Error ? error.message : String(error), { kind: "error" });
    store.as = "U_AGENT";
    workspace = /** @type {WorkspaceView} */ (await get("state?as=U_AGENT"));
  }
  localStorage.setItem(REMEMBERED, store.as);
  store.forget();
  store.workspace = workspace;
  store.clockSkewMs = workspace.clock.nowMs - Date.now();
  openLive(workspace.streamSeq, () => void reload());
  store.emit("workspace");
  void loadInspector();
  // All of the person's channels: their unread threads are told in the sidebar.
  for (const channel of workspace.channels) if (channel.isMember) void loadMessages(channel.id, null);
}

/** What the inspector shows comes after the workspace: nobody waits for it. */
async function loadInspector() {
  const [journal, faults] = await Promise.all([get("journal?limit=500"), get("faults")]);
  store.journal = /** @type {{ entries: JournalEntry[] }} */ (journal).entries;
  store.faults = /** @type {{ faults: ActiveFault[] }} */ (faults).faults;
  store.emit("journal");
  store.emit("faults");
}

/** Everything anew, in the same place: after a gap of the stream, a reset, a jump of the clock. */
export async function reload() {
  const { place, thread } = store;
  await loadWorkspace();
  if (place.kind === "channel" && store.channel(place.channel) !== undefined) {
    await openChannel(place.channel, { thread, push: false });
  } else if (place.kind === "home") openHome({ push: false });
  else if (place.kind === "threads") openThreads({ push: false });
  else await openFirstChannel();
}

async function openFromAddress() {
  const params = new URLSearchParams(location.search);
  const as = params.get("as");
  if (as !== null && as !== store.as) {
    store.as = as;
    await loadWorkspace();
  }
  const [, channel, message] = /^\/archives\/([^/]+)(?:\/p(\d{16}))?/u.exec(location.pathname) ?? [];
  const ts = message === undefined ? null : `${message.slice(0, 10)}.${message.slice(10)}`;
  if (channel !== undefined && store.channel(channel) !== undefined) {
    await openChannel(channel, { thread: params.get("thread_ts"), ts, push: false });
    return;
  }
  if (channel !== undefined)
    toast(`${store.workspace?.me.realName ?? "This person"} cannot see that channel.`, { kind: "error" });
  if (params.get("view") === "home") openHome({ push: false });
  else if (params.get("view") === "threads") openThreads({ push: false });
  else await openFirstChannel();
}

async function openFirstChannel() {
  const first = store.workspace?.channels.find((c) => c.isMember && c.kind !== "dm" && !c.isArchived);
  if (isNarrow() || first === undefined) showList({ push: false });
  else await openChannel(first.id, { push: false });
}

/** @param {boolean} push */
function writeAddress(push) {
  const { place } = store;
  const params = new URLSearchParams({ as: store.as });
  if (place.kind === "home" || place.kind === "threads") params.set("view", place.kind);
  if (store.thread !== null) params.set("thread_ts", store.thread);
  if (store.inspectorOpen) params.set("inspector", "");
  const path = place.kind === "channel" ? `/archives/${encodeURIComponent(place.channel)}` : "/";
  const url = `${path}?${params.toString().replace("inspector=", "inspector")}`;
  if (url === location.pathname + location.search) return;
  if (push) history.pushState(null, "", url);
  else history.replaceState(null, "", url);
}

/** @param {Place} place @param {boolean} push */
function go(place, push) {
  store.place = place;
  writeAddress(push);
  store.emit("place");
}

/**
 * @param {string} id
 * @param {{ thread?: string | null, ts?: string | null, push?: boolean }} [options] `ts`: a message to show
 */
export async function openChannel(id, { thread = null, ts = null, push = true } = {}) {
  store.newAfter = store.channel(id)?.lastReadTs ?? null;
  store.thread = thread;
  store.wanted = ts;
  go({ kind: "channel", channel: id }, push);
  store.emit("thread");
  await Promise.all([loadMessages(id, null), thread === null ? undefined : loadMessages(id, thread)]);
}

/** @param {{ push?: boolean }} [options] */
export function openHome({ push = true } = {}) {
  store.thread = null;
  go({ kind: "home" }, push);
  store.emit("thread");
  void act("open-home", { tab: "home" });
}

/** The person's threads of all channels. @param {{ push?: boolean }} [options] */
export function openThreads({ push = true } = {}) {
  store.thread = null;
  go({ kind: "threads" }, push);
  store.emit("thread");
}

/** @param {string} channel @param {string} ts of the parent */
export async function loadThread(channel, ts) {
  if (store.loadedThreads.has(`${channel}/${ts}`)) return;
  store.loadedThreads.add(`${channel}/${ts}`);
  await loadMessages(channel, ts);
}

/** The list of channels, on a narrow screen a place of its own. @param {{ push?: boolean }} [options] */
export function showList({ push = true } = {}) {
  store.thread = null;
  go({ kind: "list" }, push);
  store.emit("thread");
}

/** @param {string} channel @param {string} ts of the parent */
export async function openThread(channel, ts) {
  if (store.place.kind !== "channel" || store.place.channel !== channel) {
    await openChannel(channel, { thread: ts });
    return;
  }
  store.thread = ts;
  writeAddress(true);
  store.emit("thread");
  await loadMessages(channel, ts);
}

export function closeThread() {
  store.thread = null;
  writeAddress(false);
  store.emit("thread");
}

/** @param {boolean} open */
export function showInspector(open) {
  store.inspectorOpen = open;
  writeAddress(false);
  store.emit("inspector");
}

/** @param {string} as */
export async function become(as) {
  const { place } = store;
  store.as = as;
  await loadWorkspace();
  const channel = place.kind === "channel" ? store.channel(place.channel) : undefined;
  if (place.kind === "home") openHome();
  else if (place.kind === "threads") openThreads();
  else if (place.kind === "list" && isNarrow()) showList();
  else if (channel !== undefined && channel.kind !== "dm") await openChannel(channel.id);
  else await openFirstChannel();
}

/** The direct message with the app. */
export async function openAppMessages() {
  const result = await act("open-dm", {});
  if (result.ok && typeof result["channel"] === "string") await openChannel(result["channel"]);
}

/** @param {string} channel @param {string | null} threadTs */
async function loadMessages(channel, threadTs) {
  const since = store.liveCount;
  const query = new URLSearchParams({ as: store.as, channel, ...(threadTs === null ? {} : { threadTs }) });
  const as = store.as;
  try {
    const { messages } = /** @type {{ messages: MessageView[] }} */ (await get(`messages?${query}`));
    if (as !== store.as) return;
    for (const message of messages) store.keepLoaded(message, since);
    if (threadTs === null) store.loadedChannels.add(channel);
    else store.loadedThreads.add(`${channel}/${threadTs}`);
    store.emit("messages", { channel });
  } catch (error) {
    toast(error instanceof Error ? error.message : String(error), { kind: "error" });
  }
}
