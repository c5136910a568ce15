/**
 * The alerts, asked of Prometheus' own rule tester: each one fires in the case that it is for, and is silent in the one beside it. Needs
 * `promtool` (Debian: prometheus); where there is none, this says so and is skipped.
 */
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { parse, stringify } from "yaml";
import { z } from "zod";
import { ROOT } from "./source.js";

const RULES = join(ROOT, "docs/alerts.rules.yml");
const rules = z
  .object({
    groups: z.tuple([
      z.object({
        rules: z.array(
          z.object({
            alert: z.string(),
            labels: z.record(z.string(), z.string()),
            annotations: z.record(z.string(), z.string()),
          }),
        ),
      }),
    ]),
  })
  .parse(parse(readFileSync(RULES, "utf8"))).groups[0].rules;

interface Case {
  readonly alert: string;
  /** Values a minute, in Prometheus' notation: "0+1x9" counts from 0 to 9. */
  readonly series: Readonly<Record<string, string>>;
  /** Minutes after which is asked. */
  readonly at: number;
  /** The labels of those that fire, without the rule's own. */
  readonly fires: readonly Readonly<Record<string, string>>[];
}

const A = { instance: "a" };
const one = (name: string): string => `countersign_${name}{instance="a"}`;
/** Of a gauge: what is silent for ever, and what fires after `at` minutes and not a minute earlier. */
const line = (alert: string, name: string, quiet: number, loud: number, at: number): readonly Case[] => [
  { alert, series: { [one(name)]: `${quiet}x90` }, at, fires: [] },
  { alert, series: { [one(name)]: `${loud}x90` }, at, fires: [A] },
  ...(at < 2 ? [] : [{ alert, series: { [one(name)]: `${loud}x90` }, at: at - 1, fires: [] }]),
];
const read = 'countersign_books_compared_total{instance="a",outcome="read"}';
const unread = 'countersign_books_compared_total{instance="a",outcome="unread"}';
const clicks = 'countersign_forbidden_attempts_total{instance="a",what="click"}';

const CASES: readonly Case[] = [
  ...line("CountersignOutcomeUnknownTooLong", "oldest_unknown_age_seconds", 1_800, 1_801, 5),
  ...line("CountersignQuarantined", "oldest_quarantined_age_seconds", 900, 901, 1),
  ...line("CountersignProviderTakesNothing", "oldest_tried_age_seconds", 1_800, 1_801, 5),
  ...line("CountersignIncidentOpen", "incidents_open", 0, 1, 1),
  // Since the process began, never read: the count of those that were is 0 and not absent.
  { alert: "CountersignBooksUnread", series: { [read]: "0x90", [unread]: "0+1x90" }, at: 70, fires: [{}] },
  { alert: "CountersignBooksUnread", series: { [read]: "0+1x90", [unread]: "0+1x90" }, at: 70, fires: [] },
  { alert: "CountersignBooksUnread", series: { [read]: "0x90", [unread]: "0x90" }, at: 70, fires: [] },
  ...line("CountersignFrozen", "frozen_kinds", 0, 1, 30),
  ...line("CountersignSlackDisconnected", "slack_connected", 1, 0, 2),
  // A worker alone says nothing of Slack.
  {
    alert: "CountersignNobodyListens",
    series: { [one("snapshot_ok")]: "1x90", 'countersign_snapshot_ok{instance="b"}': "1x90" },
    at: 7,
    fires: [{}],
  },
  {
    alert: "CountersignNobodyListens",
    series: { [one("snapshot_ok")]: "1x90", [one("slack_connected")]: "1x90" },
    at: 7,
    fires: [],
  },
  { alert: "CountersignNobodyListens", series: { up: "0x90" }, at: 7, fires: [] },
  ...line("CountersignQueueAway", "queue_connected", 1, 0, 2),
  ...line("CountersignNobodyWorks", "oldest_due_age_seconds", 120, 121, 2),
  ...line("CountersignDatabaseAway", "snapshot_ok", 1, 0, 2),
  { alert: "CountersignDown", series: { up: "0x90" }, at: 7, fires: [{}] },
  { alert: "CountersignDown", series: { [one("snapshot_ok")]: "0x90" }, at: 7, fires: [] },
  ...line("CountersignOutboxLag", "outbox_lag_seconds", 120, 121, 5),
  ...line("CountersignApprovalsOld", "oldest_approval_age_seconds", 14_400, 14_401, 1),
  {
    alert: "CountersignForbiddenAttempts",
    series: { [clicks]: "0+3x90" },
    at: 20,
    fires: [{ ...A, what: "click" }],
  },
  { alert: "CountersignForbiddenAttempts", series: { [clicks]: "0+1x90" }, at: 20, fires: [] },
];

const there = spawnSync("promtool", ["--version"]).status === 0;
if (!there) process.stderr.write("SKIPPED: the alerts are tested by promtool, which is not on the PATH\n");
const home = mkdtempSync(join(tmpdir(), "countersign-alerts-"));
afterAll(() => rmSync(home, { recursive: true, force: true }));

describe("docs/alerts.rules.yml", () => {
  it("every alert has a case in which it fires and one in which it is silent", () => {
    const named = (fires: boolean) =>
      [...new Set(CASES.filter((each) => each.fires.length > 0 === fires).map(({ alert }) => alert))].sort();
    const all = rules.map(({ alert }) => alert).sort();
    expect(named(true)).toEqual(all);
    expect(named(false)).toEqual(all);
  });

  it.skipIf(!there)("fires and is silent as meant, by Prometheus' own word", () => {
    const file = join(home, "cases.yml");
    const tests = CASES.map(({ alert, series, at, fires }) => {
      const rule = rules.find((each) => each.alert === alert);
      return {
        interval: "1m",
        input_series: Object.entries(series).map(([name, values]) => ({ series: name, values })),
        alert_rule_test: [
          {
            eval_time: `${at}m`,
            alertname: alert,
            exp_alerts: fires.map((labels) => ({
              exp_labels: { ...labels, ...rule?.labels },
              exp_annotations: rule?.annotations ?? {},
            })),
          },
        ],
      };
    });
    writeFileSync(file, stringify({ rule_files: [RULES], evaluation_interval: "1m", tests }));
    const { status, stdout, stderr } = spawnSync("promtool", ["test", "rules", file], { encoding: "utf8" });
    expect(status, `${stdout}${stderr}`).toBe(0);
  });
});
