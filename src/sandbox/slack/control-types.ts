/**
 * The control API of the Slack sandbox, as types: what the page, the end-to-end tests and the demo may ask.
 *
 * Everything here is JSON over HTTP under `/sandbox/…` (see docs/sandbox.md for routes) and the same
 * calls exist in process as {@link SlackSandboxControl}. Nothing of it is Slack's wire: that lives under
 * `/api` (Web API), `/link` (Socket Mode) and `/hooks` (response urls).
 *
 * Invariants
 * 1. Every call that acts for a person names the person (`as`); the sandbox checks what that person could do in Slack.
 * 2. Times are milliseconds of the sandbox clock (`…Ms`) or Slack timestamps (`ts`, strings, never numbers).
 * 3. Blocks and views are Slack's own JSON, as stored by the sandbox (block ids filled in), never HTML.
 */

/** Slack JSON that the sandbox passes on as it is. */
export type Json = string | number | boolean | null | Json[] | { [key: string]: Json };
export type JsonObject = { [key: string]: Json };

/** One Block Kit block as stored: `type` and `block_id` are always there. */
export type BlockJson = JsonObject & { type: string; block_id: string };

// ---------------------------------------------------------------- what a person sees

export type PersonKind =
  | "member"
  | "guest"
  | "single_channel_guest"
  | "deactivated"
  | "invited"
  | "bot"
  | "external"
  | "stranger";

export interface PersonView {
  id: string;
  teamId: string;
  /** Handle, as after an at sign. */
  name: string;
  realName: string;
  /** One line for the person switcher: "Supervisor", "Guest", … */
  title: string;
  kind: PersonKind;
  /** Colour of the drawn avatar, `rrggbb`. */
  color: string;
  tz: string;
  userGroups: string[];
  /** False for those who cannot act (deactivated, invited, bots): the switcher shows them and says why. */
  canAct: boolean;
}

export interface ChannelView {
  id: string;
  name: string;
  kind: "channel" | "private" | "dm";
  topic: string;
  memberIds: string[];
  isMember: boolean;
  isArchived: boolean;
  isExtShared: boolean;
  /** For a direct message: the other side. */
  dmWith: string | null;
  unreadCount: number;
  /** Unread messages that mention the person or a group of theirs. */
  mentionCount: number;
  lastReadTs: string | null;
}

export interface ReactionView {
  name: string;
  users: string[];
}

export interface FileView {
  id: string;
  name: string;
  mimetype: string;
  size: number;
}

export interface MessageView {
  channel: string;
  ts: string;
  threadTs: string | null;
  /** `user` for people, the bot user for the app's own messages. */
  user: string | null;
  botId: string | null;
  authorName: string;
  text: string;
  blocks: BlockJson[];
  attachments: JsonObject[];
  files: FileView[];
  reactions: ReactionView[];
  edited: boolean;
  /** Only the person who is looking sees it; gone after a reload of the page (`GET …/messages` leaves it out unless asked). */
  ephemeral: boolean;
  /** A reply that was also sent to the channel. */
  broadcast: boolean;
  subtype: string | null;
  replyCount: number;
  replyUsers: string[];
  latestReplyTs: string | null;
  /** A stream that is still being written by the app. */
  streaming: boolean;
  /** True when this post would have pinged the person who is looking. */
  mentionsMe: boolean;
}

export interface ModalView {
  id: string;
  callbackId: string;
  title: string;
  submitLabel: string | null;
  closeLabel: string;
  blocks: BlockJson[];
  /** Values that survive an update of the view (same block_id and action_id). */
  values: Record<string, Record<string, JsonObject>>;
  /** From `response_action: errors` or from the checks made before dispatch: block_id to sentence. */
  errors: Record<string, string>;
  hash: string;
}

export interface HomeView {
  published: boolean;
  viewId: string | null;
  blocks: BlockJson[];
  hash: string | null;
}

export interface CommandView {
  command: string;
  description: string;
  usageHint: string;
}

export interface ShortcutView {
  kind: "message" | "global";
  callbackId: string;
  name: string;
  description: string;
}

export interface UserGroupView {
  id: string;
  handle: string;
  name: string;
  users: string[];
  disabled: boolean;
}

export interface ConnectionView {
  mode: "socket" | "http";
  /** Socket Mode: open sockets. HTTP: 1 once the request URL is verified. */
  connected: number;
  requestUrl: string | null;
}

/** `GET /sandbox/state?as=USER` */
export interface WorkspaceView {
  team: { id: string; name: string; domain: string };
  app: { id: string; name: string; botUserId: string; botId: string };
  me: PersonView;
  people: PersonView[];
  channels: ChannelView[];
  userGroups: UserGroupView[];
  commands: CommandView[];
  shortcuts: ShortcutView[];
  modals: ModalView[];
  home: HomeView;
  connection: ConnectionView;
  clock: ClockView;
  settings: SettingsView;
  /** Last number of the live stream at the time of this answer; `…/stream?after=` carries on from it. */
  streamSeq: number;
}

// ---------------------------------------------------------------- acting as a person

/**
 * What came of an action.
 * `ok: false` is what the person would see on the screen: `error` is a code, `message` a plain sentence.
 */
export type ActResult<T extends object = Record<never, never>> =
  | ({ ok: true } & T)
  /** `errors`: sentences at the inputs of a form, by block id. */
  | { ok: false; error: ActError; message: string; errors?: Record<string, string> };

export type ActError =
  | "unknown_user"
  | "user_deactivated"
  | "user_cannot_act"
  | "unknown_channel"
  | "not_a_member"
  | "channel_archived"
  | "unknown_message"
  | "unknown_view"
  | "unknown_element"
  | "ambiguous_element"
  | "unknown_command"
  | "unknown_shortcut"
  | "not_allowed_in_thread"
  | "not_allowed_for_external"
  | "not_author"
  /** A confirm dialog stands before the dispatch: repeat with `confirm: true`; `confirm: false` is its other button. */
  | "confirm_required"
  | "cancelled"
  /** Checks that Slack's client makes before it sends; `errors` of the modal are set. */
  | "invalid_input"
  /** The app answered `response_action: errors`; `errors` of the modal are set. */
  | "view_errors"
  /** No acknowledgement within 3 seconds. */
  | "operation_timeout"
  /** Answered, but not with 200, or with something that Slack cannot use. */
  | "dispatch_failed"
  /** The app is not connected. */
  | "not_connected"
  | "invalid_request";

export interface PostRequest {
  as: string;
  channel: string;
  text: string;
  threadTs?: string;
  /** "Also send to channel". */
  broadcast?: boolean;
  /** The text is in Slack's wire form already (`<@U…>`, `&amp;`): taken as it is. */
  rawText?: boolean;
  files?: { name: string; mimetype: string; size: number }[];
}

export interface EditRequest {
  as: string;
  channel: string;
  ts: string;
  text: string;
}

export interface MessageRef {
  as: string;
  channel: string;
  ts: string;
}

export interface ReactRequest extends MessageRef {
  name: string;
}

/** A value typed or chosen: text, one option value, several, or nothing. */
export type InputValue = string | string[] | null;

/**
 * Press a button, or change a select, date or other element that dispatches.
 * The element is found by `actionId` (and `blockId`, where the id occurs twice) or by the beginning of its visible `label`.
 */
export interface ClickRequest {
  as: string;
  /** Where: a message, or a view (modal or home). */
  at: { channel: string; ts: string } | { viewId: string };
  actionId?: string;
  blockId?: string;
  label?: string;
  /** For selects, dates, checkboxes: what was chosen. */
  value?: InputValue;
  /** Answer to the element's confirm dialog. Left out: `confirm_required` when there is one. */
  confirm?: boolean;
  /** Current values of other inputs in the same surface, by block id and action id, or label (see {@link SubmitViewRequest}). */
  values?: Record<string, InputValue>;
}

export interface SubmitViewRequest {
  as: string;
  viewId: string;
  /**
   * Keys: `blockId/actionId`, `actionId`, `blockId`, or the visible label of the input. A key that fits two inputs is
   * refused (`ambiguous_element`).
   */
  values: Record<string, InputValue>;
}

export interface CloseViewRequest {
  as: string;
  viewId: string;
  /** The × closes the whole stack (`is_cleared`); otherwise only this view. */
  all?: boolean;
}

export interface CommandRequest {
  as: string;
  channel: string;
  /** With its slash. */
  command: string;
  text: string;
  /** Slack refuses commands in threads; given only to try that. */
  threadTs?: string;
}

export interface ShortcutRequest {
  as: string;
  callbackId: string;
  /** Message shortcuts only. */
  message?: { channel: string; ts: string };
}

export interface OpenHomeRequest {
  as: string;
  tab?: "home" | "messages";
}

export interface MarkReadRequest {
  as: string;
  channel: string;
  ts: string;
}

// ---------------------------------------------------------------- administration

export interface PersonChange {
  user: string;
  deleted?: boolean;
  isRestricted?: boolean;
  isUltraRestricted?: boolean;
  realName?: string;
  tz?: string;
  /** Of an Enterprise organisation: the id that one human has in all of its workspaces. */
  enterpriseUserId?: string;
}

export interface NewPerson {
  id: string;
  name: string;
  realName: string;
  title?: string;
  teamId?: string;
  kind?: PersonKind;
  channels?: string[];
  enterpriseUserId?: string;
}

// ---------------------------------------------------------------- faults

/** What happens to the next `times` calls of a Web API method, after `skip` calls that pass. */
export interface ApiFault {
  /** `chat.update`, or `*` for every method. */
  method: string;
  kind: /** HTTP 200 `{ ok: false, error }`. */
    | "error"
    /** HTTP 429 with Retry-After. */
    | "ratelimited"
    /** Any HTTP status with a plain body. */
    | "http"
    /** The connection is reset before anything happens. */
    | "reset"
    /** The call takes effect, then the connection is reset without an answer. */
    | "accept_then_drop"
    /** The call takes effect, and the answer comes late. */
    | "delay"
    /** Nothing happens and no answer ever comes. */
    | "hang";
  times: number;
  skip?: number;
  /** Only calls with this channel argument. */
  channel?: string;
  error?: string;
  retryAfterSeconds?: number;
  status?: number;
  delayMs?: number;
}

/** What happens to the next `times` deliveries to the app. */
export interface DeliveryFault {
  kind: /** Sent twice (same event id; in Socket Mode the same envelope). */
    | "duplicate"
    /** Held back until one later delivery has left. */
    | "reorder"
    | "delay"
    /** Never sent; counts as not acknowledged, so the retry rules apply. */
    | "drop";
  times: number;
  skip?: number;
  /** Event type (`message`, `app_mention`), or `block_actions`, `view_submission`, `slash_command`, …; all if left out. */
  type?: string;
  delayMs?: number;
}

export interface ActiveFault {
  id: string;
  target: "api" | "delivery";
  left: number;
  skip: number;
  fault: ApiFault | DeliveryFault;
}

/** What is done to the Socket Mode connections. */
export interface SocketFault {
  kind: /** `disconnect` frame with reason `warning`, as about ten seconds before a refresh. */
    | "warning"
    /** `disconnect` frame `refresh_requested`, then the socket closes. */
    | "refresh"
    /** `link_disabled`: closed, and no new connection until `enable`. */
    | "link_disabled"
    | "enable"
    /** From now on a closed socket keeps its TCP connection open without completing the close handshake. */
    | "rude"
    /** From now on pings are not answered. */
    | "deaf"
    /** End of rude and deaf. */
    | "polite"
    /** TCP reset. */
    | "kill";
  /** Only the nth open connection (0 first); all if left out. */
  connection?: number;
}

// ---------------------------------------------------------------- clock, settings, journal

export interface ClockView {
  nowMs: number;
  offsetMs: number;
  /** How many times faster the waits between retries pass. */
  scale: number;
}

export interface ClockChange {
  /** Jump forward; waits that have come due fire. */
  advanceMs?: number;
  scale?: number;
  /** Added to the timestamp that HTTP deliveries are signed with; the wall clock otherwise. */
  signatureSkewMs?: number;
}

export interface SettingsView {
  mode: "socket" | "http";
  /** Unknown methods, parameters and block fields fail. */
  strict: boolean;
  rateLimits: boolean;
  delayedEvents: boolean;
  /** Interactive payloads carry `team: null`, as with an org-wide installation. */
  orgInstall: boolean;
  /** usergroups.* answer `plan_upgrade_required`. */
  freePlan: boolean;
  /** What the bot's token is worth: `account_inactive` once the app is uninstalled, `token_revoked` once it is revoked. */
  installation: "installed" | "uninstalled" | "token_revoked";
  /** Group mentions in an edit notify. Unverified on the real service; default off. */
  editsNotify: boolean;
  /** Interactive payloads that were not acknowledged are sent again. Unverified; default off. */
  retryInteractivity: boolean;
  /** HTTP status of a response url past its life. Unverified; default 404. */
  responseUrlGoneStatus: number;
  /** Bytes of JSON that message metadata may have. Unverified; default 8000. */
  metadataMaxBytes: number;
  /** Delay before an unacknowledged envelope is sent again. Unverified; default 3000. */
  socketRedeliveryMs: number;
  /** Rate tier of `apps.connections.open`: ten at once, then one a minute, or 50 a minute. Unverified; default tier 1. */
  connectionTier: "tier1" | "tier3";
  ackTimeoutMs: number;
}

export type SettingsChange = Partial<SettingsView> & { requestUrl?: string };

export type JournalEntry = {
  seq: number;
  atMs: number;
} & (
  | {
      kind: "api";
      method: string;
      /** Arguments as parsed; tokens left out. */
      args: JsonObject;
      status: number | null;
      response: Json;
      /** Id of the fault that spoke, if any. */
      fault: string | null;
    }
  | {
      kind: "delivery";
      transport: "socket" | "http";
      /** `message`, `block_actions`, `slash_command`, … */
      type: string;
      /** event_id, envelope id or trigger id. */
      id: string;
      attempt: number;
      payload: Json;
      outcome:
        | "acked"
        | "timeout"
        | "http_error"
        | "connection_failed"
        | "dropped"
        | "not_connected"
        | "pending";
      response: Json;
      tookMs: number | null;
    }
  | { kind: "response_url"; url: string; args: JsonObject; status: number; response: Json }
  | { kind: "socket"; what: string; connections: number }
  | { kind: "act"; as: string; what: string; request: Json; result: Json }
  | { kind: "admin"; what: string; request: Json }
);

// ---------------------------------------------------------------- live stream

/**
 * `GET /sandbox/stream?as=USER[&after=SEQ]`, server-sent events. Every frame has `id: SEQ`, `event: TYPE` and a JSON `data`.
 * A reader that was away too long gets `reset`: read the state again.
 */
export type StreamEvent =
  /** New or changed message visible to the person (the whole message). */
  | { type: "message"; message: MessageView }
  | { type: "message_deleted"; channel: string; ts: string }
  /** Channel list entry changed: unread, members, archived, shared, new. */
  | { type: "channel"; channel: ChannelView }
  /** The person's whole stack of modals, bottom first; empty when closed. */
  | { type: "modals"; modals: ModalView[] }
  | { type: "home"; home: HomeView }
  /** People, groups or memberships changed. */
  | { type: "people"; people: PersonView[]; userGroups: UserGroupView[] }
  /** An error that Slack would show to this person. */
  | { type: "toast"; error: ActError; message: string }
  /** A sign that a person's message mentions them. */
  | { type: "notify"; channel: string; ts: string; text: string }
  | { type: "connection"; connection: ConnectionView }
  | { type: "journal"; entry: JournalEntry }
  | { type: "faults"; faults: ActiveFault[] }
  | { type: "reset" };

// ---------------------------------------------------------------- inspector

/** What the product lets the sandbox see; handed in by the composition root. */
export interface ProductReadPort {
  /** Operations of the ledger, newest first, as plain JSON. */
  operations(): Promise<Json>;
}

// ---------------------------------------------------------------- in process

/** The same calls without HTTP. */
export interface SlackSandboxControl {
  state(as: string): WorkspaceView;
  messages(as: string, channel: string, options?: { threadTs?: string; ephemeral?: boolean }): MessageView[];
  modals(as: string): ModalView[];
  home(as: string): HomeView;

  post(request: PostRequest): Promise<ActResult<{ channel: string; ts: string }>>;
  edit(request: EditRequest): Promise<ActResult>;
  deleteMessage(request: MessageRef): Promise<ActResult>;
  react(request: ReactRequest): Promise<ActResult>;
  click(request: ClickRequest): Promise<ActResult>;
  submitView(request: SubmitViewRequest): Promise<ActResult>;
  closeView(request: CloseViewRequest): Promise<ActResult>;
  command(request: CommandRequest): Promise<ActResult>;
  shortcut(request: ShortcutRequest): Promise<ActResult>;
  openHome(request: OpenHomeRequest): Promise<ActResult>;
  openDm(as: string): Promise<ActResult<{ channel: string }>>;
  markRead(request: MarkReadRequest): Promise<ActResult>;

  changePerson(change: PersonChange): Promise<void>;
  addPerson(person: NewPerson): Promise<void>;
  setUserGroup(id: string, change: { users?: string[]; disabled?: boolean }): Promise<void>;
  shareChannel(channel: string, shared: boolean): Promise<void>;
  archiveChannel(channel: string, archived: boolean): Promise<void>;
  setMember(channel: string, user: string, member: boolean): Promise<void>;
  /** Removes a message, as an administrator would. */
  removeMessage(channel: string, ts: string): Promise<void>;

  addApiFault(fault: ApiFault): string;
  addDeliveryFault(fault: DeliveryFault): string;
  clearFaults(id?: string): void;
  faults(): ActiveFault[];
  socket(fault: SocketFault): void;
  /** Sends an event of the caller's making: the inner event, or a whole body with `type`. Resolves when its last attempt ended. */
  injectEvent(event: JsonObject): Promise<{ eventId: string; acked: boolean }>;
  /**
   * Sends an interactive payload of the caller's making (`block_actions`, `view_submission`, …), whoever could click it or not. A
   * `trigger_id` is issued where it has none. `response` is the body of the acknowledgement.
   */
  injectInteraction(payload: JsonObject): Promise<{ acked: boolean; response: Json }>;
  /** A trigger id for this person, for a payload that the caller signs and sends by itself. */
  issueTrigger(as: string): string;
  /** `app_rate_limited`: a body without inner event. */
  injectAppRateLimited(): Promise<void>;

  clock(change?: ClockChange): ClockView;
  settings(change?: SettingsChange): SettingsView;
  connection(): ConnectionView;
  /** HTTP mode: sends `url_verification`; true when the app echoed the challenge. */
  verifyRequestUrl(url?: string): Promise<boolean>;

  journal(after?: number, limit?: number): JournalEntry[];
  /** Live events for a person, from now on; returns the function that ends it. */
  subscribe(as: string, listener: (event: StreamEvent, seq: number) => void): () => void;
  /** Readers of the live stream: open pages, and subscriptions in process. */
  watchers(): number;
  /** Resolves when no delivery, retry or act is under way (retries that wait for minutes do not count). */
  idle(): Promise<void>;
  /** Back to the seeded workspace; faults, journal and clock too. */
  reset(): Promise<void>;
}
