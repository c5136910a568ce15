/** Every table has one room that writes it, and whoever writes a status says which status, version or token it expects. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { next, OPERATION_STATUSES, type OperationEventType } from "../../src/domain/operation.js";
import { parse, productFiles, ROOT, type SourceFile, texts } from "./source.js";

/** Table → rooms that may write it. Two rooms only where the design divides one row between them. */
const WRITERS: Readonly<Record<string, readonly string[]>> = {
  clock_offset: ["db"],
  customers: ["shop"],
  orders: ["shop"],
  order_items: ["shop"],
  shipments: ["shop"],
  subscriptions: ["shop"],
  help_articles: ["shop"],
  payments: ["shop", "ledger"], // captured is the shop's; reserved and refunded are the ledger's
  policy_versions: ["policy"],
  active_policy: ["policy"],
  tickets: ["runs"],
  runs: ["runs"],
  turns: ["runs"],
  tool_calls: ["runs"],
  run_notes: ["runs"],
  spend_days: ["runs"],
  operation_transitions: [],
  operations: ["ledger"],
  operation_waiters: ["ledger"],
  attempts: ["ledger"],
  operation_events: ["ledger"],
  audit_blocks: ["ledger"],
  audit_subjects: ["ledger"],
  audit_heads: ["ledger"],
  total_scopes: ["ledger"],
  total_entries: ["ledger"],
  total_buckets: [], // a trigger on total_entries
  provider_evidence: ["ledger"],
  provider_webhooks: ["dispatch"],
  incidents: ["ledger"],
  freeze_switches: ["ledger"],
  resolutions: ["ledger"],
  approval_transitions: [],
  approvals: ["approvals"],
  votes: ["approvals"],
  slack_inbox: ["slack"],
  slack_cards: ["slack"],
  slack_outbox: ["slack"],
  slack_people: ["slack"],
  slack_groups: ["slack"],
  slack_pace: ["slack"],
};

/**
 * Places with databases of their own: the sandboxes, whose tables only share a name with ours, and the benchmarks, which fill what
 * they throw away.
 */
const FOREIGN = /^src\/(sandbox|evaluation\/bench)\//;

const roomOf = (path: string): string => path.split("/")[1] ?? "";
const WRITE = /\b(?:INSERT\s+INTO|UPDATE|DELETE\s+FROM|TRUNCATE)\s+(?:ONLY\s+)?([a-z_]+)\b/g;

function writesOf(
  file: SourceFile,
): readonly { readonly table: string; readonly line: number; readonly text: string }[] {
  if (FOREIGN.test(file.path)) return [];
  return texts(file).flatMap(({ text, line }) =>
    [...text.matchAll(WRITE)]
      .map((match) => match[1] ?? "")
      .filter((table) => table in WRITERS)
      .map((table) => ({ table, line, text })),
  );
}

const trespasses = (files: readonly SourceFile[]): readonly string[] =>
  files.flatMap((file) =>
    writesOf(file)
      .filter(({ table }) => WRITERS[table]?.includes(roomOf(file.path)) !== true)
      .map(({ table, line }) => `${file.path}:${line} writes ${table}`),
  );

/** Statements that set a status without naming, outside the SET list, the status, version or token that they expect. */
function unguarded(files: readonly SourceFile[]): readonly string[] {
  return files
    .filter((file) => !FOREIGN.test(file.path))
    .flatMap((file) =>
      texts(file)
        .filter(({ text }) => setsStatus(text) && !isGuarded(text))
        .map(({ line }) => `${file.path}:${line}`),
    );
}

const SET_LIST =
  /\bUPDATE\s+[a-z_]+(?:\s+(?:AS\s+)?[a-z]+)?\s+SET\b([\s\S]*?)(?=\bFROM\b|\bWHERE\b|\bRETURNING\b|$)/g;
const setsStatus = (text: string): boolean =>
  [...text.matchAll(SET_LIST)].some((match) => /(?:^|,|\s)(?:status|state)\s*=/.test(match[1] ?? ""));
const isGuarded = (text: string): boolean =>
  /\b(?:status|state|version|lease_token)\s*(?:=|<>|IN\b|IS\s+NOT\s+DISTINCT)/.test(
    text.replaceAll(SET_LIST, " "),
  );

describe("tables", () => {
  it("each is known here", () => {
    const folder = join(ROOT, "prisma/migrations");
    const migrations = readdirSync(folder, { withFileTypes: true })
      .filter((entry) => entry.isDirectory())
      .map(({ name }) => readFileSync(join(folder, name, "migration.sql"), "utf8"))
      .join("\n");
    const tables = [...migrations.matchAll(/^CREATE TABLE ([a-z_]+)/gm)].map((match) => match[1]);
    expect(tables.length).toBeGreaterThan(30);
    expect(Object.keys(WRITERS).sort()).toEqual([...tables].sort());
  });

  it("each is written only by its room", () => {
    const files = productFiles();
    expect(files.flatMap(writesOf).length).toBeGreaterThan(60);
    expect(trespasses(files)).toEqual([]);
  });

  it("the rule sees a planted trespasser", () => {
    const planted = parse(
      "src/slack/planted.ts",
      "const a = `UPDATE operations SET status = 'CONFIRMED'`; const b = \"DELETE FROM votes\";",
    );
    expect(trespasses([planted])).toHaveLength(2);
  });
});

/** Files with a statement that sets an operation's status. */
const movers = (files: readonly SourceFile[]): readonly string[] => [
  ...new Set(
    files
      .filter((file) => !FOREIGN.test(file.path))
      .filter((file) =>
        texts(file).some(({ text }) => /\bUPDATE\s+operations\b/.test(text) && setsStatus(text)),
      )
      .map(({ path }) => path),
  ),
];

describe("an operation's status", () => {
  it("is written by the transition and by the claim, which leads to DISPATCHED alone: so CONFIRMED has one place", () => {
    expect(movers(productFiles())).toEqual(["src/ledger/claim-sql.ts", "src/ledger/transition.ts"]);
    const claims: readonly OperationEventType[] = ["claim", "resend"];
    const leadsTo = OPERATION_STATUSES.flatMap((from) =>
      claims.map((event) => next(from, event)).flatMap((step) => (step.legal ? [step.to] : [])),
    );
    expect(new Set(leadsTo)).toEqual(new Set(["DISPATCHED"]));
  });

  it("the rule sees a planted writer", () => {
    const planted = parse(
      "src/ledger/planted.ts",
      "const a = `UPDATE operations o SET updated_at = now(), status = $2 WHERE o.id = $1 AND o.version = $3`",
    );
    expect(movers([planted])).toEqual(["src/ledger/planted.ts"]);
  });
});

describe("writes to a status", () => {
  it("name the status, version or token that they expect", () => {
    expect(unguarded(productFiles())).toEqual([]);
  });

  it("the rule sees a planted blind write, and passes a guarded one", () => {
    const blind = parse(
      "src/runs/a.ts",
      "const a = `UPDATE runs r SET state = $2, version = r.version + 1 WHERE r.id = $1`",
    );
    const guarded = parse(
      "src/runs/b.ts",
      "const b = `UPDATE runs SET state = $2 WHERE id = $1 AND state = $3`",
    );
    expect(unguarded([blind])).toHaveLength(1);
    expect(unguarded([guarded])).toEqual([]);
  });
});
