/** A policy that is made the active one while a turn is decided: the turn ends under the one that answered, and the log says so. */
import { expect, test } from "vitest";
import type { Tx } from "../../src/db/connect.js";
import type { Judge } from "../../src/domain/ports/judge.js";
import * as ledger from "../../src/ledger/index.js";
import { activatePolicy, makeJudge, readPolicyText } from "../../src/policy/index.js";
import { withDatabase } from "../support/database.js";
import { OPEN_POLICY, putRun, refund, SEALS } from "../support/ledger-world.js";
import { waitFor } from "../support/wait.js";
import { openShop } from "./scene.js";

const database = withDatabase({ poolSize: 6 });
const SOME_HELD = OPEN_POLICY.replace("auto: { GBP: 100000", "auto: { GBP: 3000");

const activate = (text: string) =>
  activatePolicy(database.db, readPolicyText(text, "test.yaml"), ledger.recordPolicyActivated(SEALS));
/** Whether the activation waits for the turn. */
const waits = async (): Promise<boolean> =>
  (
    await database.db.sql(
      undefined,
      "SELECT 1 FROM pg_stat_activity WHERE query LIKE '%INTO active_policy%' AND cardinality(pg_blocking_pids(pid)) > 0",
    )
  ).length === 1;

test.each([
  ["of which the first is allowed", [2_000n, 4_000n]],
  ["of which the last is allowed", [4_000n, 2_000n]],
  ["of which none is allowed", [4_000n, 4_500n]],
  ["of which some are allowed between", [4_000n, 1_000n, 1_500n]],
])("a turn %s is held under the policy that answered", async (_which, amounts) => {
  const ctx = await openShop(database.db, { policy: SOME_HELD });
  await activate(SOME_HELD);
  const run = await putRun(ctx.db);
  let [done, begun] = [false, null as Promise<unknown> | null];
  const real = makeJudge();
  const judge: Judge<Tx> = {
    plan: (tx, subject) => real.plan(tx, subject),
    judge: async (tx, subject) => {
      const judgement = await real.judge(tx, subject);
      begun ??= activate(OPEN_POLICY).then(() => {
        done = true;
      });
      await waitFor(waits);
      return judgement;
    },
  };
  const calls = amounts.map((amount) => refund(run, amount));
  const answers = await ctx.db.tx((tx) => {
    // What is rolled back must not let the activation pass.
    const sql: Tx["sql"] = async <R>(name: string | undefined, text: string, params?: readonly unknown[]) => {
      const rows = await tx.sql<R>(name, text, params);
      if (text.startsWith("ROLLBACK TO")) await waitFor(async () => done || (await waits()));
      return rows;
    };
    return ledger.prepareTurn({ ...tx, sql }, ctx, {
      calls: calls.map((proposal) => ({ callId: proposal.callId, proposal })),
      judge,
      onHold: async () => {},
    });
  });
  await begun;
  expect(answers.filter(({ outcome }) => outcome === "held").length).toBe(
    amounts.filter((amount) => amount > 3_000n).length,
  );
  expect((await ledger.verifyAudit(ctx.db)).broken).toEqual([]);
});
