/**
 * Every story of the demo, as `npm run demo -- --story NAME` plays it: the product as a process, real clients on every wire,
 * judged by counting at the provider.
 */
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { playStory } from "../../src/app/demo/play.js";
import { STORIES } from "../../src/app/demo/stories/index.js";
import { withDatabases } from "./support/databases.js";

const databases = withDatabases();
const home = mkdtempSync(path.join(tmpdir(), "countersign-stories-"));
afterAll(() => rmSync(home, { recursive: true, force: true }));

/** Under HTTP with signatures too: one that pays, one whose answer is lost, one that is denied. */
const ALSO_OVER_HTTP = ["held-refund", "lost-response", "denied"];
const STORY_MS = 180_000;

/** Stories that end with nothing done say what was refused, and why. */
const REFUSED: Readonly<Record<string, RegExp>> = {
  "dispatched-order": /^- cancel_order is refused: Order A-4472 is dispatched;/,
  "other-owner": /^- cancel_order is refused: There is no order B-9001 that this ticket may touch/,
  "over-limit":
    /^- issue_refund is refused: \$330\.00 USD is above \$200\.00 USD, which the policy never allows/,
};

/** Sent once, not known how it ended, then settled by what the provider showed. */
const LOST_ANSWER = {
  operations: [
    {
      status: "CONFIRMED",
      attempts: 1,
      attemptVerdicts: [{ number: 1, verdict: "unknown" }],
      events: expect.arrayContaining([
        expect.objectContaining({ type: "claim", from: "PREPARED", to: "DISPATCHED", attempt: 1 }),
        expect.objectContaining({ type: "settle_unknown", to: "OUTCOME_UNKNOWN", attempt: 1 }),
        expect.objectContaining({ from: "OUTCOME_UNKNOWN", to: "RECONCILING" }),
        expect.objectContaining({ from: "RECONCILING", to: "CONFIRMED" }),
      ]),
    },
  ],
};

/** Returns what it told, and the trace that it wrote. */
async function play(
  name: string,
  transport: "socket" | "http",
): Promise<{ told: readonly string[]; trace: unknown }> {
  const outDir = path.join(home, `${name}-${transport}`);
  const told: string[] = [];
  const wrong = await playStory({
    name,
    outDir,
    dataDir: path.join(outDir, ".data"),
    databaseServerUrl: databases.serverUrl,
    databaseName: await databases.fresh(),
    transport,
    tell: (line) => told.push(line),
  }).catch((error: unknown) => {
    throw new Error(`${String(error)}\n${told.join("\n")}\n${lastLines(path.join(outDir, "product.log"))}`, {
      cause: error,
    });
  });
  expect(wrong, told.join("\n")).toEqual([]);
  const report: unknown = JSON.parse(readFileSync(path.join(outDir, "effect-report.json"), "utf8"));
  expect(report).toMatchObject({ scenario: name, duplicates: 0 });
  return { told, trace: JSON.parse(readFileSync(path.join(outDir, "trace.json"), "utf8")) };
}

function lastLines(file: string): string {
  try {
    return readFileSync(file, "utf8").split("\n").slice(-12).join("\n");
  } catch {
    return "the product wrote no log";
  }
}

describe("a story ends with both books saying the same", { concurrent: true }, () => {
  for (const story of STORIES) {
    it(`${story.name}: ${story.shows}`, { timeout: STORY_MS }, async () => {
      const { told, trace } = await play(story.name, "socket");
      const refused = REFUSED[story.name];
      expect(told.filter((line) => line.includes(" is refused: "))).toEqual(
        refused === undefined ? [] : [expect.stringMatching(refused)],
      );
      if (story.name === "lost-response") expect(trace).toMatchObject(LOST_ANSWER);
    });
  }
});

describe("over HTTP with signatures the story is the same", { concurrent: true }, () => {
  for (const name of ALSO_OVER_HTTP) {
    it(`${name} ends as over Socket Mode`, { timeout: STORY_MS }, () => play(name, "http"));
  }
});

it("plays every story that the contract names", () => {
  expect(STORIES.map((story) => story.name).sort()).toEqual(
    [
      "held-refund",
      "lost-response",
      "failed-before-commit",
      "denied",
      "dispatched-order",
      "other-owner",
      "stale-approval",
      "duplicate-refund",
      "late-commit",
      "crash-after-send",
      "quarantine",
      "strict-approval",
      "over-limit",
    ].sort(),
  );
});
