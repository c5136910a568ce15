/**
 * What the page knows: one person's workspace, their messages, and where they are looking. Everything is replaced, never
 * guessed: it comes from the sandbox's answers and its live stream.
 */
/** @import { ActiveFault, JournalEntry, MessageView, PersonView, UserGroupView, WorkspaceView } from "../slack/control-types.js" */

/** @typedef {{ kind: "channel", channel: string } | { kind: "home" } | { kind: "threads" } | { kind: "list" }} Place */
/**
 * What changed. `workspace`: everything may have.
 * @typedef {"workspace" | "channels" | "message" | "messages" | "modals" | "home" | "people" | "connection" | "journal" | "faults"
 *   | "place" | "thread" | "inspector"} Topic
 */
/** @typedef {{ channel?: string, ts?: string, entry?: JournalEntry }} Detail */

class Store {
  /** Person who looks. */
  as = "U_AGENT";
  /** @type {WorkspaceView | null} */
  workspace = null;
  /** Messages by channel and timestamp, replies among them. @type {Map<string, Map<string, MessageView>>} */
  messages = new Map();
  /** Threads that were read whole: `channel/ts`. @type {Set<string>} */
  loadedThreads = new Set();
  /** @type {Set<string>} */
  loadedChannels = new Set();
  /** @type {Place} */
  place = { kind: "list" };
  /** Timestamp of the parent of the open thread. @type {string | null} */
  thread = null;
  /** Where the line "New" stands in the open channel: the last message read when it was opened. @type {string | null} */
  newAfter = null;
  /** A message to show once it is there. @type {string | null} */
  wanted = null;
  inspectorOpen = false;
  /** @type {JournalEntry[]} */
  journal = [];
  /** @type {ActiveFault[]} */
  faults = [];
  /** Sandbox time minus this machine's, milliseconds. */
  clockSkewMs = 0;
  /** Text not sent yet, by place. @type {Map<string, string>} */
  drafts = new Map();

  /** @type {Map<Topic, Set<(detail: Detail) => void>>} */
  #listeners = new Map();

  /** @param {Topic[]} topics @param {(detail: Detail) => void} listener */
  on(topics, listener) {
    for (const topic of topics) {
      const set = this.#listeners.get(topic) ?? new Set();
      set.add(listener);
      this.#listeners.set(topic, set);
    }
  }

  /** @param {Topic} topic @param {Detail} [detail] */
  emit(topic, detail = {}) {
    for (const listener of this.#listeners.get(topic) ?? []) listener(detail);
  }

  nowMs() {
    return Date.now() + this.clockSkewMs;
  }

  get tz() {
    return this.workspace?.me.tz ?? "UTC";
  }

  /** @param {string | null} id @returns {PersonView | undefined} */
  person(id) {
    return this.workspace?.people.find((p) => p.id === id);
  }

  /** @param {string} id @returns {UserGroupView | undefined} */
  group(id) {
    return this.workspace?.userGroups.find((g) => g.id === id);
  }

  /** @param {string} id */
  channel(id) {
    return this.workspace?.channels.find((c) => c.id === id);
  }

  /** The open channel, or null. */
  get openChannel() {
    return this.place.kind === "channel" ? (this.channel(this.place.channel) ?? null) : null;
  }

  /** @param {string} channel @param {string} ts */
  message(channel, ts) {
    return this.messages.get(channel)?.get(ts);
  }

  /** Live changes so far; and the change at which a message last came or went, by `channel/ts`. */
  liveCount = 0;
  /** @type {Map<string, number>} */
  #liveAt = new Map();

  /** A message of the live stream. @param {MessageView} message */
  keepLive(message) {
    this.#touch(message.channel, message.ts);
    this.#keep(message);
  }

  /** @param {string} channel @param {string} ts */
  dropLive(channel, ts) {
    this.#touch(channel, ts);
    this.messages.get(channel)?.delete(ts);
  }

  /** A message that was read; the stream may have overtaken it since. @param {MessageView} message @param {number} since */
  keepLoaded(message, since) {
    if ((this.#liveAt.get(`${message.channel}/${message.ts}`) ?? 0) <= since) this.#keep(message);
  }

  /** @param {string} channel @param {string} ts */
  #touch(channel, ts) {
    this.liveCount += 1;
    this.#liveAt.set(`${channel}/${ts}`, this.liveCount);
  }

  /** @param {MessageView} message */
  #keep(message) {
    const known = this.messages.get(message.channel) ?? new Map();
    known.set(message.ts, message);
    this.messages.set(message.channel, known);
  }

  /** A channel's own messages and broadcasts, or a thread's, oldest first. @param {string} channel @param {string | null} threadTs */
  sorted(channel, threadTs) {
    return [...(this.messages.get(channel)?.values() ?? [])]
      .filter((m) =>
        threadTs === null ? m.threadTs === null || m.broadcast : m.ts === threadTs || m.threadTs === threadTs,
      )
      .sort((a, b) => (a.ts < b.ts ? -1 : 1));
  }

  /** Threads of this person, the one with the newest reply first. @returns {{ parent: MessageView, isUnread: boolean }[]} */
  threads() {
    return [...this.messages.entries()]
      .filter(([id]) => this.channel(id)?.isMember === true)
      .flatMap(([id, known]) =>
        [...known.values()]
          .filter((m) => m.replyCount > 0 && this.#concernsMe(m, known))
          .map((parent) => ({
            parent,
            // What is open beside the channel is being read.
            isUnread:
              parent.ts !== this.thread &&
              (parent.latestReplyTs ?? "") > (this.channel(id)?.lastReadTs ?? ""),
          })),
      )
      .sort((a, b) => ((a.parent.latestReplyTs ?? "") < (b.parent.latestReplyTs ?? "") ? 1 : -1));
  }

  /** @param {MessageView} parent @param {Map<string, MessageView>} known messages of its channel */
  #concernsMe(parent, known) {
    return (
      parent.user === this.as ||
      parent.mentionsMe ||
      parent.replyUsers.includes(this.as) ||
      [...known.values()].some((m) => m.threadTs === parent.ts && m.mentionsMe && !m.ephemeral)
    );
  }

  /** Forgets what belongs to one person, before another looks. */
  forget() {
    this.messages.clear();
    this.loadedThreads.clear();
    this.loadedChannels.clear();
    this.thread = null;
    this.newAfter = null;
  }
}

export const store = new Store();
