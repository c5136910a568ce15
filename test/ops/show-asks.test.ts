/** `/ops show` asks the provider as the forms do: what it tells and offers is what would be done now. */
import { beforeEach, describe, expect, it } from "vitest";
import { showText } from "../../src/app/commands/show-text.js";
import { claim } from "../../src/ledger/index.js";
import { type OperationView, opsUseCases, type ResolveVerb } from "../../src/ops/index.js";
import { reconcileOne } from "../../src/reconcile/index.js";
import { closeIncidentForm } from "../../src/slack/cards/forms.js";
import { incidentCard } from "../../src/slack/cards/incident-card.js";
import { quarantineCard } from "../../src/slack/cards/ops-cards.js";
import { incidentLine, operationLine, opsShow } from "../../src/slack/cards/ops-views.js";
import { readIncident, readQuarantine } from "../../src/slack/views/ops.js";
import { moveClock, onlyApproval, operationAt } from "../approvals/steps.js";
import { withPaymentsSandbox } from "../payments/support.js";
import { withDatabase } from "../support/database.js";
import { expectStatus, type OpsWorld, withOpsWorld } from "./ops-world.js";

const database = withDatabase();
const payments = withPaymentsSandbox();
const build = withOpsWorld(payments);
const NOWHERE = { channelId: null, messageTs: null, threadTs: null, home: false };
let w: OpsWorld;

beforeEach(async () => {
  w = await build(database.db);
});

async function shown(ref: string, ops = w.ops): Promise<OperationView> {
  const view = await ops.show({ userId: "U_ONC1", ref });
  if (view.outcome !== "operation") throw new Error(view.outcome);
  return view;
}
const verb = (view: OperationView, name: ResolveVerb) => view.safe.find((each) => each.verb === name);

describe("what the provider says now", () => {
  it("parked while nobody could be asked: show tells what the provider shows since, and offers only what it bears out", async () => {
    payments.sandbox.control.arm({ kind: "commit_then_drop" });
    const { id, status } = expectStatus(await w.quarantined(), "QUARANTINED");
    const view = await shown(id);
    expect(view.lastLook?.sentence).toMatch(/^The provider shows it: re_\w+ of £180\.00 GBP/u);
    expect(verb(view, "confirm")).toMatchObject({ possible: true });
    for (const name of ["reject", "retry"] as const) {
      expect(verb(view, name)).toMatchObject({
        possible: false,
        sentence: expect.stringMatching(
          /The provider shows it: re_\w+ .*Confirm committed is what is left\.$/u,
        ),
      });
    }
    expect((await w.now(id)).status, "looking settles nothing").toBe(status);
    expect(await payments.sandbox.control.effects()).toHaveLength(1);
  });

  it("the provider is away: reject is said to be refused, because it is", async () => {
    payments.sandbox.control.arm({ kind: "drop_before_commit", times: null });
    const { id } = expectStatus(await w.quarantined(), "QUARANTINED");
    const down = payments.sandbox.control.arm({ kind: "read_down", how: "drop" });
    const view = await shown(id);
    expect(verb(view, "reject")).toMatchObject({
      possible: false,
      sentence: expect.stringMatching(
        /^Refused now: The provider could not be asked: .* try again when it answers/u,
      ),
    });
    expect(view.lastLook?.sentence).toContain("could not be asked");
    const answer = await w.ops.resolve({
      ref: id,
      verb: "reject",
      userId: "U_ONC1",
      reason: "r",
      evidenceRef: "e",
    });
    expect(answer.outcome).toBe("not_safe");
    payments.sandbox.control.disarm(down);
    expect(verb(await shown(id), "reject")).toMatchObject({ possible: true, people: 2 });
  });

  it("a provider that does not answer in time keeps nobody: the last reading is shown", async () => {
    payments.sandbox.control.arm({ kind: "commit_then_drop" });
    const { id } = expectStatus(await w.quarantined(), "QUARANTINED");
    const silent = opsUseCases({ ...w.ctx, probe: () => new Promise(() => undefined) });
    const view = await silent.show({ userId: "U_ONC1", ref: id, askMs: 1 });
    if (view.outcome !== "operation") throw new Error(view.outcome);
    expect(view.lastLook?.sentence).toContain("could not be asked");
    expect(view.safe).toHaveLength(3);
  });

  it("a foreign refund of the same amount: no retry is offered, and its incident stands there though it names the payment", async () => {
    payments.sandbox.control.arm({ kind: "drop_before_commit", times: null });
    const { id } = expectStatus(await w.quarantined(), "QUARANTINED");
    const made = await payments.sandbox.control.dashboardRefund({ paymentIntent: "pi_1", amount: 18_000 });
    const view = await shown(id);
    expect(verb(view, "retry")).toMatchObject({
      possible: false,
      sentence: expect.stringMatching(
        new RegExp(
          `${made.id}.* Ask who made it: made for this ticket, Confirm committed with its reference; made for another, Reject\\.$`,
          "u",
        ),
      ),
    });
    const told = view.recovery.join(" ");
    expect(told).toContain("the provider does a repeated key at most once.");
    expect(told, "the verb says otherwise").not.toContain("is safe");
    expect(told).toContain(
      "It is parked for a person, by what was known then: The outcome was still unknown",
    );
    expect(told).not.toContain("is still unknown");
    expect(view.openIncidents).toMatchObject([
      {
        kind: "refunded_elsewhere",
        operationId: null,
        target: "ORD-1",
        amount: "£180.00 GBP",
        references: [made.id],
      },
    ]);
    const message = JSON.stringify(opsShow(view).blocks);
    expect(message).toContain("on the same payment: Refunded elsewhere · ORD-1 · £180.00 GBP");
    expect(message).not.toContain('"text":"Authorise retry"');
    const listed = await w.ops.incidents({ userId: "U_ONC1" });
    if (listed.outcome !== "incidents") throw new Error(listed.outcome);
    const [incident] = listed.incidents;
    if (incident === undefined) throw new Error("no incident");
    const line = incidentLine(incident);
    for (const fact of ["ORD-1", "£180.00 GBP", made.id]) {
      expect(line).toContain(fact);
      expect(JSON.stringify(closeIncidentForm(incident, { about: incident.id, place: NOWHERE }))).toContain(
        fact,
      );
    }
  });

  it("the incident's card names the open operation of the same amount, and is shown anew once that is decided", async () => {
    payments.sandbox.control.arm({ kind: "drop_before_commit", times: null });
    const { id } = expectStatus(await w.quarantined(), "QUARANTINED");
    const made = await payments.sandbox.control.dashboardRefund({ paymentIntent: "pi_1", amount: 18_000 });
    const [incident] = (await shown(id)).openIncidents;
    if (incident === undefined) throw new Error("no incident");
    const undecided = async (): Promise<unknown> =>
      (await readIncident(w.h.db, incident.id))?.undecided.map((one) => one.id);
    expect(await undecided()).toEqual([id]);
    const before = w.h.shown.touched.length;
    const outcome = await w.ops.resolve({
      ref: id,
      verb: "confirm",
      userId: "U_ONC1",
      reason: "made for this ticket",
      evidenceRef: made.id,
    });
    expect(outcome.outcome).toBe("resolved");
    expect(await undecided()).toEqual([]);
    const view = await readIncident(w.h.db, incident.id);
    const card = view === null ? "" : JSON.stringify(incidentCard(view).blocks);
    expect(card, "one refund, counted once").toMatch(/Left to refund\*".{0,120}£820\.00 GBP, as of/u);
    expect(card).not.toContain("Left to refund then");
    expect(w.h.shown.touched.slice(before)).toContainEqual({ kind: "incident", id: incident.id });
    expect(await payments.sandbox.control.effects()).toHaveLength(1);
  });

  it("a foreign refund of another amount asks for no decision", async () => {
    payments.sandbox.control.arm({ kind: "drop_before_commit", times: null });
    const { id } = expectStatus(await w.quarantined(), "QUARANTINED");
    await payments.sandbox.control.dashboardRefund({ paymentIntent: "pi_1", amount: 500 });
    const [incident] = (await shown(id)).openIncidents;
    expect(incident).toMatchObject({ amount: "£5.00 GBP" });
    expect((await readIncident(w.h.db, incident?.id ?? ""))?.undecided).toEqual([]);
  });

  it.each([
    [
      20_001n,
      "*Confirm committed*, *Reject* and *Authorise retry* need a second person, who is then asked here.",
    ],
    [
      18_000n,
      "*Reject* and *Authorise retry* need a second person, who is then asked here; *Confirm committed* does not.",
    ],
  ])("a parked operation's card says which verbs need a second person: %s", async (amount, sentence) => {
    payments.sandbox.control.arm({ kind: "drop_before_commit" });
    const { id } = expectStatus(await w.quarantined(amount), "QUARANTINED");
    const view = await readQuarantine(w.h.db, id, await w.ctx.activePolicy(w.h.db));
    if (view === null) throw new Error("no card");
    expect(JSON.stringify(quarantineCard(view).blocks)).toContain(sentence);
  });

  it("what ended before it was sent waits for nothing, and names the operation that follows it", async () => {
    const held = await w.h.turn(await w.h.ticket(), [{ order: "ORD-1", amount: 18_000n }]);
    await w.h.click("U_SUP1", onlyApproval(held), "deny");
    const id = operationAt(held, 0);
    expectStatus(await w.now(id), "DENIED");
    const denied = await shown(id);
    for (const told of [JSON.stringify(opsShow(denied).blocks), showText(denied).join("\n")]) {
      expect(told).toContain("Nothing was sent.");
      expect(told).toContain("Nothing from the provider.");
      expect(told).not.toMatch(/Nothing yet|provider yet/u);
    }
    const again = await w.h.turn(await w.h.ticket(), [{ order: "ORD-1", amount: 18_000n }]);
    const next = operationAt(again, 0);
    expect(next).not.toBe(id);
    expect(JSON.stringify(opsShow(await shown(id)).blocks)).toContain(
      `Nothing was sent; asked for anew as refund £180.00 GBP ORD-1, awaiting approval (\`${next}\`).`,
    );
    expect(JSON.stringify(opsShow(await shown(next)).blocks)).toContain("Nothing yet.");
  });

  it("a refusal is evidence, and a stored answer that came again is no second effect", async () => {
    payments.sandbox.control.arm({ kind: "refuse", code: "charge_disputed" });
    const refused = expectStatus(await w.sent(), "REJECTED");
    const away = opsUseCases({ ...w.ctx, read: () => Promise.reject(new Error("away")) });
    const told = JSON.stringify(opsShow(await shown(refused.id, away)).blocks);
    expect(told).toContain("The provider's answer to what was sent, as it stands above.");
    expect(told).not.toContain("Nothing from the provider yet");
    expect(JSON.stringify(opsShow(await shown(refused.id)).blocks)).toContain(
      "last asked: The provider shows nothing of it now.",
    );

    payments.sandbox.control.arm({ kind: "commit_then_drop" });
    const open = expectStatus(await w.sent(7_000n), "OUTCOME_UNKNOWN");
    const down = payments.sandbox.control.arm({ kind: "read_down", how: "drop" });
    for (let look = 0; look < 4 && (await w.now(open.id)).status !== "CONFIRMED"; look += 1) {
      await moveClock(w.h.db, 61 * (look + 1));
      await reconcileOne(w.reconcile, open.id, "due");
    }
    payments.sandbox.control.disarm(down);
    expectStatus(await w.now(open.id), "CONFIRMED");
    const replayed = JSON.stringify(opsShow(await shown(open.id)).blocks);
    expect(replayed).toContain(
      "the provider gave its stored answer again (carried out before); nothing new was done",
    );
    expect(await payments.sandbox.control.effects()).toHaveLength(1);
  });
});

describe("what is settled", () => {
  it("is asked for, too: what the provider shows of it now, and looking moves nothing", async () => {
    const { id, providerRef, version } = expectStatus(await w.sent(), "CONFIRMED");
    const view = await shown(id);
    expect(view.lastLook?.sentence).toBe(`The provider shows it: ${providerRef} of £180.00 GBP (succeeded).`);
    // As its answer said, which stands above with the amount.
    for (const told of [JSON.stringify(opsShow(view).blocks), showText(view).join("\n")]) {
      expect(told).toContain("last asked: The provider shows the same.");
      expect(told.split(`${providerRef} of £180.00 GBP (succeeded)`)).toHaveLength(2);
    }
    expect((await w.now(id)).version).toBe(version);
  });

  it("that the provider took back since is shown as it is there; only the reconciler moves it", async () => {
    const { id, providerRef, version } = expectStatus(await w.sent(), "CONFIRMED");
    await payments.sandbox.control.advanceRefund(providerRef ?? "", {
      status: "failed",
      failureReason: "lost_or_stolen_card",
    });
    expect((await shown(id)).lastLook?.sentence).toContain("it failed there");
    expect((await w.now(id)).version).toBe(version);
  });

  it("by a rejection: the look writes nothing, whatever the list holds", async () => {
    payments.sandbox.control.arm({ kind: "drop_before_commit", times: null });
    const { id } = expectStatus(await w.quarantined(), "QUARANTINED");
    payments.sandbox.control.disarmAll();
    const asked = await w.ops.resolve({
      ref: id,
      verb: "reject",
      userId: "U_ONC1",
      reason: "r",
      evidenceRef: "e",
    });
    if (asked.outcome !== "needs_second") throw new Error(asked.outcome);
    await w.ops.second({ resolutionId: asked.resolution.id, userId: "U_ONC2", verdict: "agree" });
    expectStatus(await w.now(id), "REJECTED");
    await payments.sandbox.control.dashboardRefund({ paymentIntent: "pi_1", amount: 500 });
    const before = await w.now(id);
    const rows = () => w.h.db.sql(undefined, "SELECT id FROM provider_evidence");
    const evidence = await rows();
    await shown(id);
    expect((await w.now(id)).version).toBe(before.version);
    expect(await rows()).toEqual(evidence);
  });

  it("and cannot be asked for says so, and that what stands there is from before", async () => {
    const { id } = expectStatus(await w.sent(), "CONFIRMED");
    const silent = opsUseCases({ ...w.ctx, read: () => new Promise(() => undefined) });
    const view = await silent.show({ userId: "U_ONC1", ref: id, askMs: 1 });
    if (view.outcome !== "operation") throw new Error(view.outcome);
    for (const told of [JSON.stringify(opsShow(view).blocks), showText(view).join("\n")]) {
      expect(told).toContain("The provider was asked just now and did not answer");
      expect(told).toContain("What stands here is from before.");
    }
  });

  it("without having been sent is asked of nobody", async () => {
    const held = await w.h.turn(await w.h.ticket(), [{ order: "ORD-1", amount: 18_000n }]);
    await w.h.click("U_SUP1", onlyApproval(held), "deny");
    const never = opsUseCases({ ...w.ctx, read: () => Promise.reject(new Error("asked")) });
    const view = await shown(operationAt(held, 0), never);
    expect(view.notAsked).toBeNull();
    expect(view.lastLook).toBeNull();
  });
});

describe("what its worker has left behind", () => {
  it("is looked at, too: sent, no answer, and the provider has it", async () => {
    const id = await w.prepared();
    const operation = await w.now(id);
    const request = w.dispatch.provider.buildRequest(operation);
    const claimed = await claim(w.dispatch, { operation, request, worker: "gone" });
    if (!claimed.claimed) throw new Error(claimed.why);
    const sent = await w.dispatch.provider.execute(claimed.operation, request, {
      idempotencyKey: claimed.operation.idempotencyKey,
      timeoutMs: 2_000,
      beforeSend: async () => {},
    });
    expect(sent.verdict).toBe("committed");
    const view = await shown(id);
    expectStatus(view.operation, "DISPATCHED");
    expect(view.lastLook?.sentence).toMatch(/^The provider shows it: re_\w+ of £180\.00 GBP/u);
    expect(view.safe).toEqual([]);
    expect((await w.now(id)).status, "looking settles nothing").toBe("DISPATCHED");
    expect(await payments.sandbox.control.effects()).toHaveLength(1);
  });
});

describe("each fact once, and nothing that is not so", () => {
  const text = async (ref: string): Promise<string> => JSON.stringify(opsShow(await shown(ref)).blocks);

  it("what a reading settled is told by one line, in Slack and in the shell", async () => {
    payments.sandbox.control.arm({ kind: "commit_then_drop" });
    const { id } = expectStatus(await w.sent(), "OUTCOME_UNKNOWN");
    await moveClock(w.h.db, 1);
    await reconcileOne(w.reconcile, id, "due");
    const { providerRef } = expectStatus(await w.now(id), "CONFIRMED");
    const sentence = `The provider shows it: ${providerRef} of £180.00 GBP (succeeded).`;
    const view = await shown(id);
    for (const told of [JSON.stringify(opsShow(view).blocks), showText(view).join("\n")]) {
      expect(told.split(sentence)).toHaveLength(2);
      expect(told.split("(succeeded)")).toHaveLength(2);
    }
  });

  it("a pending refund that succeeded since keeps both, because they are two facts", async () => {
    payments.sandbox.control.arm({ kind: "outcome", status: "pending" });
    const { id } = await w.sent();
    await moveClock(w.h.db, 1);
    await reconcileOne(w.reconcile, id, "due");
    const [made] = await payments.sandbox.control.effects();
    await payments.sandbox.control.advanceRefund(made?.id ?? "", { status: "succeeded" });
    const told = await text(id);
    expect(told).toContain("(pending)");
    expect(told).toContain("last asked: The provider shows it: ");
  });

  it("prepared under a freeze: since when, by whom and why, and no next look", async () => {
    const id = await w.prepared();
    await w.ops.freeze({ userId: "U_ONC1", kind: "refund", reason: "the provider answers oddly" });
    const view = await shown(id);
    expect(view.nextLookAt).toBeNull();
    const told = JSON.stringify(opsShow(view).blocks);
    expect(told).not.toContain("Next look");
    expect(told).toMatch(
      /\*Refunds are frozen\* since <!date[^>]*> by <@U_ONC1>: the provider answers oddly\./u,
    );
    const shell = showText(view).join("\n");
    expect(shell).not.toContain("next look");
    expect(shell).toMatch(
      /frozen by +U_ONC1\. Refunds are frozen since .* UTC: the provider answers oddly\./u,
    );
  });

  it("an end on a person's word says so in lists, heads and titles; one by the provider does not", async () => {
    payments.sandbox.control.arm({ kind: "drop_before_commit", times: null });
    const { id } = expectStatus(await w.quarantined(), "QUARANTINED");
    await w.ops.resolve({ ref: id, verb: "confirm", userId: "U_ONC1", reason: "seen", evidenceRef: "re_1" });
    payments.sandbox.control.disarmAll();
    const sound = expectStatus(await w.sent(1_000n), "CONFIRMED");
    const list = await w.ops.list({ userId: "U_ONC1", status: null });
    if (list.outcome !== "list") throw new Error(list.outcome);
    const lines = list.operations.map(operationLine);
    expect(lines.find((line) => line.includes(id))).toContain(
      "confirmed by on-call's word alone · refund £180.00 GBP",
    );
    expect(lines.find((line) => line.includes(sound.id))).toContain("confirmed · refund £10.00 GBP");
    const view = await shown(id);
    expect(JSON.stringify(opsShow(view).blocks[0])).toContain("Refund: confirmed by on-call's word alone");
    expect(showText(view)[0]).toContain("CONFIRMED by on-call's word alone");
    expect(showText(await shown(sound.id))[0]).toContain("CONFIRMED  refund");
    const card = await readQuarantine(w.h.db, id);
    expect(card === null ? "" : JSON.stringify(quarantineCard(card).blocks[0])).toContain(
      "Settled by on-call's word alone",
    );
  });
});
