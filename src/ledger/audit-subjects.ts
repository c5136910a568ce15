/** Verifying the chains of what is no operation, and that the rows they tell of stand as their events say. */
import type { SqlRunner } from "../db/connect.js";
import { utcMicros } from "../db/connect.js";
import type { Json, JsonObject } from "../domain/json.js";
import { type ChainedEvent, chainProblems, parseBody } from "./audit-check.js";
import { SUBJECT_EVENTS } from "./subject-events.js";
import type { BrokenLink } from "./types.js";

interface HeadRow {
  subject: string;
  event_count: number | null;
  head_hash: string | null;
  event_id: bigint | null;
  seq: number;
  at_text: string;
  type: string;
  actor: string;
  body: string;
  prev_hash: string;
  hash: string;
}

/** $1 last subject seen, $2 subjects. Heads with their events, and events whose head is gone. */
const CHAINS = `
SELECT s.subject, h.event_count, h.head_hash, e.id AS event_id, e.seq, ${utcMicros("e.at")} AS at_text, e.type, e.actor, e.body,
       e.prev_hash, e.hash
FROM (
  (SELECT subject FROM audit_heads WHERE subject > $1 ORDER BY subject LIMIT $2::int)
  UNION (
    SELECT DISTINCT subject FROM operation_events WHERE subject IS NOT NULL AND subject > $1 ORDER BY subject LIMIT $2::int)
  ORDER BY subject LIMIT $2::int
) s LEFT JOIN audit_heads h ON h.subject = s.subject LEFT JOIN operation_events e ON e.subject = s.subject
ORDER BY s.subject, e.seq`;

/** $1 subject. */
const CHAIN = `
SELECT s.subject, h.event_count, h.head_hash, e.id AS event_id, e.seq, ${utcMicros("e.at")} AS at_text, e.type, e.actor, e.body,
       e.prev_hash, e.hash
FROM (SELECT $1::text AS subject) s LEFT JOIN audit_heads h ON h.subject = s.subject LEFT JOIN operation_events e ON e.subject = s.subject
ORDER BY e.seq`;

const SUBJECTS_AT_A_TIME = 500;

/** What the last event of a subject says, for comparing with its row. */
interface Told {
  readonly first: { readonly type: string; readonly data: JsonObject } | null;
  readonly last: { readonly type: string; readonly data: JsonObject } | null;
  readonly types: readonly string[];
}

/** Checks every chain and its row; returns how many events there were. */
export async function checkSubjects(db: SqlRunner, broken: BrokenLink[]): Promise<number> {
  const told = new Map<string, Told>();
  let events = 0;
  for (let after = ""; ; ) {
    const rows = await db.sql<HeadRow>("ledger.audit_subjects", CHAINS, [after, SUBJECTS_AT_A_TIME]);
    if (rows.length === 0) break;
    for (const [subject, chain] of bySubject(rows)) {
      after = subject;
      events += chain.filter((row) => row.event_id !== null).length;
      told.set(subject, checkChain(subject, chain, broken));
    }
  }
  await checkRows(db, told, broken);
  return events;
}

/** What does not hold of one subject's chain, a sentence each. One that the log never told of has none. */
export async function chainOfSubject(on: SqlRunner, subject: string): Promise<string[]> {
  const rows = await on.sql<HeadRow>("ledger.audit_subject", CHAIN, [subject]);
  if (rows.every(({ event_id, event_count }) => event_id === null && event_count === null)) return [];
  const broken: BrokenLink[] = [];
  checkChain(subject, rows, broken);
  return broken.map(({ problem }) => problem);
}

function bySubject(rows: readonly HeadRow[]): Map<string, HeadRow[]> {
  const groups = new Map<string, HeadRow[]>();
  for (const row of rows) groups.set(row.subject, [...(groups.get(row.subject) ?? []), row]);
  return groups;
}

function checkChain(subject: string, rows: readonly HeadRow[], broken: BrokenLink[]): Told {
  const events = rows.flatMap((row): ChainedEvent[] =>
    row.event_id === null
      ? []
      : [
          {
            id: row.event_id,
            seq: row.seq,
            body: row.body,
            prevHash: row.prev_hash,
            hash: row.hash,
            columns: { actor: row.actor, at: row.at_text, seq: row.seq, subject, type: row.type },
          },
        ],
  );
  let previous: ChainedEvent | null = null;
  for (const event of events) {
    const type = String(event.columns["type"]);
    const known = (SUBJECT_EVENTS as readonly string[]).includes(type) ? [] : [`${type} is no event of ours`];
    for (const problem of [...chainProblems(event, previous), ...known]) {
      broken.push({ what: "event", where: String(event.id), operationId: null, seq: event.seq, problem });
    }
    previous = event;
  }
  const head = rows[0];
  const last = events.at(-1);
  const say = (problem: string): void => {
    broken.push({ what: "subject", where: subject, operationId: null, seq: null, problem });
  };
  if (head?.event_count === null) say("its head is gone");
  else if (last === undefined) say("it has no event");
  else {
    if (head?.event_count !== last.seq) say(`it counts ${head?.event_count} events, ${last.seq} are there`);
    if (head?.head_hash !== last.hash) say("its head is not the hash of its last event");
  }
  return {
    first: said(events[0]),
    last: said(last),
    types: events.map(({ columns }) => String(columns["type"])),
  };
}

function said(event: ChainedEvent | undefined): Told["first"] {
  if (event === undefined) return null;
  const data: Json | undefined = parseBody(event.body)?.["data"];
  const isObject = data !== undefined && data !== null && typeof data === "object" && !Array.isArray(data);
  return { type: String(event.columns["type"]), data: isObject ? data : {} };
}

interface IncidentRow {
  id: string;
  kind: string;
  dedupe_key: string;
  status: string;
}

async function checkRows(
  db: SqlRunner,
  told: ReadonlyMap<string, Told>,
  broken: BrokenLink[],
): Promise<void> {
  const say = (where: string, problem: string): void => {
    broken.push({ what: "subject", where, operationId: null, seq: null, problem });
  };
  const incidents = await db.sql<IncidentRow>(
    "ledger.audit_incidents",
    "SELECT id, kind, dedupe_key, status FROM incidents ORDER BY id",
  );
  const there = new Set<string>();
  for (const incident of incidents) {
    const subject = `incident:${incident.id}`;
    there.add(subject);
    const chain = told.get(subject);
    if (chain?.first?.type !== "incident_opened") {
      say(subject, "no event opened it");
      continue;
    }
    const { kind, dedupeKey } = chain.first.data;
    if (kind !== incident.kind || dedupeKey !== incident.dedupe_key)
      say(subject, "it is not what was opened");
    const status = chain.last?.type === "incident_closed" ? "closed" : "open";
    if (status !== incident.status) say(subject, `it is ${incident.status}, its events say ${status}`);
  }
  const switches = await db.sql<{ kind: string; frozen: boolean }>(
    "ledger.audit_switches",
    "SELECT kind, frozen FROM freeze_switches ORDER BY kind",
  );
  for (const { kind, frozen } of switches) {
    const turned = told.get(`freeze:${kind}`)?.types.findLast((type) => type === "freeze" || type === "thaw");
    if (frozen !== (turned === "freeze")) {
      say(`freeze:${kind}`, `it is ${frozen ? "frozen" : "not frozen"}, its events say otherwise`);
    }
  }
  for (const subject of told.keys()) {
    if (subject.startsWith("freeze:") && !switches.some(({ kind }) => subject === `freeze:${kind}`))
      say(subject, "the switch is gone");
  }
  const [active] = await db.sql<{ hash: string }>("ledger.audit_policy", "SELECT hash FROM active_policy");
  const policy = told.get("policy")?.last?.data["policy"];
  if (policy !== undefined && policy !== active?.hash) {
    say("policy", `the active policy is ${active?.hash ?? "gone"}, its events say ${String(policy)}`);
  }
  for (const subject of told.keys()) {
    if (subject.startsWith("incident:") && !there.has(subject)) say(subject, "the incident is gone");
  }
}
