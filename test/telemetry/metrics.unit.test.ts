import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { createMetrics, type Metrics, type Snapshot } from "../../src/telemetry/index.js";
import { deferred } from "../support/wait.js";

const EMPTY: Snapshot = {
  operations: [{ kind: "refund", status: "OUTCOME_UNKNOWN", count: 2 }],
  oldestUnknownAgeMs: 1500,
  oldestQuarantinedAgeMs: 0,
  oldestTriedAgeMs: 2_000_000,
  approvalsPending: 3,
  oldestApprovalAgeMs: 60_000,
  runs: [{ state: "waiting", count: 1 }],
  outboxWaiting: 0,
  outboxLagMs: 0,
  inboxWaiting: 0,
  incidentsOpen: 0,
  frozenKinds: 1,
  oldestDueAgeMs: 61_000,
  queues: [{ kind: "run", waiting: 4 }],
  slackConnected: true,
  queueConnected: false,
};

const body = async (metrics: Metrics): Promise<string> => (await metrics.expose()).body;

describe("metrics", () => {
  it("every metric is documented under its name and type, and nothing else is", async () => {
    const text = await body(createMetrics({ processMetrics: false }));
    const exposed = [...text.matchAll(/^# TYPE (\S+) (\S+)$/gm)]
      .map(([, name, type]) => `${name} ${type}`)
      .sort();
    const table = readFileSync(new URL("../../docs/metrics.md", import.meta.url), "utf8");
    const documented = [...table.matchAll(/^\| `(countersign_\w+)` +\| (\w+) +\|/gm)]
      .map(([, name, type]) => `${name} ${type}`)
      .sort();
    expect(exposed.length).toBeGreaterThan(20);
    expect(exposed).toEqual(documented);
  });

  it("the alerts ask only for metrics that exist, with their labels", async () => {
    const text = await body(createMetrics({ processMetrics: false }));
    const rules = readFileSync(new URL("../../docs/alerts.rules.yml", import.meta.url), "utf8");
    const asked = [...rules.matchAll(/\bcountersign_\w+/g)].map(([name]) => name);
    expect(new Set(asked).size).toBeGreaterThan(5);
    for (const name of asked) {
      expect(text, name).toMatch(new RegExp(`^# TYPE ${name.replace(/_(?:bucket|count|sum)$/, "")} `, "m"));
    }
  });

  it("shows what rows say, in seconds, and what was counted", async () => {
    const metrics = createMetrics({ processMetrics: false });
    metrics.observe(() => Promise.resolve(EMPTY));
    metrics.runEnded("resolved");
    metrics.modelSpent({ inputTokens: 10, outputTokens: 5, microUsd: 2_500_000n });
    metrics.slack.rateLimited("chat.update");
    const text = await body(metrics);
    expect(text).toContain('countersign_operations_open{kind="refund",status="OUTCOME_UNKNOWN"} 2');
    expect(text).toContain("countersign_oldest_unknown_age_seconds 1.5");
    expect(text).toContain("countersign_oldest_due_age_seconds 61");
    expect(text).toContain("countersign_oldest_tried_age_seconds 2000");
    expect(text).toContain('countersign_runs_ended_total{state="resolved"} 1');
    expect(text).toContain("countersign_model_spend_usd_total 2.5");
    expect(text).toContain('countersign_slack_rate_limited_total{method="chat.update"} 1');
    expect(text).toContain("countersign_queue_connected 0");
    expect(text).toContain("countersign_snapshot_ok 1");
  });

  it("counts of what has not been yet are 0 and not absent: an alert compares with them", async () => {
    const text = await body(createMetrics({ processMetrics: false }));
    for (const outcome of ["read", "unread"])
      expect(text).toContain(`countersign_books_compared_total{outcome="${outcome}"} 0`);
    expect(text).toContain('countersign_forbidden_attempts_total{what="click"} 0');
  });

  it("only a process that listens to Slack says whether it can", async () => {
    const metrics = createMetrics({ processMetrics: false });
    expect(await body(metrics)).not.toMatch(/^countersign_slack_connected/mu);
    metrics.observe(() => Promise.resolve({ ...EMPTY, slackConnected: null }));
    expect(await body(metrics)).not.toMatch(/^countersign_slack_connected/mu);
    const listening = createMetrics({ processMetrics: false });
    listening.observe(() => Promise.resolve({ ...EMPTY, slackConnected: false }));
    expect(await body(listening)).toMatch(/^countersign_slack_connected 0$/mu);
  });

  it("every word of what is forbidden is in docs/metrics.md, and none other", async () => {
    const text = await body(createMetrics({ processMetrics: false }));
    const counted = [...text.matchAll(/^countersign_forbidden_attempts_total\{what="(\w+)"\} 0$/gmu)].map(
      ([, what]) => what,
    );
    const docs = readFileSync(new URL("../../docs/metrics.md", import.meta.url), "utf8");
    const told = [...docs.slice(docs.indexOf("`what` of")).matchAll(/^\| `(\w+)` +\|/gmu)].map(
      ([, what]) => what,
    );
    expect(counted.sort()).toEqual(told.filter((what) => what !== "what").sort());
  });

  it("a snapshot that fails is said, and does not fail the scrape", async () => {
    const metrics = createMetrics({ processMetrics: false });
    metrics.observe(() => Promise.reject(new Error("database away")));
    expect(await body(metrics)).toContain("countersign_snapshot_ok 0");
  });

  it("two scrapes at once take one snapshot", async () => {
    const metrics = createMetrics({ processMetrics: false });
    const gate = deferred<Snapshot>();
    let taken = 0;
    metrics.observe(() => {
      taken += 1;
      return gate.promise;
    });
    const scrapes = [metrics.expose(), metrics.expose()];
    gate.resolve(EMPTY);
    await Promise.all(scrapes);
    expect(taken).toBe(1);
  });
});
