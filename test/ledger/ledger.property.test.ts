/**
 * Random sequences of everything that can happen to a ledger, against a provider that keeps its own books.
 *
 * Invariants: each operation takes effect at most once; reserved and refunded are what the statuses say and fit into what was
 * captured, or an incident says that they do not; an ended operation changes only by evidence; nothing is sent while frozen; in
 * the end the books agree and the audit chain recomputes.
 */
import fc from "fast-check";
import { test } from "vitest";
import { withDatabase } from "../support/database.js";
import { sequences } from "./model/commands.js";
import { Episode } from "./model/episode.js";
import { openShop } from "./scene.js";

const database = withDatabase({ reset: "never" });

/** More by hand: LEDGER_RUNS=500 LEDGER_SEED=… npx vitest run test/ledger/ledger.property.test.ts */
const RUNS = Number(process.env["LEDGER_RUNS"] ?? 30);
const SEED = process.env["LEDGER_SEED"];

test("whatever happens, in whatever order, every operation takes effect at most once and the books agree", async () => {
  await fc.assert(
    fc.asyncProperty(sequences(60), async (commands) => {
      await database.reset();
      const ctx = await openShop(database.db, {
        timing: { reconcileBaseMs: 500, reconcileMaxMs: 20_000, quarantineAfterMs: 1_800_000 },
      });
      const episode = new Episode(ctx);
      for (const command of commands) await episode.play(command);
      await episode.settleDown();
    }),
    { numRuns: RUNS, ...(SEED === undefined ? {} : { seed: Number(SEED) }), endOnFailure: false },
  );
}, 600_000);
