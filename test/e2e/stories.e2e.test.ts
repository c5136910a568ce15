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

async function play(name: string, transport: "socket" | "http"): Promise<void> {
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
    it(`${story.name}: ${story.shows}`, { timeout: STORY_MS }, () => play(story.name, "socket"));
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
