/** A request that is refused at the second person's agreement: why, and what the provider showed then, stays readable everywhere. */
import { beforeEach, describe, expect, it } from "vitest";
import { verifyAudit } from "../../src/ledger/index.js";
import { timelineEntry } from "../../src/ops/index.js";
import { quarantineCard, resolutionCard } from "../../src/slack/cards/ops-cards.js";
import { readQuarantine, readResolution } from "../../src/slack/views/ops.js";
import { withPaymentsSandbox } from "../payments/support.js";
import { withDatabase } from "../support/database.js";
import { expectStatus, type OpsWorld, withOpsWorld } from "./ops-world.js";

const database = withDatabase();
const payments = withPaymentsSandbox();
const build = withOpsWorld(payments);
let w: OpsWorld;

beforeEach(async () => {
  w = await build(database.db);
});

describe("refused at the agreement", () => {
  it("the request's card, the operation's card and the events say why and what the provider showed", async () => {
    payments.sandbox.control.arm({ kind: "drop_before_commit", times: null });
    const { id } = expectStatus(await w.quarantined(), "QUARANTINED");
    const asked = await w.ops.resolve({
      ref: id,
      verb: "retry",
      userId: "U_ONC1",
      reason: "nothing there",
      evidenceRef: "dashboard",
    });
    if (asked.outcome !== "needs_second") throw new Error(asked.outcome);
    const made = await payments.sandbox.control.dashboardRefund({ paymentIntent: "pi_1", amount: 18_000 });
    const agreed = await w.ops.second({
      resolutionId: asked.resolution.id,
      userId: "U_ONC2",
      verdict: "agree",
    });
    expect(agreed.outcome).toBe("not_safe");
    expect(await payments.sandbox.control.effects(), "nothing was sent").toHaveLength(1);

    const resolution = await readResolution(w.h.db, asked.resolution.id);
    const parked = await readQuarantine(w.h.db, id);
    if (resolution === null || parked === null) throw new Error("no card");
    for (const card of [resolutionCard(resolution), quarantineCard(parked)]) {
      const text = JSON.stringify(card.blocks);
      expect(text).toContain(made.id);
      expect(text).toContain("Not done: the provider shows otherwise.");
      expect(text).not.toContain("not safe any more");
    }
    expect(JSON.stringify(resolutionCard(resolution).blocks)).toContain("Provider said when asked for");

    const story = await w.ops.events({ userId: "U_ONC1", ref: id });
    if (story.outcome !== "events") throw new Error(story.outcome);
    const [request, refusal] = story.events.slice(-2).map(timelineEntry);
    expect(request).toMatchObject({
      seq: null,
      what: "Authorise retry was asked for; it waits for a second person.",
      by: { person: "U_ONC1" },
      second: null,
    });
    expect(request?.evidence).toEqual(
      expect.arrayContaining(["Evidence: dashboard", "Reason: nothing there"]),
    );
    expect(refusal).toMatchObject({
      what: "The second person agreed, and it was refused: nothing was done.",
      by: { person: "U_ONC2" },
      second: null,
    });
    expect(refusal?.evidence.join(" ")).toContain(made.id);
    expect(refusal?.evidence.join(" ")).toContain("Not done: the provider shows otherwise.");
    expect(await verifyAudit(w.h.db)).toMatchObject({ intact: true, broken: [] });
  });

  it.each(["disagree", "agree"] as const)(
    "%s: the request stands in the events once, with its end",
    async (verdict) => {
      payments.sandbox.control.arm({ kind: "drop_before_commit", times: null });
      const { id } = expectStatus(await w.quarantined(), "QUARANTINED");
      const asked = await w.ops.resolve({
        ref: id,
        verb: "reject",
        userId: "U_ONC1",
        reason: "nothing there",
        evidenceRef: "dashboard",
      });
      if (asked.outcome !== "needs_second") throw new Error(asked.outcome);
      await w.ops.second({ resolutionId: asked.resolution.id, userId: "U_ONC2", verdict });
      const story = await w.ops.events({ userId: "U_ONC1", ref: id });
      if (story.outcome !== "events") throw new Error(story.outcome);
      const told = story.events.map(timelineEntry).slice(-2);
      expect(told.map(({ what }) => what)).toEqual([
        "Reject was asked for; it waits for a second person.",
        verdict === "disagree"
          ? "The second person disagreed: nothing was done."
          : "Rejected on a person's word: not carried out; the money is free again.",
      ]);
      const end = told.at(-1);
      expect(verdict === "agree" ? end?.second : end?.by).toEqual({ person: "U_ONC2" });
    },
  );
});
