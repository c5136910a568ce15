/** What a workspace holds: plain data, so that it can be stored as JSON and read back. */
import type { Json, JsonObject } from "../../domain/json.js";
import type { PersonKind } from "./control-types.js";
import type { IdState } from "./seeded-ids.js";

export interface Team {
  id: string;
  name: string;
  domain: string;
}

export interface Person {
  id: string;
  teamId: string;
  name: string;
  realName: string;
  title: string;
  kind: PersonKind;
  email: string;
  tz: string;
  tzOffsetSeconds: number;
  locale: string;
  color: string;
  isAdmin: boolean;
  deleted: boolean;
  isRestricted: boolean;
  isUltraRestricted: boolean;
  isBot: boolean;
  /** Set for a member of an Enterprise organisation. */
  enterpriseUserId?: string;
  /** Milliseconds. */
  updatedMs: number;
}

export interface Channel {
  id: string;
  name: string;
  kind: "channel" | "private" | "dm";
  topic: string;
  purpose: string;
  members: string[];
  isArchived: boolean;
  isExtShared: boolean;
  creator: string;
  createdMs: number;
}

export interface Reaction {
  name: string;
  users: string[];
}

export interface FileInfo {
  id: string;
  name: string;
  mimetype: string;
  size: number;
}

export type Block = JsonObject & { type: string; block_id: string };

export interface Metadata {
  event_type: string;
  event_payload: JsonObject;
}

export interface Message {
  channel: string;
  ts: string;
  /** Parent's ts for a reply; null for what stands in the channel itself. */
  threadTs: string | null;
  subtype: string | null;
  user: string;
  botId: string | null;
  clientMsgId: string | null;
  text: string;
  blocks: Block[];
  attachments: JsonObject[];
  files: FileInfo[];
  reactions: Reaction[];
  metadata: Metadata | null;
  edited: { user: string; ts: string } | null;
  broadcast: boolean;
  /** Users whom this message pinged when it was posted. */
  pinged: string[];
  /** Present while, and after, the app streams into it. */
  stream: "open" | "closed" | null;
  /** Only this person sees it. */
  ephemeralFor: string | null;
}

export interface UserGroup {
  id: string;
  handle: string;
  name: string;
  description: string;
  users: string[];
  disabled: boolean;
  updatedMs: number;
}

/** State of one input as Slack sends it: `{ type, value }`, `{ type, selected_option }`, … */
export type ElementState = JsonObject & { type: string };
export type StateValues = Record<string, Record<string, ElementState>>;

export interface View {
  id: string;
  type: "modal" | "home";
  owner: string;
  blocks: Block[];
  privateMetadata: string;
  callbackId: string;
  externalId: string;
  title: JsonObject | null;
  submit: JsonObject | null;
  close: JsonObject | null;
  clearOnClose: boolean;
  notifyOnClose: boolean;
  hash: string;
  rootViewId: string;
  previousViewId: string | null;
  /** What the person has typed and chosen so far. */
  values: StateValues;
  errors: Record<string, string>;
}

export interface CommandDef {
  command: string;
  description: string;
  usageHint: string;
  shouldEscape: boolean;
}

export interface ShortcutDef {
  kind: "message" | "global";
  callbackId: string;
  name: string;
  description: string;
}

/** The installed app, from its manifest. */
export interface AppInfo {
  id: string;
  name: string;
  botUserId: string;
  botId: string;
  scopes: string[];
  botEvents: string[];
  commands: CommandDef[];
  shortcuts: ShortcutDef[];
  messagesTab: boolean;
}

export interface WorkspaceData {
  version: 1;
  people: Person[];
  channels: Channel[];
  /** Oldest first. */
  messages: Record<string, Message[]>;
  groups: UserGroup[];
  homes: Record<string, View>;
  /** user → channel → ts up to which it was read. */
  reads: Record<string, Record<string, string>>;
  ids: IdState;
}

export type { Json, JsonObject };
