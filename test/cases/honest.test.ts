/**
 * Everything that honest people and machines do, at once: what the log is asked before anything is sent never stops one of them.
 * Policies that change back and forth, freezes, undo, late denials, lost answers, people who are erased, two workers and the sealer.
 */
import { expect, it } from "vitest";
import { undo } from "../../src/approvals/index.js";
import { type Db, openDb } from "../../src/db/connect.js";
import type { OperationId } from "../../src/domain/ids.js";
import { eraseSubject, freeze, recordPolicyActivated, sealBlocks, thaw } from "../../src/ledger/index.js";
import { activatePolicy, readPolicyText } from "../../src/policy/index.js";
import { type Held, POLICY } from "../approvals/harness.js";
import { withPaymentsSandbox } from "../payments/support.js";
import { withDatabase } from "../support/database.js";
import { SEALS } from "../support/ledger-world.js";
import { waitFor } from "../support/wait.js";
import { type CaseWorld, withCaseWorld } from "./case-world.js";

const database = withDatabase({ poolSize: 12 });
const build = withCaseWorld(withPaymentsSandbox());
/** More by hand: HONEST_TICKETS=600 HONEST_SEED=… npx vitest run test/cases/honest.test.ts */
const TICKETS = Number(process.env["HONEST_TICKETS"] ?? 60);
const SEED = Number(process.env["HONEST_SEED"] ?? 7);
const ORDERS = 60;
const AT_ONCE = 8;
const MINUTE_MS = 60_000;
/** The same rules under another hash, and one that lets what was approved cool off. */
const POLICIES = [
  POLICY,
  POLICY.replace("remindAfterMinutes: [30, 240]", "remindAfterMinutes: [31, 240]"),
  POLICY.replace("totals: []", "coolingOffMinutes: { GBP: { above: 10000, minutes: 10 } }"),
];

/** Numbers that look random and are the same for the same seed. */
function randomOf(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

/** Again and again until stopped; the first failure is the end. */
function forever(step: () => Promise<unknown>): () => Promise<void> {
  let going = true;
  const running = (async () => {
    while (going) {
      await step();
      await new Promise((done) => setImmediate(done));
    }
  })();
  return async () => {
    going = false;
    await running;
  };
}

async function onePerson(w: CaseWorld, below: (n: number) => number): Promise<void> {
  const order = `ORD-${1 + below(ORDERS)}`;
  const filer = `U_AGENT${below(5)}`;
  const ticket = await w.h.ticket({ customer: "CUS-7", filers: [filer] });
  const amounts = [1_000n, 2_500n, 6_000n, 12_000n, 18_000n, 60_000n] as const;
  const amount = (amounts[below(amounts.length)] ?? 1_000n) + BigInt(below(50));
  const writes = [{ order, amount }];
  if (below(4) === 0) writes.push({ order: `ORD-${1 + below(ORDERS)}`, amount: 7_000n + BigInt(below(900)) });
  const held: Held = await w.h.turn(ticket, writes);
  for (const approval of held.approvals) {
    const role = approval.role === "finance" ? ["U_FIN1", "U_FIN2"] : ["U_SUP1"];
    if (below(6) === 0) {
      await w.h.click(role[0] ?? "", approval, "deny");
      continue;
    }
    for (const who of role) await w.h.click(who, approval);
  }
  if (held.approvals.length === 0) return;
  await w.h.release(held);
  for (const approval of held.approvals) {
    const then = below(5);
    if (then === 0) await undo(w.h.ctx, { approvalId: approval.id, userId: "U_SUP1" });
    if (then === 1) await w.h.click("U_SUP2", approval, "deny");
  }
}

const openIds = async (db: Db): Promise<OperationId[]> =>
  (
    await db.sql<{ id: OperationId }>(
      undefined,
      "SELECT id FROM operations WHERE status IN ('PREPARED','DISPATCHED','OUTCOME_UNKNOWN','RECONCILING') ORDER BY id",
    )
  ).map(({ id }) => id);

it("whatever they do at once, nobody is told that a row was changed, and what was made is what the ledger says", async () => {
  const below = randomOf(SEED);
  const w = await build(database.db);
  for (let n = 1; n <= ORDERS; n += 1) await w.order({ ref: `ORD-${n}`, captured: 2_000_000 });
  const other = openDb({ url: database.url, applicationName: "test-other", poolSize: 6 });
  const activate = (text: string) =>
    activatePolicy(database.db, readPolicyText(text, "policy.yaml"), recordPolicyActivated(SEALS));
  try {
    const ledger = w.h.ctx.ledger;
    const workers = [w.worker("one"), w.worker("two", other)].map((worker) =>
      forever(async () => {
        for (const id of await openIds(database.db)) await w.look(worker, id);
      }),
    );
    const stops = [
      ...workers,
      forever(() => sealBlocks(database.db)),
      forever(async () => {
        await freeze(ledger, { kind: "refund", by: "U_ONC1", reason: "a look" });
        await thaw(ledger, { kind: "refund", by: "U_ONC1" });
      }),
      forever(() => eraseSubject(other, `U_AGENT${below(5)}`)),
      forever(() => w.advance(1_000)),
      forever(async () => {
        const kinds = ["commit_then_drop", "drop_before_commit", "rate_limited"] as const;
        w.control.arm({ kind: kinds[below(3)] ?? "commit_then_drop" });
        await w.advance(50);
      }),
    ];
    const people = Array.from({ length: AT_ONCE }, async (_each, at) => {
      for (let n = at; n < TICKETS; n += AT_ONCE) {
        if (below(3) === 0) {
          const next = POLICIES[below(POLICIES.length)] ?? POLICY;
          await Promise.all([activate(next), activate(next)]);
        }
        await onePerson(w, below);
      }
    });
    await Promise.all(people);
    await Promise.all(stops.map((stop) => stop()));
    w.control.disarmAll();
    await activate(POLICY);
    await w.advance(60 * MINUTE_MS);
    await waitFor(
      async () => {
        for (const id of await openIds(database.db)) await w.look(w.worker("last"), id);
        await w.advance(16 * MINUTE_MS);
        return (await openIds(database.db)).length === 0;
      },
      { timeoutMs: 120_000 },
    );
    await w.intact();
    const count = await database.db.sql<{ status: string; n: number }>(
      undefined,
      "SELECT status, count(*)::int AS n FROM operations GROUP BY 1 ORDER BY 1",
    );
    expect(
      await database.db.sql(undefined, "SELECT kind, detail FROM incidents WHERE kind = 'row_changed'"),
    ).toEqual([]);
    const made = await w.committed();
    const of = (status: string): number => count.find((row) => row.status === status)?.n ?? 0;
    expect(made).toBeGreaterThanOrEqual(of("CONFIRMED"));
    expect(made).toBeLessThanOrEqual(of("CONFIRMED") + of("QUARANTINED"));
  } finally {
    await other.close();
  }
}, 400_000);
