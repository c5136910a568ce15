/**
 * People as Slack knows them now: profiles by users.info, groups by usergroups.users.list, roles by the policy in force.
 *
 * 1. What is served is at most `maxAgeMs` old, counted from before the question was asked, by the database's clock.
 * 2. What cannot be read is said, never guessed: a person is unreadable, or a role of theirs is.
 * 3. A person is one, whatever ids they have: the enterprise's id where there is one.
 */
import type { Db } from "../../db/connect.js";
import { rolesOf } from "../../domain/policy/people.js";
import type { Policy } from "../../domain/policy/policy.js";
import type { Clock } from "../../domain/ports/clock.js";
import type { Directory, Person, PersonReading } from "../../domain/ports/directory.js";
import type { Logger } from "../../domain/ports/logger.js";
import { callFailure } from "../call-failure.js";
import type { SlackIdentity } from "../settings.js";
import type { SlackWeb } from "../web.js";
import { type Profile, profileOf, standingOf } from "./profile.js";

export interface DirectoryContext {
  readonly db: Db;
  readonly web: SlackWeb;
  readonly clock: Clock;
  readonly log: Logger;
  /** The policy in force: which lists and groups make a role. */
  readonly policy: () => Promise<Policy>;
}

type Reading<T> =
  | { readonly ok: true; readonly value: T; readonly at: Date }
  | { readonly ok: false; readonly reason: string };

export function createDirectory(ctx: DirectoryContext): Directory {
  const profiles = new Source(ctx, PEOPLE, (id) => askProfile(ctx, id));
  const groups = new Source(ctx, GROUPS, (id) => askGroup(ctx, id));
  const roles = rolesReader(ctx, groups);
  return {
    person: (userId, { maxAgeMs }) => readPerson(ctx, profiles, roles, userId, maxAgeMs),
    members: (role, { maxAgeMs }) => readMembers(ctx, groups, role, maxAgeMs),
  };
}

async function readPerson(
  ctx: DirectoryContext,
  profiles: Source<Profile>,
  roles: (maxAgeMs: number) => Promise<Roles>,
  userId: string,
  maxAgeMs: number,
): Promise<PersonReading> {
  const [profile, identity, { policy, members }] = await Promise.all([
    profiles.read(userId, maxAgeMs),
    readIdentity(ctx),
    roles(maxAgeMs),
  ]);
  if (!profile.ok) return { ok: false, reason: profile.reason };
  if (!identity.ok) return { ok: false, reason: identity.reason };
  const person = profile.value;
  const ids = await idsOf(ctx.db, person);
  const membership = rolesOf(policy, ids, (group) => {
    const reading = members.get(group);
    return reading?.ok === true ? reading.value : "unreadable";
  });
  return {
    ok: true,
    person: {
      userId: person.id,
      ids,
      personKey: personKeyOf(person),
      teamId: person.teamId,
      displayName: person.displayName,
      standing: standingOf(person, identity.value),
      roles: membership.roles,
      rolesUnreadable: membership.rolesUnreadable,
      roleEvidence: withAges(membership.roleEvidence, members),
      fetchedAt: oldest(profile.at, members),
    },
  };
}

interface Roles {
  readonly policy: Policy;
  readonly members: ReadonlyMap<string, Reading<readonly string[]>>;
}

/** Reads the policy in force with its groups. Those that were named last are asked for at once, whether or not they still are. */
function rolesReader(
  ctx: DirectoryContext,
  groups: Source<readonly string[]>,
): (maxAgeMs: number) => Promise<Roles> {
  let named: readonly string[] = [];
  return async (maxAgeMs) => {
    const [policy, known] = await Promise.all([ctx.policy(), readGroups(groups, named, maxAgeMs)]);
    named = groupsOf(policy);
    const more = await readGroups(
      groups,
      named.filter((id) => !known.has(id)),
      maxAgeMs,
    );
    return { policy, members: new Map([...known, ...more]) };
  };
}

/**
 * Every id under which this human is known here: in an organisation the enterprise's id, and those of their accounts that were
 * ever read. A filer is read when they file, so that their other account does not pass for somebody else.
 */
async function idsOf(db: Db, person: Profile): Promise<readonly string[]> {
  const { id, enterpriseUserId, enterpriseId } = person;
  if (enterpriseUserId === null) return [id];
  const accounts = await db.sql<{ id: string }>(
    "slack.directory.accounts",
    `SELECT id FROM slack_people
      WHERE profile->>'enterpriseUserId' = $1 AND profile->>'enterpriseId' IS NOT DISTINCT FROM $2 ORDER BY id`,
    [enterpriseUserId, enterpriseId],
  );
  return [...new Set([id, enterpriseUserId, ...accounts.map((account) => account.id)])];
}

function personKeyOf(person: Profile): string {
  return person.enterpriseUserId === null
    ? `${person.teamId}:${person.id}`
    : `${person.enterpriseId ?? "enterprise"}:${person.enterpriseUserId}`;
}

/** How old each group's reading is, for the record. */
function withAges(
  evidence: Readonly<Record<string, string>>,
  members: ReadonlyMap<string, Reading<readonly string[]>>,
): Person["roleEvidence"] {
  return Object.fromEntries(
    Object.entries(evidence).map(([role, from]) => {
      const group = members.get(from.replace(/^user group /u, ""));
      return group?.ok === true
        ? [role, `${from} (${group.value.length} members, read ${group.at.toISOString()})`]
        : [role, from];
    }),
  );
}

function oldest(first: Date, members: ReadonlyMap<string, Reading<readonly string[]>>): Date {
  const times = [...members.values()].flatMap((reading) => (reading.ok ? [reading.at.getTime()] : []));
  return new Date(Math.min(first.getTime(), ...times));
}

async function readMembers(
  ctx: DirectoryContext,
  groups: Source<readonly string[]>,
  role: string,
  maxAgeMs: number,
): ReturnType<Directory["members"]> {
  const members = (await ctx.policy()).roles[role];
  if (members === undefined) return { ok: true, userIds: [] };
  const readings = await readGroups(groups, members.usergroups, maxAgeMs);
  const userIds = new Set(members.users);
  for (const reading of readings.values()) {
    if (!reading.ok) return { ok: false, reason: reading.reason };
    for (const user of reading.value) userIds.add(user);
  }
  return { ok: true, userIds: [...userIds] };
}

const groupsOf = (policy: Policy): readonly string[] => [
  ...new Set(Object.values(policy.roles).flatMap((role) => role.usergroups)),
];

async function readGroups(
  groups: Source<readonly string[]>,
  ids: readonly string[],
  maxAgeMs: number,
): Promise<ReadonlyMap<string, Reading<readonly string[]>>> {
  const readings = await Promise.all(ids.map(async (id) => [id, await groups.read(id, maxAgeMs)] as const));
  return new Map(readings);
}

async function readIdentity(
  ctx: DirectoryContext,
): Promise<{ ok: true; value: SlackIdentity } | { ok: false; reason: string }> {
  try {
    return { ok: true, value: await ctx.web.identity() };
  } catch (error) {
    return { ok: false, reason: reasonOf(error) };
  }
}

async function askProfile(ctx: DirectoryContext, id: string): Promise<Profile> {
  const { user } = await ctx.web.reads.users.info({ user: id });
  return profileOf(user, id);
}

async function askGroup(ctx: DirectoryContext, id: string): Promise<readonly string[]> {
  try {
    const identity = await ctx.web.identity();
    const { users } = await ctx.web.reads.usergroups.users.list({
      usergroup: id,
      ...(identity.isEnterpriseInstall ? { team_id: identity.teamId } : {}),
    });
    return users ?? [];
  } catch (error) {
    const failure = callFailure(error);
    // A group that is not there has no members: an answer, not a failure to read.
    if (failure.kind === "refused" && failure.code === "no_such_subteam") return [];
    throw error;
  }
}

interface Table<T> {
  readonly name: string;
  readonly select: string;
  readonly upsert: string;
  readonly toRow: (value: T) => unknown;
  readonly fromRow: (stored: unknown) => T;
  /** Somebody else's standing may depend on this row for ever: whoever asked goes on only when it is stored. */
  readonly mustLast: (value: T) => boolean;
}

/** $1 id, $2 how old it may be. One row: what is fresh enough, or nothing, and the time before it is asked for. */
const freshOf = (table: string, value: string): string =>
  `SELECT c.now, t.${value} AS value, t.fetched_at FROM (SELECT countersign_now() AS now) c LEFT JOIN ${table} t
     ON t.id = $1 AND t.fetched_at >= c.now - make_interval(secs => $2 / 1000.0) AND t.fetched_at <= c.now`;

const PEOPLE: Table<Profile> = {
  name: "people",
  select: freshOf("slack_people", "profile"),
  upsert: `INSERT INTO slack_people AS t (id, profile, fetched_at) VALUES ($1, $2::jsonb, $3)
    ON CONFLICT (id) DO UPDATE SET profile = excluded.profile, fetched_at = excluded.fetched_at
    WHERE t.fetched_at < excluded.fetched_at OR t.fetched_at > countersign_now()`,
  toRow: (value) => JSON.stringify(value),
  fromRow: (stored) => stored as Profile,
  // By it their other accounts are known for the same person (see `idsOf`).
  mustLast: ({ enterpriseUserId }) => enterpriseUserId !== null,
};

const GROUPS: Table<readonly string[]> = {
  name: "groups",
  select: freshOf("slack_groups", "members"),
  upsert: `INSERT INTO slack_groups AS t (id, members, fetched_at) VALUES ($1, $2, $3)
    ON CONFLICT (id) DO UPDATE SET members = excluded.members, fetched_at = excluded.fetched_at
    WHERE t.fetched_at < excluded.fetched_at OR t.fetched_at > countersign_now()`,
  toRow: (value) => [...value],
  fromRow: (stored) => stored as string[],
  mustLast: () => false,
};

interface Asking<T> {
  /** The database's time before the question. */
  readonly at: Date;
  readonly answer: Promise<Reading<T>>;
}

/** One kind of question to Slack, with its answers kept in the database for all processes. */
class Source<T> {
  readonly #ctx: DirectoryContext;
  readonly #table: Table<T>;
  readonly #ask: (id: string) => Promise<T>;
  /** Questions whose answers are not stored yet: whoever asks meanwhile gets the same one, if it was asked late enough for them. */
  readonly #asking = new Map<string, Asking<T>>();
  /** Slack said Retry-After: not asked again before. */
  #quietUntilMs = 0;

  constructor(ctx: DirectoryContext, table: Table<T>, ask: (id: string) => Promise<T>) {
    this.#ctx = ctx;
    this.#table = table;
    this.#ask = ask;
  }

  async read(id: string, maxAgeMs: number): Promise<Reading<T>> {
    const { db, clock } = this.#ctx;
    const [row] = await db.sql<{ now: Date; value: unknown; fetched_at: Date | null }>(
      `slack.directory.${this.#table.name}`,
      this.#table.select,
      [id, maxAgeMs],
    );
    if (row === undefined) throw new Error("the database did not tell the time");
    const { now, value, fetched_at: at } = row;
    if (at !== null) return { ok: true, value: this.#table.fromRow(value), at };
    const known = this.#asking.get(id);
    if (known !== undefined && now.getTime() - known.at.getTime() <= maxAgeMs) return known.answer;
    if (clock.now().getTime() < this.#quietUntilMs) return { ok: false, reason: "Slack asked us to wait" };
    const asking: Asking<T> = { at: now, answer: this.#fetch(id, now, () => this.#asked(id, asking)) };
    this.#asking.set(id, asking);
    return asking.answer;
  }

  #asked(id: string, asking: Asking<T>): void {
    if (this.#asking.get(id) === asking) this.#asking.delete(id);
  }

  /** `now`: the database's time before the question. `over`: from then on it is found in the database, or nowhere. */
  async #fetch(id: string, now: Date, over: () => void): Promise<Reading<T>> {
    const { clock, log } = this.#ctx;
    let storing: Promise<void> | undefined;
    try {
      const value = await this.#ask(id);
      storing = this.#store(id, value, now);
      if (this.#table.mustLast(value)) await storing;
      return { ok: true, value, at: now };
    } catch (error) {
      const failure = callFailure(error);
      if (failure.kind === "rate_limited") this.#quietUntilMs = clock.now().getTime() + failure.retryAfterMs;
      const reason = reasonOf(error);
      log.warn({ what: this.#table.name, id, reason }, "Slack could not be asked about people");
      return { ok: false, reason };
    } finally {
      // Until it is stored, whoever asks gets this answer and does not ask Slack.
      storing?.then(over, (error: unknown) => {
        over();
        log.warn({ what: this.#table.name, id, error: String(error) }, "an answer about people was not kept");
      });
      if (storing === undefined) over();
    }
  }

  async #store(id: string, value: T, at: Date): Promise<void> {
    await this.#ctx.db.sql(`slack.directory.${this.#table.name}.put`, this.#table.upsert, [
      id,
      this.#table.toRow(value),
      at,
    ]);
  }
}

function reasonOf(error: unknown): string {
  const failure = callFailure(error);
  switch (failure.kind) {
    case "rate_limited":
      return "Slack asked us to wait";
    case "refused":
      return `Slack answered ${failure.code}`;
    case "unknown":
      return `Slack did not answer (${failure.detail})`;
  }
}
