/** A share of the oracle replay; all of it by `countersign evaluate --oracle`. Left out where the retail tasks are not beside the checkout. */
import path from "node:path";
import { describe, expect, test } from "vitest";
import { replayOracle } from "../../src/evaluation/index.js";
import { withDatabase } from "../support/database.js";
import { handedFile } from "../support/handed.js";
import { deskPorts, withProviderDatabase } from "./support.js";

const database = withDatabase({ reset: "never" });
const provider = withProviderDatabase();
const tasks = handedFile("tau", "tasks.json");
/** Of 138 tasks and 500 customers. */
const EVERY = 6;

describe("the known effects of a retail shop's tasks", () => {
  test.skipIf(tasks === null)(
    "are made once each and to the cent; what must not happen never reaches the provider (left out where the tasks are not beside the checkout)",
    { timeout: 300_000 },
    async () => {
      const report = await replayOracle({
        ports: deskPorts(database),
        providerUrl: provider.url,
        dir: path.dirname(tasks ?? ""),
        every: EVERY,
      });
      expect(report.wrong).toEqual([]);
      expect(report.tasks).toBe(23);
      expect(report.effects).toBeGreaterThanOrEqual(report.tasks);
      expect(report.refundedCents).toBeGreaterThan(0);
      const { mustNot } = report;
      expect(mustNot.happened).toEqual([]);
      expect(mustNot.refused + mustNot.held + mustNot.repeated).toBe(mustNot.proposed);
      expect(mustNot.proposed).toBeGreaterThan(200);
      expect(report.right).toBe(true);
    },
  );
});
