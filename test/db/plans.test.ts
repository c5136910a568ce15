/**
 * Every statement of the scans, lists and readings has an index for every table that grows. Plans are kept, so this is asked of the
 * plan that does not look at parameters.
 */
import pg from "pg";
import { expect, it } from "vitest";
import { systemClock, systemIds } from "../../src/app/system.js";
import { attendDue, getApproval, listPending } from "../../src/approvals/index.js";
import { PLAN_ONCE } from "../../src/db/connect.js";
import { dueWebhooks } from "../../src/dispatch/index.js";
import type { SqlRunner } from "../../src/domain/ports/database.js";
import { providerContract } from "../../src/evaluation/faults/contracts.js";
import { inProcessProduct } from "../../src/evaluation/product.js";
import { anothersEffect } from "../../src/ledger/anothers-effect.js";
import { isShortSince } from "../../src/ledger/audit-blocks.js";
import { chainOfSubject } from "../../src/ledger/audit-subjects.js";
import { releaseOf } from "../../src/ledger/authority-release.js";
import { endedAmong } from "../../src/ledger/elsewhere.js";
import {
  authorityOf,
  dueOperations,
  dueToTake,
  eventsOf,
  evidenceOf,
  findIncidents,
  getOperation,
  listIncidents,
  listOperations,
  liveOn,
  openCounts,
  openIncidentsOf,
  recordElsewhere,
  storyOf,
  waitersOf,
  wordOf,
} from "../../src/ledger/index.js";
import { findOperation } from "../../src/ops/find.js";
import { createPayments } from "../../src/payments/index.js";
import { remindForgotten } from "../../src/reconcile/index.js";
import { missingWords } from "../../src/reconcile/missing-words.js";
import { noteShownAgain } from "../../src/reconcile/shown-again.js";
import { dueRuns, listRuns, makeForgottenRunsDue, viewRun } from "../../src/runs/index.js";
import { verifyRun } from "../../src/runs/verify.js";
import { findOrder, getCustomer, ordersOf, subscriptionsOf } from "../../src/shop/index.js";
import { dueArrivals } from "../../src/slack/inbox/store.js";
import { followWorld } from "../../src/slack/index.js";
import { createNotices } from "../../src/slack/notices.js";
import { dueCards } from "../../src/slack/outbox/card.js";
import { dueOutbox } from "../../src/slack/outbox/send.js";
import { readIncident, readQuarantine } from "../../src/slack/views/ops.js";
import { load, oneOrder } from "../shop/shop-context.js";
import { withDatabase } from "../support/database.js";
import {
  foreignRefund,
  ledgerWorld,
  OPEN_POLICY,
  putRun,
  SEALS,
  usePolicy,
} from "../support/ledger-world.js";

const database = withDatabase();
/** Of one row, or of a handful that never grows. */
const SMALL = [
  "clock_offset",
  "active_policy",
  "freeze_switches",
  "policy_versions",
  "_prisma_migrations",
  "operation_transitions",
];

interface Heard {
  readonly name: string;
  readonly text: string;
  readonly params: number;
}

it("no table that grows is read as a whole", async () => {
  const { db } = database;
  await load(db, oneOrder());
  await usePolicy(db, OPEN_POLICY);
  const { runId } = await putRun(db);
  const heard: Heard[] = [];
  const listening = <R extends SqlRunner>(on: R): R => ({
    ...on,
    sql: (name: string | undefined, text: string, params?: readonly unknown[]) => {
      heard.push({ name: name ?? text, text, params: params?.length ?? 0 });
      return on.sql(name, text, params);
    },
  });
  const on = {
    ...listening(db),
    tx: ((work, options) => db.tx((tx) => work(listening(tx)), options)) as typeof db.tx,
  };
  const none = "op_none" as const;
  await dueOperations(on, { limit: 10 });
  await listOperations(on, {});
  await listOperations(on, { status: "QUARANTINED" });
  await openCounts(on);
  await getOperation(on, none);
  await eventsOf(on, none);
  await evidenceOf(on, none);
  await waitersOf(on, none);
  await liveOn(on, { kind: "refund", orderRef: "ORD-1" });
  await findIncidents(on, "inc_", { limit: 5 });
  await listIncidents(on, {});
  await recordElsewhere(
    { ...ledgerWorld(db), db: on },
    { paymentIntent: "pi_1", listed: [foreignRefund(100n, "re_else")] },
  );
  await listPending(on);
  await getApproval(on, "apr_none");
  await dueRuns(on, 10);
  await listRuns(on, {});
  await viewRun(on, runId);
  await verifyRun(on, runId, "resolved");
  await dueArrivals({ db: on }, 10);
  await dueOutbox({ db: on }, 10);
  await dueCards({ db: on }, 10);
  await dueWebhooks(on, { limit: 10 });
  await findOrder(on, "ord-1");
  await ordersOf(on, "cus");
  await subscriptionsOf(on, "cus");
  await getCustomer(on, "cus");
  await openIncidentsOf(on, none);
  await findOperation(on, "ORD-1");
  await on.tx((tx) => anothersEffect(tx, { id: none, kind: "refund" }, "re_none"));
  await storyOf(on, none);
  await wordOf(on, none);
  await endedAmong(on, [{ ref: "re_else" }]);
  await authorityOf({ db: on, seals: SEALS }, none);
  await releaseOf(on, none, "apr_none");
  await chainOfSubject(on, "approval:apr_none");
  await isShortSince(on, 1n);
  await readIncident(on, "inc_none");
  await followWorld({ db: on, wake: async () => {} });
  const notices = createNotices({
    ids: systemIds,
    wake: async () => {},
    config: { channels: { tickets: "C1", approvals: "C2", ops: "C3" } },
  });
  await on.tx((tx) => notices.switchTurned(tx, "all"));
  await readQuarantine(on, none);
  const reconciling = inProcessProduct({
    db: on,
    ids: systemIds,
    clock: systemClock,
    log: { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} },
    // Nothing is confirmed on a word, so nobody is asked.
    provider: createPayments({
      secretKey: "sk_test_plans",
      apiUrl: "http://127.0.0.1:9",
      clock: systemClock,
    }),
    verifyWebhook: () => ({ ok: false, reason: "no_signature" }),
    refundContract: providerContract("key-ttl").ledger,
    providerTimeoutMs: 1_000,
    worker: "plans",
    onCard: () => {},
  });
  await remindForgotten(reconciling, { limit: 10 });
  await dueToTake(reconciling.db, { limit: 10 });
  await makeForgottenRunsDue(on, 10);
  await attendDue({ ...reconciling.approvals, db: on }, { limit: 10 });
  await noteShownAgain(reconciling, []);
  await missingWords(reconciling, { since: new Date(0) });
  await missingWords(reconciling, { paymentIntent: "pi_1" });
  expect(heard.length).toBeGreaterThan(35);

  const client = new pg.Client({ connectionString: database.url, options: PLAN_ONCE });
  await client.connect();
  const partial = new Set(
    (
      await db.sql<{ name: string }>(
        "test.partial",
        "SELECT indexrelid::regclass::text AS name FROM pg_index WHERE indpred IS NOT NULL",
      )
    ).map(({ name }) => name),
  );
  const read: string[] = [];
  try {
    for (const { name, text, params } of heard) {
      await client.query(`PREPARE asked AS ${text}`);
      const values = params === 0 ? "" : `(${Array.from({ length: params }, () => "NULL").join(", ")})`;
      const { rows } = await client.query(`EXPLAIN (FORMAT JSON) EXECUTE asked${values}`);
      await client.query("DEALLOCATE asked");
      read.push(
        ...wholeTables((rows[0] as { "QUERY PLAN": { Plan: Plan }[] })["QUERY PLAN"][0]?.Plan, name, partial),
      );
    }
  } finally {
    await client.end();
  }
  expect(read).toEqual([]);
});

/** They read to the end before they answer. */
const KEEPS_ALL = ["Hash", "Sort", "Aggregate"];

interface Plan {
  readonly "Node Type": string;
  readonly "Relation Name"?: string;
  readonly "Index Name"?: string;
  readonly "Index Cond"?: string;
  readonly Filter?: string;
  readonly Plans?: readonly Plan[];
}

/**
 * An index that is gone through from end to end is the whole table too, for the rows that are passed over as for those that are kept to
 * be joined; unless it holds few rows only, or whoever reads it stops after some.
 */
function wholeTables(
  plan: Plan | undefined,
  name: string,
  partial: ReadonlySet<string>,
  stops = false,
): string[] {
  if (plan === undefined) return [];
  const table = plan["Relation Name"] ?? "";
  const index = plan["Index Name"];
  const whole =
    plan["Node Type"] === "Seq Scan" ||
    (index !== undefined &&
      plan["Index Cond"] === undefined &&
      (plan.Filter !== undefined || !stops) &&
      !partial.has(index));
  const below = (stops || plan["Node Type"] === "Limit") && !KEEPS_ALL.includes(plan["Node Type"]);
  return [
    ...(whole && table !== "" && !SMALL.includes(table) ? [`${name} reads all of ${table}`] : []),
    ...(plan.Plans ?? []).flatMap((part) => wholeTables(part, name, partial, below)),
  ];
}

it("what totals are bucketed is decided within the statement, not by a call with a plan of its own", async () => {
  const rows = await database.db.sql<{ "QUERY PLAN": string }>(
    undefined,
    "EXPLAIN VERBOSE SELECT total_is_bucketed(name) FROM total_scopes",
  );
  const plan = rows.map((row) => row["QUERY PLAN"]).join("\n");
  expect(plan).toContain("name ~~ 'filer:%'");
  expect(plan).not.toContain("total_is_bucketed");
});
