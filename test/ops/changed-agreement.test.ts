/**
 * A second person agrees to what the card says. Where the provider answers otherwise by then, nothing is carried out: the card says the
 * new answer, and who agrees to that has read it.
 */
import { beforeEach, describe, expect, it } from "vitest";
import type { Operation } from "../../src/domain/operation.js";
import { resolutionValue } from "../../src/slack/actions.js";
import { resolutionCard } from "../../src/slack/cards/ops-cards.js";
import { readResolution } from "../../src/slack/views/ops.js";
import { withPaymentsSandbox } from "../payments/support.js";
import { withDatabase } from "../support/database.js";
import { expectStatus, type OpsWorld, withOpsWorld } from "./ops-world.js";

const database = withDatabase({ poolSize: 12 });
const payments = withPaymentsSandbox();
const build = withOpsWorld(payments);
let w: OpsWorld;

beforeEach(async () => {
  w = await build(database.db);
});

const readsFail = () => payments.sandbox.control.arm({ kind: "read_down", how: "drop" });

/** Quarantined, with an effect or without; a confirmation that takes two is asked for while nobody can be asked. */
async function askedBlind(
  { kind, evidenceRef }: { kind: "drop_before_commit" | "commit_then_drop"; evidenceRef: string } = {
    kind: "drop_before_commit",
    evidenceRef: "re_X",
  },
): Promise<{ operation: Operation; resolutionId: string }> {
  payments.sandbox.control.arm({ kind });
  const operation = expectStatus(await w.quarantined(20_001n), "QUARANTINED");
  const down = readsFail();
  const asked = await w.ops.resolve({
    ref: operation.id,
    verb: "confirm",
    userId: "U_ONC1",
    reason: "They say it is done.",
    evidenceRef,
  });
  payments.sandbox.control.disarm(down);
  if (asked.outcome !== "needs_second") throw new Error(asked.outcome);
  return { operation, resolutionId: asked.resolution.id };
}

const agree = (resolutionId: string, seen: number, userId = "U_ONC2") =>
  w.ops.second({ resolutionId, userId, verdict: "agree", seen });

async function card(resolutionId: string): Promise<string> {
  const view = await readResolution(w.h.db, resolutionId);
  if (view === null) throw new Error("no card");
  return JSON.stringify(resolutionCard(view).blocks);
}

const events = async (id: string): Promise<string[]> =>
  (
    await w.h.db.sql<{ type: string }>(
      undefined,
      "SELECT type FROM operation_events WHERE operation_id = $1 ORDER BY seq",
      [id],
    )
  ).map(({ type }) => type);

describe("the provider answers otherwise at the agreement than on the card", () => {
  it("nothing is recorded, the card says the new answer, and an agreement to that is carried out", async () => {
    const { operation, resolutionId } = await askedBlind();
    const before = await events(operation.id);
    expect(await card(resolutionId)).toContain("could not be asked");

    const first = await agree(resolutionId, 0);
    expect(first).toMatchObject({
      outcome: "shown_anew",
      sentence: expect.stringMatching(/^Nothing was done yet.*shows nothing of it\..*could not be asked/u),
    });
    expect(await w.now(operation.id)).toMatchObject({ status: "QUARANTINED", version: operation.version });
    expect(await events(operation.id)).toEqual(before);
    const anew = await card(resolutionId);
    expect(anew).toContain("Provider says now");
    expect(anew).toContain("The provider shows nothing of it.");
    expect(anew).toContain("Provider said when asked for");
    expect(anew).toContain("This rests on a person's word: the provider showed nothing of it.");
    expect(anew).toContain(resolutionValue({ id: resolutionId, shownTimes: 1 }));

    expect(await agree(resolutionId, 0), "who still reads the old card").toMatchObject({
      outcome: "shown_anew",
    });
    expect(await w.now(operation.id)).toMatchObject({ status: "QUARANTINED" });
    expect(await agree(resolutionId, 1)).toMatchObject({
      outcome: "resolved",
      operation: { status: "CONFIRMED", result: { code: "confirmed_unseen" } },
    });
    const done = await card(resolutionId);
    expect(done).toContain("Provider said at the agreement");
    expect(done).toContain("The provider showed nothing of it.");
    expect(done).not.toContain("The provider shows");
    expect(await payments.sandbox.control.effects()).toHaveLength(0);
  });

  it("two who agree at once to the old card: nothing is carried out, and the card changes once", async () => {
    const { operation, resolutionId } = await askedBlind();
    const both = await Promise.all([agree(resolutionId, 0), agree(resolutionId, 0)]);
    expect(both.map(({ outcome }) => outcome)).toEqual(["shown_anew", "shown_anew"]);
    expect(await w.now(operation.id)).toMatchObject({ status: "QUARANTINED" });
    expect(await readResolution(w.h.db, resolutionId)).toMatchObject({
      resolution: { state: "proposed", shownTimes: 1 },
    });
    const again = await Promise.all([agree(resolutionId, 1), agree(resolutionId, 1)]);
    expect(again.map(({ outcome }) => outcome).toSorted()).toEqual(["overtaken", "resolved"]);
  });

  it("the same answer in other words is no other one; the provider that goes away again is asked for anew", async () => {
    const { operation, resolutionId } = await askedBlind();
    expect(await agree(resolutionId, 0)).toMatchObject({ outcome: "shown_anew" });
    const down = readsFail();
    expect(await agree(resolutionId, 1)).toMatchObject({
      outcome: "shown_anew",
      sentence: expect.stringContaining("could not be asked"),
    });
    payments.sandbox.control.disarm(down);
    payments.sandbox.control.arm({ kind: "read_down", how: "500" });
    expect(await agree(resolutionId, 2)).toMatchObject({
      outcome: "resolved",
      operation: { status: "CONFIRMED", result: { code: "confirmed_unasked" } },
    });
    expect(await w.now(operation.id)).toMatchObject({ status: "CONFIRMED" });
  });

  it("an answer that says the same as the verb counts at once", async () => {
    const { resolutionId } = await askedBlind({ kind: "commit_then_drop", evidenceRef: "the dashboard" });
    expect(await agree(resolutionId, 0)).toMatchObject({
      outcome: "resolved",
      operation: { status: "CONFIRMED", result: { code: "confirmed_by_person" } },
    });
    expect(await payments.sandbox.control.effects()).toHaveLength(1);
  });
});
