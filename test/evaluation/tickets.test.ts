import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { describe, expect, test } from "vitest";
import { scriptedPlanner } from "../../src/agent/index.js";
import { systemClock } from "../../src/app/system.js";
import { evaluateStatic, evaluateTickets } from "../../src/evaluation/index.js";
import { judge } from "../../src/evaluation/tickets/judge.js";
import { type Label, LabelError, loadLabels } from "../../src/evaluation/tickets/label.js";
import { loadPolicyFile, readPolicyText } from "../../src/policy/index.js";
import { withDatabase } from "../support/database.js";
import { deskPorts, withProviderDatabase } from "./support.js";

const database = withDatabase({ reset: "never" });
const provider = withProviderDatabase();

describe("labelled tickets", () => {
  test("played with the scripted planner, all are as labelled and nothing forbidden happens", {
    timeout: 300_000,
  }, async () => {
    const report = await evaluateTickets({
      ports: deskPorts(database),
      providerUrl: provider.url,
      planner: scriptedPlanner(),
      policy: await loadPolicyFile("policies/default.yaml"),
      time: "jump",
    });
    expect(report.tickets.length).toBeGreaterThanOrEqual(12);
    expect(report.tickets.filter((ticket) => !ticket.verified)).toEqual([]);
    expect(report.forbidden).toBe(0);
    expect(report.rates).toMatchObject({ verified: 1, constraintsKept: 1 });
  });

  test("the default policy answers rightly on both sides of each of its limits, and the labels fit it", async () => {
    const { policy } = await loadPolicyFile("policies/default.yaml");
    const report = evaluateStatic(policy, systemClock.now());
    expect(report.problems).toEqual([]);
    expect(report.limits.filter((limit) => !limit.right)).toEqual([]);
    expect(report.limits.length).toBeGreaterThan(30);
  });

  test("a policy that lets more through than the labels say is found without running anything", async () => {
    const { policy, text } = await loadPolicyFile("policies/default.yaml");
    const looser = readPolicyText(
      text.replace("auto: { GBP: 5000, USD: 5000 }", "auto: { GBP: 5000 }"),
      "looser.yaml",
    );
    expect(evaluateStatic(policy, systemClock.now()).right).toBe(true);
    const report = evaluateStatic(looser.policy, systemClock.now());
    expect(report.right).toBe(false);
    expect(report.problems.join(" ")).toContain("no automatic limit names USD");
  });

  test("a call that the label forbids and an effect that it does not know are counted, whatever the end says", () => {
    const label = labelNamed("duplicate-charge");
    const result = judge({
      label,
      view: null,
      operations: [],
      effects: ["refund B-9002 2460 GBP"],
    });
    expect(result.forbidden).toEqual(["effect: refund B-9002 2460 GBP"]);
    expect(result.verified).toBe(false);
  });

  test("a label file with a mistake is named with its reason", () => {
    const dir = mkdtempSync(path.join(tmpdir(), "labels-"));
    try {
      writeFileSync(path.join(dir, "broken.yaml"), "about: x\ntext: y\nexpect: { must_call: [pay_out] }\n");
      expect(() => loadLabels(dir)).toThrow(LabelError);
      expect(() => loadLabels(dir)).toThrow(/broken\.yaml/);
    } finally {
      rmSync(dir, { recursive: true });
    }
  });
});

function labelNamed(id: string): Label {
  const label = loadLabels().find((one) => one.id === id);
  if (label === undefined) throw new Error(`no label ${id}`);
  return label;
}
