/** What the control routes take, checked at the edge. Each schema gives exactly the type of control-types.ts. */
import { z } from "zod";
import type {
  ApiFault,
  ClickRequest,
  ClockChange,
  CloseViewRequest,
  CommandRequest,
  DeliveryFault,
  EditRequest,
  JsonObject,
  MarkReadRequest,
  MessageRef,
  NewPerson,
  OpenHomeRequest,
  PersonChange,
  PostRequest,
  ReactRequest,
  SettingsChange,
  ShortcutRequest,
  SocketFault,
  SubmitViewRequest,
} from "./control-types.js";

const text = z.string().max(100_000);
const id = z.string().min(1).max(255);
const value = z.union([z.string(), z.array(z.string()), z.null()]);
const values = z.record(z.string(), value);
const place = { as: id, channel: id, ts: id };

export const postRequest: z.ZodType<PostRequest> = z.strictObject({
  as: id,
  channel: id,
  text,
  threadTs: id.exactOptional(),
  broadcast: z.boolean().exactOptional(),
  rawText: z.boolean().exactOptional(),
  files: z
    .array(z.strictObject({ name: id, mimetype: id, size: z.number().int().nonnegative() }))
    .max(10)
    .exactOptional(),
});

export const editRequest: z.ZodType<EditRequest> = z.strictObject({ ...place, text });
export const messageRef: z.ZodType<MessageRef> = z.strictObject(place);
export const reactRequest: z.ZodType<ReactRequest> = z.strictObject({ ...place, name: id });
export const markReadRequest: z.ZodType<MarkReadRequest> = z.strictObject(place);
export const asRequest = z.strictObject({ as: id });

export const clickRequest: z.ZodType<ClickRequest> = z.strictObject({
  as: id,
  at: z.union([z.strictObject({ channel: id, ts: id }), z.strictObject({ viewId: id })]),
  actionId: id.exactOptional(),
  blockId: id.exactOptional(),
  label: id.exactOptional(),
  value: value.exactOptional(),
  confirm: z.boolean().exactOptional(),
  values: values.exactOptional(),
});

export const submitViewRequest: z.ZodType<SubmitViewRequest> = z.strictObject({ as: id, viewId: id, values });
export const closeViewRequest: z.ZodType<CloseViewRequest> = z.strictObject({
  as: id,
  viewId: id,
  all: z.boolean().exactOptional(),
});
export const commandRequest: z.ZodType<CommandRequest> = z.strictObject({
  as: id,
  channel: id,
  command: id,
  text,
  threadTs: id.exactOptional(),
});
export const shortcutRequest: z.ZodType<ShortcutRequest> = z.strictObject({
  as: id,
  callbackId: id,
  message: z.strictObject({ channel: id, ts: id }).exactOptional(),
});
export const openHomeRequest: z.ZodType<OpenHomeRequest> = z.strictObject({
  as: id,
  tab: z.enum(["home", "messages"]).exactOptional(),
});

export const personChange: z.ZodType<PersonChange> = z.strictObject({
  user: id,
  deleted: z.boolean().exactOptional(),
  isRestricted: z.boolean().exactOptional(),
  isUltraRestricted: z.boolean().exactOptional(),
  realName: id.exactOptional(),
  tz: id.exactOptional(),
  enterpriseUserId: id.exactOptional(),
});

export const newPerson: z.ZodType<NewPerson> = z.strictObject({
  id: z.string().regex(/^[UW][A-Z0-9_]+$/u),
  name: id,
  realName: id,
  title: z.string().exactOptional(),
  teamId: id.exactOptional(),
  enterpriseUserId: id.exactOptional(),
  kind: z
    .enum([
      "member",
      "guest",
      "single_channel_guest",
      "deactivated",
      "invited",
      "bot",
      "external",
      "stranger",
    ])
    .exactOptional(),
  channels: z.array(id).exactOptional(),
});

export const userGroupChange = z.strictObject({
  id,
  users: z.array(id).exactOptional(),
  disabled: z.boolean().exactOptional(),
});
export const channelSwitch = z.strictObject({ channel: id, on: z.boolean() });
export const memberSwitch = z.strictObject({ channel: id, user: id, on: z.boolean() });
export const messageSpot = z.strictObject({ channel: id, ts: id });

const count = z.number().int().positive().max(1_000_000);
const waitMs = z.number().int().nonnegative().max(86_400_000);

export const apiFault: z.ZodType<ApiFault> = z.strictObject({
  method: id,
  kind: z.enum(["error", "ratelimited", "http", "reset", "accept_then_drop", "delay", "hang"]),
  times: count,
  skip: z.number().int().nonnegative().exactOptional(),
  channel: id.exactOptional(),
  error: id.exactOptional(),
  retryAfterSeconds: z.number().int().positive().exactOptional(),
  status: z.number().int().min(200).max(599).exactOptional(),
  delayMs: waitMs.exactOptional(),
});

export const deliveryFault: z.ZodType<DeliveryFault> = z.strictObject({
  kind: z.enum(["duplicate", "reorder", "delay", "drop"]),
  times: count,
  skip: z.number().int().nonnegative().exactOptional(),
  type: id.exactOptional(),
  delayMs: waitMs.exactOptional(),
});

export const socketFault: z.ZodType<SocketFault> = z.strictObject({
  kind: z.enum(["warning", "refresh", "link_disabled", "enable", "rude", "deaf", "polite", "kill"]),
  connection: z.number().int().nonnegative().exactOptional(),
});

export const clockChange: z.ZodType<ClockChange> = z.strictObject({
  advanceMs: z.number().int().nonnegative().exactOptional(),
  scale: z.number().positive().exactOptional(),
  signatureSkewMs: z.number().int().exactOptional(),
});

export const settingsChange: z.ZodType<SettingsChange> = z.strictObject({
  mode: z.enum(["socket", "http"]).exactOptional(),
  strict: z.boolean().exactOptional(),
  rateLimits: z.boolean().exactOptional(),
  delayedEvents: z.boolean().exactOptional(),
  orgInstall: z.boolean().exactOptional(),
  freePlan: z.boolean().exactOptional(),
  installation: z.enum(["installed", "uninstalled", "token_revoked"]).exactOptional(),
  editsNotify: z.boolean().exactOptional(),
  retryInteractivity: z.boolean().exactOptional(),
  responseUrlGoneStatus: z.number().int().min(400).max(599).exactOptional(),
  metadataMaxBytes: count.exactOptional(),
  socketRedeliveryMs: waitMs.exactOptional(),
  connectionTier: z.enum(["tier1", "tier3"]).exactOptional(),
  ackTimeoutMs: waitMs.exactOptional(),
  requestUrl: z.url().exactOptional(),
});

export const anyEvent: z.ZodType<JsonObject> = z.record(z.string(), z.json());
export const faultId = z.strictObject({ id: id.exactOptional() });
export const urlRequest = z.strictObject({ url: z.url().exactOptional() });
export const nothing = z.strictObject({});
