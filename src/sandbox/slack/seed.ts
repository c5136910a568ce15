/** The seeded workspace: people of every standing, channels, groups, and the app as its manifest installs it. */
import type { Channel, JsonObject, Person, Team, UserGroup, WorkspaceData } from "./model.js";

export const HOME_TEAM: Team = { id: "T_HOME", name: "Northwind Outfitters", domain: "northwind" };
export const OTHER_TEAM: Team = { id: "T_EXT", name: "Parcel Partners", domain: "parcel-partners" };
export const APP_IDS = { id: "A_CS", botUserId: "U_CS", botId: "B_CS" } as const;

/** The manifest that is installed unless another is handed in. */
export const DEFAULT_MANIFEST: JsonObject = {
  _metadata: { major_version: 2, minor_version: 1 },
  display_information: {
    name: "Countersign",
    description: "Resolves support tickets, with a countersignature.",
  },
  features: {
    app_home: { home_tab_enabled: true, messages_tab_enabled: true, messages_tab_read_only_enabled: false },
    bot_user: { display_name: "Countersign", always_online: true },
    shortcuts: [
      {
        name: "Resolve with Countersign",
        type: "message",
        callback_id: "resolve_with_countersign",
        description: "File this message as a ticket",
      },
    ],
    slash_commands: [
      {
        command: "/ticket",
        description: "File a support ticket",
        usage_hint: "[what the customer wants]",
        should_escape: true,
      },
      {
        command: "/ops",
        description: "Inspect and settle operations (on-call)",
        usage_hint: "help | list | show ID | …",
        should_escape: true,
      },
    ],
  },
  oauth_config: {
    scopes: {
      bot: [
        "app_mentions:read",
        "channels:history",
        "groups:history",
        "channels:read",
        "groups:read",
        "chat:write",
        "commands",
        "users:read",
        "usergroups:read",
        "reactions:write",
      ],
    },
  },
  settings: {
    event_subscriptions: {
      bot_events: [
        "app_home_opened",
        "app_mention",
        "message.channels",
        "message.groups",
        "subteam_members_changed",
        "subteam_updated",
        "user_change",
        "channel_shared",
        "channel_id_changed",
        "app_uninstalled",
        "tokens_revoked",
      ],
    },
    interactivity: { is_enabled: true },
    org_deploy_enabled: false,
    socket_mode_enabled: true,
    token_rotation_enabled: false,
  },
};

type Seed = Pick<Person, "id" | "name" | "realName" | "title" | "color"> & Partial<Person>;

/** Fills in what most people share. */
export function makePerson(seed: Seed, createdMs: number): Person {
  return {
    teamId: HOME_TEAM.id,
    kind: "member",
    email: `${seed.name}@northwind.example`,
    tz: "Europe/London",
    tzOffsetSeconds: 0,
    locale: "en-GB",
    isAdmin: false,
    deleted: false,
    isRestricted: false,
    isUltraRestricted: false,
    isBot: false,
    updatedMs: createdMs,
    ...seed,
  };
}

const PEOPLE: Seed[] = [
  { id: "U_AGENT", name: "ada", realName: "Ada Filer", title: "Support agent", color: "2f7d6d" },
  { id: "U_AGENT2", name: "ben", realName: "Ben Okafor", title: "Support agent", color: "8a5a2b" },
  { id: "U_SUP1", name: "sam", realName: "Sam Supervisor", title: "Supervisor", color: "3a5fa8" },
  { id: "U_SUP2", name: "priya", realName: "Priya Raman", title: "Supervisor", color: "7d3f98" },
  { id: "U_FIN1", name: "fiona", realName: "Fiona Ledger", title: "Finance", color: "a8463a" },
  { id: "U_FIN2", name: "henrik", realName: "Henrik Dahl", title: "Finance", color: "5b6b1f" },
  { id: "U_ONC1", name: "noor", realName: "Noor Oncall", title: "On-call", color: "a55a22" },
  { id: "U_ONC2", name: "leo", realName: "Leo Martin", title: "On-call", color: "2a6f97" },
  {
    id: "U_ADMIN",
    name: "robin",
    realName: "Robin Admin",
    title: "Workspace owner",
    color: "444c56",
    isAdmin: true,
  },
  {
    id: "U_GUEST",
    name: "gus",
    realName: "Gus Guest",
    title: "Guest, several channels",
    color: "866a00",
    kind: "guest",
    isRestricted: true,
  },
  {
    id: "U_ULTRA",
    name: "uma",
    realName: "Uma Single",
    title: "Guest, one channel",
    color: "9a5b00",
    kind: "single_channel_guest",
    isRestricted: true,
    isUltraRestricted: true,
  },
  {
    id: "U_GONE",
    name: "gwen",
    realName: "Gwen Former",
    title: "Deactivated (was a supervisor)",
    color: "77777f",
    kind: "deactivated",
    deleted: true,
  },
  {
    id: "U_INVITED",
    name: "ivo",
    realName: "Ivo Invited",
    title: "Invited, not joined",
    color: "77777f",
    kind: "invited",
  },
  {
    id: "U_BOT",
    name: "deploybot",
    realName: "Deploy Bot",
    title: "Another app",
    color: "4b5563",
    kind: "bot",
    isBot: true,
  },
  {
    id: "U_EXT",
    name: "erin",
    realName: "Erin Partner",
    title: "From another company (Slack Connect)",
    color: "00727a",
    kind: "external",
    teamId: OTHER_TEAM.id,
    email: "erin@parcel-partners.example",
  },
  {
    id: "U_STRANGER",
    name: "sky",
    realName: "Sky Stranger",
    title: "From another company, in no shared channel",
    color: "7a0040",
    kind: "stranger",
    teamId: OTHER_TEAM.id,
    email: "sky@parcel-partners.example",
  },
  {
    // Slack says of it that it is no bot.
    id: "USLACKBOT",
    name: "slackbot",
    realName: "Slackbot",
    title: "Slack itself",
    color: "757575",
    kind: "bot",
  },
  {
    id: APP_IDS.botUserId,
    name: "countersign",
    realName: "Countersign",
    title: "The app",
    color: "1f2937",
    kind: "bot",
    isBot: true,
  },
];

const STAFF = ["U_AGENT", "U_AGENT2", "U_SUP1", "U_SUP2", "U_FIN1", "U_FIN2", "U_ONC1", "U_ONC2", "U_ADMIN"];

function makeChannel(
  id: string,
  name: string,
  topic: string,
  members: string[],
  createdMs: number,
  more: Partial<Channel> = {},
): Channel {
  return {
    id,
    name,
    kind: "channel",
    topic,
    purpose: topic,
    members,
    isArchived: false,
    isExtShared: false,
    creator: "U_ADMIN",
    createdMs,
    ...more,
  };
}

function makeGroup(id: string, handle: string, name: string, users: string[], updatedMs: number): UserGroup {
  return { id, handle, name, description: name, users, disabled: false, updatedMs };
}

/** A fresh workspace. `createdMs` is the time that accounts and channels carry. */
export function seedWorkspace(createdMs: number, ids: WorkspaceData["ids"]): WorkspaceData {
  const bot = APP_IDS.botUserId;
  return {
    version: 1,
    people: PEOPLE.map((seed) => makePerson(seed, createdMs)),
    channels: [
      makeChannel(
        "C_TICK",
        "support-tickets",
        "File a ticket: say what the customer wants and the order",
        [...STAFF, "U_GUEST", "U_ULTRA", "U_BOT", bot],
        createdMs,
      ),
      makeChannel(
        "C_APPR",
        "approvals",
        "Operations that wait for a countersignature",
        [...STAFF, "U_GUEST", bot],
        createdMs,
      ),
      makeChannel(
        "C_OPS",
        "ops",
        "On-call: unknown and quarantined operations",
        ["U_ONC1", "U_ONC2", "U_ADMIN", "U_FIN1", bot],
        createdMs,
      ),
      makeChannel("C_GENERAL", "general", "Everyone", [...STAFF, "U_BOT"], createdMs),
      makeChannel(
        "C_SHARED",
        "parcel-partners",
        "Shared with Parcel Partners",
        ["U_AGENT", "U_SUP1", "U_EXT", bot],
        createdMs,
        { isExtShared: true },
      ),
      makeChannel("G_FIN", "finance-private", "Finance only", ["U_FIN1", "U_FIN2", "U_ADMIN"], createdMs, {
        kind: "private",
      }),
      makeChannel("C_OLD", "old-returns", "Archived", ["U_AGENT", "U_ADMIN", bot], createdMs, {
        isArchived: true,
      }),
    ],
    messages: {},
    groups: [
      makeGroup("S_SUP", "supervisors", "Supervisors", ["U_SUP1", "U_SUP2"], createdMs),
      makeGroup("S_FIN", "finance", "Finance", ["U_FIN1", "U_FIN2"], createdMs),
      makeGroup("S_ONC", "oncall", "On-call", ["U_ONC1", "U_ONC2"], createdMs),
      { ...makeGroup("S_OFF", "night-shift", "Night shift (disabled)", [], createdMs), disabled: true },
    ],
    homes: {},
    reads: {},
    ids,
  };
}
